#include "posenc/attention.h"

#include <optional>
#include <vector>

#include "c_api/arguments.h"

struct posenc_plan {
  posenc::AttentionPlan plan;
};

namespace posenc::c_api {
namespace {

// The options of a call, with the integers they refer to.
struct HeldOptions {
  AttentionOptions value;
  std::optional<HeldPositions> queries, keys;
  Integers query_lengths, key_lengths, packed, packed_keys, key_mask;
  std::vector<std::int32_t> block_table;

  HeldOptions(const posenc_attention_options* options, const char* verb) {
    const posenc_attention_options given = known(options, "posenc_attention_options");
    if (given.position != nullptr) value.position = given.position->form;
    value.causal = given.causal != 0;
    value.keys_are_rotated = given.keys_are_rotated != 0;
    value.rounds_rotated = given.rounds_rotated != 0;
    value.window = given.window;
    if (given.scale != nullptr) value.scale = *given.scale;
    if (given.query_positions != nullptr) value.query_positions = queries.emplace(given.query_positions, verb).value;
    if (given.key_positions != nullptr) value.key_positions = keys.emplace(given.key_positions, verb).value;
    const auto take = [&](Integers& own, const posenc_tensor* tensor, const char* what) {
      own = host_integers(tensor, verb, what);
      return own.values();
    };
    value.query_lengths = take(query_lengths, given.query_lengths, "query_lengths");
    value.key_lengths = take(key_lengths, given.key_lengths, "key_lengths");
    value.packed = take(packed, given.packed, "packed");
    value.packed_keys = take(packed_keys, given.packed_keys, "packed_keys");
    value.key_mask = take(key_mask, given.key_mask, "key_mask");
    take_block_table(given, verb);
    value.is_repeatable = given.repeatable != 0;
    value.chunk = given.chunk;
    value.softcap = given.softcap;
    if (given.temperature != nullptr) {
      const posenc_temperature factor = known(given.temperature, "posenc_temperature");
      if (factor.rule < 0 || factor.rule > 2) {
        refuse(POSENC_INVALID,
               fmt::format("{}: the rule of a temperature must be 0, 1 or 2 but is {}", verb, factor.rule));
      }
      value.temperature = Temperature{.scale = factor.scale,
                                      .length = factor.length,
                                      .shift = factor.shift,
                                      .rule = static_cast<TemperatureRule>(factor.rule)};
    }
    value.sinks = view_of(given.sinks, verb, "sinks");
    value.mask = view_of(given.mask, verb, "mask");
    value.position_queries = view_of(given.position_queries, verb, "position_queries");
    value.log_gates = view_of(given.log_gates, verb, "log_gates");
    value.weights = view_of(given.weights, verb, "weights");
    value.logsumexp = view_of(given.logsumexp, verb, "logsumexp");
  }

  void take_block_table(const posenc_attention_options& given, const char* verb) {
    const posenc_tensor* const table = given.block_table;
    if (table == nullptr) return;
    const TensorView view = integers_view(*table, verb, "block_table");
    if (table->ndim > 2 || count_of(view.shape) == 0) {
      refuse(fmt::format("{}: block_table must be [sequences, pages] but is {}", verb, to_string(view.shape)));
    }
    const auto sequences = std::ssize(value.key_lengths);
    if (table->ndim == 2 && sequences != 0 && table->shape[0] != sequences) {
      refuse(fmt::format("{}: block_table has {} rows but key_lengths has {} numbers", verb, table->shape[0],
                         sequences));
    }
    if (table->dtype.bits == 32 && is_dense(view) && view.device == Device::kHost) {  // read in place
      value.block_table = {static_cast<const std::int32_t*>(view.data),
                           static_cast<std::size_t>(count_of(view.shape))};
      return;
    }
    const Integers pages = host_integers(table, verb, "block_table");
    for (const std::int64_t page : pages.values()) block_table.push_back(page_of(page));
    value.block_table = block_table;
  }

  // A plan reads the numbers again at each call, so all of them must be in the caller's memory.
  void refuse_copies() const {
    const auto refuse_copy = [](const Integers& own, const char* what) {
      if (own.is_in_place()) return;
      refuse(fmt::format("plan_attention: {} must be dense i64: a plan reads it at each call", what));
    };
    refuse_copy(query_lengths, "query_lengths");
    refuse_copy(key_lengths, "key_lengths");
    refuse_copy(packed, "packed");
    refuse_copy(packed_keys, "packed_keys");
    refuse_copy(key_mask, "key_mask");
    if (queries) refuse_copy(queries->ids, "query_positions");
    if (keys) refuse_copy(keys->ids, "key_positions");
    if (block_table.empty()) return;
    refuse("plan_attention: block_table must be dense i32: a plan reads it at each call");
  }
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

int posenc_attention(const posenc_tensor* out, const posenc_tensor* q, const posenc_tensor* k, const posenc_tensor* v,
                     const posenc_attention_options* options, const posenc_run* run) {
  return guarded([&] {
    const char* const verb = "attention";
    const HeldOptions held(options, verb);
    attention(needed_view(out, verb, "out"), needed_view(q, verb, "q"), needed_view(k, verb, "k"),
              needed_view(v, verb, "v"), held.value, run_of(run));
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
