// The backward pass of FlashAttention (Dao et al., 2022) on a CPU: no tile of P is stored; each is recomputed from Q,
// K and the forward pass's logsumexp, and dS = P ∘ (dP − D) with dP = dO Vᵀ and D = rowsum(dO ∘ O) (`deltas`). There
// are two passes over the tiles: one with a query block in the lanes accumulates dQ = dS K and the gradients of the
// position's parameters, one with a key block in the lanes accumulates dK = dSᵀ Q and dV = Pᵀ dO. So every
// accumulator belongs to one thread, without atomics, and results do not depend on the number of threads.

#include "attention/cpu/backward/backward.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "attention/content_terms.h"
#include "attention/cpu/backward/work.h"
#include "attention/cpu/score_bias.h"
#include "attention/cpu/tiles.h"
#include "attention/reference/rows.h"
#include "kernels/cpu/parallel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "attention/cpu/backward/backward.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"

// after foreach_target.h, so that they are compiled for each target
#include "attention/cpu/backward/keys-inl.h"
#include "attention/cpu/backward/queries-inl.h"

#if HWY_ONCE
namespace posenc::attend::cpu {
namespace {

HWY_EXPORT(query_blocks);
HWY_EXPORT(key_blocks);

QuerySums sums_of(const BackwardJob& job) {
  const AttentionJob& forward = job.forward;
  const std::int64_t rows = forward.q.batch * forward.q.heads * forward.q.sequence;
  QuerySums sums{floats(rows), floats(rows)};
  kernels::cpu::parallel_for(rows, 64, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t at = begin; at < end; ++at) {
      const std::int64_t head = at / forward.q.sequence, i = at % forward.q.sequence;
      const std::int64_t b = head / forward.q.heads, h = head % forward.q.heads;
      double delta = 0;
      kernels::with_type(job.d_out.type, [&](auto d_kind) {
        kernels::with_type(forward.out.type, [&](auto out_kind) {
          const auto* d_out = job.d_out.row<decltype(d_kind)>(b, h, i);
          const auto* out = forward.out.row<decltype(out_kind)>(b, h, i);
          for (std::int64_t f = 0; f < forward.v.features; ++f) {
            delta += numerics::widen(d_out[f * job.d_out.feature_stride]) *
                     numerics::widen(out[f * forward.out.feature_stride]);
          }
        });
      });
      sums.deltas[at] = static_cast<float>(delta);
      const auto log = static_cast<double>(*forward.logsumexp.row<float>(b, h, i));
      // a query with no visible key has weight 0 everywhere
      sums.logs[at] =
          std::isinf(log) && log < 0 ? std::numeric_limits<float>::infinity() : static_cast<float>(log * kLog2E);
    }
  });
  return sums;
}

}  // namespace

void backward(BackwardJob& job) {
  const AttentionJob& forward = job.forward;
  const bool reads_content = vectors_in(forward) != nullptr || counted_gates_in(forward) != nullptr;
  // if scores are capped, the bias's parameters and q get different gradients
  const bool has_two_gradients = forward.softcap > 0 && !(job.parameters.empty() && job.d_gate_sums.empty());
  if (forward.v.type == DataType::kF64 || reads_content || has_two_gradients) {
    kernels::cpu::parallel_for(forward.k.heads, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t g = begin; g < end; ++g) reference::backward_group(job, g);
    });
    return;
  }
  const ScoreBias bias = prepare_bias(forward, kKeyBlock + kQueryBlock);
  const QuerySums sums = sums_of(job);
  BackwardWork work{job, bias, sums};
  // One thread sums all parameters of a head, so the order is fixed.
  const std::int64_t query_blocks_of_head = forward.q.batch * ((forward.q.sequence + kQueryBlock - 1) / kQueryBlock);
  const std::int64_t step = job.parameters.empty() ? 1 : std::max(query_blocks_of_head, std::int64_t{1});
  const bool has_gates = !job.d_gate_sums.empty();
  if (job.dq.data != nullptr || !job.parameters.empty() || has_gates) {
    kernels::cpu::parallel_for(forward.q.heads * query_blocks_of_head / step, 1,
                               [&](std::int64_t begin, std::int64_t end) {
                                 HWY_DYNAMIC_DISPATCH(query_blocks)(work, begin * step, end * step);
                               });
  }
  if (job.dk.data == nullptr && job.dv.data == nullptr && !has_gates) return;
  const std::int64_t key_blocks_of_head = (forward.k.sequence + kQueryBlock - 1) / kQueryBlock;
  kernels::cpu::parallel_for(forward.k.batch * forward.k.heads * key_blocks_of_head, 1,
                             [&](std::int64_t begin, std::int64_t end) {
                               HWY_DYNAMIC_DISPATCH(key_blocks)(work, begin, end);
                             });
}

}  // namespace posenc::attend::cpu
#endif
