#pragma once

#include <type_traits>

#include "kernels/cpu/wave_rows.h"
#include "kernels/element.h"

namespace posenc::kernels::cpu {

/// Computes rows of waves in float64 as the reference does, each value by integers: a hundred times as long as WaveRows
/// takes for float32. No model computes many of them again and again.
class DoubleRows {
 public:
  DoubleRows(const Waves& waves, const TokenPositions& positions, std::int64_t /*longest_run*/)
      : waves_(waves), positions_(positions) {}

  // As WaveRows has them; here rows have no padding, and a thread keeps nothing.
  std::int64_t padded() const { return static_cast<std::int64_t>(waves_.columns.size()); }
  struct Anchor {};

  /// Rows of the tokens t0 … t1 − 1 of sequence b, `row_stride` doubles apart.
  void make(std::int64_t b, std::int64_t t0, std::int64_t t1, double* rows, std::int64_t row_stride, Anchor&,
            Outcome& outcome) const {
    for (std::int64_t t = t0; t < t1; ++t) {
      double* const row = rows + (t - t0) * row_stride;
      for (std::size_t c = 0; c < waves_.columns.size(); ++c) {
        const WaveColumn column = waves_.columns[c];
        const numerics::Angle angle = angle_of(waves_, column.wave, positions_, b, t);
        if (!numerics::round_wave_by_integers(row[c], angle, column.quarter, waves_.scale)) {
          outcome = {false, positions_.at(b, t), static_cast<std::int64_t>(c)};
        }
      }
    }
  }

 private:
  const Waves& waves_;
  const TokenPositions& positions_;
};

/// The class that computes rows of waves in the type of the arithmetic.
template <class W> using RowsOfWaves = std::conditional_t<std::is_same_v<W, double>, DoubleRows, WaveRows>;

}  // namespace posenc::kernels::cpu
