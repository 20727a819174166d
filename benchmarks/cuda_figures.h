#pragma once

#include <string>
#include <vector>

#include "posenc/tensor.h"

namespace posenc::figures {

/// One job on a GPU beside its limit, measured in the same run.
struct CudaFigure {
  std::string job;
  double milliseconds = 0;  // median, from C++, with the launch
  double alone = 0;         // median of the GPU alone, queued behind a kernel that waits
  double gb_per_s = 0;      // bytes read and written over `milliseconds`; 0 where time is what counts
  std::string limit;        // what it stands beside
  double limit_gb_per_s = 0;
  std::string bar, goal;  // as the project set them
  bool meets_bar = false;
  double tflop_per_s = 0;  // of attention; 0 elsewhere

  double of_limit() const { return limit_gb_per_s > 0 ? gb_per_s / limit_gb_per_s : 0; }
};

/// Causal attention in bf16, 128 features, without and with its gradients: 4 · features operations for each pair of query
/// and key that is seen, 3.5 times as many with gradients. Each
/// launch follows a pause, so that the GPU runs at its full clock. The bar is a ratio to a peer, which only a script can
/// measure (peers/cuda_attention.py). Empty where the kernel cannot run.
std::vector<CudaFigure> measure_cuda_attention();

/// One new token in each of 32 sequences over a cache of 8192 keys, 32 heads over 8 key heads, beside reading the cache
/// once. Empty where the kernel cannot run.
std::vector<CudaFigure> measure_decoding();

/// Rotations, sums and tables. Needs 8 GiB of the GPU's memory.
std::vector<CudaFigure> measure_cuda();

}  // namespace posenc::figures
