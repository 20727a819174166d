// attention and attention_backward: every argument is checked here, once, so that kernels need not.

#include "posenc/attention.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <variant>

#include "attention/plan.h"
#include "attention/select.h"
#include "kernels/checks.h"
#include "kernels/element.h"
#include "posenc/apply.h"
#include "posenc/error.h"

namespace posenc {
namespace {

using namespace attend;

void check_shapes(std::string_view verb, const AttentionJob& job) {
  const HeadTensor<const void>&q = job.q, &k = job.k, &v = job.v;
  const auto check_equal = [&](std::string_view what, std::string_view one, std::int64_t a, std::string_view other,
                               std::int64_t b) {
    if (a != b) raise(fmt::format("{}: {} has {} {} but {} {}", verb, one, a, what, other, b));
  };
  check_equal("sequences", "k", k.batch, "q", q.batch);
  check_equal("features", "k", k.features, "q", q.features);
  check_equal("sequences", "v", v.batch, "k", k.batch);
  check_equal("heads", "v", v.heads, "k", k.heads);
  check_equal("tokens", "v", v.sequence, "k", k.sequence);
  if (k.heads < 1 || q.heads % k.heads != 0) {
    raise(fmt::format("{}: k has {} heads but q {}: they must divide q's", verb, k.heads, q.heads));
  }
}

void check_type(std::string_view verb, std::string_view what, DataType type, DataType wanted) {
  if (type != wanted) raise(fmt::format("{}: {} is {} but must be {}", verb, what, name_of(type), name_of(wanted)));
}

// A view of all four axes: kernels::heads_of forgets the extents of an empty tensor, which the checks compare.
template <class Void>
HeadTensor<Void> tensor_of(std::string_view verb, std::string_view what, const BasicTensorView<Void>& view) {
  HeadTensor<Void> heads = kernels::heads_of(verb, what, view);
  const int rank = view.shape.rank;
  heads.batch = rank > 3 ? view.shape[0] : 1;
  heads.heads = rank > 2 ? view.shape.back(2) : 1;
  heads.sequence = view.shape.back(1);
  return heads;
}

// The bytes from the first to the last that a view may touch.
struct Range {
  std::uintptr_t first, last;
};
Range range_of(const ConstTensorView& view) {
  std::int64_t low = 0, high = 0;
  for (int axis = 0; axis < view.shape.rank; ++axis) {
    const std::int64_t reach = (view.shape[axis] - 1) * view.strides[axis];
    (reach < 0 ? low : high) += reach;
  }
  const auto start = reinterpret_cast<std::uintptr_t>(view.data);
  const std::int64_t size = size_of(view.type);
  return {start + static_cast<std::uintptr_t>(low * size),
          start + static_cast<std::uintptr_t>(high * size + size - 1)};
}

void check_apart(std::string_view verb, std::string_view one, const TensorView& out, std::string_view other,
                 const ConstTensorView& x) {
  if (out.data == nullptr || x.data == nullptr || count_of(out.shape) == 0 || count_of(x.shape) == 0) return;
  const Range a = range_of(out), b = range_of(x);
  if (a.first <= b.last && b.first <= a.last) raise(fmt::format("{}: {} overlaps {}", verb, one, other));
}

// An output beside `out`: its first axes are batch, heads and queries.
HeadTensor<void> side_output(std::string_view verb, std::string_view what, const TensorView& view, DataType type,
                             const AttentionJob& job, bool has_keys) {
  if (view.data == nullptr) return {};
  TensorView shaped = view;
  if (!has_keys) {
    shaped.shape.push_back(1);
    shaped.strides.push_back(1);
  }
  const HeadTensor<void> tensor = tensor_of(verb, what, shaped);
  check_type(verb, what, view.type, type);
  kernels::check_writable(verb, what, view);
  if (tensor.batch != job.q.batch || tensor.heads != job.q.heads || tensor.sequence != job.q.sequence ||
      (has_keys && tensor.features != job.k.sequence)) {
    raise(fmt::format("{}: {} has shape {}, which does not fit q and k", verb, what, to_string(view.shape)));
  }
  return tensor;
}

DataType sums_type(DataType type) { return type == DataType::kF64 ? DataType::kF64 : DataType::kF32; }

// To become rotate().
void turn_rows(const TensorView&, const ConstTensorView&, const Positions&, const Rotation&) {
  raise("attention: rotation is not there yet");
}

// As rotate takes them.
Positions positions_given(const TokenPositions& positions, std::int64_t batch, std::int64_t tokens) {
  Positions given{.first = positions.first, .axes = positions.axes};
  if (positions.ids == nullptr) return given;
  const std::int64_t count = positions.axes * tokens * (positions.batch_stride == 0 ? 1 : batch);
  given.ids = {positions.ids, static_cast<std::size_t>(count)};
  return given;
}

// q or k after rotation, in the type of sums.
HeadTensor<const void> turned(const ConstTensorView& x, const TokenPositions& positions, std::int64_t batch,
                              const Rotation& form, std::vector<std::byte>& storage) {
  const DataType type = sums_type(x.type);
  storage.resize(static_cast<std::size_t>(count_of(x.shape) * size_of(type)));
  const TensorView out(storage.data(), type, x.shape);
  turn_rows(out, x, positions_given(positions, batch, x.shape.back(1)), form);
  return kernels::heads_of("attention", "x", ConstTensorView(out));
}

// The position's own part of the job; q and k as given.
void plan_position(std::string_view verb, const AttentionOptions& options, const ConstTensorView& q,
                   const ConstTensorView& k, Plan& plan) {
  AttentionJob& job = plan.job;
  if (std::holds_alternative<Addition>(options.position)) {
    raise(fmt::format("{}: an addition belongs to the embeddings, before q and k are made: use add()", verb));
  }
  if (const auto* bias = std::get_if<Bias>(&options.position)) {
    plan_places(verb, options, position_axes_of(*bias), plan);
    check_bias(verb, *bias, job);
    job.bias = bias;
    if (const auto* vectors = std::get_if<DistanceVectors>(&bias->source)) job.scale *= vectors->softmax_factor;
  } else if (const auto* rotation = std::get_if<Rotation>(&options.position)) {
    plan_places(verb, options, rotation->position_axes, plan);
    job.scale *= rotation->softmax_factor;
    if (count_of(q.shape) == 0 || count_of(k.shape) == 0) return;
    plan.for_queries = *rotation;
    job.q = turned(q, job.places.queries, job.q.batch, plan.for_queries, plan.turned_q);
    if (options.keys_are_rotated) return;
    plan.for_keys = for_keys(*rotation);
    job.k = turned(k, job.places.keys, job.q.batch, plan.for_keys, plan.turned_k);
  } else {
    plan_places(verb, options, 1, plan);
  }
}

void plan_inputs(std::string_view verb, const ConstTensorView& q, const ConstTensorView& k, const ConstTensorView& v,
                 const AttentionOptions& options, Plan& plan) {
  AttentionJob& job = plan.job;
  job.q = tensor_of(verb, "q", q);
  job.k = tensor_of(verb, "k", k);
  job.v = tensor_of(verb, "v", v);
  check_type(verb, "k", k.type, q.type);
  check_type(verb, "v", v.type, q.type);
  check_shapes(verb, job);
  job.group = job.q.heads / job.k.heads;
  if (job.q.features < 1) raise(fmt::format("{}: q has no features", verb));
  job.scale = options.scale.value_or(1 / std::sqrt(static_cast<double>(job.q.features)));
  if (!std::isfinite(job.scale)) raise(fmt::format("{}: scale must be finite but is {}", verb, job.scale));
  plan_sights(verb, options, job);
}

HeadTensor<void> result_of(std::string_view verb, std::string_view what, const TensorView& out, DataType type,
                           const HeadTensor<const void>& like, std::int64_t features) {
  const HeadTensor<void> result = tensor_of(verb, what, out);
  check_type(verb, what, out.type, type);
  kernels::check_writable(verb, what, out);
  if (result.batch != like.batch || result.heads != like.heads || result.sequence != like.sequence ||
      result.features != features) {
    raise(fmt::format("{}: {} has shape {} but must have {}", verb, what, to_string(out.shape),
                      to_string(Extents{like.batch, like.heads, like.sequence, features})));
  }
  return result;
}

bool has_work(const AttentionJob& job) { return job.q.batch * job.q.heads * job.q.sequence > 0; }

}  // namespace

void attention(TensorView out, ConstTensorView q, ConstTensorView k, ConstTensorView v,
               const AttentionOptions& options) {
  constexpr std::string_view verb = "attention";
  Plan plan;
  AttentionJob& job = plan.job;
  plan_inputs(verb, q, k, v, options, plan);
  job.out = result_of(verb, "out", out, q.type, job.q, job.v.features);
  job.weights = side_output(verb, "weights", options.weights, q.type, job, true);
  job.logsumexp = side_output(verb, "logsumexp", options.logsumexp, sums_type(q.type), job, false);
  check_apart(verb, "out", out, "q", q);
  check_apart(verb, "out", out, "k", k);
  check_apart(verb, "out", out, "v", v);
  check_apart(verb, "out", out, "weights", options.weights);
  check_apart(verb, "out", out, "logsumexp", options.logsumexp);
  plan_position(verb, options, q, k, plan);
  if (has_work(job)) selected_attention().forward(job);
}

namespace {

// Sums of a backward pass that are added to a parameter's gradient; `view` is [rows, heads], or as a table of
// vectors.
struct Collected {
  std::string_view what;
  TensorView view;
  std::int64_t heads, rows, features;  // of the sums
};
void add_sums(const Collected& to, const std::vector<double>& sums) {
  if (to.view.data == nullptr) return;
  const Extents& strides = to.view.strides;
  const bool is_table = to.features == 0;
  const bool has_heads = !is_table && to.view.shape.rank == 3;
  const std::int64_t features = is_table ? 1 : to.features;
  kernels::with_type(to.view.type, [&](auto kind) {
    using T = decltype(kind);
    // an element that heads share takes the sum of theirs, rounded once
    for (std::int64_t row = 0; row < to.rows; ++row) {
      for (std::int64_t f = 0; f < features; ++f) {
        double shared = 0;
        for (std::int64_t h = 0; h < to.heads; ++h) {
          shared += sums[static_cast<std::size_t>((h * to.rows + row) * features + f)];
          if (!is_table && !has_heads && h + 1 < to.heads) continue;
          const std::int64_t at = is_table    ? row * strides[0] + h * strides[1]
                                  : has_heads ? h * strides[0] + row * strides[1] + f * strides[2]
                                              : row * strides[0] + f * strides[1];
          T& element = static_cast<T*>(to.view.data)[at];
          element = numerics::narrow<T>(numerics::widen(element) + shared);
          shared = 0;
        }
      }
    }
  });
}

void check_parameter(std::string_view verb, std::string_view what, const TensorView& gradient, bool has_parameter,
                     const Extents& shape) {
  if (gradient.data == nullptr) return;
  if (!has_parameter) raise(fmt::format("{}: the position has no {} that could have a gradient", verb, what));
  if (gradient.shape != shape || gradient.strides.rank != shape.rank) {
    raise(fmt::format("{}: the gradient of the {} has shape {} but must have {}", verb, what,
                      to_string(gradient.shape), to_string(shape)));
  }
  if (gradient.type != DataType::kF32 && gradient.type != DataType::kF64) {
    raise(fmt::format("{}: the gradient of the {} must be f32 or f64 but is {}", verb, what, name_of(gradient.type)));
  }
  kernels::check_writable(verb, what, gradient);
}

// The position's parameters: checks their gradients and makes room for the sums.
struct Parameters {
  Collected table, query_vectors, key_vectors;
};
Parameters plan_parameters(std::string_view verb, const AttentionGradients& gradients, const Form& position,
                           BackwardJob& job) {
  const auto* const bias = std::get_if<Bias>(&position);
  const auto* const slopes = bias != nullptr ? std::get_if<Slopes>(&bias->source) : nullptr;
  const auto* const table = bias != nullptr ? std::get_if<DistanceTable>(&bias->source) : nullptr;
  const auto* const vectors = bias != nullptr ? std::get_if<DistanceVectors>(&bias->source) : nullptr;
  const std::int64_t heads = job.forward.q.heads, features = job.forward.q.features;
  if (!gradients.slopes.empty()) {
    if (slopes == nullptr) raise(fmt::format("{}: the position has no slopes that could have a gradient", verb));
    if (gradients.slopes.size() != slopes->slopes.size()) {
      raise(fmt::format("{}: {} gradients for {} slopes", verb, gradients.slopes.size(), slopes->slopes.size()));
    }
    job.slopes.assign(slopes->slopes.size(), 0.0);
  }
  const Extents shape = table != nullptr ? table_of(*table, heads).shape : Extents{};
  check_parameter(verb, "table", gradients.table, table != nullptr, shape);
  job.rows = table != nullptr ? shape[0] : 0;
  if (gradients.table.data != nullptr) job.table.assign(static_cast<std::size_t>(heads * job.rows), 0.0);

  const auto plan_vectors = [&](std::string_view what, const VectorsByDistance* given, const TensorView& gradient,
                                std::int64_t& rows, std::vector<double>& sums) -> Collected {
    const bool is_there = given != nullptr && given->table.data != nullptr;
    const Extents wanted = is_there ? given->table.shape : Extents{};
    check_parameter(verb, what, gradient, is_there, wanted);
    rows = is_there ? wanted.back(1) : 0;
    if (gradient.data != nullptr) sums.assign(static_cast<std::size_t>(heads * rows * features), 0.0);
    return {what, gradient, heads, rows, features};
  };
  Parameters parameters;
  parameters.table = {"table", gradients.table, heads, job.rows, 0};
  parameters.query_vectors = plan_vectors("vectors for queries", vectors != nullptr ? &vectors->for_queries : nullptr,
                                          gradients.query_vectors, job.query_rows, job.query_vectors);
  parameters.key_vectors = plan_vectors("vectors for keys", vectors != nullptr ? &vectors->for_keys : nullptr,
                                        gradients.key_vectors, job.key_rows, job.key_vectors);
  return parameters;
}

// Where a gradient is written: at once, or before it is turned back.
struct Gradient {
  std::string_view what;
  TensorView view;
  HeadTensor<void> result;
  const Rotation* rotation = nullptr;
  std::vector<std::byte> storage;
};
void plan_gradient(std::string_view verb, Gradient& gradient, DataType type, const HeadTensor<const void>& like) {
  if (gradient.view.data == nullptr) return;
  gradient.result = result_of(verb, gradient.what, gradient.view, type, like, like.features);
}
void turn_before(Gradient& gradient, const Rotation& rotation) {
  if (gradient.view.data == nullptr || count_of(gradient.view.shape) == 0) return;
  const DataType type = sums_type(gradient.view.type);
  gradient.storage.resize(static_cast<std::size_t>(count_of(gradient.view.shape) * size_of(type)));
  gradient.result =
      kernels::heads_of("attention_backward", "x", TensorView(gradient.storage.data(), type, gradient.view.shape));
  gradient.rotation = &rotation;
}
void turn_back(const Gradient& gradient, const TokenPositions& positions, std::int64_t batch) {
  if (gradient.rotation == nullptr) return;
  const TensorView before(const_cast<std::byte*>(gradient.storage.data()), sums_type(gradient.view.type),
                          gradient.view.shape);
  turn_rows(gradient.view, before, positions_given(positions, batch, gradient.view.shape.back(1)),
            adjoint(*gradient.rotation));
}

// An array for what the forward pass gives and the caller did not keep.
TensorView made_again(std::vector<std::byte>& storage, DataType type, const Extents& shape) {
  storage.resize(static_cast<std::size_t>(count_of(shape) * size_of(type)));
  return {storage.data(), type, shape};
}

}  // namespace

void attention_backward(const AttentionGradients& gradients, ConstTensorView d_out, const AttentionInputs& inputs,
                        const AttentionOptions& options) {
  constexpr std::string_view verb = "attention_backward";
  Plan plan;
  BackwardJob job;
  plan_inputs(verb, inputs.q, inputs.k, inputs.v, options, plan);
  const HeadTensor<const void> q = plan.job.q, k = plan.job.k, v = plan.job.v;
  const DataType type = inputs.q.type;
  // d_out is only read; the checks of shape and type are those of an output
  const TensorView like_out(const_cast<void*>(d_out.data), d_out.type, d_out.shape, d_out.strides);
  result_of(verb, "d_out", like_out, type, q, v.features);
  job.d_out = kernels::heads_of(verb, "d_out", d_out);
  Gradient dq{"the gradient of q", gradients.q, {}, nullptr, {}}, dk{"the gradient of k", gradients.k, {}, nullptr, {}},
      dv{"the gradient of v", gradients.v, {}, nullptr, {}};
  plan_gradient(verb, dq, type, q);
  plan_gradient(verb, dk, type, k);
  plan_gradient(verb, dv, type, v);
  for (const Gradient* gradient : {&dq, &dk, &dv}) {
    for (const ConstTensorView& input : {inputs.q, inputs.k, inputs.v, inputs.out, inputs.logsumexp, d_out}) {
      check_apart(verb, gradient->what, gradient->view, "an input", input);
    }
  }
  check_apart(verb, dq.what, dq.view, dk.what, dk.view);
  check_apart(verb, dq.what, dq.view, dv.what, dv.view);
  check_apart(verb, dk.what, dk.view, dv.what, dv.view);
  const Parameters parameters = [&] {
    job.forward.q = q;
    return plan_parameters(verb, gradients, options.position, job);
  }();

  std::vector<std::byte> out_storage, sum_storage;
  const Extents rows = {q.batch, q.heads, q.sequence};
  const bool has_saved = inputs.out.data != nullptr && inputs.logsumexp.data != nullptr;
  TensorView out(const_cast<void*>(inputs.out.data), inputs.out.type, inputs.out.shape, inputs.out.strides);
  TensorView logsumexp(const_cast<void*>(inputs.logsumexp.data), inputs.logsumexp.type, inputs.logsumexp.shape,
                       inputs.logsumexp.strides);
  if (has_saved) {
    plan.job.out = result_of(verb, "out", out, type, q, v.features);
  } else {
    out = made_again(out_storage, sums_type(type), {q.batch, q.heads, q.sequence, v.features});
    logsumexp = made_again(sum_storage, sums_type(type), rows);
    plan.job.out = tensor_of(verb, "out", out);
  }
  if (has_work(plan.job)) {
    plan.job.logsumexp = side_output(verb, "logsumexp", logsumexp, sums_type(type), plan.job, false);
  }
  plan_position(verb, options, inputs.q, inputs.k, plan);
  if (!plan.turned_q.empty()) turn_before(dq, plan.for_queries);
  if (!plan.turned_k.empty()) turn_before(dk, plan.for_keys);
  job.dq = dq.result;
  job.dk = dk.result;
  job.dv = dv.result;
  if (!has_work(plan.job) && k.batch * k.heads * k.sequence == 0) return;
  job.forward = std::move(plan.job);
  const AttentionBackend& backend = selected_attention();
  if (!has_saved && has_work(job.forward)) backend.forward(job.forward);
  backend.backward(job);
  turn_back(dq, job.forward.places.queries, q.batch);
  turn_back(dk, job.forward.places.keys, q.batch);
  for (std::size_t h = 0; h < job.slopes.size(); ++h) gradients.slopes[h] += job.slopes[h];
  add_sums(parameters.table, job.table);
  add_sums(parameters.query_vectors, job.query_vectors);
  add_sums(parameters.key_vectors, job.key_vectors);
}

}  // namespace posenc
