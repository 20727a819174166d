#include "attention/cpu/backward/backward.h"
#include "attention/cpu/decode/decode.h"
#include "attention/cpu/score_bias.h"
#include "attention/cpu/tiles.h"
#include "attention/job.h"
#include "attention/reference/rows.h"
#include "kernels/cpu/parallel.h"

namespace posenc::attend {
namespace cpu {
namespace {

// f64 and `weights` are computed as the reference defines them, on all cores.
void forward_by_rows(const AttentionJob& job) {
  const std::int64_t rows = job.q.batch * job.q.heads * job.q.sequence;
  kernels::cpu::parallel_for(rows, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t at = begin; at < end; ++at) {
      const std::int64_t head = at / job.q.sequence;
      reference::attend_row(job, head / job.q.heads, head % job.q.heads, at % job.q.sequence);
    }
  });
}

bool is_by_rows(const AttentionJob& job) { return job.v.type == DataType::kF64 || job.weights.data != nullptr; }

void forward(const AttentionJob& job) {
  if (is_by_rows(job)) {
    forward_by_rows(job);
    return;
  }
  const ScoreBias bias = prepare_bias(job, kKeyBlock + kQueryBlock);
  is_decoding(job, bias) ? decode(job, bias) : attend_by_blocks(job, bias);
}

void count(const AttentionJob& job) {
  if (is_by_rows(job)) return;
  const ScoreBias bias = prepare_bias(job, kKeyBlock + kQueryBlock);
  is_decoding(job, bias) ? count_decode(job, bias) : count_blocks(job, bias);
}

}  // namespace
}  // namespace cpu

const AttentionBackend kCpuAttention = {"cpu",         &kernels::kCpuBackend, true,
                                        &cpu::forward, &cpu::backward,        &cpu::count};

}  // namespace posenc::attend
