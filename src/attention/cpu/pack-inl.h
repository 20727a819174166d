// Packs rows of Q, K and V for the products: as panels, groups or rows, rotated on the way; and panels of sums as rows. For
// code that is compiled once per SIMD target.

#if defined(POSENC_PACK_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef POSENC_PACK_INL_H
#undef POSENC_PACK_INL_H
#else
#define POSENC_PACK_INL_H
#endif

#include <algorithm>

#include "attention/cpu/panel-inl.h"
#include "attention/cpu/rotate_loaded.h"
#include "kernels/cpu/convert-inl.h"
#include "numerics/narrow.h"

HWY_BEFORE_NAMESPACE();
namespace posenc::attend::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace convert = posenc::kernels::cpu::HWY_NAMESPACE;

HWY_INLINE float element(float x) { return x; }
template <class T> HWY_INLINE float element(T x) { return static_cast<float>(numerics::widen(x)); }

// `n` features of a row, as f32.
template <class T>
HWY_INLINE void widen_row(const T* HWY_RESTRICT x, std::int64_t step, std::int64_t n, float* HWY_RESTRICT out) {
  std::int64_t f = 0;
  if (step == 1) {
    for (; f + lanes() <= n; f += lanes()) hn::StoreU(convert::load_as(DF(), x + f), DF(), out + f);
  }
  for (; f < n; ++f) out[f] = element(x[f * step]);
}

// Of q8_0: the scale of a block, and its numbers from one on, without the scale.
HWY_INLINE float scale_of(const Q8Block* block) {
  return hn::GetLane(convert::load_as(hn::CappedTag<float, 1>(), &block->scale));
}
template <class D> HWY_INLINE hn::Vec<D> numbers_of(D d, const Q8Block* block, std::int64_t first) {
  const hn::Rebind<std::int32_t, D> di;
  const hn::Rebind<std::int8_t, D> d8;
  return hn::ConvertTo(d, hn::PromoteTo(di, hn::LoadU(d8, block->values + first)));
}

// The same of q8_0, whose features are contiguous.
HWY_INLINE void widen_row(const Q8Block* HWY_RESTRICT x, std::int64_t /*step*/, std::int64_t n,
                          float* HWY_RESTRICT out) {
  const hn::CappedTag<float, static_cast<std::size_t>(Q8Block::kElements)> d;
  const auto width = static_cast<std::int64_t>(hn::Lanes(d));
  for (std::int64_t f = 0; f < n; f += Q8Block::kElements, ++x) {
    const auto scale = hn::Set(d, scale_of(x));
#pragma GCC unroll 8
    for (std::int64_t i = 0; i < Q8Block::kElements; i += width) {
      hn::StoreU(hn::Mul(numbers_of(d, x, i), scale), d, out + f + i);
    }
  }
}

// Rows `begin` to `end` of one head, [rows, stride] f32, padded with zeros.
inline void pack_rows(const HeadTensor<const void>& x, std::int64_t b, std::int64_t h, std::int64_t begin,
                      std::int64_t end, std::int64_t stride, float* HWY_RESTRICT out) {
  kernels::with_cache_type(x.type, [&](auto kind) HWY_ATTR {
    using T = decltype(kind);
    if constexpr (!std::is_same_v<T, double>) {
      for (std::int64_t t = begin; t < end; ++t, out += stride) {
        widen_row(x.row<T>(b, h, t), x.feature_stride, x.features, out);
        std::fill(out + x.features, out + stride, 0.0f);
      }
    }
  });
}

// Rounds f32 to another type.
inline void round_to(DataType type, std::int64_t count, float* HWY_RESTRICT x) {
  kernels::with_type(type, [&](auto kind) HWY_ATTR {
    using T = decltype(kind);
    if constexpr (sizeof(T) == 2) {
      const DF d;
      T narrow[hn::MaxLanes(DF())];
      std::int64_t i = 0;
      for (; i + lanes() <= count; i += lanes()) {
        convert::store_as(d, hn::LoadU(d, x + i), narrow);
        hn::StoreU(convert::load_as(d, narrow), d, x + i);
      }
      for (; i < count; ++i) x[i] = element(numerics::narrow<T>(static_cast<double>(x[i])));
    }
  });
}

// The same, rotated by their positions if the form is a rotation.
inline void load_rows(const HeadTensor<const void>& x, const RowRotation& rotation, std::int64_t b, std::int64_t h,
                      std::int64_t begin, std::int64_t end, std::int64_t stride, float* HWY_RESTRICT out) {
  pack_rows(x, b, h, begin, end, stride, out);
  if (rotation.cos_sin == nullptr) return;
  rotate_loaded_rows(rotation, b, begin, end, stride, out);
  if (rotation.is_rounded) round_to(x.type, (end - begin) * stride, out);
}

// Rows [count, features] as the columns of a panel, times a factor; missing columns are 0.
inline void pack_panel(const float* HWY_RESTRICT rows, std::int64_t count, std::int64_t features, float factor,
                       float* HWY_RESTRICT out) {
  const std::int64_t width = panel_width();
  if (count < width) std::fill(out, out + features * width, 0.0f);
  for (std::int64_t t = 0; t < count; ++t, rows += features) {
    for (std::int64_t f = 0; f < features; ++f) out[f * width + t] = rows[f] * factor;
  }
}

// Rows transposed in groups of 8: out[group, f, row in the group]; missing rows are 0.
template <class T> HWY_INLINE void transpose_group(const T* HWY_RESTRICT x, std::int64_t stride, std::int64_t step,
                                                   std::int64_t rows, std::int64_t features,
                                                   float* HWY_RESTRICT out) {
  std::int64_t f = 0;
#if HWY_TARGET != HWY_SCALAR
  if (step == 1 && rows == kGroup) {
    const hn::FixedTag<float, 4> d;
    for (; f + 4 <= features; f += 4) {
      for (std::int64_t half = 0; half < kGroup; half += 4) {
        const T* HWY_RESTRICT from = x + half * stride + f;
        const auto r0 = convert::load_as(d, from), r1 = convert::load_as(d, from + stride);
        const auto r2 = convert::load_as(d, from + 2 * stride), r3 = convert::load_as(d, from + 3 * stride);
        const auto a = hn::InterleaveLower(d, r0, r2), c = hn::InterleaveLower(d, r1, r3);
        const auto e = hn::InterleaveUpper(d, r0, r2), g = hn::InterleaveUpper(d, r1, r3);
        float* HWY_RESTRICT to = out + f * kGroup + half;
        hn::StoreU(hn::InterleaveLower(d, a, c), d, to);
        hn::StoreU(hn::InterleaveUpper(d, a, c), d, to + kGroup);
        hn::StoreU(hn::InterleaveLower(d, e, g), d, to + 2 * kGroup);
        hn::StoreU(hn::InterleaveUpper(d, e, g), d, to + 3 * kGroup);
      }
    }
  }
#endif
  for (; f < features; ++f) {
    for (std::int64_t r = 0; r < kGroup; ++r)
      out[f * kGroup + r] = r < rows ? element(x[r * stride + f * step]) : 0.0f;
  }
}
inline void pack_groups(const HeadTensor<const void>& x, std::int64_t b, std::int64_t h, std::int64_t begin,
                        std::int64_t end, float* HWY_RESTRICT out) {
  kernels::with_cache_type(x.type, [&](auto kind) HWY_ATTR {
    using T = decltype(kind);
    if constexpr (!std::is_same_v<T, double> && !std::is_same_v<T, Q8Block>) {
      for (std::int64_t t = begin; t < end; t += kGroup, out += kGroup * x.features) {
        transpose_group(x.row<T>(b, h, t), x.token_stride, x.feature_stride, std::min(kGroup, end - t), x.features,
                        out);
      }
    }
  });
}

#if HWY_TARGET == HWY_AVX3
// Transposes 16 × 16 words of 32 bits.
HWY_INLINE void transpose_words(__m512i* r) {
  __m512i t[16];
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i) {
    t[2 * i] = _mm512_unpacklo_epi32(r[2 * i], r[2 * i + 1]);
    t[2 * i + 1] = _mm512_unpackhi_epi32(r[2 * i], r[2 * i + 1]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    r[4 * i] = _mm512_unpacklo_epi64(t[4 * i], t[4 * i + 2]);
    r[4 * i + 1] = _mm512_unpackhi_epi64(t[4 * i], t[4 * i + 2]);
    r[4 * i + 2] = _mm512_unpacklo_epi64(t[4 * i + 1], t[4 * i + 3]);
    r[4 * i + 3] = _mm512_unpackhi_epi64(t[4 * i + 1], t[4 * i + 3]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    t[i] = _mm512_shuffle_i32x4(r[i], r[i + 4], 0x88);
    t[i + 4] = _mm512_shuffle_i32x4(r[i], r[i + 4], 0xdd);
    t[i + 8] = _mm512_shuffle_i32x4(r[i + 8], r[i + 12], 0x88);
    t[i + 12] = _mm512_shuffle_i32x4(r[i + 8], r[i + 12], 0xdd);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    r[i] = _mm512_shuffle_i32x4(t[i], t[i + 8], 0x88);
    r[i + 8] = _mm512_shuffle_i32x4(t[i], t[i + 8], 0xdd);
    r[i + 4] = _mm512_shuffle_i32x4(t[i + 4], t[i + 12], 0x88);
    r[i + 12] = _mm512_shuffle_i32x4(t[i + 4], t[i + 12], 0xdd);
  }
}

#endif

// The first lanes() columns of a panel of sums, each times its factor: out[column · features + feature].
HWY_INLINE void columns_as_rows(const float* HWY_RESTRICT sums, std::int64_t width, const float* HWY_RESTRICT by,
                                std::int64_t features, float* HWY_RESTRICT out) {
  std::int64_t f = 0;
#if HWY_TARGET == HWY_AVX3
  const __m512 factor = _mm512_loadu_ps(by);
  for (; f + 16 <= features; f += 16) {
    __m512i r[16];
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i) {
      r[i] = _mm512_castps_si512(_mm512_mul_ps(_mm512_loadu_ps(sums + (f + i) * width), factor));
    }
    transpose_words(r);
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i) _mm512_storeu_si512(out + i * features + f, r[i]);
  }
#elif HWY_TARGET != HWY_SCALAR
  const hn::FixedTag<float, 4> d;
  for (; f + 4 <= features; f += 4) {
    for (std::int64_t column = 0; column < lanes(); column += 4) {
      const float* const from = sums + f * width + column;
      const auto factor = hn::LoadU(d, by + column);
      const auto r0 = hn::Mul(hn::LoadU(d, from), factor), r1 = hn::Mul(hn::LoadU(d, from + width), factor);
      const auto r2 = hn::Mul(hn::LoadU(d, from + 2 * width), factor),
                 r3 = hn::Mul(hn::LoadU(d, from + 3 * width), factor);
      const auto a = hn::InterleaveLower(d, r0, r2), b = hn::InterleaveLower(d, r1, r3);
      const auto c = hn::InterleaveUpper(d, r0, r2), e = hn::InterleaveUpper(d, r1, r3);
      float* const to = out + column * features + f;
      hn::StoreU(hn::InterleaveLower(d, a, b), d, to);
      hn::StoreU(hn::InterleaveUpper(d, a, b), d, to + features);
      hn::StoreU(hn::InterleaveLower(d, c, e), d, to + 2 * features);
      hn::StoreU(hn::InterleaveUpper(d, c, e), d, to + 3 * features);
    }
  }
#endif
  for (; f < features; ++f) {
    for (std::int64_t i = 0; i < lanes(); ++i) out[i * features + f] = sums[f * width + i] * by[i];
  }
}

}  // namespace posenc::attend::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
