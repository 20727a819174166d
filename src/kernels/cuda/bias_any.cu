// bias: one thread for each score, one after the other, in double.

#include "kernels/cuda/elements.cuh"

namespace posenc::kernels::cuda {
namespace {

__device__ __forceinline__ std::int64_t position_of(const PositionParams& p, std::int64_t b, std::int64_t t,
                                                    std::int64_t axis) {
  return p.ids == nullptr ? p.first + t : p.ids[axis * p.axis_stride + b * p.batch_stride + t];
}

__device__ double bias_at(const BiasParams& p, std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j) {
  const auto distance = [&](std::int64_t axis) {
    return position_of(p.key_positions, b, j, axis) - position_of(p.query_positions, b, i, axis);
  };
  if (p.kind == 1) {
    std::int64_t row = 0;
    for (int axis = 0; axis < p.axes; ++axis) {
      const std::int64_t at = distance(axis) - p.map_first[axis], last = p.map_size[axis] - 1;
      row += p.map_entries[axis][at < 0 ? 0 : at > last ? last : at];
    }
    return load(p.table.data, p.table.type, row * p.table.row_stride + h * p.table.column_stride);
  }
  const std::int64_t apart = distance(0), size = apart < 0 ? -apart : apart;
  if (p.kind == 0) return 0.0 - p.slopes[h] * static_cast<double>(size);
  const double reached = p.logs[position_of(p.query_positions, b, i, 0)];
  double ratio;
  const double over = (reached < p.least ? p.least : reached) + p.epsilon;
  asm("div.rn.f64 %0, %1, %2;" : "=d"(ratio) : "d"(p.logs[size]), "d"(over));
  double sum = p.output_biases[h];
  for (std::int64_t u = 0; u < p.width; ++u) {
    const double hidden = p.hidden_weights[u] * ratio + p.hidden_biases[u];
    sum += p.output_weights[h * p.width + u] * (0.0 < hidden ? hidden : 0.0);
  }
  return sum;
}

}  // namespace

extern "C" __global__ void __launch_bounds__(256) bias_any(const __grid_constant__ BiasParams p) {
  const std::int64_t count = p.batch * p.heads * p.queries * p.keys;
  for (std::int64_t n = global_thread(); n < count; n += global_threads()) {
    const std::int64_t j = n % p.keys, i = n / p.keys % p.queries, head = n / (p.keys * p.queries);
    const std::int64_t h = head % p.heads, b = head / p.heads;
    const std::int64_t at =
        b * p.out.batch_stride + h * p.out.head_stride + i * p.out.token_stride + j * p.out.feature_stride;
    store(p.out.data, p.out.type, at, bias_at(p, b, h, i, j));
  }
}

}  // namespace posenc::kernels::cuda
