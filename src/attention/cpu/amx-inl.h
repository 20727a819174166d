// The matrix unit of an x86-64 processor, AMX: eight tiles of 16 rows of 64 bytes; TDPBF16PS multiplies 16 rows of 32 bf16 with
// 16 columns of 32 (as pairs: row k of the right tile has depths 2k and 2k + 1 of every column), into 16 × 16 f32.
// Tiles are read and written where operands and scores lie; nothing is rearranged but values, which are transposed, and queries.
// The unit multiplies while vectors make weights of other scores: the products of a tile of scores are written as steps, after
// each of which some weights are made (Weighing, at the end; the order is that of overlap-inl.h).

#ifndef POSENC_AMX_INL_H  // compiled for one SIMD target alone
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
constexpr std::int64_t kMatrixKeys = kKeyBlock;
inline bool has_matrix_unit() { return kernels::cpu::machine_multiplies_bf16_matrices(); }

// One product of a left and a right operand, of which a few are added.
struct Term16 {
  const std::uint16_t *left, *right;
};

// --- tiles --------------------------------------------------------------------------------------------------------

// The compiler knows tiles neither as registers nor as readers of memory: hence "memory", and their numbers in the text.
#define POSENC_TILE_ZERO(t) asm volatile("tilezero %%tmm" #t ::)
#define POSENC_TILE_LOAD(t, from, stride) \
  asm volatile("tileloadd (%0,%1,1), %%tmm" #t ::"r"(from), "r"(stride) : "memory")
#define POSENC_TILE_STORE(t, to, stride) \
  asm volatile("tilestored %%tmm" #t ", (%0,%1,1)" ::"r"(to), "r"(stride) : "memory")
#define POSENC_TILE_DOT(sum, left, right) asm volatile("tdpbf16ps %%tmm" #right ", %%tmm" #left ", %%tmm" #sum ::)

// Configures the tiles of this thread while it lives: another library may use them in another way.
struct UseMatrixUnit {
  bool is_used;
  explicit UseMatrixUnit(bool a_use) : is_used(a_use) {
    if (!is_used) return;
    alignas(64) std::uint8_t layout[64] = {1};  // palette 1; bytes of a row from 16 on, rows from 48 on
    for (int t = 0; t < 8; ++t) layout[16 + 2 * t] = 64, layout[48 + t] = kTileRows;
    asm volatile("ldtilecfg %0" ::"m"(layout));
  }
  ~UseMatrixUnit() {
    if (is_used) asm volatile("tilerelease");
  }
  UseMatrixUnit(const UseMatrixUnit&) = delete;
  UseMatrixUnit& operator=(const UseMatrixUnit&) = delete;
};

// S = K Qᵀ for `groups` groups of 32 keys and the queries of a panel. Four tiles of keys meet one of queries at a time.
template <class Work> HWY_INLINE void score_unit(const Term16* terms, std::int64_t count, std::int64_t depth,
                                                 std::int64_t groups, float* HWY_RESTRICT out, Work& work) {
  const std::int64_t n = kTileRows, width = kPanelVectors * n, half = kTileRows * kMatrixDepth;
  const std::int64_t row = width * static_cast<std::int64_t>(sizeof(float)), left_row = 64;  // bytes
  for (std::int64_t g = 0; g < groups; g += 2) {
    const bool is_whole = g + 2 <= groups;
    for (std::int64_t c = 0; c < kPanelVectors; ++c) {
      POSENC_TILE_ZERO(0);
      POSENC_TILE_ZERO(1);
      if (is_whole) {
        POSENC_TILE_ZERO(2);
        POSENC_TILE_ZERO(3);
      }
      for (std::int64_t term = 0; term < count; ++term) {
        const std::uint16_t *left = terms[term].left + g * kMatrixRows * depth, *second = left + kMatrixRows * depth;
        const std::uint16_t* right = terms[term].right + 2 * n * c;
        for (std::int64_t k = 0; k < depth; k += kMatrixDepth) {
          POSENC_TILE_LOAD(4, right, row);
          POSENC_TILE_LOAD(6, left, left_row);
          POSENC_TILE_DOT(0, 6, 4);
          POSENC_TILE_LOAD(7, left + half, left_row);
          POSENC_TILE_DOT(1, 7, 4);
          work.step();
          left += kMatrixRows * kMatrixDepth;
          right += kMatrixDepth * width;
          if (!is_whole) continue;
          POSENC_TILE_LOAD(6, second, left_row);
          POSENC_TILE_DOT(2, 6, 4);
          POSENC_TILE_LOAD(7, second + half, left_row);
          POSENC_TILE_DOT(3, 7, 4);
          work.step();
          second += kMatrixRows * kMatrixDepth;
        }
      }
      float* const to = out + g * kMatrixRows * width + n * c;
      POSENC_TILE_STORE(0, to, row);
      POSENC_TILE_STORE(1, to + kTileRows * width, row);
      if (is_whole) {
        POSENC_TILE_STORE(2, to + 2 * kTileRows * width, row);
        POSENC_TILE_STORE(3, to + 3 * kTileRows * width, row);
      }
    }
  }
}
HWY_INLINE std::int64_t steps_of_scores(std::int64_t count, std::int64_t depth, std::int64_t groups) {
  return kPanelVectors * groups * count * (depth / kMatrixDepth);
}

// O += Vᵀ Pᵀ for keys `begin` to `end`, multiples of 32, of a block. `weights`: as split_pair has left them.
// `planes` of values, `plane` elements apart; the lower ones are multiplied with the upper weights alone.
template <class Work> HWY_INLINE void add_unit(const std::uint16_t* values, std::int64_t planes, std::int64_t plane,
                                               const float* weights, std::int64_t begin, std::int64_t end,
                                               std::int64_t features, float* HWY_RESTRICT sums, Work& work) {
  const std::int64_t n = kTileRows, width = kPanelVectors * n, half = kTileRows * kMatrixDepth;
  const std::int64_t row = width * static_cast<std::int64_t>(sizeof(float)), pair = 2 * row, left_row = 64;  // bytes
  const std::int64_t group = kMatrixRows * kKeyBlock;
#define POSENC_ADD_PRODUCTS(sum, tile, from)          \
  POSENC_TILE_LOAD(tile, from, left_row);             \
  POSENC_TILE_DOT(sum, tile, 4);                      \
  POSENC_TILE_DOT(sum, tile, 5);                      \
  if (planes > 1) {                                   \
    POSENC_TILE_LOAD(tile, (from) + plane, left_row); \
    POSENC_TILE_DOT(sum, tile, 4);                    \
  }                                                   \
  work.step()
  for (std::int64_t c = 0; c < kPanelVectors; ++c) {
    for (std::int64_t f = 0; f < features; f += 2 * kMatrixRows) {
      const bool is_whole = f + 2 * kMatrixRows <= features;
      float* const to = sums + f * width + n * c;
      POSENC_TILE_LOAD(0, to, row);
      POSENC_TILE_LOAD(1, to + kTileRows * width, row);
      if (is_whole) {
        POSENC_TILE_LOAD(2, to + 2 * kTileRows * width, row);
        POSENC_TILE_LOAD(3, to + 3 * kTileRows * width, row);
      }
      for (std::int64_t j = begin; j < end; j += kMatrixDepth) {
        const float* const at = weights + j * width + n * c;
        const std::uint16_t* const left = values + f * kKeyBlock + j * kMatrixRows;
        POSENC_TILE_LOAD(4, at, pair);
        POSENC_TILE_LOAD(5, at + width, pair);
        POSENC_ADD_PRODUCTS(0, 6, left);
        POSENC_ADD_PRODUCTS(1, 7, left + half);
        if (!is_whole) continue;
        POSENC_ADD_PRODUCTS(2, 6, left + group);
        POSENC_ADD_PRODUCTS(3, 7, left + group + half);
      }
      POSENC_TILE_STORE(0, to, row);
      POSENC_TILE_STORE(1, to + kTileRows * width, row);
      if (is_whole) {
        POSENC_TILE_STORE(2, to + 2 * kTileRows * width, row);
        POSENC_TILE_STORE(3, to + 3 * kTileRows * width, row);
      }
    }
  }
#undef POSENC_ADD_PRODUCTS
}
HWY_INLINE std::int64_t steps_of_values(std::int64_t keys, std::int64_t features) {
  return kPanelVectors * (features / kTileRows) * (keys / kMatrixDepth);
}

// --- operands -----------------------------------------------------------------------------------------------------

// A row of f32 as 32 bf16 in one plane or two; zeros past the last.
HWY_INLINE void split_row(const float* x, std::int64_t count, std::uint16_t* high, std::uint16_t* low) {
  const DF d;
  const hn::RebindToUnsigned<DF> du;
  const hn::Rebind<std::uint16_t, DF> d16;
  HWY_ALIGN float padded[kMatrixDepth] = {};
  if (count < kMatrixDepth) {
    std::copy(x, x + count, padded);
    x = padded;
  }
  for (std::int64_t f = 0; f < kMatrixDepth; f += lanes()) {
    const VF whole = hn::LoadU(d, x + f);
    const auto top = convert::to_bf16_lanes(d, whole);
    const VF upper = hn::BitCast(d, hn::ShiftLeft<16>(top));
    hn::StoreU(hn::TruncateTo(d16, top), d16, high + f);
    if (low == nullptr) continue;
    // nothing is left of what is not finite
    const auto is_finite = hn::Lt(hn::Abs(upper), hn::Set(d, -kNone));
    const VF rest = hn::IfThenElseZero(is_finite, hn::Sub(whole, upper));
    hn::StoreU(hn::TruncateTo(d16, convert::to_bf16_lanes(d, rest)), d16, low + f);
  }
  (void)du;
}

// 16 × 16 words of 32 bits, rows as columns.
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

// 16 rows of 32 bf16, as 16 pairs of depths of 16 columns: out[pair · step + 2 · row + depth mod 2].
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

// Queries, [count, features] f32, as the columns of a panel; columns past the last are 0.
inline void pack_columns_16(const float* rows, std::int64_t count, std::int64_t features, std::int64_t depth,
                            std::int64_t planes, std::int64_t plane, std::uint16_t* out) {
  const std::int64_t width = panel_width(), n = std::min(lanes(), kTileRows);
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

// The same of queries that are bf16 and lie side by side in memory, features a multiple of 32.
inline void copy_columns_16(const HeadTensor<const void>& x, std::int64_t b, std::int64_t h, std::int64_t begin,
                            std::int64_t end, std::uint16_t* out) {
  const std::int64_t width = panel_width();
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

// Keys, [count, features] f32, in groups of 32 rows; rows past the last are 0.
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
// The same of keys that are bf16 and lie side by side in memory, features a multiple of 32: a copy.
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

// 32 rows of 32, as columns. `row`(r): 32 numbers as a vector.
template <class Row> HWY_INLINE void transpose_32(const Row& row, std::uint16_t* HWY_RESTRICT out) {
  alignas(64) static constexpr std::uint16_t kPairs[2][32] = {
      {0, 32, 1, 33, 2,  34, 3,  35, 4,  36, 5,  37, 6,  38, 7,  39,
       8, 40, 9, 41, 10, 42, 11, 43, 12, 44, 13, 45, 14, 46, 15, 47},
      {16, 48, 17, 49, 18, 50, 19, 51, 20, 52, 21, 53, 22, 54, 23, 55,
       24, 56, 25, 57, 26, 58, 27, 59, 28, 60, 29, 61, 30, 62, 31, 63}};
  for (int half = 0; half < 2; ++half) {  // pairs of rows as words, 16 columns of them
    const __m512i pairs = _mm512_load_si512(kPairs[half]);
    __m512i r[16];
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i) r[i] = _mm512_permutex2var_epi16(row(2 * i), pairs, row(2 * i + 1));
    transpose_words(r);
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i) _mm512_store_si512(out + 32 * (16 * half + i), r[i]);
  }
}
// Values as groups of 32 features whose depth are the keys of a block; what lies past the last key is 0.
// `row`(j): where the values of key j begin, [features] f32 or bf16; null past the last.
template <class Row> HWY_INLINE void pack_values_16(const Row& row, std::int64_t keys, std::int64_t features,
                                                    std::int64_t planes, std::int64_t plane, std::uint16_t* out) {
  using T = std::remove_cvref_t<decltype(*row(0))>;
  for (std::int64_t j = 0; j < keys; j += kMatrixDepth) {
    const T* rows[kMatrixDepth];
    for (std::int64_t r = 0; r < kMatrixDepth; ++r) rows[r] = row(j + r);
    for (std::int64_t f = 0; f < features; f += kMatrixRows) {
      std::uint16_t* const to = out + f * kKeyBlock + j * kMatrixRows;
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

// The first lanes() columns of a panel of sums, times a factor each, as rows: out[column · stride + feature].
HWY_INLINE void columns_as_rows(const float* HWY_RESTRICT sums, const float* HWY_RESTRICT by, std::int64_t features,
                                float* HWY_RESTRICT out, std::int64_t stride) {
  const std::int64_t n = lanes(), width = panel_width();
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

// While tiles multiply, one of the two ports for vectors has no multiplications, maxima or powers, only sums, shuffles and logic:
// hence the choice of instructions below.

// 2^x · (1 + 2^-16), within 2.7e-6 of itself; 0 for −inf, NaN for NaN. The fraction is x − ⌊x⌋, the power VSCALEF's.
constexpr float kWeightFactor = 1 + 0x1p-16f;
HWY_INLINE __m512 weight_at(__m512 x) {
  const __m512 f = _mm512_reduce_ps(x, 0x09);
  __m512 p = _mm512_fmadd_ps(_mm512_set1_ps(0.0135341678484f * kWeightFactor), f,
                             _mm512_set1_ps(0.0520114607758f * kWeightFactor));
  p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(0.241442756796f * kWeightFactor));
  p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(0.693003834484f * kWeightFactor));
  p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(1.00000259337f * kWeightFactor));
  return _mm512_scalef_ps(p, x);
}
// The upper halves of two rows, column by column: the second's where it is, the first's below.
HWY_INLINE __m512i upper_halves(__m512 first, __m512 second, __m512i top) {
  const __m512i below = _mm512_bsrli_epi128(_mm512_castps_si512(first), 2);
  return _mm512_ternarylogic_epi32(below, _mm512_castps_si512(second), top, 0xD8);  // second where top, else below
}
// The weights of two keys, p and q, as two planes of bf16: the upper one where the first key's scores were, the lower one in place
// of the second's. Both are cut, not rounded, of numbers that are 2^-16 too large: then their sum is within 2^-16 of the weight.
HWY_INLINE void split_pair(__m512 p, __m512 q, __m512i top, float* upper, float* lower) {
  const __m512 p_top = _mm512_castsi512_ps(_mm512_and_si512(_mm512_castps_si512(p), top));
  const __m512 q_top = _mm512_castsi512_ps(_mm512_and_si512(_mm512_castps_si512(q), top));
  _mm512_store_si512(upper, upper_halves(p, q, top));
  _mm512_store_si512(lower, upper_halves(_mm512_sub_ps(p, p_top), _mm512_sub_ps(q, q_top), top));
}

// P = 2^(factor · S − base) in place of S, and its sums, two keys at a time: some for each step of products between which it is
// called.
struct Weighing {
  static constexpr std::int64_t kWhole = 1 << 16;
  float* s = nullptr;  // the next two keys, aligned
  std::int64_t left = 0, due = 0, rate = 0;
  __m512 factor, b0, b1, b2, t0, t1, t2;

  HWY_INLINE Weighing(float* scores, std::int64_t keys, float a_factor, const float* base, std::int64_t steps)
      : s(scores),
        left(keys / 2),
        rate(keys / 2 * kWhole / std::max(steps, std::int64_t{1}) + 1),
        factor(_mm512_set1_ps(a_factor)),
        b0(_mm512_loadu_ps(base)),
        b1(_mm512_loadu_ps(base + 16)),
        b2(_mm512_loadu_ps(base + 32)),
        t0(_mm512_setzero_ps()),
        t1(t0),
        t2(t0) {}
  HWY_INLINE void of_two(float* at, __m512 base, __m512& total) {
    const __m512i top = _mm512_set1_epi32(static_cast<int>(0xFFFF0000U));
    const __m512 p = weight_at(_mm512_fmsub_ps(_mm512_load_ps(at), factor, base));
    const __m512 q = weight_at(_mm512_fmsub_ps(_mm512_load_ps(at + 48), factor, base));
    split_pair(p, q, top, at, at + 48);
    total = _mm512_add_ps(total, _mm512_add_ps(p, q));
  }
  HWY_INLINE void two_keys() {
    of_two(s, b0, t0);
    of_two(s + 16, b1, t1);
    of_two(s + 32, b2, t2);
    s += 96;
    --left;
  }
  HWY_INLINE void step() {
    due += rate;
    while (due >= kWhole && left > 0) {
      two_keys();
      due -= kWhole;
    }
  }
  HWY_INLINE void finish() {
    while (left > 0) two_keys();
  }
  // Whether `base` was near enough to the largest scores: no weight is above 2^15.
  HWY_INLINE bool are_small() const {
    const __m512 most = _mm512_set1_ps(0x1p15f);
    return (_mm512_cmp_ps_mask(t0, most, _CMP_LE_OQ) & _mm512_cmp_ps_mask(t1, most, _CMP_LE_OQ) &
            _mm512_cmp_ps_mask(t2, most, _CMP_LE_OQ)) == 0xFFFF;
  }
  HWY_INLINE void add_to(float* row_sum) const {
    const __m512 by = _mm512_set1_ps(1 / kWeightFactor);
    _mm512_storeu_ps(row_sum, _mm512_fmadd_ps(t0, by, _mm512_loadu_ps(row_sum)));
    _mm512_storeu_ps(row_sum + 16, _mm512_fmadd_ps(t1, by, _mm512_loadu_ps(row_sum + 16)));
    _mm512_storeu_ps(row_sum + 32, _mm512_fmadd_ps(t2, by, _mm512_loadu_ps(row_sum + 32)));
  }
};
// Nothing meanwhile.
struct NoWork {
  HWY_INLINE void step() {}
};

// A weight of key j and query i, after its two planes.
HWY_INLINE float weight_in_place(const float* scores, std::int64_t j, std::int64_t i) {
  const std::int64_t width = kPanelVectors * kTileRows;
  const auto half = [&](std::int64_t row) HWY_ATTR {  // of the word that two keys share
    const auto word = std::bit_cast<std::uint32_t>(scores[row * width + i]);
    return std::bit_cast<float>(j % 2 == 0 ? word << 16 : word & 0xFFFF0000U);
  };
  return half(j / 2 * 2) + half(j / 2 * 2 + 1);
}

}  // namespace posenc::attend::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // POSENC_AMX_INL_H
