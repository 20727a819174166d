#include "terms/gate_sums/gate_sums.h"

namespace posenc::terms {

std::optional<GateTiles> Term<GateSums>::tiles(const GateSums&, const Tokens& tokens, const TileExtents& extents) {
  const std::int64_t rows = extents.batch * tokens.heads;
  GateTiles tiles;
  tiles.heads = tokens.heads;
  tiles.stride = tokens.keys + extents.reach;
  tiles.highs.assign(rows * tiles.stride, 0.0f);
  tiles.lows.assign(tiles.highs.size(), 0.0f);
  for (std::int64_t row = 0; row < rows; ++row) {
    float* const highs = tiles.highs.data() + row * tiles.stride;
    float* const lows = tiles.lows.data() + row * tiles.stride;
    for (std::int64_t t = 0; t < tokens.keys; ++t) {
      const double sum = kLog2E * tokens.gate_sums[row * tokens.keys + t];
      highs[t] = static_cast<float>(sum);
      lows[t] = static_cast<float>(sum - static_cast<double>(highs[t]));
    }
  }
  return tiles;
}

}  // namespace posenc::terms
