#pragma once

#include <cstdint>

#include "kernels/cpu/direct_waves.h"
#include "kernels/cpu/narrow_pair.h"
#include "kernels/cpu/wave_pair.h"
#include "kernels/job.h"
#include "kernels/memory.h"

namespace posenc::kernels::cpu {

/// How many tokens are computed at a time.
inline constexpr std::int64_t kBlockRows = 32;

/// Computes rows of waves in float32, correctly rounded. Built once per call, shared by its threads.
class WaveRows {
 public:
  WaveRows(const Waves& waves, const TokenPositions& positions, std::int64_t longest_run);

  /// Columns that each row must have room for: those of the form and a little padding.
  std::int64_t padded() const { return padded_; }

  /// What a thread keeps from block to block.
  struct Anchor {
    std::int64_t half_position = -1;     // where the sines and cosines below are, times two
    AlignedVector<double> sine, cosine;  // [padded + kReadAhead], like all that follow
    AlignedVector<double> centre_sine, centre_cosine;
    AlignedVector<float> spare;            // for a row that is not needed
    AlignedVector<std::int16_t> nearest;   // of WaveDoubts
    AlignedVector<std::int32_t> doubtful;  // [pieces + 1]
    ReducedAngles angles;                  // from here on: for single positions, one for each wave
    AlignedVector<float> wave_sines, wave_cosines;
    AlignedVector<std::int32_t> doubtful_waves;
    struct Narrow {                                       // of 16-bit rows, [padded]
      AlignedVector<float> sine, cosine;                  // of the centre
      AlignedVector<std::uint16_t> spare, before, after;  // for a row that is not needed; for NarrowDoubts
    } narrow;
  };

  /// Rows of the tokens t0 … t1 − 1 (at most kBlockRows) of sequence b, `row_stride` floats apart.
  void make(std::int64_t b, std::int64_t t0, std::int64_t t1, float* rows, std::int64_t row_stride, Anchor& anchor,
            Outcome& outcome) const;

  /// Call before the first make_16_bits.
  void prepare_16_bits();
  /// The same in a 16-bit type, correctly rounded from the exact value, several times as fast. If these tokens do not
  /// allow it (few, not consecutive, negative, or an unusual scale), returns false and writes nothing.
  template <class T> bool make_16_bits(std::int64_t b, std::int64_t t0, std::int64_t t1, T* rows,
                                       std::int64_t row_stride, Anchor& anchor, Outcome& outcome) const;

 private:
  void find_column_runs();
  void find_waves(ReducedAngles& angles, std::int64_t half_position) const;
  void set_anchor(Anchor& anchor, std::int64_t half_position) const;
  void set_centre(Anchor& anchor, std::int64_t group) const;
  void make_run(std::int64_t position, std::int64_t count, float* rows, std::int64_t row_stride, Anchor& anchor,
                Outcome& outcome) const;
  std::int64_t reduce_angles(std::int64_t b, std::int64_t t, Anchor& scratch) const;
  void place_columns(float* row, const Anchor& scratch) const;
  void make_directly(std::int64_t b, std::int64_t t, float* row, Anchor& scratch, Outcome& outcome) const;
  void enlarge(const WaveRowPair& pair) const;
  template <class T>
  void remake_16_bits(std::int64_t c, std::int64_t position, double larger, T& out, Outcome& outcome) const;
  void remake(std::int64_t c0, std::int64_t position, float* row, Outcome& outcome) const;
  std::int64_t width() const { return static_cast<std::int64_t>(waves_.columns.size()); }

  const Waves& waves_;
  const TokenPositions& positions_;
  double fraction_;  // scale = fraction · power, so that rows can be computed from values below 2
  float power_ = 1;
  std::int64_t padded_;
  bool alternates_ = false;  // columns alternate between the sine and cosine of a wave
  // Otherwise: columns of successive waves with the same quarter.
  struct ColumnRun {
    std::int32_t column, wave, count;
    std::uint8_t quarter;
  };
  AlignedVector<ColumnRun> column_runs_;

  AlignedVector<std::uint64_t> high_, low_;  // [waves] the upper words of the frequencies, if angles are exact
  AlignedVector<double> sines_, cosines_;    // [kReach][padded]: of ω/2, 3ω/2 …
  AlignedVector<float> narrow_sines_, narrow_cosines_;  // the same in float32; empty without prepare_16_bits
  std::int64_t groups_ = 0;
  AlignedVector<double> group_sines_, group_cosines_;  // [groups][padded]: of n·kGroupRows·ω, n = 0 …
};

}  // namespace posenc::kernels::cpu
