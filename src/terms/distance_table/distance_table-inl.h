// A table by distance in tiles: a slice of one row of values, which is constant far from the diagonal.

#if defined(POSENC_DISTANCE_TABLE_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef POSENC_DISTANCE_TABLE_INL_H
#undef POSENC_DISTANCE_TABLE_INL_H
#else
#define POSENC_DISTANCE_TABLE_INL_H
#endif

#include <algorithm>

#include "terms/tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace posenc::terms::HWY_NAMESPACE {

template <Lanes kLanes> struct TileOf<DistanceTiles, kLanes> {
  const TileContext& context;
  const DistanceRow& values;
  float constant = 0;
  bool is_tail = false;
  const float* first;     // of row 0
  std::int64_t step = 0;  // from row to row

  TileOf(const DistanceTiles& tiles, const TileContext& a_context)
      : context(a_context), values(tiles.rows[a_context.at.h]), first(a_context.room) {
    if constexpr (kLanes == Lanes::kKeys) return;
    const TilePlace& at = context.at;
    const std::int64_t ahead = context.ahead(0);
    bool is_row = true;  // the queries are beside consecutive keys
    for (std::int64_t i = 1; i < at.queries && is_row; ++i) is_row = context.ahead(i) == ahead + i;
    if (!is_row) {
      step = context.width;
      context.template fill<kLanes>();
      return;
    }
    set_tail(ahead - (at.keys - 1), ahead + context.width - 1);
    step = -1;  // distances increase along the lanes, and decrease from row to row
    first = values.values.data() + (ahead - values.first);
  }
  bool is_constant() const { return is_tail; }
  void start_row(std::int64_t row) {
    if constexpr (kLanes == Lanes::kQueries) return;
    const std::int64_t ahead = context.ahead(row), keys = context.at.keys;
    set_tail(ahead - (keys - 1), ahead);
    for (std::int64_t j = 0; !is_tail && j < keys; ++j) {  // distances decrease along the lanes
      context.room[j] = values.at(std::clamp(ahead - j, values.low, values.high));
    }
  }
  HWY_INLINE VF add(std::int64_t row, std::int64_t vector, VF s) const {
    return hn::Add(s, load(first + row * step, vector));
  }

  // Whether all these distances are in one tail.
  void set_tail(std::int64_t low, std::int64_t high) {
    is_tail = high <= values.low || low >= values.high;
    if (is_tail) constant = values.at(high <= values.low ? values.low : values.high);
  }
};

}  // namespace posenc::terms::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
