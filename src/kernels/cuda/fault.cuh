#pragma once

// What a kernel finds out too late to refuse.

#include "kernels/cuda/device.cuh"
#include "kernels/cuda/params.h"

namespace posenc::kernels::cuda {

/// Two threads may report at once, and then it is one of their positions with one of their columns.
__device__ __noinline__ void report(Fault* fault, std::uint32_t kind, std::int64_t position, std::int64_t column) {
  auto* const to = const_cast<volatile Fault*>(fault);
  if (to->kind != Fault::kNone) return;
  to->position = position;
  to->column = column;
  to->kind = kind;
}

}  // namespace posenc::kernels::cuda
