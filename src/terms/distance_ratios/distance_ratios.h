#pragma once

#include <algorithm>
#include <cstddef>

#include "terms/term.h"

namespace posenc::terms {

/// The distance to the key, relative to the position of the query.
inline double ratio_of(const DistanceRatios& source, const Score& at) noexcept {
  const std::int64_t distance = at.distance();
  const std::size_t size = distance < 0 ? -distance : distance;
  const std::size_t query = at.query_position();
  return source.logs[size] / (std::max(source.logs[query], source.least) + source.epsilon);
}
/// A hidden unit after the ReLU.
inline double hidden_unit(const DistanceRatios& source, std::size_t unit, double ratio) noexcept {
  return std::max(0.0, source.hidden_weights[unit] * ratio + source.hidden_biases[unit]);
}
/// The output of one head; hidden(unit) is after the ReLU.
inline double output_of(const DistanceRatios& source, std::size_t head, const auto& hidden) noexcept {
  const std::size_t width = source.hidden_weights.size();
  double sum = source.output_biases[head];
  for (std::size_t unit = 0; unit < width; ++unit) sum += source.output_weights[head * width + unit] * hidden(unit);
  return sum;
}

template <> struct Term<DistanceRatios> : TermDefaults {
  static constexpr std::string_view name = "distance-ratios";

  static void check(std::string_view verb, const DistanceRatios& source, std::int64_t heads);
  static DistanceRatios some_heads(const DistanceRatios& all, std::int64_t, const HeadRange& range);
  static Cost cost(const DistanceRatios& source, const CostSizes& sizes);
  static std::int64_t length(const DistanceRatios& source) { return static_cast<std::int64_t>(source.logs.size()); }

  static double element(const DistanceRatios& source, std::int64_t, const Score& at) noexcept {
    const double ratio = ratio_of(source, at);
    return output_of(source, at.h, [&](std::size_t unit) { return hidden_unit(source, unit, ratio); });
  }

  /// hidden_weights, hidden_biases, output_weights and output_biases, one after another.
  static Extents parameters(const DistanceRatios& source, std::int64_t heads) {
    return {(2 + heads) * width_of(source) + heads};
  }
  /// The first layer is shared by the heads; each head collects its own contribution to it.
  static std::int64_t head_parameters(const DistanceRatios& source, std::int64_t) { return 3 * width_of(source) + 1; }
  static void add_gradient(const DistanceRatios& source, std::int64_t, const Score& at, double ds, double* sums);
  static double gradient(const DistanceRatios& source, std::int64_t heads, const double* sums, std::int64_t in_head,
                         std::int64_t index);
  /// Adds the gradients of all parameters for one query and key, in the order of parameters(); d_scores: one per head.
  static void add_gradients(const DistanceRatios& source, const Score& at, const double* d_scores, double* sums);

 private:
  static std::int64_t width_of(const DistanceRatios& source) {
    return static_cast<std::int64_t>(source.hidden_weights.size());
  }
};

}  // namespace posenc::terms
