// Lays out a bias by distance for attention_sm90, one block per head: entry kTableMiddle + d is (the bias at distance
// d − the bias far to the left) / scale, or −inf if d < 0 and such keys are hidden. The last entry is the bias far to the
// left.

#include "attention/cuda/params.h"
#include "kernels/cuda/elements.cuh"

namespace posenc::attend::cuda {

extern "C" __global__ void __launch_bounds__(128) expand_distances(const __grid_constant__ ExpandParams p) {
  using namespace kernels::cuda;
  const std::int64_t head = block();
  const auto bias = [&](std::int64_t distance) {
    const std::int64_t at = -distance - p.first, last = p.count - 1;
    const std::int64_t row = p.entries[at < 0 ? 0 : at > last ? last : at];
    return load(p.table.data, p.table.type, row * p.table.row_stride + head * p.table.column_stride);
  };
  float* const out = p.out + head * kTableSize;
  const double far = bias(-p.first);
  for (int i = static_cast<int>(thread()); i < kTableSize; i += static_cast<int>(threads())) {
    double over;
    asm("div.rn.f64 %0, %1, %2;" : "=d"(over) : "d"(bias(i - kTableMiddle) - far), "d"(p.scale));
    out[i] = i == kTableSize - 1                       ? static_cast<float>(far)
             : p.is_one_sided != 0 && i < kTableMiddle ? -__builtin_inff()
                                                       : static_cast<float>(over);
  }
}

}  // namespace posenc::attend::cuda
