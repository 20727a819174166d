#include "terms/tiles.h"

#include <utility>

#include "terms/all.h"

namespace posenc::terms {

Tiles tiles_of(const Bias& bias, const Tokens& tokens, const TileExtents& extents) {
  return with_term(bias, [&](const auto& source, auto term) -> Tiles {
    if constexpr (requires { term.tiles(source, tokens, extents); }) {
      if (auto tiles = term.tiles(source, tokens, extents)) return *std::move(tiles);
    }
    if (term.is_in_elements) return ElementTiles{};
    return NoTiles{};
  });
}

void fill_tile(const Bias& bias, const Tokens& tokens, const TilePlace& place, float* tile, std::int64_t key_step,
               std::int64_t query_step) {
  with_term(bias, [&](const auto& source, auto term) {
    for (std::int64_t j = 0; j < place.keys; ++j) {
      for (std::int64_t i = 0; i < place.queries; ++i) {
        const Score at{tokens, place.b, place.h, place.first_query + i, place.first_key + j};
        tile[j * key_step + i * query_step] = static_cast<float>(kLog2E * term.element(source, bias.heads, at));
      }
    }
  });
}

}  // namespace posenc::terms
