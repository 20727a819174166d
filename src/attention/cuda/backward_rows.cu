// What the backward pass needs for each row, 16 lanes per row: delta = Σ d_out · out; −logsumexp in powers of two and
// relative to the same reference as in attention_backward_sm90, −inf past the end and for a query that attends to no
// key: its weights are 0; zeros for dq.
// POSENC_F16 is 1 for f16 and 0 for bf16.

#include "attention/cuda/hopper.cuh"
#include "attention/cuda/params.h"

namespace posenc::attend::cuda {

extern "C" __global__ void __launch_bounds__(256) backward_rows(const __grid_constant__ BackwardRowsParams p) {
  using namespace kernels::cuda;
  constexpr float kLog2e = 1.4426950408889634f;
  const std::int64_t row = std::int64_t{block()} * 16 + thread() / 16;
  const int lane = static_cast<int>(thread() % 16);
  if (row >= p.rows) return;  // a multiple of 64, so whole blocks only
  const auto bh = static_cast<std::int32_t>(row / p.padded),
             r = static_cast<std::int32_t>(row - std::int64_t{bh} * p.padded);
  const std::int32_t batch = bh / p.heads, head = bh - batch * p.heads;
  const std::int32_t in_tile = r % kQueryTile;
  const PackedTile tile =
      p.packed != nullptr ? p.packed[r / kQueryTile] : PackedTile{r - in_tile, p.sequence - (r - in_tile)};
  const std::int64_t token = tile.first + in_tile;
  const bool is_live = in_tile < tile.count;
  float sum = 0;
  const auto add = [&](int first) {
    if (!is_live || first >= p.values) return;
    const auto* const out = static_cast<const std::uint16_t*>(p.out) + batch * p.out_batch + head * p.out_head +
                            token * p.out_token + first;
    const auto* const d_out = static_cast<const std::uint16_t*>(p.d_out) + batch * p.d_out_batch +
                              head * p.d_out_head + token * p.d_out_token + first;
    const auto a = *reinterpret_cast<const Bytes16*>(out), b = *reinterpret_cast<const Bytes16*>(d_out);
    const auto dot = [](std::uint32_t x, std::uint32_t y) {
      return __builtin_fmaf(unpack(x, false), unpack(y, false), unpack(x, true) * unpack(y, true));
    };
    sum += dot(a.x, b.x) + dot(a.y, b.y) + dot(a.z, b.z) + dot(a.w, b.w);
  };
  add(8 * lane);
  add(8 * lane + 128);
#pragma unroll
  for (int n = 8; n > 0; n /= 2) sum += from_neighbour(sum, n);
  if (p.dq != nullptr) {
    auto* const zero = reinterpret_cast<Float4*>(p.dq + row * p.features) + lane;
#pragma unroll
    for (int n = 0; n < 4; ++n) {
      if (p.features > 64 * n) zero[16 * n] = Float4{0, 0, 0, 0};
    }
  }
  if (lane != 0) return;
  p.delta[row] = sum;
  float l = -__builtin_inff();
  if (is_live) {
    l = p.logsumexp[batch * p.lse_batch + head * p.lse_head + token * p.lse_token];
    if (p.kind == kDistanceBias) l -= p.bias[head * kTableSize + kTableSize - 1];
    l = l == -__builtin_inff() ? l : -l * kLog2e;
    if (p.kind == kSlopeBias) l -= p.bias[head] * kLog2e * float(in_tile);
  }
  p.neg_lse[row] = l;
}

}  // namespace posenc::attend::cuda
