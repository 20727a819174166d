// Joins the parts of decode_sm80: one block per query and head, one thread per feature.
// POSENC_F16 is 1 for f16 and 0 for bf16.

#include "attention/cuda/sm80.cuh"

namespace posenc::attend::cuda {

extern "C" __global__ void __launch_bounds__(128) decode_join(const __grid_constant__ DecodeParams p) {
  using namespace kernels::cuda;
  const std::int64_t row = block();
  const std::int64_t query = row % p.queries, bh = row / p.queries, batch = bh / p.heads, head = bh - batch * p.heads;
  const int f = static_cast<int>(thread());
  const float* const sums = p.part_sums + 2 * row * p.parts;
  const float* const parts = p.parts_out + row * p.parts * p.out.features + f;
  float most = -__builtin_inff();
  for (int n = 0; n < p.parts; ++n) most = larger(most, sums[2 * n]);
  const float shift = most == -__builtin_inff() ? 0.0f : most;
  float sum = 0, out = 0;
  for (int n = 0; n < p.parts; n += kDecodeWarps) {  // parts is a multiple of kDecodeWarps
    float part[kDecodeWarps];
#pragma unroll
    for (int w = 0; w < kDecodeWarps; ++w) part[w] = parts[std::int64_t{n + w} * p.out.features];
#pragma unroll
    for (int w = 0; w < kDecodeWarps; ++w) {
      const float factor = power_of_two(sums[2 * (n + w)] - shift);
      sum = __builtin_fmaf(factor, sums[2 * (n + w) + 1], sum);
      out = __builtin_fmaf(factor, part[w], out);
    }
  }
  const bool is_empty = sum == 0;
  const float result = is_empty ? 0.0f : out * reciprocal(sum);
  static_cast<std::uint16_t*>(
      p.out.data)[batch * p.out.batch + head * p.out.head + query * p.out.token + f * p.out.feature] =
      static_cast<std::uint16_t>(pack(result, 0.0f));
  if (p.logsumexp != nullptr && f == 0) {
    p.logsumexp[batch * p.lse_batch + head * p.lse_head + query * p.lse_token] =
        is_empty ? -__builtin_inff() : (most + log_of_two(sum)) * kSm80Ln2;
  }
}

}  // namespace posenc::attend::cuda
