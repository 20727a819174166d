#pragma once

#include "attention/job.h"
#include "attention/plan/plan.h"

namespace posenc::attend::cuda {

/// Whether attention of tensors on the host can run on the GPU: f32, f16 and bf16, with q and k of the same type.
bool takes_from_host(const AttentionJob& job);

/// Computes a call whose tensors are on a GPU.
using Compute = void (*)(const AttentionCall& call, const RotationForms* forms, const Run& run);

/// Attention of tensors on the host, by `compute` with copies of them on the GPU.
/// Throws: Error if there is no kernel for the call, or if the copies do not fit into the GPU's memory.
void forward_on_host(const AttentionCall& call, Compute compute);

}  // namespace posenc::attend::cuda
