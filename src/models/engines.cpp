// What engines do about each subject, by engine, with the source it was read from. A rule changes the scheme, the options
// of prepare or the positions; compare.cpp applies them all the same way.

#include "models/engines.h"

#include <algorithm>
#include <array>
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

constexpr std::string_view kHfRope =
    "https://github.com/huggingface/transformers/blob/main/src/transformers/modeling_rope_utils.py";
constexpr std::string_view kCtRope =
    "https://github.com/OpenNMT/CTranslate2/blob/master/src/layers/attention_layer.cc";
constexpr std::string_view kCtConverter =
    "https://github.com/OpenNMT/CTranslate2/blob/master/python/ctranslate2/converters/transformers.py";
constexpr std::string_view kMlxRope = "https://github.com/ml-explore/mlx-lm/blob/main/mlx_lm/models/rope_utils.py";
constexpr std::string_view kLlamaContext = "https://github.com/ggml-org/llama.cpp/blob/master/src/llama-context.cpp";
constexpr std::string_view kVllmRope =
    "https://github.com/vllm-project/vllm/tree/main/vllm/model_executor/layers/rotary_embedding";

constexpr std::string_view kHf4Rope =
    "https://github.com/huggingface/transformers/blob/v4.57.6/src/transformers/modeling_rope_utils.py";
constexpr std::string_view kHf4Models =
    "https://github.com/huggingface/transformers/tree/v4.57.6/src/transformers/models";
constexpr std::string_view kSglangRope =
    "https://github.com/sgl-project/sglang/tree/main/python/sglang/srt/layers/rotary_embedding";
constexpr std::string_view kExllamaRope =
    "https://github.com/turboderp-org/exllamav3/blob/master/exllamav3/util/rope.py";
constexpr std::string_view kExllamaKernel =
    "https://github.com/turboderp-org/exllamav3/blob/master/exllamav3/exllamav3_ext/rope.cu";
constexpr std::string_view kExllamaFamilies =
    "https://github.com/turboderp-org/exllamav3/tree/master/exllamav3/architecture";
constexpr std::string_view kSglangMrope =
    "https://github.com/sgl-project/sglang/blob/main/python/sglang/srt/layers/rotary_embedding/mrope.py";

constexpr auto kRules = std::to_array<EngineRule>({
    {"longrope-switch", "hf", "by the length of the sequence so far, anew at every step", as_the_config_says,
     kHfRope},
    {"longrope-switch", "vllm", "once, by the longest sequence that it serves", by_usable_length,
     "https://github.com/vllm-project/vllm/pull/27431"},
    {"longrope-switch", "llama.cpp", "once, by the context it is started with (here the model's whole length)",
     by_usable_length, "https://github.com/ggml-org/llama.cpp/issues/8995"},
    {"longrope-switch", "ctranslate2", "by the size of its table, 2048 at first, which grows with the sequence",
     by_table_size, kCtRope},
    {"longrope-switch", "mlx", "always the list for long sequences", with_long_factors, kMlxRope},
    {"longrope-switch", "hf4", "by the length of the sequence so far, anew at every step", as_the_config_says,
     kHf4Rope},
    {"longrope-switch", "sglang", "by the longest sequence of the batch so far, anew at every step",
     as_the_config_says, kSglangRope},
    {"longrope-switch", "exllamav3", "once, by max_position_embeddings (or the caller's override)", by_usable_length,
     kExllamaRope},

    {"longrope-magnitude", "hf", "computed from the unrounded ratio, or attention_factor if set", as_the_config_says,
     kHfRope},
    {"longrope-magnitude", "vllm", "computed from the unrounded ratio, or short_mscale and long_mscale",
     as_the_config_says, kVllmRope},
    {"longrope-magnitude", "llama.cpp", "rope.scaling.attn_factor of the file, computed from the unrounded ratio",
     as_the_config_says, kLlamaContext},
    {"longrope-magnitude", "ctranslate2", "computed from the ratio cut to a whole number", by_whole_factor, kCtRope},
    {"longrope-magnitude", "mlx", "computed from the unrounded ratio; attention_factor is not read",
     without_attention_factor, kMlxRope},
    {"longrope-magnitude", "hf4", "computed from the unrounded ratio, or attention_factor if set", as_the_config_says,
     kHf4Rope},
    {"longrope-magnitude", "sglang",
     "computed from the unrounded ratio, or short_mscale and long_mscale; attention_factor is not read",
     without_attention_factor, kSglangRope},
    {"longrope-magnitude", "exllamav3", "computed from the unrounded ratio; attention_factor is not read",
     without_attention_factor, kExllamaRope},

    {"dynamic-ntk", "hf", "the longest sequence so far", as_the_config_says, kHfRope},
    {"dynamic-ntk", "vllm", "max_position_embeddings, regardless of the sequence, so the base never changes",
     by_trained_length, "https://github.com/vllm-project/vllm/pull/41277", "2026-05-19",
     "trained length times factor, whatever the sequence"},
    {"dynamic-ntk", "llama.cpp", "none: its files have no such scaling", without_scaling, kLlamaContext},
    {"dynamic-ntk", "ctranslate2", "its converter refuses this scaling", nullptr, kCtConverter},
    {"dynamic-ntk", "mlx", "the sequence so far; keys in the cache keep the base they were rotated with",
     as_the_config_says, kMlxRope},
    {"dynamic-ntk", "hf4", "the longest sequence so far", as_the_config_says, kHf4Rope},
    {"dynamic-ntk", "sglang", "trained length times factor, whatever the sequence", by_extended_length, kSglangRope},
    {"dynamic-ntk", "exllamav3", "refuses this scaling", nullptr, kExllamaRope},

    {"yarn-magnitude", "hf", "attention_factor; else mscale over mscale_all_dim; else 0.1 ln(factor) + 1",
     as_the_config_says, kHfRope},
    {"yarn-magnitude", "vllm",
     "0.1 ln(factor) + 1 times attn_factor; drops HF's keys (before pull request 56446, September 2026)",
     by_attn_factor, "https://github.com/vllm-project/vllm/pull/48351"},
    {"yarn-magnitude", "llama.cpp",
     "0.1 ln(factor) + 1, times rope.scaling.attn_factor where the file has it; for Ministral 3 divided by that of "
     "mscale_all_dim, which its converter writes as yarn_log_multiplier",
     by_factor_or_log_multiplier, "https://github.com/ggml-org/llama.cpp/pull/18006", "2025-12-14",
     "the same factors in a different order; fixed upstream as a regression"},
    {"yarn-magnitude", "ctranslate2", "its converter refuses this scaling", nullptr, kCtConverter},
    {"yarn-magnitude", "mlx",
     "mscale (1 where not given) over mscale_all_dim (0 where not given); attention_factor is not read",
     by_mscale_ratio, kMlxRope},
    {"yarn-magnitude", "hf4", "attention_factor; else mscale over mscale_all_dim; else 0.1 ln(factor) + 1",
     as_the_config_says, kHf4Rope},
    {"yarn-magnitude", "sglang",
     "mscale over mscale_all_dim, else 0.1 ln(factor) + 1, times attn_factor; attention_factor is not read",
     by_mscales_and_attn_factor, kSglangRope},
    {"yarn-magnitude", "exllamav3",
     "attention_factor; else 0.1 ln(ratio) + 1, or 1 beside a temperature; the ratio is max_position_embeddings over "
     "original_max_position_embeddings, which also scales frequencies in place of factor",
     by_ratio_of_lengths, kExllamaRope},

    {"yarn-ramp", "hf", "not rounded; but rounded where truncate is in the parameters of one layer type",
     as_the_config_says, kHfRope},
    {"yarn-ramp", "vllm", "not rounded", as_the_config_says, "https://github.com/vllm-project/vllm/pull/28244",
     "2025-11-20", "always rounded to whole pairs"},
    {"yarn-ramp", "llama.cpp", "always rounded to whole pairs", with_whole_ramp,
     "https://github.com/ggml-org/llama.cpp/blob/master/ggml/src/ggml.c"},
    {"yarn-ramp", "ctranslate2", "its converter refuses this scaling", nullptr, kCtConverter},
    {"yarn-ramp", "mlx", "always rounded to whole pairs", with_whole_ramp, kMlxRope},
    {"yarn-ramp", "hf4", "not rounded", as_the_config_says, kHf4Rope},
    {"yarn-ramp", "sglang", "not rounded", as_the_config_says, kSglangRope},
    {"yarn-ramp", "exllamav3", "not rounded", as_the_config_says, kExllamaRope},

    {"mrope-advance", "hf", "advances by max(height, width) = 4", by_height_and_width,
     "https://github.com/huggingface/transformers/pull/43972", "2026-02-24", "by the longest of all axes: 16 on"},
    {"mrope-advance", "vllm", "by the longest of all axes, time too: 16 on", by_longest_axis,
     "https://github.com/vllm-project/vllm/blob/main/vllm/model_executor/layers/rotary_embedding/mrope.py"},
    {"mrope-advance", "hf4", "by the longest of all axes, time too: 16 on", by_longest_axis, kHf4Models},
    {"mrope-advance", "sglang", "by the longest of all axes, time too: 16 on", by_longest_axis, kSglangRope},
    {"mrope-advance", "exllamav3", "by the longest of all axes, time too: 16 on", by_longest_axis, kExllamaKernel},

    {"mrope-unclaimed", "hf", "by time, as the first axis", as_the_config_says,
     "https://github.com/huggingface/transformers/tree/main/src/transformers/models/qwen3_vl"},
    {"mrope-unclaimed", "vllm", "by time, as the first axis", as_the_config_says,
     "https://github.com/vllm-project/vllm/blob/main/vllm/model_executor/layers/rotary_embedding/mrope.py"},
    {"mrope-unclaimed", "llama.cpp", "by a fourth axis, which is 0 for text: they do not rotate", leave_unclaimed,
     "https://github.com/ggml-org/llama.cpp/blob/master/src/llama-graph.cpp"},
    {"mrope-unclaimed", "hf4", "by time, as the first axis", as_the_config_says, kHf4Models},
    {"mrope-unclaimed", "sglang", "by time, as the first axis", as_the_config_says, kSglangMrope},
    {"mrope-unclaimed", "exllamav3", "by time, as the first axis", as_the_config_says, kExllamaRope},

    {"alibi-slopes", "hf", "the paper's rule for such numbers", as_the_config_says,
     "https://github.com/huggingface/transformers/blob/main/src/transformers/models/bloom/modeling_bloom.py"},
    {"alibi-slopes", "vllm", "the paper's rule for such numbers", as_the_config_says,
     "https://github.com/vllm-project/vllm/blob/main/vllm/model_executor/models/bloom.py"},
    {"alibi-slopes", "llama.cpp", "the paper's rule for such numbers", as_the_config_says,
     "https://github.com/ggml-org/llama.cpp/blob/master/ggml/src/ggml-cpu/ops.cpp"},
    {"alibi-slopes", "ctranslate2", "the paper's rule for such numbers", as_the_config_says, kCtRope},
    {"alibi-slopes", "mlx", "the paper's rule for such numbers", as_the_config_says,
     "https://github.com/ml-explore/mlx/pull/3071", "2026-01-29", "the formula for powers of two, for any number"},
    {"alibi-slopes", "hf4", "the paper's rule for such numbers", as_the_config_says, kHf4Models},
    {"alibi-slopes", "exllamav3", "has no family with ALiBi", nullptr, kExllamaFamilies},

    {"alibi-rounding", "hf", "to bfloat16, then divided by the root of a head's features", as_the_config_says,
     "https://github.com/huggingface/transformers/blob/main/src/transformers/models/falcon/modeling_falcon.py"},
    {"alibi-rounding", "vllm", "not rounded, divided by the root of a head's features", with_float_slopes,
     "https://github.com/vllm-project/vllm/blob/main/vllm/model_executor/models/falcon.py"},
    {"alibi-rounding", "ctranslate2", "not rounded, divided by the root of a head's features (scale_alibi)",
     with_float_slopes, kCtRope},
    {"alibi-rounding", "hf4", "to bfloat16, then divided by the root of a head's features", as_the_config_says,
     kHf4Models},

    {"alibi-position", "hf", "slope times the key's position, rounded to the model's bfloat16", by_key_in_bf16,
     "https://github.com/huggingface/transformers/blob/main/src/transformers/models/bloom/modeling_bloom.py"},
    {"alibi-position", "vllm", "slope times distance, in float32", as_the_config_says,
     "https://github.com/vllm-project/vllm/pull/945"},
    {"alibi-position", "llama.cpp", "slope times distance, in float32", as_the_config_says,
     "https://github.com/ggml-org/llama.cpp/blob/master/ggml/src/ggml-cpu/ops.cpp"},
    {"alibi-position", "ctranslate2", "slope times the key's position, in the type of computation (here float32)",
     as_the_config_says, kCtRope},
    {"alibi-position", "hf4", "slope times the key's position, rounded to the model's bfloat16", by_key_in_bf16,
     kHf4Models},

    {"version-4", "hf4", "has no such family", nullptr, kHf4Models},
    {"version-4", "hf", "has it", as_the_config_says,
     "https://github.com/huggingface/transformers/tree/main/src/transformers/models"},

    {"rope-parameters", "hf", "rope_parameters; rope_theta and rope_scaling are copied there", as_the_config_says,
     kHfRope, "2025-10-17", "rope_theta and rope_scaling alone"},
    {"rope-parameters", "hf4", "rope_theta and rope_scaling alone: its class's base, and no scaling", as_version_4,
     kHf4Models},
    {"rope-parameters", "vllm", "rope_parameters, as the transformers that it is installed with", as_the_config_says,
     "https://github.com/vllm-project/vllm/blob/main/vllm/transformers_utils/config.py"},
    {"rope-parameters", "sglang", "rope_parameters; rope_theta and rope_scaling where they are missing",
     as_the_config_says,
     "https://github.com/sgl-project/sglang/blob/main/python/sglang/srt/utils/hf_transformers/common.py"},
    {"rope-parameters", "llama.cpp", "rope_parameters, when the file is converted", as_the_config_says,
     "https://github.com/ggml-org/llama.cpp/blob/master/conversion/base.py"},

    {"base-key", "hf", "rope_theta, or its default", as_the_config_says,
     "https://github.com/huggingface/transformers/tree/main/src/transformers/models/dbrx"},
    {"base-key", "vllm", "attn_config.rope_theta", with_other_base,
     "https://github.com/vllm-project/vllm/blob/main/vllm/model_executor/models/dbrx.py"},
    {"base-key", "llama.cpp", "attn_config.rope_theta, when the file is converted", with_other_base,
     "https://github.com/ggml-org/llama.cpp/blob/master/conversion/dbrx.py"},
    {"base-key", "hf4", "attn_config.rope_theta", with_other_base, kHf4Models},
    {"base-key", "sglang", "attn_config.rope_theta", with_other_base,
     "https://github.com/sgl-project/sglang/blob/main/python/sglang/srt/models/dbrx.py"},

    {"rotary-dim", "hf", "partial_rotary_factor, or the whole head, though MiniMax-M2 was trained with rotary_dim",
     with_hf_dims, "https://github.com/huggingface/transformers/pull/43407", "2026-01-23", "rotary_dim"},
    {"rotary-dim", "vllm", "rotary_dim", with_other_dims,
     "https://github.com/vllm-project/vllm/blob/main/vllm/model_executor/models/minimax_m2.py"},
    {"rotary-dim", "llama.cpp", "rotary_dim, when the file is converted", with_other_dims,
     "https://github.com/ggml-org/llama.cpp/blob/master/conversion/minimax.py"},
    {"rotary-dim", "sglang", "rotary_dim", with_other_dims,
     "https://github.com/sgl-project/sglang/blob/main/python/sglang/srt/models/minimax_m2.py"},
    {"rotary-dim", "exllamav3", "rotary_dim", with_other_dims,
     "https://github.com/turboderp-org/exllamav3/blob/master/exllamav3/model/config.py"},

    {"rotary-share", "hf", "the whole head, though the weights were trained with half of it", with_hf_dims,
     "https://github.com/huggingface/transformers/pull/39847", "2025-10-17", "partial_rotary_factor: half of it"},
    {"rotary-share", "hf4", "partial_rotary_factor: half of it", as_the_config_says,
     "https://github.com/huggingface/transformers/blob/v4.50.0/src/transformers/models/recurrent_gemma/"
     "modeling_recurrent_gemma.py"},

    {"temperature", "hf", "as the config says, in float32", as_the_config_says,
     "https://github.com/huggingface/transformers/tree/main/src/transformers/models/llama4"},
    {"temperature", "vllm", "as the config says", as_the_config_says,
     "https://github.com/vllm-project/vllm/pull/28145", "2025-11-06", "Llama 4's alone; none for Mistral's"},
    {"temperature", "llama.cpp", "Llama 4: 0.1 and 8192 whatever the config says; Mistral: as the file says",
     with_llama4_temperature, "https://github.com/ggml-org/llama.cpp/blob/master/src/models/llama4.cpp"},
    {"temperature", "hf4", "as the config says, in float32", as_the_config_says, kHf4Models},
    {"temperature", "sglang", "Llama 4: as the config says; Mistral: steps of 16,384 whatever rope_parameters says",
     with_mistrals_steps, "https://github.com/sgl-project/sglang/blob/main/python/sglang/srt/models/ministral3.py"},

    {"angle-precision", "hf", "position times frequency in float32", with_hf_angles, kHfRope},
    {"angle-precision", "vllm", "the same, its cosines and sines kept in the model's bfloat16", with_bf16_table,
     "https://github.com/vllm-project/vllm/blob/main/vllm/model_executor/layers/rotary_embedding/base.py"},
    {"angle-precision", "llama.cpp", "one ratio multiplied in from pair to pair in float32 (on the CPU)",
     with_ggml_angles, "https://github.com/ggml-org/llama.cpp/blob/master/ggml/src/ggml-cpu/ops.cpp"},
    {"angle-precision", "ctranslate2", "position times frequency in float32", with_hf_angles, kCtRope},
    {"angle-precision", "hf4", "position times frequency in float32", with_hf_angles, kHf4Rope},
    {"angle-precision", "sglang", "position times frequency in float32, kept in float32 (on CUDA)", with_hf_angles,
     "https://github.com/sgl-project/sglang/blob/main/python/sglang/srt/layers/rotary_embedding/base.py"},
    {"angle-precision", "exllamav3",
     "position times frequency in float32; its sine and cosine are the GPU's fast ones, which are not computed here",
     with_hf_angles, kExllamaKernel},
    {"angle-precision", "exact", "the mathematical angle", as_the_config_says, "https://arxiv.org/abs/2104.09864"},
});

}  // namespace

std::span<const EngineVersion> engine_versions() noexcept {
  static constexpr auto kVersions = std::to_array<EngineVersion>({
      {"hf", "transformers 5.16.0.dev0 (d56c55bf)", "2026-08-21"},
      {"hf4", "transformers 4.57.6 (753d6110)", "2026-01-16"},
      {"sglang", "cce0a124", "2026-08-23"},
      {"vllm", "a014e35f", "2026-08-22"},
      {"llama.cpp", "b21e4de7", "2026-08-22"},
      {"ctranslate2", "4.8.1 (0d8bcd36)", "2026-07-03"},
      {"exllamav3", "1.4.1 (4f8ad01)", "2026-08-08"},
      {"mlx", "mlx 0.32.2 (846d1762) and mlx-lm 0.32.0 (d78bf58e)", "2026-08-22"},
  });
  return kVersions;
}
std::span<const EngineRule> engine_rules() noexcept { return kRules; }

}  // namespace posenc::models
