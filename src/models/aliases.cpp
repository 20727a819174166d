#include "posenc/aliases.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "posenc/error.h"
#include "posenc/scheme.h"

namespace posenc {
namespace {

struct OtherName {
  std::string_view other, ours;
};

constexpr auto kSchemes = std::to_array<OtherName>({
    {"rotary", "rope"},
    {"rotary-embedding", "rope"},
    {"roformer", "rope"},
    {"sincos", "sinusoidal"},
    {"sin-cos", "sinusoidal"},
    {"sinusoid", "sinusoidal"},
    {"absolute", "learned"},
    {"wpe", "learned"},
    {"nope", "none"},
    {"t5-bias", "t5"},
    {"relative-key", "shaw"},
    {"disentangled", "deberta"},
    {"fox", "forget-gate"},
    {"forgetting-transformer", "forget-gate"},
    {"contextual", "cope"},
});

// Values of layout, as named by vLLM (is_neox_style) and mlx (traditional).
constexpr auto kChoices = std::to_array<OtherName>({
    {"neox", "halves"},
    {"half", "halves"},
    {"rotate-half", "halves"},
    {"gptj", "interleaved"},
    {"gpt-j", "interleaved"},
    {"traditional", "interleaved"},
});

// Types of scaling in config.json.
constexpr auto kScalings = std::to_array<OtherName>({
    {"default", "none"},
    {"mrope", "none"},
    {"su", "longrope"},
    {"deepseek-yarn", "yarn"},
});

struct FieldNames {
  std::string_view field;
  std::array<std::string_view, 5> others;
  std::size_t count;
};
template <class... Name> constexpr FieldNames names(std::string_view field, Name... others) {
  return {field, {std::string_view(others)...}, sizeof...(Name)};
}
constexpr std::array kFields = {
    names("base", "theta", "rope_theta", "rotary_emb_base", "freq_base"),
    names("dims", "head_dim", "rotary_dim", "rope_dim", "qk_rope_head_dim"),
    names("width", "d_model", "hidden_size", "embed_dim", "embedding_dim"),
    names("rows", "max_len", "max_position_embeddings", "n_positions"),
    names("heads", "num_heads", "num_attention_heads", "n_head"),
    names("sections", "mrope_section"),
    names("buckets", "num_buckets", "relative_attention_num_buckets", "position_buckets"),
    names("max_distance", "relative_attention_max_distance", "max_relative_positions"),
    names("max_bias", "alibi_bias_max"),
    names("left", "left_max_position_embeddings"),
    names("right", "right_max_position_embeddings"),
    names("original_length", "original_max_position_embeddings"),
    names("short_factors", "short_factor"),
    names("long_factors", "long_factor"),
    names("proportion", "partial_rotary_factor"),
};

// In lower case and with dashes.
std::string plain(std::string_view name) {
  std::string text(name);
  for (char& letter : text) {
    if (letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter - 'A' + 'a');
    if (letter == '_') letter = '-';
  }
  return text;
}

template <std::size_t N> std::string_view meant(std::string_view name, const std::array<OtherName, N>& list) {
  const std::string wanted = plain(name);
  for (const OtherName& one : list) {
    if (one.other == wanted || one.ours == wanted) return one.ours;
  }
  return {};
}

// Keys that config.json has in addition to those of its rope_type, and that change no frequency.
bool is_without_effect(std::string_view key, const Json& json) {
  const auto* const name = json.find<std::string>("rope_type");
  const std::string_view type = name == nullptr ? "" : std::string_view(*name);
  if (key == "finetuned" || key == "mrope_section" || key == "mrope_interleaved") return true;
  if (key == "original_max_position_embeddings") return type == "linear" || type == "default";
  if (key == "partial_rotary_factor") return type != "proportional";
  // Hunyuan's dynamic scaling has alpha and keys of other scalings
  const bool has_alpha = type == "dynamic" && json.find("alpha") != nullptr;
  return has_alpha && key != "alpha";
}

}  // namespace

std::string_view scheme_meant(std::string_view name) {
  if (const std::string_view other = meant(name, kSchemes); !other.empty()) return other;
  const std::string wanted = plain(name);
  for (const std::string_view ours : scheme_names()) {
    if (ours == wanted) return ours;
  }
  return name;
}

std::span<const std::string_view> other_names(std::string_view field) noexcept {
  for (const FieldNames& one : kFields) {
    if (one.field == field) return {one.others.data(), one.count};
  }
  return {};
}

std::string_view field_meant(std::string_view name) {
  const std::string wanted = plain(name);
  for (const FieldNames& one : kFields) {
    const bool is_other = std::any_of(one.others.begin(), one.others.begin() + static_cast<std::ptrdiff_t>(one.count),
                                      [&](std::string_view other) { return plain(other) == wanted; });
    if (is_other || plain(one.field) == wanted) return one.field;
  }
  return {};
}

std::string_view choice_meant(std::string_view name) {
  const std::string_view other = meant(name, kChoices);
  return other.empty() ? name : other;
}

Json scaling_meant(const Json& json) {
  const auto* const members = json.as<Json::Object>();
  if (members == nullptr) return json;
  Json::Object object;
  const Json* const older = json.find("type");
  const bool is_config = json.find("rope_type") != nullptr;
  for (const auto& [key, value] : *members) {
    // config.json may have both; they mean the same
    if (key == "rope_type" && older != nullptr) continue;
    if (key != "rope_type" && key != "type") {
      if (is_config && key == "rope_theta") raise("scaling: rope_theta is no part of it: give it as base");
      if (is_config && is_without_effect(key, json)) continue;
      object.emplace_back(key, value);
      continue;
    }
    std::string type = value.as<std::string>() == nullptr ? "" : *value.as<std::string>();
    if (const std::string_view other = meant(type, kScalings); !other.empty()) type = other;
    // Hunyuan's dynamic scaling
    const Json* const alpha = json.find("alpha");
    if (type == "dynamic" && alpha != nullptr && alpha->as<std::nullptr_t>() == nullptr) type = "alpha";
    object.emplace_back("type", type.empty() ? value : Json(type));
  }
  return object;
}

}  // namespace posenc
