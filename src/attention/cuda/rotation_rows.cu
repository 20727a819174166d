// Cosines and sines of consecutive positions, for attention that rotates q as it loads it: one thread for each pair of a
// token. [tokens, pairs], cosines first, then as many sines; each correctly rounded.

#include "attention/cuda/params.h"
#include "kernels/cuda/rotations.cuh"

namespace posenc::attend::cuda {

extern "C" __global__ void __launch_bounds__(128) rotation_rows(const __grid_constant__ RotationRowsParams p) {
  using namespace kernels::cuda;
  const RotateParams& r = p.rotation;
  const std::int64_t count = p.tokens * r.pairs;
  const std::int64_t n = global_thread();
  if (n >= count) return;
  const std::int64_t pair = n % r.pairs, position = p.first + n / r.pairs;
  const CosSin<float> value = cos_sin_by_waves<float>(r, position, pair);
  p.out[n] = value.cosine;
  p.out[count + n] = value.sine;
}

}  // namespace posenc::attend::cuda
