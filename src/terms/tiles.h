#pragma once

#include <cstdint>
#include <variant>

#include "forms/memory.h"
#include "terms/term.h"

namespace posenc::terms {

/// Scores of tiles are in units of log 2, so that softmax is a sum of powers of 2: scale and biases are multiplied by this.
inline constexpr double kLog2E = 1.4426950408889634;

/// A rectangle of scores.
struct TilePlace {
  std::int64_t b, h, first_query, queries, first_key, keys;
};
/// The tokens in the lanes of a tile's vectors; the others are its rows.
enum class Lanes { kQueries, kKeys };

/// The extents for which tiles are prepared; `reach`: the longest side of a tile.
struct TileExtents {
  std::int64_t batch, heads, reach;
};

// What a term needs for its tiles, prepared once for a call. The SIMD code that reads it is in KIND-inl.h.

struct NoTiles {};       ///< adds nothing
struct ElementTiles {};  ///< no SIMD code: one element at a time, in double

/// Slopes.
struct SlopeTiles {
  AlignedVector<float> slopes;  // [heads] −slope · log2 e
};

/// A table by distance: the biases of one head by x = query position − key position, values[x − first], with constant
/// tails.
struct DistanceRow {
  AlignedVector<float> values;  // padded with the tails, so that a tile can be read past either end
  std::int64_t first = 0;
  std::int64_t low = 0, high = 0;  // constant for x ≤ low and for x ≥ high
  float at(std::int64_t x) const noexcept { return values[x - first]; }
};
struct DistanceTiles {
  AlignedVector<DistanceRow> rows;  // [heads]
};

/// Sums of gates in units of log 2, each as two f32 that together have 48 bits: the difference of two sums keeps the
/// precision of f32 however large both are.
struct GateTiles {
  AlignedVector<float> highs, lows;  // [batch, heads, stride], padded by a vector
  std::int64_t stride = 0, heads = 0;
  std::int64_t row(std::int64_t b, std::int64_t h) const noexcept { return (b * heads + h) * stride; }
};

/// One of these: the terms with SIMD code.
using Tiles = std::variant<NoTiles, ElementTiles, SlopeTiles, DistanceTiles, GateTiles>;

/// The tiles of a bias: those of its term, ElementTiles if that has none for such tokens, NoTiles if only q and k say
/// what it adds.
Tiles tiles_of(const Bias& bias, const Tokens& tokens, const TileExtents& extents);

/// Fills a tile with the elements of a bias, in units of log 2:
/// tile[(j − first_key) · key_step + (i − first_query) · query_step].
void fill_tile(const Bias& bias, const Tokens& tokens, const TilePlace& place, float* tile, std::int64_t key_step,
               std::int64_t query_step);

}  // namespace posenc::terms
