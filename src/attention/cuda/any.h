#pragma once

// Attention on any GPU from compute capability 8.0 on, by matrix products of a warp: whatever the kernels for compute
// capability 9.0 are not for.

#include <string>

#include "attention/cuda/backward.h"
#include "attention/cuda/parts.h"

namespace posenc::attend::cuda {

/// What these kernels are not for, in words; "" where they can do it.
std::string beyond_any(const AttentionJob& job, const AttentionOptions& options);

void forward_any(Call& call, const AttentionJob& job, const AttentionInputs& inputs, const AttentionOptions& options);

/// Two passes, one over keys and one over queries: dq, dk and dv are the same bytes at every run. `saved` is what the forward
/// pass gave.
void backward_any(Call& call, const AttentionJob& job, const AttentionInputs& inputs,
                  const HeadTensor<const void>& d_out, const SavedRows& saved, const AttentionOptions& options,
                  const DeviceGradients& gradients);

}  // namespace posenc::attend::cuda
