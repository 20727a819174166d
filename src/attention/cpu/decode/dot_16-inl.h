// Scores of a few queries and 16-bit keys, read in place, by the instructions that an arm64 processor has for them: dot
// products of bf16 (BFDOT), of two rows by two if at least four queries share a key (BFMMLA), and multiply-adds of f16 to f32
// (FMLAL). Products are exact and sums are f32. An f32 query is multiplied in f32.
//
// Error: weights are used as the sum of two bf16, within 2^-17 of their value, and BFDOT rounds sums to odd, within
// one ulp of f32, where a fused multiply-add is within half an ulp. Subnormal numbers count as 0.

#ifndef POSENC_DECODE_DOT_16_INL_H  // compiled for a single SIMD target
#define POSENC_DECODE_DOT_16_INL_H

#include <algorithm>
#include <cmath>

#include "attention/cpu/bf16-inl.h"
#include "attention/cpu/decode/dot-inl.h"
#include "kernels/cpu/machine.h"

HWY_BEFORE_NAMESPACE();
namespace posenc::attend::cpu::HWY_NAMESPACE {

inline bool has_bf16_dots() { return kernels::cpu::machine_rounds_to_bf16(); }
inline bool has_f16_products() { return kernels::cpu::machine_multiplies_f16_long(); }

HWY_INLINE uint16x8_t load_16(const void* row, std::int64_t f) {
  return vld1q_u16(static_cast<const std::uint16_t*>(row) + f);
}
HWY_INLINE float32x4_t dot_16(float32x4_t sum, uint16x8_t a, uint16x8_t b) {
  asm(".arch_extension bf16\n\tbfdot %0.4s, %1.8h, %2.8h" : "+w"(sum) : "w"(a), "w"(b));
  return sum;
}
// The sums of four vectors, as one vector.
HWY_INLINE float32x4_t sums_of(float32x4_t a, float32x4_t b, float32x4_t c, float32x4_t d) {
  return vpaddq_f32(vpaddq_f32(a, b), vpaddq_f32(c, d));
}

// One query in bf16 and four keys.
HWY_INLINE void dot_16_1x4(const std::uint16_t* q, const StepRows& k, std::int64_t j, std::int64_t features,
                           float factor, float* out) {
  float32x4_t s0 = vdupq_n_f32(0), s1 = s0, s2 = s0, s3 = s0;
  for (std::int64_t f = 0; f < features; f += 8) {
    const uint16x8_t x = load_16(q, f);
    s0 = dot_16(s0, x, load_16(k[j], f));
    s1 = dot_16(s1, x, load_16(k[j + 1], f));
    s2 = dot_16(s2, x, load_16(k[j + 2], f));
    s3 = dot_16(s3, x, load_16(k[j + 3], f));
  }
  vst1q_f32(out, vmulq_n_f32(sums_of(s0, s1, s2, s3), factor));
}
// Two rows, interleaved by four features, as BFMMLA takes them: out [features / 4, 2, 4].
HWY_INLINE void pair_rows(const std::uint16_t* one, const std::uint16_t* other, std::int64_t features,
                          std::uint16_t* out) {
  for (std::int64_t f = 0; f < features; f += 4, out += 8) {
    vst1_u16(out, vld1_u16(one + f));
    vst1_u16(out + 4, vld1_u16(other + f));
  }
}
// The same for eight features of two keys.
HWY_INLINE uint16x8_t first_four(uint16x8_t a, uint16x8_t b) {
  return vreinterpretq_u16_u64(vzip1q_u64(vreinterpretq_u64_u16(a), vreinterpretq_u64_u16(b)));
}
HWY_INLINE uint16x8_t last_four(uint16x8_t a, uint16x8_t b) {
  return vreinterpretq_u16_u64(vzip2q_u64(vreinterpretq_u64_u16(a), vreinterpretq_u64_u16(b)));
}
// Four queries, two pairs of rows, and four keys: out [4, stride].
HWY_INLINE void dot_16_4x4(const std::uint16_t* q, const StepRows& k, std::int64_t j, std::int64_t features,
                           float factor, float* out, std::int64_t stride) {
  const float32x4_t zero = vdupq_n_f32(0);
  float32x4_t s00 = zero, s01 = zero, s10 = zero, s11 = zero, t00 = zero, t01 = zero, t10 = zero, t11 = zero;
  const std::uint16_t* const other = q + 2 * features;
  const void *const k0 = k[j], *const k1 = k[j + 1], *const k2 = k[j + 2], *const k3 = k[j + 3];
  for (std::int64_t f = 0; f < features; f += 8) {
    const uint16x8_t a = load_16(k0, f), b = load_16(k1, f), c = load_16(k2, f), d = load_16(k3, f);
    const uint16x8_t ab = first_four(a, b), cd = first_four(c, d), ab_last = last_four(a, b),
                     cd_last = last_four(c, d);
    const uint16x8_t x = load_16(q, 2 * f), y = load_16(other, 2 * f);
    multiply_2x4x2(s00, x, ab), multiply_2x4x2(s01, x, cd), multiply_2x4x2(s10, y, ab), multiply_2x4x2(s11, y, cd);
    const uint16x8_t x_last = load_16(q, 2 * f + 8), y_last = load_16(other, 2 * f + 8);
    multiply_2x4x2(t00, x_last, ab_last), multiply_2x4x2(t01, x_last, cd_last);
    multiply_2x4x2(t10, y_last, ab_last), multiply_2x4x2(t11, y_last, cd_last);
  }
  const auto finish = [&](float32x4_t ab, float32x4_t cd, float* to) HWY_ATTR {  // two queries, two keys each
    const float64x2_t x = vreinterpretq_f64_f32(ab), y = vreinterpretq_f64_f32(cd);
    vst1q_f32(to, vmulq_n_f32(vreinterpretq_f32_f64(vzip1q_f64(x, y)), factor));
    vst1q_f32(to + stride, vmulq_n_f32(vreinterpretq_f32_f64(vzip2q_f64(x, y)), factor));
  };
  finish(vaddq_f32(s00, t00), vaddq_f32(s01, t01), out);
  finish(vaddq_f32(s10, t10), vaddq_f32(s11, t11), out + 2 * stride);
}
// lower += a · b for the lower four of eight f16, upper += for the others. Converting to f32 first would take twice
// as long.
HWY_INLINE void multiply_f16(float32x4_t& lower, float32x4_t& upper, uint16x8_t a, uint16x8_t b) {
  asm(".arch armv8.2-a+crypto+fp16fml+bf16\n\tfmlal %0.4s, %1.4h, %2.4h" : "+w"(lower) : "w"(a), "w"(b));
  asm(".arch armv8.2-a+crypto+fp16fml+bf16\n\tfmlal2 %0.4s, %1.4h, %2.4h" : "+w"(upper) : "w"(a), "w"(b));
}
// The same with one of eight factors for all. Volatile, because in another order registers would not suffice.
template <int kLane>
HWY_INLINE void multiply_f16_by(float32x4_t& lower, float32x4_t& upper, uint16x8_t a, uint16x8_t factors) {
  asm volatile(".arch armv8.2-a+crypto+fp16fml+bf16\n\tfmlal %0.4s, %1.4h, %2.h[%3]"
               : "+w"(lower)
               : "w"(a), "x"(factors), "i"(kLane));
  asm volatile(".arch armv8.2-a+crypto+fp16fml+bf16\n\tfmlal2 %0.4s, %1.4h, %2.h[%3]"
               : "+w"(upper)
               : "w"(a), "x"(factors), "i"(kLane));
}
// One query in f16 and four keys in f16.
HWY_INLINE void dot_f16_1x4(const std::uint16_t* q, const StepRows& k, std::int64_t j, std::int64_t features,
                            float factor, bool is_more, float* out) {
  float32x4_t s0 = vdupq_n_f32(0), s1 = s0, s2 = s0, s3 = s0, t0 = s0, t1 = s0, t2 = s0, t3 = s0;
  for (std::int64_t f = 0; f < features; f += 8) {
    const uint16x8_t x = load_16(q, f);
    multiply_f16(s0, t0, x, load_16(k[j], f));
    multiply_f16(s1, t1, x, load_16(k[j + 1], f));
    multiply_f16(s2, t2, x, load_16(k[j + 2], f));
    multiply_f16(s3, t3, x, load_16(k[j + 3], f));
  }
  const float32x4_t sums = sums_of(vaddq_f32(s0, t0), vaddq_f32(s1, t1), vaddq_f32(s2, t2), vaddq_f32(s3, t3));
  const float32x4_t scores = vmulq_n_f32(sums, factor);
  vst1q_f32(out, is_more ? vaddq_f32(vld1q_f32(out), scores) : scores);
}
// Four queries and two keys: every key is loaded once for four products.
HWY_INLINE void dot_f16_4x2(const std::uint16_t* q, const StepRows& k, std::int64_t j, std::int64_t features,
                            float factor, bool is_more, float* out, std::int64_t stride) {
  const float32x4_t zero = vdupq_n_f32(0);
  float32x4_t a0 = zero, a1 = zero, a2 = zero, a3 = zero, b0 = zero, b1 = zero, b2 = zero, b3 = zero;
  float32x4_t c0 = zero, c1 = zero, c2 = zero, c3 = zero, d0 = zero, d1 = zero, d2 = zero, d3 = zero;
  const void *const k0 = k[j], *const k1 = k[j + 1];
  for (std::int64_t f = 0; f < features; f += 8) {
    const uint16x8_t x = load_16(k0, f), y = load_16(k1, f);
    const uint16x8_t q0 = load_16(q, f), q1 = load_16(q, features + f);
    const uint16x8_t q2 = load_16(q, 2 * features + f), q3 = load_16(q, 3 * features + f);
    multiply_f16(a0, c0, q0, x), multiply_f16(b0, d0, q0, y);
    multiply_f16(a1, c1, q1, x), multiply_f16(b1, d1, q1, y);
    multiply_f16(a2, c2, q2, x), multiply_f16(b2, d2, q2, y);
    multiply_f16(a3, c3, q3, x), multiply_f16(b3, d3, q3, y);
  }
  const float32x4_t first = sums_of(vaddq_f32(a0, c0), vaddq_f32(a1, c1), vaddq_f32(a2, c2), vaddq_f32(a3, c3));
  const float32x4_t second = sums_of(vaddq_f32(b0, d0), vaddq_f32(b1, d1), vaddq_f32(b2, d2), vaddq_f32(b3, d3));
  HWY_ALIGN float both[8];
  vst1q_f32(both, vmulq_n_f32(first, factor));
  vst1q_f32(both + 4, vmulq_n_f32(second, factor));
  for (std::int64_t r = 0; r < 4; ++r) {
    out[r * stride] = both[r] + (is_more ? out[r * stride] : 0.0f);
    out[r * stride + 1] = both[4 + r] + (is_more ? out[r * stride + 1] : 0.0f);
  }
}

#define POSENC_LOAD_QUERY(i) const uint16x8_t q##i = load_16(q, f + 8 * (i));
// One query, of which 64 features stay in registers while the keys are read: part[j, :] (+)= q · k[j], lane by lane.
template <bool kIsF16, bool kIsMore, class Rows>
HWY_INLINE void score_held_16(const std::uint16_t* q, const Rows& keys, std::int64_t count, std::int64_t f,
                              float* HWY_RESTRICT part) {
  POSENC_REPEAT_8(POSENC_LOAD_QUERY)
  for (std::int64_t j = 0; j < count; ++j, part += 4) {
    const auto* const k = static_cast<const std::uint16_t*>(keys[j]) + f;
    fetch_later<2 * kHeld>(k, keys.ahead_of(j));
    if constexpr (kIsF16) fetch_soon(k, keys.soon());
    float32x4_t even = kIsMore ? vld1q_f32(part) : vdupq_n_f32(0), odd = vdupq_n_f32(0);
    if constexpr (kIsF16) {
#define POSENC_MULTIPLY_KEY(i) multiply_f16(even, odd, q##i, vld1q_u16(k + 8 * (i)));
      POSENC_REPEAT_8(POSENC_MULTIPLY_KEY)
#undef POSENC_MULTIPLY_KEY
    } else {
#define POSENC_MULTIPLY_KEY(i) \
  ((i) % 2 == 0 ? even : odd) = dot_16((i) % 2 == 0 ? even : odd, q##i, vld1q_u16(k + 8 * (i)));
      POSENC_REPEAT_8(POSENC_MULTIPLY_KEY)
#undef POSENC_MULTIPLY_KEY
    }
    vst1q_f32(part, vaddq_f32(even, odd));
  }
}
#undef POSENC_LOAD_QUERY
// Scores of one query in one plane or, for f16, two; there is room for three more.
template <bool kIsF16> HWY_INLINE void score_one_16(const std::uint16_t* q, const std::uint16_t* lower,
                                                    const StepRows& keys, std::int64_t all, std::int64_t features,
                                                    float factor, float* scores) {
  HWY_ALIGN float part[4 * kDecodeStep];
  with_places(keys, all, [&](const auto& places) HWY_ATTR {
    for (std::int64_t first = 0; first < all; first += kDecodeStep) {
      const auto rows = places.from(first);
      const std::int64_t count = std::min(kDecodeStep, all - first);
      score_held_16<kIsF16, false>(q, rows, count, 0, part);
      for (std::int64_t f = kHeld; f < features; f += kHeld) score_held_16<kIsF16, true>(q, rows, count, f, part);
      for (std::int64_t f = 0; lower != nullptr && f < features; f += kHeld) {
        score_held_16<kIsF16, true>(lower, rows, count, f, part);
      }
      for (std::int64_t j = 0; j < count; j += 4) {
        const float* const at = part + 4 * j;
        const float32x4_t sums = sums_of(vld1q_f32(at), vld1q_f32(at + 4), vld1q_f32(at + 8), vld1q_f32(at + 12));
        vst1q_f32(scores + first + j, vmulq_n_f32(sums, factor));
      }
    }
  });
}
// One f32 query, [even features, odd features] of every eight, and four keys.
HWY_INLINE float32x4_t even_16(uint16x8_t x) {
  return vreinterpretq_f32_u32(vshlq_n_u32(vreinterpretq_u32_u16(x), 16));
}
HWY_INLINE float32x4_t odd_16(uint16x8_t x) {
  return vreinterpretq_f32_u32(vandq_u32(vreinterpretq_u32_u16(x), vdupq_n_u32(0xFFFF0000U)));
}
HWY_INLINE void dot_wide_1x4(const float* q, const StepRows& k, std::int64_t j, std::int64_t features, float* out) {
  const void *const k0 = k[j], *const k1 = k[j + 1], *const k2 = k[j + 2], *const k3 = k[j + 3];
  float32x4_t s0 = vdupq_n_f32(0), s1 = s0, s2 = s0, s3 = s0, t0 = s0, t1 = s0, t2 = s0, t3 = s0;
  for (std::int64_t f = 0; f < features; f += 8) {
    const float32x4_t even = vld1q_f32(q + f), odd = vld1q_f32(q + f + 4);
    const uint16x8_t a = load_16(k0, f), b = load_16(k1, f), c = load_16(k2, f), d = load_16(k3, f);
    s0 = vfmaq_f32(s0, even, even_16(a)), t0 = vfmaq_f32(t0, odd, odd_16(a));
    s1 = vfmaq_f32(s1, even, even_16(b)), t1 = vfmaq_f32(t1, odd, odd_16(b));
    s2 = vfmaq_f32(s2, even, even_16(c)), t2 = vfmaq_f32(t2, odd, odd_16(c));
    s3 = vfmaq_f32(s3, even, even_16(d)), t3 = vfmaq_f32(t3, odd, odd_16(d));
  }
  vst1q_f32(out, sums_of(vaddq_f32(s0, t0), vaddq_f32(s1, t1), vaddq_f32(s2, t2), vaddq_f32(s3, t3)));
}

// How queries are multiplied with 16-bit keys: as they are, if all have the keys' type, or for f16 as the sum of two
// planes, and the factor multiplies the scores; or with bf16 keys in f32, where the queries include the factor and
// keep even and odd features apart.
struct Queries16 {
  const std::uint16_t* narrow =
      nullptr;  // [rows, features]; for bf16, rows in fours as pairs, [2, features / 4, 2, 4]
  const std::uint16_t* lower = nullptr;  // the second plane; null: none
  bool is_f16 = false;
  const float* wide = nullptr;
  float factor = 1;
};

// Splits f32 into the sum of two f16, times a power of two that brings the largest near 2^15: within 2^-22 of each,
// or 2^-40 of the largest. Returns the inverse of the power; 0 if one is not finite, or all are very large or very
// small.
HWY_INLINE float split_f16(const float* x, std::size_t count, std::uint16_t* upper, std::uint16_t* lower) {
  float most = 0;
  for (std::size_t i = 0; i < count; ++i) {
    if (!(std::fabs(x[i]) <= 0x1p60f)) return 0.0f;
    most = std::max(most, std::fabs(x[i]));
  }
  int exponent = 0;
  if (most < 0x1p-60f) return 0.0f;
  std::frexp(most, &exponent);
  const float scale = std::ldexp(1.0f, 15 - exponent);
  for (std::size_t i = 0; i < count; i += 4) {
    const float32x4_t whole = vmulq_n_f32(vld1q_f32(x + i), scale);
    const float16x4_t top = vcvt_f16_f32(whole);
    vst1_u16(upper + i, vreinterpret_u16_f16(top));
    vst1_u16(lower + i, vreinterpret_u16_f16(vcvt_f16_f32(vsubq_f32(whole, vcvt_f32_f16(top)))));
  }
  return 1.0f / scale;
}

// scores[row, key] of `rows` queries and `count` keys; there is room for three more keys.
HWY_INLINE void score_rows_16(const Queries16& q, std::int64_t rows, const StepRows& keys, std::int64_t count,
                              std::int64_t features, float* scores, std::int64_t stride) {
  for (std::int64_t r = 0; r < rows;) {
    const bool takes_four = q.narrow != nullptr && r + 4 <= rows;
    const std::uint16_t* const row = q.narrow + (q.narrow != nullptr ? r * features : 0);
    const std::uint16_t* const lower = q.lower == nullptr ? nullptr : q.lower + r * features;
    float* const out = scores + r * stride;
    if (q.narrow != nullptr && !takes_four && features % kHeld == 0) {
      if (q.is_f16) {
        score_one_16<true>(row, lower, keys, count, features, q.factor, out);
      } else {
        score_one_16<false>(row, nullptr, keys, count, features, q.factor, out);
      }
      ++r;
      continue;
    }
    for (std::int64_t j = 0; j < count; j += 4) {
      if (takes_four && r == 0 && keys.ahead > 0) {
        for (std::int64_t i = j; i < j + 4; ++i) fetch_row_later(keys[i], 2 * features, keys.ahead_of(i));
      }
      if (takes_four && q.is_f16) {
        for (std::int64_t two = j; two < j + 4; two += 2) {
          dot_f16_4x2(row, keys, two, features, q.factor, false, out + two, stride);
          if (lower != nullptr) dot_f16_4x2(lower, keys, two, features, q.factor, true, out + two, stride);
        }
      } else if (takes_four) {
        dot_16_4x4(row, keys, j, features, q.factor, out + j, stride);
      } else if (q.is_f16) {
        dot_f16_1x4(row, keys, j, features, q.factor, false, out + j);
        if (lower != nullptr) dot_f16_1x4(lower, keys, j, features, q.factor, true, out + j);
      } else if (q.narrow != nullptr) {
        dot_16_1x4(row, keys, j, features, q.factor, out + j);
      } else {
        dot_wide_1x4(q.wide + r * features, keys, j, features, out + j);
      }
    }
    r += takes_four ? 4 : 1;
  }
}

}  // namespace posenc::attend::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // POSENC_DECODE_DOT_16_INL_H
