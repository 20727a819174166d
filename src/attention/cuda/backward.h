#pragma once

#include "attention/job.h"
#include "attention/plan/call.h"

namespace posenc::attend::cuda {

/// Where gradients go, checked; those without data are not computed.
struct DeviceGradients {
  TensorView q, k, v, parameters;
  HeadTensor<void> dq, dk, dv;
};

/// The outputs of the forward pass.
struct SavedRows {
  HeadTensor<const void> out, logsumexp;
};

/// The gradients of attention for tensors on a GPU, ordered on the site's stream. `job` holds the tensors, the scale
/// and the keys that each query attends to; the outputs of the forward pass are in the inputs or recomputed.
/// Throws: Error if there is no kernel for the call.
void backward(const AttentionJob& job, const AttentionInputs& inputs, const ConstTensorView& d_out,
              const AttentionCall& options, const DeviceGradients& gradients, const kernels::Site& site);

}  // namespace posenc::attend::cuda
