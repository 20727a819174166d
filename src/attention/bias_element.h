#pragma once

#include <algorithm>
#include <cmath>
#include <variant>

#include "attention/job.h"
#include "kernels/element.h"

namespace posenc::attend {

inline std::int64_t entry_of(const DistanceMap& map, std::int64_t delta) noexcept {
  const auto last = static_cast<std::int64_t>(map.entries.size()) - 1;
  return map.entries[static_cast<std::size_t>(std::clamp(delta - map.first, std::int64_t{0}, last))];
}

/// The row of the table for query i and key j of sequence b.
inline std::int64_t row_of(const DistanceTable& source, const AttentionJob& job, std::int64_t b, std::int64_t i,
                           std::int64_t j) noexcept {
  std::int64_t row = 0;
  for (std::size_t axis = 0; axis < source.axes.size(); ++axis) {
    row += entry_of(source.axes[axis], job.distance(b, i, j, static_cast<int>(axis)));
  }
  return row;
}

inline double ratio_bias(const DistanceRatios& source, std::int64_t h, std::int64_t m, std::int64_t delta) noexcept {
  const double length = std::max(source.logs[static_cast<std::size_t>(m)], source.least) + source.epsilon;
  const double x = source.logs[static_cast<std::size_t>(std::abs(delta))] / length;
  const std::size_t width = source.hidden_weights.size();
  double sum = source.output_biases[static_cast<std::size_t>(h)];
  for (std::size_t unit = 0; unit < width; ++unit) {
    const double hidden = source.hidden_weights[unit] * x + source.hidden_biases[unit];
    if (hidden > 0) sum += source.output_weights[static_cast<std::size_t>(h) * width + unit] * hidden;
  }
  return sum;
}

/// What the bias adds to the score of query i and key j in head h. DistanceVectors need q and k: see vector_element.
inline double bias_element(const AttentionJob& job, std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j) {
  const auto& source = job.bias->source;
  if (const auto* slopes = std::get_if<Slopes>(&source)) {
    return -slopes->slopes[static_cast<std::size_t>(h)] * static_cast<double>(std::abs(job.distance(b, i, j, 0)));
  }
  if (const auto* table = std::get_if<DistanceTable>(&source)) {
    return kernels::table_element<double>(table_of(*table, job.bias->heads), row_of(*table, job, b, i, j), h);
  }
  if (const auto* ratios = std::get_if<DistanceRatios>(&source)) {
    return ratio_bias(*ratios, h, job.places.queries.at(b, i), job.distance(b, i, j, 0));
  }
  return 0;
}

/// Element `f` of the vector that a distance picks for head h.
inline double vector_element(const VectorsByDistance& vectors, std::int64_t h, std::int64_t row, std::int64_t f) {
  ConstTensorView rows = vectors.table;
  if (rows.shape.rank == 3) {
    rows.data = static_cast<const char*>(rows.data) + h * rows.strides[0] * size_of(rows.type);
    rows.strides = {vectors.table.strides[1], vectors.table.strides[2]};
  }
  return kernels::table_element<double>(rows, row, f);
}

}  // namespace posenc::attend
