// −slope · |distance| in tiles. The distance is exact in f32 up to 2^24, and the sum is rounded once.

#if defined(POSENC_SLOPES_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef POSENC_SLOPES_INL_H
#undef POSENC_SLOPES_INL_H
#else
#define POSENC_SLOPES_INL_H
#endif

#include "terms/tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace posenc::terms::HWY_NAMESPACE {

template <Lanes kLanes> struct TileOf<SlopeTiles, kLanes> {
  static constexpr float constant = 0;
  const TileContext& context;
  float slope;
  HWY_ALIGN float ahead[kMostWidth] = {};  // of each query of the lanes, or of the row's
  TileOf(const SlopeTiles& tiles, const TileContext& a_context)
      : context(a_context), slope(tiles.slopes[a_context.at.h]) {
    for (std::int64_t i = 0; kLanes == Lanes::kQueries && i < context.at.queries; ++i) {
      ahead[i] = static_cast<float>(context.ahead(i));
    }
  }
  static constexpr bool is_constant() { return false; }
  void start_row(std::int64_t row) {
    if constexpr (kLanes == Lanes::kKeys) ahead[0] = static_cast<float>(context.ahead(row));
  }
  HWY_INLINE VF add(std::int64_t row, std::int64_t vector, VF s) const {
    const DF d;
    VF distance;
    if constexpr (kLanes == Lanes::kQueries) {
      distance = hn::Sub(load(ahead, vector), hn::Set(d, static_cast<float>(row)));
    } else {
      distance = hn::Sub(hn::Set(d, ahead[0]), hn::Iota(d, static_cast<float>(vector * lanes())));
    }
    return hn::MulAdd(hn::Set(d, slope), hn::Abs(distance), s);
  }
};

// If all keys of a tile are on one side of all its queries, slope · distance is a term of the query minus one of the key.
// Then the first is subtracted from `base`, one vector of queries, and `of_key` becomes the slope of the second.
// `ahead`: of the first query, relative to key 0; the queries are beside consecutive keys.
HWY_INLINE bool split_slope(const SlopeTiles& tiles, std::int64_t h, std::int64_t ahead, std::int64_t queries,
                            std::int64_t begin, std::int64_t end, float& of_key, float* HWY_RESTRICT base) {
  const bool all_before = ahead >= end - 1, all_after = ahead + queries - 1 <= begin;
  if (!all_before && !all_after) return false;
  const DF d;
  const float slope = tiles.slopes[h];
  of_key = all_before ? slope : -slope;
  const VF distances = hn::Add(hn::Set(d, static_cast<float>(ahead)), hn::Iota(d, 0.0f));
  store(hn::NegMulAdd(hn::Set(d, of_key), distances, load(base, 0)), base, 0);
  return true;
}

}  // namespace posenc::terms::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
