#include <fmt/format.h>

#include <algorithm>

#include "kernels/cuda/call.h"
#include "posenc/error.h"
#include "terms/terms.h"

namespace posenc::kernels::cuda {

void bias(const BiasJob& job);
void bias_backward(const BiasBackwardJob& job);

namespace {

// The form, and the positions of queries and keys; the caller fills in the scores.
template <class Job> BiasParams bias_params(Call& call, const Job& job) {
  BiasParams p{};
  p.query_positions = call.positions(job.queries);
  p.key_positions = call.positions(job.keys);
  const auto numbers = [&](const std::vector<double>& values) {
    return call.numbers(std::span<const double>(values));
  };
  if (const auto* slopes = std::get_if<Slopes>(&job.form->source)) {
    p.kind = kBiasSlopes;
    p.slopes = numbers(slopes->slopes);
  } else if (const auto* table = std::get_if<DistanceTable>(&job.form->source)) {
    p.kind = kBiasTable;
    constexpr std::size_t kMostAxes = 8;
    if (table->axes.size() > kMostAxes) raise("bias: on cuda, positions have at most 8 axes");
    p.axes = static_cast<std::int32_t>(table->axes.size());
    for (std::size_t axis = 0; axis < table->axes.size(); ++axis) {
      p.map_first[axis] = table->axes[axis].first;
      p.map_size[axis] = static_cast<std::int64_t>(table->axes[axis].entries.size());
      p.map_entries[axis] = call.numbers(std::span<const std::int64_t>(table->axes[axis].entries));
    }
    if (table->weights.data != nullptr) {
      p.table = call.table(table->weights);
    } else {
      p.table = {numbers(table->values), kTypeF64, 0, job.form->heads, 1};
    }
  } else if (const auto* ratios = std::get_if<DistanceRatios>(&job.form->source)) {
    p.kind = kBiasRatios;
    p.logs = numbers(ratios->logs);
    p.hidden_weights = numbers(ratios->hidden_weights), p.hidden_biases = numbers(ratios->hidden_biases);
    p.output_weights = numbers(ratios->output_weights), p.output_biases = numbers(ratios->output_biases);
    p.width = static_cast<std::int64_t>(ratios->hidden_weights.size());
    p.least = ratios->least, p.epsilon = ratios->epsilon;
  } else {
    raise(fmt::format("bias: on cuda there is no kernel for the term {}", terms::name_of(*job.form)));
  }
  return p;
}
template <class Void> void set_shape(BiasParams& p, const HeadTensor<Void>& scores) {
  p.batch = scores.batch, p.heads = scores.heads, p.queries = scores.sequence, p.keys = scores.features;
}

}  // namespace

void bias(const BiasJob& job) {
  Call call(job.site);
  BiasParams p = bias_params(call, job);
  p.scores = call.heads(job.out);
  set_shape(p, job.out);
  launch("bias_any", spread(p.batch * p.heads * p.queries * p.keys), call.stream(), p);
  call.finish();
}

void bias_backward(const BiasBackwardJob& job) {
  Call call(job.site);
  BiasBackwardParams p{};
  p.bias = bias_params(call, job);
  p.bias.scores = call.heads(job.gradient);
  set_shape(p.bias, job.gradient);
  const Extents& shape = job.parameters.shape;
  p.parameters = count_of(shape);
  p.type = static_cast<std::int32_t>(job.parameters.type);
  p.row_stride = shape.rank == 2 || p.bias.kind == kBiasRatios ? job.parameters.strides[0] : 0;
  p.head_stride = job.parameters.strides[shape.rank - 1];
  p.gradient = call.on_gpu(job.parameters).data;
  p.owned = p.bias.kind == kBiasSlopes ? 1 : p.bias.kind == kBiasTable ? shape[0] : p.bias.width;
  p.count = p.bias.kind == kBiasRatios ? 3 * p.owned + 1 : p.owned;
  p.owners = 1;
  while (p.owners < 256 && p.owners < p.owned) p.owners *= 2;
  // Enough blocks for every multiprocessor; shares do not depend on their number, so neither do the sums.
  constexpr std::int64_t kBlocks = 1024, kLeastScores = 4096;
  const std::int64_t queries = p.bias.batch * p.bias.queries;
  const std::int64_t wanted = std::max<std::int64_t>(1, kBlocks / p.bias.heads);
  p.queries_of_share = std::max({(queries + wanted - 1) / wanted, kLeastScores / p.bias.keys, std::int64_t{1}});
  p.shares = (queries + p.queries_of_share - 1) / p.queries_of_share;
  p.parts =
      static_cast<double*>(call.borrow(static_cast<std::size_t>(p.shares * p.bias.heads * p.count) * sizeof(double)));
  launch("bias_backward", {p.shares * p.bias.heads, 256, 0}, call.stream(), p);
  launch("bias_sums", spread(p.parameters, 128), call.stream(), p);
  call.finish();
}

}  // namespace posenc::kernels::cuda
