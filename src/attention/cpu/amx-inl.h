// The matrix unit of an x86-64 processor, AMX: eight tiles of 16 rows of 64 bytes; TDPBF16PS multiplies 16 rows of 32 bf16 with
// 16 columns of 32 (as pairs: row k of the right tile has depths 2k and 2k + 1 of every column), into 16 × 16 f32.
// A product has 32 rows and the 48 columns of a panel: six tiles of sums, one of the left operand, one of the right. Tiles are
// read and written where operands and scores lie; nothing is rearranged but values, which are transposed, and queries.

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
constexpr std::int64_t kWeightPlanes = 2;
constexpr std::int64_t kTileRows = 16;
constexpr std::int64_t kMatrixKeys = kKeyBlock;

inline bool has_matrix_unit() { return kernels::cpu::machine_multiplies_bf16_matrices(); }

// One product of a left and a right operand, of which a few are added.
struct Term16 {
  const std::uint16_t *left, *right;
};

// --- tiles --------------------------------------------------------------------------------------------------------

// The compiler knows tiles neither as registers nor as readers of memory: hence "memory", and their numbers in the text.
#define POSENC_TILE_ZERO(t) asm volatile("tilezero %%tmm" #t ::: "memory")
#define POSENC_TILE_LOAD(t, from, stride) \
  asm volatile("tileloadd (%0,%1,1), %%tmm" #t ::"r"(from), "r"(stride) : "memory")
#define POSENC_TILE_STORE(t, to, stride) \
  asm volatile("tilestored %%tmm" #t ", (%0,%1,1)" ::"r"(to), "r"(stride) : "memory")
#define POSENC_TILE_DOT(sum, left, right) \
  asm volatile("tdpbf16ps %%tmm" #right ", %%tmm" #left ", %%tmm" #sum ::: "memory")

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

// out[m, :] = (kAdd ? out[m, :] : 0) + Σ_terms Σ_k left[k, m] · right[k, :]   for m < 32 and a panel's columns
template <bool kAdd>
HWY_NOINLINE void multiply_16(const Term16* terms, std::int64_t count, std::int64_t depth, float* HWY_RESTRICT out) {
  const std::int64_t n = lanes(), width = panel_width();
  const std::int64_t row = width * static_cast<std::int64_t>(sizeof(float)), left_row = 64;  // bytes
  float* const lower = out + kTileRows * width;
  if constexpr (kAdd) {
    POSENC_TILE_LOAD(0, out, row);
    POSENC_TILE_LOAD(1, out + n, row);
    POSENC_TILE_LOAD(2, out + 2 * n, row);
    POSENC_TILE_LOAD(3, lower, row);
    POSENC_TILE_LOAD(4, lower + n, row);
    POSENC_TILE_LOAD(5, lower + 2 * n, row);
  } else {
    POSENC_TILE_ZERO(0);
    POSENC_TILE_ZERO(1);
    POSENC_TILE_ZERO(2);
    POSENC_TILE_ZERO(3);
    POSENC_TILE_ZERO(4);
    POSENC_TILE_ZERO(5);
  }
  for (std::int64_t term = 0; term < count; ++term) {
    const std::uint16_t *left = terms[term].left, *right = terms[term].right;
    for (std::int64_t k = 0; k < depth; k += kMatrixDepth) {
      POSENC_TILE_LOAD(6, left, left_row);
      POSENC_TILE_LOAD(7, right, row);
      POSENC_TILE_DOT(0, 6, 7);
      POSENC_TILE_LOAD(7, right + 2 * n, row);
      POSENC_TILE_DOT(1, 6, 7);
      POSENC_TILE_LOAD(7, right + 4 * n, row);
      POSENC_TILE_DOT(2, 6, 7);
      POSENC_TILE_LOAD(6, left + kTileRows * kMatrixDepth, left_row);
      POSENC_TILE_DOT(5, 6, 7);
      POSENC_TILE_LOAD(7, right + 2 * n, row);
      POSENC_TILE_DOT(4, 6, 7);
      POSENC_TILE_LOAD(7, right, row);
      POSENC_TILE_DOT(3, 6, 7);
      left += kMatrixRows * kMatrixDepth;
      right += kMatrixDepth * width;
    }
  }
  POSENC_TILE_STORE(0, out, row);
  POSENC_TILE_STORE(1, out + n, row);
  POSENC_TILE_STORE(2, out + 2 * n, row);
  POSENC_TILE_STORE(3, lower, row);
  POSENC_TILE_STORE(4, lower + n, row);
  POSENC_TILE_STORE(5, lower + 2 * n, row);
}

// Scores of 64 features, one product for each: the queries of a panel stay in six tiles for all groups of keys. Returns whether
// it was done.
inline bool score_groups_16(const std::uint16_t* left, const std::uint16_t* right, std::int64_t terms,
                            std::int64_t depth, std::int64_t groups, float* HWY_RESTRICT out) {
  if (terms != 1 || depth != 2 * kMatrixDepth) return false;
  const std::int64_t n = lanes(), width = panel_width();
  const std::int64_t row = width * static_cast<std::int64_t>(sizeof(float)), left_row = 64;
  const std::uint16_t* const second = right + kMatrixDepth * width;
  POSENC_TILE_LOAD(2, right, row);
  POSENC_TILE_LOAD(3, right + 2 * n, row);
  POSENC_TILE_LOAD(4, right + 4 * n, row);
  POSENC_TILE_LOAD(5, second, row);
  POSENC_TILE_LOAD(6, second + 2 * n, row);
  POSENC_TILE_LOAD(7, second + 4 * n, row);
#define POSENC_SCORES(c, first_tile, second_tile)                   \
  POSENC_TILE_ZERO(0);                                              \
  POSENC_TILE_LOAD(1, left, left_row);                              \
  POSENC_TILE_DOT(0, 1, first_tile);                                \
  POSENC_TILE_LOAD(1, left + kMatrixRows * kMatrixDepth, left_row); \
  POSENC_TILE_DOT(0, 1, second_tile);                               \
  POSENC_TILE_STORE(0, out + (c)*n, row)
  for (std::int64_t g = 0; g < 2 * groups; ++g, out += kTileRows * width) {
    POSENC_SCORES(0, 2, 5);
    POSENC_SCORES(1, 3, 6);
    POSENC_SCORES(2, 4, 7);
    left += kTileRows * kMatrixDepth;
    if (g % 2 != 0) left += kMatrixRows * kMatrixDepth;  // past the second half of the features
  }
#undef POSENC_SCORES
  return true;
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

#if HWY_TARGET == HWY_AVX3
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
#endif

// 16 rows of 32 bf16, as 16 pairs of depths of 16 columns: out[pair · step + 2 · row + depth mod 2].
HWY_INLINE void place_columns(const std::uint16_t* rows, std::int64_t count, std::int64_t step, std::uint16_t* out) {
#if HWY_TARGET == HWY_AVX3
  if (count == kTileRows) {
    __m512i r[16];
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i) r[i] = _mm512_load_si512(rows + kMatrixDepth * i);
    transpose_words(r);
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i) _mm512_storeu_si512(out + i * step, r[i]);
    return;
  }
#endif
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
  const std::int64_t width = panel_width(), n = std::min(lanes(), kTileRows);
  HWY_ALIGN std::uint16_t tile[kTileRows * kMatrixDepth];
  for (std::int64_t c = 0; c < width; c += n) {
    for (std::int64_t k = 0; k < x.features; k += kMatrixDepth) {
      for (std::int64_t r = 0; r < n; ++r) {
        std::uint16_t* const to = tile + r * kMatrixDepth;
        if (begin + c + r < end) {
          std::memcpy(to, x.row<std::uint16_t>(b, h, begin + c + r) + k, 2 * kMatrixDepth);
        } else {
          std::memset(to, 0, 2 * kMatrixDepth);
        }
      }
      place_columns(tile, n, 2 * width, out + k * width + 2 * c);
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

// 32 rows of 32, as columns.
HWY_INLINE void transpose_32(const std::uint16_t* HWY_RESTRICT rows, std::uint16_t* HWY_RESTRICT out) {
#if HWY_TARGET == HWY_AVX3
  alignas(64) static constexpr std::uint16_t kPairs[2][32] = {
      {0, 32, 1, 33, 2,  34, 3,  35, 4,  36, 5,  37, 6,  38, 7,  39,
       8, 40, 9, 41, 10, 42, 11, 43, 12, 44, 13, 45, 14, 46, 15, 47},
      {16, 48, 17, 49, 18, 50, 19, 51, 20, 52, 21, 53, 22, 54, 23, 55,
       24, 56, 25, 57, 26, 58, 27, 59, 28, 60, 29, 61, 30, 62, 31, 63}};
  for (int half = 0; half < 2; ++half) {  // pairs of rows as words, 16 columns of them
    const __m512i pairs = _mm512_load_si512(kPairs[half]);
    __m512i r[16];
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i) {
      r[i] =
          _mm512_permutex2var_epi16(_mm512_load_si512(rows + 64 * i), pairs, _mm512_load_si512(rows + 64 * i + 32));
    }
    transpose_words(r);
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i) _mm512_store_si512(out + 32 * (16 * half + i), r[i]);
  }
#else
  for (int r = 0; r < 32; ++r) {
    for (int c = 0; c < 32; ++c) out[32 * c + r] = rows[32 * r + c];
  }
#endif
}
// Values as groups of 32 features whose depth are the keys of a block; what lies past the last key is 0.
// `row`(j): where the values of key j begin, [features] f32 or bf16; null past the last.
template <class Row> HWY_INLINE void pack_values_16(const Row& row, std::int64_t keys, std::int64_t features,
                                                    std::int64_t planes, std::int64_t plane, std::uint16_t* out) {
  HWY_ALIGN std::uint16_t tile[2][kMatrixDepth * kMatrixRows];
  for (std::int64_t j = 0; j < keys; j += kMatrixDepth) {
    for (std::int64_t f = 0; f < features; f += kMatrixRows) {
      for (std::int64_t r = 0; r < kMatrixDepth; ++r) {
        const auto* const from = row(j + r);
        using T = std::remove_cvref_t<decltype(*from)>;
        std::uint16_t* const high = tile[0] + r * kMatrixRows;
        std::uint16_t* const low = tile[1] + r * kMatrixRows;
        if (from == nullptr) {
          std::fill_n(high, kMatrixRows, std::uint16_t{0});
          std::fill_n(low, kMatrixRows, std::uint16_t{0});
        } else if constexpr (std::is_same_v<T, float>) {
          split_row(from + f, kMatrixRows, high, planes > 1 ? low : nullptr);
        } else {
          std::memcpy(high, from + f, 2 * kMatrixRows);
        }
      }
      for (std::int64_t p = 0; p < planes; ++p) {
        transpose_32(tile[p], out + p * plane + f * kKeyBlock + j * kMatrixRows);
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
    for (int i = 0; i < 16; ++i) _mm512_storeu_si512(out + i * stride + f, r[i]);
  }
#endif
  for (; f < features; ++f) {
    for (std::int64_t i = 0; i < n; ++i) out[i * stride + f] = sums[f * width + i] * by[i];
  }
}

// --- weights ------------------------------------------------------------------------------------------------------

#if HWY_TARGET == HWY_AVX3
// 2^x for x ≤ 0, within 2.7e-6 of itself; 0 for −inf, NaN for NaN. The fraction is x − ⌊x⌋, the power VSCALEF's.
HWY_INLINE VF weight_at(VF x) {
  const __m512 f = _mm512_reduce_ps(x.raw, 0x09);
  __m512 p = _mm512_fmadd_ps(_mm512_set1_ps(0.0135341678484f), f, _mm512_set1_ps(0.0520114607758f));
  p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(0.241442756796f));
  p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(0.693003834484f));
  p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(1.00000259337f));
  return VF{_mm512_scalef_ps(p, x.raw)};
}
// Two rows in bf16, column by column.
HWY_INLINE __m512i in_pairs(__m512 first, __m512 second, __m512i order) {
  __m512i both;
  asm("vcvtne2ps2bf16 %1, %2, %0" : "=v"(both) : "v"(first), "v"(second));
  return _mm512_permutexvar_epi16(order, both);
}
#else
HWY_INLINE VF weight_at(VF x) { return exp2_of_negative(DF(), x); }
#endif

// P = 2^(factor · S − base) as the columns of a panel, for keys `begin` to `end`, both multiples of 32, and its sums: in one
// plane, those of the rounded weights, so that what is divided by them are weights that sum to 1.
inline void weigh_16(float* HWY_RESTRICT scores, float factor, const float* HWY_RESTRICT base, std::int64_t begin,
                     std::int64_t end, std::uint16_t* HWY_RESTRICT out, std::int64_t plane,
                     float* HWY_RESTRICT row_sum) {
  const DF d;
  const std::int64_t n = lanes(), width = panel_width();
  const VF b0 = load(base, 0), b1 = load(base, 1), b2 = load(base, 2), times = hn::Set(d, factor);
  VF t0 = hn::Zero(d), t1 = t0, t2 = t0;
#if HWY_TARGET == HWY_AVX3
  alignas(64) static constexpr std::uint16_t kOrder[32] = {0,  16, 1,  17, 2,  18, 3,  19, 4,  20, 5,
                                                           21, 6,  22, 7,  23, 8,  24, 9,  25, 10, 26,
                                                           11, 27, 12, 28, 13, 29, 14, 30, 15, 31};
  const __m512i order = _mm512_load_si512(kOrder);
  [[maybe_unused]] const __m512i ones = _mm512_set1_epi16(0x3F80);
#endif
  const auto weigh = [&](const float* from, VF by, VF& total, std::uint16_t* to) HWY_ATTR {
    const VF p = weight_at(hn::MulSub(hn::LoadU(d, from), times, by));
    const VF q = weight_at(hn::MulSub(hn::LoadU(d, from + width), times, by));
#if HWY_TARGET == HWY_AVX3
    if constexpr (kWeightPlanes == 1) {
      const __m512i pairs = in_pairs(p.raw, q.raw, order);
      _mm512_storeu_si512(to, pairs);
      asm("vdpbf16ps %1, %2, %0" : "+v"(total.raw) : "v"(ones), "v"(pairs));
    } else {  // the upper plane is cut, not rounded
      const __m512i top = _mm512_set1_epi32(static_cast<int>(0xFFFF0000U));
      const __m512i p_top = _mm512_and_si512(_mm512_castps_si512(p.raw), top);
      const __m512i q_top = _mm512_and_si512(_mm512_castps_si512(q.raw), top);
      _mm512_storeu_si512(to, _mm512_or_si512(_mm512_srli_epi32(p_top, 16), q_top));
      _mm512_storeu_si512(to + plane, in_pairs(_mm512_sub_ps(p.raw, _mm512_castsi512_ps(p_top)),
                                               _mm512_sub_ps(q.raw, _mm512_castsi512_ps(q_top)), order));
      total = hn::Add(total, hn::Add(p, q));
    }
#else
    const hn::RebindToUnsigned<DF> du;
    VF p_rest = p, q_rest = q;
    for (std::int64_t at = 0; at < kWeightPlanes; ++at) {
      const auto p_top = convert::to_bf16_lanes(d, p_rest), q_top = convert::to_bf16_lanes(d, q_rest);
      HWY_ALIGN std::uint32_t words[kMostLanes];
      hn::StoreU(hn::Or(p_top, hn::ShiftLeft<16>(q_top)), du, words);
      std::memcpy(to + at * plane, words, static_cast<std::size_t>(4 * n));
      const VF p_high = hn::BitCast(d, hn::ShiftLeft<16>(p_top)), q_high = hn::BitCast(d, hn::ShiftLeft<16>(q_top));
      if (at == 0) total = hn::Add(total, kWeightPlanes == 1 ? hn::Add(p_high, q_high) : hn::Add(p, q));
      p_rest = hn::Sub(p_rest, p_high), q_rest = hn::Sub(q_rest, q_high);
    }
#endif
  };
  const float* HWY_RESTRICT s = scores + begin * width;
  std::uint16_t* HWY_RESTRICT to = out + begin * width;
  for (std::int64_t j = begin; j < end; j += 2, s += 2 * width, to += 2 * width) {
    weigh(s, b0, t0, to);
    weigh(s + n, b1, t1, to + 2 * n);
    weigh(s + 2 * n, b2, t2, to + 4 * n);
  }
  store(hn::Add(load(row_sum, 0), t0), row_sum, 0);
  store(hn::Add(load(row_sum, 1), t1), row_sum, 1);
  store(hn::Add(load(row_sum, 2), t2), row_sum, 2);
}

}  // namespace posenc::attend::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // POSENC_AMX_INL_H
