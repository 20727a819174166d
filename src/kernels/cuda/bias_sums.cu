// Adds up the shares of bias_backward, in order, and adds the result to the gradient: one thread per parameter,
// rounded once.

#include "kernels/cuda/biases.cuh"

namespace posenc::kernels::cuda {

extern "C" __global__ void __launch_bounds__(128) bias_sums(const __grid_constant__ BiasBackwardParams p) {
  const std::int64_t heads = p.bias.heads, width = p.bias.width;
  for (std::int64_t n = global_thread(); n < p.parameters; n += global_threads()) {
    // The index within a head's part; the first layer of a learned map is shared by all heads.
    std::int64_t row = n / heads, column = n % heads, part = row, first_head = column, end_head = column + 1;
    if (p.bias.kind == kBiasRatios) {
      row = n, column = 0;
      if (n < 2 * width) {
        part = n, first_head = 0, end_head = heads;
      } else if (n < 2 * width + heads * width) {
        part = 2 * width + (n - 2 * width) % width, first_head = (n - 2 * width) / width, end_head = first_head + 1;
      } else {
        part = 3 * width, first_head = n - 2 * width - heads * width, end_head = first_head + 1;
      }
    }
    double sum = 0;
    for (std::int64_t share = 0; share < p.shares; ++share) {
      for (std::int64_t h = first_head; h < end_head; ++h) sum += p.parts[(share * heads + h) * p.count + part];
    }
    const std::int64_t at = row * p.row_stride + column * p.head_stride;
    store(p.gradient, p.type, at, load(p.gradient, p.type, at) + sum);
  }
}

}  // namespace posenc::kernels::cuda
