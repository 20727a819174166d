// Overlapping stages of tiles of scores, for a matrix unit that works alongside the vector units (AMX); for code that
// is compiled once per SIMD target. While the vector units compute the weights of one tile of scores, the unit first
// multiplies the queries and keys of the next tile, and then the weights of the previous tile with their values.
// Position and masks are applied in between, as elsewhere (block-inl.h). If there are none, the row maximum is
// assumed to stay close enough, which saves a pass over the scores; if the weights turn out too large, they are
// computed again. A slope of distance (ALiBi) is applied as the weights are computed. Keys are processed from the
// last to the first, because the largest scores then often come first.

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

// Keys `begin` to `end` of a block of keys and a panel of `count` queries from `first` on.
struct Tile {
  std::int64_t panel, first, count, begin, end;
};

#if POSENC_OVERLAPS_16

HWY_INLINE std::int64_t group_before(std::int64_t key) { return key / kMatrixRows * kMatrixRows; }
HWY_INLINE std::int64_t group_after(std::int64_t key) { return (key + kMatrixRows - 1) / kMatrixRows * kMatrixRows; }

// The products of a tile's queries and keys.
struct ScoreProducts {
  Term16 terms[3];
  std::int64_t count, depth, groups;
  float* out;
  HWY_INLINE ScoreProducts(const Block& block, const Tile& tile, float* scores)
      : depth(block.operands.depth),
        groups((group_after(tile.end) - group_before(tile.begin)) / kMatrixRows),
        out(scores + group_before(tile.begin) * block.width) {
    const Operands16& o = block.operands;
    count = terms_of(o.k_at + group_before(tile.begin) * depth, o.k_planes, o.k_plane,
                     o.q.data() + tile.panel * o.q_panel, o.q_planes, o.q_plane, terms);
  }
  HWY_INLINE std::int64_t steps() const { return steps_of_scores(count, depth, groups); }
  template <class Work> HWY_INLINE void run(Work& work) const { score_unit(terms, count, depth, groups, out, work); }
};
// The products of the waiting weights, in block.last_weights, and their values.
struct ValueProducts {
  const Operands16& o;
  const float* weights;
  const std::uint16_t* values;
  std::int64_t begin, end, features;
  float* sums;
  HWY_INLINE ValueProducts(Block& block, const Block::Waiting& waiting)
      : o(block.operands),
        weights(block.last_weights.data()),
        values(waiting.values),
        begin(group_before(waiting.begin)),
        end(group_after(waiting.end)),
        features(block.value_features),
        sums(block.accumulator.data() +
             std::max(waiting.panel, std::int64_t{0}) * block.value_features * block.width) {}
  HWY_INLINE std::int64_t steps() const { return steps_of_values(end - begin, features); }
  template <class Work> HWY_INLINE void run(Work& work) const {
    add_unit(values, o.v_planes, o.v_plane, weights, begin, end, features, sums, work);
  }
};

inline void add_waiting(Block& block) {
  const Block::Waiting waiting = std::exchange(block.waiting, {});
  if (waiting.panel < 0) return;
  NoWork none;
  ValueProducts(block, waiting).run(none);
}

// Computes the weights of a tile, and meanwhile the products of its neighbours. `next`: null if there is nothing to
// multiply.
// `is_guess`: returns whether `base` was a usable row maximum; if not, the weights are discarded.
template <bool kIsSloped> HWY_NOINLINE bool weigh_and_multiply(Block& block, const Tile& tile, const float* base,
                                                               bool is_guess, const Tile* next) {
  float* const scores = block.scores.data();
  const std::int64_t width = block.width, first = group_before(tile.begin), last = group_after(tile.end);
  std::fill(scores + first * width, scores + tile.begin * width, kNone);  // P = 0
  std::fill(scores + tile.end * width, scores + last * width, kNone);
  const Block::Waiting waiting = std::exchange(block.waiting, {});
  const ValueProducts values(block, waiting);
  const ScoreProducts next_scores(block, next != nullptr ? *next : tile, block.next_scores.data());
  const std::int64_t steps = (waiting.panel >= 0 ? values.steps() : 0) + (next != nullptr ? next_scores.steps() : 0);
  Weighing<kIsSloped> weighing(scores + first * width, first, last - first, block.factor, base, block.slope, steps);
  // The sums of this tile are needed next. If they do not fit in the L1 cache, prefetching them does not pay.
  if (block.keys < kKeyBlock) weighing.ahead = block.accumulator.data() + tile.panel * block.value_features * width;
  if (next != nullptr) next_scores.run(weighing);
  if (waiting.panel >= 0) values.run(weighing);
  weighing.finish();
  if (is_guess && !weighing.all_small()) return false;
  weighing.add_to(block.row_sum.data() + tile.panel * width);
  return true;
}

// The tiles of a block of queries, one block of keys at a time, starting with the last.
struct TileList {
  const Block& block;
  const PanelRange* key_ranges;
  std::int64_t panels, begin, end;
  std::int64_t key = begin < end ? begin + (end - begin - 1) / block.keys * block.keys : -1;  // of the block of keys
  std::int64_t panel = -1;

  HWY_INLINE bool next(Tile& tile) {
    for (;;) {
      if (++panel == panels) panel = 0, key -= block.keys;
      if (key < begin) return false;
      const std::int64_t first = block.begin + panel * block.width, last_key = std::min(key + block.keys, end);
      tile = {panel, first, std::min(block.width, block.end - first),
              std::max(key_ranges[panel].begin - key, std::int64_t{0}),
              std::min(key_ranges[panel].end, last_key) - key};
      if (tile.begin < tile.end) return true;
    }
  }
};

// Computes all tiles of a block of queries and keys `begin` to `end`. `stages` has, for the current tile:
//   load_block(first, last)  packs a block of keys
//   score(tile)          computes its scores if the unit cannot
//   guess(tile, base)    whether its scores stay as they are; `base` is then the row maximum so far
//   prepare(tile, base)  applies position, masks and row maximum; returns whether all weights may be multiplied with values
//   add_seen(tile)       adds values one by one, if they may not
template <class Stages> HWY_INLINE void attend_overlapped(Block& block, const PanelRange* key_ranges,
                                                          std::int64_t panels, std::int64_t begin, std::int64_t end,
                                                          const Stages& stages) {
  Operands16& o = block.operands;
  TileList list{block, key_ranges, panels, begin, end};
  Tile tile{}, next{};
  std::int64_t loaded = -1;
  const auto load = [&](std::int64_t key) HWY_ATTR {
    if (block.waiting.values == o.next_values(key)) add_waiting(block);  // before they are overwritten
    stages.load_block(key, std::min(key + block.keys, end));
    loaded = key;
  };
  const auto multiply_alone = [&] {
    NoWork none;
    ScoreProducts(block, tile, block.scores.data()).run(none);
  };
  HWY_ALIGN float base[kMostWidth];
  bool is_scored = false;  // while the previous tile was weighed
  bool is_any = list.next(tile);
  while (is_any) {
    const std::int64_t key = list.key;
    if (loaded != key) load(key);
    const bool all_finite = o.q_is_finite && o.k_is_finite;
    if (!all_finite) {
      stages.score(tile);
    } else if (!is_scored) {
      multiply_alone();
    }
    is_any = list.next(next);
    const bool is_block_done = is_any && list.key != key;
    const std::uint16_t* const values = o.v_at;
    // the next block of keys overwrites this one, which a wrong guess would need again
    const bool guesses = all_finite && !is_block_done && stages.guess(tile, base);
    bool adds_products = guesses || stages.prepare(tile, base);
    if (is_block_done && adds_products) load(list.key);
    is_scored = is_any && loaded == list.key && o.q_is_finite && o.k_is_finite;
    const Tile* const ahead = is_scored ? &next : nullptr;
    const bool is_done = guesses && block.slope != 0 ? weigh_and_multiply<true>(block, tile, base, guesses, ahead)
                                                     : weigh_and_multiply<false>(block, tile, base, guesses, ahead);
    if (!is_done) {
      multiply_alone();
      adds_products = stages.prepare(tile, base);
      weigh_and_multiply<false>(block, tile, base, false, nullptr);
    }
    if (adds_products) {
      block.waiting = {tile.panel, tile.begin, tile.end, values};
    } else {
      stages.add_seen(tile);
    }
    std::swap(block.scores, block.last_weights);  // its previous content is already multiplied with its values
    std::swap(block.scores, block.next_scores);
    tile = next;
  }
  add_waiting(block);
}

#endif  // POSENC_OVERLAPS_16

}  // namespace posenc::attend::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
