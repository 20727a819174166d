#pragma once

#include <cstdint>
#include "attention/job.h"

namespace posenc::attend::cpu {

/// Scores are made in units of log 2, so that softmax is a sum of powers of 2: scale and biases are multiplied by
/// this.
inline constexpr double kLog2E = 1.4426950408889634;

/// Biases of one head by x = query position − key position, with constant tails: values[x − first].
struct DistanceRow {
  AlignedVector<float> values;  // padded with the tails on both sides, so that a tile can be read over either end
  std::int64_t first = 0;
  std::int64_t low = 0, high = 0;  // for x ≤ low and for x ≥ high it is constant
  float at(std::int64_t x) const noexcept { return values[static_cast<std::size_t>(x - first)]; }
};

/// A sum of gates in units of log 2, as two f32 that together have 48 bits: the difference of two sums keeps f32's
/// precision however far both are from 0.
struct SplitSum {
  float high = 0, low = 0;
};

/// How position enters a tile of scores.
struct ScoreBias {
  enum class Kind { kNone, kSlope, kDistance, kTile, kGates, kCounts };
  Kind kind = Kind::kNone;
  AlignedVector<float> slopes;      // [heads] −slope · log2 e
  AlignedVector<DistanceRow> rows;  // [heads]
  // The vectors that distances pick, [heads, rows, features], as they meet scaled queries, plain keys and weights.
  AlignedVector<float> query_vectors, key_vectors, value_vectors;
  std::int64_t query_rows = 0, key_rows = 0, value_rows = 0;
  std::int64_t query_features = 0;     // of query_vectors
  AlignedVector<float> offset_scores;  // [heads, query rows]: what the offsets of queries add; empty: none
  AlignedVector<float> gate_highs,
      gate_lows;  // [batch, heads, gate_stride]: sums of gates; room for a vector past the last
  std::int64_t gate_stride = 0, gate_heads = 0;

  std::int64_t gate_row(std::int64_t b, std::int64_t h) const noexcept { return (b * gate_heads + h) * gate_stride; }
  SplitSum gate_sum(std::int64_t b, std::int64_t h, std::int64_t token) const noexcept {
    const auto at = static_cast<std::size_t>(gate_row(b, h) + token);
    return {gate_highs[at], gate_lows[at]};
  }
};

/// `reach`: no tile is longer, in either direction.
ScoreBias prepare_bias(const AttentionJob& job, std::int64_t reach);

/// A tile of biases, in units of log 2, whatever the source but vectors:
/// tile[(j − first_key) · key_step + (i − first_query) · query_step].
struct TilePlace {
  std::int64_t b, h, first_query, queries, first_key, keys;
};
void fill_tile(const AttentionJob& job, const TilePlace& place, float* tile, std::int64_t key_step,
               std::int64_t query_step);

/// The same of the caller's mask; 0 where it hides a key, which callers leave out.
void fill_mask(const AttentionJob& job, const TilePlace& place, float* tile, std::int64_t key_step,
               std::int64_t query_step);

}  // namespace posenc::attend::cpu
