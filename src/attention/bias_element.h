#pragma once

#include <algorithm>
#include <variant>

#include "attention/job.h"
#include "kernels/bias_element.h"

namespace posenc::attend {

using kernels::entry_of;

/// The row of the table for query i and key j of sequence b.
inline std::int64_t row_of(const DistanceTable& source, const AttentionJob& job, std::int64_t b, std::int64_t i,
                           std::int64_t j) noexcept {
  std::int64_t row = 0;
  for (std::size_t axis = 0; axis < source.axes.size(); ++axis) {
    row += entry_of(source.axes[axis], job.distance(b, i, j, static_cast<int>(axis)));
  }
  return row;
}

inline double ratio_bias(const DistanceRatios& source, std::int64_t h, double ratio) noexcept {
  const std::size_t width = source.hidden_weights.size();
  double sum = source.output_biases[static_cast<std::size_t>(h)];
  for (std::size_t unit = 0; unit < width; ++unit) {
    const double hidden = std::max(0.0, kernels::hidden_sum(source, unit, ratio));
    sum += source.output_weights[static_cast<std::size_t>(h) * width + unit] * hidden;
  }
  return sum;
}

/// The bias for the score of query i and key j in head h. DistanceVectors and CountedGates need q and k: see each_row
/// and contextual.h.
inline double bias_element(const AttentionJob& job, std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j) {
  const auto& source = job.bias->source;
  if (const auto* slopes = std::get_if<Slopes>(&source)) {
    return kernels::slope_bias(slopes->slopes[static_cast<std::size_t>(h)], job.distance(b, i, j, 0));
  }
  if (const auto* table = std::get_if<DistanceTable>(&source)) {
    return kernels::table_element<double>(table_of(*table, job.bias->heads), row_of(*table, job, b, i, j), h);
  }
  if (const auto* ratios = std::get_if<DistanceRatios>(&source)) {
    return ratio_bias(*ratios, h, kernels::ratio_of(*ratios, job.places.queries.at(b, i), job.distance(b, i, j, 0)));
  }
  if (job.gate_sums != nullptr) return job.gate_sum(b, h, job.sight(b, i).beside) - job.gate_sum(b, h, j);
  return 0;
}

/// Element `f` of a row of vectors for head h; `table` is [rows, features] or [heads, rows, features].
inline double vector_element(const ConstTensorView& table, std::int64_t h, std::int64_t row, std::int64_t f) {
  if (table.shape.rank != 3) return kernels::table_element<double>(table, row, f);
  ConstTensorView rows = table;
  rows.data = static_cast<const char*>(table.data) + h * table.strides[0] * size_of(table.type);
  rows.strides = {table.strides[1], table.strides[2]};
  return kernels::table_element<double>(rows, row, f);
}

/// Calls visit(row) for each row that the distance of query i and key j selects: one per axis, or none.
template <class Visit> inline void each_row(const VectorsByDistance& vectors, const AttentionJob& job, std::int64_t b,
                                            std::int64_t i, std::int64_t j, const Visit& visit) {
  for (std::size_t axis = 0; axis < vectors.axes.size(); ++axis) {
    const std::int64_t row = entry_of(vectors.axes[axis], job.distance(b, i, j, static_cast<int>(axis)));
    if (row != kNoRow) visit(row);
  }
}

/// The job's vectors by distance, or nullptr.
inline const DistanceVectors* vectors_in(const AttentionJob& job) noexcept {
  return job.bias == nullptr ? nullptr : std::get_if<DistanceVectors>(&job.bias->source);
}

/// The job's contextual positions, or nullptr.
inline const CountedGates* counted_gates_in(const AttentionJob& job) noexcept {
  return job.bias == nullptr ? nullptr : std::get_if<CountedGates>(&job.bias->source);
}

/// How many parameters of a bias belong to one head, and to which of them dS of one pair is added. The first layer of
/// a learned map is shared by the heads; each head collects its own contribution to it.
struct ParameterCount {
  std::int64_t operator()(const Slopes&) const { return 1; }
  std::int64_t operator()(const DistanceTable& source) const { return table_of(source, heads).shape[0]; }
  std::int64_t operator()(const DistanceVectors&) const { return 0; }
  std::int64_t operator()(const GateSums&) const { return 0; }
  std::int64_t operator()(const CountedGates&) const { return 0; }
  std::int64_t operator()(const DistanceRatios& source) const {
    return 3 * static_cast<std::int64_t>(source.hidden_weights.size()) + 1;
  }
  std::int64_t heads;
};
inline void add_to_parameters(const AttentionJob& job, std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j,
                              double ds, double* sums) {
  const auto& source = job.bias->source;
  if (std::holds_alternative<Slopes>(source)) {
    sums[0] += ds * kernels::slope_bias(1.0, job.distance(b, i, j, 0));
  } else if (const auto* table = std::get_if<DistanceTable>(&source)) {
    sums[row_of(*table, job, b, i, j)] += ds;
  } else if (const auto* ratios = std::get_if<DistanceRatios>(&source)) {
    const std::size_t width = ratios->hidden_weights.size();
    const double ratio = kernels::ratio_of(*ratios, job.places.queries.at(b, i), job.distance(b, i, j, 0));
    for (std::size_t u = 0; u < width; ++u) {
      const double hidden = kernels::hidden_sum(*ratios, u, ratio);
      if (hidden <= 0) continue;
      const double d_hidden = ds * ratios->output_weights[static_cast<std::size_t>(h) * width + u];
      sums[u] += d_hidden * ratio;
      sums[width + u] += d_hidden;
      sums[2 * width + u] += ds * hidden;
    }
    sums[3 * width] += ds;
  }
}

}  // namespace posenc::attend
