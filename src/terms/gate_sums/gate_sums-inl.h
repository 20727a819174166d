// The sum of gates at the query's own token minus that at the key's, in tiles.

#if defined(POSENC_GATE_SUMS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef POSENC_GATE_SUMS_INL_H
#undef POSENC_GATE_SUMS_INL_H
#else
#define POSENC_GATE_SUMS_INL_H
#endif

#include "terms/tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace posenc::terms::HWY_NAMESPACE {

template <Lanes kLanes> struct TileOf<GateTiles, kLanes> {
  static constexpr float constant = 0;
  const TileContext& context;
  const GateTiles& tiles;
  const float *key_highs, *key_lows;
  HWY_ALIGN float highs[kMostWidth] = {}, lows[kMostWidth] = {};  // of each query of the lanes, or of the row's
  TileOf(const GateTiles& a_tiles, const TileContext& a_context) : context(a_context), tiles(a_tiles) {
    const TilePlace& at = context.at;
    key_highs = tiles.highs.data() + tiles.row(at.b, at.h) + at.first_key;
    key_lows = tiles.lows.data() + tiles.row(at.b, at.h) + at.first_key;
    for (std::int64_t i = 0; kLanes == Lanes::kQueries && i < at.queries; ++i) set_query(i, i);
  }
  static constexpr bool is_constant() { return false; }
  void start_row(std::int64_t row) {
    if constexpr (kLanes == Lanes::kKeys) set_query(0, row);
  }
  HWY_INLINE VF add(std::int64_t row, std::int64_t vector, VF s) const {
    const DF d;
    VF high, low;
    if constexpr (kLanes == Lanes::kQueries) {
      high = hn::Sub(load(highs, vector), hn::Set(d, key_highs[row]));
      low = hn::Sub(load(lows, vector), hn::Set(d, key_lows[row]));
    } else {
      high = hn::Sub(hn::Set(d, highs[0]), load(key_highs, vector));
      low = hn::Sub(hn::Set(d, lows[0]), load(key_lows, vector));
    }
    return hn::Add(s, hn::Add(high, low));
  }

  void set_query(std::int64_t to, std::int64_t i) {
    const TilePlace& at = context.at;
    const KeyRange& key_range = context.tokens.key_range(at.b, at.first_query + i);
    const bool sees_any = key_range.begin < key_range.end;  // otherwise it may have no gate
    const std::size_t place = sees_any ? tiles.row(at.b, at.h) + key_range.diagonal : 0;
    highs[to] = sees_any ? tiles.highs[place] : 0.0f;
    lows[to] = sees_any ? tiles.lows[place] : 0.0f;
  }
};

}  // namespace posenc::terms::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
