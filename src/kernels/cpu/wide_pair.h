#pragma once

#include <cstdint>

namespace posenc::kernels::cpu {

/// Columns of sums of two doubles, high + low.
struct WideColumns {
  const double *high, *low;
};

/// The same numbers split in two: upper is a multiple of 2^-26 of a power of two that none of them exceeds, lower the
/// remainder. Products of two uppers are then exact, and so is the sum of two such products.
struct CutColumns {
  const double *upper, *lower;
};

/// The error bound of a value, divided by the power of two that |scale| does not exceed; derived in wide_rows.cpp.
inline constexpr double kWideError = 48 * 0x1p-81;

/// The smallest power of two that `size` does not exceed.
double power_from(double size) noexcept;

/// Two rows of waves at the same distance n from a centre, as in WaveRowPair:
///   value(centre ± n) = sine·cos(nω) ± cosine·sin(nω)
struct WideRowPair {
  CutColumns sine, cosine;                      // of the centre, with the column's quarter and scale; its derivative
  const double *rounded_sine, *rounded_cosine;  // the same, rounded to one double
  CutColumns cosines, sines;                    // cos(nω), sin(nω)
  std::int64_t columns;                         // a multiple of kPieceColumns
  double error;                                 // kWideError · power_from(|scale|)
  double *before, *after;                       // [columns] float64
  std::int64_t row_stride;  // elements from one row to the next; the next pair goes before and after these
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

/// Splits high + low, normalised and at most `power` in size, as described at CutColumns.
void cut_wide(const WideColumns& columns, std::int64_t count, double power, double* upper, double* lower) noexcept;

}  // namespace posenc::kernels::cpu
