#pragma once

#include <cstdint>
#include <vector>

#include "kernels/cpu/row_math.h"
#include "kernels/job.h"

namespace posenc::kernels::cpu {

/// How many tokens are made at a time.
inline constexpr std::int64_t kBlockRows = 64;

/// Makes rows of waves in float32, correctly rounded. Built once per call, shared by its threads.
class WaveRows {
 public:
  WaveRows(const Waves& waves, const TokenPositions& positions, std::int64_t longest_run);

  /// Floats between rows of a block, and rows it must have room for. Not a multiple of 4 KiB, so that rows do not
  /// compete for the same lines of the cache.
  std::int64_t row_stride() const { return padded_ + 16; }
  static constexpr std::int64_t kScratchRows = kBlockRows + 16;

  /// What a thread keeps from block to block.
  struct Anchor {
    std::int64_t position = -1;        // of the centre below
    std::vector<double> sine, cosine;  // [padded]
    std::vector<double> block_sine, block_cosine;
    std::vector<DoubtfulTile> doubtful;
  };

  /// Rows of the tokens t0 … t1 − 1 (at most kBlockRows) of sequence b.
  void make(std::int64_t b, std::int64_t t0, std::int64_t t1, float* rows, Anchor& anchor, Outcome& outcome) const;

 private:
  void fill_steps(double* sines, double* cosines, std::uint64_t positions) const;
  void set_anchor(Anchor& anchor, std::int64_t position) const;
  void make_run(std::int64_t position, std::int64_t count, float* rows, Anchor& anchor, Outcome& outcome) const;
  void make_directly(std::int64_t b, std::int64_t t, float* row, Outcome& outcome) const;
  void remake(std::int64_t c0, std::int64_t c1, std::int64_t position, std::int64_t count, float* rows,
              Outcome& outcome) const;
  std::int64_t width() const { return static_cast<std::int64_t>(waves_.columns.size()); }

  const Waves& waves_;
  const TokenPositions& positions_;
  std::int64_t padded_;        // columns, rounded up to whole vectors
  std::int64_t table_stride_;  // and a bit more: a multiple of 4 KiB would put all rows into the same cache lines
  std::vector<double> reach_;  // [padded]: see WaveBlock
  std::vector<double> sines_, cosines_;  // [kGroupReach + 1][table_stride]: of nω, n = 1 …, and kGroupRows
  std::vector<double> block_sines_, block_cosines_;  // [kAnchorBlocks][table_stride]: of n·kBlockRows·ω, n = 0 …
};

}  // namespace posenc::kernels::cpu
