#pragma once

// The pieces of an RMS norm. Error: a sum of n squares has at most n/32 + 16 roundings, of which the root keeps half;
// the mean, the epsilon, the root and its reciprocal add one each.

#include "kernels/cuda/device.cuh"

namespace posenc::kernels::cuda {

__device__ __forceinline__ float across_lanes(float value, int lanes) {
  return __nvvm_shfl_sync_bfly_f32(~0u, value, lanes, 31);
}
__device__ __forceinline__ double across_lanes(double value, int lanes) {
  const auto bits = std::bit_cast<std::uint64_t>(value);
  const int low = __nvvm_shfl_sync_bfly_i32(~0u, static_cast<int>(bits), lanes, 31),
            high = __nvvm_shfl_sync_bfly_i32(~0u, static_cast<int>(bits >> 32), lanes, 31);
  return std::bit_cast<double>(std::uint64_t{static_cast<std::uint32_t>(high)} << 32 |
                               static_cast<std::uint32_t>(low));
}

/// 1 / √x.
__device__ __forceinline__ float inverse_root(float x) {
  asm("sqrt.rn.f32 %0, %0;" : "+f"(x));
  asm("rcp.rn.f32 %0, %0;" : "+f"(x));
  return x;
}
__device__ __forceinline__ double inverse_root(double x) {
  asm("sqrt.rn.f64 %0, %0;" : "+d"(x));
  asm("rcp.rn.f64 %0, %0;" : "+d"(x));
  return x;
}

}  // namespace posenc::kernels::cuda
