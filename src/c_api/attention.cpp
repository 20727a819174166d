#include "posenc/attention.h"

#include <cstring>
#include <forward_list>
#include <optional>
#include <vector>

#include "c_api/arguments.h"
#include "c_api/option_kinds.h"

struct posenc_plan {
  posenc::AttentionPlan plan;
};

namespace posenc::c_api {
namespace {

static_assert(each_in_c([](auto...) {}) == sizeof(posenc_attention_options),
              "posenc_c.h differs from AttentionOptions::fields: build the target posenc_c_header");

// The options of a call, with the integers they refer to.
struct HeldOptions {
  AttentionOptions value;

  HeldOptions(const posenc_attention_options* options, const char* verb) : verb_(verb) {
    const posenc_attention_options given = known(options, "posenc_attention_options");
    each_in_c([&]<class T>(const char* name, T AttentionOptions::*member, const char*, std::size_t offset) {
      typename InC<T>::Type in_c;
      std::memcpy(&in_c, reinterpret_cast<const std::byte*>(&given) + offset, sizeof(typename InC<T>::Type));
      if (in_c != typename InC<T>::Type{}) take(name, in_c, value.*member);
    });
  }

  // A plan reads the numbers again at each call, so all of them must be in the caller's memory.
  void refuse_copies() const {
    if (copied_ == nullptr) return;
    refuse(fmt::format("plan_attention: {} must be dense {}: a plan reads it at each call", copied_,
                       pages_.empty() ? "i64" : "i32"));
  }

 private:
  void take(const char*, std::int32_t given, bool& flag) { flag = given != 0; }
  void take(const char*, std::int64_t given, std::int64_t& number) { number = given; }
  void take(const char*, double given, double& number) { number = given; }
  void take(const char*, const double* given, std::optional<double>& number) { number = *given; }
  void take(const char*, const posenc_form* given, Form& form) { form = given->form; }
  void take(const char* name, const posenc_positions* given, std::optional<Positions>& positions) {
    const HeldPositions& held = positions_.emplace_front(given, verb_);
    positions = held.value;
    note_copy(name, held.ids);
  }
  void take(const char*, const posenc_temperature* given, std::optional<Temperature>& temperature) {
    const posenc_temperature factor = known(given, "posenc_temperature");
    if (factor.rule < 0 || factor.rule > 2) {
      refuse(POSENC_INVALID,
             fmt::format("{}: the rule of a temperature must be 0, 1 or 2 but is {}", verb_, factor.rule));
    }
    temperature = Temperature{.scale = factor.scale,
                              .length = factor.length,
                              .shift = factor.shift,
                              .rule = static_cast<TemperatureRule>(factor.rule)};
  }
  template <class Void> void take(const char* name, const posenc_tensor* given, BasicTensorView<Void>& view) {
    view = view_of(given, verb_, name);
  }
  void take(const char* name, const posenc_tensor* given, std::span<const std::int64_t>& numbers) {
    const Integers& held = integers_.emplace_front(host_integers(given, verb_, name));
    numbers = held.values();
    note_copy(name, held);
  }
  void take(const char* name, const posenc_tensor* table, std::span<const std::int32_t>& pages) {
    const TensorView view = integers_view(*table, verb_, name);
    if (table->ndim > 2 || count_of(view.shape) == 0) {
      refuse(fmt::format("{}: {} must be [sequences, pages] but is {}", verb_, name, to_string(view.shape)));
    }
    const auto sequences = std::ssize(value.key_lengths);
    if (table->ndim == 2 && sequences != 0 && table->shape[0] != sequences) {
      refuse(
          fmt::format("{}: {} has {} rows but key_lengths has {} numbers", verb_, name, table->shape[0], sequences));
    }
    if (table->dtype.bits == 32 && is_dense(view) && view.device == Device::kHost) {  // read in place
      pages = {static_cast<const std::int32_t*>(view.data), static_cast<std::size_t>(count_of(view.shape))};
      return;
    }
    const Integers numbers = host_integers(table, verb_, name);
    for (const std::int64_t page : numbers.values()) pages_.push_back(page_of(page));
    pages = pages_;
    if (copied_ == nullptr) copied_ = name;
  }
  void note_copy(const char* name, const Integers& numbers) {
    if (copied_ == nullptr && !numbers.is_in_place()) copied_ = name;
  }

  const char* verb_;
  const char* copied_ = nullptr;  // the first option whose numbers are not in the caller's memory
  std::forward_list<HeldPositions> positions_;
  std::forward_list<Integers> integers_;
  std::vector<std::int32_t> pages_;
};

AttentionInputs inputs_of(const posenc_attention_inputs* inputs, const char* verb) {
  require(inputs, verb, "inputs");
  const posenc_attention_inputs from = known(inputs, "posenc_attention_inputs");
  return {.q = needed_view(from.q, verb, "q"),
          .k = needed_view(from.k, verb, "k"),
          .v = needed_view(from.v, verb, "v"),
          .out = view_of(from.out, verb, "out"),
          .logsumexp = view_of(from.logsumexp, verb, "logsumexp")};
}

}  // namespace
}  // namespace posenc::c_api

using namespace posenc;         // NOLINT(google-build-using-namespace)
using namespace posenc::c_api;  // NOLINT(google-build-using-namespace)

extern "C" {

const posenc_field* posenc_attention_fields(size_t* count) {
  static const std::vector<posenc_field> fields = [] {
    std::vector<posenc_field> made;
    each_in_c([&]<class T>(const char* name, T AttentionOptions::*member, const char* help, std::size_t offset) {
      const bool has_axes_of_q = OptionSet(&AttentionOptions::position_queries).has(member);
      made.push_back({name, help, offset, has_axes_of_q ? POSENC_FIELD_TOKENS : InC<T>::kKind});
    });
    return made;
  }();
  if (count != nullptr) *count = fields.size();
  return fields.data();
}

int posenc_attention(const posenc_tensor* out, const posenc_tensor* q, const posenc_tensor* k, const posenc_tensor* v,
                     const posenc_attention_options* options, const posenc_run* run) {
  return guarded([&] {
    const char* const verb = "attention";
    const HeldOptions held(options, verb);
    attention(needed_view(out, verb, "out"), needed_view(q, verb, "q"), needed_view(k, verb, "k"),
              needed_view(v, verb, "v"), held.value, run_of(run));
  });
}

int posenc_merge(const posenc_tensor* out, const posenc_tensor* logsumexp, const posenc_tensor* other,
                 const posenc_tensor* other_logsumexp, const posenc_run* run) {
  return guarded([&] {
    const char* const verb = "merge";
    merge(host_view(out, verb, "out"), host_view(logsumexp, verb, "logsumexp"), host_view(other, verb, "other"),
          host_view(other_logsumexp, verb, "other_logsumexp"), run_of(run));
  });
}

int posenc_attention_backward(const posenc_attention_gradients* gradients, const posenc_tensor* d_out,
                              const posenc_attention_inputs* inputs, const posenc_attention_options* options,
                              const posenc_run* run) {
  return guarded([&] {
    const char* const verb = "attention_backward";
    require(gradients, verb, "gradients");
    const AttentionInputs from = inputs_of(inputs, verb);
    const posenc_attention_gradients to = known(gradients, "posenc_attention_gradients");
    const HeldOptions held(options, verb);
    attention_backward({.q = view_of(to.q, verb, "the gradient of q"),
                        .k = view_of(to.k, verb, "the gradient of k"),
                        .v = view_of(to.v, verb, "the gradient of v"),
                        .parameters = view_of(to.parameters, verb, "the gradient of the parameters"),
                        .query_vectors = view_of(to.query_vectors, verb, "the gradient of query_vectors"),
                        .key_vectors = view_of(to.key_vectors, verb, "the gradient of key_vectors"),
                        .value_vectors = view_of(to.value_vectors, verb, "the gradient of value_vectors"),
                        .query_offsets = view_of(to.query_offsets, verb, "the gradient of query_offsets"),
                        .sinks = view_of(to.sinks, verb, "the gradient of sinks"),
                        .position_queries = view_of(to.position_queries, verb, "the gradient of position_queries"),
                        .log_gates = view_of(to.log_gates, verb, "the gradient of log_gates")},
                       needed_view(d_out, verb, "d_out"), from, held.value, run_of(run));
  });
}

int posenc_attention_workspace(const posenc_attention_inputs* inputs, const posenc_attention_options* options,
                               size_t* bytes) {
  return guarded([&] {
    const char* const verb = "attention_workspace";
    require(bytes, verb, "bytes");
    const AttentionInputs from = inputs_of(inputs, verb);
    const HeldOptions held(options, verb);
    *bytes = workspace_bytes(from, held.value);
  });
}

int posenc_plan_attention(const posenc_attention_inputs* like, const posenc_attention_options* options,
                          posenc_plan** out) {
  return guarded([&] {
    const char* const verb = "plan_attention";
    require(out, verb, "out");
    const AttentionInputs from = inputs_of(like, verb);
    const HeldOptions held(options, verb);
    held.refuse_copies();
    *out = new posenc_plan{plan_attention(from, held.value)};
  });
}

int posenc_plan_workspace(const posenc_plan* plan, int32_t threads, size_t* bytes) {
  return guarded([&] {
    require(plan, "plan_workspace", "the plan");
    require(bytes, "plan_workspace", "bytes");
    *bytes = workspace_bytes(plan->plan, threads);
  });
}

int posenc_attention_planned(const posenc_plan* plan, const posenc_tensor* out, const posenc_tensor* q,
                             const posenc_tensor* k, const posenc_tensor* v, const posenc_run* run) {
  return guarded([&] {
    const char* const verb = "attention";
    require(plan, verb, "the plan");
    attention(plan->plan, needed_view(out, verb, "out"), needed_view(q, verb, "q"), needed_view(k, verb, "k"),
              needed_view(v, verb, "v"), run_of(run));
  });
}

void posenc_plan_free(posenc_plan* plan) { delete plan; }

}  // extern "C"
