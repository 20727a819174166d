#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "posenc/prepare_options.h"
#include "posenc/schemes/choice.h"

namespace posenc {

template <> struct ChoiceNames<TemperatureRule> {
  static constexpr std::array<std::string_view, 3> value = {"steps", "log", "tokens"};
};

/// A factor on each query that grows with the logarithm of its position, so that the softmax stays as sharp over many
/// keys as over few. It does not encode order; models use it in layers without rope, or along with another scheme
/// (AttentionOptions::temperature).
///
///   steps:   q_p · (1 + scale · ln(1 + ⌊(p + start) / floor⌋))      Llama 4 (start 1), Ministral 3, Mistral 4 (start 0)
///   log:     q_p · (1 + scale · ln max(1, (p + start) / floor))     Inkling (start 1)
///   tokens:  q_p · scale_h · ln(p + start)                          SSMax: p + 1 keys are seen
///
/// Nakanishi, 2025, "Scalable-Softmax Is Superior for Attention" (SSMax). As in transformers 5.16 (d56c55bf):
/// modeling_llama4.py, modeling_ministral3.py (get_llama_4_attn_scale), modeling_inkling.py.
struct QueryTemperature {
  static constexpr std::string_view name = "temperature";
  static constexpr std::string_view family = "nothing";
  static constexpr std::string_view formula = "q·(1 + scale·ln(1 + floor((p + start)/floor)))";
  static constexpr std::string_view used_by =
      "Llama 4 in layers without rope, Ministral 3, Mistral 4, Inkling, SSMax";

  TemperatureRule rule = TemperatureRule::kSteps;
  double scale = 0.1;
  std::int64_t floor = 8192;
  std::int64_t start = 1;
  std::vector<double> head_scales = {};

  template <class Visitor> static void fields(Visitor&& visit) {
    visit("rule", &QueryTemperature::rule,
          "steps: 1 + scale ln(1 + floor(n/floor)); log: 1 + scale ln max(1, n/floor); tokens: scale ln n");
    visit("scale", &QueryTemperature::scale, "what multiplies the logarithm (attn_scale, log_scaling_alpha)");
    visit("floor", &QueryTemperature::floor,
          "n below it keeps the factor 1 (floor_scale, log_scaling_n_floor); unused by tokens");
    visit("start", &QueryTemperature::start, "n = position + start; Llama 4, Inkling, SSMax: 1, Ministral 3: 0");
    visit("head_scales", &QueryTemperature::head_scales, "one scale per head instead of scale (SSMax's are trained)");
  }
  bool operator==(const QueryTemperature&) const = default;
};

/// Range: a finite scale, floor 1 to 2^53, start 0 to 2^53 (tokens: at least 1). temperature_backward (attention.h)
/// computes the gradient of the scales.
Nothing prepare(const QueryTemperature& scheme, const PrepareOptions& options = {});

}  // namespace posenc
