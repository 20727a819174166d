// A table's gradient from the sums by distance, one thread per element: the sum over the distances that read it. The
// bias far away has no sum of its own: every row of dS sums to zero, so it is minus the sum of all others.

#include "attention/cuda/params.h"
#include "kernels/cuda/elements.cuh"

namespace posenc::attend::cuda {

extern "C" __global__ void __launch_bounds__(128) table_gradient(const __grid_constant__ TableGradientParams p) {
  using namespace kernels::cuda;
  const std::int64_t n = global_thread();
  if (n >= p.rows * p.heads) return;
  const std::int64_t row = n / p.heads, head = n - row * p.heads;
  const float* const distances = p.d_distances + head * kMostDistance;
  double sum = 0, all = 0;
  for (std::int32_t d = 0; d < p.tail; ++d) {
    const double one = widened(distances[d]);
    all += one;
    if (p.entries[p.tail - d] == row) sum += one;
  }
  if (p.has_far != 0 && p.entries[0] == row) sum -= all;
  const std::int64_t at = row * p.row_stride + head * p.head_stride;
  store(p.gradient, p.type, at, load(p.gradient, p.type, at) + sum);
}

}  // namespace posenc::attend::cuda
