// attention_backward: checks its arguments, and adds the sums that the kernels collect to the gradients.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "attention/plan/arguments.h"
#include "attention/select.h"
#if POSENC_CUDA
#include "attention/cuda/backward.h"
#include "kernels/cuda/call.h"
#endif
#include "posenc/attention.h"
#include "posenc/error.h"
#include "terms/terms.h"

namespace posenc {
namespace {

using namespace attend;
constexpr std::string_view verb = "attention_backward";

// Adds sums to an array, rounding each element once; `of(index)` is the sum for an element of a dense array.
template <class Sum> void add_sums(const TensorView& to, const Sum& of) {
  kernels::with_type(to.type, [&](auto kind) {
    using T = decltype(kind);
    const std::int64_t count = count_of(to.shape);
    for (std::int64_t index = 0; index < count; ++index) {
      std::int64_t offset = 0;
      for (std::int64_t axis = to.shape.rank - 1, rest = index; axis >= 0; --axis) {
        offset += rest % to.shape[static_cast<int>(axis)] * to.strides[static_cast<int>(axis)];
        rest /= to.shape[static_cast<int>(axis)];
      }
      T& element = static_cast<T*>(to.data)[offset];
      element = numerics::narrow<T>(numerics::widen(element) + of(index));
    }
  });
}

void check_parameter(std::string_view what, const TensorView& gradient, const Extents& shape) {
  if (shape.rank == 0) raise(fmt::format("{}: the position has no {}, so there is no such gradient", verb, what));
  check_tensor(verb, what, gradient, 1, 3, "1 to 3 axes");
  kernels::check_writable(verb, what, gradient);
  if (gradient.shape == shape) return;
  raise(fmt::format("{}: the gradient of the {} has shape {} but must have {}", verb, what, to_string(gradient.shape),
                    to_string(shape)));
}

// Checks the arrays for the gradients of the position's parameters and allocates the sums.
void plan_parameters(const AttentionGradients& gradients, BackwardJob& job) {
  const Bias* const bias = job.forward.bias;
  const std::int64_t heads = job.forward.q.heads;
  if (gradients.parameters.data != nullptr) {
    check_parameter("parameters", gradients.parameters, bias != nullptr ? terms::parameters(*bias) : Extents{});
    job.head_parameters = terms::head_parameters(*bias);
    job.parameters.assign(heads * job.head_parameters, 0.0);
  }
  const terms::VectorTables vectors = bias != nullptr ? terms::vectors(*bias) : terms::VectorTables{};
  const auto plan_rows = [&](std::string_view what, const ConstTensorView& table, const TensorView& gradient,
                             std::int64_t& rows, std::vector<double>& sums) {
    const bool is_there = table.data != nullptr;
    rows = is_there ? table.shape.back(1) : 0;
    if (gradient.data == nullptr) return;
    check_parameter(what, gradient, is_there ? table.shape : Extents{});
    sums.assign(heads * rows * table.shape.back(0), 0.0);
  };
  plan_rows("vectors for queries", vectors.queries, gradients.query_vectors, job.query_rows, job.query_vectors);
  plan_rows("vectors for keys", vectors.keys, gradients.key_vectors, job.key_rows, job.key_vectors);
  plan_rows("vectors for values", vectors.values, gradients.value_vectors, job.value_rows, job.value_vectors);
  if (gradients.query_offsets.data == nullptr) return;
  check_parameter("offsets of queries", gradients.query_offsets, vectors.offsets);
  job.query_offsets.assign(count_of(vectors.offsets), 0.0);
}

void add_parameters(const TensorView& gradient, const BackwardJob& job) {
  if (gradient.data == nullptr) return;
  add_sums(gradient,
           [&](std::int64_t index) { return terms::gradient(*job.forward.bias, job.parameters.data(), index); });
}

void add_vectors(const TensorView& gradient, const std::vector<double>& sums, std::int64_t heads) {
  if (gradient.data == nullptr) return;
  const std::int64_t size = static_cast<std::int64_t>(sums.size()) / heads;
  const bool is_shared = gradient.shape.rank == 2;
  add_sums(gradient, [&](std::int64_t index) {
    double sum = sums[index];
    for (std::int64_t h = 1; is_shared && h < heads; ++h) sum += sums[h * size + index];
    return sum;
  });
}

// Where a gradient of q, k or v is written: directly, or in the type of sums, to be rotated back afterwards.
struct Gradient {
  std::string_view what;
  TensorView view;
  HeadTensor<void> result = {};
  const Rotation* rotation = nullptr;
  std::vector<std::byte> storage = {};
};
void plan_gradient(Gradient& gradient, DataType type, const HeadTensor<const void>& like) {
  if (gradient.view.data == nullptr) return;
  if (gradient.view.type == sums_type(type)) type = gradient.view.type;
  gradient.result = result_of(verb, gradient.what, gradient.view, {type, like, like.features});
}
TensorView before_rotation(Gradient& gradient) {
  if (gradient.storage.empty()) return gradient.view;
  return {gradient.storage.data(), sums_type(gradient.view.type), gradient.view.shape};
}
// Gradients that change later are first written in the type of sums, because 16 bits would be rounded twice.
void widen_later(Gradient& gradient) {
  const DataType type = sums_type(gradient.view.type);
  const std::int64_t count = count_of(gradient.view.shape);
  if (gradient.view.data == nullptr || count == 0 || type == gradient.view.type || !gradient.storage.empty()) return;
  gradient.storage.resize(count * size_of(type));
  gradient.result = tensor_of(verb, gradient.what, before_rotation(gradient));
}
void rotate_later(Gradient& gradient, const Rotation& rotation) {
  const std::int64_t count = count_of(gradient.view.shape);
  if (gradient.view.data == nullptr || count == 0) return;
  gradient.rotation = &rotation;
  widen_later(gradient);
}
void rotate_back(Gradient& gradient, const AttentionBackend& backend, const TokenPositions& positions) {
  if (gradient.rotation == nullptr) return;
  kernels::rotate_for(verb, *backend.kernels, gradient.view, before_rotation(gradient), positions,
                      adjoint(*gradient.rotation));
}

void narrow_into_place(const Gradient& gradient) {
  if (gradient.storage.empty()) return;
  const HeadTensor<void>& from = gradient.result;
  const HeadTensor<void> to = tensor_of(verb, gradient.what, gradient.view);
  kernels::with_type(to.type, [&](auto kind) {
    using T = decltype(kind);
    for (std::int64_t row = 0; row < to.batch * to.heads * to.sequence; ++row) {
      const std::int64_t b = row / to.sequence / to.heads, h = row / to.sequence % to.heads, i = row % to.sequence;
      const float* const x = from.row<float>(b, h, i);
      T* const out = to.row<T>(b, h, i);
      for (std::int64_t f = 0; f < to.features; ++f) {
        out[f * to.feature_stride] = numerics::narrow<T>(static_cast<double>(x[f]));
      }
    }
  });
}

// Turns the gradient of q · temperature into that of q, before rotating back: the two commute.
void scale_rows(Gradient& gradient, std::span<const double> factors) {
  if (factors.empty() || gradient.view.data == nullptr) return;
  const HeadTensor<void>& rows = gradient.result;
  const std::int64_t heads = std::ssize(factors) == rows.batch * rows.sequence ? 1 : rows.heads;
  kernels::with_type(rows.type, [&](auto kind) {
    using T = decltype(kind);
    for (std::int64_t row = 0; row < rows.batch * rows.heads * rows.sequence; ++row) {
      const std::int64_t b = row / rows.sequence / rows.heads, h = row / rows.sequence % rows.heads,
                         i = row % rows.sequence;
      const double factor = factors[(b * heads + h % heads) * rows.sequence + i];
      T* const x = rows.row<T>(b, h, i);
      for (std::int64_t f = 0; f < rows.features; ++f) {
        T& element = x[f * rows.feature_stride];
        element = numerics::narrow<T>(factor * numerics::widen(element));
      }
    }
  });
}

// A sink's weight is p = e^(sink − logsumexp) and its value is 0, so its gradient is −Σ p · D with D = Σ dO · O.
void add_sinks(const TensorView& gradient, const BackwardJob& job) {
  if (gradient.data == nullptr) return;
  const AttentionJob& forward = job.forward;
  std::vector<double> sums(forward.q.heads, 0.0);
  for (std::int64_t row = 0; row < forward.q.batch * forward.q.heads * forward.q.sequence; ++row) {
    const std::int64_t b = row / forward.q.sequence / forward.q.heads, h = row / forward.q.sequence % forward.q.heads,
                       i = row % forward.q.sequence;
    const auto element = [](const auto& x, std::int64_t at_b, std::int64_t at_h, std::int64_t t, std::int64_t f) {
      return kernels::with_type(x.type, [&](auto kind) {
        return numerics::widen(x.template row<decltype(kind)>(at_b, at_h, t)[f * x.feature_stride]);
      });
    };
    double delta = 0;
    for (std::int64_t f = 0; f < forward.v.features; ++f) {
      delta += element(job.d_out, b, h, i, f) * element(forward.out, b, h, i, f);
    }
    const double weight = std::exp(forward.sinks[h] - element(forward.logsumexp, b, h, i, 0));
    sums[h] -= weight * delta;
  }
  add_sums(gradient, [&](std::int64_t h) { return sums[h]; });
}

// The outputs of the forward pass, given by the caller or to be recomputed.
struct Saved {
  TensorView out, logsumexp;
  bool is_made_again = false;
  std::vector<std::byte> out_storage = {}, sum_storage = {};
};
TensorView writable(const ConstTensorView& view) {
  return {const_cast<void*>(view.data), view.type, view.shape, view.strides};  // only read: see is_made_again
}
void plan_saved(const AttentionInputs& inputs, AttentionJob& job, Saved& saved) {
  const DataType type = sums_type(inputs.q.type);
  saved.is_made_again = inputs.out.data == nullptr || inputs.logsumexp.data == nullptr;
  if (saved.is_made_again) {
    const Extents rows = {job.q.batch, job.q.heads, job.q.sequence};
    const Extents shape = {job.q.batch, job.q.heads, job.q.sequence, job.v.features};
    saved.out_storage.resize(count_of(shape) * size_of(type));
    saved.sum_storage.resize(count_of(rows) * size_of(type));
    saved.out = {saved.out_storage.data(), type, shape};
    saved.logsumexp = {saved.sum_storage.data(), type, rows};
  } else {
    saved.out = writable(inputs.out);
    saved.logsumexp = writable(inputs.logsumexp);
    check_result(verb, "out", inputs.out, {inputs.q.type, job.q, job.v.features});
  }
  job.out = tensor_of(verb, "out", saved.out);
  if (has_work(job)) job.logsumexp = logsumexp_of(verb, saved.logsumexp, job);
}

// One call, as it is planned. Gradients of inputs are written; those of parameters are added.
struct Backward {
  const AttentionCall& call;
  AttentionGradients gradients;
  ConstTensorView d_out;
  Gradient dq{"the gradient of q", gradients.q}, dk{"the gradient of k", gradients.k},
      dv{"the gradient of v", gradients.v}, d_own{"the gradient of position_queries", gradients.position_queries},
      d_gates{"the gradient of log_gates", gradients.log_gates};
  Plan plan = {};
  BackwardJob job = {};
};

void check_backward_apart(const Backward& all) {
  const AttentionInputs& inputs = all.call.inputs;
  const auto check = [](const Gradient& a, const Gradient& b) {
    check_apart(verb, {a.what, a.view}, {b.what, b.view});
  };
  for (const Gradient* gradient : {&all.dq, &all.dk, &all.dv, &all.d_own, &all.d_gates}) {
    for (const ConstTensorView& input : {inputs.q, inputs.k, inputs.v, inputs.out, inputs.logsumexp, all.d_out,
                                         all.call.position_queries, all.call.log_gates}) {
      check_apart(verb, {gradient->what, gradient->view}, {"an input", input});
    }
  }
  check(all.dq, all.dk);
  check(all.dq, all.dv);
  check(all.dk, all.dv);
  for (const Gradient* gradient : {&all.dq, &all.dk, &all.dv}) {
    check(all.d_own, *gradient);
    check(all.d_gates, *gradient);
  }
}

// Checks what does not depend on where the tensors are.
void plan_backward(Backward& all) {
  const AttentionCall& call = all.call;
  if (!call.block_table.empty()) raise("attention_backward: a paged cache (block_table) has no gradients");
  if (is_of_8_bits(call.inputs.k.type)) {
    raise(fmt::format("attention_backward: a cache of {} has no gradients", name_of(call.inputs.k.type)));
  }
  plan_inputs(call, all.plan);
  const AttentionJob& forward = all.plan.job;
  check_result(verb, "d_out", all.d_out, {call.inputs.q.type, forward.q, forward.v.features});
  all.job.d_out = tensor_of(verb, "d_out", all.d_out);
  plan_gradient(all.dq, call.inputs.q.type, forward.q);
  plan_gradient(all.dk, call.inputs.k.type, forward.k);
  plan_gradient(all.dv, call.inputs.k.type, forward.v);
  if (all.gradients.sinks.data != nullptr) {
    check_parameter("sinks", all.gradients.sinks, call.sinks.data == nullptr ? Extents{} : call.sinks.shape);
  }
  check_backward_apart(all);
}

kernels::Site backward_site(const Backward& all, const Run& run) {
  const AttentionInputs& x = all.call.inputs;
  const AttentionGradients& d = all.gradients;
  const AttentionCall& call = all.call;
  return kernels::site_of(verb,
                          {all.d_out,
                           x.q,
                           x.k,
                           x.v,
                           x.out,
                           x.logsumexp,
                           d.q,
                           d.k,
                           d.v,
                           d.parameters,
                           d.query_vectors,
                           d.key_vectors,
                           d.sinks,
                           d.value_vectors,
                           d.query_offsets,
                           d.position_queries,
                           d.log_gates,
                           call.weights,
                           call.logsumexp,
                           call.mask,
                           call.sinks,
                           call.position_queries,
                           call.log_gates},
                          {}, run);
}

void backward_on_device(Backward& all, const kernels::Site& site, [[maybe_unused]] const Run& run) {
  kernels::backend_for(verb, site.device);  // throws if there is none
  refuse_on_device(all.call);
#if POSENC_CUDA
  plan_device_position(all.call, all.plan);
  all.job.forward.q = all.plan.job.q;
  all.job.forward.bias = all.plan.job.bias;
  plan_parameters(all.gradients, all.job);
  const kernels::cuda::UseWorkspace use(run.workspace);
  const AttentionGradients& d = all.gradients;
  cuda::backward(all.plan.job, all.call.inputs, all.d_out, all.call,
                 {d.q, d.k, d.v, d.parameters, all.dq.result, all.dk.result, all.dv.result}, site);
#endif
}

// The gradients that depend on the position, and what is left to do with those of q and k afterwards.
void plan_position_gradients(Backward& all) {
  Plan& plan = all.plan;
  if (all.d_own.view.data != nullptr) {
    if (plan.job.position_queries.data == nullptr) {
      raise("attention_backward: the position has no position_queries, so there is no such gradient");
    }
    plan_gradient(all.d_own, all.call.inputs.q.type, plan.job.position_queries);
  }
  if (all.d_gates.view.data != nullptr) {
    if (plan.job.gate_sums == nullptr) {
      raise("attention_backward: the position has no log_gates, so there is no such gradient");
    }
    gates_of(verb, all.d_gates.what, all.d_gates.view, plan.job);
    kernels::check_writable(verb, all.d_gates.what, all.d_gates.view);
    all.job.d_gate_sums.assign(plan.gate_sums.size(), 0.0);
  }
  if (all.call.temperature != nullptr) {
    widen_later(all.dq);
    widen_later(all.d_own);
  }
  if (plan.forms != nullptr) {  // there is a rotation, and tokens to rotate
    rotate_later(all.dq, plan.forms->for_queries);
    if (!all.call.keys_are_rotated) rotate_later(all.dk, plan.forms->for_keys);
  }
}

void backward_on_host(Backward& all) {
  Plan& plan = all.plan;
  BackwardJob& job = all.job;
  Saved saved;
  plan_saved(all.call.inputs, plan.job, saved);
  plan.backend = &selected_attention(verb);
  plan_position(all.call, plan);
  plan_position_gradients(all);
  job.dq = all.dq.result;
  job.dk = all.dk.result;
  job.dv = all.dv.result;
  job.d_position_queries = all.d_own.result;
  job.forward = std::move(plan.job);
  plan_parameters(all.gradients, job);
  if (!has_work(job.forward) && job.forward.k.batch * job.forward.k.heads * job.forward.k.sequence == 0) return;

  const AttentionBackend& backend = *plan.backend;
  if (saved.is_made_again && has_work(job.forward)) backend.forward(job.forward);
  if (!saved.is_made_again) job.has_other_keys.assign(job.forward.k.heads, 0);
  backend.backward(job);
  if (std::count(job.has_other_keys.begin(), job.has_other_keys.end(), 1) > 0) {
    raise(
        "attention_backward: logsumexp is not that of these keys, which the backend cpu supports in f32, f16 and bf16 without "
        "vectors by distance, contextual positions, and gradients of a bias with a softcap");
  }
  scale_rows(all.dq, plan.query_factors);
  scale_rows(all.d_own, plan.query_factors);
  rotate_back(all.dq, backend, job.forward.places.queries);
  rotate_back(all.dk, backend, job.forward.places.keys);
  if (all.dq.rotation == nullptr) narrow_into_place(all.dq);
  narrow_into_place(all.d_own);
  write_gate_gradient(all.gradients.log_gates, job);
  add_sinks(all.gradients.sinks, job);
  add_parameters(all.gradients.parameters, job);
  add_vectors(all.gradients.query_vectors, job.query_vectors, job.forward.q.heads);
  add_vectors(all.gradients.key_vectors, job.key_vectors, job.forward.q.heads);
  add_vectors(all.gradients.value_vectors, job.value_vectors, job.forward.q.heads);
  add_vectors(all.gradients.query_offsets, job.query_offsets, 1);
}

}  // namespace

void attention_backward(const AttentionGradients& given, ConstTensorView d_out, const AttentionInputs& given_inputs,
                        const AttentionOptions& options, const Run& run) {
  const kernels::CallThreads threads_of_call(verb, run);
  const AttentionCall call = call_of(verb, {}, given_inputs, options);
  AttentionGradients gradients = given;
  if (options.axes && has_heads_last(*options.axes)) {
    const auto place = [&](auto& x) { x = x.data == nullptr ? x : heads_first(x, *options.axes); };
    for (TensorView* const x : {&gradients.q, &gradients.k, &gradients.v, &gradients.position_queries}) place(*x);
    place(d_out);
    gradients.log_gates = gates_heads_first(gradients.log_gates);
  }
  Backward all{call, gradients, d_out};
  plan_backward(all);
  const kernels::Site site = backward_site(all, run);
  if (site.device == Device::kHost) {
    backward_on_host(all);
  } else {
    backward_on_device(all, site, run);
  }
}

std::size_t workspace_bytes([[maybe_unused]] const AttentionGradients& gradients,
                            [[maybe_unused]] ConstTensorView d_out, const AttentionInputs& inputs,
                            [[maybe_unused]] const AttentionOptions& options) {
  if (inputs.q.device == Device::kHost) raise("workspace_bytes: gradients on the host do not use a workspace");
  kernels::backend_for("workspace_bytes", Device::kCuda);  // throws if there is none
  std::size_t bytes = 0;
#if POSENC_CUDA
  const kernels::cuda::MeasureWorkspace measure;
  attention_backward(gradients, d_out, inputs, options);
  bytes = measure.bytes();
#endif
  return bytes;
}

}  // namespace posenc
