// attention_backward: its arguments, checked, and the sums that kernels collect, added to the gradients.

#include <fmt/format.h>

#include <variant>

#include "attention/arguments.h"
#include "attention/bias_element.h"
#include "attention/select.h"
#if POSENC_CUDA
#include "attention/cuda/backward.h"
#endif
#include "posenc/attention.h"
#include "posenc/error.h"

namespace posenc {
namespace {

using namespace attend;
constexpr std::string_view verb = "attention_backward";

// Adds sums to an array, each element rounded once; `of(index)` is the sum for an element of a dense array.
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
  if (shape.rank == 0) raise(fmt::format("{}: the position has no {} that could have a gradient", verb, what));
  kernels::check_tensor(verb, what, gradient, 1, 3, "1 to 3 axes");
  kernels::check_writable(verb, what, gradient);
  if (gradient.shape == shape) return;
  raise(fmt::format("{}: the gradient of the {} has shape {} but must have {}", verb, what, to_string(gradient.shape),
                    to_string(shape)));
}

// The shape of a bias's parameters, as bias_backward has them; none for vectors.
Extents shape_of_parameters(const Bias* bias, std::int64_t heads) {
  if (bias == nullptr) return {};
  if (std::holds_alternative<Slopes>(bias->source)) return {heads};
  if (const auto* table = std::get_if<DistanceTable>(&bias->source)) return table_of(*table, heads).shape;
  const auto* const ratios = std::get_if<DistanceRatios>(&bias->source);
  if (ratios == nullptr) return {};
  const auto width = static_cast<std::int64_t>(ratios->hidden_weights.size());
  return {2 * width + heads * width + heads};
}

// The position's parameters: checks the arrays for their gradients and makes room for the sums.
void plan_parameters(const AttentionGradients& gradients, BackwardJob& job) {
  const Bias* const bias = job.forward.bias;
  const std::int64_t heads = job.forward.q.heads, features = job.forward.q.features;
  if (gradients.parameters.data != nullptr) {
    check_parameter("parameters", gradients.parameters, shape_of_parameters(bias, heads));
    job.head_parameters = std::visit(ParameterCount{heads}, bias->source);
    job.parameters.assign(static_cast<std::size_t>(heads * job.head_parameters), 0.0);
  }
  const auto* const vectors = bias != nullptr ? std::get_if<DistanceVectors>(&bias->source) : nullptr;
  const auto plan_vectors = [&](std::string_view what, const VectorsByDistance* given, const TensorView& gradient,
                                std::int64_t& rows, std::vector<double>& sums) {
    const bool is_there = given != nullptr && given->table.data != nullptr;
    rows = is_there ? given->table.shape.back(1) : 0;
    if (gradient.data == nullptr) return;
    check_parameter(what, gradient, is_there ? given->table.shape : Extents{});
    sums.assign(static_cast<std::size_t>(heads * rows * features), 0.0);
  };
  plan_vectors("vectors for queries", vectors != nullptr ? &vectors->for_queries : nullptr, gradients.query_vectors,
               job.query_rows, job.query_vectors);
  plan_vectors("vectors for keys", vectors != nullptr ? &vectors->for_keys : nullptr, gradients.key_vectors,
               job.key_rows, job.key_vectors);
}

void add_parameters(const TensorView& gradient, const BackwardJob& job) {
  if (gradient.data == nullptr) return;
  const std::int64_t heads = job.forward.q.heads, per_head = job.head_parameters;
  const auto sum_of = [&](std::int64_t h, std::int64_t parameter) {
    return job.parameters[static_cast<std::size_t>(h * per_head + parameter)];
  };
  const auto* const ratios = std::get_if<DistanceRatios>(&job.forward.bias->source);
  if (ratios == nullptr) {  // [rows, heads], or [heads] where there is one row
    add_sums(gradient, [&](std::int64_t index) { return sum_of(index % heads, index / heads); });
    return;
  }
  const auto width = static_cast<std::int64_t>(ratios->hidden_weights.size());
  add_sums(gradient, [&](std::int64_t index) {
    const std::int64_t past = index - 2 * width;
    if (past >= heads * width) return sum_of(past - heads * width, 3 * width);
    if (past >= 0) return sum_of(past / width, 2 * width + past % width);
    double shared = 0;
    for (std::int64_t h = 0; h < heads; ++h) shared += sum_of(h, index);
    return shared;
  });
}

void add_vectors(const TensorView& gradient, const std::vector<double>& sums, std::int64_t heads) {
  if (gradient.data == nullptr) return;
  const std::int64_t size = static_cast<std::int64_t>(sums.size()) / heads;
  const bool is_shared = gradient.shape.rank == 2;
  add_sums(gradient, [&](std::int64_t index) {
    double sum = sums[static_cast<std::size_t>(index)];
    for (std::int64_t h = 1; is_shared && h < heads; ++h) sum += sums[static_cast<std::size_t>(h * size + index)];
    return sum;
  });
}

// Where a gradient of q, k or v is written: to its place, or in the type of sums, to be rotated back into its place.
struct Gradient {
  std::string_view what;
  TensorView view;
  HeadTensor<void> result = {};
  const Rotation* rotation = nullptr;
  std::vector<std::byte> storage = {};
};
void plan_gradient(Gradient& gradient, DataType type, const HeadTensor<const void>& like) {
  if (gradient.view.data == nullptr) return;
  gradient.result = result_of(verb, gradient.what, gradient.view, {type, like, like.features});
}
TensorView before_rotation(Gradient& gradient) {
  if (gradient.storage.empty()) return gradient.view;
  return {gradient.storage.data(), sums_type(gradient.view.type), gradient.view.shape};
}
void rotate_later(Gradient& gradient, const Rotation& rotation) {
  const std::int64_t count = count_of(gradient.view.shape);
  if (gradient.view.data == nullptr || count == 0) return;
  gradient.rotation = &rotation;
  // 16 bits would be rounded twice
  const DataType type = sums_type(gradient.view.type);
  if (type == gradient.view.type) return;
  gradient.storage.resize(static_cast<std::size_t>(count * size_of(type)));
  gradient.result = tensor_of(verb, gradient.what, before_rotation(gradient));
}
void rotate_back(Gradient& gradient, const TokenPositions& positions) {
  if (gradient.rotation == nullptr) return;
  rotate_checked(gradient.view, before_rotation(gradient), positions, adjoint(*gradient.rotation));
}

// What the forward pass gives, from the caller or to be made again.
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
    saved.out_storage.resize(static_cast<std::size_t>(count_of(shape) * size_of(type)));
    saved.sum_storage.resize(static_cast<std::size_t>(count_of(rows) * size_of(type)));
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

}  // namespace

void attention_backward(const AttentionGradients& gradients, ConstTensorView d_out, const AttentionInputs& inputs,
                        const AttentionOptions& options, const Run& run) {
  Plan plan;
  BackwardJob job;
  plan_inputs(verb, inputs, options, plan);
  const DataType type = inputs.q.type;
  check_result(verb, "d_out", d_out, {type, plan.job.q, plan.job.v.features});
  job.d_out = tensor_of(verb, "d_out", d_out);
  Gradient dq{"the gradient of q", gradients.q}, dk{"the gradient of k", gradients.k},
      dv{"the gradient of v", gradients.v};
  plan_gradient(dq, type, plan.job.q);
  plan_gradient(dk, type, plan.job.k);
  plan_gradient(dv, type, plan.job.v);
  for (const Gradient* gradient : {&dq, &dk, &dv}) {
    for (const ConstTensorView& input : {inputs.q, inputs.k, inputs.v, inputs.out, inputs.logsumexp, d_out}) {
      check_apart(verb, {gradient->what, gradient->view}, {"an input", input});
    }
  }
  check_apart(verb, {dq.what, dq.view}, {dk.what, dk.view});
  check_apart(verb, {dq.what, dq.view}, {dv.what, dv.view});
  check_apart(verb, {dk.what, dk.view}, {dv.what, dv.view});
  const kernels::Site site = kernels::site_of(
      verb,
      {d_out, inputs.q, inputs.k, inputs.v, inputs.out, inputs.logsumexp, gradients.q, gradients.k, gradients.v,
       gradients.parameters, gradients.query_vectors, gradients.key_vectors, options.weights, options.logsumexp},
      {}, run);
  if (site.device != Device::kHost) {
    kernels::backend_for(verb, site.device);  // or there is none
#if POSENC_CUDA
    plan_device_position(verb, inputs, options, plan);
    job.forward.q = plan.job.q;
    job.forward.bias = plan.job.bias;
    plan_parameters(gradients, job);
    cuda::backward(plan.job, inputs, d_out, options,
                   {gradients.q, gradients.k, gradients.v, gradients.parameters, dq.result, dk.result, dv.result},
                   site);
#endif
    return;
  }
  Saved saved;
  plan_saved(inputs, plan.job, saved);
  plan_position(verb, inputs, options, plan);
  if (std::holds_alternative<Rotation>(options.position)) {
    rotate_later(dq, plan.for_queries);
    if (!options.keys_are_rotated) rotate_later(dk, plan.for_keys);
  }
  job.dq = dq.result;
  job.dk = dk.result;
  job.dv = dv.result;
  job.forward = std::move(plan.job);
  plan_parameters(gradients, job);
  if (!has_work(job.forward) && job.forward.k.batch * job.forward.k.heads * job.forward.k.sequence == 0) return;

  const AttentionBackend& backend = selected_attention();
  if (saved.is_made_again && has_work(job.forward)) backend.forward(job.forward);
  backend.backward(job);
  rotate_back(dq, job.forward.places.queries);
  rotate_back(dk, job.forward.places.keys);
  add_parameters(gradients.parameters, job);
  add_vectors(gradients.query_vectors, job.query_vectors, job.forward.q.heads);
  add_vectors(gradients.key_vectors, job.key_vectors, job.forward.q.heads);
}

}  // namespace posenc
