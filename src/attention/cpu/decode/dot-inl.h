// Scores of a few queries and f32, f16 or bf16 keys, multiplied in f32; for code that is compiled once per SIMD target.

#if defined(POSENC_DECODE_DOT_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef POSENC_DECODE_DOT_INL_H
#undef POSENC_DECODE_DOT_INL_H
#else
#define POSENC_DECODE_DOT_INL_H
#endif

#include <algorithm>
#include <cmath>

#include "attention/cpu/decode/rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace posenc::attend::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

HWY_INLINE float lane_sum(VF s) { return hn::GetLane(hn::SumOfLanes(DF(), s)); }
#if HWY_TARGET == HWY_SCALAR || HWY_HAVE_SCALABLE
// The sums of four vectors.
HWY_INLINE void store_sums(VF a, VF b, VF c, VF d, float* out) {
  out[0] = lane_sum(a), out[1] = lane_sum(b), out[2] = lane_sum(c), out[3] = lane_sum(d);
}
// out[i] (+)= the sum of a vector · scales[i], for four.
HWY_INLINE void add_sums(VF a, VF b, VF c, VF d, const float* scales, bool is_first, float* out) {
  float sums[4];
  store_sums(a, b, c, d, sums);
  for (int i = 0; i < 4; ++i) out[i] = is_first ? sums[i] * scales[i] : std::fma(sums[i], scales[i], out[i]);
}
#else
// A vector that holds, in a quarter of its lanes each, the sums of four.
using VFour = hn::Vec<hn::FixedTag<float, 4> >;
template <class D> HWY_INLINE VFour add_halves(D d, hn::Vec<D> s) {
  if constexpr (hn::MaxLanes(d) == 4) {
    return s;
  } else {
    const hn::Half<D> half;
    return add_halves(half, hn::Add(hn::LowerHalf(half, s), hn::UpperHalf(half, s)));
  }
}
HWY_INLINE VFour sums_of(VF a, VF b, VF c, VF e) {
#if HWY_TARGET == HWY_NEON
  return VFour(vpaddq_f32(vpaddq_f32(a.raw, b.raw), vpaddq_f32(c.raw, e.raw)));
#else
  const DF d;
  const hn::RepartitionToWide<DF> pairs;
  const auto ab = hn::BitCast(pairs, hn::Add(hn::InterleaveLower(d, a, b), hn::InterleaveUpper(d, a, b)));
  const auto ce = hn::BitCast(pairs, hn::Add(hn::InterleaveLower(d, c, e), hn::InterleaveUpper(d, c, e)));
  return add_halves(d, hn::Add(hn::BitCast(d, hn::InterleaveLower(pairs, ab, ce)),
                               hn::BitCast(d, hn::InterleaveUpper(pairs, ab, ce))));
#endif
}
// The sums of four vectors.
HWY_INLINE void store_sums(VF a, VF b, VF c, VF d, float* out) {
  hn::StoreU(sums_of(a, b, c, d), hn::FixedTag<float, 4>(), out);
}
// out[i] (+)= the sum of a vector · scales[i], for four.
HWY_INLINE void add_sums(VF a, VF b, VF c, VF d, const float* scales, bool is_first, float* out) {
  const hn::FixedTag<float, 4> four;
  const VFour sums = sums_of(a, b, c, d), by = hn::LoadU(four, scales);
  hn::StoreU(is_first ? hn::Mul(sums, by) : hn::MulAdd(sums, by, hn::LoadU(four, out)), four, out);
}
#endif

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

#define POSENC_LOAD_QUERY(i) \
  VF q##i = hn::Zero(d);     \
  if constexpr ((i)*kHeldLanes < kHeld) q##i = hn::LoadU(d, q + (i)*kHeldLanes);
#define POSENC_MULTIPLY_KEY(i)                                            \
  if constexpr ((i)*kHeldLanes < kHeld) {                                 \
    VF& sum = (i) % 2 == 0 ? even : odd;                                  \
    sum = hn::MulAdd(q##i, convert::load_as(d, k + (i)*kHeldLanes), sum); \
  }
// part[j, :] = (kIsMore ? part[j, :] : 0) + q · k[j] for 64 features from f on, lane by lane.
template <class K, bool kIsMore, class Rows> HWY_INLINE void score_held(const float* HWY_RESTRICT q, const Rows& keys,
                                                                        std::int64_t count, std::int64_t f,
                                                                        float* HWY_RESTRICT part) {
  const DF d;
  POSENC_REPEAT_16(POSENC_LOAD_QUERY)
  for (std::int64_t j = 0; j < count; ++j, part += kHeldLanes) {
    const K* HWY_RESTRICT k = static_cast<const K*>(keys[j]) + f;
    fetch_later<kHeld* static_cast<std::int64_t>(sizeof(K))>(k, keys.ahead_of(j));
    VF even = kIsMore ? hn::LoadU(d, part) : hn::Zero(d), odd = hn::Zero(d);
    POSENC_REPEAT_16(POSENC_MULTIPLY_KEY)
    hn::StoreU(hn::Add(even, odd), d, part);
  }
}
#undef POSENC_LOAD_QUERY
#undef POSENC_MULTIPLY_KEY

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

#define POSENC_ZERO_SUMS(r) VF s##r##0 = hn::Zero(d), s##r##1 = s##r##0;
#define POSENC_MULTIPLY_QUERY(r)                                              \
  {                                                                           \
    const VF x = hn::LoadU(d, q + (r)*features + f);                          \
    s##r##0 = hn::MulAdd(x, a, s##r##0), s##r##1 = hn::MulAdd(x, b, s##r##1); \
  }
#define POSENC_STORE_SUMS(r) out[(r)*out_stride] = lane_sum(s##r##0), out[(r)*out_stride + 1] = lane_sum(s##r##1);
// Four queries (rows of q) and two keys: every key is loaded and widened once for four products.
template <class K> HWY_INLINE void dot_4x2(const float* HWY_RESTRICT q, const K* HWY_RESTRICT k0,
                                           const K* HWY_RESTRICT k1, std::int64_t features, float* HWY_RESTRICT out,
                                           std::int64_t out_stride) {
  const DF d;
  POSENC_REPEAT_4(POSENC_ZERO_SUMS)
  std::int64_t f = 0;
  for (; f + lanes() <= features; f += lanes()) {
    const VF a = convert::load_as(d, k0 + f), b = convert::load_as(d, k1 + f);
    POSENC_REPEAT_4(POSENC_MULTIPLY_QUERY)
  }
  POSENC_REPEAT_4(POSENC_STORE_SUMS)
  for (; f < features; ++f) {
    for (std::int64_t r = 0; r < 4; ++r) {
      out[r * out_stride] += q[r * features + f] * element(k0[f]);
      out[r * out_stride + 1] += q[r * features + f] * element(k1[f]);
    }
  }
}
#undef POSENC_ZERO_SUMS
#undef POSENC_MULTIPLY_QUERY
#undef POSENC_STORE_SUMS

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
#elif !POSENC_FEW_REGISTERS
#define POSENC_ZERO_SUMS(r) VF s##r##0 = hn::Zero(d), s##r##1 = s##r##0, s##r##2 = s##r##0, s##r##3 = s##r##0;
#define POSENC_MULTIPLY_QUERY(r)                                              \
  {                                                                           \
    const VF x = hn::LoadU(d, q + (r)*features + f);                          \
    s##r##0 = hn::MulAdd(x, a, s##r##0), s##r##1 = hn::MulAdd(x, b, s##r##1); \
    s##r##2 = hn::MulAdd(x, c, s##r##2), s##r##3 = hn::MulAdd(x, e, s##r##3); \
  }
#define POSENC_STORE_SUMS(r) store_sums(s##r##0, s##r##1, s##r##2, s##r##3, out + (r)*out_stride);
// Four queries and four keys, features a multiple of a vector: 16 sums, as many as four pipes with a latency of four
// cycles can hold.
template <class K> HWY_INLINE void dot_4x4(const float* HWY_RESTRICT q, const StepRows& keys, std::int64_t j,
                                           std::int64_t features, float* HWY_RESTRICT out, std::int64_t out_stride) {
  const DF d;
  const K* HWY_RESTRICT k0 = static_cast<const K*>(keys[j]);
  const K* HWY_RESTRICT k1 = static_cast<const K*>(keys[j + 1]);
  const K* HWY_RESTRICT k2 = static_cast<const K*>(keys[j + 2]);
  const K* HWY_RESTRICT k3 = static_cast<const K*>(keys[j + 3]);
  POSENC_REPEAT_4(POSENC_ZERO_SUMS)
  for (std::int64_t f = 0; f < features; f += lanes()) {
    const VF a = convert::load_as(d, k0 + f), b = convert::load_as(d, k1 + f);
    const VF c = convert::load_as(d, k2 + f), e = convert::load_as(d, k3 + f);
    POSENC_REPEAT_4(POSENC_MULTIPLY_QUERY)
  }
  POSENC_REPEAT_4(POSENC_STORE_SUMS)
}
#undef POSENC_ZERO_SUMS
#undef POSENC_MULTIPLY_QUERY
#undef POSENC_STORE_SUMS
#endif

#if HWY_TARGET == HWY_AVX3
// Of many rows, keys are transposed once: then a score is a lane, and no sum goes across lanes.
constexpr std::int64_t kManyRows = 8, kTransposed = 32;  // keys
inline bool transposes_keys(std::int64_t rows, std::int64_t features) {
  return rows >= kManyRows && features % 32 == 0;
}
// kt[f, key] of kTransposed keys and `count` features from `first` on, a multiple of 32. Two of 16 bits fill a word.
template <class K>
HWY_INLINE void transpose_keys(const StepRows& keys, std::int64_t first, std::int64_t count, float* HWY_RESTRICT kt) {
  constexpr std::int64_t in_word = sizeof(float) / sizeof(K);
  for (std::int64_t half = 0; half < kTransposed; half += 16) {
    for (std::int64_t f = 0; f < count; f += 16 * in_word) {
      __m512i words[16];
#pragma GCC unroll 16
      for (int i = 0; i < 16; ++i) words[i] = _mm512_loadu_si512(static_cast<const K*>(keys[half + i]) + first + f);
      transpose_words(words);
#pragma GCC unroll 16
      for (int i = 0; i < 16; ++i) {
        float* const to = kt + (f + in_word * i) * kTransposed + half;
        const __m512i word = words[i];
        if constexpr (std::is_same_v<K, BFloat16>) {
          _mm512_store_si512(to, _mm512_slli_epi32(word, 16));
          _mm512_store_si512(to + kTransposed, _mm512_and_si512(word, _mm512_set1_epi32(-0x10000)));
        } else if constexpr (std::is_same_v<K, Half>) {
          _mm512_store_ps(to, _mm512_cvtph_ps(_mm512_cvtepi32_epi16(word)));
          _mm512_store_ps(to + kTransposed, _mm512_cvtph_ps(_mm512_cvtepi32_epi16(_mm512_srli_epi32(word, 16))));
        } else {
          _mm512_store_si512(to, word);
        }
      }
    }
  }
}
// Eight queries and kTransposed keys, `count` features of each: out [8, stride] (+)= their scores.
template <bool kIsMore> HWY_INLINE void score_8_transposed(const float* HWY_RESTRICT q, std::int64_t q_stride,
                                                           const float* HWY_RESTRICT kt, std::int64_t count,
                                                           float* HWY_RESTRICT out, std::int64_t stride) {
  __m512 s[16];
#pragma GCC unroll 16
  for (int i = 0; i < 16; ++i) s[i] = _mm512_setzero_ps();
  for (std::int64_t f = 0; f < count; ++f) {
    const __m512 a = _mm512_load_ps(kt + f * kTransposed), b = _mm512_load_ps(kt + f * kTransposed + 16);
#pragma GCC unroll 8
    for (int r = 0; r < 8; ++r) {
      const __m512 x = _mm512_set1_ps(q[r * q_stride + f]);
      s[2 * r] = _mm512_fmadd_ps(x, a, s[2 * r]);
      s[2 * r + 1] = _mm512_fmadd_ps(x, b, s[2 * r + 1]);
    }
  }
#pragma GCC unroll 16
  for (int i = 0; i < 16; ++i) {
    float* const to = out + i / 2 * stride + i % 2 * 16;
    _mm512_storeu_ps(to, kIsMore ? _mm512_add_ps(_mm512_loadu_ps(to), s[i]) : s[i]);
  }
}
// Scores of whole groups of rows and of keys; returns how many keys were done.
template <class K> HWY_INLINE std::int64_t score_transposed(const float* q, std::int64_t rows, const StepRows& keys,
                                                            std::int64_t count, std::int64_t features, float* scores,
                                                            std::int64_t stride) {
  constexpr std::int64_t kMost = 64;  // features, so that transposed keys stay in the L1 cache
  HWY_ALIGN float kt[kMost * kTransposed];
  std::int64_t j = 0;
  for (; j + kTransposed <= count; j += kTransposed) {
    const StepRows some = keys.from(j);
    for (std::int64_t i = 0; keys.ahead > 0 && i < kTransposed; ++i) {
      fetch_row_later(some[i], features * static_cast<std::int64_t>(sizeof(K)), some.ahead_of(i));
    }
    for (std::int64_t f = 0; f < features; f += kMost) {
      const std::int64_t part = std::min(kMost, features - f);
      transpose_keys<K>(some, f, part, kt);
      for (std::int64_t r = 0; r + kManyRows <= rows; r += kManyRows) {
        float* const out = scores + r * stride + j;
        f == 0 ? score_8_transposed<false>(q + r * features, features, kt, part, out, stride)
               : score_8_transposed<true>(q + r * features + f, features, kt, part, out, stride);
      }
    }
  }
  return j;
}
#else
inline bool transposes_keys(std::int64_t, std::int64_t) { return false; }
#endif

// scores[row, key] of `rows` queries and `count` keys, one query after another.
template <class K> HWY_INLINE void score_singly(const float* q, std::int64_t rows, const StepRows& keys,
                                                std::int64_t count, std::int64_t features, float* scores,
                                                std::int64_t stride) {
  for (std::int64_t r = 0; r < rows; ++r, q += features, scores += stride) {
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
// The same, four queries at a time.
template <class K> HWY_INLINE void score_by_rows(const float* q, std::int64_t rows, const StepRows& keys,
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
        fetch_row_later(keys[i], features * static_cast<std::int64_t>(sizeof(K)), keys.ahead_of(i));
      }
      dot_4x4<K>(q, keys, j, features, scores + j, stride);
    }
#endif
    for (; j + 2 <= count; j += 2) {
      if (r == 0 && keys.ahead > 0) {
        fetch_row_later(keys[j], features * static_cast<std::int64_t>(sizeof(K)), keys.ahead_of(j));
        fetch_row_later(keys[j + 1], features * static_cast<std::int64_t>(sizeof(K)), keys.ahead_of(j + 1));
      }
      dot_4x2(q, static_cast<const K*>(keys[j]), static_cast<const K*>(keys[j + 1]), features, scores + j, stride);
    }
    for (; j < count; ++j) {
      for (std::int64_t one = 0; one < 4; ++one) {
        scores[one * stride + j] = dot_1x1(q + one * features, static_cast<const K*>(keys[j]), features);
      }
    }
  }
  score_singly<K>(q, rows - r, keys, count, features, scores, stride);
}
// Keys of 8 bits come one query after another: for four queries and more, they were widened.
HWY_INLINE void score_rows(E4M3 /*type*/, const float* q, std::int64_t rows, const StepRows& keys, std::int64_t count,
                           std::int64_t features, float* scores, std::int64_t stride) {
  score_singly<E4M3>(q, rows, keys, count, features, scores, stride);
}
template <class K> HWY_INLINE void score_rows(K /*type*/, const float* q, std::int64_t rows, const StepRows& keys,
                                              std::int64_t count, std::int64_t features, float* scores,
                                              std::int64_t stride) {
#if HWY_TARGET == HWY_AVX3
  if (transposes_keys(rows, features)) {
    const std::int64_t keys_done = score_transposed<K>(q, rows, keys, count, features, scores, stride);
    const std::int64_t done = rows / kManyRows * kManyRows;
    if (keys_done < count) {
      score_by_rows<K>(q, done, keys.from(keys_done), count - keys_done, features, scores + keys_done, stride);
    }
    score_by_rows<K>(q + done * features, rows - done, keys, count, features, scores + done * stride, stride);
    return;
  }
#endif
  score_by_rows<K>(q, rows, keys, count, features, scores, stride);
}

}  // namespace posenc::attend::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
