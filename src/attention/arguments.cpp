#include "attention/arguments.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "attention/select.h"
#include "kernels/bias_checks.h"
#include "kernels/checks.h"
#include "kernels/rotation_element.h"
#include "posenc/apply.h"
#include "posenc/error.h"

namespace posenc::attend {
namespace {

void check_shapes(std::string_view verb, const AttentionJob& job) {
  const HeadTensor<const void>&q = job.q, &k = job.k, &v = job.v;
  const auto check_equal = [&](std::string_view what, const Named& one, std::int64_t a, const Named& other,
                               std::int64_t b) {
    if (a != b) raise(fmt::format("{}: {} has {} {} but {} {}", verb, one.what, a, what, other.what, b));
  };
  const Named named_q{"q", {}}, named_k{"k", {}}, named_v{"v", {}};
  check_equal("sequences", named_k, k.batch, named_q, q.batch);
  check_equal("features", named_k, k.features, named_q, q.features);
  check_equal("sequences", named_v, v.batch, named_k, k.batch);
  check_equal("heads", named_v, v.heads, named_k, k.heads);
  check_equal("tokens", named_v, v.sequence, named_k, k.sequence);
  if (k.heads < 1 || q.heads % k.heads != 0) {
    raise(fmt::format("{}: k has {} heads but q {}: q's must be a multiple of k's", verb, k.heads, q.heads));
  }
}

void check_type(std::string_view verb, std::string_view what, DataType type, DataType wanted) {
  if (type != wanted) raise(fmt::format("{}: {} is {} but must be {}", verb, what, name_of(type), name_of(wanted)));
}

// q or k after rotation, in the type of sums.
HeadTensor<const void> rotated(const ConstTensorView& x, const TokenPositions& positions, const Rotation& form,
                               std::vector<std::byte>& storage) {
  const DataType type = sums_type(x.type);
  storage.resize(static_cast<std::size_t>(count_of(x.shape) * size_of(type)));
  const TensorView out(storage.data(), type, x.shape);
  rotate_checked(out, x, positions, form);
  return kernels::heads_of<const void>("attention", "x", out);
}

// k with zeros in place of the keys that no query looks at, which may not be read. Where all are seen, k itself.
ConstTensorView only_seen(const ConstTensorView& k, const AttentionJob& job, std::vector<std::byte>& storage) {
  const auto is_whole = [&](std::int64_t b) {
    const Sight seen = job.seen_keys(b);
    return seen.begin == 0 && seen.end == job.k.sequence;
  };
  bool all_seen = true;
  for (std::int64_t b = 0; b < job.k.batch; ++b) all_seen = all_seen && is_whole(b);
  if (all_seen) return k;
  storage.assign(static_cast<std::size_t>(count_of(k.shape) * size_of(k.type)), std::byte{0});
  const TensorView copy(storage.data(), k.type, k.shape);
  const HeadTensor<void> to = kernels::heads_of<void>("attention", "k", copy);
  kernels::with_type(k.type, [&](auto kind) {
    using T = decltype(kind);
    for (std::int64_t b = 0; b < job.k.batch; ++b) {
      const Sight seen = job.seen_keys(b);
      for (std::int64_t h = 0; h < job.k.heads; ++h) {
        for (std::int64_t j = seen.begin; j < seen.end; ++j) {
          const T* const row = job.k.row<T>(b, h, j);
          T* const copied = to.row<T>(b, h, j);
          for (std::int64_t f = 0; f < job.k.features; ++f) copied[f] = row[f * job.k.feature_stride];
        }
      }
    }
  });
  return copy;
}

// The cosines and sines of every token: what becomes of pairs (1, 0).
RowRotation row_rotation_of(const ConstTensorView& x, const TokenPositions& positions, const Rotation& form,
                            std::vector<float>& cos_sin) {
  RowRotation rotation;
  rotation.form = &form;
  rotation.pairs = pairs_of(form);
  const std::int64_t features = x.shape.back(0), tokens = x.shape.back(1), width = 2 * rotation.pairs;
  rotation.first = form.first_dim < 0 ? features + form.first_dim : form.first_dim;
  if (rotation.first < 0 || width > features - rotation.first) {
    raise(fmt::format("attention: the form rotates {} features from {} but there are {}", width, form.first_dim,
                      features));
  }
  const std::int64_t batch =
      positions.ids != nullptr && positions.batch_stride != 0 && x.shape.rank > 3 ? x.shape[0] : 1;
  cos_sin.assign(static_cast<std::size_t>(batch * tokens * width), 0.0f);
  for (std::int64_t row = 0; row < batch * tokens; ++row) {
    std::fill_n(cos_sin.begin() + row * width, rotation.pairs, 1.0f);
  }
  Rotation plain = form;
  plain.layout = PairLayout::kHalves;
  plain.blocks = 1;
  plain.first_dim = 0;
  const TensorView all = view(cos_sin.data(), {batch, 1, tokens, width});
  rotate_checked(all, all, positions, plain);
  rotation.token_stride = width;
  if (kernels::wants_doubled(placement_of(form.layout, rotation.pairs))) {
    std::vector<float> doubled(2 * cos_sin.size());
    for (std::int64_t row = 0; row < batch * tokens; ++row) {
      const float* const cosines = cos_sin.data() + row * width;
      kernels::double_cos_sin(cosines, cosines + rotation.pairs, rotation.pairs, doubled.data() + row * 2 * width);
    }
    cos_sin = std::move(doubled);
    rotation.token_stride = 2 * width;
  }
  rotation.batch_stride = batch > 1 ? tokens * rotation.token_stride : 0;
  rotation.cos_sin = cos_sin.data();
  return rotation;
}

// Arithmetic narrower than f32, and a table that has rows for tokens, are left to rotate itself.
bool can_rotate_on_load(const Rotation& form, const AttentionJob& job) {
  return selected_attention().rotates_on_load && job.v.type != DataType::kF64 && job.weights.data == nullptr &&
         form.precision.arithmetic.value_or(DataType::kF32) == DataType::kF32 && form.table.cosines.shape.rank != 3;
}

bool are_same(const TokenPositions& a, const TokenPositions& b) {
  return a.ids == nullptr && b.ids == nullptr && a.first == b.first;
}

void plan_rotation(const AttentionInputs& inputs, const Rotation& rotation, bool with_keys, Plan& plan) {
  AttentionJob& job = plan.job;
  job.scale *= rotation.softmax_factor;
  if (count_of(inputs.q.shape) == 0 || count_of(inputs.k.shape) == 0) return;
  plan.for_queries = rotation;
  plan.for_keys = for_keys(rotation);
  if (!can_rotate_on_load(rotation, job)) {
    job.q = rotated(inputs.q, job.places.queries, plan.for_queries, plan.rotated_q);
    if (!with_keys) return;
    std::vector<std::byte> seen;
    job.k = rotated(only_seen(inputs.k, job, seen), job.places.keys, plan.for_keys, plan.rotated_k);
    return;
  }
  job.q_rotation = row_rotation_of(inputs.q, job.places.queries, plan.for_queries, plan.q_cos_sin);
  if (!with_keys) return;
  if (are_same(job.places.queries, job.places.keys) && rotation.growth.rates.empty() &&
      job.q.sequence == job.k.sequence) {
    job.k_rotation = job.q_rotation;
  } else {
    job.k_rotation = row_rotation_of(inputs.k, job.places.keys, plan.for_keys, plan.k_cos_sin);
  }
}

void plan_bias(std::string_view verb, const Bias& bias, AttentionJob& job) {
  kernels::check_bias(verb, bias, job.q.heads);
  kernels::check_distances(verb, bias, {job.places.queries, job.places.keys},
                           {job.q.batch, job.q.sequence, job.k.sequence});
  job.bias = &bias;
  const auto* const vectors = std::get_if<DistanceVectors>(&bias.source);
  if (vectors == nullptr) return;
  job.scale *= vectors->softmax_factor;
  for (const VectorsByDistance* picked : {&vectors->for_queries, &vectors->for_keys}) {
    if (picked->table.data == nullptr || picked->table.shape.back(0) == job.q.features) continue;
    raise(fmt::format("{}: the form's vectors have {} features but q {}", verb, picked->table.shape.back(0),
                      job.q.features));
  }
}

}  // namespace

DataType sums_type(DataType type) { return type == DataType::kF64 ? DataType::kF64 : DataType::kF32; }

bool has_work(const AttentionJob& job) { return job.q.batch * job.q.heads * job.q.sequence > 0; }

void rotate_checked(const TensorView& out, const ConstTensorView& x, const TokenPositions& positions,
                    const Rotation& form) {
  Positions given{.first = positions.first, .axes = positions.axes};
  if (positions.ids != nullptr) {
    const std::int64_t batch = x.shape.rank > 3 && positions.batch_stride != 0 ? x.shape[0] : 1;
    given.ids = {positions.ids, static_cast<std::size_t>(positions.axes * batch * x.shape.back(1))};
  }
  rotate(out, x, given, form);
}

void plan_inputs(std::string_view verb, const AttentionInputs& inputs, const AttentionOptions& options, Plan& plan) {
  AttentionJob& job = plan.job;
  job.q = tensor_of(verb, "q", inputs.q);
  job.k = tensor_of(verb, "k", inputs.k);
  job.v = tensor_of(verb, "v", inputs.v);
  check_type(verb, "k", inputs.k.type, inputs.q.type);
  check_type(verb, "v", inputs.v.type, inputs.q.type);
  check_shapes(verb, job);
  job.group = job.q.heads / job.k.heads;
  if (job.q.features < 1) raise(fmt::format("{}: q has no features", verb));
  job.scale = options.scale.value_or(1 / std::sqrt(static_cast<double>(job.q.features)));
  if (!std::isfinite(job.scale)) raise(fmt::format("{}: scale must be finite but is {}", verb, job.scale));
  plan_sights(verb, options, job);
}

void plan_position(std::string_view verb, const AttentionInputs& inputs, const AttentionOptions& options,
                   Plan& plan) {
  AttentionJob& job = plan.job;
  if (std::holds_alternative<Addition>(options.position)) {
    raise(fmt::format("{}: an addition belongs to the embeddings, before q and k are made: add it to them instead",
                      verb));
  }
  if (const auto* bias = std::get_if<Bias>(&options.position)) {
    plan_places(verb, options, position_axes_of(*bias), plan);
    plan_bias(verb, *bias, job);
  } else if (const auto* rotation = std::get_if<Rotation>(&options.position)) {
    plan_places(verb, options, position_axes_of(*rotation), plan);
    plan_rotation(inputs, *rotation, !options.keys_are_rotated, plan);
  } else {
    plan_places(verb, options, 1, plan);
  }
}

void plan_device_position(std::string_view verb, const AttentionInputs& inputs, const AttentionOptions& options,
                          Plan& plan) {
  if (const auto* rotation = std::get_if<Rotation>(&options.position)) {
    plan_places(verb, options, position_axes_of(*rotation), plan);
    return;
  }
  if (std::holds_alternative<Bias>(options.position)) {
    for (const auto* given : {&options.query_positions, &options.key_positions}) {
      if (!given->has_value() || (*given)->device == Device::kHost) continue;
      raise(fmt::format("{}: with a bias, position ids must be on the host", verb));  // distances are checked there
    }
  }
  plan_position(verb, inputs, options, plan);
}

void check_result(std::string_view verb, std::string_view what, const ConstTensorView& view, const Wanted& wanted) {
  const HeadTensor<const void> found = tensor_of(verb, what, view);
  const HeadTensor<const void>& like = wanted.like;
  check_type(verb, what, view.type, wanted.type);
  if (found.batch == like.batch && found.heads == like.heads && found.sequence == like.sequence &&
      found.features == wanted.features) {
    return;
  }
  raise(fmt::format("{}: {} has shape {} but must have {}", verb, what, to_string(view.shape),
                    to_string(Extents{like.batch, like.heads, like.sequence, wanted.features})));
}

HeadTensor<void> result_of(std::string_view verb, std::string_view what, const TensorView& view,
                           const Wanted& wanted) {
  check_result(verb, what, view, wanted);
  kernels::check_writable(verb, what, view);
  return tensor_of(verb, what, view);
}

HeadTensor<void> logsumexp_of(std::string_view verb, const TensorView& view, const AttentionJob& job) {
  if (view.shape.rank < 1 || view.shape.rank > 3 || view.strides.rank != view.shape.rank) {
    raise(
        fmt::format("{}: logsumexp must have 1 to 3 axes, batch, heads, queries, but has {}", verb, view.shape.rank));
  }
  TensorView with_feature = view;
  with_feature.shape.push_back(1);
  with_feature.strides.push_back(1);
  return result_of(verb, "logsumexp", with_feature, {sums_type(job.v.type), job.q, 1});
}

void check_apart(std::string_view verb, const Named& one, const Named& other) {
  if (one.view.data == nullptr || other.view.data == nullptr) return;
  if (count_of(one.view.shape) == 0 || count_of(other.view.shape) == 0) return;
  if (kernels::may_overlap(one.view, other.view)) {
    raise(fmt::format("{}: {} overlaps {}", verb, one.what, other.what));
  }
}

}  // namespace posenc::attend
