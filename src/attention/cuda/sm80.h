#pragma once

// Attention on any GPU of compute capability 8.0 or newer, by matrix products of a warp: for everything that the
// kernels for compute capability 9.0 do not support.

#include <string>

#include "attention/cuda/backward.h"
#include "attention/cuda/parts.h"

namespace posenc::attend::cuda {

/// What these kernels do not support, in words; "" if they support the call.
std::string beyond_sm80(const AttentionJob& job, const AttentionCall& options);

/// Whether these are few queries over many keys, for which there is a kernel of its own: forward_sm80 chooses it.
bool is_decoding(const AttentionJob& job, const QueriesAndKeys& ready);

void forward_sm80(Call& call, const AttentionJob& job, const AttentionInputs& inputs, const AttentionCall& options);

/// Two passes, one over keys and one over queries, so dq, dk and dv are bitwise reproducible. `saved` holds the
/// outputs of the forward pass.
void backward_sm80(Call& call, const AttentionJob& job, const AttentionInputs& inputs,
                   const HeadTensor<const void>& d_out, const SavedRows& saved, const AttentionCall& options,
                   const DeviceGradients& gradients);

}  // namespace posenc::attend::cuda
