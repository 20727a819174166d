#pragma once

#include "attention/job.h"

namespace posenc::attend::cuda {

/// Whether attention of tensors on the host is done on the GPU: f16 and bf16.
bool takes_from_host(const AttentionJob& job);

/// Attention of tensors on the host, on the GPU: some heads of one sequence after the other, so that all may be larger than
/// its memory. `job` has the tensors; what is asked for is read from the options.
/// Throws: Error for what there is no kernel for.
void forward_on_host(const AttentionJob& job, const AttentionOptions& options);

}  // namespace posenc::attend::cuda
