#pragma once

#include <cstdint>

namespace posenc::kernels::cpu {

/// Columns of waves are processed in pieces of this many, and padded to a multiple of it: at least two vectors of
/// doubles.
inline constexpr std::int64_t kPieceColumns = 32;
/// Columns past the last that are read but not used.
inline constexpr std::int64_t kReadAhead = kPieceColumns;

/// The error bound of a value, divided by |scale|; derived in wave_rows.cpp.
inline constexpr double kWaveError = 0x1p-49;
/// Centres are too large by a factor of 1 + kLarger: from kSmall · |scale| up, that outweighs kWaveError.
inline constexpr double kSmall = 0x1p-12;
inline constexpr double kLarger = kWaveError / kSmall;

/// Two rows of waves at the same distance n from a centre, by the addition theorem:
///   value(centre ± n) = sine·cos(nω) ± cosine·sin(nω)
/// from a centre that is too large by a factor of 1 + kLarger; the rows are not.
struct WaveRowPair {
  const double* sine;     // [columns + kReadAhead] of the centre, with the column's quarter and scale
  const double* cosine;   // [columns + kReadAhead] its derivative
  const double* cosines;  // [columns + kReadAhead] cos(nω)
  const double* sines;    // [columns + kReadAhead] sin(nω)
  std::int64_t columns;   // a multiple of kPieceColumns
  double scale;           // |scale|, less than 2
  float* before;          // [columns] float32
  float* after;
  std::int64_t row_stride;  // floats from one row to the next; the next pair goes before and after these
};
/// Storage for the results of the test of each piece.
struct WaveDoubts {
  static constexpr std::int64_t kLanes = 2 * kPieceColumns;
  std::int16_t* nearest;   // [pieces][kLanes]
  std::int32_t* doubtful;  // [pieces] first columns
};
/// Writes both rows. Lists in `doubtful` the pieces, by their first column, in which a value could round either way
/// within the error, and returns how many there are.
std::int64_t wave_row_pair(const WaveRowPair& pair, const WaveDoubts& doubts) noexcept;

/// (sine, cosine) rotated by the angle whose sines and cosines are given, for each column.
void rotate_centre(const double* sine, const double* cosine, const double* sines, const double* cosines,
                   double* new_sine, double* new_cosine, std::int64_t columns) noexcept;

}  // namespace posenc::kernels::cpu
