// The weights of a tile, computed while AMX multiplies: the products of a tile are issued in steps, and some weights are
// computed after each.

#ifndef POSENC_AMX_WEIGHTS_INL_H  // compiled for a single SIMD target
#define POSENC_AMX_WEIGHTS_INL_H

#include <algorithm>
#include <bit>

#include "attention/cpu/products/amx_pack-inl.h"

HWY_BEFORE_NAMESPACE();
namespace posenc::attend::cpu::HWY_NAMESPACE {

// While tiles multiply, one of the two vector ports has no multiplications, maxima or powers, only additions,
// shuffles and logic. This determines the choice of instructions below.

// 2^x · (1 + 2^-16) for four vectors, relative error below 2.7e-6; 0 for −inf, NaN for NaN. The fraction is x − ⌊x⌋;
// VSCALEF applies the power of two. The four are interleaved so that few instructions wait for the previous one.
constexpr float kWeightFactor = 1 + 0x1p-16f;
HWY_INLINE void exponentiate(__m512* x) {
  __m512 f[4], p[4];
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) f[i] = _mm512_reduce_ps(x[i], 0x09);
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    p[i] = _mm512_fmadd_ps(_mm512_set1_ps(0.0135341678484f * kWeightFactor), f[i],
                           _mm512_set1_ps(0.0520114607758f * kWeightFactor));
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) p[i] = _mm512_fmadd_ps(p[i], f[i], _mm512_set1_ps(0.241442756796f * kWeightFactor));
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) p[i] = _mm512_fmadd_ps(p[i], f[i], _mm512_set1_ps(0.693003834484f * kWeightFactor));
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) p[i] = _mm512_fmadd_ps(p[i], f[i], _mm512_set1_ps(1.00000259337f * kWeightFactor));
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) x[i] = _mm512_scalef_ps(p[i], x[i]);
}
// The upper halves of two rows, column by column: the second's in place, the first's in the lower half.
HWY_INLINE __m512i upper_halves(__m512 first, __m512 second, __m512i top) {
  const __m512i below = _mm512_bsrli_epi128(_mm512_castps_si512(first), 2);
  return _mm512_ternarylogic_epi32(below, _mm512_castps_si512(second), top, 0xD8);  // top ? second : below
}
// The weights of two keys, p and q, as two planes of bf16: the upper plane overwrites the first key's scores, the
// lower one the second's. Both are truncated, not rounded, from numbers that are 2^-16 too large, so their sum is
// within 2^-16 of the weight.
HWY_INLINE void split_pair(__m512 p, __m512 q, float* upper, float* lower) {
  const __m512i top = _mm512_set1_epi32(static_cast<int>(0xFFFF0000U));
  const __m512 p_top = _mm512_castsi512_ps(_mm512_and_si512(_mm512_castps_si512(p), top));
  const __m512 q_top = _mm512_castsi512_ps(_mm512_and_si512(_mm512_castps_si512(q), top));
  _mm512_store_si512(upper, upper_halves(p, q, top));
  _mm512_store_si512(lower, upper_halves(_mm512_sub_ps(p, p_top), _mm512_sub_ps(q, q_top), top));
}

// P = 2^(factor · S − base) in place of S, and its sums, four keys at a time; each call between two steps of products
// does a share. kIsSloped: also subtracts `slope` · j, with j counted from `key`.
template <bool kIsSloped> struct Weighing {
  static constexpr int kWhole = 1 << 16;
  float* s = nullptr;  // the next four keys, aligned
  int left = 0, due = 0, rate = 0;
  const float* ahead = nullptr;  // prefetched, four cache lines at a time; null: nothing
  __m512 factor, base, total, other, slope;
  float key;

  HWY_INLINE Weighing(float* scores, std::int64_t first, std::int64_t keys, float a_factor, const float* a_base,
                      float a_slope, std::int64_t steps)
      : s(scores),
        left(static_cast<int>(keys / 4)),
        rate(left * kWhole / std::max(static_cast<int>(steps), 1) + 1),
        factor(_mm512_set1_ps(a_factor)),
        base(_mm512_loadu_ps(a_base)),
        total(_mm512_setzero_ps()),
        other(total),
        slope(_mm512_set1_ps(a_slope)),
        key(static_cast<float>(first)) {}
  HWY_INLINE void four_keys() {
    __m512 x[4];
    if constexpr (kIsSloped) {
      __m512 b = _mm512_fmadd_ps(slope, _mm512_set1_ps(key), base);
#pragma GCC unroll 4
      for (int i = 0; i < 4; ++i, b = _mm512_add_ps(b, slope)) {
        x[i] = _mm512_fmsub_ps(_mm512_load_ps(s + kTileRows * i), factor, b);
      }
      key += 4;
    } else {
#pragma GCC unroll 4
      for (int i = 0; i < 4; ++i) x[i] = _mm512_fmsub_ps(_mm512_load_ps(s + kTileRows * i), factor, base);
    }
    exponentiate(x);
    split_pair(x[0], x[1], s, s + kTileRows);
    split_pair(x[2], x[3], s + 2 * kTileRows, s + 3 * kTileRows);
    total = _mm512_add_ps(total, _mm512_add_ps(x[0], x[1]));
    other = _mm512_add_ps(other, _mm512_add_ps(x[2], x[3]));
    s += 4 * kTileRows;
    --left;
    if (ahead == nullptr) return;
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i, ahead += kTileRows) _mm_prefetch(ahead, _MM_HINT_T0);
  }
  HWY_INLINE void step() {
    due += rate;
    while (due >= kWhole && left > 0) {
      four_keys();
      due -= kWhole;
    }
  }
  HWY_INLINE void finish() {
    while (left > 0) four_keys();
  }
  // Whether `base` was close enough to the largest scores: no weight is above 2^15.
  HWY_INLINE bool all_small() const {
    return _mm512_cmp_ps_mask(_mm512_add_ps(total, other), _mm512_set1_ps(0x1p15f), _CMP_LE_OQ) == 0xFFFF;
  }
  HWY_INLINE void add_to(float* row_sum) const {
    const __m512 by = _mm512_set1_ps(1 / kWeightFactor);
    _mm512_storeu_ps(row_sum, _mm512_fmadd_ps(_mm512_add_ps(total, other), by, _mm512_loadu_ps(row_sum)));
  }
};
// For products without weights to compute meanwhile.
struct NoWork {
  HWY_INLINE void step() {}
};

// The weight of key j and query i, from its two planes.
HWY_INLINE float weight_in_place(const float* scores, std::int64_t j, std::int64_t i) {
  const std::int64_t width = kTileRows;
  const auto half = [&](std::int64_t row) HWY_ATTR {  // of the word that two keys share
    const auto word = std::bit_cast<std::uint32_t>(scores[row * width + i]);
    return std::bit_cast<float>(j % 2 == 0 ? word << 16 : word & 0xFFFF0000U);
  };
  return half(j / 2 * 2) + half(j / 2 * 2 + 1);
}

}  // namespace posenc::attend::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // POSENC_AMX_WEIGHTS_INL_H
