#pragma once

#include <cstdint>

#include "posenc/types.h"

namespace posenc::kernels::cpu {

// Inner loops over contiguous columns, dispatched to the best SIMD target. Same bytes on every target.

/// out[i] = x[i] + p[i], in the working type, rounded to T.
void add_row(float* out, const float* x, const float* p, std::int64_t n) noexcept;
void add_row(double* out, const double* x, const double* p, std::int64_t n) noexcept;
void add_row(Half* out, const Half* x, const float* p, std::int64_t n) noexcept;
void add_row(BFloat16* out, const BFloat16* x, const float* p, std::int64_t n) noexcept;

/// out[i] = p[i] rounded to T, to nearest.
void narrow_row(Half* out, const float* p, std::int64_t n) noexcept;
void narrow_row(BFloat16* out, const float* p, std::int64_t n) noexcept;

/// out[i] = x[i], exact.
void widen_row(float* out, const Half* x, std::int64_t n) noexcept;
void widen_row(float* out, const BFloat16* x, std::int64_t n) noexcept;

/// sums[i] += x[i].
void sum_row(double* sums, const float* x, std::int64_t n) noexcept;

/// Rows of waves in groups around a centre, by the addition theorem:
///   value(centre ± n) = sine·cos(nω) ± cosine·sin(nω)
/// A group has kGroupRows rows, its centre is row kGroupRows/2; the centre then moves on by kGroupRows.
inline constexpr int kGroupRows = 16;
inline constexpr int kGroupReach = kGroupRows / 2;
inline constexpr int kMostGroups = 4;
/// Columns are padded to a multiple of this; no vector is longer.
inline constexpr std::int64_t kColumnPadding = 64;

/// What a value may be off by, over |scale|; see wave_rows.cpp for why.
inline constexpr double kWaveError = 0x1.8p-48;
/// From kSmall up, a double's last bit is worth at least 2^-52 · kSmall, so kWaveError is at most kSlack of them.
inline constexpr double kSmall = 0x1p-11;
inline constexpr std::uint32_t kSlack = static_cast<std::uint32_t>(kWaveError / (kSmall * 0x1p-52));

struct WaveBlock {
  const double* sine;     // [columns] of the first centre, with the column's quarter and scale
  const double* cosine;   // [columns] its derivative
  const double* reach;    // [columns] a first centre at least this large: no small value in the block
  const double* cosines;  // [kGroupReach + 1][table_stride] cos(nω), n = 1 … kGroupReach, and kGroupRows
  const double* sines;    // [kGroupReach + 1][table_stride] sin(nω)
  std::int64_t table_stride;
  std::int64_t columns;      // a multiple of kColumnPadding
  double error;              // what a double may be off by: kWaveError · |scale|
  std::uint16_t small_bits;  // kSmall · |scale| as the upper half of a float, without its sign, doubled
  int groups;
  float* out;  // [groups · kGroupRows][row_stride]
  std::int64_t row_stride;
};
/// A group of rows of the columns from `column` on that is to be made another way.
struct DoubtfulTile {
  std::int32_t column;
  std::int32_t group;
};
/// Fills the block with float32. Lists the tiles, `lanes` columns wide, in which a value could round either way
/// within the error, and returns how many there are.
std::int64_t wave_block(const WaveBlock& block, DoubtfulTile* doubtful, std::int64_t& lanes) noexcept;

/// (sine, cosine) turned on by the angle whose sines and cosines are given, for each column.
void turn_centre(const double* sine, const double* cosine, const double* sines, const double* cosines,
                 double* new_sine, double* new_cosine, std::int64_t columns) noexcept;

}  // namespace posenc::kernels::cpu
