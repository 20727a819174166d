// What a term adds to a tile of scores, for code that is compiled once per SIMD target. TileOf<Tiles, lanes> is made for
// one tile; then, for each row,
//   start_row(row)             before its vectors
//   add(row, vector, scores)   the scores of a vector of lanes plus their biases
//   is_constant(), constant    the same number is to be added to the whole row (if lanes are queries: to the whole tile),
//                              and add() must not be called
// SVE vectors cannot be members, so a tile keeps floats.

#if defined(POSENC_TILE_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef POSENC_TILE_INL_H
#undef POSENC_TILE_INL_H
#else
#define POSENC_TILE_INL_H
#endif

#include <cstdint>

#include "hwy/highway.h"
#include "terms/lanes-inl.h"
#include "terms/tiles.h"

HWY_BEFORE_NAMESPACE();
namespace posenc::terms::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// A tile, and room for its biases: rows of `width` floats, or a single row if there is only one.
struct TileContext {
  const Bias* bias;
  const Tokens& tokens;
  TilePlace at;
  float* room;
  std::int64_t width;

  // query position − key position, for the tile's query i and its first key; if places are by_index
  HWY_INLINE std::int64_t ahead(std::int64_t i) const {
    return tokens.key_range(at.b, at.first_query + i).diagonal + tokens.places.shift - at.first_key;
  }
  // Fills the room with elements.
  template <Lanes kLanes> void fill() const {
    constexpr bool by_query = kLanes == Lanes::kQueries;
    fill_tile(*bias, tokens, at, room, by_query ? width : 1, by_query ? 1 : width);
  }
};

template <class Tiles, Lanes kLanes> struct TileOf;

template <Lanes kLanes> struct TileOf<NoTiles, kLanes> {
  static constexpr float constant = 0;
  TileOf(const NoTiles&, const TileContext&) {}
  static constexpr bool is_constant() { return true; }
  void start_row(std::int64_t) {}
  HWY_INLINE VF add(std::int64_t, std::int64_t, VF s) const { return s; }
};

template <Lanes kLanes> struct TileOf<ElementTiles, kLanes> {
  static constexpr float constant = 0;
  const float* room;
  std::int64_t width;

  TileOf(const ElementTiles&, const TileContext& context) : room(context.room), width(context.width) {
    context.template fill<kLanes>();
  }
  static constexpr bool is_constant() { return false; }
  void start_row(std::int64_t) {}
  HWY_INLINE VF add(std::int64_t row, std::int64_t vector, VF s) const {
    return hn::Add(s, load(room + row * width, vector));
  }
};

// Calls visit(tile) with the tile of a term.
template <Lanes kLanes, class Visit>
HWY_INLINE void with_tile(const Tiles& tiles, const TileContext& context, const Visit& visit) {
  std::visit(
      [&](const auto& kind) HWY_ATTR {
        TileOf<std::decay_t<decltype(kind)>, kLanes> tile(kind, context);
        visit(tile);
      },
      tiles);
}

}  // namespace posenc::terms::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
