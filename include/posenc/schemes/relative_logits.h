#pragma once

#include <cstdint>
#include <string_view>

#include "posenc/prepare_options.h"

namespace posenc {

/// Each token computes a bias for every distance to an earlier key: a vector r_m, projected from its hidden state like q,
/// is dotted with a trained vector of the distance. Keys farther away and later keys get no bias.
///
///   score(m, n) = scale · q_m·k_n + r_m·table[m − n]      for 0 ≤ m − n < extent
///                 scale · q_m·k_n                          elsewhere
///
/// Inkling (transformers 5.16, models/inkling/modeling_inkling.py, InklingRelativeLogits), where r has d_rel = 16
/// features, the scale is 1/D, and a temperature multiplies q and r. r is an input of attention,
/// AttentionOptions::position_queries.
struct RelativeLogits {
  static constexpr std::string_view name = "relative-logits";
  static constexpr std::string_view family = "bias";
  static constexpr std::string_view formula =
      "score + r.table[m-n] for 0 <= m-n < extent, r a projection of the token";
  static constexpr std::string_view used_by = "Inkling";

  std::int64_t extent = 1024;

  template <class Visitor> static void fields(Visitor&& visit) {
    visit("extent", &RelativeLogits::extent, "distances with a vector: 0 to extent-1 (rel_extent)");
  }
  TrainedTable trained_table() const;
  bool operator==(const RelativeLogits&) const = default;
};

/// The table is the caller's, [extent, features] for all heads or [heads, extent, features]; Inkling's `proj` is its
/// transpose: prepare(RelativeLogits{…}, {.weights = swap_axes(proj, 0, 1)}). Only attention can add it.
/// Range: extent 1 to 2^20.
Bias prepare(const RelativeLogits& scheme, const PrepareOptions& options = {});

}  // namespace posenc
