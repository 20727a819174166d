#pragma once

#include "attention/job.h"
#include "attention/plan/call.h"

namespace posenc::attend::cuda {

/// Attention for tensors on a GPU, ordered on the site's stream. `job` holds the tensors, the scale and the keys that
/// each query attends to; the position is read from the options.
/// Throws: Error if there is no kernel for the call.
void forward(const AttentionJob& job, const AttentionInputs& inputs, const AttentionCall& options,
             const kernels::Site& site);

}  // namespace posenc::attend::cuda
