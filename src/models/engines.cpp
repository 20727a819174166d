// What engines do about each subject, by engine, with the source it was read from. A rule changes the scheme, the options
// of prepare or the positions; compare.cpp applies them all the same way.

#include "models/engines.h"

#include <algorithm>
#include <cmath>

namespace posenc::models {
namespace {

template <class S> S& scaling_in(EngineScheme& t) { return std::get<S>(*std::get<Rope>(t.scheme).scaling); }

void as_the_config_says(EngineScheme&, const RuleInput&) {}

void by_usable_length(EngineScheme& t, const RuleInput& c) {
  t.prepare.length = c.model.usable_length.value_or(c.length);
}
void by_table_size(EngineScheme& t, const RuleInput& c) {
  constexpr std::int64_t kFirstTable = 2048;
  t.prepare.length = std::max(c.length, kFirstTable);
}
void by_whole_factor(EngineScheme& t, const RuleInput&) {
  auto& scaling = scaling_in<LongropeScaling>(t);
  scaling.factor = std::max(1.0, std::floor(scaling.factor));
}
void with_long_factors(EngineScheme& t, const RuleInput&) {
  t.prepare.length = scaling_in<LongropeScaling>(t).original_length + 1;
}
void without_attention_factor(EngineScheme& t, const RuleInput&) {
  scaling_in<LongropeScaling>(t).attention_factor.reset();
}
void by_trained_length(EngineScheme& t, const RuleInput&) {
  t.prepare.length = scaling_in<DynamicScaling>(t).original_length;
}
void by_extended_length(EngineScheme& t, const RuleInput&) {
  const auto& scaling = scaling_in<DynamicScaling>(t);
  t.prepare.length = static_cast<std::int64_t>(static_cast<double>(scaling.original_length) * scaling.factor);
}
void as_version_4(EngineScheme& t, const RuleInput& c) {
  auto& rope = std::get<Rope>(t.scheme);
  const OlderReading& older = *c.model.older_reading;
  const bool has_own_base = older.is_by_type && c.group.layer_type == "sliding_attention";
  if (older.base && !has_own_base) rope.base = *older.base;
  if (older.drops_scaling) rope.scaling = NoScaling{};
}
void without_scaling(EngineScheme& t, const RuleInput&) { std::get<Rope>(t.scheme).scaling = NoScaling{}; }

void by_factor_alone(EngineScheme& t, const RuleInput&) {
  auto& scaling = scaling_in<YarnScaling>(t);
  scaling.attention_factor = scaling.mscale = scaling.mscale_all_dim = std::nullopt;
}
// mlx-lm: mscale 1 and mscale_all_dim 0 if not given.
void by_mscale_ratio(EngineScheme& t, const RuleInput& c) {
  const YarnScaling yarn = scaling_in<YarnScaling>(t);
  by_factor_alone(t, c);
  if (yarn.factor <= 1) return;
  const auto magnitude = [&](double weight) { return 0.1 * weight * std::log(yarn.factor) + 1; };
  t.magnitude_factor = magnitude(yarn.mscale.value_or(1)) / magnitude(yarn.mscale_all_dim.value_or(0)) / magnitude(1);
}
// SGLang: mscale over mscale_all_dim if both are given, times attn_factor; attention_factor is not read.
void by_mscales_and_attn_factor(EngineScheme& t, const RuleInput& c) {
  const auto& yarn = scaling_in<YarnScaling>(t);
  if (yarn.mscale && yarn.mscale_all_dim) {
    by_mscale_ratio(t, c);
  } else {
    by_factor_alone(t, c);
  }
  t.magnitude_factor *= c.model.attn_factor.value_or(1.0);
}
void by_attn_factor(EngineScheme& t, const RuleInput& c) {
  by_factor_alone(t, c);
  t.magnitude_factor = c.model.attn_factor.value_or(1.0);
}
// The converter writes yarn_log_multiplier only for these families, and the loader then divides by mscale_all_dim.
void by_factor_or_log_multiplier(EngineScheme& t, const RuleInput& c) {
  const auto& yarn = scaling_in<YarnScaling>(t);
  const bool is_mistral = c.model.model_type == "ministral3" || c.model.model_type == "mistral3";
  if (is_mistral && yarn.mscale_all_dim && !yarn.attention_factor) {
    scaling_in<YarnScaling>(t).mscale = 1.0;
    return;
  }
  by_factor_alone(t, c);
}
// exllamav3: max_position_embeddings over original_max_position_embeddings in place of factor, for frequencies too; the
// magnitude is 1 beside a temperature, and not of mscale.
void by_ratio_of_lengths(EngineScheme& t, const RuleInput& c) {
  auto& yarn = scaling_in<YarnScaling>(t);
  yarn.mscale = yarn.mscale_all_dim = std::nullopt;
  if (c.model.yarn_ratio) yarn.factor = std::max(1.0, *c.model.yarn_ratio);
  if (c.group.temperature && !yarn.attention_factor) yarn.attention_factor = 1.0;
}
void with_other_base(EngineScheme& t, const RuleInput& c) { std::get<Rope>(t.scheme).base = *c.model.other_base; }
void with_other_dims(EngineScheme& t, const RuleInput& c) {
  if (c.model.other_rotary_dim) std::get<Rope>(t.scheme).dims = *c.model.other_rotary_dim;
}
void with_hf_dims(EngineScheme& t, const RuleInput& c) {
  if (c.model.hf_rotary_dim) std::get<Rope>(t.scheme).dims = *c.model.hf_rotary_dim;
}
// llama.cpp hard-codes Llama 4's numbers.
void with_llama4_temperature(EngineScheme& t, const RuleInput&) {
  if (t.temperature && t.temperature->shift == 1 && t.temperature->rule == TemperatureRule::kSteps)
    t.temperature = Temperature{.scale = 0.1, .length = 8192, .shift = 1};
}
// SGLang looks for original_max_position_embeddings at the top, where Mistral's configs do not have it: ministral3.py:124.
void with_mistrals_steps(EngineScheme& t, const RuleInput&) {
  constexpr std::int64_t kDefaultLength = 16384;
  if (t.temperature && t.temperature->shift == 0) t.temperature->length = kDefaultLength;
}
void with_whole_ramp(EngineScheme& t, const RuleInput&) { scaling_in<YarnScaling>(t).truncate = true; }

// The second half of the tokens comes after the video, with the same position on all axes.
void shift_second_half(EngineScheme& t, std::int64_t by) {
  const std::int64_t middle = t.positions.back() / 2;
  for (std::int64_t& position : t.positions) position += position > middle ? by : 0;
}
void by_height_and_width(EngineScheme& t, const RuleInput&) { shift_second_half(t, 4); }
void by_longest_axis(EngineScheme& t, const RuleInput&) { shift_second_half(t, 16); }
void leave_unclaimed(EngineScheme& t, const RuleInput&) { t.leaves_unclaimed = true; }

void with_float_slopes(EngineScheme& t, const RuleInput&) { std::get<Alibi>(t.scheme).round_bf16 = false; }
void by_key_in_bf16(EngineScheme& t, const RuleInput&) { t.is_absolute_bf16 = true; }

void with_hf_angles(EngineScheme& t, const RuleInput&) { t.prepare.numerics = Numerics::kHfF32; }
void with_ggml_angles(EngineScheme& t, const RuleInput&) { t.prepare.numerics = Numerics::kGgmlF32; }
void with_bf16_table(EngineScheme& t, const RuleInput& c) {
  with_hf_angles(t, c);
  t.has_bf16_table = true;
}

constexpr EngineRule kRules[] = {
#include "engine_rules.inc"
};

}  // namespace

std::span<const EngineVersion> engine_versions() noexcept {
  static constexpr EngineVersion kVersions[] = {
#include "engine_versions.inc"
  };
  return kVersions;
}
std::span<const EngineRule> engine_rules() noexcept { return kRules; }

}  // namespace posenc::models
