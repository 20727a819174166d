#pragma once

#include <cstdint>
#include <vector>

#include "kernels/cpu/aligned.h"
#include "kernels/cpu/direct_waves.h"
#include "kernels/cpu/wave_pair.h"
#include "kernels/job.h"

namespace posenc::kernels::cpu {

/// How many tokens are made at a time.
inline constexpr std::int64_t kBlockRows = 32;

/// Makes rows of waves in float32, correctly rounded. Built once per call, shared by its threads.
class WaveRows {
 public:
  WaveRows(const Waves& waves, const TokenPositions& positions, std::int64_t longest_run);

  /// Columns that each row must have room for, those of the form and a little padding.
  std::int64_t padded() const { return padded_; }

  /// What a thread keeps from block to block.
  struct Anchor {
    std::int64_t half_position = -1;     // where the sines and cosines below are, times two
    AlignedVector<double> sine, cosine;  // [padded + kReadAhead], as all that follow
    AlignedVector<double> centre_sine, centre_cosine;
    AlignedVector<float> spare;           // the row that nobody asked for
    AlignedVector<std::int16_t> nearest;  // of WaveDoubts
    std::vector<std::int32_t> doubtful;   // [pieces + 1]
    ReducedAngles angles;                 // what follows: of single positions, one for each wave
    std::vector<float> wave_sines, wave_cosines;
    std::vector<std::int32_t> doubtful_waves;
  };

  /// Rows of the tokens t0 … t1 − 1 (at most kBlockRows) of sequence b, `row_stride` floats apart.
  void make(std::int64_t b, std::int64_t t0, std::int64_t t1, float* rows, std::int64_t row_stride, Anchor& anchor,
            Outcome& outcome) const;

 private:
  void find_waves(ReducedAngles& angles, std::int64_t half_position) const;
  void set_anchor(Anchor& anchor, std::int64_t half_position) const;
  void make_run(std::int64_t position, std::int64_t count, float* rows, std::int64_t row_stride, Anchor& anchor,
                Outcome& outcome) const;
  std::int64_t reduce_angles(std::int64_t b, std::int64_t t, Anchor& scratch) const;
  void place_columns(float* row, const Anchor& scratch) const;
  void make_directly(std::int64_t b, std::int64_t t, float* row, Anchor& scratch, Outcome& outcome) const;
  void enlarge(const WaveRowPair& pair) const;
  void remake(std::int64_t c0, std::int64_t position, float* row, Outcome& outcome) const;
  std::int64_t width() const { return static_cast<std::int64_t>(waves_.columns.size()); }

  const Waves& waves_;
  const TokenPositions& positions_;
  double fraction_;  // scale = fraction · power, so that rows can be made of values below 2
  float power_ = 1;
  std::int64_t padded_;
  bool alternates_ = false;  // columns are the sine and cosine of one wave after another

  std::vector<std::uint64_t> high_, low_;  // [waves] the upper words of the frequencies, where angles are exact
  AlignedVector<double> sines_, cosines_;  // [kReach][padded]: of ω/2, 3ω/2 …
  std::int64_t groups_ = 0;
  AlignedVector<double> group_sines_, group_cosines_;  // [groups][padded]: of n·kGroupRows·ω, n = 0 …
};

}  // namespace posenc::kernels::cpu
