// Products of a few queries with f32, f16 or bf16 rows of K and V, read in place, for code that is compiled once per
// SIMD target. Each row has its own offset, so a paged cache needs no copy.

#if defined(POSENC_DECODE_ROWS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef POSENC_DECODE_ROWS_INL_H
#undef POSENC_DECODE_ROWS_INL_H
#else
#define POSENC_DECODE_ROWS_INL_H
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "attention/cpu/pack-inl.h"
#include "attention/cpu/panel-inl.h"
#include "hwy/highway.h"
#include "kernels/cpu/fetch.h"

HWY_BEFORE_NAMESPACE();
namespace posenc::attend::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// How many keys and values are processed at a time. A single row, which reads each only once, uses kLongStep:
// otherwise the work before and after a step takes a tenth of the time.
constexpr std::int64_t kDecodeStep = 64, kLongStep = 1024;

// A loop with many instructions per row has few rows in flight, so it prefetches rows into the L1 cache this many
// rows ahead. Two queries and 16,384 f16 keys then take 2.7 ms on a Neoverse V1 instead of 3.0; bf16, with half the
// instructions per key, gains nothing.
constexpr std::int64_t kRowsSoon = 8;

// Rows at a constant distance, in bytes.
struct EvenRows {
  const std::byte* first;
  std::int64_t step;
  std::int64_t ahead;
  HWY_INLINE std::int64_t soon() const { return kRowsSoon * step; }
  HWY_INLINE const void* operator[](std::int64_t j) const { return first + j * step; }
  HWY_INLINE EvenRows from(std::int64_t j) const { return {first + j * step, step, ahead}; }
};

// Where the rows of a step are. There are offsets for a multiple of eight rows: the last one is repeated.
struct StepRows {
  const std::byte* first;
  const std::int64_t* offsets;  // bytes
  std::int64_t ahead = 0;       // how far ahead to prefetch; 0: the rows are probably in a cache
  std::int64_t even_step = 0;   // the distance of the rows if constant, not counting the repeated last one; else 0
  HWY_INLINE std::int64_t soon() const { return kRowsSoon * even_step; }
  HWY_INLINE const void* operator[](std::int64_t j) const { return first + offsets[j]; }
  HWY_INLINE StepRows from(std::int64_t j) const { return {first, offsets + j, ahead, even_step}; }
};
// Calls visit(rows) for `count` rows, with EvenRows if possible: without a table of offsets, a loop has a quarter
// fewer instructions, and more rows are in flight.
template <class Visitor> HWY_INLINE void with_places(const StepRows& rows, std::int64_t count, const Visitor& visit) {
  if (rows.even_step > 0 && count % 8 == 0) {
    visit(EvenRows{rows.first + rows.offsets[0], rows.even_step, rows.ahead});
  } else {
    visit(rows);
  }
}

// Prefetches memory some way past a row: if rows are contiguous, that is a row of a later step. On arm64 into the
// L3 cache: a Neoverse V1 then reads 40 GB/s, but only 35 into the L2 cache, which has room for fewer lines in
// flight.
constexpr int kFetchTo = HWY_ARCH_ARM_A64 ? 1 : 2;
template <std::int64_t kBytes> HWY_INLINE void fetch_later(const void* row, std::int64_t ahead) {
  const auto at = reinterpret_cast<std::uintptr_t>(row) + static_cast<std::uintptr_t>(ahead);
  __builtin_prefetch(reinterpret_cast<const void*>(at), 0, kFetchTo);
  if constexpr (kBytes > 64) __builtin_prefetch(reinterpret_cast<const void*>(at + 64), 0, kFetchTo);
  if constexpr (kBytes > 128) __builtin_prefetch(reinterpret_cast<const void*>(at + 128), 0, kFetchTo);
  if constexpr (kBytes > 192) __builtin_prefetch(reinterpret_cast<const void*>(at + 192), 0, kFetchTo);
}

// Prefetches two lines, `soon` bytes past a row, into the L1 cache.
HWY_INLINE void fetch_soon(const void* row, std::int64_t soon) {
  const auto at = reinterpret_cast<std::uintptr_t>(row) + static_cast<std::uintptr_t>(soon);
  __builtin_prefetch(reinterpret_cast<const void*>(at), 0, 3);
  __builtin_prefetch(reinterpret_cast<const void*>(at + 64), 0, 3);
}

// fetch_later for the given number of bytes.
HWY_INLINE void fetch_row_later(const void* row, std::int64_t bytes, std::int64_t ahead) {
  for (std::int64_t at = 0; at < bytes; at += 64) fetch_later<64>(static_cast<const std::byte*>(row) + at, ahead);
}

HWY_INLINE float lane_sum(VF s) { return hn::GetLane(hn::SumOfLanes(DF(), s)); }
// The sums of four vectors.
HWY_INLINE void store_sums(VF a, VF b, VF c, VF d, float* out) {
#if HWY_TARGET == HWY_NEON
  vst1q_f32(out, vpaddq_f32(vpaddq_f32(a.raw, b.raw), vpaddq_f32(c.raw, d.raw)));
#else
  out[0] = lane_sum(a), out[1] = lane_sum(b), out[2] = lane_sum(c), out[3] = lane_sum(d);
#endif
}

#if HWY_TARGET == HWY_AVX3
// The sums of sixteen vectors: halves are added until one vector holds them all.
HWY_INLINE __m512 sums_of_16(const __m512* v) {
  __m512 fours[4];
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    const __m512 a = v[4 * i], b = v[4 * i + 1], c = v[4 * i + 2], d = v[4 * i + 3];
    const __m512d ab = _mm512_castps_pd(_mm512_add_ps(_mm512_unpacklo_ps(a, b), _mm512_unpackhi_ps(a, b)));
    const __m512d cd = _mm512_castps_pd(_mm512_add_ps(_mm512_unpacklo_ps(c, d), _mm512_unpackhi_ps(c, d)));
    fours[i] =
        _mm512_add_ps(_mm512_castpd_ps(_mm512_unpacklo_pd(ab, cd)), _mm512_castpd_ps(_mm512_unpackhi_pd(ab, cd)));
  }
  const auto add_blocks = [](__m512 x, __m512 y) HWY_ATTR {
    return _mm512_add_ps(_mm512_shuffle_f32x4(x, y, 0x88), _mm512_shuffle_f32x4(x, y, 0xDD));
  };
  return add_blocks(add_blocks(fours[0], fours[1]), add_blocks(fours[2], fours[3]));
}
HWY_INLINE void store_16_sums(const float* HWY_RESTRICT part, float* HWY_RESTRICT out) {
  __m512 v[16];
#pragma GCC unroll 16
  for (int i = 0; i < 16; ++i) v[i] = _mm512_load_ps(part + 16 * i);
  _mm512_storeu_ps(out, sums_of_16(v));
}
#endif

// The features of a query that stay in registers while the keys are read.
constexpr std::int64_t kHeld = 64;
constexpr std::int64_t kHeldLanes = static_cast<std::int64_t>(hn::MaxLanes(DF()));
constexpr bool kHoldsQueries = !HWY_HAVE_SCALABLE && (kHeldLanes >= 8 || (kHeldLanes == 4 && !POSENC_FEW_REGISTERS));

#define POSENC_EACH(DO) \
  DO(0) DO(1) DO(2) DO(3) DO(4) DO(5) DO(6) DO(7) DO(8) DO(9) DO(10) DO(11) DO(12) DO(13) DO(14) DO(15)
#define POSENC_START(i)  \
  VF q##i = hn::Zero(d); \
  if constexpr ((i)*kHeldLanes < kHeld) q##i = hn::LoadU(d, q + (i)*kHeldLanes);
#define POSENC_STEP(i)                                                    \
  if constexpr ((i)*kHeldLanes < kHeld) {                                 \
    VF& sum = (i) % 2 == 0 ? even : odd;                                  \
    sum = hn::MulAdd(q##i, convert::load_as(d, k + (i)*kHeldLanes), sum); \
  }
// part[j, :] = (kIsMore ? part[j, :] : 0) + q · k[j] for 64 features from f on, lane by lane.
template <class K, bool kIsMore, class Rows> HWY_INLINE void score_held(const float* HWY_RESTRICT q, const Rows& keys,
                                                                        std::int64_t count, std::int64_t f,
                                                                        float* HWY_RESTRICT part) {
  const DF d;
  POSENC_EACH(POSENC_START)
  for (std::int64_t j = 0; j < count; ++j, part += kHeldLanes) {
    const K* HWY_RESTRICT k = static_cast<const K*>(keys[j]) + f;
    fetch_later<kHeld* static_cast<std::int64_t>(sizeof(K))>(k, keys.ahead);
    VF even = kIsMore ? hn::LoadU(d, part) : hn::Zero(d), odd = hn::Zero(d);
    POSENC_EACH(POSENC_STEP)
    hn::StoreU(hn::Add(even, odd), d, part);
  }
}
#undef POSENC_EACH
#undef POSENC_START
#undef POSENC_STEP

// Scores of one query and at most kDecodeStep keys; there is room for three more.
template <class K, class Rows> HWY_INLINE void score_few(const float* HWY_RESTRICT q, const Rows& keys,
                                                         std::int64_t count, std::int64_t features,
                                                         float* HWY_RESTRICT scores) {
  const DF d;
  HWY_ALIGN float part[kDecodeStep * kHeldLanes];
  score_held<K, false>(q, keys, count, 0, part);
  for (std::int64_t f = kHeld; f < features; f += kHeld) score_held<K, true>(q + f, keys, count, f, part);
#if HWY_TARGET == HWY_AVX3
  if (count == kDecodeStep) {
    for (std::int64_t j = 0; j < count; j += kHeldLanes) store_16_sums(part + j * kHeldLanes, scores + j);
    return;
  }
#endif
  std::fill(part + count * kHeldLanes, part + (count + 3) / 4 * 4 * kHeldLanes, 0.0f);
  for (std::int64_t j = 0; j < count; j += 4) {
    const float* const at = part + j * kHeldLanes;
    store_sums(hn::LoadU(d, at), hn::LoadU(d, at + kHeldLanes), hn::LoadU(d, at + 2 * kHeldLanes),
               hn::LoadU(d, at + 3 * kHeldLanes), scores + j);
  }
}
// The same for any number of keys.
template <class K> HWY_INLINE void score_one(const float* HWY_RESTRICT q, const StepRows& keys, std::int64_t count,
                                             std::int64_t features, float* HWY_RESTRICT scores) {
  with_places(keys, count, [&](const auto& rows) HWY_ATTR {
    for (std::int64_t j = 0; j < count; j += kDecodeStep) {
      score_few<K>(q, rows.from(j), std::min(kDecodeStep, count - j), features, scores + j);
    }
  });
}

// One query and two keys: among two, four and eight keys at once, two come closest to the speed of memory.
template <class K> HWY_INLINE void dot_1x2(const float* HWY_RESTRICT q, const K* HWY_RESTRICT k0,
                                           const K* HWY_RESTRICT k1, std::int64_t features, float* HWY_RESTRICT out) {
  const DF d;
  VF s0 = hn::Zero(d), s1 = s0;
  std::int64_t f = 0;
  for (; f + lanes() <= features; f += lanes()) {
    const VF x = hn::LoadU(d, q + f);
    s0 = hn::MulAdd(x, convert::load_as(d, k0 + f), s0);
    s1 = hn::MulAdd(x, convert::load_as(d, k1 + f), s1);
  }
  out[0] = lane_sum(s0);
  out[1] = lane_sum(s1);
  for (; f < features; ++f) {
    out[0] += q[f] * element(k0[f]);
    out[1] += q[f] * element(k1[f]);
  }
}
template <class K>
HWY_INLINE float dot_1x1(const float* HWY_RESTRICT q, const K* HWY_RESTRICT k, std::int64_t features) {
  const DF d;
  VF s = hn::Zero(d);
  std::int64_t f = 0;
  for (; f + lanes() <= features; f += lanes()) s = hn::MulAdd(hn::LoadU(d, q + f), convert::load_as(d, k + f), s);
  float sum = lane_sum(s);
  for (; f < features; ++f) sum += q[f] * element(k[f]);
  return sum;
}

// Four queries (rows of q) and two keys: every key is loaded and widened once for four products.
template <class K> HWY_INLINE void dot_4x2(const float* HWY_RESTRICT q, const K* HWY_RESTRICT k0,
                                           const K* HWY_RESTRICT k1, std::int64_t features, float* HWY_RESTRICT out,
                                           std::int64_t out_stride) {
  const DF d;
  VF s00 = hn::Zero(d), s01 = s00, s10 = s00, s11 = s00, s20 = s00, s21 = s00, s30 = s00, s31 = s00;
  std::int64_t f = 0;
  for (; f + lanes() <= features; f += lanes()) {
    const VF a = convert::load_as(d, k0 + f), b = convert::load_as(d, k1 + f);
    const VF x0 = hn::LoadU(d, q + f), x1 = hn::LoadU(d, q + features + f);
    const VF x2 = hn::LoadU(d, q + 2 * features + f), x3 = hn::LoadU(d, q + 3 * features + f);
    s00 = hn::MulAdd(x0, a, s00);
    s01 = hn::MulAdd(x0, b, s01);
    s10 = hn::MulAdd(x1, a, s10);
    s11 = hn::MulAdd(x1, b, s11);
    s20 = hn::MulAdd(x2, a, s20);
    s21 = hn::MulAdd(x2, b, s21);
    s30 = hn::MulAdd(x3, a, s30);
    s31 = hn::MulAdd(x3, b, s31);
  }
  out[0] = lane_sum(s00);
  out[1] = lane_sum(s01);
  out[out_stride] = lane_sum(s10);
  out[out_stride + 1] = lane_sum(s11);
  out[2 * out_stride] = lane_sum(s20);
  out[2 * out_stride + 1] = lane_sum(s21);
  out[3 * out_stride] = lane_sum(s30);
  out[3 * out_stride + 1] = lane_sum(s31);
  for (; f < features; ++f) {
    for (std::int64_t r = 0; r < 4; ++r) {
      out[r * out_stride] += q[r * features + f] * element(k0[f]);
      out[r * out_stride + 1] += q[r * features + f] * element(k1[f]);
    }
  }
}

#if HWY_TARGET == HWY_AVX3
// Four queries and four keys, features a multiple of 16.
template <class K> HWY_INLINE void dot_4x4(const float* HWY_RESTRICT q, const StepRows& keys, std::int64_t j,
                                           std::int64_t features, float* HWY_RESTRICT out, std::int64_t out_stride) {
  const DF d;
  __m512 s[16];
#pragma GCC unroll 16
  for (int i = 0; i < 16; ++i) s[i] = _mm512_setzero_ps();
  for (std::int64_t f = 0; f < features; f += 16) {
#pragma GCC unroll 4
    for (int k = 0; k < 4; ++k) {
      const __m512 key = convert::load_as(d, static_cast<const K*>(keys[j + k]) + f).raw;
#pragma GCC unroll 4
      for (int r = 0; r < 4; ++r) {
        s[4 * r + k] = _mm512_fmadd_ps(_mm512_loadu_ps(q + r * features + f), key, s[4 * r + k]);
      }
    }
  }
  const __m512 sums = sums_of_16(s);
  _mm_storeu_ps(out, _mm512_castps512_ps128(sums));
  _mm_storeu_ps(out + out_stride, _mm512_extractf32x4_ps(sums, 1));
  _mm_storeu_ps(out + 2 * out_stride, _mm512_extractf32x4_ps(sums, 2));
  _mm_storeu_ps(out + 3 * out_stride, _mm512_extractf32x4_ps(sums, 3));
}
#endif

#if HWY_TARGET != HWY_AVX3 && !POSENC_FEW_REGISTERS
// Four queries and four keys, features a multiple of a vector: 16 sums, as many as four pipes with a latency of four
// cycles can hold.
template <class K> HWY_INLINE void dot_4x4(const float* HWY_RESTRICT q, const StepRows& keys, std::int64_t j,
                                           std::int64_t features, float* HWY_RESTRICT out, std::int64_t out_stride) {
  const DF d;
  const K* HWY_RESTRICT k0 = static_cast<const K*>(keys[j]);
  const K* HWY_RESTRICT k1 = static_cast<const K*>(keys[j + 1]);
  const K* HWY_RESTRICT k2 = static_cast<const K*>(keys[j + 2]);
  const K* HWY_RESTRICT k3 = static_cast<const K*>(keys[j + 3]);
  VF s00 = hn::Zero(d), s01 = s00, s02 = s00, s03 = s00, s10 = s00, s11 = s00, s12 = s00, s13 = s00;
  VF s20 = s00, s21 = s00, s22 = s00, s23 = s00, s30 = s00, s31 = s00, s32 = s00, s33 = s00;
  for (std::int64_t f = 0; f < features; f += lanes()) {
    const VF a = convert::load_as(d, k0 + f), b = convert::load_as(d, k1 + f);
    const VF c = convert::load_as(d, k2 + f), e = convert::load_as(d, k3 + f);
    const VF x0 = hn::LoadU(d, q + f), x1 = hn::LoadU(d, q + features + f);
    s00 = hn::MulAdd(x0, a, s00), s01 = hn::MulAdd(x0, b, s01), s02 = hn::MulAdd(x0, c, s02);
    s03 = hn::MulAdd(x0, e, s03), s10 = hn::MulAdd(x1, a, s10), s11 = hn::MulAdd(x1, b, s11);
    s12 = hn::MulAdd(x1, c, s12), s13 = hn::MulAdd(x1, e, s13);
    const VF x2 = hn::LoadU(d, q + 2 * features + f), x3 = hn::LoadU(d, q + 3 * features + f);
    s20 = hn::MulAdd(x2, a, s20), s21 = hn::MulAdd(x2, b, s21), s22 = hn::MulAdd(x2, c, s22);
    s23 = hn::MulAdd(x2, e, s23), s30 = hn::MulAdd(x3, a, s30), s31 = hn::MulAdd(x3, b, s31);
    s32 = hn::MulAdd(x3, c, s32), s33 = hn::MulAdd(x3, e, s33);
  }
  store_sums(s00, s01, s02, s03, out);
  store_sums(s10, s11, s12, s13, out + out_stride);
  store_sums(s20, s21, s22, s23, out + 2 * out_stride);
  store_sums(s30, s31, s32, s33, out + 3 * out_stride);
}
#endif

// scores[row, key] of `rows` queries and `count` keys.
template <class K> HWY_INLINE void score_rows(const float* q, std::int64_t rows, const StepRows& keys,
                                              std::int64_t count, std::int64_t features, float* scores,
                                              std::int64_t stride) {
  std::int64_t r = 0;
  for (; r + 4 <= rows; r += 4, q += 4 * features, scores += 4 * stride) {
    std::int64_t j = 0;
#if HWY_TARGET == HWY_AVX3
    for (; features % 16 == 0 && j + 4 <= count; j += 4) dot_4x4<K>(q, keys, j, features, scores + j, stride);
#elif !POSENC_FEW_REGISTERS
    for (; features % lanes() == 0 && j + 4 <= count; j += 4) {
      for (std::int64_t i = j; r == 0 && keys.ahead > 0 && i < j + 4; ++i) {
        fetch_row_later(keys[i], features * static_cast<std::int64_t>(sizeof(K)), keys.ahead);
      }
      dot_4x4<K>(q, keys, j, features, scores + j, stride);
    }
#endif
    for (; j + 2 <= count; j += 2) {
      if (r == 0 && keys.ahead > 0) {
        fetch_row_later(keys[j], features * static_cast<std::int64_t>(sizeof(K)), keys.ahead);
        fetch_row_later(keys[j + 1], features * static_cast<std::int64_t>(sizeof(K)), keys.ahead);
      }
      dot_4x2(q, static_cast<const K*>(keys[j]), static_cast<const K*>(keys[j + 1]), features, scores + j, stride);
    }
    for (; j < count; ++j) {
      for (std::int64_t one = 0; one < 4; ++one) {
        scores[one * stride + j] = dot_1x1(q + one * features, static_cast<const K*>(keys[j]), features);
      }
    }
  }
  for (; r < rows; ++r, q += features, scores += stride) {
    if (kHoldsQueries && features % kHeld == 0) {
      score_one<K>(q, keys, count, features, scores);
      continue;
    }
    std::int64_t j = 0;
    for (; j + 2 <= count; j += 2) {
      dot_1x2(q, static_cast<const K*>(keys[j]), static_cast<const K*>(keys[j + 1]), features, scores + j);
    }
    if (j < count) scores[j] = dot_1x1(q, static_cast<const K*>(keys[j]), features);
  }
}

#define POSENC_EACH(DO) \
  DO(0) DO(1) DO(2) DO(3) DO(4) DO(5) DO(6) DO(7) DO(8) DO(9) DO(10) DO(11) DO(12) DO(13) DO(14) DO(15)
#define POSENC_HALF(DO) DO(0) DO(1) DO(2) DO(3) DO(4) DO(5) DO(6) DO(7)
#define POSENC_START(i) VF s##i = hn::Zero(d);
#define POSENC_STEP(i) s##i = hn::MulAdd(w, convert::load_as(d, row + (i)*n), s##i);
#define POSENC_END(i) hn::StoreU(hn::MulAdd(hn::LoadU(d, sums + f + (i)*n), by, s##i), d, sums + f + (i)*n);
// sums[f] = sums[f] · rescale + Σ weight[j] · v[j, f]. Sixteen vectors at once: with fewer, rows of 64 features would
// be read twice, at less than half the speed.
template <class V, class Rows> HWY_INLINE void add_rows(const float* HWY_RESTRICT weights, const Rows& values,
                                                        std::int64_t count, std::int64_t features, float rescale,
                                                        float* HWY_RESTRICT sums) {
  const DF d;
  const std::int64_t n = lanes();
  const VF by = hn::Set(d, rescale);
  std::int64_t f = 0;
  for (; f + 16 * n <= features; f += 16 * n) {
    POSENC_EACH(POSENC_START)
    for (std::int64_t j = 0; j < count; ++j) {
      const V* HWY_RESTRICT row = static_cast<const V*>(values[j]) + f;
      const VF w = hn::Set(d, weights[j]);
      fetch_later<16 * kHeldLanes* static_cast<std::int64_t>(sizeof(V))>(row, values.ahead);
      POSENC_EACH(POSENC_STEP)
    }
    POSENC_EACH(POSENC_END)
  }
  // with long vectors, a row has fewer
  for (; f + 8 * n <= features; f += 8 * n) {
    POSENC_HALF(POSENC_START)
    for (std::int64_t j = 0; j < count; ++j) {
      const V* HWY_RESTRICT row = static_cast<const V*>(values[j]) + f;
      const VF w = hn::Set(d, weights[j]);
      fetch_later<8 * kHeldLanes* static_cast<std::int64_t>(sizeof(V))>(row, values.ahead);
      POSENC_HALF(POSENC_STEP)
    }
    POSENC_HALF(POSENC_END)
  }
  for (; f + 4 * n <= features; f += 4 * n) {
    POSENC_START(0) POSENC_START(1) POSENC_START(2) POSENC_START(3) for (std::int64_t j = 0; j < count; ++j) {
      const V* HWY_RESTRICT row = static_cast<const V*>(values[j]) + f;
      const VF w = hn::Set(d, weights[j]);
      fetch_later<4 * kHeldLanes* static_cast<std::int64_t>(sizeof(V))>(row, values.ahead);
      POSENC_STEP(0) POSENC_STEP(1) POSENC_STEP(2) POSENC_STEP(3)
    }
    POSENC_END(0) POSENC_END(1) POSENC_END(2) POSENC_END(3)
  }
  for (; f + n <= features; f += n) {
    VF s = hn::Zero(d);
    for (std::int64_t j = 0; j < count; ++j) {
      s = hn::MulAdd(hn::Set(d, weights[j]), convert::load_as(d, static_cast<const V*>(values[j]) + f), s);
    }
    hn::StoreU(hn::MulAdd(hn::LoadU(d, sums + f), by, s), d, sums + f);
  }
  for (; f < features; ++f) {
    float s = 0;
    for (std::int64_t j = 0; j < count; ++j) s += weights[j] * element(static_cast<const V*>(values[j])[f]);
    sums[f] = sums[f] * rescale + s;
  }
}
#undef POSENC_EACH
#undef POSENC_HALF
#undef POSENC_START
#undef POSENC_STEP
#undef POSENC_END

// The same for four queries, [4, stride] weights and [4, features] sums: every value is loaded once for all of them.
// Returns how many features were done; those past the last pair of vectors are left to add_rows. `is_first`: the
// first call with these values, which therefore prefetches later ones.
template <class V> HWY_INLINE std::int64_t add_rows_4(const float* HWY_RESTRICT weights, std::int64_t stride,
                                                      const StepRows& values, std::int64_t count,
                                                      std::int64_t features, const float* HWY_RESTRICT rescale,
                                                      bool is_first, float* HWY_RESTRICT sums) {
  const DF d;
  const std::int64_t n = lanes();
  std::int64_t f = 0;
#if HWY_TARGET == HWY_AVX3
  for (; f + 64 <= features; f += 64) {  // a whole row of 64 features, in 16 of 32 registers
    __m512 s[16];
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i) s[i] = _mm512_setzero_ps();
    for (std::int64_t j = 0; j < count; ++j) {
      const V* HWY_RESTRICT row = static_cast<const V*>(values[j]) + f;
      fetch_later<64 * static_cast<std::int64_t>(sizeof(V))>(row, values.ahead);
#pragma GCC unroll 4
      for (int i = 0; i < 4; ++i) {
        const __m512 x = convert::load_as(d, row + 16 * i).raw;
#pragma GCC unroll 4
        for (int r = 0; r < 4; ++r) {
          s[4 * r + i] = _mm512_fmadd_ps(_mm512_set1_ps(weights[r * stride + j]), x, s[4 * r + i]);
        }
      }
    }
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i) {
      float* const to = sums + i / 4 * features + f + i % 4 * 16;
      _mm512_storeu_ps(to, _mm512_fmadd_ps(_mm512_loadu_ps(to), _mm512_set1_ps(rescale[i / 4]), s[i]));
    }
  }
#endif
#if HWY_TARGET != HWY_AVX3 && !POSENC_FEW_REGISTERS
  for (; f + 4 * n <= features; f += 4 * n) {
    VF s00 = hn::Zero(d), s01 = s00, s02 = s00, s03 = s00, s10 = s00, s11 = s00, s12 = s00, s13 = s00;
    VF s20 = s00, s21 = s00, s22 = s00, s23 = s00, s30 = s00, s31 = s00, s32 = s00, s33 = s00;
    for (std::int64_t j = 0; j < count; ++j) {
      const V* HWY_RESTRICT row = static_cast<const V*>(values[j]) + f;
      if (is_first && f == 0 && values.ahead > 0) {
        fetch_row_later(row, features * static_cast<std::int64_t>(sizeof(V)), values.ahead);
      }
      const VF a = convert::load_as(d, row), b = convert::load_as(d, row + n);
      const VF c = convert::load_as(d, row + 2 * n), e = convert::load_as(d, row + 3 * n);
      const VF w0 = hn::Set(d, weights[j]), w1 = hn::Set(d, weights[stride + j]);
      s00 = hn::MulAdd(w0, a, s00), s01 = hn::MulAdd(w0, b, s01), s02 = hn::MulAdd(w0, c, s02);
      s03 = hn::MulAdd(w0, e, s03), s10 = hn::MulAdd(w1, a, s10), s11 = hn::MulAdd(w1, b, s11);
      s12 = hn::MulAdd(w1, c, s12), s13 = hn::MulAdd(w1, e, s13);
      const VF w2 = hn::Set(d, weights[2 * stride + j]), w3 = hn::Set(d, weights[3 * stride + j]);
      s20 = hn::MulAdd(w2, a, s20), s21 = hn::MulAdd(w2, b, s21), s22 = hn::MulAdd(w2, c, s22);
      s23 = hn::MulAdd(w2, e, s23), s30 = hn::MulAdd(w3, a, s30), s31 = hn::MulAdd(w3, b, s31);
      s32 = hn::MulAdd(w3, c, s32), s33 = hn::MulAdd(w3, e, s33);
    }
    const auto finish = [&](std::int64_t r, VF first, VF second, VF third, VF fourth) HWY_ATTR {
      float* const to = sums + r * features + f;
      const VF by = hn::Set(d, rescale[r]);
      hn::StoreU(hn::MulAdd(hn::LoadU(d, to), by, first), d, to);
      hn::StoreU(hn::MulAdd(hn::LoadU(d, to + n), by, second), d, to + n);
      hn::StoreU(hn::MulAdd(hn::LoadU(d, to + 2 * n), by, third), d, to + 2 * n);
      hn::StoreU(hn::MulAdd(hn::LoadU(d, to + 3 * n), by, fourth), d, to + 3 * n);
    };
    finish(0, s00, s01, s02, s03);
    finish(1, s10, s11, s12, s13);
    finish(2, s20, s21, s22, s23);
    finish(3, s30, s31, s32, s33);
  }
#endif
  for (; f + 2 * n <= features; f += 2 * n) {
    VF s00 = hn::Zero(d), s01 = s00, s10 = s00, s11 = s00, s20 = s00, s21 = s00, s30 = s00, s31 = s00;
    for (std::int64_t j = 0; j < count; ++j) {
      const V* HWY_RESTRICT row = static_cast<const V*>(values[j]) + f;
      if (is_first && f == 0 && values.ahead > 0) {
        fetch_row_later(row, features * static_cast<std::int64_t>(sizeof(V)), values.ahead);
      }
      const VF a = convert::load_as(d, row), b = convert::load_as(d, row + n);
      const VF w0 = hn::Set(d, weights[j]), w1 = hn::Set(d, weights[stride + j]);
      const VF w2 = hn::Set(d, weights[2 * stride + j]), w3 = hn::Set(d, weights[3 * stride + j]);
      s00 = hn::MulAdd(w0, a, s00);
      s01 = hn::MulAdd(w0, b, s01);
      s10 = hn::MulAdd(w1, a, s10);
      s11 = hn::MulAdd(w1, b, s11);
      s20 = hn::MulAdd(w2, a, s20);
      s21 = hn::MulAdd(w2, b, s21);
      s30 = hn::MulAdd(w3, a, s30);
      s31 = hn::MulAdd(w3, b, s31);
    }
    const auto finish = [&](std::int64_t r, VF first, VF second) HWY_ATTR {
      float* const to = sums + r * features + f;
      const VF by = hn::Set(d, rescale[r]);
      hn::StoreU(hn::MulAdd(hn::LoadU(d, to), by, first), d, to);
      hn::StoreU(hn::MulAdd(hn::LoadU(d, to + n), by, second), d, to + n);
    };
    finish(0, s00, s01);
    finish(1, s10, s11);
    finish(2, s20, s21);
    finish(3, s30, s31);
  }
  return f;
}

}  // namespace posenc::attend::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
