// From the options of attention to a call, the only place where plans and engines get them from.

#include <fmt/format.h>

#include <cmath>

#include "attention/plan/arguments.h"
#include "posenc/error.h"

namespace posenc::attend {
namespace {

using Options = AttentionOptions;

// What a plan knows how to compute, or rejects itself with a reason. A new option is rejected until it is here.
constexpr OptionSet kHostTakes(&Options::position, &Options::axes, &Options::causal, &Options::window,
                               &Options::chunk, &Options::scale, &Options::softcap, &Options::temperature,
                               &Options::sinks, &Options::mask, &Options::position_queries, &Options::log_gates,
                               &Options::query_positions, &Options::key_positions, &Options::keys_are_rotated,
                               &Options::rounds_rotated, &Options::query_lengths, &Options::key_lengths,
                               &Options::packed, &Options::packed_keys, &Options::key_mask, &Options::block_table,
                               &Options::device_key_lengths, &Options::device_block_table, &Options::is_repeatable,
                               &Options::weights, &Options::logsumexp, &Options::spans, &Options::k_scale,
                               &Options::v_scale);
constexpr OptionSet kNoKernel(&Options::softcap, &Options::temperature, &Options::sinks, &Options::mask,
                              &Options::position_queries, &Options::log_gates, &Options::weights, &Options::spans,
                              &Options::k_scale, &Options::v_scale);

}  // namespace

constinit const OptionSet kOnGpu = kHostTakes.without(kNoKernel);

AttentionCall call_of(std::string_view verb, const TensorView& out, const AttentionInputs& inputs,
                      const AttentionOptions& options) {
  AttentionCall call;
  call.verb = verb;
  call.given = OptionSet(options);
  const bool is_on_host = inputs.q.device == Device::kHost;
  refuse_others(verb, call.given, is_on_host ? kHostTakes : kOnGpu, is_on_host ? "the host" : "cuda");

  if (options.axes && !is_known(*options.axes)) {
    raise(fmt::format("{}: there is no order of axes with the number {}", verb, static_cast<int>(*options.axes)));
  }
  const bool is_placed = options.axes && has_heads_last(*options.axes);
  const auto placed = [&](const auto& x) { return is_placed ? heads_first(x, *options.axes) : x; };
  const auto placed_if_given = [&](const auto& x) { return x.data == nullptr ? x : placed(x); };
  call.out = out.shape.rank == 0 ? out : placed(out);
  call.inputs = {placed(inputs.q), placed(inputs.k), placed(inputs.v), placed_if_given(inputs.out), inputs.logsumexp};
  call.position_queries = placed_if_given(options.position_queries);
  call.log_gates = is_placed ? gates_heads_first(options.log_gates) : options.log_gates;

  call.set_position(options.position);
  const auto* const nothing = std::get_if<Nothing>(&options.position);
  const bool is_warm_form = nothing != nullptr && nothing->temperature;
  if (options.temperature && is_warm_form) {
    raise(fmt::format("{}: the form is a temperature itself, so the options cannot have another", verb));
  }
  if (options.temperature) call.temperature = &*options.temperature;
  if (is_warm_form) call.temperature = &*nothing->temperature;
  const std::int64_t features = call.inputs.q.shape.rank > 0 ? call.inputs.q.shape.back(0) : 0;
  call.scale = options.scale.value_or(1 / std::sqrt(static_cast<double>(features)));
  call.softcap = options.softcap, call.sinks = options.sinks, call.mask = options.mask;
  call.keys_are_rotated = options.keys_are_rotated, call.rounds_rotated = options.rounds_rotated;
  call.causal = options.causal, call.window = options.window, call.chunk = options.chunk;
  call.query_lengths = options.query_lengths, call.key_lengths = options.key_lengths;
  call.packed = options.packed;
  call.packed_keys = options.packed_keys.empty() ? options.packed : options.packed_keys;
  call.key_mask = options.key_mask, call.spans = options.spans, call.block_table = options.block_table;
  call.device_key_lengths = options.device_key_lengths, call.device_block_table = options.device_block_table;
  call.query_positions = options.query_positions, call.key_positions = options.key_positions;
  call.k_scale = options.k_scale, call.v_scale = options.v_scale;
  call.is_repeatable = options.is_repeatable, call.weights = options.weights, call.logsumexp = options.logsumexp;
  return call;
}

}  // namespace posenc::attend
