// Overlapping stages of tiles of scores, for a matrix unit that works alongside the vector units (AMX); for code that
// is compiled once per SIMD target. While the vector units compute the weights of one tile of scores, the unit first
// multiplies the queries and keys of the next tile, and then the weights of the previous tile with their values.
// Position and masks are applied in between, as elsewhere (scores-inl.h). If there are none, the row maximum is
// assumed to stay close enough, which saves a pass over the scores; if the weights turn out too large, they are
// computed again. A slope of distance (ALiBi) is applied as the weights are computed. Keys are processed from the
// last to the first, because the largest scores then often come first.

//
// Beside what loop-inl.h lists, such Products have:
//   has_finite_operands()          whether the unit can multiply these queries and keys
//   score_by_element(block, tile)  if not
//   defer_scale(block, tile)       sets tile.factor
//   guess(block, tile, range, base, slope)   whether the scores stay as they are, except for a slope: `base` is then the
//                                  row maximum so far
//   weigh_and_multiply(…)          the weights of a tile, and meanwhile the products of its neighbours
//   waiting, add_waiting(block)    weights that are yet to be multiplied with their values, in last_weights
//   next_scores                    of the next tile

#if defined(POSENC_OVERLAP_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef POSENC_OVERLAP_INL_H
#undef POSENC_OVERLAP_INL_H
#else
#define POSENC_OVERLAP_INL_H
#endif

#include <algorithm>
#include <utility>

#include "attention/cpu/softmax-inl.h"

HWY_BEFORE_NAMESPACE();
namespace posenc::attend::cpu::HWY_NAMESPACE {

// The tiles of a block of queries, one block of keys at a time, starting with the last.
struct TileList {
  const Block& block;
  const QueryPanels& panels;
  std::int64_t begin = panels.keys.begin, end = panels.keys.end;
  std::int64_t key = begin < end ? begin + (end - begin - 1) / block.keys * block.keys : -1;  // of the block of keys
  std::int64_t panel = -1;

  HWY_INLINE bool next(Tile& tile) {
    for (;;) {
      if (++panel == panels.count) panel = 0, key -= block.keys;
      if (key < begin) return false;
      tile = panels.tile(block, panel, key);
      if (tile.begin < tile.end) return true;
    }
  }
};

template <class Products>
HWY_INLINE void attend_overlapped(Block& block, Products& products, const QueryPanels& panels) {
  TileList list{block, panels};
  Tile tile{}, next{};
  HWY_ALIGN float base[kMostWidth];
  const auto load_block = [&](std::int64_t key) HWY_ATTR {
    block.first_key = key;
    block.last_key = std::min(key + block.keys, panels.keys.end);
    products.load_keys(block);
  };
  // applies position, masks and row maximum; returns whether all weights may be multiplied with values
  const auto prepare = [&]() HWY_ATTR {
    products.defer_scale(block, tile);
    return prepare_tile(block, products, tile, panels.ranges[tile.panel], base);
  };
  block.first_key = -1;    // none is loaded
  bool is_scored = false;  // while the previous tile was weighed
  bool is_any = list.next(tile);
  while (is_any) {
    const std::int64_t key = list.key;
    if (block.first_key != key) load_block(key);
    const bool all_finite = products.has_finite_operands();
    if (!all_finite) {
      products.score_by_element(block, tile);
    } else if (!is_scored) {
      products.score(block, tile);
    }
    is_any = list.next(next);
    const bool is_block_done = is_any && list.key != key;
    const std::uint16_t* const values = products.v_at;
    float slope = 0;
    // the next block of keys overwrites this one, which a wrong guess would need again
    const bool guesses =
        all_finite && !is_block_done && products.guess(block, tile, panels.ranges[tile.panel], base, slope);
    bool adds_products = guesses || prepare();
    if (is_block_done && adds_products) load_block(list.key);
    is_scored = is_any && block.first_key == list.key && products.has_finite_operands();
    if (!products.weigh_and_multiply(block, tile, base, slope, guesses, is_scored ? &next : nullptr)) {
      products.score(block, tile);
      adds_products = prepare();
      products.weigh_and_multiply(block, tile, base, 0, false, nullptr);
    }
    if (adds_products) {
      products.waiting = {tile.panel, tile.begin, tile.end, values};
    } else {
      add_seen_values(block, products, tile);
    }
    std::swap(block.scores, products.last_weights);  // its previous content is already multiplied with its values
    std::swap(block.scores, products.next_scores);
    tile = next;
  }
  products.add_waiting(block);
}

}  // namespace posenc::attend::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
