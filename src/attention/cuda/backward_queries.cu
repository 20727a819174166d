// Writes dq from register order to rows, rounded; one block per tile of 64 queries and two panels, each a half of the block.
// POSENC_F16 is 1 for f16 and 0 for bf16.

#include "attention/cuda/hopper.cuh"
#include "attention/cuda/params.h"

namespace posenc::attend::cuda {

extern "C" __global__ void __launch_bounds__(256) backward_queries(const __grid_constant__ BackwardQueriesParams p) {
  using namespace kernels::cuda;
  __shared__ alignas(16) std::uint32_t rows[kQueryTile][64 + 4];
  const std::int32_t blocks_of_tile = (p.panels + 1) / 2,
                     number = static_cast<std::int32_t>(block()) / blocks_of_tile,
                     first_panel = 2 * (static_cast<std::int32_t>(block()) - number * blocks_of_tile),
                     panels = p.panels - first_panel < 2 ? 1 : 2;
  const std::int32_t bh = number / p.tiles, tile = number - bh * p.tiles;
  const int t = static_cast<int>(thread()), half = t / 128, warp = t / 32 % 4, lane = t % 32;
  if (half < panels) {
    const auto* const from =
        reinterpret_cast<const Float4*>(p.sums + (std::int64_t{number} * p.panels + first_panel) * (64 * 64)) +
        half * 1024 + t % 128;
    Float4 x[8];
#pragma unroll
    for (int c = 0; c < 8; ++c) x[c] = from[c * 128];
#pragma unroll
    for (int c = 0; c < 8; ++c) {
      const int row = warp * 16 + lane / 4, column = half * 32 + 4 * c + lane % 4;
      rows[row][column] = pack(x[c].x * p.scale, x[c].y * p.scale);
      rows[row + 8][column] = pack(x[c].z * p.scale, x[c].w * p.scale);
    }
  }
  sync_block();
  const std::int32_t batch = bh / p.heads, head = bh - batch * p.heads;
  const PackedTile at =
      p.packed != nullptr ? p.packed[tile] : PackedTile{tile * kQueryTile, p.sequence - tile * kQueryTile};
  auto* const to = static_cast<std::uint16_t*>(p.dq) + batch * p.dq_batch + head * p.dq_head + first_panel * 64;
  const int per_row = 8 * panels, at_once = static_cast<int>(threads()) / per_row;
  for (int row = t / per_row; row < kQueryTile; row += at_once) {
    if (row >= at.count) break;
    *reinterpret_cast<Bytes16*>(to + std::int64_t{at.first + row} * p.dq_token + t % per_row * 8) =
        *reinterpret_cast<const Bytes16*>(&rows[row][t % per_row * 4]);
  }
}

}  // namespace posenc::attend::cuda
