// append: a step of a decoder, with all its checks. On the host it is a norm, then rotate, rotate_into and copy_into.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "kernels/each_row.h"
#include "kernels/slots.h"
#include "posenc/error.h"

namespace posenc {
namespace {

using namespace kernels;

constexpr std::string_view kAppend = "append";

// What was given, checked.
struct Step {
  HeadTensor<void> k_cache, v_cache, q_out;
  Scales k_scales, v_scales;
  HeadTensor<const void> q, k, v;
  bool has_q = false;
  Norm q_norm, k_norm;
  TokenPositions positions;
};

Norm norm_of(std::string_view what, const ConstTensorView& weight, const NewTokens& tokens,
             const HeadTensor<const void>& x) {
  if (weight.data == nullptr) return {};
  check_tensor(kAppend, what, weight, 1, 2, "1 axis, features, or 2, heads and features");
  const Extents of_head = {x.features}, of_all = {x.heads, x.features};
  if (weight.shape != of_head && weight.shape != of_all) {
    raise(fmt::format("append: {} has shape {} but must be {} for each head, or {} for all", what,
                      to_string(weight.shape), to_string(of_head), to_string(of_all)));
  }
  if (!(tokens.norm_epsilon >= 0) || !std::isfinite(tokens.norm_epsilon) || !std::isfinite(tokens.norm_offset)) {
    raise(fmt::format("append: norm_epsilon must be 0 or more, and norm_offset finite, but they are {} and {}",
                      tokens.norm_epsilon, tokens.norm_offset));
  }
  return {weight, tokens.norm_epsilon, tokens.norm_offset};
}

void check_same_tokens(std::string_view what, const HeadTensor<const void>& x, const HeadTensor<const void>& k) {
  if (x.batch == k.batch && x.sequence == k.sequence) return;
  raise(fmt::format("append: {} has {} sequences of {} tokens but k has {} of {}", what, x.batch, x.sequence, k.batch,
                    k.sequence));
}

// What is written shares no byte with anything else, but that q_out may be q.
void check_overlaps(const KeyValueCache& cache, const NewTokens& tokens) {
  struct Named {
    std::string_view name;
    ConstTensorView view;
  };
  const Named all[] = {{"the cache of keys", cache.k.tensor},
                       {"the cache of values", cache.v.tensor},
                       {"q_out", tokens.q_out},
                       {"k", tokens.k},
                       {"v", tokens.v},
                       {"q", tokens.q}};
  for (std::size_t one = 0; one < 3; ++one) {  // those that are written
    for (std::size_t other = one + 1; other < std::size(all); ++other) {
      const bool is_queries = one == 2 && other == 5;  // checked by check_same_or_apart
      if (is_queries || all[one].view.data == nullptr || all[other].view.data == nullptr) continue;
      if (do_overlap(all[one].view, all[other].view)) {
        raise(fmt::format("append: {} overlaps {}", all[one].name, all[other].name));
      }
    }
  }
}

// False if there are no tokens.
bool check_step(Step& step, const KeyValueCache& cache, const NewTokens& tokens, std::int64_t slots) {
  const TensorView &k_cache = cache.k.tensor, &v_cache = cache.v.tensor;
  step.k_cache = cache_of(kAppend, "the cache of keys", k_cache);
  step.v_cache = cache_of(kAppend, "the cache of values", v_cache);
  step.k_scales = scales_of(kAppend, "the scale of keys", cache.k.scale, k_cache.type, k_cache.shape[1]);
  step.v_scales = scales_of(kAppend, "the scale of values", cache.v.scale, v_cache.type, v_cache.shape[1]);
  step.k = heads_of(kAppend, "k", tokens.k);
  step.v = heads_of(kAppend, "v", tokens.v);
  step.has_q = tokens.q.data != nullptr || tokens.q_out.data != nullptr;
  check_same_tokens("v", step.v, step.k);
  if (step.has_q) {
    step.q = heads_of(kAppend, "q", tokens.q);
    step.q_out = heads_of(kAppend, "q_out", tokens.q_out);
    check_writable(kAppend, "q_out", tokens.q_out);
    check_same_shape(kAppend, tokens.q_out, tokens.q);
    check_same_tokens("q", step.q, step.k);
  }
  if (step.k.batch * step.k.sequence == 0) return false;
  check_fits(kAppend, step.k_cache, step.k, slots);
  check_fits(kAppend, step.v_cache, step.v, slots);
  if (step.has_q) check_same_or_apart(kAppend, tokens.q_out, tokens.q);
  check_overlaps(cache, tokens);
  step.q_norm = norm_of("q_norm", tokens.q_norm, tokens, step.q);
  step.k_norm = norm_of("k_norm", tokens.k_norm, tokens, step.k);
  return true;
}

// --- on the host -----------------------------------------------------------------------------------------------

// [batch, heads, sequence, features] in f32, or f64 for f64.
template <class W, class T> void normalise(const HeadTensor<const void>& x, const Norm& norm, W* to) {
  const bool over_heads = norm.weight.shape.rank == 2;
  const std::int64_t weight_stride = norm.weight.strides.back(0),
                     weight_row = over_heads ? norm.weight.strides[0] : 0;
  const std::int64_t bytes = x.heads * x.features * static_cast<std::int64_t>(sizeof(T));
  with_type(norm.weight.type, [&](auto kind) {
    const auto* const weights = static_cast<const decltype(kind)*>(norm.weight.data);
    each_row(x.batch * x.sequence, bytes, [&](std::int64_t i) {
      const std::int64_t b = i / x.sequence, t = i % x.sequence;
      const auto squares = [&](std::int64_t h) {
        const T* const row = x.row<T>(b, h, t);
        double sum = 0;
        for (std::int64_t f = 0; f < x.features; ++f) {
          const double value = numerics::widen(row[f * x.feature_stride]);
          sum += value * value;
        }
        return sum;
      };
      double all = 0;
      for (std::int64_t h = 0; over_heads && h < x.heads; ++h) all += squares(h);
      for (std::int64_t h = 0; h < x.heads; ++h) {
        const double mean = over_heads ? all / static_cast<double>(x.heads * x.features)
                                       : squares(h) / static_cast<double>(x.features);
        const double factor = 1 / std::sqrt(mean + norm.epsilon);
        const T* const row = x.row<T>(b, h, t);
        W* const out = to + ((b * x.heads + h) * x.sequence + t) * x.features;
        for (std::int64_t f = 0; f < x.features; ++f) {
          const double weight = numerics::widen(weights[h * weight_row + f * weight_stride]) + norm.offset;
          out[f] = static_cast<W>(numerics::widen(row[f * x.feature_stride]) * factor * weight);
        }
      }
    });
  });
}

// A tensor after its norm, and the memory for it.
struct Normalised {
  AlignedVector<std::byte> memory;
  ConstTensorView view;
};
void set_normalised(Normalised& made, const HeadTensor<const void>& x, const ConstTensorView& given,
                    const Norm& norm) {
  made.view = given;
  if (norm.weight.data == nullptr) return;
  const Extents shape = {x.batch, x.heads, x.sequence, x.features};
  with_type(x.type, [&](auto kind) {
    using T = decltype(kind);
    using W = Working<T>;
    made.memory.resize(count_of(shape) * sizeof(W));
    auto* const to = reinterpret_cast<W*>(made.memory.data());
    normalise<W, T>(x, norm, to);
    made.view = view(static_cast<const W*>(to), shape);
  });
}

// The same tensor as [batch, heads, sequence, features].
template <class Void> BasicTensorView<Void> with_four_axes(const HeadTensor<Void>& x) {
  return {x.data,
          x.type,
          {x.batch, x.heads, x.sequence, x.features},
          {x.batch_stride, x.head_stride, x.token_stride, x.feature_stride}};
}

void append_on_host(const Step& step, const NewTokens& tokens, std::span<const std::int64_t> slots,
                    const Rotation* form) {
  Normalised q, k;
  if (step.has_q) set_normalised(q, step.q, with_four_axes(step.q), step.q_norm);
  set_normalised(k, step.k, tokens.k, step.k_norm);
  const HeadTensor<const void> keys = heads_of(kAppend, "k", k.view);
  if (form != nullptr) {
    const Rotation of_keys = has_growth(*form) ? for_keys(*form) : Rotation{};
    if (step.has_q) {
      rotate_for(kAppend, backend_for(kAppend, Device::kHost), with_four_axes(step.q_out), q.view, step.positions,
                 *form);
    }
    rotate_to_slots(kAppend, step.k_cache, step.k_scales, slots, keys, step.positions,
                    has_growth(*form) ? of_keys : *form);
  } else {
    if (step.has_q && q.view.data != step.q_out.data) {  // every token has its own place
      std::vector<std::int64_t> places(step.q.batch * step.q.sequence);
      std::iota(places.begin(), places.end(), 0);
      copy_to_slots(step.q_out, {}, places, heads_of(kAppend, "q", q.view));
    }
    copy_to_slots(step.k_cache, step.k_scales, slots, keys);
  }
  copy_to_slots(step.v_cache, step.v_scales, slots, step.v);
}

// --- on a GPU --------------------------------------------------------------------------------------------------

SlotJob job_of_step(const Step& step, const SlotList& slots, const Rotation* form, const Site& site) {
  SlotJob job;
  job.count = 0;
  const bool stays = form == nullptr && step.q_norm.weight.data == nullptr && step.q.data == step.q_out.data;
  if (step.has_q && !stays) {
    SlotJob::Part& q = job.parts[job.count++];
    q.out = step.q_out, q.x = step.q;
    q.rotates = form != nullptr;
    if (form != nullptr) q.first = first_rotated(kAppend, "q", *form, step.q);
    q.norm = step.q_norm;
  }
  SlotJob::Part& k = job.parts[job.count++];
  k.out = step.k_cache, k.x = step.k;
  k.to_slots = k.keys = true;
  k.rotates = form != nullptr;
  if (form != nullptr) k.first = first_rotated(kAppend, "k", *form, step.k);
  k.norm = step.k_norm;
  SlotJob::Part& v = job.parts[job.count++];
  v.out = step.v_cache, v.x = step.v;
  v.to_slots = true;
  job.batch = step.k.batch, job.sequence = step.k.sequence;
  job.slots = slots;
  job.positions = step.positions;
  job.form = form;
  job.site = site;
  return job;
}

void append_by(const KeyValueCache& cache, const Slots& slots, const NewTokens& tokens, const Positions& positions,
               const Rotation* form, const Run& run) {
  const CallThreads threads_of_call(kAppend, run);
  const RotationTable no_table;
  const RotationTable& table = form != nullptr ? table_of(*form) : no_table;
  const Site site = site_of(kAppend,
                            {cache.k.tensor, cache.v.tensor, tokens.q, tokens.k, tokens.v, tokens.q_out,
                             tokens.q_norm, tokens.k_norm, table.cosines, table.sines},
                            positions, run);
  Step step;
  if (!check_step(step, cache, tokens, slot_count(slots))) return;
  if (form != nullptr) {
    check_no_rows_of_tokens(kAppend, *form);
    step.positions = rotary_positions_of(kAppend, positions, *form, {step.k.batch, step.k.sequence});
    if (step.has_q) first_rotated(kAppend, "q", *form, step.q);
    first_rotated(kAppend, "k", *form, step.k);
  }
  const CallSlots places(kAppend, slots, std::min(slots_in(step.k_cache), slots_in(step.v_cache)), site.device);
  check_apart(kAppend, places);
  if (site.device == Device::kHost) {
    append_on_host(step, tokens, places.values(), form);
  } else {
    backend_for(kAppend, site.device).write_slots(job_of_step(step, places.list(), form, site));
  }
}

}  // namespace

void append(const KeyValueCache& cache, const Slots& slots, const NewTokens& tokens, const Positions& positions,
            const Rotation& form, const Run& run) {
  append_by(cache, slots, tokens, positions, &form, run);
}

void append(const KeyValueCache& cache, const Slots& slots, const NewTokens& tokens, const Run& run) {
  append_by(cache, slots, tokens, {}, nullptr, run);
}

}  // namespace posenc
