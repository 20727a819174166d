#pragma once

#include <cstdint>

#include "posenc/types.h"

namespace posenc::kernels::cpu {

// Inner loops over contiguous columns, dispatched to the best SIMD target. Same bytes on every target.

/// Rows of contiguous columns; strides in elements.
template <class T, class W> struct AddRows {
  T* out;
  const T* x;
  const W* p;
  std::int64_t out_stride, x_stride, p_stride;
  std::int64_t rows, columns;
  const T* next;  // rows that will be changed after these, with x's stride: asked for on the way
};
/// out = x + p, in the working type, rounded to T.
void add_rows(const AddRows<float, float>& job) noexcept;
void add_rows(const AddRows<double, double>& job) noexcept;
void add_rows(const AddRows<Half, float>& job) noexcept;
void add_rows(const AddRows<BFloat16, float>& job) noexcept;

/// out[i] = p[i] rounded to T, to nearest.
void narrow_row(Half* out, const float* p, std::int64_t n) noexcept;
void narrow_row(BFloat16* out, const float* p, std::int64_t n) noexcept;

/// out[i] = x[i], exact.
void widen_row(float* out, const Half* x, std::int64_t n) noexcept;
void widen_row(float* out, const BFloat16* x, std::int64_t n) noexcept;

/// sums[i] += x[i].
void sum_row(double* sums, const float* x, std::int64_t n) noexcept;

/// Columns of waves are made in pieces of this many, and padded to a multiple of it. No vector of doubles is longer.
inline constexpr std::int64_t kPieceColumns = 32;

/// What a value may be off by, over |scale|; see wave_rows.cpp for why.
inline constexpr double kWaveError = 0x1p-49;
/// Centres are too large by a factor of 1 + kLarger: from kSmall · |scale| up, that outweighs kWaveError.
inline constexpr double kSmall = 0x1p-12;
inline constexpr double kLarger = kWaveError / kSmall;

/// Two rows of waves at the same distance n from a centre, by the addition theorem:
///   value(centre ± n) = sine·cos(nω) ± cosine·sin(nω)
/// from a centre that is too large by a factor of 1 + kLarger; the rows are not.
struct WaveRowPair {
  const double* sine;        // [columns] of the centre, with the column's quarter and scale
  const double* cosine;      // [columns] its derivative
  const double* cosines;     // [columns] cos(nω)
  const double* sines;       // [columns] sin(nω)
  std::int64_t columns;      // a multiple of kPieceColumns
  double error;              // what a double may be off by: kWaveError · |scale|
  std::uint16_t small_bits;  // kSmall · |scale| as the upper half of a float, without its sign, doubled
  float* before;             // [columns] float32
  float* after;
};
/// Writes both rows. Lists the pieces, by their first column, in which a value could round either way within the
/// error, and returns how many there are; `doubtful` has room for one more than there are pieces.
std::int64_t wave_row_pair(const WaveRowPair& pair, std::int32_t* doubtful) noexcept;

/// (sine, cosine) turned on by the angle whose sines and cosines are given, for each column.
void turn_centre(const double* sine, const double* cosine, const double* sines, const double* cosines,
                 double* new_sine, double* new_cosine, std::int64_t columns) noexcept;

}  // namespace posenc::kernels::cpu
