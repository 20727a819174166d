// Adds sums to the gradient of a bias's parameters, rounding each element once.

#include "attention/cuda/sm80_params.h"
#include "kernels/cuda/elements.cuh"

namespace posenc::attend::cuda {

extern "C" __global__ void __launch_bounds__(128) add_sums(const __grid_constant__ AddSumsParams p) {
  using namespace kernels::cuda;
  for (std::int64_t n = global_thread(); n < p.rows * p.heads; n += global_threads()) {
    const std::int64_t head = n / p.rows, row = n - head * p.rows, at = row * p.row_stride + head * p.head_stride;
    store(p.gradient, p.type, at, load(p.gradient, p.type, at) + p.sums[n]);
  }
}

}  // namespace posenc::attend::cuda
