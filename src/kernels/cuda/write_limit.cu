// What a GPU's memory can reach, for benchmarks: the limit that kernels are measured against in the same run.

#include "kernels/cuda/device.cuh"

namespace posenc::kernels::cuda {

struct LimitParams {
  Bytes16* to;
  const Bytes16* from;
  std::int64_t cycles;
};

extern "C" __global__ void __launch_bounds__(256) write_limit(const __grid_constant__ LimitParams p) {
  const std::int64_t at = std::int64_t{block()} * 1024 + thread();
  const auto word = static_cast<std::uint32_t>(at);
#pragma unroll
  for (int n = 0; n < 4; ++n) p.to[at + n * 256] = {word, word * 7, word * 5, word ^ 0x5A5A5A5Au};
}

}  // namespace posenc::kernels::cuda
