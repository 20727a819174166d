#pragma once

#include <cstdint>

#include "attention/job.h"
#include "terms/tiles.h"

namespace posenc::attend::cpu {

using terms::kLog2E;
using terms::TilePlace;

/// How position enters a tile of scores.
struct ScoreBias {
  terms::Tiles tiles;  // what does not depend on q and k
  // The vectors that distances or counts select, [heads, rows, features], as they are multiplied with scaled queries,
  // plain keys and weights.
  AlignedVector<float> query_vectors, key_vectors, value_vectors;
  std::int64_t query_rows = 0, key_rows = 0, value_rows = 0;
  std::int64_t query_features = 0;     // of query_vectors
  AlignedVector<float> offset_scores;  // [heads, query rows]: the contribution of the queries' offsets; empty: none
  bool counts_gates = false;           // contextual positions select the vectors

  bool has_vectors() const noexcept { return query_rows > 0 || key_rows > 0 || value_rows > 0; }
  /// Whether distances select vectors that enter the scores.
  bool has_score_vectors() const noexcept { return !counts_gates && (query_rows > 0 || key_rows > 0); }
};

/// `reach`: the longest extent of a tile in either direction.
ScoreBias prepare_bias(const AttentionJob& job, std::int64_t reach);

/// Fills a tile with the caller's mask, in units of log 2; 0 where it masks a key, which callers skip:
/// tile[(j − first_key) · key_step + (i − first_query) · query_step].
void fill_mask(const AttentionJob& job, const TilePlace& place, float* tile, std::int64_t key_step,
               std::int64_t query_step);

}  // namespace posenc::attend::cpu
