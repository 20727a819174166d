#include "terms/slopes/slopes.h"

#include "terms/tables.h"

namespace posenc::terms {

void Term<Slopes>::check(std::string_view verb, const Slopes& source, std::int64_t heads) {
  check_size(verb, "slopes", source.slopes.size(), heads);
}

std::optional<SlopeTiles> Term<Slopes>::tiles(const Slopes& source, const Tokens& tokens, const TileExtents&) {
  if (!tokens.places.by_index) return std::nullopt;
  SlopeTiles tiles;
  tiles.slopes.reserve(source.slopes.size());
  for (const double slope : source.slopes) tiles.slopes.push_back(static_cast<float>(-slope * kLog2E));
  return tiles;
}

}  // namespace posenc::terms
