#include "kernels/cuda/call.h"
#include "posenc/error.h"

namespace posenc::kernels::cuda {

void bias(const BiasJob& job);

void bias(const BiasJob& job) {
  Call call(job.site);
  BiasParams p{};
  p.out = call.heads(job.out);
  p.batch = job.out.batch, p.heads = job.out.heads, p.queries = job.out.sequence, p.keys = job.out.features;
  p.query_positions = call.positions(job.queries);
  p.key_positions = call.positions(job.keys);
  const auto numbers = [&](const std::vector<double>& values) {
    return call.numbers(std::span<const double>(values));
  };
  if (const auto* slopes = std::get_if<Slopes>(&job.form->source)) {
    p.slopes = numbers(slopes->slopes);
  } else if (const auto* table = std::get_if<DistanceTable>(&job.form->source)) {
    p.kind = 1;
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
  } else {
    const auto& ratios = std::get<DistanceRatios>(job.form->source);
    p.kind = 2;
    p.logs = numbers(ratios.logs);
    p.hidden_weights = numbers(ratios.hidden_weights), p.hidden_biases = numbers(ratios.hidden_biases);
    p.output_weights = numbers(ratios.output_weights), p.output_biases = numbers(ratios.output_biases);
    p.width = static_cast<std::int64_t>(ratios.hidden_weights.size());
    p.least = ratios.least, p.epsilon = ratios.epsilon;
  }
  launch("bias_any", spread(p.batch * p.heads * p.queries * p.keys), call.stream(), p);
  call.finish();
}

}  // namespace posenc::kernels::cuda
