// Sums of 16-bit values times the weights of a few queries, by the instructions of dot_16-inl.h.

#ifndef POSENC_DECODE_ADD_16_INL_H  // compiled for a single SIMD target
#define POSENC_DECODE_ADD_16_INL_H

#include <algorithm>
#include <type_traits>

#include "attention/cpu/decode/dot_16-inl.h"

HWY_BEFORE_NAMESPACE();
namespace posenc::attend::cpu::HWY_NAMESPACE {

// Eight weights, each as the sum of two 16-bit numbers.
struct Weights16 {
  uint16x8_t high, low;
};
HWY_INLINE Weights16 split_weights_bf16(const float* weights) {
  const float32x4_t x = vld1q_f32(weights), y = vld1q_f32(weights + 4);
  const uint16x8_t top = to_bf16(x, y);
  const float32x4_t x_top = vreinterpretq_f32_u32(vshll_n_u16(vget_low_u16(top), 16));
  const float32x4_t y_top = vreinterpretq_f32_u32(vshll_high_n_u16(top, 16));
  return {top, to_bf16(vsubq_f32(x, x_top), vsubq_f32(y, y_top))};
}
// Weights of at most 1, times 2^15: within 2^-22 of their value, or 2^-40.
constexpr float kWeightScale = 0x1p15f;
HWY_INLINE Weights16 split_weights_f16(const float* weights) {
  const float32x4_t x = vmulq_n_f32(vld1q_f32(weights), kWeightScale);
  const float32x4_t y = vmulq_n_f32(vld1q_f32(weights + 4), kWeightScale);
  const float16x4_t x_top = vcvt_f16_f32(x), y_top = vcvt_f16_f32(y);
  const float16x4_t x_low = vcvt_f16_f32(vsubq_f32(x, vcvt_f32_f16(x_top)));
  const float16x4_t y_low = vcvt_f16_f32(vsubq_f32(y, vcvt_f32_f16(y_top)));
  return {vreinterpretq_u16_f16(vcombine_f16(x_top, y_top)), vreinterpretq_u16_f16(vcombine_f16(x_low, y_low))};
}

#define POSENC_ZERO_SUMS(i) float32x4_t a##i = vdupq_n_f32(0), b##i = a##i;
#define POSENC_ZIP(i)                                                                    \
  const uint16x8_t one##i = vld1q_u16(v0 + 8 * (i)), other##i = vld1q_u16(v1 + 8 * (i)); \
  const uint16x8_t lower##i = vzip1q_u16(one##i, other##i), upper##i = vzip2q_u16(one##i, other##i);
#define POSENC_ADD_HIGH(i) add_pair<kPair>(a##i, b##i, lower##i, upper##i, by.high);
#define POSENC_ADD_LOW(i) add_pair<kPair>(a##i, b##i, lower##i, upper##i, by.low);
#define POSENC_ADD_ALL(i) POSENC_ZIP(i) POSENC_ADD_HIGH(i) POSENC_ADD_LOW(i)
#define POSENC_STORE_SUMS(i)                                                                \
  vst1q_f32(sums + f + 8 * (i), vfmaq_n_f32(a##i, vld1q_f32(sums + f + 8 * (i)), rescale)); \
  vst1q_f32(sums + f + 8 * (i) + 4, vfmaq_n_f32(b##i, vld1q_f32(sums + f + 8 * (i) + 4), rescale));
// Two rows of bf16, interleaved, times one of four pairs of weights. Volatile, because in another order registers
// would not suffice.
template <int kPair>
HWY_INLINE void add_pair(float32x4_t& a, float32x4_t& b, uint16x8_t lower, uint16x8_t upper, uint16x8_t weights) {
  asm volatile(".arch_extension bf16\n\tbfdot %0.4s, %1.8h, %2.2h[%3]"
               : "+w"(a)
               : "w"(lower), "w"(weights), "i"(kPair));
  asm volatile(".arch_extension bf16\n\tbfdot %0.4s, %1.8h, %2.2h[%3]"
               : "+w"(b)
               : "w"(upper), "w"(weights), "i"(kPair));
}
#define POSENC_ROWS(pair, ...)                                                               \
  {                                                                                          \
    constexpr int kPair = pair;                                                              \
    const auto* const v0 = static_cast<const std::uint16_t*>(values[j + 2 * kPair]) + f;     \
    const auto* const v1 = static_cast<const std::uint16_t*>(values[j + 2 * kPair + 1]) + f; \
    __VA_ARGS__                                                                              \
  }
#define POSENC_ALL_ROWS(...) \
  POSENC_ROWS(0, __VA_ARGS__) POSENC_ROWS(1, __VA_ARGS__) POSENC_ROWS(2, __VA_ARGS__) POSENC_ROWS(3, __VA_ARGS__)
// sums[f] = sums[f] · rescale + Σ weight[j] · v[j, f]. Weights past the last, up to a multiple of eight, are set to
// 0; there is room for them (only the last step of a block is incomplete).
template <class Rows> HWY_INLINE void add_rows_16(float* weights, const Rows& values, std::int64_t count,
                                                  std::int64_t features, float rescale, float* HWY_RESTRICT sums) {
  std::fill(weights + count, weights + (count + 7) / 8 * 8, 0.0f);
  std::int64_t f = 0;
  for (; f + 64 <= features; f += 64) {
    POSENC_REPEAT_8(POSENC_ZERO_SUMS)
    for (std::int64_t j = 0; j < count; j += 8) {
      const Weights16 by = split_weights_bf16(weights + j);
      POSENC_ALL_ROWS(fetch_later<2 * kHeld>(v0, values.ahead_of(j + 2 * kPair));
                      fetch_later<2 * kHeld>(v1, values.ahead_of(j + 2 * kPair + 1));
                      POSENC_REPEAT_4(POSENC_ZIP) POSENC_REPEAT_4(POSENC_ADD_HIGH) POSENC_REPEAT_4(POSENC_ADD_LOW)
                          POSENC_REPEAT_4_MORE(POSENC_ZIP) POSENC_REPEAT_4_MORE(POSENC_ADD_HIGH)
                              POSENC_REPEAT_4_MORE(POSENC_ADD_LOW))
    }
    POSENC_REPEAT_8(POSENC_STORE_SUMS)
  }
  for (; f < features; f += 8) {
    POSENC_ZERO_SUMS(0)
    for (std::int64_t j = 0; j < count; j += 8) {
      const Weights16 by = split_weights_bf16(weights + j);
      POSENC_ALL_ROWS(POSENC_ADD_ALL(0))
    }
    POSENC_STORE_SUMS(0)
  }
}
#undef POSENC_ROWS
#undef POSENC_ALL_ROWS
#undef POSENC_ZIP
#undef POSENC_ADD_HIGH
#undef POSENC_ADD_LOW
#undef POSENC_ADD_ALL
#undef POSENC_STORE_SUMS

#define POSENC_LOAD_VALUES(i) const uint16x8_t x##i = vld1q_u16(row + 8 * (i));
#define POSENC_ADD_HIGH(i) multiply_f16_by<kLane>(a##i, b##i, x##i, by.high);
#define POSENC_ADD_LOW(i) multiply_f16_by<kLane>(a##i, b##i, x##i, by.low);
#define POSENC_STORE_SUMS(i)                                                                           \
  vst1q_f32(sums + f + 8 * (i),                                                                        \
            vfmaq_n_f32(vmulq_n_f32(a##i, 1 / kWeightScale), vld1q_f32(sums + f + 8 * (i)), rescale)); \
  vst1q_f32(sums + f + 8 * (i) + 4,                                                                    \
            vfmaq_n_f32(vmulq_n_f32(b##i, 1 / kWeightScale), vld1q_f32(sums + f + 8 * (i) + 4), rescale));
// The same for f16 values, 64 features at a time. All 16 sums receive the upper parts before any receives a lower
// one, so that none waits for itself. Converting values to f32 instead takes 20 cycles per row on a Neoverse V1, at
// one conversion per cycle.
template <class Rows> HWY_INLINE void add_rows_f16(float* weights, const Rows& values, std::int64_t count,
                                                   std::int64_t features, float rescale, float* HWY_RESTRICT sums) {
  std::fill(weights + count, weights + (count + 7) / 8 * 8, 0.0f);
  for (std::int64_t f = 0; f < features; f += 64) {
    POSENC_REPEAT_8(POSENC_ZERO_SUMS)
    for (std::int64_t j = 0; j < count; j += 8) {
      const Weights16 by = split_weights_f16(weights + j);
      const auto add = [&]<int kLane>(std::integral_constant<int, kLane>) HWY_ATTR {
        const auto* const row = static_cast<const std::uint16_t*>(values[j + kLane]) + f;
        fetch_later<2 * kHeld>(row, values.ahead_of(j + kLane));
        fetch_soon(row, values.soon());
        POSENC_REPEAT_8(POSENC_LOAD_VALUES)
        POSENC_REPEAT_8(POSENC_ADD_HIGH)
        POSENC_REPEAT_8(POSENC_ADD_LOW)
      };
      add(std::integral_constant<int, 0>()), add(std::integral_constant<int, 1>());
      add(std::integral_constant<int, 2>()), add(std::integral_constant<int, 3>());
      add(std::integral_constant<int, 4>()), add(std::integral_constant<int, 5>());
      add(std::integral_constant<int, 6>()), add(std::integral_constant<int, 7>());
    }
    POSENC_REPEAT_8(POSENC_STORE_SUMS)
  }
}
#undef POSENC_ZERO_SUMS
#undef POSENC_LOAD_VALUES
#undef POSENC_ADD_HIGH
#undef POSENC_ADD_LOW
#undef POSENC_STORE_SUMS

// The weights of four queries, [4, stride], for four keys at a time: the upper parts of queries 0 and 1, then of 2
// and 3, then the remainders. Past `count`, zeros.
HWY_INLINE void pack_weights_4(float* weights, std::int64_t stride, std::int64_t count, std::uint16_t* out) {
  const std::int64_t room = (count + 3) / 4 * 4;
  for (std::int64_t r = 0; r < 4; ++r) std::fill(weights + r * stride + count, weights + r * stride + room, 0.0f);
  for (std::int64_t j = 0; j < room; j += 4, out += 32) {
    const float32x4_t p0 = vld1q_f32(weights + j), p1 = vld1q_f32(weights + stride + j),
                      p2 = vld1q_f32(weights + 2 * stride + j), p3 = vld1q_f32(weights + 3 * stride + j);
    vst1q_u16(out, upper_plane(p0, p1));
    vst1q_u16(out + 8, upper_plane(p2, p3));
    vst1q_u16(out + 16, lower_plane(p0, p1));
    vst1q_u16(out + 24, lower_plane(p2, p3));
  }
}
// The same sums for four queries, [4, features], with weights as packed by pack_weights_4: every value is loaded once
// for all.
// `is_first`: as for add_rows_4.
HWY_INLINE void add_rows_16_4(const std::uint16_t* weights, const StepRows& values, std::int64_t count,
                              std::int64_t features, const float* rescale, bool is_first, float* HWY_RESTRICT sums) {
  for (std::int64_t f = 0; f < features; f += 8) {
    const float32x4_t zero = vdupq_n_f32(0);
    float32x4_t a0 = zero, a1 = zero, a2 = zero, a3 = zero, b0 = zero, b1 = zero, b2 = zero, b3 = zero;
    const std::uint16_t* w = weights;
    for (std::int64_t j = 0; j < count; j += 4, w += 32) {
      if (is_first && f == 0 && values.ahead > 0) {
        for (std::int64_t i = j; i < j + 4; ++i) fetch_row_later(values[i], 2 * features, values.ahead_of(i));
      }
      const uint16x8_t r0 = load_16(values[j], f), r1 = load_16(values[j + 1], f), r2 = load_16(values[j + 2], f),
                       r3 = load_16(values[j + 3], f);
      const uint32x4_t x = vreinterpretq_u32_u16(vzip1q_u16(r0, r1)), y = vreinterpretq_u32_u16(vzip1q_u16(r2, r3));
      const uint32x4_t z = vreinterpretq_u32_u16(vzip2q_u16(r0, r1)), t = vreinterpretq_u32_u16(vzip2q_u16(r2, r3));
      const uint16x8_t v0 = vreinterpretq_u16_u32(vzip1q_u32(x, y)), v1 = vreinterpretq_u16_u32(vzip2q_u32(x, y));
      const uint16x8_t v2 = vreinterpretq_u16_u32(vzip1q_u32(z, t)), v3 = vreinterpretq_u16_u32(vzip2q_u32(z, t));
      const auto add = [&](uint16x8_t first, uint16x8_t second) HWY_ATTR {
        multiply_2x4x2(a0, first, v0), multiply_2x4x2(b0, second, v0), multiply_2x4x2(a1, first, v1);
        multiply_2x4x2(b1, second, v1), multiply_2x4x2(a2, first, v2), multiply_2x4x2(b2, second, v2);
        multiply_2x4x2(a3, first, v3), multiply_2x4x2(b3, second, v3);
      };
      add(vld1q_u16(w), vld1q_u16(w + 8));
      add(vld1q_u16(w + 16), vld1q_u16(w + 24));
    }
    const auto finish = [&](std::int64_t r, float32x4_t low, float32x4_t high, std::int64_t at) HWY_ATTR {
      const float64x2_t x = vreinterpretq_f64_f32(low), y = vreinterpretq_f64_f32(high);
      float* const to = sums + r * features + f + at;
      vst1q_f32(to, vfmaq_n_f32(vreinterpretq_f32_f64(vzip1q_f64(x, y)), vld1q_f32(to), rescale[r]));
      vst1q_f32(to + features,
                vfmaq_n_f32(vreinterpretq_f32_f64(vzip2q_f64(x, y)), vld1q_f32(to + features), rescale[r + 1]));
    };
    finish(0, a0, a1, 0), finish(0, a2, a3, 4), finish(2, b0, b1, 0), finish(2, b2, b3, 4);
  }
}

}  // namespace posenc::attend::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // POSENC_DECODE_ADD_16_INL_H
