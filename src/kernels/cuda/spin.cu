// Keeps a stream busy for the given number of cycles, so that what is queued behind it starts without launch
// overhead.

#include "kernels/cuda/device.cuh"

namespace posenc::kernels::cuda {

extern "C" __global__ void spin(std::int64_t cycles) {
  const auto start = static_cast<std::int64_t>(__nvvm_read_ptx_sreg_clock64());
  while (static_cast<std::int64_t>(__nvvm_read_ptx_sreg_clock64()) - start < cycles) {}
}

}  // namespace posenc::kernels::cuda
