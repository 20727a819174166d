// Sums of f32, f16 or bf16 values times the weights of a few queries, in f32; for code that is compiled once per SIMD
// target.

#if defined(POSENC_DECODE_ADD_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef POSENC_DECODE_ADD_INL_H
#undef POSENC_DECODE_ADD_INL_H
#else
#define POSENC_DECODE_ADD_INL_H
#endif

#include "attention/cpu/decode/dot-inl.h"

HWY_BEFORE_NAMESPACE();
namespace posenc::attend::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#define POSENC_ZERO_SUM(i) VF s##i = hn::Zero(d);
#define POSENC_ADD_VALUE(i) s##i = hn::MulAdd(w, convert::load_as(d, row + (i)*n), s##i);
#define POSENC_STORE_SUM(i) hn::StoreU(hn::MulAdd(hn::LoadU(d, sums + f + (i)*n), by, s##i), d, sums + f + (i)*n);
#define POSENC_ADD_VECTORS(vectors)                                                                     \
  for (; f + (vectors)*n <= features; f += (vectors)*n) {                                               \
    POSENC_REPEAT_##vectors(POSENC_ZERO_SUM);                                                           \
    for (std::int64_t j = 0; j < count; ++j) {                                                          \
      const V* HWY_RESTRICT row = static_cast<const V*>(values[j]) + f;                                 \
      const VF w = hn::Set(d, weights[j]);                                                              \
      fetch_later<(vectors)*kHeldLanes* static_cast<std::int64_t>(sizeof(V))>(row, values.ahead_of(j)); \
      POSENC_REPEAT_##vectors(POSENC_ADD_VALUE)                                                         \
    }                                                                                                   \
    POSENC_REPEAT_##vectors(POSENC_STORE_SUM)                                                           \
  }
// sums[f] = sums[f] · rescale + Σ weight[j] · v[j, f]. Sixteen vectors at once: with fewer, rows of 64 features would
// be read twice, at less than half the speed. With long vectors, a row has fewer.
template <class V, class Rows> HWY_INLINE void add_rows(const float* HWY_RESTRICT weights, const Rows& values,
                                                        std::int64_t count, std::int64_t features, float rescale,
                                                        float* HWY_RESTRICT sums) {
  const DF d;
  const std::int64_t n = lanes();
  const VF by = hn::Set(d, rescale);
  std::int64_t f = 0;
  POSENC_ADD_VECTORS(16)
  POSENC_ADD_VECTORS(8)
  POSENC_ADD_VECTORS(4)
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
#undef POSENC_ZERO_SUM
#undef POSENC_ADD_VALUE
#undef POSENC_STORE_SUM
#undef POSENC_ADD_VECTORS

#define POSENC_ZERO_SUMS(i) VF s0##i = hn::Zero(d), s1##i = s0##i, s2##i = s0##i, s3##i = s0##i;
#define POSENC_LOAD_VALUE(i) const VF x##i = convert::load_as(d, row + (i)*n);
#define POSENC_ADD_TO_01(i) s0##i = hn::MulAdd(w0, x##i, s0##i), s1##i = hn::MulAdd(w1, x##i, s1##i);
#define POSENC_ADD_TO_23(i) s2##i = hn::MulAdd(w2, x##i, s2##i), s3##i = hn::MulAdd(w3, x##i, s3##i);
#define POSENC_STORE_SUMS(i) finish(0, i, s0##i), finish(1, i, s1##i), finish(2, i, s2##i), finish(3, i, s3##i);
#define POSENC_ADD_VECTORS(vectors)                                                                \
  for (; f + (vectors)*n <= features; f += (vectors)*n) {                                          \
    POSENC_REPEAT_##vectors(POSENC_ZERO_SUMS);                                                     \
    for (std::int64_t j = 0; j < count; ++j) {                                                     \
      const V* HWY_RESTRICT row = static_cast<const V*>(values[j]) + f;                            \
      if (is_first && f == 0 && values.ahead > 0) {                                                \
        fetch_row_later(row, features* static_cast<std::int64_t>(sizeof(V)), values.ahead_of(j));  \
      }                                                                                            \
      POSENC_REPEAT_##vectors(POSENC_LOAD_VALUE) const VF w0 = hn::Set(d, weights[j]),             \
                                                          w1 = hn::Set(d, weights[stride + j]);    \
      POSENC_REPEAT_##vectors(POSENC_ADD_TO_01) const VF w2 = hn::Set(d, weights[2 * stride + j]), \
                                                         w3 = hn::Set(d, weights[3 * stride + j]); \
      POSENC_REPEAT_##vectors(POSENC_ADD_TO_23)                                                    \
    }                                                                                              \
    const auto finish = [&](std::int64_t r, std::int64_t vector, VF sum) HWY_ATTR {                \
      float* const to = sums + r * features + f + vector * n;                                      \
      hn::StoreU(hn::MulAdd(hn::LoadU(d, to), hn::Set(d, rescale[r]), sum), d, to);                \
    };                                                                                             \
    POSENC_REPEAT_##vectors(POSENC_STORE_SUMS)                                                     \
  }
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
      fetch_later<64 * static_cast<std::int64_t>(sizeof(V))>(row, values.ahead_of(j));
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
#elif !POSENC_FEW_REGISTERS
  POSENC_ADD_VECTORS(4)
#endif
  POSENC_ADD_VECTORS(2)
  return f;
}
#if HWY_TARGET == HWY_AVX3
// The same for eight queries and features a multiple of 32: every value is loaded and widened once for all of them.
template <class V> HWY_INLINE void add_rows_8(const float* HWY_RESTRICT weights, std::int64_t stride,
                                              const StepRows& values, std::int64_t count, std::int64_t features,
                                              const float* HWY_RESTRICT rescale, bool is_first,
                                              float* HWY_RESTRICT sums) {
  const DF d;
  for (std::int64_t f = 0; f < features; f += 32) {
    __m512 s[16];
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i) s[i] = _mm512_setzero_ps();
    for (std::int64_t j = 0; j < count; ++j) {
      const V* HWY_RESTRICT row = static_cast<const V*>(values[j]) + f;
      if (is_first) fetch_later<32 * static_cast<std::int64_t>(sizeof(V))>(row, values.ahead_of(j));
      const __m512 a = convert::load_as(d, row).raw, b = convert::load_as(d, row + 16).raw;
#pragma GCC unroll 8
      for (int r = 0; r < 8; ++r) {
        const __m512 w = _mm512_set1_ps(weights[r * stride + j]);
        s[2 * r] = _mm512_fmadd_ps(w, a, s[2 * r]);
        s[2 * r + 1] = _mm512_fmadd_ps(w, b, s[2 * r + 1]);
      }
    }
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i) {
      float* const to = sums + i / 2 * features + f + i % 2 * 16;
      _mm512_storeu_ps(to, _mm512_fmadd_ps(_mm512_loadu_ps(to), _mm512_set1_ps(rescale[i / 2]), s[i]));
    }
  }
}
#endif
#undef POSENC_ZERO_SUMS
#undef POSENC_LOAD_VALUE
#undef POSENC_ADD_TO_01
#undef POSENC_ADD_TO_23
#undef POSENC_STORE_SUMS
#undef POSENC_ADD_VECTORS

}  // namespace posenc::attend::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
