#include "models/layers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "formats/excerpt.h"
#include "models/families.h"
#include "posenc/error.h"

namespace posenc::models {
namespace {

constexpr std::string_view kSliding = "sliding_attention", kFull = "full_attention", kLinear = "linear_attention";

// The types of layers of transformers 5.16 (d56c55bf), configuration_utils.py: ALLOWED_ATTN_LAYER_TYPES, with the
// older names that current_name keeps, and the types of our own rules.
constexpr std::string_view kAttention =
    "full_attention sliding_attention chunked_attention window_attention cross_attention hybrid hybrid_sliding "
    "compressed_sparse_attention heavily_compressed_attention minimax_m3_sparse deepseek_sparse_attention";
constexpr std::string_view kNoAttention = "linear_attention conv moe mlp rglru";

void check_size(std::string_view key, std::size_t size, std::size_t count) {
  if (size == count) return;
  raise(fmt::format("{} must have {} entries, one for each layer, but has {}", key, count, size));
}

// Older names for the same types.
std::string current_name(const std::string& type) {
  if (type == "mamba" || type == "mamba2" || type == "recurrent") return std::string(kLinear);
  if (type == "attention") return std::string(kFull);
  return type;
}

void set_type(Layer& layer, std::string_view type) {
  layer.type = type;
  layer.rotates = is_attention(type);
}

template <class Is> void by(LayerFacts& facts, std::string_view one, std::string_view others, const Is& is) {
  if (facts.are_listed) return;
  for (std::size_t i = 0; i < facts.layers.size(); ++i) {
    set_type(facts.layers[i], is(static_cast<std::int64_t>(i)) ? one : others);
  }
}

// n of "every n-th layer". A pattern in letters, such as LLLG, has the period of its length.
std::int64_t period_of(const LayerFacts& facts) {
  const std::string_view key = facts.family.every_key;
  if (!key.empty() && find(facts.config, key) != nullptr) {
    if (const auto* const letters = find(facts.config, key)->as<std::string>()) {
      return static_cast<std::int64_t>(letters->size());
    }
    return integer(facts.config, key, 0).value_or(0);
  }
  const auto kept = integer(facts.config, "_sliding_window_pattern");  // as transformers 5 keeps the old key
  if (kept) return *kept;
  if (facts.family.every > 0) {
    say(facts.remarks.assumed,
        fmt::format("layer {} of every {} differs (the family's default; layer_types is not given)",
                    facts.family.every, facts.family.every));
  }
  return facts.family.every;
}

void by_period(LayerFacts& facts, std::string_view one, std::string_view others, std::int64_t shift) {
  if (facts.are_listed) return;
  const std::int64_t period = period_of(facts);
  if (period > 0) by(facts, one, others, [&](std::int64_t i) { return (i + shift) % period == 0; });
}

bool uses_window(const Config& config) {
  const Json* const flag = find(config, "use_sliding_window");
  const bool is_off = flag != nullptr && flag->as<bool>() != nullptr && !*flag->as<bool>();
  return !is_off && find(config, "sliding_window") != nullptr;
}

bool read_layer_types(LayerFacts& facts) {
  const std::string_view key = first_of(facts.config, {"layer_types", "layers_block_type"});
  if (key.empty()) return false;
  const Json* const json = find(facts.config, key);
  const auto* const array = json->as<Json::Array>();
  // a class's own list applies only to its own number of layers
  if (!is_given(facts.config, key) && array != nullptr && array->size() != facts.layers.size()) return false;
  std::vector<std::string> list = *texts(facts.config, key);
  // Step 3.5 also lists the layers that predict further tokens
  const auto further = static_cast<std::size_t>(integer(facts.config, "num_nextn_predict_layers", 0).value_or(0));
  if (further > 0 && list.size() == facts.layers.size() + further) list.resize(facts.layers.size());
  check_size(key, list.size(), facts.layers.size());
  for (std::size_t i = 0; i < list.size(); ++i) set_type(facts.layers[i], current_name(list[i]));
  return true;
}

// Whether a list of numbers has this layer.
bool lists(const std::vector<double>& list, std::int64_t layer) {
  return std::find(list.begin(), list.end(), static_cast<double>(layer)) != list.end();
}

}  // namespace

void say_none(Remarks& remarks, std::string_view layer_type) {
  say(remarks.assumed, fmt::format("no positional encoding in {} (from the family's code; the file does not say so)",
                                   layer_type.empty() ? std::string("any layer") : excerpt(layer_type) + " layers"));
}

void all_alike(LayerFacts&) {}

void all_full(LayerFacts& facts) {
  by(facts, kFull, kFull, [](std::int64_t) { return true; });
}

void all_hybrid(LayerFacts& facts) {
  by(facts, "hybrid", "hybrid", [](std::int64_t) { return true; });
}

void all_linear(LayerFacts& facts) {
  by(facts, kLinear, kLinear, [](std::int64_t) { return true; });
}

void by_no_rope_list(LayerFacts& facts) {
  const auto list = numbers(facts.config, "no_rope_layers");
  if (list && !list->empty()) {
    check_size("no_rope_layers", list->size(), facts.layers.size());
    // the name says the opposite of what it means
    for (std::size_t i = 0; i < list->size(); ++i) facts.layers[i].rotates = (*list)[i] != 0;
    return;
  }
  const std::int64_t period = period_of(facts);
  for (std::size_t i = 0; i < facts.layers.size(); ++i) {
    facts.layers[i].rotates = period <= 0 || (static_cast<std::int64_t>(i) + 1) % period != 0;
  }
}

// transformers 5.16 (d56c55bf), configuration_smollm3.py
void sliding_by_no_rope_list(LayerFacts& facts) {
  by_no_rope_list(facts);
  if (facts.are_listed || !holds(facts.config, "use_sliding_window sliding_window")) return;
  for (Layer& layer : facts.layers) layer.type = layer.rotates ? kFull : kSliding;
}

void chunks_by_no_rope_list(LayerFacts& facts) {
  by_no_rope_list(facts);
  if (facts.are_listed) return;
  for (Layer& layer : facts.layers) layer.type = layer.rotates ? "chunked_attention" : kFull;
}

void only_sliding_rotate(LayerFacts& facts) {
  by_period(facts, kFull, kSliding, 1);
  for (Layer& layer : facts.layers) layer.rotates = layer.rotates && layer.type != kFull;
}

void sliding_or_all_rotate(LayerFacts& facts) {
  if (find(facts.config, "sliding_window") == nullptr) return;
  only_sliding_rotate(facts);
}

void nth_is_full(LayerFacts& facts) { by_period(facts, kFull, kSliding, 1); }

void nth_and_last_are_full(LayerFacts& facts) {
  nth_is_full(facts);
  if (!facts.layers.empty() && !facts.layers.back().type.empty()) set_type(facts.layers.back(), kFull);
}

void nth_is_full_from_0(LayerFacts& facts) { by_period(facts, kFull, kSliding, 0); }

void nth_is_full_from_end(LayerFacts& facts) {
  const std::int64_t last = std::ssize(facts.layers) - 1, period = std::max<std::int64_t>(facts.family.every, 1);
  by(facts, kFull, kSliding, [&](std::int64_t i) { return (last - i) % period == 0; });
  const bool has_bases = is_given(facts.config, "layer_rope_theta");
  if (has_bases) return by_base_list(facts);
  for (std::int64_t i = 0; i <= last; ++i) {
    facts.layers[static_cast<std::size_t>(i)].rotates = (last - i) % period != 0;
  }
}

void first_and_nth_are_full(LayerFacts& facts) {
  const std::int64_t period = std::max<std::int64_t>(facts.family.every, 1);
  by(facts, kFull, kSliding, [&](std::int64_t i) { return i == 0 || (i + 1) % period == 0; });
  if (facts.are_listed || !is_given(facts.config, "hybrid_layer_pattern")) return;
  // in the files as published: 1 slides
  const std::vector<double> list = *numbers(facts.config, "hybrid_layer_pattern");
  check_size("hybrid_layer_pattern", list.size(), facts.layers.size());
  for (std::size_t i = 0; i < list.size(); ++i) {
    if ((list[i] != 0) == (facts.layers[i].type == kSliding)) continue;
    say(facts.remarks.warnings, "hybrid_layer_pattern is ignored: transformers reads layer_types; vLLM reads it");
    return;
  }
}

void nth_is_attention(LayerFacts& facts) { by_period(facts, kFull, kLinear, 1); }

// transformers 5.16 (d56c55bf), modeling_minimax.py: the mask of full_attention is that of a window where there is one
void nth_is_linear(LayerFacts& facts) {
  by_period(facts, kLinear, kFull, 1);
  const auto window = integer(facts.config, "sliding_window");
  for (Layer& layer : facts.layers) {
    if (layer.type == kFull) layer.window = window;
  }
}

void sliding_after_some(LayerFacts& facts) {
  if (!uses_window(facts.config)) return all_full(facts);
  const std::int64_t first = integer(facts.config, "max_window_layers", 0).value_or(0);
  by(facts, kSliding, kFull, [&](std::int64_t i) { return i >= first; });
}

void sliding_before_some(LayerFacts& facts) {
  if (!uses_window(facts.config)) return all_full(facts);
  const std::int64_t end = integer(facts.config, "max_window_layers", 0).value_or(0);
  by(facts, kSliding, kFull, [&](std::int64_t i) { return i < end && (i + 1) % 2 != 0; });
}

void sliding_if_given(LayerFacts& facts) {
  if (!uses_window(facts.config)) return all_full(facts);
  by(facts, kSliding, kSliding, [](std::int64_t) { return true; });
}

void by_base_list(LayerFacts& facts) {
  if (facts.family.every > 0) nth_is_full_from_0(facts);
  const std::string_view key = "layer_rope_theta";
  const Json* const json = find(facts.config, key);
  if (json == nullptr) return;
  const auto* const list = json->as<Json::Array>();
  if (list == nullptr) refuse(facts.config, key, "a list with the base of each layer");
  check_size(key, list->size(), facts.layers.size());
  for (std::size_t i = 0; i < list->size(); ++i) {
    const Json& one = (*list)[i];
    const auto* const whole = one.as<std::int64_t>();
    const auto* const number = one.as<double>();
    facts.layers[i].base = whole != nullptr ? static_cast<double>(*whole) : number != nullptr ? *number : 0;
    facts.layers[i].rotates = facts.layers[i].base > 0;
  }
}

void by_cross_list(LayerFacts& facts) {
  const std::vector<double> list = numbers(facts.config, "cross_attention_layers").value_or(std::vector<double>{});
  by(facts, "cross_attention", kFull, [&](std::int64_t i) { return lists(list, i); });
  for (Layer& layer : facts.layers) layer.rotates = layer.type != "cross_attention";
}

void by_attention_list(LayerFacts& facts) {
  if (facts.are_listed) return;
  const std::string_view key = facts.family.every_key;
  if (!is_given(facts.config, key)) {
    say(facts.remarks.assumed, fmt::format("all layers are attention ({} is not given)", key));
    return all_full(facts);
  }
  const std::vector<double> list = *numbers(facts.config, key);
  by(facts, kFull, kLinear, [&](std::int64_t i) { return lists(list, i); });
}

// vLLM a014e35f, transformers_utils/configs/kimi_linear.py: is_kda_layer
void by_delta_list(LayerFacts& facts) {
  constexpr std::string_view kKey = "linear_attn_config.kda_layers";
  if (!is_given(facts.config, kKey)) {
    say(facts.remarks.assumed, fmt::format("all layers are attention ({} is not given)", kKey));
    return all_full(facts);
  }
  const std::vector<double> list = *numbers(facts.config, kKey);
  by(facts, kLinear, kFull, [&](std::int64_t i) { return lists(list, i + 1); });
}

void by_sliding_list(LayerFacts& facts) {
  const auto list = numbers(facts.config, facts.family.every_key);
  if (!list) return all_full(facts);
  by(facts, kSliding, kFull, [&](std::int64_t i) { return lists(*list, i); });
}

void by_attention_period(LayerFacts& facts) {
  const std::int64_t period = integer(facts.config, "attn_layer_period").value_or(1);
  const std::int64_t offset = integer(facts.config, "attn_layer_offset", 0).value_or(0);
  by(facts, kFull, kLinear, [&](std::int64_t i) { return i % period == offset; });
  for (Layer& layer : facts.layers) layer.rotates = false;
}

// configuration_zamba.py
void by_zambas_period(LayerFacts& facts) {
  const std::int64_t period = integer(facts.config, "attn_layer_period").value_or(1);
  const std::int64_t offset = integer(facts.config, "attn_layer_offset", 0).value_or(0);
  by(facts, "hybrid", kLinear, [&](std::int64_t i) { return i == 2 || (i > 2 && (i - 3) % period == offset); });
  for (Layer& layer : facts.layers) layer.rotates = false;
}

void by_repeated_types(LayerFacts& facts) {
  if (facts.are_listed) return;
  const auto list = texts(facts.config, "block_types");
  if (!list || list->empty()) return;
  for (std::size_t i = 0; i < facts.layers.size(); ++i) {
    const std::string type = current_name((*list)[i % list->size()]);
    set_type(facts.layers[i], type == kFull ? kSliding : std::string_view(type));
  }
}

void by_letters(LayerFacts& facts) {
  const Json* const json = find(facts.config, "hybrid_override_pattern");
  std::string joined;
  if (json != nullptr && json->as<Json::Array>() != nullptr) {
    const std::vector<std::string> list = *texts(facts.config, "hybrid_override_pattern");
    for (const std::string& letter : list) joined += letter;
  }
  const auto letters = !joined.empty() ? std::optional(joined) : text(facts.config, "hybrid_override_pattern");
  if (letters && !facts.are_listed) {
    check_size("hybrid_override_pattern", letters->size(), facts.layers.size());
    for (std::size_t i = 0; i < letters->size(); ++i) {
      const char letter = (*letters)[i];
      set_type(facts.layers[i], letter == '*' ? kFull : letter == 'M' ? kLinear : letter == 'E' ? "moe" : "mlp");
    }
  }
  for (Layer& layer : facts.layers) layer.rotates = false;
}

void by_compress_ratios(LayerFacts& facts) {
  if (facts.are_listed) return;
  constexpr std::string_view kSparse = "compressed_sparse_attention", kHeavy = "heavily_compressed_attention";
  if (is_given(facts.config, "compress_ratios")) {
    // the list may continue with layers that predict further tokens
    const std::vector<double> list = *numbers(facts.config, "compress_ratios");
    if (list.size() < facts.layers.size()) check_size("compress_ratios", list.size(), facts.layers.size());
    for (std::size_t i = 0; i < facts.layers.size(); ++i) {
      set_type(facts.layers[i], list[i] == 0 ? kSliding : list[i] < 128 ? kSparse : kHeavy);
    }
    return;
  }
  by(facts, kHeavy, kSparse, [](std::int64_t i) { return i < 2 || i % 2 == 0; });
  say(facts.remarks.assumed,
      "layers 0 and 1 and every second one after compress heavily (compress_ratios not given)");
}

// [[["global", "local"], 12]]: the list repeated 12 times.
void by_attention_types(LayerFacts& facts) {
  constexpr std::string_view kKey = "attention_types", kRule = "a list of [types, count]";
  if (!is_given(facts.config, kKey)) {
    say(facts.remarks.assumed, "every second layer slides (attention_types is not given)");
    return by(facts, kFull, kSliding, [](std::int64_t i) { return i % 2 == 0; });
  }
  std::vector<std::string_view> types;
  const auto* const items = find(facts.config, kKey)->as<Json::Array>();
  if (items == nullptr) refuse(facts.config, kKey, kRule);
  for (const Json& item : *items) {
    const auto* const pair = item.as<Json::Array>();
    const auto* const names = pair == nullptr || pair->size() != 2 ? nullptr : pair->front().as<Json::Array>();
    const auto* const count = names == nullptr ? nullptr : pair->back().as<std::int64_t>();
    if (count == nullptr || names->empty()) refuse(facts.config, kKey, kRule);
    for (std::int64_t i = 0; i < *count && types.size() <= facts.layers.size(); ++i) {
      for (const Json& name : *names) {
        const auto* const word = name.as<std::string>();
        if (word == nullptr || (*word != "global" && *word != "local")) {
          refuse(facts.config, kKey, "of the types global and local");
        }
        types.push_back(*word == "global" ? kFull : kSliding);
      }
    }
  }
  check_size(kKey, types.size(), facts.layers.size());
  for (std::size_t i = 0; i < types.size(); ++i) set_type(facts.layers[i], types[i]);
}

void by_window_list(LayerFacts& facts) {
  by(facts, kSliding, kSliding, [](std::int64_t) { return true; });
  const std::string_view key = facts.family.window_key;
  const Json* const json = find(facts.config, key);
  if (json == nullptr || json->as<Json::Array>() == nullptr) return;
  const std::vector<double> list = *numbers(facts.config, key);
  check_size(key, list.size(), facts.layers.size());
  for (std::size_t i = 0; i < list.size(); ++i) {
    const bool is_fine = list[i] >= 1 && list[i] <= 0x1p53 && list[i] == std::floor(list[i]);
    if (!is_fine) refuse(facts.config, key, "an integer above 0, or a list of them");
    facts.layers[i].window = static_cast<std::int64_t>(list[i]);
  }
}

void by_local_ids(LayerFacts& facts) {
  if (const auto list = numbers(facts.config, "local_layer_ids"); list && !list->empty()) {
    return by(facts, "hybrid_sliding", "hybrid", [&](std::int64_t i) { return lists(*list, i); });
  }
  by_period(facts, "hybrid", "hybrid_sliding", 1);
}

void only_attention_in_list(LayerFacts& facts) {
  for (Layer& layer : facts.layers) layer.rotates = false;
}

bool is_attention(std::string_view type) { return !has_word(kNoAttention, type); }

bool is_known_type(std::string_view type) {
  return type.empty() || has_word(kAttention, type) || has_word(kNoAttention, type);
}

bool is_sliding(std::string_view type) { return type == kSliding || type == "hybrid_sliding"; }

std::vector<Layer> layers_of(const Config& config, const Family& family, std::int64_t count, Remarks& remarks) {
  std::vector<Layer> layers(static_cast<std::size_t>(count));
  LayerFacts facts{config, family, remarks, layers};
  facts.are_listed = family.part.empty() && read_layer_types(facts);
  family.rule(facts);
  return layers;
}

}  // namespace posenc::models
