#pragma once

#include <string_view>

#include "posenc/prepare_options.h"

namespace posenc {

/// Each token has a forget gate f between 0 and 1 in every head, computed from its hidden state. A key's weight is
/// multiplied by the gates of all tokens after it, up to the query's own: a decay that depends on the data.
///
///   score(m, n) = scale · q_m·k_n + Σ_{t = n+1 … m} ln f_t = scale · q_m·k_n + c_m − c_n,   f_t = σ(w·x_t + b)
///
/// Lin, Nikishin, He and Courville, 2025, "Forgetting Transformer: Softmax Attention with a Forget Gate" (FoX). Read in
/// zhixuan-lin/forgetting-transformer at 883f260c, src/forgetting_transformer/ops/forgetting_attention.py (log_lambda and
/// decay_bias), and in fla-org/flash-linear-attention at bc3b101d, fla/ops/forgetting_attn/naive.py. With a gate that all
/// tokens share it is ALiBi with the slope −ln f.
struct ForgetGate {
  static constexpr std::string_view name = "forget-gate";
  static constexpr std::string_view family = "bias";
  static constexpr std::string_view formula =
      "score + log f summed over the tokens from n+1 to m, f = sigmoid(w.x + b)";
  static constexpr std::string_view used_by = "Forgetting Transformer (FoX)";

  template <class Visitor> static void fields(Visitor&&) {}
  bool operator==(const ForgetGate&) const = default;
};

/// The gates are an input of attention, AttentionOptions::log_gates: F.logsigmoid of their logits. Only attention can add
/// their sums. A KV cache must store ln f along with the keys.
Bias prepare(const ForgetGate& scheme, const PrepareOptions& options = {});

}  // namespace posenc
