#pragma once

#include <cstdint>

#include "posenc/types.h"

namespace posenc::kernels::cpu {

/// The error bound of a value computed in float32, divided by |scale|, in units of 2^-24, half the last bit of a
/// float at 1. Both factors of a product are rounded (2) and so is the product (1), for two products s·c' and c·s'
/// with |s·c'| + |c·s'| ≤ 1; the sum with the error (1), that of the products (1), and the lower end (1): 6. The
/// centre is too large by kLarger, far below one unit: 7.
inline constexpr double kNarrowError = 7 * 0x1p-24;

/// Two rows of waves in a 16-bit type at the same distance n from a centre, as in WaveRowPair:
///   value(centre ± n) = sine·cos(nω) ± cosine·sin(nω)
struct NarrowRowPair {
  const float *sine, *cosine;    // [columns] of the centre, with the column's quarter and scale; its derivative
  const float *cosines, *sines;  // [columns] cos(nω), sin(nω)
  std::int64_t columns;          // a multiple of kPieceColumns
  float error;                   // kNarrowError · |scale|
  std::uint16_t *before, *after;
  std::int64_t row_stride;  // elements from one row to the next; the next pair goes before and after these
};
/// Storage for the results of the test.
struct NarrowDoubts {
  std::int32_t* doubtful;         // [pieces] first columns of pieces in which a value could round either way
  std::uint16_t *before, *after;  // [columns] of those pieces: nonzero where a value could
};
/// Writes both rows, rounded to nearest; returns how many pieces are listed in `doubtful`.
std::int64_t narrow_row_pair(const NarrowRowPair& pair, const NarrowDoubts& doubts, BFloat16 type) noexcept;
std::int64_t narrow_row_pair(const NarrowRowPair& pair, const NarrowDoubts& doubts, Half type) noexcept;

}  // namespace posenc::kernels::cpu
