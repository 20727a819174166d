// The matrix unit of arm64 processors: BFMMLA multiplies two rows of four bf16 by two columns of four, into four f32.
// Tiles have 8 rows and 12 columns because 24 vectors of sums then fit in registers beside 4 of the left operand, and
// 10 loads feed 24 instructions. Measured: decision 0022.

#ifndef POSENC_BFMMLA_INL_H  // compiled for a single SIMD target
#define POSENC_BFMMLA_INL_H

#include <algorithm>
#include <cstdint>

#include "attention/cpu/panel-inl.h"
#include "attention/cpu/tiles.h"
#include "attention/job.h"
#include "hwy/highway.h"
#include "kernels/cpu/machine.h"

HWY_BEFORE_NAMESPACE();
namespace posenc::attend::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

constexpr std::int64_t kMatrixRows = 8, kMatrixDepth = 4, kMatrixStep = 4;
constexpr std::int64_t kWeightPlanes = 2;
constexpr std::int64_t kColumns = 12;  // per panel: three vectors of four
inline std::int64_t matrix_keys(std::int64_t /*features*/) { return kKeyBlock; }
HWY_INLINE std::int64_t matrix_width() { return panel_width(); }

inline bool has_matrix_unit() { return kernels::cpu::machine_multiplies_bf16_matrices(); }

struct UseMatrixUnit {  // needs no preparation
  explicit UseMatrixUnit(bool) {}
};

// One product of a left and a right operand; up to three of them are summed.
struct Term16 {
  const std::uint16_t *left, *right;
  std::int64_t depth = 0;  // 0: same as the others
};

HWY_INLINE void multiply_2x4x2(float32x4_t& sum, uint16x8_t rows, uint16x8_t columns) {
  asm(".arch_extension bf16\n\tbfmmla %0.4s, %1.8h, %2.8h" : "+w"(sum) : "w"(rows), "w"(columns));
}

// out[m, :] = (kAdd ? out[m, :] : 0) + Σ_terms Σ_k left[k, m] · right[k, :]   for m < 8 and a panel's columns
template <bool kAdd>
HWY_NOINLINE void multiply_16(const Term16* terms, std::int64_t count, std::int64_t depth, float* HWY_RESTRICT out) {
  float32x4_t sums[4][6];  // [pair of rows][pair of columns]: the four products of each
#pragma GCC unroll 4
  for (int r = 0; r < 4; ++r) {
#pragma GCC unroll 6
    for (int c = 0; c < 6; ++c) sums[r][c] = vdupq_n_f32(0);
  }
  for (std::int64_t term = 0; term < count; ++term) {
    const std::uint16_t *left = terms[term].left, *right = terms[term].right;
    const std::int64_t own = terms[term].depth > 0 ? terms[term].depth : depth;
    for (std::int64_t k = 0; k < own; k += kMatrixStep, left += 32, right += 48) {
      const uint16x8_t l0 = vld1q_u16(left), l1 = vld1q_u16(left + 8), l2 = vld1q_u16(left + 16),
                       l3 = vld1q_u16(left + 24);
#pragma GCC unroll 6
      for (int c = 0; c < 6; ++c) {
        const uint16x8_t columns = vld1q_u16(right + 8 * c);
        multiply_2x4x2(sums[0][c], l0, columns);
        multiply_2x4x2(sums[1][c], l1, columns);
        multiply_2x4x2(sums[2][c], l2, columns);
        multiply_2x4x2(sums[3][c], l3, columns);
      }
    }
  }
  const auto finish = [&](float32x4_t sum, float* to)
                          HWY_ATTR { vst1q_f32(to, kAdd ? vaddq_f32(vld1q_f32(to), sum) : sum); };
#pragma GCC unroll 4
  for (int r = 0; r < 4; ++r) {
#pragma GCC unroll 3
    for (int c = 0; c < 3; ++c) {  // one row of each pair, four columns
      const float64x2_t a = vreinterpretq_f64_f32(sums[r][2 * c]), b = vreinterpretq_f64_f32(sums[r][2 * c + 1]);
      finish(vreinterpretq_f32_f64(vzip1q_f64(a, b)), out + 2 * r * kColumns + 4 * c);
      finish(vreinterpretq_f32_f64(vzip2q_f64(a, b)), out + (2 * r + 1) * kColumns + 4 * c);
    }
  }
}

HWY_INLINE uint16x8_t to_bf16(float32x4_t low, float32x4_t high) {
  uint16x8_t bits;
  asm(".arch_extension bf16\n\tbfcvtn %0.4h, %1.4s" : "=w"(bits) : "w"(low));
  asm(".arch_extension bf16\n\tbfcvtn2 %0.8h, %1.4s" : "+w"(bits) : "w"(high));
  return bits;
}
HWY_INLINE float32x4_t lower_of(uint16x8_t bits) {
  return vreinterpretq_f32_u32(vshll_n_u16(vget_low_u16(bits), 16));
}
HWY_INLINE float32x4_t upper_of(uint16x8_t bits) { return vreinterpretq_f32_u32(vshll_high_n_u16(bits, 16)); }
// The remainder of a number after subtracting its bf16; 0 if it is not finite.
HWY_INLINE float32x4_t rest_of(float32x4_t x, float32x4_t high) {
  const uint32x4_t is_finite = vcaltq_f32(high, vdupq_n_f32(-kNone));
  return vreinterpretq_f32_u32(vandq_u32(vreinterpretq_u32_f32(vsubq_f32(x, high)), is_finite));
}
// Eight f32, in one plane or two.
HWY_INLINE void split_eight(const float* x, uint16x8_t& high, uint16x8_t& low) {
  const float32x4_t a = vld1q_f32(x), b = vld1q_f32(x + 4);
  high = to_bf16(a, b);
  low = to_bf16(rest_of(a, lower_of(high)), rest_of(b, upper_of(high)));
}

// Rows of f32 as columns or rows of an operand whose steps are `step` elements apart: out[k / 4 · step + row · 4 + k
// mod 4].
HWY_INLINE void place_rows(const float* rows, std::int64_t stride, std::int64_t count, std::int64_t features,
                           std::int64_t planes, std::int64_t plane, std::int64_t step, std::uint16_t* out) {
  for (std::int64_t r = 0; r < count; ++r, rows += stride, out += kMatrixStep) {
    for (std::int64_t f = 0; f < features; f += 8) {
      HWY_ALIGN float eight[8] = {};
      const std::int64_t rest = std::min<std::int64_t>(features - f, 8);
      if (rest < 8) std::copy(rows + f, rows + f + rest, eight);
      uint16x8_t high, low;
      split_eight(rest < 8 ? eight : rows + f, high, low);
      std::uint16_t* const to = out + f / kMatrixStep * step;
      const auto put = [&](uint16x8_t bits, std::uint16_t* place) HWY_ATTR {
        vst1_u16(place, vget_low_u16(bits));
        if (rest > 4) vst1_u16(place + step, vget_high_u16(bits));
      };
      put(high, to);
      if (planes > 1) put(low, to + plane);
    }
  }
}
// Packs queries, [count, features] f32, as the columns of a panel; missing columns are 0.
inline void pack_columns_16(const float* rows, std::int64_t count, std::int64_t features, std::int64_t depth,
                            std::int64_t planes, std::int64_t plane, std::uint16_t* out) {
  for (std::int64_t p = 0; p < planes && count < kColumns; ++p) {
    std::fill_n(out + p * plane, depth * kColumns, std::uint16_t{0});
  }
  place_rows(rows, features, count, features, planes, plane, kColumns * kMatrixStep, out);
}
// The same for bf16 queries that are contiguous in memory, features a multiple of 8.
inline void copy_columns_16(const HeadTensor<const void>& x, std::int64_t b, std::int64_t h, std::int64_t begin,
                            std::int64_t end, std::uint16_t* out) {
  if (end - begin < kColumns) std::fill_n(out, x.features * kColumns, std::uint16_t{0});
  for (std::int64_t t = begin; t < end; ++t, out += kMatrixStep) {
    const auto* const row = x.row<std::uint16_t>(b, h, t);
    for (std::int64_t f = 0; f < x.features; f += 4) vst1_u16(out + f * kColumns, vld1_u16(row + f));
  }
}

// Two rows of a group, eight features of each, in two steps of 4.
HWY_INLINE void place_two(uint16x8_t first, uint16x8_t second, std::uint16_t* to) {
  const uint64x2_t a = vreinterpretq_u64_u16(first), c = vreinterpretq_u64_u16(second);
  vst1q_u16(to, vreinterpretq_u16_u64(vzip1q_u64(a, c)));
  vst1q_u16(to + kMatrixRows * kMatrixStep, vreinterpretq_u16_u64(vzip2q_u64(a, c)));
}
// Packs keys, [count, features] f32, in groups of 8 rows; missing rows are 0.
inline void pack_groups_16(const float* rows, std::int64_t count, std::int64_t features, std::int64_t depth,
                           std::int64_t planes, std::int64_t plane, std::uint16_t* out) {
  for (std::int64_t t = 0; t < count; t += kMatrixRows, out += kMatrixRows * depth, rows += kMatrixRows * features) {
    const std::int64_t some = std::min(kMatrixRows, count - t);
    for (std::int64_t p = 0; p < planes && some < kMatrixRows; ++p) {
      std::fill_n(out + p * plane, kMatrixRows * depth, std::uint16_t{0});
    }
    if (some < kMatrixRows || features % 8 != 0) {
      place_rows(rows, features, some, features, planes, plane, kMatrixRows * kMatrixStep, out);
      continue;
    }
    for (std::int64_t r = 0; r < kMatrixRows; r += 2) {
      const float *const first = rows + r * features, *const second = first + features;
      std::uint16_t* to = out + r * kMatrixStep;
      for (std::int64_t f = 0; f < features; f += 8, to += 2 * kMatrixRows * kMatrixStep) {
        uint16x8_t high_a, low_a, high_b, low_b;
        split_eight(first + f, high_a, low_a);
        split_eight(second + f, high_b, low_b);
        place_two(high_a, high_b, to);
        if (planes > 1) place_two(low_a, low_b, to + plane);
      }
    }
  }
}
// The same for bf16 keys that are contiguous in memory, features a multiple of 8: a copy.
inline void copy_groups_16(const HeadTensor<const void>& x, std::int64_t b, std::int64_t h, std::int64_t begin,
                           std::int64_t end, std::uint16_t* out) {
  const std::int64_t features = x.features;
  for (std::int64_t t = begin; t < end; t += kMatrixRows, out += kMatrixRows * features) {
    for (std::int64_t r = 0; r < kMatrixRows; r += 2) {
      const bool has_first = t + r < end, has_second = t + r + 1 < end;
      const auto* const first = has_first ? x.row<std::uint16_t>(b, h, t + r) : nullptr;
      const auto* const second = has_second ? x.row<std::uint16_t>(b, h, t + r + 1) : nullptr;
      std::uint16_t* to = out + r * kMatrixStep;
      for (std::int64_t f = 0; f < features; f += 8, to += 2 * kMatrixRows * kMatrixStep) {
        const uint16x8_t zero = vdupq_n_u16(0);
        place_two(has_first ? vld1q_u16(first + f) : zero, has_second ? vld1q_u16(second + f) : zero, to);
      }
    }
  }
}

// Transposes four rows of eight.
HWY_INLINE void transpose_4x8(uint16x8_t a, uint16x8_t b, uint16x8_t c, uint16x8_t d, std::uint16_t* out) {
  const auto put = [](uint16x8_t first, uint16x8_t second, std::uint16_t* to) HWY_ATTR {
    const uint32x4_t x = vreinterpretq_u32_u16(first), y = vreinterpretq_u32_u16(second);
    vst1q_u16(to, vreinterpretq_u16_u32(vzip1q_u32(x, y)));
    vst1q_u16(to + 8, vreinterpretq_u16_u32(vzip2q_u32(x, y)));
  };
  put(vzip1q_u16(a, b), vzip1q_u16(c, d), out);
  put(vzip2q_u16(a, b), vzip2q_u16(c, d), out + 16);
}
// Packs values as groups of 8 features; the keys of a block are the depth of the product. Keys past the last give 0.
// `row`(j): where the values of key j begin, [features] f32 or bf16; null past the last.
template <class Row> HWY_INLINE void pack_values_16(const Row& row, std::int64_t keys, std::int64_t features,
                                                    std::int64_t planes, std::int64_t plane, std::uint16_t* out) {
  for (std::int64_t j = 0; j < keys; j += 4) {
    const auto *r0 = row(j), *r1 = row(j + 1), *r2 = row(j + 2), *r3 = row(j + 3);
    using T = std::remove_cvref_t<decltype(*r0)>;
    std::uint16_t* to = out + j * kMatrixRows;
    for (std::int64_t f = 0; f < features; f += 8, to += kKeyBlock * kMatrixRows) {
      uint16x8_t high[4], low[4];
      const auto read = [&](const T* from, int i) HWY_ATTR {
        high[i] = low[i] = vdupq_n_u16(0);
        if (from == nullptr) return;
        if constexpr (std::is_same_v<T, float>) {
          split_eight(from + f, high[i], low[i]);
        } else {
          high[i] = vld1q_u16(from + f);
        }
      };
      read(r0, 0), read(r1, 1), read(r2, 2), read(r3, 3);
      transpose_4x8(high[0], high[1], high[2], high[3], to);
      if (planes > 1) transpose_4x8(low[0], low[1], low[2], low[3], to + plane);
    }
  }
}

// The first four columns of a panel of sums, each times its factor, as rows: out[column · stride + feature].
HWY_INLINE void columns_as_rows(const float* HWY_RESTRICT sums, std::int64_t /*width*/, const float* HWY_RESTRICT by,
                                std::int64_t features, float* HWY_RESTRICT out, std::int64_t stride) {
  const float32x4_t factor = vld1q_f32(by);
  std::int64_t f = 0;
  for (; f + 4 <= features; f += 4, sums += 4 * kColumns) {
    const float32x4_t a = vmulq_f32(vld1q_f32(sums), factor), b = vmulq_f32(vld1q_f32(sums + kColumns), factor);
    const float32x4_t c = vmulq_f32(vld1q_f32(sums + 2 * kColumns), factor),
                      d = vmulq_f32(vld1q_f32(sums + 3 * kColumns), factor);
    const float32x4_t ac = vzip1q_f32(a, c), bd = vzip1q_f32(b, d), ac_last = vzip2q_f32(a, c),
                      bd_last = vzip2q_f32(b, d);
    vst1q_f32(out + f, vzip1q_f32(ac, bd));
    vst1q_f32(out + stride + f, vzip2q_f32(ac, bd));
    vst1q_f32(out + 2 * stride + f, vzip1q_f32(ac_last, bd_last));
    vst1q_f32(out + 3 * stride + f, vzip2q_f32(ac_last, bd_last));
  }
  for (; f < features; ++f, sums += kColumns) {
    for (std::int64_t i = 0; i < 4; ++i) out[i * stride + f] = sums[i] * by[i];
  }
}

// 2^x for x ≤ 0, relative error below 3.5e-6: exp2_of_negative with two fewer steps.
HWY_INLINE float32x4_t weight_of_score(float32x4_t x) {
  x = vmaxq_f32(x, vdupq_n_f32(-127.0f));
  const float32x4_t magic = vdupq_n_f32(12582912.0f + 127.0f), shifted = vaddq_f32(x, magic);
  const float32x4_t f = vsubq_f32(x, vsubq_f32(shifted, magic));
  float32x4_t p = vfmaq_f32(vdupq_n_f32(5.59391364e-2f), f, vdupq_n_f32(9.60658394e-3f));
  p = vfmaq_f32(vdupq_n_f32(0.240237212f), f, p);
  p = vfmaq_f32(vdupq_n_f32(0.693119298f), f, p);
  p = vfmaq_f32(vdupq_n_f32(1.0f), f, p);
  return vmulq_f32(p, vreinterpretq_f32_u32(vshlq_n_u32(vreinterpretq_u32_f32(shifted), 23)));
}
// Four weights of each of two keys, in two planes. The upper one is truncated, not rounded, which takes one
// instruction for eight.
HWY_INLINE uint16x8_t upper_plane(float32x4_t x, float32x4_t y) {
  return vuzp2q_u16(vreinterpretq_u16_f32(x), vreinterpretq_u16_f32(y));
}
HWY_INLINE uint16x8_t lower_plane(float32x4_t x, float32x4_t y) {
  const uint32x4_t top = vdupq_n_u32(0xFFFF0000U);
  const float32x4_t x_top = vreinterpretq_f32_u32(vandq_u32(vreinterpretq_u32_f32(x), top));
  const float32x4_t y_top = vreinterpretq_f32_u32(vandq_u32(vreinterpretq_u32_f32(y), top));
  return to_bf16(vsubq_f32(x, x_top), vsubq_f32(y, y_top));
}
// Keys 0 and 2, and 1 and 3, of four columns: those columns of the operand.
HWY_INLINE void place_weights(uint16x8_t even, uint16x8_t odd, std::uint16_t* out) {
  const uint32x4_t x = vreinterpretq_u32_u16(vzip1q_u16(even, odd)), y = vreinterpretq_u32_u16(vzip2q_u16(even, odd));
  vst1q_u16(out, vreinterpretq_u16_u32(vzip1q_u32(x, y)));
  vst1q_u16(out + 8, vreinterpretq_u16_u32(vzip2q_u32(x, y)));
}
// P = 2^(factor · S − base) in two planes, as the columns of a panel, for keys `begin` to `end`, both multiples of 4,
// and its sums. Two passes keep more of the processor's pipes busy than one, which would have registers for only six
// weights at a time.
inline void weigh_16(float* HWY_RESTRICT scores, float factor, const float* HWY_RESTRICT base, std::int64_t begin,
                     std::int64_t end, std::uint16_t* HWY_RESTRICT out, std::int64_t plane,
                     float* HWY_RESTRICT row_sum) {
  const float32x4_t times = vdupq_n_f32(factor);
  const float32x4_t b0 = vnegq_f32(vld1q_f32(base)), b1 = vnegq_f32(vld1q_f32(base + 4)),
                    b2 = vnegq_f32(vld1q_f32(base + 8));
  float32x4_t t0 = vdupq_n_f32(0), t1 = t0, t2 = t0;
  float* HWY_RESTRICT s = scores + begin * kColumns;
  for (std::int64_t j = begin; j < end; j += 2, s += 2 * kColumns) {
    const float32x4_t p0 = weight_of_score(vfmaq_f32(b0, vld1q_f32(s), times));
    const float32x4_t p1 = weight_of_score(vfmaq_f32(b1, vld1q_f32(s + 4), times));
    const float32x4_t p2 = weight_of_score(vfmaq_f32(b2, vld1q_f32(s + 8), times));
    const float32x4_t p3 = weight_of_score(vfmaq_f32(b0, vld1q_f32(s + 12), times));
    const float32x4_t p4 = weight_of_score(vfmaq_f32(b1, vld1q_f32(s + 16), times));
    const float32x4_t p5 = weight_of_score(vfmaq_f32(b2, vld1q_f32(s + 20), times));
    vst1q_f32(s, p0), vst1q_f32(s + 4, p1), vst1q_f32(s + 8, p2);
    vst1q_f32(s + 12, p3), vst1q_f32(s + 16, p4), vst1q_f32(s + 20, p5);
    t0 = vaddq_f32(t0, vaddq_f32(p0, p3)), t1 = vaddq_f32(t1, vaddq_f32(p1, p4)),
    t2 = vaddq_f32(t2, vaddq_f32(p2, p5));
  }
  vst1q_f32(row_sum, vaddq_f32(vld1q_f32(row_sum), t0));
  vst1q_f32(row_sum + 4, vaddq_f32(vld1q_f32(row_sum + 4), t1));
  vst1q_f32(row_sum + 8, vaddq_f32(vld1q_f32(row_sum + 8), t2));
  for (std::int64_t j = begin; j < end; j += 4) {
    for (std::int64_t c = 0; c < kColumns; c += 4) {
      const float* HWY_RESTRICT const from = scores + j * kColumns + c;
      std::uint16_t* HWY_RESTRICT const to = out + j * kColumns + 4 * c;
      const float32x4_t p0 = vld1q_f32(from), p1 = vld1q_f32(from + kColumns), p2 = vld1q_f32(from + 2 * kColumns),
                        p3 = vld1q_f32(from + 3 * kColumns);
      place_weights(upper_plane(p0, p2), upper_plane(p1, p3), to);
      place_weights(lower_plane(p0, p2), lower_plane(p1, p3), to + plane);
    }
  }
}

}  // namespace posenc::attend::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // POSENC_BFMMLA_INL_H
