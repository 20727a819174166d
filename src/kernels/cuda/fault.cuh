#pragma once

// Reports errors that a kernel discovers only while it runs.

#include "kernels/cuda/device.cuh"
#include "kernels/cuda/params.h"

namespace posenc::kernels::cuda {

/// If two threads report at once, the position may be from one and the column from the other.
__device__ __noinline__ void report(Fault* fault, std::uint32_t kind, std::int64_t position, std::int64_t column) {
  auto* const to = const_cast<volatile Fault*>(fault);
  if (to->kind != Fault::kNone) return;
  to->position = position;
  to->column = column;
  to->kind = kind;
}

}  // namespace posenc::kernels::cuda
