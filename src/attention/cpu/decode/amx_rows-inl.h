// Rows of a cache as bf16, for a decoding step by AMX; and the tiles of a step's products.

#ifndef POSENC_DECODE_AMX_ROWS_INL_H  // compiled for a single SIMD target
#define POSENC_DECODE_AMX_ROWS_INL_H

#include <type_traits>

#include "attention/cpu/decode/rows-inl.h"
#include "attention/cpu/products/amx_tiles-inl.h"
#include "attention/cpu/products/amx_weights-inl.h"

HWY_BEFORE_NAMESPACE();
namespace posenc::attend::cpu::HWY_NAMESPACE {

constexpr std::int64_t kTile = kTileRows * AmxUnit::kDepth;  // of bf16, and of sums: its elements
constexpr std::int64_t kTileSums = kTileRows * kTileRows;

// An f16 is the sum of two bf16, exactly.
template <class T> constexpr std::int64_t planes_of() { return std::is_same_v<T, Half> ? 2 : 1; }

// 32 numbers of e4m3, exactly.
HWY_INLINE __m512i bf16_of(const E4M3* from) {
  alignas(64) static constexpr std::uint16_t kSubnormal[32] = {0,      0x3B00, 0x3B80, 0x3BC0,
                                                               0x3C00, 0x3C20, 0x3C40, 0x3C60};  // eighths of 2^-6
  const __m512i bits = _mm512_cvtepu8_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)));
  const __m512i size = _mm512_and_si512(bits, _mm512_set1_epi16(0x7F));
  __m512i value = _mm512_add_epi16(_mm512_slli_epi16(size, 4), _mm512_set1_epi16(120 << 7));
  const __mmask32 is_small = _mm512_cmplt_epu16_mask(size, _mm512_set1_epi16(8));
  value = _mm512_mask_permutexvar_epi16(value, is_small, size, _mm512_load_si512(kSubnormal));
  const __mmask32 is_nan = _mm512_cmpeq_epi16_mask(size, _mm512_set1_epi16(0x7F));
  value = _mm512_mask_mov_epi16(value, is_nan, _mm512_set1_epi16(0x7FC0));
  return _mm512_ternarylogic_epi32(value, _mm512_slli_epi16(bits, 8), _mm512_set1_epi16(-0x8000),
                                   0xF8);  // | with sign
}
HWY_INLINE __m512i bf16_of(const BFloat16* from) { return _mm512_loadu_si512(from); }

// What is left of f16 above the eight bits of a bf16; of infinity, 0.
HWY_INLINE __m512 rest_of_f16(__m512 whole) {
  const __m512 upper = _mm512_castsi512_ps(
      _mm512_and_si512(_mm512_castps_si512(whole), _mm512_set1_epi32(static_cast<int>(0xFFFF0000U))));
  const __m512 rest = _mm512_sub_ps(whole, upper);
  return _mm512_fixupimm_ps(rest, rest, _mm512_set1_epi32(0x11111188), 0);  // NaN becomes 0
}
// Two planes of 16 pairs of numbers: the first of each pair in the lower half of a word.
struct TwoPlanes {
  __m512i upper, lower;
};
HWY_INLINE TwoPlanes planes_of_pairs(__m512 first, __m512 second) {
  const __m512i top = _mm512_set1_epi32(static_cast<int>(0xFFFF0000U));
  return {upper_halves(first, second, top), upper_halves(rest_of_f16(first), rest_of_f16(second), top)};
}
HWY_INLINE __m512 f32_of(const Half* from) {
  return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)));
}

// Writes 32 features of a key; `plane`: elements between the planes. Of f16, features i and i + 16 are a pair.
template <class T> HWY_INLINE void store_key(const T* from, std::uint16_t* to, std::int64_t plane) {
  if constexpr (std::is_same_v<T, Half>) {
    const TwoPlanes planes = planes_of_pairs(f32_of(from), f32_of(from + kTileRows));
    _mm512_store_si512(to, planes.upper);
    _mm512_store_si512(to + plane, planes.lower);
  } else {
    _mm512_store_si512(to, bf16_of(from));
  }
}
// Writes 32 features of two values, null for zeros unless kAreThere, as a row of each of two tiles, which are side by side; `plane` as above.
// Of bf16 and e4m3, lanes of 128 bits are interleaved each for itself, so that of every eight features, four are in one tile and
// four in the other; of f16, the first 16 are in one.
template <bool kAreThere, class T>
HWY_INLINE void store_values(const T* first, const T* second, std::uint16_t* to, std::int64_t plane) {
  if constexpr (std::is_same_v<T, Half>) {
    for (std::int64_t half = 0; half < 2; ++half, to += kTile) {
      const auto load = [&](const T* x) HWY_ATTR {
        return kAreThere || x != nullptr ? f32_of(x + kTileRows * half) : _mm512_setzero_ps();
      };
      const TwoPlanes planes = planes_of_pairs(load(first), load(second));
      _mm512_store_si512(to, planes.upper);
      _mm512_store_si512(to + plane, planes.lower);
    }
  } else {
    const __m512i x = kAreThere || first != nullptr ? bf16_of(first) : _mm512_setzero_si512();
    const __m512i y = kAreThere || second != nullptr ? bf16_of(second) : _mm512_setzero_si512();
    _mm512_store_si512(to, _mm512_unpacklo_epi16(x, y));
    _mm512_store_si512(to + kTile, _mm512_unpackhi_epi16(x, y));
  }
}
// sums[f] = sums[f] · rescale + part[f] for the 32 features of two tiles, as store_values<T> placed them.
template <class T> HWY_INLINE void add_part(const float* HWY_RESTRICT part, float rescale, float* HWY_RESTRICT sums) {
  __m512 first = _mm512_load_ps(part), second = _mm512_load_ps(part + kTileSums);
  if constexpr (!std::is_same_v<T, Half>) {
    const __m512i lower = _mm512_setr_epi32(0, 1, 2, 3, 16, 17, 18, 19, 4, 5, 6, 7, 20, 21, 22, 23),
                  upper = _mm512_setr_epi32(8, 9, 10, 11, 24, 25, 26, 27, 12, 13, 14, 15, 28, 29, 30, 31);
    const __m512 x = first, y = second;
    first = _mm512_permutex2var_ps(x, lower, y), second = _mm512_permutex2var_ps(x, upper, y);
  }
  const __m512 by = _mm512_set1_ps(rescale);
  _mm512_storeu_ps(sums, _mm512_fmadd_ps(_mm512_loadu_ps(sums), by, first));
  _mm512_storeu_ps(sums + kTileRows, _mm512_fmadd_ps(_mm512_loadu_ps(sums + kTileRows), by, second));
}

// Four tiles of 16 keys: where each begins, and how far the rows of a tile and the planes are apart, in bytes.
struct KeyTiles {
  const std::byte* at[4];
  std::int64_t stride, plane;  // 0: there is one plane
};

// out [64 keys, 16] = K Qᵀ for a panel of queries, in one plane or two, `plane` elements apart. Calls fetch()
// before every tile of keys.
template <class Fetch> HWY_INLINE void score_tiles(const KeyTiles& keys, const Fetch& fetch,
                                                   const std::uint16_t* HWY_RESTRICT q, std::int64_t plane,
                                                   std::int64_t depth, float* HWY_RESTRICT out) {
  constexpr std::int64_t row = 64;  // bytes
#define POSENC_SCORE_TILE(sum, tile)                          \
  {                                                           \
    const std::byte* const from = keys.at[sum] + 2 * f;       \
    fetch();                                                  \
    POSENC_TILE_LOAD(tile, from, keys.stride);                \
    POSENC_TILE_DOT(sum, tile, 4);                            \
    if (plane > 0) POSENC_TILE_DOT(sum, tile, 5);             \
    if (keys.plane > 0) {                                     \
      POSENC_TILE_LOAD(tile, from + keys.plane, keys.stride); \
      POSENC_TILE_DOT(sum, tile, 4);                          \
    }                                                         \
  }
  POSENC_TILE_ZERO(0);
  POSENC_TILE_ZERO(1);
  POSENC_TILE_ZERO(2);
  POSENC_TILE_ZERO(3);
  for (std::int64_t f = 0; f < depth; f += AmxUnit::kDepth) {
    POSENC_TILE_LOAD(4, q + f * kTileRows, row);
    if (plane > 0) POSENC_TILE_LOAD(5, q + f * kTileRows + plane, row);
    POSENC_SCORE_TILE(0, 6)
    POSENC_SCORE_TILE(1, 7)
    POSENC_SCORE_TILE(2, 6)
    POSENC_SCORE_TILE(3, 7)
  }
#undef POSENC_SCORE_TILE
  POSENC_TILE_STORE(0, out, row);
  POSENC_TILE_STORE(1, out + kTileSums, row);
  POSENC_TILE_STORE(2, out + 2 * kTileSums, row);
  POSENC_TILE_STORE(3, out + 3 * kTileSums, row);
}

// Scores of 16 keys and four rows, from a tile [keys, 16 rows]: out[row, key], times a factor. Returns which keys have one that is
// NaN.
HWY_INLINE __mmask16 store_four_rows(const float* HWY_RESTRICT tile, __m512 factor, std::int64_t rows,
                                     float* HWY_RESTRICT out, std::int64_t stride) {
  __m512i keys[4];
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {  // keys i, i + 4, i + 8 and i + 12
    const auto row = [&](int part) HWY_ATTR {
      return _mm_load_si128(reinterpret_cast<const __m128i*>(tile + kTileRows * (i + 4 * part)));
    };
    const __m512i two = _mm512_inserti32x4(_mm512_castsi128_si512(row(0)), row(1), 1);
    keys[i] = _mm512_inserti32x4(_mm512_inserti32x4(two, row(2), 2), row(3), 3);
  }
  const __m512i a = _mm512_unpacklo_epi32(keys[0], keys[1]), b = _mm512_unpackhi_epi32(keys[0], keys[1]);
  const __m512i c = _mm512_unpacklo_epi32(keys[2], keys[3]), d = _mm512_unpackhi_epi32(keys[2], keys[3]);
  __mmask16 nans = 0;
  const auto store = [&](std::int64_t r, __m512i scores) HWY_ATTR {
    if (r >= rows) return;
    const __m512 scaled = _mm512_mul_ps(_mm512_castsi512_ps(scores), factor);
    nans |= _mm512_cmp_ps_mask(scaled, scaled, _CMP_UNORD_Q);
    _mm512_storeu_ps(out + r * stride, scaled);
  };
  store(0, _mm512_unpacklo_epi64(a, c));
  store(1, _mm512_unpackhi_epi64(a, c));
  store(2, _mm512_unpacklo_epi64(b, d));
  store(3, _mm512_unpackhi_epi64(b, d));
  return nans;
}

// out, four tiles [16 rows, 16 features] = P V for a panel of weights, [groups, 2 planes, 16, 16 pairs], and values,
// [groups, planes, 4, 16 pairs, 16 features, 2], of groups of 32 keys.
HWY_INLINE void add_tiles(const float* HWY_RESTRICT weights, const std::uint16_t* HWY_RESTRICT values,
                          std::int64_t planes, std::int64_t groups, float* HWY_RESTRICT out) {
  constexpr std::int64_t row = 64;  // bytes
#define POSENC_ADD_TILE(sum, tile)                             \
  POSENC_TILE_LOAD(tile, values + (sum)*kTile, row);           \
  POSENC_TILE_DOT(sum, 4, tile);                               \
  POSENC_TILE_DOT(sum, 5, tile);                               \
  if (planes > 1) {                                            \
    POSENC_TILE_LOAD(tile, values + (4 + (sum)) * kTile, row); \
    POSENC_TILE_DOT(sum, 4, tile);                             \
  }
  POSENC_TILE_ZERO(0);
  POSENC_TILE_ZERO(1);
  POSENC_TILE_ZERO(2);
  POSENC_TILE_ZERO(3);
  for (std::int64_t g = 0; g < groups; ++g, weights += kTile, values += 4 * planes * kTile) {
    POSENC_TILE_LOAD(4, weights, row);
    POSENC_TILE_LOAD(5, weights + kTile / 2, row);
    POSENC_ADD_TILE(0, 6)
    POSENC_ADD_TILE(1, 7)
    POSENC_ADD_TILE(2, 6)
    POSENC_ADD_TILE(3, 7)
  }
#undef POSENC_ADD_TILE
  POSENC_TILE_STORE(0, out, row);
  POSENC_TILE_STORE(1, out + kTileSums, row);
  POSENC_TILE_STORE(2, out + 2 * kTileSums, row);
  POSENC_TILE_STORE(3, out + 3 * kTileSums, row);
}

}  // namespace posenc::attend::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // POSENC_DECODE_AMX_ROWS_INL_H
