#pragma once

#include <cstdint>

#include "posenc/forms.h"
#include "posenc/types.h"

namespace posenc::kernels::cpu {

/// A loop over heads or tokens: how often, and by how many elements each tensor advances.
struct RotateLoop {
  std::int64_t count = 1, out = 0, x = 0, table = 0;
};

/// Rows of contiguous features, rotated by rows of cosines and sines. Two nested loops reach them all.
template <class T, class W> struct RotateRows {
  T* out = nullptr;      // the first rotated feature of the first row
  const T* x = nullptr;  // the same place, or apart from out
  const W* cosines =
      nullptr;  // [pairs · blocks] of the first row; where wants_doubled() says so, as double_cos_sin() makes them
  const W* sines = nullptr;            // the same
  std::int64_t pairs = 0, blocks = 1;  // pairs of a block; blocks of a row
  PairPlaces read, write;
  RotateLoop outer, inner;
  T* scratch = nullptr;    // [2 · pairs] if out is x and pairs are not written where they were read
  std::int64_t ahead = 0;  // how many bytes ahead of x to prefetch; 0 if x is in a cache
};

/// (a, b) → (a·c − b·s, b·c + a·s), each product and sum rounded to W, the result to T. Same bytes on every target.
void rotate_rows(const RotateRows<float, float>& rows) noexcept;
void rotate_rows(const RotateRows<double, double>& rows) noexcept;
void rotate_rows(const RotateRows<Half, float>& rows) noexcept;
void rotate_rows(const RotateRows<BFloat16, float>& rows) noexcept;
/// Whether a NaN of a table may have any payload if results are bf16: where an instruction rounds them. Others add half a unit,
/// which a payload of ones carries into the sign.
bool rotates_any_nan_to_bf16() noexcept;

}  // namespace posenc::kernels::cpu
