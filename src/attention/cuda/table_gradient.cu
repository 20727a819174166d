// A table's gradient from the sums by distance, one thread per element: the sum over the distances that read it. The
// bias far to the left has no sum of its own: every row of dS sums to zero, so it is minus the sum of all others.

#include "attention/cuda/params.h"
#include "kernels/cuda/elements.cuh"

namespace posenc::attend::cuda {

extern "C" __global__ void __launch_bounds__(128) table_gradient(const __grid_constant__ TableGradientParams p) {
  using namespace kernels::cuda;
  const std::int64_t n = global_thread();
  if (n >= p.rows * p.heads) return;
  const std::int64_t row = n / p.heads, head = n - row * p.heads;
  const float* const distances = p.d_distances + head * 2 * kMostDistance;
  const auto entry = [&](std::int64_t distance) {
    const std::int64_t place = -distance - p.first, last = p.count - 1;
    return p.entries[place < 0 ? 0 : place > last ? last : place];
  };
  double sum = 0, all = 0;
  const auto add = [&](std::int32_t distance, float found) {
    const double one = widened(found);
    all += one;
    if (entry(distance) == row) sum += one;
  };
  const std::int32_t most_right = p.right_tail < kMostDistance ? p.right_tail : kMostDistance;
  add(-p.right_tail, distances[0]);
  for (std::int32_t d = 1 - most_right; d < p.tail; ++d) add(d, distances[kMostDistance + d]);
  if (p.has_far != 0 && entry(p.tail) == row) sum -= all;
  const std::int64_t at = row * p.row_stride + head * p.head_stride;
  store(p.gradient, p.type, at, load(p.gradient, p.type, at) + sum);
}

}  // namespace posenc::attend::cuda
