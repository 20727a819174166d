#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "posenc/option_set.h"

namespace posenc::attend {

/// A call of attention with its options resolved: heads come before the sequence, defaults are filled in, and
/// alternatives are decided. Plans and engines see this and never the options, from which it is made once.
struct AttentionCall {
  std::string_view verb;  // begins every error
  TensorView out;         // not set for gradients
  AttentionInputs inputs;
  OptionSet given;  // the options that are not at their defaults

  const Form* position = nullptr;
  const Bias* bias = nullptr;                // if the position is one
  const Rotation* rotation = nullptr;        // if the position is one
  const Temperature* temperature = nullptr;  // of the options, or of a form that is only a temperature
  double scale = 1.0, softcap = 0;
  bool keys_are_rotated = false, rounds_rotated = false, is_repeatable = false;

  bool causal = false;
  std::int64_t window = 0, chunk = 0;
  std::span<const std::int64_t> query_lengths, key_lengths, packed, packed_keys, key_mask, spans;
  std::span<const std::int32_t> block_table, device_key_lengths, device_block_table;
  std::optional<Positions> query_positions, key_positions;

  ConstTensorView sinks, mask, position_queries, log_gates, k_scale, v_scale;
  TensorView weights, logsumexp;
  // With packed queries over pages, the tokens of a plan's q, for which its options are; a call may have fewer. 0: no plan.
  std::int64_t planned_tokens = 0;

  bool has_lengths() const { return !query_lengths.empty() || !key_lengths.empty(); }
  /// Whether queries of several sequences are packed and their keys are in pages.
  bool has_packed_pages() const { return !packed.empty() && !block_table.empty(); }
  void set_position(const Form& form) {
    position = &form;
    bias = std::get_if<Bias>(&form);
    rotation = std::get_if<Rotation>(&form);
  }
};

/// The options that some GPU kernel takes.
extern const OptionSet kOnGpu;

/// The options must outlive the call, which points into them.
/// Throws: Error that begins with the verb, for an option that the engine of the tensors' device does not take.
AttentionCall call_of(std::string_view verb, const TensorView& out, const AttentionInputs& inputs,
                      const AttentionOptions& options);

}  // namespace posenc::attend
