#pragma once

#include <cstdint>
#include <string_view>

#include "posenc/prepare_options.h"

namespace posenc {

/// Attention with linear biases: each score is lowered in proportion to the distance, with a slope for each head.
///
///   bias(h, m, n) = −scale · slope_h · |n − m|
///   slope_h = 2^(−max_bias·(h+1)/P)  for h < P,   2^(−max_bias·(2(h−P)+1)/(2P))  for the others
///   P: the largest power of two that is not above the number of heads
///
/// Press et al., 2021, "Train Short, Test Long". Causal and bidirectional attention use the same numbers; the mask makes
/// the difference. BLOOM adds slope·n and MPT slope·(n − last), which differ from this by a constant per query that the
/// softmax removes. Falcon divides by √D after the addition, so its scale is 1/√D, and rounds its slopes to bf16 first.
struct Alibi {
  static constexpr std::string_view name = "alibi";
  static constexpr std::string_view family = "bias";
  static constexpr std::string_view formula =
      "score - slope_h*|n-m|, slope_h = 2^(-max_bias*(h+1)/heads) if heads is a power of two";
  static constexpr std::string_view used_by = "BLOOM, MPT, Falcon-RW, Baichuan-13B, Jina-BERT-v2";

  std::int64_t heads = 8;
  double max_bias = 8.0;
  double scale = 1.0;
  bool round_bf16 = false;

  template <class Visitor> static void fields(Visitor&& visit) {
    visit("heads", &Alibi::heads, "attention heads");
    visit("max_bias", &Alibi::max_bias, "the last head has slope 2^-max_bias, if heads is a power of two");
    visit("scale", &Alibi::scale, "multiplies every slope (Falcon: 1/sqrt(head_dim))");
    visit("round_bf16", &Alibi::round_bf16, "round the slopes to bf16 before scaling them (Falcon)");
  }
  bool operator==(const Alibi&) const = default;
};

/// Error: slopes are the nearest doubles. With numerics hf-f32 and ggml-f32 they are float32 powers of a float32 slope, as
///   BLOOM and ggml compute them: off by up to 5e-7.
/// Range: heads 1 to 65536, max_bias above 0 up to 1000, scale at least 0 and finite.
Bias prepare(const Alibi& scheme, const PrepareOptions& options = {});

}  // namespace posenc
