// AMX, the matrix unit of x86-64 processors: eight tiles of 16 rows of 64 bytes. TDPBF16PS multiplies 16 rows of 32
// bf16 by 16 columns of 32 (in pairs: row k of the right tile holds depths 2k and 2k + 1 of every column) into 16 ×
// 16 f32. Tiles are loaded from operands and stored to scores directly; only queries and values, which are
// transposed, are rearranged. The unit multiplies while vector instructions compute the weights of other scores: the
// products of a tile of scores are issued in steps, and some weights are computed after each (Weighing, at the end;
// overlap-inl.h sets the order).

#ifndef POSENC_AMX_INL_H  // compiled for a single SIMD target
#define POSENC_AMX_INL_H

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>

#include "attention/cpu/exp2-inl.h"
#include "attention/cpu/pack-inl.h"
#include "attention/cpu/panel-inl.h"
#include "attention/cpu/tiles.h"
#include "attention/job.h"
#include "hwy/highway.h"
#include "kernels/cpu/convert-inl.h"
#include "kernels/cpu/machine.h"

HWY_BEFORE_NAMESPACE();
namespace posenc::attend::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

constexpr std::int64_t kMatrixRows = 32, kMatrixDepth = 32, kMatrixStep = 2;
constexpr std::int64_t kTileRows = 16;
// The queries of a panel: as many as a tile has rows. With 64 keys of 64 features, everything that the tiles of a
// panel read and write then fits in the L1 cache. With more features it cannot, and the sums, which are read and
// written for every block of keys, matter more.
constexpr std::int64_t matrix_width() { return kTileRows; }
inline std::int64_t matrix_keys(std::int64_t features) { return features <= 64 ? 64 : kKeyBlock; }
inline bool has_matrix_unit() { return kernels::cpu::machine_multiplies_bf16_matrices(); }

// One product of a left and a right operand; up to three of them are summed.
struct Term16 {
  const std::uint16_t *left, *right;
};

// --- tiles --------------------------------------------------------------------------------------------------------

// The compiler knows tiles neither as registers nor as readers of memory, hence the "memory" clobber and the tile
// numbers in the assembly text.
#define POSENC_TILE_ZERO(t) asm volatile("tilezero %%tmm" #t ::)
#define POSENC_TILE_LOAD(t, from, stride) \
  asm volatile("tileloadd (%0,%1,1), %%tmm" #t ::"r"(from), "r"(stride) : "memory")
#define POSENC_TILE_STORE(t, to, stride) \
  asm volatile("tilestored %%tmm" #t ", (%0,%1,1)" ::"r"(to), "r"(stride) : "memory")
#define POSENC_TILE_DOT(sum, left, right) asm volatile("tdpbf16ps %%tmm" #right ", %%tmm" #left ", %%tmm" #sum ::)

// Configures this thread's tiles for as long as the object lives, because another library may configure them
// differently. Meanwhile numbers below 2^-126 count as 0, as they do in the tiles: weights of that size would take a
// hundred times as long.
struct UseMatrixUnit {
  bool is_used;
  unsigned modes = 0;
  explicit UseMatrixUnit(bool a_use) : is_used(a_use) {
    if (!is_used) return;
    constexpr unsigned kResultsAreZero = 1U << 15, kOperandsAreZero = 1U << 6;
    modes = _mm_getcsr();
    _mm_setcsr(modes | kResultsAreZero | kOperandsAreZero);
    alignas(64) std::uint8_t layout[64] = {1};  // palette 1; bytes per row from 16 on, rows from 48 on
    for (int t = 0; t < 8; ++t) layout[16 + 2 * t] = 64, layout[48 + t] = kTileRows;
    asm volatile("ldtilecfg %0" ::"m"(layout));
  }
  ~UseMatrixUnit() {
    if (!is_used) return;
    _mm_setcsr(modes);
    asm volatile("tilerelease");
  }
  UseMatrixUnit(const UseMatrixUnit&) = delete;
  UseMatrixUnit& operator=(const UseMatrixUnit&) = delete;
};

// S = K Qᵀ for `groups` groups of 32 keys and the queries of a panel. Four tiles of keys are multiplied with one of
// queries at a time. If both have two planes, `terms` are the three of terms_of, and an upper tile of keys, once
// loaded, is multiplied with both planes of the queries.
template <class Work> HWY_INLINE void score_unit(const Term16* terms, std::int64_t count, std::int64_t depth,
                                                 std::int64_t groups, float* HWY_RESTRICT out, Work& work) {
  const std::int64_t n = kTileRows, half = kTileRows * kMatrixDepth, row = 64;  // bytes
#define POSENC_SCORE_PLANES(sum, at)      \
  POSENC_TILE_LOAD(6, at, row);           \
  POSENC_TILE_DOT(sum, 6, 4);             \
  POSENC_TILE_DOT(sum, 6, 5);             \
  POSENC_TILE_LOAD(7, (at) + lower, row); \
  POSENC_TILE_DOT(sum, 7, 4);             \
  work.step()
  for (std::int64_t g = 0; g < groups; g += 2) {
    const bool is_whole = g + 2 <= groups;
    POSENC_TILE_ZERO(0);
    POSENC_TILE_ZERO(1);
    if (is_whole) {
      POSENC_TILE_ZERO(2);
      POSENC_TILE_ZERO(3);
    }
    if (count == 3) {
      const std::uint16_t* left = terms[0].left + g * kMatrixRows * depth;
      const std::uint16_t *right = terms[0].right, *lower_right = terms[2].right;
      const std::int64_t lower = terms[1].left - terms[0].left, second = kMatrixRows * depth;
      for (std::int64_t k = 0; k < depth; k += kMatrixDepth) {
        POSENC_TILE_LOAD(4, right, row);
        POSENC_TILE_LOAD(5, lower_right, row);
        POSENC_SCORE_PLANES(0, left);
        POSENC_SCORE_PLANES(1, left + half);
        if (is_whole) {
          POSENC_SCORE_PLANES(2, left + second);
          POSENC_SCORE_PLANES(3, left + second + half);
        }
        left += kMatrixRows * kMatrixDepth;
        right += kMatrixDepth * n;
        lower_right += kMatrixDepth * n;
      }
    }
    for (std::int64_t term = 0; term < count && count < 3; ++term) {
      const std::uint16_t *left = terms[term].left + g * kMatrixRows * depth, *second = left + kMatrixRows * depth;
      const std::uint16_t* right = terms[term].right;
      for (std::int64_t k = 0; k < depth; k += kMatrixDepth) {
        POSENC_TILE_LOAD(4, right, row);
        POSENC_TILE_LOAD(6, left, row);
        POSENC_TILE_DOT(0, 6, 4);
        POSENC_TILE_LOAD(7, left + half, row);
        POSENC_TILE_DOT(1, 7, 4);
        work.step();
        left += kMatrixRows * kMatrixDepth;
        right += kMatrixDepth * n;
        if (!is_whole) continue;
        POSENC_TILE_LOAD(6, second, row);
        POSENC_TILE_DOT(2, 6, 4);
        POSENC_TILE_LOAD(7, second + half, row);
        POSENC_TILE_DOT(3, 7, 4);
        work.step();
        second += kMatrixRows * kMatrixDepth;
      }
    }
    float* const to = out + g * kMatrixRows * n;
    POSENC_TILE_STORE(0, to, row);
    POSENC_TILE_STORE(1, to + kTileRows * n, row);
    if (is_whole) {
      POSENC_TILE_STORE(2, to + 2 * kTileRows * n, row);
      POSENC_TILE_STORE(3, to + 3 * kTileRows * n, row);
    }
  }
#undef POSENC_SCORE_PLANES
}
HWY_INLINE std::int64_t steps_of_scores(std::int64_t count, std::int64_t depth, std::int64_t groups) {
  return groups * std::min(count, std::int64_t{2}) * (depth / kMatrixDepth);
}

// O += Vᵀ Pᵀ for keys `begin` to `end`, multiples of 32, of a block. `weights`: as written by split_pair.
// `planes` of values, `plane` elements apart; the lower one is multiplied only with the upper weights.
template <class Work> HWY_INLINE void add_unit(const std::uint16_t* values, std::int64_t planes, std::int64_t plane,
                                               const float* weights, std::int64_t begin, std::int64_t end,
                                               std::int64_t features, float* HWY_RESTRICT sums, Work& work) {
  const std::int64_t n = kTileRows, half = kTileRows * kMatrixDepth, row = 64, pair = 2 * row;  // bytes
  const std::int64_t group = kMatrixRows * kMatrixDepth;
#define POSENC_ADD_PRODUCTS(sum, tile, from)     \
  POSENC_TILE_LOAD(tile, from, row);             \
  POSENC_TILE_DOT(sum, tile, 4);                 \
  POSENC_TILE_DOT(sum, tile, 5);                 \
  if (planes > 1) {                              \
    POSENC_TILE_LOAD(tile, (from) + plane, row); \
    POSENC_TILE_DOT(sum, tile, 4);               \
  }                                              \
  work.step()
  for (std::int64_t f = 0; f < features; f += 2 * kMatrixRows) {
    const bool is_whole = f + 2 * kMatrixRows <= features;
    float* const to = sums + f * n;
    POSENC_TILE_LOAD(0, to, row);
    POSENC_TILE_LOAD(1, to + kTileRows * n, row);
    if (is_whole) {
      POSENC_TILE_LOAD(2, to + 2 * kTileRows * n, row);
      POSENC_TILE_LOAD(3, to + 3 * kTileRows * n, row);
    }
    for (std::int64_t j = begin; j < end; j += kMatrixDepth) {
      const float* const at = weights + j * n;
      const std::uint16_t* const left = values + j * features + f * kMatrixDepth;
      POSENC_TILE_LOAD(4, at, pair);
      POSENC_TILE_LOAD(5, at + n, pair);
      POSENC_ADD_PRODUCTS(0, 6, left);
      POSENC_ADD_PRODUCTS(1, 7, left + half);
      if (!is_whole) continue;
      POSENC_ADD_PRODUCTS(2, 6, left + group);
      POSENC_ADD_PRODUCTS(3, 7, left + group + half);
    }
    POSENC_TILE_STORE(0, to, row);
    POSENC_TILE_STORE(1, to + kTileRows * n, row);
    if (is_whole) {
      POSENC_TILE_STORE(2, to + 2 * kTileRows * n, row);
      POSENC_TILE_STORE(3, to + 3 * kTileRows * n, row);
    }
  }
#undef POSENC_ADD_PRODUCTS
}
HWY_INLINE std::int64_t steps_of_values(std::int64_t keys, std::int64_t features) {
  return features / kTileRows * (keys / kMatrixDepth);
}

// --- operands -----------------------------------------------------------------------------------------------------

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
// A row of f32 as 32 bf16 in one plane or two, padded with zeros.
HWY_INLINE void split_row(const float* x, std::int64_t count, std::uint16_t* high, std::uint16_t* low) {
  HWY_ALIGN float padded[kMatrixDepth] = {};
  if (count < kMatrixDepth) {
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

// 16 rows of 32 bf16 as 16 pairs of depths of 16 columns: out[pair · step + 2 · row + depth mod 2].
HWY_INLINE void place_columns(const std::uint16_t* rows, std::int64_t count, std::int64_t step, std::uint16_t* out) {
  if (count == kTileRows) {
    __m512i r[16];
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i) r[i] = _mm512_load_si512(rows + kMatrixDepth * i);
    transpose_words(r);
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i) _mm512_storeu_si512(out + i * step, r[i]);
    return;
  }
  for (std::int64_t r = 0; r < count; ++r) {
    for (std::int64_t k = 0; k < kMatrixDepth; ++k) out[k / 2 * step + 2 * r + k % 2] = rows[kMatrixDepth * r + k];
  }
}

// Packs queries, [count, features] f32, as the columns of a panel; missing columns are 0.
inline void pack_columns_16(const float* rows, std::int64_t count, std::int64_t features, std::int64_t depth,
                            std::int64_t planes, std::int64_t plane, std::uint16_t* out) {
  const std::int64_t width = matrix_width(), n = kTileRows;
  HWY_ALIGN std::uint16_t tile[2][kTileRows * kMatrixDepth];
  for (std::int64_t c = 0; c < width; c += n) {
    for (std::int64_t k = 0; k < depth; k += kMatrixDepth) {
      for (std::int64_t r = 0; r < n; ++r) {
        std::uint16_t* const high = tile[0] + r * kMatrixDepth;
        std::uint16_t* const low = tile[1] + r * kMatrixDepth;
        if (c + r < count) {
          split_row(rows + (c + r) * features + k, std::min(kMatrixDepth, features - k), high,
                    planes > 1 ? low : nullptr);
        } else {
          std::fill_n(high, kMatrixDepth, std::uint16_t{0});
          std::fill_n(low, kMatrixDepth, std::uint16_t{0});
        }
      }
      for (std::int64_t p = 0; p < planes; ++p) {
        place_columns(tile[p], n, 2 * width, out + p * plane + k * width + 2 * c);
      }
    }
  }
}

// The same for bf16 queries that are contiguous in memory, features a multiple of 32.
inline void copy_columns_16(const HeadTensor<const void>& x, std::int64_t b, std::int64_t h, std::int64_t begin,
                            std::int64_t end, std::uint16_t* out) {
  const std::int64_t width = matrix_width();
  for (std::int64_t c = 0; c < width; c += kTileRows) {
    const std::uint16_t* rows[kTileRows];
    for (std::int64_t r = 0; r < kTileRows; ++r) {
      rows[r] = begin + c + r < end ? x.row<std::uint16_t>(b, h, begin + c + r) : nullptr;
    }
    for (std::int64_t k = 0; k < x.features; k += kMatrixDepth) {
      __m512i r[kTileRows];
#pragma GCC unroll 16
      for (int i = 0; i < kTileRows; ++i) {
        r[i] = rows[i] != nullptr ? _mm512_loadu_si512(rows[i] + k) : _mm512_setzero_si512();
      }
      transpose_words(r);
#pragma GCC unroll 16
      for (int i = 0; i < kTileRows; ++i) {
        _mm512_storeu_si512(out + (k / 2 + i) * 2 * width + 2 * c, r[i]);
      }
    }
  }
}

// Packs keys, [count, features] f32, in groups of 32 rows; missing rows are 0.
inline void pack_groups_16(const float* rows, std::int64_t count, std::int64_t features, std::int64_t depth,
                           std::int64_t planes, std::int64_t plane, std::uint16_t* out) {
  for (std::int64_t t = 0; t < count; t += kMatrixRows, out += kMatrixRows * depth) {
    for (std::int64_t k = 0; k < depth; k += kMatrixDepth) {
      for (std::int64_t r = 0; r < kMatrixRows; ++r) {
        std::uint16_t* const high = out + k * kMatrixRows + r * kMatrixDepth;
        if (t + r < count) {
          split_row(rows + (t + r) * features + k, std::min(kMatrixDepth, features - k), high,
                    planes > 1 ? high + plane : nullptr);
        } else {
          for (std::int64_t p = 0; p < planes; ++p) std::fill_n(high + p * plane, kMatrixDepth, std::uint16_t{0});
        }
      }
    }
  }
}
// The same for bf16 keys that are contiguous in memory, features a multiple of 32: a copy.
inline void copy_groups_16(const HeadTensor<const void>& x, std::int64_t b, std::int64_t h, std::int64_t begin,
                           std::int64_t end, std::uint16_t* out) {
  const std::int64_t groups = (end - begin + kMatrixRows - 1) / kMatrixRows;
  for (std::int64_t r = 0; r < groups * kMatrixRows; ++r) {
    const auto* const row = begin + r < end ? x.row<std::uint16_t>(b, h, begin + r) : nullptr;
    std::uint16_t* to = out + r / kMatrixRows * kMatrixRows * x.features + r % kMatrixRows * kMatrixDepth;
    for (std::int64_t k = 0; k < x.features; k += kMatrixDepth, to += kMatrixRows * kMatrixDepth) {
      if (row != nullptr) {
        std::memcpy(to, row + k, 2 * kMatrixDepth);
      } else {
        std::memset(to, 0, 2 * kMatrixDepth);
      }
    }
  }
}

// Transposes 32 × 32. `row`(r): 32 numbers as a vector.
template <class Row> HWY_INLINE void transpose_32(const Row& row, std::uint16_t* HWY_RESTRICT out) {
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
template <class Row> HWY_INLINE void pack_values_16(const Row& row, std::int64_t keys, std::int64_t features,
                                                    std::int64_t planes, std::int64_t plane, std::uint16_t* out) {
  using T = std::remove_cvref_t<decltype(*row(0))>;
  for (std::int64_t j = 0; j < keys; j += kMatrixDepth) {
    const T* rows[kMatrixDepth];
    for (std::int64_t r = 0; r < kMatrixDepth; ++r) rows[r] = row(j + r);
    for (std::int64_t f = 0; f < features; f += kMatrixRows) {
      std::uint16_t* const to = out + j * features + f * kMatrixDepth;
      if constexpr (std::is_same_v<T, float>) {
        HWY_ALIGN std::uint16_t tile[2][kMatrixDepth * kMatrixRows] = {};
        for (std::int64_t r = 0; r < kMatrixDepth; ++r) {
          if (rows[r] == nullptr) continue;
          split_row(rows[r] + f, kMatrixRows, tile[0] + r * kMatrixRows,
                    planes > 1 ? tile[1] + r * kMatrixRows : nullptr);
        }
        for (std::int64_t p = 0; p < planes; ++p) {
          transpose_32([&](int r) HWY_ATTR { return _mm512_load_si512(tile[p] + r * kMatrixRows); }, to + p * plane);
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

// --- results ------------------------------------------------------------------------------------------------------

// The first lanes() columns of a panel of sums, each times its factor, as rows: out[column · stride + feature].
HWY_INLINE void columns_as_rows(const float* HWY_RESTRICT sums, std::int64_t width, const float* HWY_RESTRICT by,
                                std::int64_t features, float* HWY_RESTRICT out, std::int64_t stride) {
  const std::int64_t n = kTileRows;
  std::int64_t f = 0;
  const __m512 factor = _mm512_loadu_ps(by);
  for (; f + 16 <= features; f += 16) {
    __m512i r[16];
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i) {
      r[i] = _mm512_castps_si512(_mm512_mul_ps(_mm512_loadu_ps(sums + (f + i) * width), factor));
    }
    transpose_words(r);
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i) _mm512_storeu_si512(out + i * stride + f, r[i]);
  }
  for (; f < features; ++f) {
    for (std::int64_t i = 0; i < n; ++i) out[i * stride + f] = sums[f * width + i] * by[i];
  }
}

// --- weights ------------------------------------------------------------------------------------------------------

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
  const std::int64_t width = matrix_width();
  const auto half = [&](std::int64_t row) HWY_ATTR {  // of the word that two keys share
    const auto word = std::bit_cast<std::uint32_t>(scores[row * width + i]);
    return std::bit_cast<float>(j % 2 == 0 ? word << 16 : word & 0xFFFF0000U);
  };
  return half(j / 2 * 2) + half(j / 2 * 2 + 1);
}

}  // namespace posenc::attend::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // POSENC_AMX_INL_H
