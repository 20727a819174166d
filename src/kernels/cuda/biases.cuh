#pragma once

// What a bias reads for a query and a key: distances, rows of tables, ratios.

#include "kernels/cuda/elements.cuh"

namespace posenc::kernels::cuda {

/// A query and a key of one sequence.
struct ScorePlace {
  std::int64_t b, i, j;
};

__device__ __forceinline__ std::int64_t bias_position(const PositionParams& p, std::int64_t b, std::int64_t t,
                                                      std::int64_t axis) {
  return p.ids == nullptr ? p.first + t : p.ids[axis * p.axis_stride + b * p.batch_stride + t];
}
__device__ __forceinline__ std::int64_t distance_of(const BiasParams& p, const ScorePlace& at, std::int64_t axis) {
  return bias_position(p.key_positions, at.b, at.j, axis) - bias_position(p.query_positions, at.b, at.i, axis);
}
__device__ __forceinline__ double size_of_distance(const BiasParams& p, const ScorePlace& at) {
  const std::int64_t apart = distance_of(p, at, 0);
  return static_cast<double>(apart < 0 ? -apart : apart);
}

/// The row of a table by distance.
__device__ __forceinline__ std::int64_t row_of(const BiasParams& p, const ScorePlace& at) {
  std::int64_t row = 0;
  for (int axis = 0; axis < p.axes; ++axis) {
    const std::int64_t entry = distance_of(p, at, axis) - p.map_first[axis], last = p.map_size[axis] - 1;
    row += p.map_entries[axis][entry < 0 ? 0 : entry > last ? last : entry];
  }
  return row;
}

/// The input of a learned map: the distance to the key, relative to the position of the query.
__device__ __forceinline__ double ratio_of(const BiasParams& p, const ScorePlace& at) {
  const std::int64_t apart = distance_of(p, at, 0);
  const double reached = p.logs[bias_position(p.query_positions, at.b, at.i, 0)];
  const double over = (reached < p.least ? p.least : reached) + p.epsilon;
  double ratio;
  asm("div.rn.f64 %0, %1, %2;" : "=d"(ratio) : "d"(p.logs[apart < 0 ? -apart : apart]), "d"(over));
  return ratio;
}
__device__ __forceinline__ double hidden_of(const BiasParams& p, std::int64_t unit, double ratio) {
  return p.hidden_weights[unit] * ratio + p.hidden_biases[unit];
}

}  // namespace posenc::kernels::cuda
