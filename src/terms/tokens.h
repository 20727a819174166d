#pragma once

#include <cstdint>

#include "forms/tokens.h"

namespace posenc::terms {

/// The keys that one query attends to, `begin` to `end`. Causality, window, chunk, lengths and packed sequences are
/// all expressed this way.
struct KeyRange {
  std::int64_t begin = 0, end = 0;
  std::int64_t diagonal = 0;  // the key at the query's own token; may be past either end
};

/// Positions for distances. If both are consecutive in every sequence, the distance of query and key is that of
/// `diagonal` and the key, plus a constant.
struct TokenPlaces {
  TokenPositions queries, keys;
  bool by_index = true;    // the query's position − the key's = key_range.diagonal − key + shift
  std::int64_t shift = 0;  // if by_index
};

/// The tokens of a call: all that a term knows about them which does not read q and k.
struct Tokens {
  const TokenPlaces& places;
  const KeyRange* key_ranges = nullptr;  // [batch or 1, queries]; may be null if not by_index
  std::int64_t key_range_stride = 0;     // 0: the same for every sequence of the batch
  const double* gate_sums = nullptr;  // [batch, heads, keys]: g_0 + … + g_t of each token; null: the bias has none
  std::int64_t heads = 0, keys = 0;   // of gate_sums
  std::int64_t key_range_count = 0;

  const KeyRange& key_range(std::int64_t b, std::int64_t i) const noexcept {
    return key_ranges[b * key_range_stride + i];
  }
  /// δ of the bias: the key's position − the query's.
  std::int64_t distance(std::int64_t b, std::int64_t i, std::int64_t j, int axis) const noexcept {
    if (places.by_index) return j - key_range(b, i).diagonal - places.shift;
    return places.keys.at(b, j, axis) - places.queries.at(b, i, axis);
  }
  double gate_sum(std::int64_t b, std::int64_t h, std::int64_t token) const noexcept {
    return gate_sums[(b * heads + h) * keys + token];
  }
};

/// One score: query i and key j of sequence b in head h.
struct Score {
  const Tokens& tokens;
  std::int64_t b, h, i, j;

  std::int64_t distance(int axis = 0) const noexcept { return tokens.distance(b, i, j, axis); }
  std::int64_t query_position() const noexcept { return tokens.places.queries.at(b, i); }
};

}  // namespace posenc::terms
