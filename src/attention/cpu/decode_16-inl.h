// Products of a few queries with rows of K and V in 16 bits where they lie in memory, by what an arm64 machine has for them:
// dot products of bf16 (BFDOT), of two rows with two where four queries meet a key (BFMMLA), multiply-adds of f16 to f32 (FMLAL);
// for code that is compiled once per SIMD target.
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

#include "attention/cpu/matrix_16-inl.h"
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
// Two rows side by side, four features of each by turns, as BFMMLA takes them: out [features / 4, 2, 4].
HWY_INLINE void pair_rows(const std::uint16_t* one, const std::uint16_t* other, std::int64_t features,
                          std::uint16_t* out) {
  for (std::int64_t f = 0; f < features; f += 4, out += 8) {
    vst1_u16(out, vld1_u16(one + f));
    vst1_u16(out + 4, vld1_u16(other + f));
  }
}
// The same of eight features of two keys.
HWY_INLINE uint16x8_t first_four(uint16x8_t a, uint16x8_t b) {
  return vreinterpretq_u16_u64(vzip1q_u64(vreinterpretq_u64_u16(a), vreinterpretq_u64_u16(b)));
}
HWY_INLINE uint16x8_t last_four(uint16x8_t a, uint16x8_t b) {
  return vreinterpretq_u16_u64(vzip2q_u64(vreinterpretq_u64_u16(a), vreinterpretq_u64_u16(b)));
}
// Four queries, two pairs of rows, and four keys: out [4, stride].
HWY_INLINE void dot_16_4x4(const std::uint16_t* q, const void* const* k, std::int64_t features, float factor,
                           float* out, std::int64_t stride) {
  const float32x4_t zero = vdupq_n_f32(0);
  float32x4_t s00 = zero, s01 = zero, s10 = zero, s11 = zero, t00 = zero, t01 = zero, t10 = zero, t11 = zero;
  const std::uint16_t* const other = q + 2 * features;
  for (std::int64_t f = 0; f < features; f += 8) {
    const uint16x8_t a = load_16(k[0], f), b = load_16(k[1], f), c = load_16(k[2], f), d = load_16(k[3], f);
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
  const std::uint16_t* narrow =
      nullptr;  // [rows, features]; of bf16, fours of rows as pairs, [2, features / 4, 2, 4]
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

// The weights of four queries, [4, stride], for four keys at a time: the upper parts of queries 0 and 1, of 2 and 3, then what
// they leave. Past `count`, zeros.
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
// The same sums for four queries, [4, features], with weights as pack_weights_4 leaves them: every value is loaded once for all.
// `values` has room for three rows past the last, whose weights are 0.
HWY_INLINE void add_rows_16_4(const std::uint16_t* weights, const void** values, std::int64_t count,
                              std::int64_t features, const float* rescale, float* HWY_RESTRICT sums) {
  for (std::int64_t j = count; j % 4 != 0; ++j) values[j] = values[count - 1];
  for (std::int64_t f = 0; f < features; f += 8) {
    const float32x4_t zero = vdupq_n_f32(0);
    float32x4_t a0 = zero, a1 = zero, a2 = zero, a3 = zero, b0 = zero, b1 = zero, b2 = zero, b3 = zero;
    const std::uint16_t* w = weights;
    for (std::int64_t j = 0; j < count; j += 4, w += 32) {
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

#endif  // POSENC_NATIVE_16

}  // namespace posenc::attend::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
