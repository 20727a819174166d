// bias: each thread computes one score after another, in double.

#include "kernels/cuda/biases.cuh"

namespace posenc::kernels::cuda {
namespace {

__device__ double bias_at(const BiasParams& p, std::int64_t h, const ScorePlace& at) {
  if (p.kind == kBiasTable) {
    return load(p.table.data, p.table.type, row_of(p, at) * p.table.row_stride + h * p.table.column_stride);
  }
  if (p.kind == kBiasSlopes) return 0.0 - p.slopes[h] * size_of_distance(p, at);
  const double ratio = ratio_of(p, at);
  double sum = p.output_biases[h];
  for (std::int64_t u = 0; u < p.width; ++u) {
    const double hidden = hidden_of(p, u, ratio);
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
    const std::int64_t at = b * p.scores.batch_stride + h * p.scores.head_stride + i * p.scores.token_stride +
                            j * p.scores.feature_stride;
    store(p.scores.data, p.scores.type, at, bias_at(p, h, {b, i, j}));
  }
}

}  // namespace posenc::kernels::cuda
