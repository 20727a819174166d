#pragma once

#include <cstdint>

namespace posenc::kernels::cpu {

/// Columns of sums of two doubles, high + low.
struct WideColumns {
  const double *high, *low;
};

/// What a value may be off by, over |scale|; see wide_rows.cpp for why.
inline constexpr double kWideError = 0x1p-88;

/// A number whose last bit is 2^-40 · the power of two above |scale|, and stays so when a value is added.
double wide_grid(double scale) noexcept;

/// Two rows of waves at the same distance n from a centre, as WaveRowPair has them, in double-double:
///   value(centre ± n) = sine·cos(nω) ± cosine·sin(nω)
struct WideRowPair {
  WideColumns sine, cosine;    // of the centre, with the column's quarter and scale; its derivative
  WideColumns cosines, sines;  // cos(nω), sin(nω)
  std::int64_t columns;        // a multiple of kPieceColumns
  double error;                // kWideError · |scale|
  double grid;                 // wide_grid(scale)
  double *before, *after;      // [columns] float64
  std::int64_t row_stride;     // elements from one row to the next: the next pair goes before and after these
};
/// Writes both rows. Lists in `doubtful` the pieces, by their first column, in which a value could round either way
/// within the error, and returns how many there are.
std::int64_t wide_row_pair(const WideRowPair& pair, std::int32_t* doubtful) noexcept;

/// (sine, cosine) rotated by the angle whose sines and cosines are given, for each column; the results are normalised.
struct WideRotation {
  WideColumns sine, cosine, sines, cosines;
  double *sine_high, *sine_low, *cosine_high, *cosine_low;
  std::int64_t columns;
};
void rotate_wide(const WideRotation& rotation) noexcept;

}  // namespace posenc::kernels::cpu
