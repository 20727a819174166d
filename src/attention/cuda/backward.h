#pragma once

#include "attention/job.h"

namespace posenc::attend::cuda {

/// Where gradients go, checked; what has no data is not wanted.
struct DeviceGradients {
  TensorView q, k, v, parameters;
  HeadTensor<void> dq, dk, dv;
};

/// What the forward pass gave.
struct SavedRows {
  HeadTensor<const void> out, logsumexp;
};

/// The gradients of attention of tensors on a GPU, ordered on the site's stream. `job` has what every query sees, the
/// scale and the tensors; what the forward pass gave is in the inputs or made again.
/// Throws: Error for what there is no kernel for.
void backward(const AttentionJob& job, const AttentionInputs& inputs, const ConstTensorView& d_out,
              const AttentionOptions& options, const DeviceGradients& gradients, const kernels::Site& site);

}  // namespace posenc::attend::cuda
