#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "kernels/element.h"

namespace posenc::kernels {

/// The distance that counts on one axis.
inline std::int64_t entry_of(const DistanceMap& map, std::int64_t distance) noexcept {
  const auto last = static_cast<std::int64_t>(map.entries.size()) - 1;
  return map.entries[static_cast<std::size_t>(std::clamp<std::int64_t>(distance - map.first, 0, last))];
}

/// A query and a key of one sequence, by their positions.
struct QueryAndKey {
  const TokenPositions& queries;
  const TokenPositions& keys;
  std::int64_t b, i, j;

  std::int64_t distance(int axis = 0) const noexcept { return keys.at(b, j, axis) - queries.at(b, i, axis); }
  std::int64_t query() const noexcept { return queries.at(b, i); }
};

/// The row of a table that a query and a key read.
inline std::int64_t row_of(const DistanceTable& source, const QueryAndKey& pair) noexcept {
  std::int64_t row = 0;
  for (std::size_t axis = 0; axis < source.axes.size(); ++axis) {
    row += entry_of(source.axes[axis], pair.distance(static_cast<int>(axis)));
  }
  return row;
}

/// Subtracted from 0, so that a distance of 0 gives 0 and not −0.
inline double slope_bias(double slope, std::int64_t distance) noexcept {
  return 0.0 - slope * static_cast<double>(distance < 0 ? -distance : distance);
}

/// The distance to the key, relative to the position of the query.
inline double ratio_of(const DistanceRatios& source, std::int64_t query, std::int64_t distance) noexcept {
  const auto size = static_cast<std::size_t>(distance < 0 ? -distance : distance);
  return source.logs[size] / (std::max(source.logs[static_cast<std::size_t>(query)], source.least) + source.epsilon);
}
/// hidden[j] before the ReLU.
inline double hidden_sum(const DistanceRatios& source, std::size_t j, double ratio) noexcept {
  return source.hidden_weights[j] * ratio + source.hidden_biases[j];
}
/// The output of one head; `hidden` is after the ReLU.
inline double mapped_ratio(const DistanceRatios& source, std::size_t head, const double* hidden) noexcept {
  const std::size_t width = source.hidden_weights.size();
  double sum = source.output_biases[head];
  for (std::size_t j = 0; j < width; ++j) sum += source.output_weights[head * width + j] * hidden[j];
  return sum;
}
inline void fill_hidden(const DistanceRatios& source, double ratio, double* hidden) noexcept {
  for (std::size_t j = 0; j < source.hidden_weights.size(); ++j)
    hidden[j] = std::max(0.0, hidden_sum(source, j, ratio));
}

/// The gradient of a learned map. Heads share its first layer, so one thread computes it all, in order.
template <class G> void ratios_backward(const BiasBackwardJob& job, const DistanceRatios& source) {
  const std::size_t width = source.hidden_weights.size(), heads = source.output_biases.size();
  double* const d_hidden_weights = job.sums;
  double* const d_hidden_biases = d_hidden_weights + width;
  double* const d_output_weights = d_hidden_biases + width;
  double* const d_output_biases = d_output_weights + heads * width;
  std::vector<double> hidden(width), d_hidden(width);
  const HeadTensor<const void>& gradient = job.gradient;
  for (std::int64_t b = 0; b < gradient.batch; ++b) {
    for (std::int64_t i = 0; i < gradient.sequence; ++i) {
      for (std::int64_t j = 0; j < gradient.features; ++j) {
        const QueryAndKey pair{job.queries, job.keys, b, i, j};
        const double ratio = ratio_of(source, pair.query(), pair.distance());
        fill_hidden(source, ratio, hidden.data());
        std::fill(d_hidden.begin(), d_hidden.end(), 0.0);
        for (std::size_t h = 0; h < heads; ++h) {
          const G* row = gradient.template row<G>(b, static_cast<std::int64_t>(h), i);
          const double slope = numerics::widen(row[j * gradient.feature_stride]);
          d_output_biases[h] += slope;
          for (std::size_t u = 0; u < width; ++u) {
            d_output_weights[h * width + u] += slope * hidden[u];
            d_hidden[u] += slope * source.output_weights[h * width + u];
          }
        }
        for (std::size_t u = 0; u < width; ++u) {
          if (hidden[u] == 0) continue;
          d_hidden_weights[u] += d_hidden[u] * ratio;
          d_hidden_biases[u] += d_hidden[u];
        }
      }
    }
  }
}

}  // namespace posenc::kernels
