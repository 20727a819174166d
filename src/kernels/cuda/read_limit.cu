// Reads every byte once, 64 per thread: the limit that decoding is measured against.

#include "kernels/cuda/device.cuh"

namespace posenc::kernels::cuda {

struct LimitParams {
  void* to;
  const void* from;
  std::int64_t cycles;
};

extern "C" __global__ void __launch_bounds__(256) read_limit(const __grid_constant__ LimitParams p) {
  const auto* from = static_cast<const Bytes16*>(p.from) + std::int64_t{block()} * 1024 + thread();
  const Bytes16 a = from[0], b = from[256], c = from[512], d = from[768];
  const std::uint32_t all =
      (a.x ^ a.y ^ a.z ^ a.w) + (b.x ^ b.y ^ b.z ^ b.w) + (c.x ^ c.y ^ c.z ^ c.w) + (d.x ^ d.y ^ d.z ^ d.w);
  // Never true, but the compiler cannot know.
  if (all == 0x9E3779B9u && a.x * d.w == 0x7F4A7C15u && b.y - c.z == 0xF39CC060u)
    *static_cast<std::uint32_t*>(p.to) = all;
}

}  // namespace posenc::kernels::cuda
