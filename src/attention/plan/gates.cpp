// Checks and plans the arguments of attention that forms made of gates need.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "attention/plan/arguments.h"
#include "posenc/error.h"

namespace posenc::attend {
namespace {

// Beyond this, a sum in f32 would not be finite.
constexpr double kLargestSum = 1e30;

bool reads_gates(const AttentionCall& call) { return call.bias != nullptr && inputs_of(*call.bias).log_gates; }

// How many tokens of a sequence have a gate that counts. Each query needs its own token among the keys.
std::int64_t tokens_with_gates(std::string_view verb, const AttentionJob& job, std::int64_t b) {
  std::int64_t tokens = 0;
  for (std::int64_t i = 0; i < job.q.sequence; ++i) {
    const KeyRange& key_range = job.key_range(b, i);
    if (key_range.begin >= key_range.end) continue;
    if (key_range.diagonal < 0 || key_range.diagonal >= job.k.sequence) {
      raise(fmt::format("{}: query {} has no gate: the queries are the last of {} tokens", verb, i, job.k.sequence));
    }
    tokens = std::max({tokens, key_range.end, key_range.diagonal + 1});
  }
  return tokens;
}

void sum_gates(std::string_view verb, const HeadTensor<const void>& gates, Plan& plan) {
  AttentionJob& job = plan.job;
  const std::int64_t keys = job.k.sequence;
  plan.gate_sums.assign(gates.batch * gates.heads * keys, 0.0);
  for (std::int64_t row = 0; row < gates.batch * gates.heads; ++row) {
    const std::int64_t b = row / gates.heads, h = row % gates.heads, tokens = tokens_with_gates(verb, job, b);
    double* const sums = plan.gate_sums.data() + row * keys;
    kernels::with_type(gates.type, [&](auto kind) {
      double sum = 0;
      for (std::int64_t t = 0; t < tokens; ++t) {
        sum += numerics::widen(*gates.row<decltype(kind)>(b, h, t));
        if (!(std::fabs(sum) <= kLargestSum)) {
          raise(fmt::format(
              "{}: log_gates must be finite and sum to at most 1e30, but at token {} of head {} they do not", verb, t,
              h));
        }
        sums[t] = sum;
      }
    });
  }
  job.gate_sums = plan.gate_sums.data();
}

}  // namespace

HeadTensor<const void> gates_of(std::string_view verb, std::string_view what, const ConstTensorView& view,
                                const AttentionJob& job) {
  if (view.shape.rank < 1 || view.shape.rank > 3 || view.strides.rank != view.shape.rank) {
    raise(fmt::format("{}: {} must have 1 to 3 axes, batch, heads, keys, but has {}", verb, what, view.shape.rank));
  }
  if (view.type != DataType::kF32 && view.type != DataType::kF64 && view.type != DataType::kF16 &&
      view.type != DataType::kBF16) {
    raise(fmt::format("{}: {} must be f32, f64, f16 or bf16 but is {}", verb, what, name_of(view.type)));
  }
  ConstTensorView with_feature = view;
  with_feature.shape.push_back(1);
  with_feature.strides.push_back(1);
  const HeadTensor<const void> gates = tensor_of(verb, what, with_feature);
  if (gates.batch != job.q.batch || gates.heads != job.q.heads || gates.sequence != job.k.sequence) {
    raise(fmt::format("{}: {} has shape {} but must have {}", verb, what, to_string(view.shape),
                      to_string(Extents{job.q.batch, job.q.heads, job.k.sequence})));
  }
  return gates;
}

void refuse_log_gates(const AttentionCall& call) {
  if (call.log_gates.data == nullptr || reads_gates(call)) return;
  raise(fmt::format("{}: log_gates are given, but the form does not use them", call.verb));
}

void plan_gates(const AttentionCall& call, Plan& plan) {
  if (!reads_gates(call)) return;
  if (call.log_gates.data == nullptr) {
    raise(fmt::format("{}: the form needs log_gates, which are missing", call.verb));
  }
  sum_gates(call.verb, gates_of(call.verb, "log_gates", call.log_gates, plan.job), plan);
}

// g_t is part of every sum from c_t on.
void write_gate_gradient(const TensorView& to, const BackwardJob& job) {
  if (to.data == nullptr) return;
  TensorView with_feature = to;
  with_feature.shape.push_back(1);
  with_feature.strides.push_back(1);
  const HeadTensor<void> out = tensor_of("attention_backward", "the gradient of log_gates", with_feature);
  kernels::with_type(out.type, [&](auto kind) {
    using T = decltype(kind);
    for (std::int64_t row = 0; row < out.batch * out.heads; ++row) {
      const double* const d_sums = job.d_gate_sums.data() + row * out.sequence;
      double sum = 0;
      for (std::int64_t t = out.sequence - 1; t >= 0; --t) {
        sum += d_sums[t];
        *out.row<T>(row / out.heads, row % out.heads, t) = numerics::narrow<T>(sum);
      }
    }
  });
}

}  // namespace posenc::attend
