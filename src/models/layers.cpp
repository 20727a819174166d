#include "models/layers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "formats/excerpt.h"
#include "models/families.h"
#include "posenc/error.h"

namespace posenc::models {
namespace {

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
  if (facts.is_listed) return;
  for (std::size_t i = 0; i < facts.layers.size(); ++i) {
    set_type(facts.layers[i], is(static_cast<std::int64_t>(i)) ? one : others);
  }
}

// n of "every n-th layer". A pattern in letters, such as LLLG, has the period of its length.
std::int64_t period_of(const LayerFacts& facts) {
  const std::int64_t every = facts.family.layers.every;
  const std::string_view key = facts.family.layers.every_key;
  if (!key.empty() && find(facts.config, key) != nullptr) {
    if (const auto* const letters = find(facts.config, key)->as<std::string>()) {
      return static_cast<std::int64_t>(letters->size());
    }
    return integer(facts.config, key, 0).value_or(0);
  }
  const auto kept = integer(facts.config, "_sliding_window_pattern");  // as transformers 5 keeps the old key
  if (kept) return *kept;
  if (every > 0) {
    const std::int64_t first = (every - facts.family.layers.shift % every) % every + 1;
    note(facts.remarks.assumed,
         fmt::format("layer {} of every {} differs (the family's default; layer_types is not given)", first, every));
  }
  return every;
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
  const std::size_t further = integer(facts.config, "num_nextn_predict_layers", 0).value_or(0);
  if (further > 0 && list.size() == facts.layers.size() + further) list.resize(facts.layers.size());
  check_size(key, list.size(), facts.layers.size());
  for (std::size_t i = 0; i < list.size(); ++i) set_type(facts.layers[i], current_name(list[i]));
  return true;
}

// Whether a list of numbers has this layer.
bool lists(const std::vector<double>& list, std::int64_t layer) {
  return std::find(list.begin(), list.end(), static_cast<double>(layer)) != list.end();
}

// The name says the opposite of what it means: 1 rotates, 0 does not; without a list, every n-th does not.
void by_no_rope_list(LayerFacts& facts) {
  const auto list = numbers(facts.config, "no_rope_layers");
  if (list && !list->empty()) {
    check_size("no_rope_layers", list->size(), facts.layers.size());
    for (std::size_t i = 0; i < list->size(); ++i) facts.layers[i].rotates = (*list)[i] != 0;
    return;
  }
  const std::int64_t period = period_of(facts);
  for (std::size_t i = 0; i < facts.layers.size(); ++i) {
    facts.layers[i].rotates = period <= 0 || (static_cast<std::int64_t>(i) + 1) % period != 0;
  }
}

// What layers are if the file should list some and does not.
void all_full(LayerFacts& facts) {
  const Pattern& pattern = facts.family.layers;
  if (!facts.is_listed && (pattern.picked == kLinear || pattern.others == kLinear)) {
    note(facts.remarks.assumed, fmt::format("all layers are attention ({} is not given)", pattern.list_key));
  }
  by(facts, kFull, kFull, [](std::int64_t) { return true; });
}

// Every n-th layer, without those that the family or its file names in another way.
void by_period(LayerFacts& facts) {
  const Pattern& pattern = facts.family.layers;
  const std::int64_t last = std::ssize(facts.layers) - 1;
  const bool is_fixed = pattern.every == 1 || pattern.is_from_end || pattern.picks_first;  // by no key
  const std::int64_t period = facts.is_listed || is_fixed ? pattern.every : period_of(facts);
  if (period <= 0) return;
  by(facts, pattern.picked, pattern.others, [&](std::int64_t i) {
    return (pattern.is_from_end ? last - i : i + pattern.shift) % period == 0 || (pattern.picks_first && i == 0);
  });
}

// The layers that the file lists; false if it has no list.
bool by_list(LayerFacts& facts) {
  const Pattern& pattern = facts.family.layers;
  const auto list = pattern.list_key.empty() ? std::nullopt : numbers(facts.config, pattern.list_key);
  if (!list || (list->empty() && pattern.every > 0)) return false;
  by(facts, pattern.picked, pattern.others,
     [&](std::int64_t i) { return lists(*list, i + pattern.list_from) != pattern.lists_others; });
  return true;
}

}  // namespace

void note_none(Remarks& remarks, std::string_view layer_type) {
  note(remarks.assumed, fmt::format("no positional encoding in {} (from the family's code; the file does not say so)",
                                    layer_type.empty() ? std::string("any layer") : excerpt(layer_type) + " layers"));
}

void by_pattern(LayerFacts& facts) {
  const Pattern& pattern = facts.family.layers;
  if (pattern.needs_window && find(facts.config, "sliding_window") == nullptr) return;
  if (!by_list(facts)) {
    if (pattern.every > 0) by_period(facts);
    if (pattern.every == 0 && !pattern.list_key.empty()) {
      if (pattern.lists_all) by(facts, pattern.picked, pattern.others, [](std::int64_t) { return false; });
      if (!pattern.lists_all) all_full(facts);
    }
  }
  if (pattern.picks_last && !facts.layers.empty() && !facts.layers.back().type.empty()) {
    set_type(facts.layers.back(), pattern.picked);
  }
  if (!pattern.only_others_rotate) return;
  const std::int64_t last = std::ssize(facts.layers) - 1;
  for (std::int64_t i = 0; i <= last; ++i) {
    Layer& layer = facts.layers[i];
    const bool is_picked = pattern.is_from_end ? (last - i) % pattern.every == 0 : layer.type == pattern.picked;
    layer.rotates = layer.rotates && !is_picked;
  }
}

// transformers 5.16 (d56c55bf), configuration_smollm3.py
void sliding_by_no_rope_list(LayerFacts& facts) {
  by_no_rope_list(facts);
  if (facts.is_listed || !holds(facts.config, "use_sliding_window sliding_window")) return;
  for (Layer& layer : facts.layers) layer.type = layer.rotates ? kFull : kSliding;
}

void chunks_by_no_rope_list(LayerFacts& facts) {
  by_no_rope_list(facts);
  if (facts.is_listed) return;
  for (Layer& layer : facts.layers) layer.type = layer.rotates ? "chunked_attention" : kFull;
}

void by_hybrid_pattern(LayerFacts& facts) {
  by_pattern(facts);
  if (facts.is_listed || !is_given(facts.config, "hybrid_layer_pattern")) return;
  // in the files as published: 1 slides
  const std::vector<double> list = *numbers(facts.config, "hybrid_layer_pattern");
  check_size("hybrid_layer_pattern", list.size(), facts.layers.size());
  for (std::size_t i = 0; i < list.size(); ++i) {
    if ((list[i] != 0) == (facts.layers[i].type == kSliding)) continue;
    note(facts.remarks.warnings, "hybrid_layer_pattern is ignored: transformers reads layer_types; vLLM reads it");
    return;
  }
}

// transformers 5.16 (d56c55bf), modeling_minimax.py: the mask of full_attention is that of a window where there is one
void window_on_full(LayerFacts& facts) {
  by_pattern(facts);
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
  by_pattern(facts);
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
  if (facts.is_listed) return;
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
  if (letters && !facts.is_listed) {
    check_size("hybrid_override_pattern", letters->size(), facts.layers.size());
    for (std::size_t i = 0; i < letters->size(); ++i) {
      const char letter = (*letters)[i];
      set_type(facts.layers[i], letter == '*' ? kFull : letter == 'M' ? kLinear : letter == 'E' ? "moe" : "mlp");
    }
  }
  for (Layer& layer : facts.layers) layer.rotates = false;
}

void by_compress_ratios(LayerFacts& facts) {
  if (facts.is_listed) return;
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
  note(facts.remarks.assumed,
       "layers 0 and 1 and every second one after compress heavily (compress_ratios not given)");
}

// [[["global", "local"], 12]]: the list repeated 12 times.
void by_attention_types(LayerFacts& facts) {
  constexpr std::string_view kKey = "attention_types", kRule = "a list of [types, count]";
  if (!is_given(facts.config, kKey)) {
    note(facts.remarks.assumed, "every second layer slides (attention_types is not given)");
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
  const std::string_view key = facts.family.window.key;
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

bool is_attention(std::string_view type) { return !has_word(kNoAttention, type); }

bool is_known_type(std::string_view type) {
  return type.empty() || has_word(kAttention, type) || has_word(kNoAttention, type);
}

bool is_sliding(std::string_view type) { return type == kSliding || type == "hybrid_sliding"; }

std::vector<Layer> layers_of(const Config& config, const Family& family, std::int64_t count, Remarks& remarks) {
  std::vector<Layer> layers(count);
  LayerFacts facts{config, family, remarks, layers};
  facts.is_listed = family.part.empty() && read_layer_types(facts);
  family.layers.rule(facts);
  return layers;
}

}  // namespace posenc::models
