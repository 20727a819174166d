// Products of a few queries with rows of K and V in 16 bits where they lie in memory, by what an arm64 machine has for them:
// dot products of bf16 (BFDOT), multiply-adds of f16 to f32 (FMLAL); for code that is compiled once per SIMD target.
// Products are exact and sums are f32. A query that is f32 is multiplied in f32.
//
// Error: weights are used as the sum of two bf16, within 2^-17 of themselves, and BFDOT rounds sums to odd, within an ulp of
// f32 where a fused multiply-add is within half of one. Subnormal numbers count as 0.

#if defined(POSENC_DECODE_16_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef POSENC_DECODE_16_INL_H
#undef POSENC_DECODE_16_INL_H
#else
#define POSENC_DECODE_16_INL_H
#endif

#include <cstdint>
#include <cstring>

#include "attention/cpu/panel-inl.h"
#include "hwy/highway.h"
#include "kernels/cpu/convert-inl.h"
#include "kernels/cpu/machine.h"
#include "kernels/cpu/native_16-inl.h"

HWY_BEFORE_NAMESPACE();
namespace posenc::attend::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#if POSENC_NATIVE_16

inline bool has_bf16_dots() { return kernels::cpu::machine_rounds_to_bf16(); }
inline bool has_f16_products() { return kernels::cpu::machine_multiplies_f16_long(); }

HWY_INLINE uint16x8_t load_16(const void* row, std::int64_t f) {
  return vld1q_u16(static_cast<const std::uint16_t*>(row) + f);
}
HWY_INLINE float32x4_t dot_16(float32x4_t sum, uint16x8_t a, uint16x8_t b) {
  asm(".arch_extension bf16\n\tbfdot %0.4s, %1.8h, %2.8h" : "+w"(sum) : "w"(a), "w"(b));
  return sum;
}
// The sums of four vectors, as one.
HWY_INLINE float32x4_t sums_of(float32x4_t a, float32x4_t b, float32x4_t c, float32x4_t d) {
  return vpaddq_f32(vpaddq_f32(a, b), vpaddq_f32(c, d));
}

// One query in bf16 and four keys.
HWY_INLINE void dot_16_1x4(const std::uint16_t* q, const void* const* k, std::int64_t features, float factor,
                           float* out) {
  float32x4_t s0 = vdupq_n_f32(0), s1 = s0, s2 = s0, s3 = s0;
  for (std::int64_t f = 0; f < features; f += 8) {
    const uint16x8_t x = load_16(q, f);
    s0 = dot_16(s0, x, load_16(k[0], f));
    s1 = dot_16(s1, x, load_16(k[1], f));
    s2 = dot_16(s2, x, load_16(k[2], f));
    s3 = dot_16(s3, x, load_16(k[3], f));
  }
  vst1q_f32(out, vmulq_n_f32(sums_of(s0, s1, s2, s3), factor));
}
// Four queries and four keys: [4, features] and out [4, stride].
HWY_INLINE void dot_16_4x4(const std::uint16_t* q, const void* const* k, std::int64_t features, float factor,
                           float* out, std::int64_t stride) {
  const float32x4_t zero = vdupq_n_f32(0);
  float32x4_t s00 = zero, s01 = zero, s02 = zero, s03 = zero, s10 = zero, s11 = zero, s12 = zero, s13 = zero;
  float32x4_t s20 = zero, s21 = zero, s22 = zero, s23 = zero, s30 = zero, s31 = zero, s32 = zero, s33 = zero;
  for (std::int64_t f = 0; f < features; f += 8) {
    const uint16x8_t a = load_16(k[0], f), b = load_16(k[1], f), c = load_16(k[2], f), d = load_16(k[3], f);
    const uint16x8_t x0 = load_16(q, f), x1 = load_16(q, features + f);
    s00 = dot_16(s00, x0, a), s01 = dot_16(s01, x0, b), s02 = dot_16(s02, x0, c), s03 = dot_16(s03, x0, d);
    s10 = dot_16(s10, x1, a), s11 = dot_16(s11, x1, b), s12 = dot_16(s12, x1, c), s13 = dot_16(s13, x1, d);
    const uint16x8_t x2 = load_16(q, 2 * features + f), x3 = load_16(q, 3 * features + f);
    s20 = dot_16(s20, x2, a), s21 = dot_16(s21, x2, b), s22 = dot_16(s22, x2, c), s23 = dot_16(s23, x2, d);
    s30 = dot_16(s30, x3, a), s31 = dot_16(s31, x3, b), s32 = dot_16(s32, x3, c), s33 = dot_16(s33, x3, d);
  }
  vst1q_f32(out, vmulq_n_f32(sums_of(s00, s01, s02, s03), factor));
  vst1q_f32(out + stride, vmulq_n_f32(sums_of(s10, s11, s12, s13), factor));
  vst1q_f32(out + 2 * stride, vmulq_n_f32(sums_of(s20, s21, s22, s23), factor));
  vst1q_f32(out + 3 * stride, vmulq_n_f32(sums_of(s30, s31, s32, s33), factor));
}
// One query in f16 and four keys in f16; converting keys to f32 would take twice as long.
HWY_INLINE void dot_f16_1x4(const std::uint16_t* q, const void* const* k, std::int64_t features, float factor,
                            float* out) {
  float32x4_t s0 = vdupq_n_f32(0), s1 = s0, s2 = s0, s3 = s0, t0 = s0, t1 = s0, t2 = s0, t3 = s0;
  const auto add = [](float32x4_t& lower, float32x4_t& upper, uint16x8_t a, uint16x8_t b) HWY_ATTR {
    asm(".arch armv8.2-a+crypto+fp16fml+bf16\n\tfmlal %0.4s, %1.4h, %2.4h" : "+w"(lower) : "w"(a), "w"(b));
    asm(".arch armv8.2-a+crypto+fp16fml+bf16\n\tfmlal2 %0.4s, %1.4h, %2.4h" : "+w"(upper) : "w"(a), "w"(b));
  };
  for (std::int64_t f = 0; f < features; f += 8) {
    const uint16x8_t x = load_16(q, f);
    add(s0, t0, x, load_16(k[0], f));
    add(s1, t1, x, load_16(k[1], f));
    add(s2, t2, x, load_16(k[2], f));
    add(s3, t3, x, load_16(k[3], f));
  }
  const float32x4_t sums = sums_of(vaddq_f32(s0, t0), vaddq_f32(s1, t1), vaddq_f32(s2, t2), vaddq_f32(s3, t3));
  vst1q_f32(out, vmulq_n_f32(sums, factor));
}
// One query in f32, [even features, odd features] of each eight, and four keys.
HWY_INLINE float32x4_t even_16(uint16x8_t x) {
  return vreinterpretq_f32_u32(vshlq_n_u32(vreinterpretq_u32_u16(x), 16));
}
HWY_INLINE float32x4_t odd_16(uint16x8_t x) {
  return vreinterpretq_f32_u32(vandq_u32(vreinterpretq_u32_u16(x), vdupq_n_u32(0xFFFF0000U)));
}
HWY_INLINE void dot_wide_1x4(const float* q, const void* const* k, std::int64_t features, float* out) {
  float32x4_t s0 = vdupq_n_f32(0), s1 = s0, s2 = s0, s3 = s0, t0 = s0, t1 = s0, t2 = s0, t3 = s0;
  for (std::int64_t f = 0; f < features; f += 8) {
    const float32x4_t even = vld1q_f32(q + f), odd = vld1q_f32(q + f + 4);
    const uint16x8_t a = load_16(k[0], f), b = load_16(k[1], f), c = load_16(k[2], f), d = load_16(k[3], f);
    s0 = vfmaq_f32(s0, even, even_16(a)), t0 = vfmaq_f32(t0, odd, odd_16(a));
    s1 = vfmaq_f32(s1, even, even_16(b)), t1 = vfmaq_f32(t1, odd, odd_16(b));
    s2 = vfmaq_f32(s2, even, even_16(c)), t2 = vfmaq_f32(t2, odd, odd_16(c));
    s3 = vfmaq_f32(s3, even, even_16(d)), t3 = vfmaq_f32(t3, odd, odd_16(d));
  }
  vst1q_f32(out, sums_of(vaddq_f32(s0, t0), vaddq_f32(s1, t1), vaddq_f32(s2, t2), vaddq_f32(s3, t3)));
}

// How queries meet keys of 16 bits: as they are, where all have the keys' type, and the factor multiplies the scores; or
// keys of bf16 in f32, with the factor in the queries, even and odd features apart.
struct Queries16 {
  const std::uint16_t* narrow = nullptr;  // [rows, features]
  bool are_f16 = false;
  const float* wide = nullptr;
  float factor = 1;
};

// scores[row, key] of `rows` queries and `count` keys; both have room for three keys more.
HWY_INLINE void score_rows_16(const Queries16& q, std::int64_t rows, const void** keys, std::int64_t count,
                              std::int64_t features, float* scores, std::int64_t stride) {
  for (std::int64_t j = count; j % 4 != 0; ++j) keys[j] = keys[count - 1];
  for (std::int64_t r = 0; r < rows;) {
    const bool are_four = q.narrow != nullptr && !q.are_f16 && r + 4 <= rows;
    float* const out = scores + r * stride;
    for (std::int64_t j = 0; j < count; j += 4) {
      if (are_four) {
        dot_16_4x4(q.narrow + r * features, keys + j, features, q.factor, out + j, stride);
      } else if (q.are_f16) {
        dot_f16_1x4(q.narrow + r * features, keys + j, features, q.factor, out + j);
      } else if (q.narrow != nullptr) {
        dot_16_1x4(q.narrow + r * features, keys + j, features, q.factor, out + j);
      } else {
        dot_wide_1x4(q.wide + r * features, keys + j, features, out + j);
      }
    }
    r += are_four ? 4 : 1;
  }
}

constexpr std::int64_t kMostRoom = 1024;
// A row of weights as pairs of bf16 of neighbouring keys, in its place: the upper parts, then what they leave.
HWY_INLINE void split_weights(float* row, std::int64_t count, std::int64_t room) {
  HWY_ALIGN std::uint16_t high[kMostRoom], low[kMostRoom];
  for (std::int64_t j = count; j < room; ++j) row[j] = 0;
  for (std::int64_t j = 0; j < room; j += 4) {
    const hn::FixedTag<float, 4> d;
    const hn::FixedTag<std::uint16_t, 4> d16;
    namespace convert = posenc::kernels::cpu::HWY_NAMESPACE;
    const auto p = hn::LoadU(d, row + j);
    const auto top = convert::to_bf16_lanes(d, p);
    const auto rest = hn::Sub(p, hn::BitCast(d, hn::ShiftLeft<16>(top)));
    hn::StoreU(hn::TruncateTo(d16, top), d16, high + j);
    hn::StoreU(hn::TruncateTo(d16, convert::to_bf16_lanes(d, rest)), d16, low + j);
  }
  std::memcpy(row, high, static_cast<std::size_t>(room) * 2);
  std::memcpy(reinterpret_cast<std::byte*>(row) + room * 2, low, static_cast<std::size_t>(room) * 2);
}

#define POSENC_EIGHT(DO) DO(0) DO(1) DO(2) DO(3) DO(4) DO(5) DO(6) DO(7)
#define POSENC_START(i) float32x4_t a##i = vdupq_n_f32(0), b##i = a##i;
#define POSENC_STEP(i)                                                                                   \
  {                                                                                                      \
    const uint16x8_t one = load_16(values[j], f + 8 * (i)), other = load_16(values[j + 1], f + 8 * (i)); \
    const uint16x8_t lower = vzip1q_u16(one, other), upper = vzip2q_u16(one, other);                     \
    a##i = dot_16(dot_16(a##i, lower, high), lower, low);                                                \
    b##i = dot_16(dot_16(b##i, upper, high), upper, low);                                                \
  }
#define POSENC_END(i)                                                                       \
  vst1q_f32(sums + f + 8 * (i), vfmaq_n_f32(a##i, vld1q_f32(sums + f + 8 * (i)), rescale)); \
  vst1q_f32(sums + f + 8 * (i) + 4, vfmaq_n_f32(b##i, vld1q_f32(sums + f + 8 * (i) + 4), rescale));
// sums[f] = sums[f] · rescale + Σ weight[j] · v[j, f], with weights as split_weights leaves them.
HWY_INLINE void add_rows_16(const float* weights, std::int64_t room, const void* const* values, std::int64_t count,
                            std::int64_t features, float rescale, float* HWY_RESTRICT sums) {
  const auto* const pairs = reinterpret_cast<const std::uint32_t*>(weights);
  std::int64_t f = 0;
  for (; f + 64 <= features; f += 64) {
    POSENC_EIGHT(POSENC_START)
    for (std::int64_t j = 0; j < count; j += 2) {
      const uint16x8_t high = vreinterpretq_u16_u32(vdupq_n_u32(pairs[j / 2]));
      const uint16x8_t low = vreinterpretq_u16_u32(vdupq_n_u32(pairs[(room + j) / 2]));
      POSENC_EIGHT(POSENC_STEP)
    }
    POSENC_EIGHT(POSENC_END)
  }
  for (; f < features; f += 8) {
    POSENC_START(0)
    for (std::int64_t j = 0; j < count; j += 2) {
      const uint16x8_t high = vreinterpretq_u16_u32(vdupq_n_u32(pairs[j / 2]));
      const uint16x8_t low = vreinterpretq_u16_u32(vdupq_n_u32(pairs[(room + j) / 2]));
      POSENC_STEP(0)
    }
    POSENC_END(0)
  }
}
#undef POSENC_EIGHT
#undef POSENC_START
#undef POSENC_STEP
#undef POSENC_END

// The same for four queries, [4, stride] weights and [4, features] sums: every value is loaded once for all of them.
HWY_INLINE void add_rows_16_4(const float* weights, std::int64_t stride, std::int64_t room, const void* const* values,
                              std::int64_t count, std::int64_t features, const float* rescale,
                              float* HWY_RESTRICT sums) {
  const auto pairs_of = [&](std::int64_t r) { return reinterpret_cast<const std::uint32_t*>(weights + r * stride); };
  const std::uint32_t *w0 = pairs_of(0), *w1 = pairs_of(1), *w2 = pairs_of(2), *w3 = pairs_of(3);
  const std::int64_t behind = room / 2;
  for (std::int64_t f = 0; f < features; f += 8) {
    const float32x4_t zero = vdupq_n_f32(0);
    float32x4_t a0 = zero, a1 = zero, a2 = zero, a3 = zero, b0 = zero, b1 = zero, b2 = zero, b3 = zero;
    for (std::int64_t j = 0; j < count; j += 2) {
      const uint16x8_t one = load_16(values[j], f), other = load_16(values[j + 1], f);
      const uint16x8_t lower = vzip1q_u16(one, other), upper = vzip2q_u16(one, other);
      const auto add = [&](const std::uint32_t* w, float32x4_t& a, float32x4_t& b) HWY_ATTR {
        const uint16x8_t high = vreinterpretq_u16_u32(vdupq_n_u32(w[j / 2]));
        const uint16x8_t low = vreinterpretq_u16_u32(vdupq_n_u32(w[behind + j / 2]));
        a = dot_16(dot_16(a, lower, high), lower, low);
        b = dot_16(dot_16(b, upper, high), upper, low);
      };
      add(w0, a0, b0), add(w1, a1, b1), add(w2, a2, b2), add(w3, a3, b3);
    }
    const auto finish = [&](std::int64_t r, float32x4_t a, float32x4_t b) HWY_ATTR {
      float* const to = sums + r * features + f;
      vst1q_f32(to, vfmaq_n_f32(a, vld1q_f32(to), rescale[r]));
      vst1q_f32(to + 4, vfmaq_n_f32(b, vld1q_f32(to + 4), rescale[r]));
    };
    finish(0, a0, b0), finish(1, a1, b1), finish(2, a2, b2), finish(3, a3, b3);
  }
}

#endif  // POSENC_NATIVE_16

}  // namespace posenc::attend::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
