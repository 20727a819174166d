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
  const T* next;  // rows that will be written after these, with x's stride: prefetched
};
/// out = x + p, in the working type, rounded to T.
void add_rows(const AddRows<float, float>& job) noexcept;
void add_rows(const AddRows<double, double>& job) noexcept;
void add_rows(const AddRows<Half, float>& job) noexcept;
void add_rows(const AddRows<BFloat16, float>& job) noexcept;

/// out[i] = p[i] rounded to T, to nearest.
void narrow_row(Half* out, const float* p, std::int64_t n) noexcept;
void narrow_row(BFloat16* out, const float* p, std::int64_t n) noexcept;
void narrow_row(Half* out, const BFloat16* p, std::int64_t n) noexcept;
void narrow_row(BFloat16* out, const Half* p, std::int64_t n) noexcept;

/// out[i] = x[i], exact.
void widen_row(float* out, const Half* x, std::int64_t n) noexcept;
void widen_row(float* out, const BFloat16* x, std::int64_t n) noexcept;

/// out[i] = x[i]; a NaN becomes the one without payload.
void copy_without_payload(float* out, const float* x, std::int64_t n) noexcept;

/// out[i] = x[i] / scale in f32, rounded to nearest.
void quantise_row(E4M3* out, const float* x, float scale, std::int64_t n) noexcept;
void quantise_row(E4M3* out, const Half* x, float scale, std::int64_t n) noexcept;
void quantise_row(E4M3* out, const BFloat16* x, float scale, std::int64_t n) noexcept;

/// Whole blocks, as numerics::q8_block_of makes them.
void quantise_row(Q8Block* out, const float* x, std::int64_t n) noexcept;
void quantise_row(Q8Block* out, const Half* x, std::int64_t n) noexcept;
void quantise_row(Q8Block* out, const BFloat16* x, std::int64_t n) noexcept;

/// sums[i] += x[i].
void sum_row(double* sums, const float* x, std::int64_t n) noexcept;

}  // namespace posenc::kernels::cpu
