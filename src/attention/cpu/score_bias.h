#pragma once

#include <cstdint>
#include "attention/job.h"

namespace posenc::attend::cpu {

/// Scores are in units of log 2, so that softmax is a sum of powers of 2: scale and biases are multiplied by this.
inline constexpr double kLog2E = 1.4426950408889634;

/// Biases of one head by x = query position − key position, with constant tails: values[x − first].
struct DistanceRow {
  AlignedVector<float> values;  // padded with the tails, so that a tile can be read past either end
  std::int64_t first = 0;
  std::int64_t low = 0, high = 0;  // constant for x ≤ low and for x ≥ high
  float at(std::int64_t x) const noexcept { return values[static_cast<std::size_t>(x - first)]; }
};

/// A sum of gates in units of log 2, as two f32 that together have 48 bits: the difference of two sums keeps the
/// precision of f32 however large both are.
struct SplitSum {
  float high = 0, low = 0;
};

/// How position enters a tile of scores.
struct ScoreBias {
  enum class Kind { kNone, kSlope, kDistance, kTile, kGates, kCounts };
  Kind kind = Kind::kNone;
  AlignedVector<float> slopes;      // [heads] −slope · log2 e
  AlignedVector<DistanceRow> rows;  // [heads]
  // The vectors that distances select, [heads, rows, features], as they are multiplied with scaled queries, plain
  // keys and weights.
  AlignedVector<float> query_vectors, key_vectors, value_vectors;
  std::int64_t query_rows = 0, key_rows = 0, value_rows = 0;
  std::int64_t query_features = 0;     // of query_vectors
  AlignedVector<float> offset_scores;  // [heads, query rows]: the contribution of the queries' offsets; empty: none
  AlignedVector<float> gate_highs,
      gate_lows;  // [batch, heads, gate_stride]: sums of gates, padded by a vector
  std::int64_t gate_stride = 0, gate_heads = 0;

  std::int64_t gate_row(std::int64_t b, std::int64_t h) const noexcept { return (b * gate_heads + h) * gate_stride; }
  SplitSum gate_sum(std::int64_t b, std::int64_t h, std::int64_t token) const noexcept {
    const auto at = static_cast<std::size_t>(gate_row(b, h) + token);
    return {gate_highs[at], gate_lows[at]};
  }
};

/// `reach`: the longest extent of a tile in either direction.
ScoreBias prepare_bias(const AttentionJob& job, std::int64_t reach);

/// Fills a tile of biases, in units of log 2, from any source except vectors:
/// tile[(j − first_key) · key_step + (i − first_query) · query_step].
struct TilePlace {
  std::int64_t b, h, first_query, queries, first_key, keys;
};
void fill_tile(const AttentionJob& job, const TilePlace& place, float* tile, std::int64_t key_step,
               std::int64_t query_step);

/// The same for the caller's mask; 0 where it masks a key, which callers skip.
void fill_mask(const AttentionJob& job, const TilePlace& place, float* tile, std::int64_t key_step,
               std::int64_t query_step);

}  // namespace posenc::attend::cpu
