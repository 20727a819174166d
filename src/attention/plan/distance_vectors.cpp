// Checks and plans the arguments of attention that vectors need.

#include <fmt/format.h>

#include "attention/plan/arguments.h"
#include "posenc/error.h"
#include "terms/terms.h"

namespace posenc::attend {
namespace {

// A temperature multiplies whatever is multiplied with the vectors, as it multiplies q.
void scale_position_queries(const ConstTensorView& given, Plan& plan) {
  const HeadTensor<const void> from = plan.job.position_queries;
  const DataType type = sums_type(given.type);
  // all heads share the factors, or each has its own
  const std::int64_t heads = std::ssize(plan.query_factors) == from.batch * from.sequence ? 1 : from.heads;
  plan.scaled_position_queries.resize(count_of(given.shape) * size_of(type));
  const TensorView scaled(plan.scaled_position_queries.data(), type, given.shape);
  const HeadTensor<void> to = tensor_of("attention", "position_queries", scaled);
  kernels::with_type(from.type, [&](auto kind) {
    using From = decltype(kind);
    using To = kernels::Working<From>;
    for (std::int64_t row = 0; row < from.batch * from.heads * from.sequence; ++row) {
      const std::int64_t b = row / from.sequence / from.heads, h = row / from.sequence % from.heads,
                         i = row % from.sequence;
      const double factor = plan.query_factors[(b * heads + h % heads) * from.sequence + i];
      const From* const x = from.row<From>(b, h, i);
      To* const out = to.row<To>(b, h, i);
      for (std::int64_t f = 0; f < from.features; ++f) {
        out[f] = static_cast<To>(factor * numerics::widen(x[f * from.feature_stride]));
      }
    }
  });
  plan.job.position_queries = tensor_of<const void>("attention", "position_queries", scaled);
}

}  // namespace

void refuse_position_queries(const AttentionCall& call) {
  if (call.position_queries.data == nullptr) return;
  if (call.bias != nullptr && inputs_of(*call.bias).position_queries) return;
  raise(fmt::format("{}: position_queries are given, but the form does not use them", call.verb));
}

void plan_vectors(const AttentionCall& call, Plan& plan) {
  const BiasInputs inputs = inputs_of(*call.bias);
  AttentionJob& job = plan.job;
  job.scale *= softmax_factor_of(*call.bias);
  job.vector_scale = terms::vector_scale(*call.bias, job.scale);
  terms::check_features(call.verb, *call.bias, job.q.features, job.v.features);
  if (!inputs.position_queries) return;
  const ConstTensorView& given = call.position_queries;
  if (given.data == nullptr) {
    raise(fmt::format("{}: the form needs position_queries, which are missing", call.verb));
  }
  check_result(call.verb, "position_queries", given, {call.inputs.q.type, job.q, inputs.position_query_features});
  job.position_queries = tensor_of(call.verb, "position_queries", given);
  if (!plan.query_factors.empty()) scale_position_queries(given, plan);
}

}  // namespace posenc::attend
