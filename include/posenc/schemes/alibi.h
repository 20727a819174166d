#pragma once

#include <cstdint>
#include <string_view>

#include "posenc/situation.h"

namespace posenc {

/// Attention with linear biases: each score is lowered in proportion to the distance, with a slope for each head.
///
///   bias(h, m, n) = −scale · slope_h · |n − m|
///   slope_h = 2^(−max_bias·(h+1)/P)  for h < P,   2^(−max_bias·(2(h−P)+1)/(2P))  for the others
///   P: the largest power of two that is not above the number of heads
///
/// Press et al., 2021, "Train Short, Test Long". Causal and symmetric are the same numbers; the mask does the rest.
/// BLOOM writes slope·n and MPT slope·(n − last): they differ by a constant of the query, which the softmax drops.
/// Falcon divides by √D after adding, so scale is 1/√D there, and rounds its slopes to bf16 first.
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

/// Error: slopes are the nearest doubles. With numerics hf-f32 and ggml-f32 they are powers in float32 of a first
/// slope
///   in float32, as BLOOM and ggml make them: up to 5e-7 off.
/// Range: heads 1 to 65536, max_bias above 0 up to 1000, scale at least 0 and finite.
Bias prepare(const Alibi& scheme, const Situation& now = {});

}  // namespace posenc
