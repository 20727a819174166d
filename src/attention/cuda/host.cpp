#include "attention/cuda/host.h"

#include <vector>

#include "kernels/cuda/call.h"
#include "posenc/backend.h"

namespace posenc::attend::cuda {
namespace {

// Ids as i64, which is what kernels take.
void widen(std::optional<Positions>& positions, std::vector<std::int64_t>& ids) {
  if (!positions || positions->ids_i32.empty()) return;
  ids.assign(positions->ids_i32.begin(), positions->ids_i32.end());
  positions->ids = ids;
  positions->ids_i32 = {};
}

}  // namespace

bool takes_from_host(const AttentionJob& job) { return job.q.type != DataType::kF64 && job.k.type == job.q.type; }

void forward_on_host(const AttentionCall& call, Compute compute) {
  refuse_others(call.verb, call.given, kOnGpu, "cuda");
  kernels::cuda::Call copies{kernels::Site{}};
  AttentionCall own = call;
  own.out = copies.on_gpu(call.out);
  own.logsumexp = copies.on_gpu(call.logsumexp);
  own.inputs = {copies.on_gpu(call.inputs.q), copies.on_gpu(call.inputs.k), copies.on_gpu(call.inputs.v)};
  Form position = *call.position;
  if (auto* const bias = std::get_if<Bias>(&position)) {
    if (auto* const table = std::get_if<DistanceTable>(&bias->source)) table->weights = copies.on_gpu(table->weights);
  }
  own.set_position(position);
  std::vector<std::int64_t> query_ids, key_ids;
  widen(own.query_positions, query_ids);
  widen(own.key_positions, key_ids);
  compute(own, nullptr, {});
  synchronize();
  copies.finish();
}

}  // namespace posenc::attend::cuda
