#pragma once

#include <cstdint>
#include <string_view>

#include "posenc/prepare_options.h"

namespace posenc {

/// Disentangled attention: the query is dotted with one distance vector and the key with another. Short
/// distances have a vector each, longer ones share them in buckets that widen by a constant factor.
///
///   score(m, n) = (q_m·k_n + q_m·K[row(m − n)] + k_n·Q[row(m − n)]) / √(3·features)
///   row(d) = clip(bucket(d) + S, 0, 2S − 1)
///
///   bucket(d) = d                                                                   for |d| ≤ M
///               sign(d) · (M + ⌈ln(|d|/M) / ln((max_distance − 1)/M) · (M − 1)⌉)    beyond
///
///   S = buckets, M = ⌊S/2⌋;  with buckets 0 (the first DeBERTa): bucket(d) = d, S = max_distance
///
/// He et al., 2020 and 2021, "DeBERTa" and "DeBERTaV3". K and Q are the table of distances after the layer's key and
/// query projections. The paper indexes Q by n − m; its code and models use m − n, as here. The boundaries of the
/// buckets are integers and computed exactly.
struct Deberta {
  static constexpr std::string_view name = "deberta";
  static constexpr std::string_view family = "bias";
  static constexpr std::string_view formula = "(score + q.K[bucket(m-n)] + k.Q[bucket(m-n)]) / sqrt(3)";
  static constexpr std::string_view used_by = "DeBERTa, DeBERTa-v2, DeBERTa-v3, mDeBERTa, SEW-D";

  std::int64_t buckets = 256;
  std::int64_t max_distance = 512;
  bool content_to_position = true;
  bool position_to_content = true;

  template <class Visitor> static void fields(Visitor&& visit) {
    visit("buckets", &Deberta::buckets, "buckets per direction; 0: one per distance");
    visit("max_distance", &Deberta::max_distance, "distances from this one on share the last bucket");
    visit("content_to_position", &Deberta::content_to_position, "add the content-to-position term (c2p)");
    visit("position_to_content", &Deberta::position_to_content, "add the position-to-content term (p2c)");
  }
  TrainedTable trained_table() const;
  bool operator==(const Deberta&) const = default;
};

/// The tables are the caller's, each [heads, 2S, features]: prepare(Deberta{…}, {.weights = K, .key_weights = Q}).
/// Only attention can add it.
/// Range: buckets 0 or 4 to 8192; max_distance 1 to 2^20, with buckets above M + 1; at least one of the two terms.
Bias prepare(const Deberta& scheme, const PrepareOptions& options = {});

/// The row of every distance δ = key − query; needs no table.
DistanceMap rows_of(const Deberta& scheme);

}  // namespace posenc
