// The online softmax of a tile of scores, for code that is compiled once per SIMD target.

#if defined(POSENC_SOFTMAX_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef POSENC_SOFTMAX_INL_H
#undef POSENC_SOFTMAX_INL_H
#else
#define POSENC_SOFTMAX_INL_H
#endif

#include "attention/cpu/contextual-inl.h"
#include "attention/cpu/scores-inl.h"

HWY_BEFORE_NAMESPACE();
namespace posenc::attend::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

HWY_INLINE VF safe(VF row_max) {  // no visible key yet: −inf − −inf would be NaN
  return hn::IfThenElse(hn::Eq(row_max, hn::Set(DF(), kNone)), hn::Zero(DF()), row_max);
}

// Updates the row maximum m for a tile, and rescales row_sum and the output accumulator to it. `constant` is a bias
// shared by the whole tile that is not in its scores yet. `base`: what to subtract from a score, so that P = 2^(S −
// base).
template <class Products> void renew_row_max(Block& block, Products& products, std::int64_t panel,
                                             const float* HWY_RESTRICT tile_max, float constant,
                                             float* HWY_RESTRICT base) {
  const DF d;
  const std::int64_t width = width_of<Products>();
  float* HWY_RESTRICT row_max = block.row_max.data() + panel * width;
  float* HWY_RESTRICT row_sum = block.row_sum.data() + panel * width;
  const VF shift = hn::Set(d, constant);
  constexpr bool has_three = Products::kVectors == 3;
  constexpr int second = has_three ? 1 : 0, third = has_three ? 2 : 0;  // or the first again
  const VF o0 = load(row_max, 0), o1 = load(row_max, second), o2 = load(row_max, third);
  VF n0 = hn::Max(o0, hn::Add(load(tile_max, 0), shift));
  VF n1 = hn::Max(o1, hn::Add(load(tile_max, second), shift));
  VF n2 = hn::Max(o2, hn::Add(load(tile_max, third), shift));
  // Products may be so fast that rescaling would be noticeable. A maximum that is exceeded by less than 2^8 is kept,
  // which costs no precision; −inf is exceeded by anything.
  if constexpr (Products::kKeptRise > 0) {
    const VF rise = hn::Set(d, Products::kKeptRise);
    const auto all_near =
        hn::And(hn::And(hn::Le(n0, hn::Add(o0, rise)), hn::Le(n1, hn::Add(o1, rise))), hn::Le(n2, hn::Add(o2, rise)));
    if (hn::AllTrue(d, all_near)) n0 = o0, n1 = o1, n2 = o2;
  }
  store(n0, row_max, 0);
  store(n1, row_max, second);
  store(n2, row_max, third);
  const VF m0 = safe(n0), m1 = safe(n1), m2 = safe(n2);
  const auto same = hn::And(hn::And(hn::Eq(o0, n0), hn::Eq(o1, n1)), hn::Eq(o2, n2));
  if (!hn::AllTrue(d, same)) {
    products.before_rescaling(block, panel);
    const VF a0 = exp2_of_negative(d, hn::Sub(o0, m0)), a1 = exp2_of_negative(d, hn::Sub(o1, m1)),
             a2 = exp2_of_negative(d, hn::Sub(o2, m2));
    const auto rescale = [&](float* HWY_RESTRICT x, std::int64_t rows) HWY_ATTR {
      for (std::int64_t row = 0; row < rows; ++row, x += width) {
        store(hn::Mul(load(x, 0), a0), x, 0);
        if constexpr (!has_three) continue;
        store(hn::Mul(load(x, 1), a1), x, 1);
        store(hn::Mul(load(x, 2), a2), x, 2);
      }
    };
    const VF none = hn::Set(d, kNone);
    const auto all_new = hn::And(hn::And(hn::Eq(o0, none), hn::Eq(o1, none)), hn::Eq(o2, none));
    if (!hn::AllTrue(d, all_new)) {  // otherwise there are only zeros to rescale
      rescale(row_sum, 1);
      rescale(block.sums_of(panel), block.value_features);
      rescale(block.content.row_weights.data() + panel * block.bias.value_rows * width, block.bias.value_rows);
    }
  }
  store(hn::Sub(m0, shift), base, 0);
  store(hn::Sub(m1, shift), base, second);
  store(hn::Sub(m2, shift), base, third);
}

// Applies position and masks to a tile of scores and updates the row maximum; `base` as for renew_row_max. Returns
// whether its values may be multiplied with all weights, including those of masked keys.
template <class Products> bool prepare_tile(Block& block, Products& products, Tile& tile, const PanelRange& key_range,
                                            float* HWY_RESTRICT base) {
  HWY_ALIGN float tile_max[kMostWidth];
  float constant = 0;
  const bool has_vectors = block.bias.has_score_vectors();
  const bool has_cap = block.job.softcap > 0;
  if (has_cap && !has_vectors) cap_scores<Products>(block, tile, tile_max);
  const bool has_edge = block.job.key_mask != nullptr || block.first_key + tile.begin < key_range.all_begin ||
                        block.first_key + tile.end > key_range.all_end;
  if (has_vectors) {
    add_vector_scores<Products>(block, tile, tile_max);
    if (has_cap) cap_scores<Products>(block, tile, tile_max);
  } else {
    constant = add_term<Products>(block, tile, !has_edge && !has_cap, tile_max);  // masks of an edge find the maximum
  }
  if (block.job.masks_scores()) mask_scores<Products>(block, tile, tile_max);
  if (has_edge) mask_keys<Products>(block, tile, tile_max);
  if (block.bias.counts_gates) add_contextual(block, tile, tile_max);
  renew_row_max(block, products, tile.panel, tile_max, constant, base);
  // keys that no query of the panel attends to, but that share a step with a visible one
  constexpr std::int64_t step = Products::kStep;
  const bool has_others =
      tile.begin % step != 0 || (tile.end % step != 0 && tile.end != block.last_key - block.first_key);
  return !(has_edge || has_others || block.job.masks_scores()) || products.values_are_finite(block);
}

// Skips masked keys one element at a time, for a tile with a masked value that is not finite: 0 times it is not 0.
template <class Products> void add_seen_values(Block& block, const Products& products, const Tile& tile) {
  for (std::int64_t i = 0; i < tile.count; ++i) {
    const KeyRange& key_range = block.job.key_range(block.b, tile.first + i);
    for (std::int64_t j = tile.begin; j < tile.end; ++j) {
      const std::int64_t key = block.first_key + j;
      if (key < key_range.begin || key >= key_range.end || block.job.is_hidden(block.b, block.h, tile.first + i, key))
        continue;
      const float weight = products.weight(block, j, i);
      const float* const values = products.values.row(j);
      float* const sums = block.sums_of(tile.panel) + i;
      for (std::int64_t f = 0; f < block.value_features; ++f) sums[f * block.width] += weight * values[f];
    }
  }
}

}  // namespace posenc::attend::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
