// Products by AMX: its eight tiles of 16 rows of 64 bytes, and how two matrices are multiplied with them. TDPBF16PS
// multiplies 16 rows of 32 bf16 by 16 columns of 32 (in pairs: row k of the right tile holds depths 2k and 2k + 1 of every
// column) into 16 × 16 f32. `work`.step() is called between products.

#ifndef POSENC_AMX_TILES_INL_H  // compiled for a single SIMD target
#define POSENC_AMX_TILES_INL_H

#include <algorithm>

#include "attention/cpu/products/amx_pack-inl.h"

HWY_BEFORE_NAMESPACE();
namespace posenc::attend::cpu::HWY_NAMESPACE {

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
  unsigned modes = _mm_getcsr();
  UseMatrixUnit() {
    constexpr unsigned kResultsAreZero = 1U << 15, kOperandsAreZero = 1U << 6;
    _mm_setcsr(modes | kResultsAreZero | kOperandsAreZero);
    alignas(64) std::uint8_t layout[64] = {1};  // palette 1; bytes per row from 16 on, rows from 48 on
    for (int t = 0; t < 8; ++t) layout[16 + 2 * t] = 64, layout[48 + t] = kTileRows;
    asm volatile("ldtilecfg %0" ::"m"(layout));
  }
  ~UseMatrixUnit() {
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
  const std::int64_t n = kTileRows, half = kTileRows * AmxUnit::kDepth, row = 64;  // bytes
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
      const std::uint16_t* left = terms[0].left + g * AmxUnit::kRows * depth;
      const std::uint16_t *right = terms[0].right, *lower_right = terms[2].right;
      const std::int64_t lower = terms[1].left - terms[0].left, second = AmxUnit::kRows * depth;
      for (std::int64_t k = 0; k < depth; k += AmxUnit::kDepth) {
        POSENC_TILE_LOAD(4, right, row);
        POSENC_TILE_LOAD(5, lower_right, row);
        POSENC_SCORE_PLANES(0, left);
        POSENC_SCORE_PLANES(1, left + half);
        if (is_whole) {
          POSENC_SCORE_PLANES(2, left + second);
          POSENC_SCORE_PLANES(3, left + second + half);
        }
        left += AmxUnit::kRows * AmxUnit::kDepth;
        right += AmxUnit::kDepth * n;
        lower_right += AmxUnit::kDepth * n;
      }
    }
    for (std::int64_t term = 0; term < count && count < 3; ++term) {
      const std::uint16_t *left = terms[term].left + g * AmxUnit::kRows * depth,
                          *second = left + AmxUnit::kRows * depth;
      const std::uint16_t* right = terms[term].right;
      for (std::int64_t k = 0; k < depth; k += AmxUnit::kDepth) {
        POSENC_TILE_LOAD(4, right, row);
        POSENC_TILE_LOAD(6, left, row);
        POSENC_TILE_DOT(0, 6, 4);
        POSENC_TILE_LOAD(7, left + half, row);
        POSENC_TILE_DOT(1, 7, 4);
        work.step();
        left += AmxUnit::kRows * AmxUnit::kDepth;
        right += AmxUnit::kDepth * n;
        if (!is_whole) continue;
        POSENC_TILE_LOAD(6, second, row);
        POSENC_TILE_DOT(2, 6, 4);
        POSENC_TILE_LOAD(7, second + half, row);
        POSENC_TILE_DOT(3, 7, 4);
        work.step();
        second += AmxUnit::kRows * AmxUnit::kDepth;
      }
    }
    float* const to = out + g * AmxUnit::kRows * n;
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
  return groups * std::min(count, std::int64_t{2}) * (depth / AmxUnit::kDepth);
}

// O += Vᵀ Pᵀ for keys `begin` to `end`, multiples of 32, of a block. `weights`: as written by split_pair.
// `planes` of values, `plane` elements apart; the lower one is multiplied only with the upper weights.
template <class Work> HWY_INLINE void add_unit(const std::uint16_t* values, std::int64_t planes, std::int64_t plane,
                                               const float* weights, std::int64_t begin, std::int64_t end,
                                               std::int64_t features, float* HWY_RESTRICT sums, Work& work) {
  const std::int64_t n = kTileRows, half = kTileRows * AmxUnit::kDepth, row = 64, pair = 2 * row;  // bytes
  const std::int64_t group = AmxUnit::kRows * AmxUnit::kDepth;
#define POSENC_ADD_PRODUCTS(sum, tile, from)     \
  POSENC_TILE_LOAD(tile, from, row);             \
  POSENC_TILE_DOT(sum, tile, 4);                 \
  POSENC_TILE_DOT(sum, tile, 5);                 \
  if (planes > 1) {                              \
    POSENC_TILE_LOAD(tile, (from) + plane, row); \
    POSENC_TILE_DOT(sum, tile, 4);               \
  }                                              \
  work.step()
  for (std::int64_t f = 0; f < features; f += 2 * AmxUnit::kRows) {
    const bool is_whole = f + 2 * AmxUnit::kRows <= features;
    float* const to = sums + f * n;
    POSENC_TILE_LOAD(0, to, row);
    POSENC_TILE_LOAD(1, to + kTileRows * n, row);
    if (is_whole) {
      POSENC_TILE_LOAD(2, to + 2 * kTileRows * n, row);
      POSENC_TILE_LOAD(3, to + 3 * kTileRows * n, row);
    }
    for (std::int64_t j = begin; j < end; j += AmxUnit::kDepth) {
      const float* const at = weights + j * n;
      const std::uint16_t* const left = values + j * features + f * AmxUnit::kDepth;
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
  return features / kTileRows * (keys / AmxUnit::kDepth);
}

}  // namespace posenc::attend::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // POSENC_AMX_TILES_INL_H
