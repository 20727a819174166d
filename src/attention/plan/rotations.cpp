#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "attention/plan/arguments.h"
#include "kernels/rotation_element.h"
#include "posenc/error.h"

namespace posenc::attend {
namespace {

// q or k after rotation, in the type of sums or, if rounded, in its own type.
HeadTensor<const void> rotated(std::string_view verb, const AttentionBackend& backend, const ConstTensorView& x,
                               const TokenPositions& positions, const Rotation& form, bool is_rounded,
                               AlignedVector<std::byte>& storage) {
  const DataType type = is_rounded ? x.type : sums_type(x.type);
  storage.resize(static_cast<std::size_t>(count_of(x.shape) * size_of(type)));
  const TensorView out(storage.data(), type, x.shape);
  kernels::rotate_for(verb, *backend.kernels, out, x, positions, form);
  return kernels::heads_of<const void>(verb, "x", out);
}

// k with zeros in place of the keys that no query attends to, which must not be read. If all are visible, k itself.
ConstTensorView only_seen(const ConstTensorView& k, const AttentionJob& job, AlignedVector<std::byte>& storage) {
  const auto is_whole = [&](std::int64_t b) {
    const KeyRange seen = job.visible_keys(b);
    return seen.begin == 0 && seen.end == job.k.sequence;
  };
  bool all_seen = job.k.pages == nullptr;
  for (std::int64_t b = 0; b < job.k.batch; ++b) all_seen = all_seen && is_whole(b);
  if (all_seen) return k;
  const Extents shape = {job.k.batch, job.k.heads, job.k.sequence, job.k.features};
  storage.assign(static_cast<std::size_t>(count_of(shape) * size_of(k.type)), std::byte{0});
  const TensorView copy(storage.data(), k.type, shape);
  const HeadTensor<void> to = kernels::heads_of<void>("attention", "k", copy);
  kernels::with_type(k.type, [&](auto kind) {
    using T = decltype(kind);
    for (std::int64_t b = 0; b < job.k.batch; ++b) {
      const KeyRange seen = job.visible_keys(b);
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

// The cosines and sines of the first `tokens` tokens: the pairs (1, 0), rotated.
RowRotation row_rotation_of(std::string_view verb, const AttentionBackend& backend, const HeadTensor<const void>& x,
                            std::int64_t tokens, const TokenPositions& positions, const Rotation& form,
                            const Rotation& pairs, AlignedVector<float>& cos_sin) {
  RowRotation rotation;
  rotation.form = &form;
  rotation.pairs = pairs_of(form);
  const std::int64_t width = 2 * rotation.pairs;
  rotation.first = form.first_dim < 0 ? x.features + form.first_dim : form.first_dim;
  if (rotation.first < 0 || width > x.features - rotation.first) {
    raise(fmt::format("{}: the form rotates {} features from feature {} on, but a head has {}", verb, width,
                      form.first_dim, x.features));
  }
  const std::int64_t batch = positions.has_ids() && positions.batch_stride != 0 ? x.batch : 1;
  cos_sin.assign(static_cast<std::size_t>(batch * tokens * width), 0.0f);
  for (std::int64_t row = 0; row < batch * tokens; ++row) {
    std::fill_n(cos_sin.begin() + row * width, rotation.pairs, 1.0f);
  }
  const TensorView all = view(cos_sin.data(), {batch, 1, tokens, width});
  kernels::rotate_for(verb, *backend.kernels, all, all, positions, pairs);
  rotation.token_stride = width;
  if (kernels::wants_doubled(placement_of(form.layout, rotation.pairs))) {
    AlignedVector<float> doubled(2 * cos_sin.size());
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

// Left to rotate itself: arithmetic narrower than f32, a table with rows per token, and rotations that differ from
// head to head. Also rows that are rounded anyway, if several heads with few queries would each rotate the same keys.
bool can_rotate_on_load(const AttentionBackend& backend, const Rotation& form, bool is_rounded,
                        const AttentionJob& job) {
  constexpr std::int64_t kSomeQueries = 64, kManyQueries = 256, kManyHeads = 3;
  const bool has_few_queries = job.q.sequence >= kSomeQueries && job.q.sequence < kManyQueries;
  if (is_rounded && size_of(job.k.type) == 2 && has_few_queries && job.group >= kManyHeads) return false;
  return backend.rotates_on_load && job.v.type != DataType::kF64 && job.weights.data == nullptr &&
         form.precision.arithmetic.value_or(DataType::kF32) == DataType::kF32 &&
         table_of(form).cosines.shape.rank != 3 && is_plain(form);
}

// Ids are compared by value: that is cheap compared to computing angles, and callers may pass two copies of a list.
bool is_same(const TokenPositions& a, const TokenPositions& b) {
  if (!a.has_ids() && !b.has_ids()) return a.first == b.first;
  if (a.axes != b.axes || a.count != b.count || a.batch_stride != b.batch_stride || a.axis_stride != b.axis_stride ||
      a.on_device || b.on_device) {
    return false;
  }
  if (a.ids != nullptr && b.ids != nullptr) return std::equal(a.ids, a.ids + a.count, b.ids);
  return a.narrow_ids != nullptr && b.narrow_ids != nullptr &&
         std::equal(a.narrow_ids, a.narrow_ids + a.count, b.narrow_ids);
}

}  // namespace

void plan_rotation(const AttentionCall& call, const ConstTensorView& q, Plan& plan) {
  AttentionJob& job = plan.job;
  const Rotation& rotation = *call.rotation;
  const bool with_keys = !call.keys_are_rotated, is_rounded = call.rounds_rotated;
  job.scale *= rotation.softmax_factor;
  if (count_of(q.shape) == 0 || count_of(call.inputs.k.shape) == 0) return;
  if (plan.forms == nullptr) plan.forms = &plan.own_forms.emplace(forms_of(rotation));
  const RotationForms& forms = *plan.forms;
  const AttentionBackend& backend = *plan.backend;
  if (!can_rotate_on_load(backend, rotation, is_rounded, job)) {
    job.q = rotated(call.verb, backend, q, job.places.queries, forms.for_queries, is_rounded, plan.rotated_q);
    if (!with_keys) return;
    AlignedVector<std::byte> seen;
    job.k = rotated(call.verb, backend, only_seen(call.inputs.k, job, seen), job.places.keys, forms.for_keys,
                    is_rounded, plan.rotated_k);
    return;
  }
  job.q_rotation = row_rotation_of(call.verb, backend, job.q, job.q.sequence, job.places.queries, forms.for_queries,
                                   forms.query_pairs, plan.q_cos_sin);
  job.q_rotation.is_rounded = is_rounded;
  if (!with_keys) return;
  if (is_same(job.places.queries, job.places.keys) && !has_growth(rotation) && job.q.sequence == job.k.sequence) {
    job.k_rotation = job.q_rotation;
  } else {
    std::int64_t tokens = job.k.sequence;
    if (!job.places.keys.has_ids()) {  // a cache may have room for far more than it holds
      tokens = 0;
      for (std::int64_t b = 0; b < job.k.batch; ++b) tokens = std::max(tokens, job.visible_keys(b).end);
    }
    if (tokens == 0) return;
    job.k_rotation = row_rotation_of(call.verb, backend, job.k, tokens, job.places.keys, forms.for_keys,
                                     forms.key_pairs, plan.k_cos_sin);
    job.k_rotation.is_rounded = is_rounded;
  }
}

}  // namespace posenc::attend
