// Packs the operands of AMX. Tiles are loaded from them directly; only queries and values, which are transposed, are
// rearranged.

#ifndef POSENC_AMX_PACK_INL_H  // compiled for a single SIMD target
#define POSENC_AMX_PACK_INL_H

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "attention/cpu/products/planes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace posenc::attend::cpu::HWY_NAMESPACE {

// 32 f32 rounded to bf16 by the processor's own instruction, which treats numbers below 2^-126 as 0.
HWY_INLINE __m512i rounded_to_bf16(__m512 first, __m512 second) {
  __m512i rounded;
  asm("vcvtne2ps2bf16 %1, %2, %0" : "=v"(rounded) : "v"(first), "v"(second));
  return rounded;
}
// The remainder of f32 after subtracting their bf16; 0 for non-finite numbers.
HWY_INLINE __m512 rest_of(__m512 whole, __m256i bits) {
  const __m512 upper = _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16));
  const __mmask16 is_finite = _mm512_cmp_ps_mask(_mm512_abs_ps(upper), _mm512_set1_ps(-kNone), _CMP_LT_OQ);
  return _mm512_maskz_sub_ps(is_finite, whole, upper);
}
constexpr std::int64_t kTileRows = 16;

// The operands of planes-inl.h as AMX takes them.
struct AmxUnit {
  static constexpr std::int64_t kRows = 32, kDepth = 32, kPair = 2;
  static constexpr std::int64_t kValueBlocks = 2;  // values wait for their product while the next are packed
  static constexpr std::int64_t kMostKeptBytes = 1 << 20;
  // The queries of a panel are as many as a tile has rows. With 64 keys of 64 features, everything that the tiles of a
  // panel read and write then fits in the L1 cache. With more features it cannot, and the sums, which are read and
  // written for every block of keys, matter more.
  static constexpr int kVectors = 1;
  static std::int64_t keys_of_block(std::int64_t features) { return features <= 64 ? 64 : kKeyBlock; }

  // A row of f32 as 32 bf16 in one plane or two, padded with zeros.
  static HWY_INLINE void split_row(const float* x, std::int64_t count, std::uint16_t* high, std::uint16_t* low) {
    HWY_ALIGN float padded[kDepth] = {};
    if (count < kDepth) {
      std::copy(x, x + count, padded);
      x = padded;
    }
    const __m512 first = _mm512_loadu_ps(x), second = _mm512_loadu_ps(x + kTileRows);
    const __m512i top = rounded_to_bf16(first, second);
    _mm512_storeu_si512(high, top);
    if (low == nullptr) return;
    _mm512_storeu_si512(low, rounded_to_bf16(rest_of(first, _mm512_castsi512_si256(top)),
                                             rest_of(second, _mm512_extracti64x4_epi64(top, 1))));
  }

  // 16 rows of 32 bf16 as 16 pairs of depths of 16 columns: out[pair, row, depth mod 2]. `row`(r): 32 numbers as a vector.
  template <class Row> static HWY_INLINE void place_columns(const Row& row, std::uint16_t* out) {
    __m512i r[kTileRows];
#pragma GCC unroll 16
    for (int i = 0; i < kTileRows; ++i) r[i] = row(i);
    transpose_words(r);
#pragma GCC unroll 16
    for (int i = 0; i < kTileRows; ++i) _mm512_storeu_si512(out + i * kDepth, r[i]);
  }
  // Packs queries, [count, features] f32, as the columns of a panel; missing columns are 0.
  static void pack_columns(const float* rows, std::int64_t count, std::int64_t features, std::int64_t depth,
                           std::int64_t planes, std::int64_t plane, std::uint16_t* out) {
    HWY_ALIGN std::uint16_t tile[2][kTileRows * kDepth] = {};
    for (std::int64_t k = 0; k < depth; k += kDepth) {
      for (std::int64_t r = 0; r < count; ++r) {
        split_row(rows + r * features + k, std::min(kDepth, features - k), tile[0] + r * kDepth,
                  planes > 1 ? tile[1] + r * kDepth : nullptr);
      }
      for (std::int64_t p = 0; p < planes; ++p) {
        place_columns([&](int r) HWY_ATTR { return _mm512_load_si512(tile[p] + r * kDepth); },
                      out + p * plane + k * kTileRows);
      }
    }
  }
  // The same for bf16 queries that are contiguous in memory, features a multiple of 32.
  static void copy_columns(const HeadTensor<const void>& x, std::int64_t b, std::int64_t h, std::int64_t begin,
                           std::int64_t end, std::uint16_t* out) {
    const std::uint16_t* rows[kTileRows];
    for (std::int64_t r = 0; r < kTileRows; ++r) {
      rows[r] = begin + r < end ? x.row<std::uint16_t>(b, h, begin + r) : nullptr;
    }
    for (std::int64_t k = 0; k < x.features; k += kDepth) {
      place_columns(
          [&](int r)
              HWY_ATTR { return rows[r] != nullptr ? _mm512_loadu_si512(rows[r] + k) : _mm512_setzero_si512(); },
          out + k * kTileRows);
    }
  }

  // Packs keys, [count, features] f32, in groups of 32 rows; missing rows are 0.
  static void pack_groups(const float* rows, std::int64_t count, std::int64_t features, std::int64_t depth,
                          std::int64_t planes, std::int64_t plane, std::uint16_t* out) {
    for (std::int64_t t = 0; t < count; t += kRows, out += kRows * depth) {
      for (std::int64_t k = 0; k < depth; k += kDepth) {
        for (std::int64_t r = 0; r < kRows; ++r) {
          std::uint16_t* const high = out + k * kRows + r * kDepth;
          if (t + r < count) {
            split_row(rows + (t + r) * features + k, std::min(kDepth, features - k), high,
                      planes > 1 ? high + plane : nullptr);
          } else {
            for (std::int64_t p = 0; p < planes; ++p) std::fill_n(high + p * plane, kDepth, std::uint16_t{0});
          }
        }
      }
    }
  }
  // The same for bf16 keys that are contiguous in memory, features a multiple of 32: a copy.
  static void copy_groups(const HeadTensor<const void>& x, std::int64_t b, std::int64_t h, std::int64_t begin,
                          std::int64_t end, std::uint16_t* out) {
    const std::int64_t groups = (end - begin + kRows - 1) / kRows;
    for (std::int64_t r = 0; r < groups * kRows; ++r) {
      const auto* const row = begin + r < end ? x.row<std::uint16_t>(b, h, begin + r) : nullptr;
      std::uint16_t* to = out + r / kRows * kRows * x.features + r % kRows * kDepth;
      for (std::int64_t k = 0; k < x.features; k += kDepth, to += kRows * kDepth) {
        if (row != nullptr) {
          std::memcpy(to, row + k, 2 * kDepth);
        } else {
          std::memset(to, 0, 2 * kDepth);
        }
      }
    }
  }

  // Transposes 32 × 32. `row`(r): 32 numbers as a vector.
  template <class Row> static HWY_INLINE void transpose_32(const Row& row, std::uint16_t* HWY_RESTRICT out) {
    alignas(64) static constexpr std::uint16_t kPairs[2][32] = {
        {0, 32, 1, 33, 2,  34, 3,  35, 4,  36, 5,  37, 6,  38, 7,  39,
         8, 40, 9, 41, 10, 42, 11, 43, 12, 44, 13, 45, 14, 46, 15, 47},
        {16, 48, 17, 49, 18, 50, 19, 51, 20, 52, 21, 53, 22, 54, 23, 55,
         24, 56, 25, 57, 26, 58, 27, 59, 28, 60, 29, 61, 30, 62, 31, 63}};
    for (int half = 0; half < 2; ++half) {  // pairs of rows as words, 16 columns at a time
      const __m512i pairs = _mm512_load_si512(kPairs[half]);
      __m512i r[16];
#pragma GCC unroll 16
      for (int i = 0; i < 16; ++i) r[i] = _mm512_permutex2var_epi16(row(2 * i), pairs, row(2 * i + 1));
      transpose_words(r);
#pragma GCC unroll 16
      for (int i = 0; i < 16; ++i) _mm512_store_si512(out + 32 * (16 * half + i), r[i]);
    }
  }
  // Packs values, 32 keys at a time, as groups of 32 features; these keys are the depth of the product. Keys past the
  // last give 0.
  // `row`(j): where the values of key j begin, [features] f32 or bf16; null past the last.
  template <class Row> static HWY_INLINE void pack_values(const Row& row, std::int64_t keys, std::int64_t features,
                                                          std::int64_t planes, std::int64_t plane,
                                                          std::uint16_t* out) {
    using T = std::remove_cvref_t<decltype(*row(0))>;
    for (std::int64_t j = 0; j < keys; j += kDepth) {
      const T* rows[kDepth];
      for (std::int64_t r = 0; r < kDepth; ++r) rows[r] = row(j + r);
      for (std::int64_t f = 0; f < features; f += kRows) {
        std::uint16_t* const to = out + j * features + f * kDepth;
        if constexpr (std::is_same_v<T, float>) {
          HWY_ALIGN std::uint16_t tile[2][kDepth * kRows] = {};
          for (std::int64_t r = 0; r < kDepth; ++r) {
            if (rows[r] == nullptr) continue;
            split_row(rows[r] + f, kRows, tile[0] + r * kRows, planes > 1 ? tile[1] + r * kRows : nullptr);
          }
          for (std::int64_t p = 0; p < planes; ++p) {
            transpose_32([&](int r) HWY_ATTR { return _mm512_load_si512(tile[p] + r * kRows); }, to + p * plane);
          }
        } else {
          transpose_32(
              [&](int r)
                  HWY_ATTR { return rows[r] != nullptr ? _mm512_loadu_si512(rows[r] + f) : _mm512_setzero_si512(); },
              to);
        }
      }
    }
  }

  // Whether packed values are finite, with zeros past the last.
  static bool are_values_finite(const std::uint16_t* values, std::int64_t keys, std::int64_t features) {
    return all_finite(values, (keys + kDepth - 1) / kDepth * kDepth * features);
  }
};

}  // namespace posenc::attend::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // POSENC_AMX_PACK_INL_H
