// The products of attention by AMX, the matrix unit of x86-64 processors (amx_tiles-inl.h). It multiplies while vector
// instructions compute the weights of other scores; overlap-inl.h sets the order.

#ifndef POSENC_AMX_INL_H  // compiled for a single SIMD target
#define POSENC_AMX_INL_H

#include <algorithm>
#include <type_traits>
#include <utility>
#include <variant>

#include "attention/cpu/products/amx_tiles-inl.h"
#include "attention/cpu/products/amx_weights-inl.h"
#include "terms/all-inl.h"

HWY_BEFORE_NAMESPACE();
namespace posenc::attend::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

HWY_INLINE std::int64_t group_before(std::int64_t key) { return key / AmxUnit::kRows * AmxUnit::kRows; }
HWY_INLINE std::int64_t group_after(std::int64_t key) {
  return (key + AmxUnit::kRows - 1) / AmxUnit::kRows * AmxUnit::kRows;
}

struct AmxProducts : PlaneProducts<AmxUnit> {
  static constexpr bool kOverlaps = true;
  // processors with AMX have an instruction that rounds to bf16
  template <class T> using Stored = std::conditional_t<std::is_same_v<T, BFloat16>, convert::RoundedBFloat16, T>;

  // the scores of the next tile, and the weights of the previous one
  AlignedVector<float> next_scores = floats(kKeyBlock * kMostLanes), last_weights = floats(kKeyBlock * kMostLanes);
  struct Waiting {
    std::int64_t panel = -1, begin = 0, end = 0;
    const std::uint16_t* values = nullptr;
  } waiting;  // keys whose weights, in last_weights, are yet to be multiplied with their values; panel −1: none
  UseMatrixUnit unit;

  using PlaneProducts::PlaneProducts;

  // The products of a tile's queries and keys.
  struct ScoreProducts {
    Term16 terms[3];
    std::int64_t count, depth, groups;
    float* out;
    HWY_INLINE ScoreProducts(const AmxProducts& o, const Block& block, const Tile& tile, float* scores)
        : depth(o.depth),
          groups((group_after(tile.end) - group_before(tile.begin)) / AmxUnit::kRows),
          out(scores + group_before(tile.begin) * block.width) {
      count = terms_of(o.k_at + group_before(tile.begin) * depth, o.k_planes, o.k_plane,
                       o.q.data() + tile.panel * o.q_panel, o.q_planes, o.q_plane, terms);
    }
    HWY_INLINE std::int64_t steps() const { return steps_of_scores(count, depth, groups); }
    template <class Work> HWY_INLINE void run(Work& work) const {
      score_unit(terms, count, depth, groups, out, work);
    }
  };
  // The products of waiting weights and their values.
  struct ValueProducts {
    const AmxProducts& o;
    const float* weights;
    const std::uint16_t* values;
    std::int64_t begin, end, features;
    float* sums;
    HWY_INLINE ValueProducts(const AmxProducts& products, Block& block, const Waiting& waiting)
        : o(products),
          weights(products.last_weights.data()),
          values(waiting.values),
          begin(group_before(waiting.begin)),
          end(group_after(waiting.end)),
          features(block.value_features),
          sums(block.sums_of(std::max(waiting.panel, std::int64_t{0}))) {}
    HWY_INLINE std::int64_t steps() const { return steps_of_values(end - begin, features); }
    template <class Work> HWY_INLINE void run(Work& work) const {
      add_unit(values, o.v_planes, o.v_plane, weights, begin, end, features, sums, work);
    }
  };

  void add_waiting(Block& block) {
    const Waiting last = std::exchange(waiting, {});
    if (last.panel < 0) return;
    NoWork none;
    ValueProducts(*this, block, last).run(none);
  }
  void before_rescaling(Block& block, std::int64_t panel) {
    if (waiting.panel == panel) add_waiting(block);  // its weights use the old maximum
  }
  void load_keys(Block& block) {
    if (waiting.values == next_values(block.first_key)) add_waiting(block);  // before they are overwritten
    PlaneProducts::load_keys(block);
  }
  bool has_finite_operands() const { return q_is_finite && k_is_finite; }

  void score(Block& block, const Tile& tile) {
    NoWork none;
    ScoreProducts(*this, block, tile, block.scores.data()).run(none);
  }

  bool guess(Block& block, Tile& tile, const PanelRange& key_range, float* HWY_RESTRICT base, float& slope) {
    const auto* const slopes = std::get_if<terms::SlopeTiles>(&block.bias.tiles);
    const bool is_plain = (slopes != nullptr || std::holds_alternative<terms::NoTiles>(block.bias.tiles)) &&
                          block.job.softcap == 0 && !block.job.has_masks();
    const bool has_edge =
        block.first_key + tile.begin < key_range.all_begin || block.first_key + tile.end > key_range.all_end;
    const bool has_whole_steps = tile.begin % kStep == 0 && tile.end % kStep == 0;
    if (!is_plain || has_edge || !has_whole_steps || !(block.job.scale > 0)) return false;
    const float* const row_max = block.row_max.data() + tile.panel * block.width;
    const DF d;
    const VF most = load(row_max, 0);
    if (!hn::AllTrue(d, hn::Ne(most, hn::Set(d, kNone)))) return false;
    defer_scale(block, tile);
    store(most, base, 0);
    if (slopes == nullptr) return true;
    const std::int64_t ahead = key_range.diagonal + block.job.places.shift - block.first_key;  // of the first query
    return key_range.is_row &&
           terms::HWY_NAMESPACE::split_slope(*slopes, block.h, ahead, block.width, tile.begin, tile.end, slope, base);
  }

  // Computes the weights of a tile, and meanwhile the products of its neighbours. `next`: null if there is nothing to
  // multiply. `slope`: of a bias that is not in the scores.
  // `is_guess`: returns whether `base` was a usable row maximum; if not, the weights are discarded.
  bool weigh_and_multiply(Block& block, const Tile& tile, const float* base, float slope, bool is_guess,
                          const Tile* next) {
    return slope != 0 ? weigh_and_multiply_as<true>(block, tile, base, slope, is_guess, next)
                      : weigh_and_multiply_as<false>(block, tile, base, slope, is_guess, next);
  }
  template <bool kIsSloped> HWY_NOINLINE bool weigh_and_multiply_as(Block& block, const Tile& tile, const float* base,
                                                                    float slope, bool is_guess, const Tile* next) {
    float* const scores = block.scores.data();
    const std::int64_t width = block.width, first = group_before(tile.begin), last = group_after(tile.end);
    std::fill(scores + first * width, scores + tile.begin * width, kNone);  // P = 0
    std::fill(scores + tile.end * width, scores + last * width, kNone);
    const Waiting waited = std::exchange(waiting, {});
    const ValueProducts value_products(*this, block, waited);
    const ScoreProducts score_products(*this, block, next != nullptr ? *next : tile, next_scores.data());
    const std::int64_t steps =
        (waited.panel >= 0 ? value_products.steps() : 0) + (next != nullptr ? score_products.steps() : 0);
    Weighing<kIsSloped> weighing(scores + first * width, first, last - first, tile.factor, base, slope, steps);
    // The sums of this tile are needed next. If they do not fit in the L1 cache, prefetching them does not pay.
    if (block.keys < kKeyBlock) weighing.ahead = block.sums_of(tile.panel);
    if (next != nullptr) score_products.run(weighing);
    if (waited.panel >= 0) value_products.run(weighing);
    weighing.finish();
    if (is_guess && !weighing.all_small()) return false;
    weighing.add_to(block.row_sum.data() + tile.panel * width);
    return true;
  }

  float weight(const Block& block, std::int64_t j, std::int64_t i) const {
    return weight_in_place(block.scores.data(), j, i);
  }
};

}  // namespace posenc::attend::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // POSENC_AMX_INL_H
