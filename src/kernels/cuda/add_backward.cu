// The gradient of a learned table. A block owns one row of the table and some of its columns, and visits the tokens
// at that row in order, so every sum is computed as on the host.

#include "kernels/cuda/elements.cuh"

namespace posenc::kernels::cuda {

extern "C" __global__ void __launch_bounds__(128) add_backward(const __grid_constant__ AddBackwardParams p) {
  const auto across = static_cast<std::uint32_t>((p.table.width + threads() - 1) / threads());
  const std::int64_t row = block() / across;
  const std::int64_t c = std::int64_t{block() % across} * threads() + thread();
  const std::int64_t sequence = p.gradient.sequence, tokens = p.gradient.batch * sequence;
  const std::int64_t wanted = row - p.offset;
  const bool live = c < p.table.width;
  double sum = 0;
  bool touched = false;
  const auto add = [&](std::int64_t b, std::int64_t t) {
    touched = true;
    if (!live) return;
    sum = sum_of(sum,
                 load(p.gradient.data, p.gradient.type,
                      sequence_offset(p.gradient, b) + t * p.gradient.token_stride + c * p.gradient.column_stride));
  };
  if (p.positions.ids == nullptr) {
    const std::int64_t t = wanted - p.positions.first;
    if (t < 0 || t >= sequence) return;
    for (std::int64_t b = 0; b < p.gradient.batch; ++b) add(b, t);
  } else {
    // 128 ids at a time; the tokens at this row are passed to all threads, in order.
    __shared__ std::uint32_t found[4];
    for (std::int64_t n0 = 0; n0 < tokens; n0 += 128) {
      const std::int64_t n = n0 + thread();
      bool here = false;
      if (n < tokens) here = position_at(p.positions, n / sequence, n % sequence, 0, p.fault) == wanted;
      const unsigned votes = ballot(here);
      if (thread() % 32 == 0) found[thread() / 32] = votes;
      sync_block();
      for (int w = 0; w < 4; ++w) {
        for (unsigned left = found[w]; left != 0; left &= left - 1) {
          const std::int64_t token = n0 + 32 * w + __builtin_ctz(left);
          add(token / sequence, token % sequence);
        }
      }
      sync_block();
    }
  }
  if (!touched || !live) return;
  const std::int64_t at = row * p.table.token_stride + c * p.table.column_stride;
  store(p.table.data, p.table.type, at, sum_of(load(p.table.data, p.table.type, at), sum));
}

}  // namespace posenc::kernels::cuda
