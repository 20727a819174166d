// Tiles of scores whose stages overlap, for a matrix unit that works while vectors do (AMX); for code that is compiled once per
// SIMD target. The scores of a panel of queries and of kUnitKeys keys are a unit. While vectors make the weights of one unit,
// tiles multiply those of the unit before it with values, and then the queries and keys of the next, into the scores that the
// former has left. Position and masks enter between, as everywhere (block-inl.h).

#if defined(POSENC_OVERLAP_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef POSENC_OVERLAP_INL_H
#undef POSENC_OVERLAP_INL_H
#else
#define POSENC_OVERLAP_INL_H
#endif

#include <algorithm>
#include <cstdint>
#include <utility>

#include "attention/cpu/block-inl.h"
#include "attention/cpu/matrix_16-inl.h"
#include "attention/cpu/panel-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace posenc::attend::cpu::HWY_NAMESPACE {

// Some keys of the block and a panel of `count` queries from `first` on.
struct Tile {
  std::int64_t panel, first, count, begin, end;
};

#if POSENC_OVERLAPS_16

HWY_INLINE std::int64_t group_before(std::int64_t key) { return key / kMatrixRows * kMatrixRows; }
HWY_INLINE std::int64_t group_after(std::int64_t key) { return (key + kMatrixRows - 1) / kMatrixRows * kMatrixRows; }

// The products of a unit's queries and keys.
struct ScoreProducts {
  Term16 terms[3];
  std::int64_t count, depth, groups;
  float* out;
  HWY_INLINE ScoreProducts(const Block& block, const Tile& unit, float* scores)
      : depth(block.operands.depth),
        groups((group_after(unit.end) - group_before(unit.begin)) / kMatrixRows),
        out(scores + group_before(unit.begin) * block.width) {
    const Operands16& o = block.operands;
    count = terms_of(o.k.data() + group_before(unit.begin) * depth, o.k_planes, o.k_plane,
                     o.q.data() + unit.panel * o.q_panel, o.q_planes, o.q_plane, terms);
  }
  HWY_INLINE std::int64_t steps() const { return steps_of_scores(count, depth, groups); }
  template <class Work> HWY_INLINE void run(Work& work) const { score_unit(terms, count, depth, groups, out, work); }
};
// Those of its weights and values.
struct ValueProducts {
  const Operands16& o;
  const float* weights;
  std::int64_t begin, end, features;
  float* sums;
  HWY_INLINE ValueProducts(Block& block, const Tile& unit, const float* scores)
      : o(block.operands),
        weights(scores),
        begin(group_before(unit.begin)),
        end(group_after(unit.end)),
        features(block.value_features),
        sums(block.accumulator.data() + std::max(unit.panel, std::int64_t{0}) * block.value_features * block.width) {}
  HWY_INLINE std::int64_t steps() const { return steps_of_values(o.v_planes, end - begin, features); }
  template <class Work> HWY_INLINE void run(Work& work) const {
    add_unit(o.v.data(), o.v_planes, o.v_plane, weights, begin, end, features, sums, work);
  }
};

// The unit whose weights wait in `other_scores` to meet their values.
inline void add_waiting(Block& block) {
  if (block.waiting.panel < 0) return;
  NoWork none;
  ValueProducts(block, {block.waiting.panel, 0, 0, block.waiting.begin, block.waiting.end}, block.other_scores.data())
      .run(none);
  block.waiting.panel = -1;
}

// The weights of a unit, and meanwhile the products of its neighbours. `next`: null where there is none to multiply.
HWY_NOINLINE void weigh_unit(Block& block, const Tile& unit, const float* base, const Tile* next) {
  float* const scores = block.scores.data();
  const std::int64_t width = block.width, first = group_before(unit.begin), last = group_after(unit.end);
  std::fill(scores + first * width, scores + unit.begin * width, kNone);  // P = 0
  std::fill(scores + unit.end * width, scores + last * width, kNone);
  const Block::Waiting waiting = std::exchange(block.waiting, {});
  const ValueProducts values(block, {waiting.panel, 0, 0, waiting.begin, waiting.end}, block.other_scores.data());
  const ScoreProducts next_scores(block, next != nullptr ? *next : unit, block.other_scores.data());
  const std::int64_t steps = (waiting.panel >= 0 ? values.steps() : 0) + (next != nullptr ? next_scores.steps() : 0);
  Weighing weighing(scores + first * width, last - first, block.factor, base, steps);
  if (waiting.panel >= 0) values.run(weighing);
  if (next != nullptr) next_scores.run(weighing);
  weighing.finish(block.row_sum.data() + unit.panel * width);
}

// All units of a key block. For each, in this order: `score`(unit), where its products were not made meanwhile; `prepare`(unit,
// base), which makes scores of them and returns whether values can be added as products; `add_seen`(unit), where they cannot.
template <class Score, class Prepare, class AddSeen>
HWY_INLINE void attend_units(Block& block, const PanelSight* sights, std::int64_t panels, bool are_finite,
                             const Score& score, const Prepare& prepare, const AddSeen& add_seen) {
  constexpr std::int64_t kMostUnits = kLargeQueryBlock / (kPanelVectors * kTileRows) * (kKeyBlock / kUnitKeys);
  Tile units[kMostUnits];
  std::int64_t count = 0;
  for (std::int64_t panel = 0; panel < panels; ++panel) {
    const PanelSight& sight = sights[panel];
    const std::int64_t begin = std::max(sight.begin - block.first_key, std::int64_t{0});
    const std::int64_t end = std::min(sight.end, block.last_key) - block.first_key;
    const std::int64_t first = block.begin + panel * block.width;
    for (std::int64_t key = begin / kUnitKeys * kUnitKeys; key < end; key += kUnitKeys) {
      units[count++] = {panel, first, std::min(block.width, block.end - first), std::max(key, begin),
                        std::min(key + kUnitKeys, end)};
    }
  }
  HWY_ALIGN float base[kMostWidth];
  for (std::int64_t u = 0; u < count; ++u) {
    const Tile& unit = units[u];
    if (!are_finite) {
      score(unit);
    } else if (u == 0) {
      NoWork none;
      ScoreProducts(block, unit, block.scores.data()).run(none);
    }
    const bool adds_products = prepare(unit, base);
    weigh_unit(block, unit, base, are_finite && u + 1 < count ? &units[u + 1] : nullptr);
    if (adds_products) {
      block.waiting = {unit.panel, unit.begin, unit.end};
    } else {
      add_seen(unit);
    }
    std::swap(block.scores, block.other_scores);
  }
  add_waiting(block);
}

#endif  // POSENC_OVERLAPS_16

}  // namespace posenc::attend::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
