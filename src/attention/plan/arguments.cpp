#include "attention/plan/arguments.h"

#include <fmt/format.h>

#include <cmath>

#include "kernels/checks.h"
#include "posenc/error.h"
#include "terms/terms.h"

namespace posenc::attend {
namespace {

void check_shapes(std::string_view verb, const AttentionJob& job) {
  const HeadTensor<const void>&q = job.q, &k = job.k, &v = job.v;
  const auto check_equal = [&](std::string_view what, char one, std::int64_t a, char other, std::int64_t b) {
    if (a != b) raise(fmt::format("{}: {} has {} {} but {} has {}", verb, one, a, what, other, b));
  };
  check_equal("sequences", 'k', k.batch, 'q', q.batch);
  check_equal("features", 'k', k.features, 'q', q.features);
  check_equal("sequences", 'v', v.batch, 'k', k.batch);
  check_equal("heads", 'v', v.heads, 'k', k.heads);
  check_equal("tokens", 'v', v.sequence, 'k', k.sequence);
  if (k.heads < 1 || q.heads % k.heads != 0) {
    raise(fmt::format("{0}: q has {2} heads, which must be a multiple of the {1} of k", verb, k.heads, q.heads));
  }
}

void check_type(std::string_view verb, std::string_view what, DataType type, DataType wanted) {
  if (type != wanted) raise(fmt::format("{}: {} is {} but must be {}", verb, what, name_of(type), name_of(wanted)));
}

bool is_narrow(DataType type) { return type == DataType::kF16 || type == DataType::kBF16; }

// k and v have the same type; q has it too, or is wider than the cache but not f64.
void check_types(const AttentionCall& call) {
  const AttentionInputs& inputs = call.inputs;
  const bool is_f32 = inputs.q.type == DataType::kF32, has_8_bits = is_of_8_bits(inputs.k.type);
  if (!(is_f32 && is_narrow(inputs.k.type)) && !(has_8_bits && (is_f32 || is_narrow(inputs.q.type)))) {
    check_type(call.verb, "k", inputs.k.type, inputs.q.type);
  }
  check_type(call.verb, "v", inputs.v.type, inputs.k.type);
  if (!has_8_bits) return;
  if (call.rotation != nullptr && !call.keys_are_rotated) {
    raise(fmt::format("{}: keys of {} are rotated before they are written (rotate_into): set keys_are_rotated",
                      call.verb, name_of(inputs.k.type)));
  }
  if (call.bias != nullptr && terms::is_one_of<DistanceVectors, CountedGates>(*call.bias)) {
    raise(fmt::format("{}: the term {} reads queries and keys, which {} does not support", call.verb,
                      terms::name_of(*call.bias), name_of(inputs.k.type)));
  }
}

// The scales of a cache of e4m3. Those of keys that differ from head to head multiply the queries instead (query_factors).
void plan_scales(const AttentionCall& call, Plan& plan) {
  AttentionJob& job = plan.job;
  job.value_scales = kernels::scales_of(call.verb, "v_scale", call.v_scale, job.v.type, job.v.heads);
  plan.key_scales = kernels::scales_of(call.verb, "k_scale", call.k_scale, job.k.type, job.k.heads);
  if (plan.key_scales.stride != 0) return;
  job.scale *= static_cast<double>(plan.key_scales.of(0));
  plan.key_scales = {};
}

// k or v as sequences of tokens if it is a pool of pages.
void take_pages(const AttentionCall& call, std::int64_t batch, HeadTensor<const void>& x) {
  const bool on_device = !call.device_block_table.empty();
  const auto table = on_device ? call.device_block_table : call.block_table;
  const std::int64_t pages = pages_of_sequence(call.verb, std::ssize(table), batch);
  if (on_device ? call.device_key_lengths.empty() : call.key_lengths.empty()) {
    raise(fmt::format("{}: block_table needs key_lengths", call.verb));
  }
  const std::int64_t pool = x.batch, size = x.sequence;
  if (size < 1) raise(fmt::format("{}: a page of the cache has no tokens", call.verb));
  x.pages = table.data();
  x.page_count = pool;
  x.page_row = pages;
  x.page_tokens = size;
  x.batch = batch;
  x.sequence = x.page_row * size;
}

// The host cannot plan with lengths and tables that it does not know.
void check_device_spans(const AttentionCall& call, std::int64_t batch) {
  const auto lengths = call.device_key_lengths;
  if (lengths.empty() && call.device_block_table.empty()) return;
  if (call.inputs.q.device == Device::kHost) {
    raise(fmt::format("{}: device_key_lengths and device_block_table are for tensors on a GPU", call.verb));
  }
  if (static_cast<std::int64_t>(lengths.size()) != batch) {
    raise(fmt::format("{}: device_key_lengths has {} numbers but must have {}", call.verb, lengths.size(), batch));
  }
  if (!call.key_lengths.empty() || !call.query_lengths.empty() || !call.packed.empty() || !call.block_table.empty() ||
      call.chunk != 0) {
    raise(fmt::format(
        "{}: device_key_lengths cannot be combined with key_lengths, query_lengths, packed sequences, block_table or chunk",
        call.verb));
  }
  if (call.rotation != nullptr && (!call.query_positions || !call.keys_are_rotated)) {
    raise(
        fmt::format("{}: a rotation with device_key_lengths needs query_positions, and keys that are rotated already",
                    call.verb));
  }
}

void plan_mask(std::string_view verb, const ConstTensorView& mask, AttentionJob& job) {
  if (mask.data == nullptr) return;
  check_mask(verb, mask, {job.q.batch, job.q.heads, job.q.sequence, job.k.sequence});
  job.mask.data = mask.data;
  job.mask.type = mask.type;
  std::int64_t* const strides[] = {&job.mask.key_stride, &job.mask.query_stride, &job.mask.head_stride,
                                   &job.mask.batch_stride};
  for (int axis = 0; axis < mask.shape.rank; ++axis) {
    *strides[axis] = mask.shape.back(axis) == 1 ? 0 : mask.strides.back(axis);
  }
}

void check_factors(const AttentionCall& call, const AttentionJob& job) {
  if (!std::isfinite(job.scale)) raise(fmt::format("{}: scale must be finite but is {}", call.verb, job.scale));
  if (!(call.softcap >= 0) || !std::isfinite(call.softcap)) {
    raise(fmt::format("{}: softcap must be 0 or more and finite but is {}", call.verb, call.softcap));
  }
  const ConstTensorView& sinks = call.sinks;
  if (sinks.data != nullptr) {
    check_tensor(call.verb, "sinks", sinks, 1, 1, "1 axis, heads");
    if (sinks.shape[0] != job.q.heads) {
      raise(fmt::format("{}: there are {} sinks but q has {} heads", call.verb, sinks.shape[0], job.q.heads));
    }
  }
  const Temperature* const temperature = call.temperature;
  if (temperature == nullptr) return;
  check_temperature(call.verb, *temperature);
  const auto scales = static_cast<std::int64_t>(temperature->head_scales.size());
  if (scales != 0 && scales != job.q.heads) {
    raise(fmt::format("{}: the temperature has {} scales but q has {} heads", call.verb, scales, job.q.heads));
  }
}

// q times its temperature and the scales of its keys, in the type of sums. Everything else that position does to q and k is
// linear in q.
ConstTensorView plan_factors(const Temperature* temperature, const ConstTensorView& given, Plan& plan) {
  AttentionJob& job = plan.job;
  const HeadTensor<const void> q = job.q;
  const bool is_shared =
      plan.key_scales.first == nullptr && (temperature == nullptr || temperature->head_scales.empty());
  const std::int64_t heads = is_shared ? 1 : q.heads;
  plan.query_factors.reserve(q.batch * heads * q.sequence);
  for (std::int64_t row = 0; row < q.batch * heads * q.sequence; ++row) {
    const std::int64_t b = row / q.sequence / heads, h = row / q.sequence % heads, i = row % q.sequence;
    const double factor = temperature == nullptr ? 1.0 : factor_at(*temperature, job.places.queries.at(b, i), h);
    plan.query_factors.push_back(factor * static_cast<double>(plan.key_scales.of(h / job.group)));
  }
  const DataType type = sums_type(given.type);
  plan.scaled_q.resize(count_of(given.shape) * size_of(type));
  const TensorView scaled(plan.scaled_q.data(), type, given.shape);
  const HeadTensor<void> to = tensor_of("attention", "q", scaled);
  kernels::with_type(q.type, [&](auto from_kind) {
    using From = decltype(from_kind);
    using To = kernels::Working<From>;
    for (std::int64_t row = 0; row < q.batch * q.heads * q.sequence; ++row) {
      const std::int64_t b = row / q.sequence / q.heads, h = row / q.sequence % q.heads, i = row % q.sequence;
      const double factor = plan.query_factors[(b * heads + h % heads) * q.sequence + i];
      const From* const x = q.row<From>(b, h, i);
      To* const out = to.row<To>(b, h, i);
      for (std::int64_t f = 0; f < q.features; ++f) {
        out[f] = static_cast<To>(factor * numerics::widen(x[f * q.feature_stride]));
      }
    }
  });
  job.q = tensor_of<const void>("attention", "q", scaled);
  return scaled;
}

}  // namespace

DataType sums_type(DataType type) { return type == DataType::kF64 ? DataType::kF64 : DataType::kF32; }

bool has_work(const AttentionJob& job) { return job.q.batch * job.q.heads * job.q.sequence > 0; }

void plan_inputs(const AttentionCall& call, Plan& plan) {
  AttentionJob& job = plan.job;
  job.q = tensor_of(call.verb, "q", call.inputs.q);
  job.k = tensor_of(call.verb, "k", call.inputs.k, Types::kOfCache);
  job.v = tensor_of(call.verb, "v", call.inputs.v, Types::kOfCache);
  check_types(call);
  check_device_spans(call, job.q.batch);
  if (!call.block_table.empty() || !call.device_block_table.empty()) {
    take_pages(call, job.q.batch, job.k);
    take_pages(call, job.q.batch, job.v);
  }
  check_shapes(call.verb, job);
  job.group = job.q.heads / job.k.heads;
  if (job.q.features < 1) raise(fmt::format("{}: q has no features", call.verb));
  job.scale = call.scale;
  check_factors(call, job);
  plan_scales(call, plan);
  job.softcap = call.softcap;
  plan_sights(call, call.inputs.q.device != Device::kHost, plan);
  plan_pages(call, plan);
  plan_mask(call.verb, call.mask, job);
}

void plan_position(const AttentionCall& call, Plan& plan) {
  AttentionJob& job = plan.job;
  refuse_position_queries(call);
  refuse_log_gates(call);
  if (std::holds_alternative<Addition>(*call.position)) {
    raise(fmt::format("{}: an addition belongs to the embeddings that q and k are computed from: use add() there",
                      call.verb));
  }
  if (call.bias != nullptr) {
    // a cache may have room for more tokens than it holds, and for more than the bias was prepared for
    plan_places(call, position_axes_of(*call.bias), terms::reach(*call.bias) < kPositionLimit, plan);
    terms::check(call.verb, *call.bias, job.q.heads);
    terms::check_positions(call.verb, *call.bias, job.places.queries, job.places.keys,
                           {job.q.batch, job.q.sequence, job.k.sequence});
    job.bias = call.bias;
  } else if (call.rotation != nullptr) {
    plan_places(call, position_axes_of(*call.rotation), has_table(*call.rotation), plan);
  } else {
    plan_places(call, 1, false, plan);
  }
  const ConstTensorView& q = call.inputs.q;
  const bool has_factors = call.temperature != nullptr || plan.key_scales.first != nullptr;
  const ConstTensorView warm_q = has_factors ? plan_factors(call.temperature, q, plan) : q;
  if (call.bias != nullptr) {
    plan_vectors(call, plan);
    plan_gates(call, plan);
  }
  if (call.rotation != nullptr) plan_rotation(call, warm_q, plan);
  if (call.sinks.data == nullptr) return;
  plan.sinks.reserve(job.q.heads);
  for (std::int64_t h = 0; h < job.q.heads; ++h) {
    plan.sinks.push_back(kernels::with_type(call.sinks.type, [&](auto kind) {
      return numerics::widen(static_cast<const decltype(kind)*>(call.sinks.data)[h * call.sinks.strides[0]]);
    }));
  }
  job.sinks = plan.sinks.data();
}

void refuse_on_device(const AttentionCall& call) {
  for (const auto* given : {&call.query_positions, &call.key_positions}) {
    if (!given->has_value() || (*given)->ids_i32.empty()) continue;
    raise(fmt::format("{}: position ids on a GPU must be i64, not i32", call.verb));
  }
  if (call.bias != nullptr && !terms::is_one_of<Slopes, DistanceTable>(*call.bias)) {
    raise(fmt::format("{}: on cuda there is no kernel for the term {}", call.verb, terms::name_of(*call.bias)));
  }
  if (call.temperature == nullptr && call.inputs.k.type == call.inputs.q.type) return;
  raise(fmt::format("{}: on cuda there is no kernel for a temperature or a cache of another type than q", call.verb));
}

void plan_device_position(const AttentionCall& call, Plan& plan) {
  if (call.rotation != nullptr) {
    if (!is_plain(*call.rotation)) {
      raise(
          fmt::format("{}: on cuda there is no kernel for rotations that differ from head to head, summed axes or "
                      "mixtures",
                      call.verb));
    }
    plan_places(call, position_axes_of(*call.rotation), has_table(*call.rotation), plan);
    return;
  }
  if (call.bias != nullptr) {
    for (const auto* given : {&call.query_positions, &call.key_positions}) {
      if (!given->has_value() || (*given)->device == Device::kHost) continue;
      raise(
          fmt::format("{}: with a bias, position ids must be on the host", call.verb));  // the host checks distances
    }
  }
  plan_position(call, plan);
}

void check_mask(std::string_view verb, const ConstTensorView& mask, const Extents& wanted) {
  const int rank = mask.shape.rank;
  if (rank < 1 || rank > 4 || mask.strides.rank != rank) {
    raise(fmt::format("{}: mask must have 1 to 4 axes, batch, heads, queries, keys, but has {}", verb, rank));
  }
  if (mask.type > DataType::kBF16 && mask.type != DataType::kBool) {
    raise(fmt::format("{}: mask must be bool or floating-point but is {}", verb, name_of(mask.type)));
  }
  for (int axis = 0; axis < rank; ++axis) {
    if (mask.shape.back(axis) == 1 || mask.shape.back(axis) == wanted.back(axis)) continue;
    raise(fmt::format("{}: mask has shape {} but must broadcast to {}", verb, to_string(mask.shape),
                      to_string(wanted)));
  }
  check_reach(verb, "mask", mask);
}

std::int64_t pages_of_sequence(std::string_view verb, std::int64_t entries, std::int64_t sequences) {
  if (sequences < 1 || entries % sequences != 0) {
    raise(
        fmt::format("{}: block_table has {} entries, not a multiple of the {} sequences", verb, entries, sequences));
  }
  return entries / sequences;
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
  if (kernels::do_overlap(one.view, other.view)) {
    raise(fmt::format("{}: {} overlaps {}", verb, one.what, other.what));
  }
}

}  // namespace posenc::attend
