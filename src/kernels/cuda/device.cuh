#pragma once

// The basics of CUDA C++ for clang, without any NVIDIA file: attributes, indices, shuffles. There is no libdevice, so
// there are no transcendental functions.

#include <stdlib.h>

#include <array>
#include <bit>
#include <cstdint>

#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __shared__ __attribute__((shared))
#define __constant__ __attribute__((constant))
#define __grid_constant__ __attribute__((grid_constant))
#define __launch_bounds__(...) __attribute__((launch_bounds(__VA_ARGS__)))
#define __forceinline__ inline __attribute__((always_inline))
#undef __noinline__
#define __noinline__ __attribute__((noinline))

namespace posenc::kernels::cuda {

__device__ __forceinline__ unsigned thread() { return __nvvm_read_ptx_sreg_tid_x(); }
__device__ __forceinline__ unsigned threads() { return __nvvm_read_ptx_sreg_ntid_x(); }
__device__ __forceinline__ unsigned block() { return __nvvm_read_ptx_sreg_ctaid_x(); }
__device__ __forceinline__ unsigned blocks() { return __nvvm_read_ptx_sreg_nctaid_x(); }
/// Counted over all threads in the grid.
__device__ __forceinline__ std::int64_t global_thread() { return std::int64_t{block()} * threads() + thread(); }
__device__ __forceinline__ std::int64_t global_threads() { return std::int64_t{blocks()} * threads(); }

__device__ __forceinline__ void sync_block() { __syncthreads(); }
__device__ __forceinline__ void sync_warp() { __nvvm_bar_warp_sync(~0u); }
__device__ __forceinline__ unsigned ballot(bool vote) { return __nvvm_vote_ballot_sync(~0u, vote); }

#if POSENC_OVERLAPS
/// Waits until the previous kernels on the stream are done, if this one was launched to start earlier; lets the next
/// one start. From compute capability 9.0 on.
__device__ __forceinline__ void wait_for_grids() { asm volatile("griddepcontrol.wait;" ::: "memory"); }
__device__ __forceinline__ void let_next_grid_begin() { asm volatile("griddepcontrol.launch_dependents;"); }
#endif

struct alignas(16) Bytes16 {
  std::uint32_t x, y, z, w;
};
struct alignas(8) Float2 {
  float x, y;
};
struct alignas(16) Float4 {
  float x, y, z, w;
};

}  // namespace posenc::kernels::cuda
