// What the gradients need for each row, one warp per row: delta = Σ d_out · out, and −logsumexp in powers of two.
// POSENC_F16 is 1 for f16 and 0 for bf16.

#include "attention/cuda/sm80.cuh"

namespace posenc::attend::cuda {

extern "C" __global__ void __launch_bounds__(128) sm80_rows(const __grid_constant__ Sm80RowsParams p) {
  using namespace kernels::cuda;
  const std::int64_t row = global_thread() / 32;
  const int lane = static_cast<int>(thread() % 32);
  if (row >= p.rows) return;
  const std::int64_t bh = row / p.queries, query = row - bh * p.queries, batch = bh / p.heads,
                     head = bh - batch * p.heads;
  const auto at = [&](const Sm80Tensor& x, int f) {
    const std::uint16_t bits =
        static_cast<const std::uint16_t*>(x.data)[batch * x.batch + head * x.head + query * x.token + f * x.feature];
    return unpack(bits, false);
  };
  float sum = 0;
  for (int f = lane; f < p.out.features; f += 32) sum = __builtin_fmaf(at(p.out, f), at(p.d_out, f), sum);
#pragma unroll
  for (int n = 16; n > 0; n /= 2) sum += from_neighbour(sum, n);
  if (lane != 0) return;
  p.delta[row] = sum;
  p.neg_lse[row] = -p.logsumexp[batch * p.lse_batch + head * p.lse_head + query * p.lse_token] * kSm80Log2e;
}

}  // namespace posenc::attend::cuda
