// Lays out a bias by distance for the kernels for any GPU, one float32 per distance.

#include "attention/cuda/sm80_params.h"
#include "kernels/cuda/elements.cuh"

namespace posenc::attend::cuda {

extern "C" __global__ void __launch_bounds__(128) spread_table(const __grid_constant__ SpreadTableParams p) {
  using namespace kernels::cuda;
  for (std::int64_t n = global_thread(); n < p.count * p.heads; n += global_threads()) {
    const std::int64_t head = n / p.count, at = n - head * p.count, row = p.entries[at];
    p.out[n] = narrowed(load(p.table.data, p.table.type, row * p.table.row_stride + head * p.table.column_stride));
    if (head == 0) p.rows[at] = static_cast<std::int32_t>(row);
  }
}

}  // namespace posenc::attend::cuda
