#pragma once

#include "attention/job.h"

namespace posenc::attend::cuda {

/// Attention of tensors on a GPU, ordered on the site's stream. `job` has what every query sees, the scale and the
/// tensors; the position is read from the options.
/// Throws: Error for what there is no kernel for yet.
void forward(const AttentionJob& job, const AttentionInputs& inputs, const AttentionOptions& options,
             const kernels::Site& site);

}  // namespace posenc::attend::cuda
