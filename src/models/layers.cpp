#include "models/layers.h"

#include <fmt/format.h>

#include "formats/excerpt.h"
#include "posenc/error.h"

namespace posenc::models {
namespace {

constexpr std::string_view kSliding = "sliding_attention", kFull = "full_attention", kLinear = "linear_attention";

void check_size(std::string_view key, std::size_t size, std::int64_t count) {
  if (static_cast<std::int64_t>(size) == count) return;
  raise(fmt::format("{} must have {} entries, one for each layer, but has {}", key, count, size));
}

// n of "every n-th layer". A pattern in letters, as LLLG, is as long as it repeats.
std::int64_t period_of(const Config& config, const Family& family, Remarks& remarks) {
  if (!family.every_key.empty() && find(config, family.every_key) != nullptr) {
    if (const auto* const letters = find(config, family.every_key)->as<std::string>()) {
      return static_cast<std::int64_t>(letters->size());
    }
    return integer(config, family.every_key).value_or(1);
  }
  const auto hidden = integer(config, "_sliding_window_pattern");  // as transformers 5 keeps the old key
  if (hidden) return *hidden;
  if (family.every > 0) {
    say(remarks.assumed,
        fmt::format("every {}th layer differs (the family's default; layer_types is not given)", family.every));
  }
  return family.every;
}

bool read_layer_types(const Config& config, std::vector<Layer>& layers) {
  const Json* const json = find(config, "layer_types");
  if (json == nullptr) return false;
  const auto* const list = json->as<Json::Array>();
  if (list == nullptr) refuse(config, "layer_types", "a list of texts");
  check_size("layer_types", list->size(), std::ssize(layers));
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const auto* const type = (*list)[i].as<std::string>();
    if (type == nullptr) refuse(config, "layer_types", "a list of texts");
    layers[i].type = excerpt(*type);
    layers[i].turns = is_attention(layers[i].type);
  }
  return true;
}

void apply_no_rope_list(const Config& config, const Family& family, std::vector<Layer>& layers, Remarks& remarks) {
  const auto list = numbers(config, "no_rope_layers");
  if (list && !list->empty()) {
    check_size("no_rope_layers", list->size(), std::ssize(layers));
    // the name says the opposite of what it means
    for (std::size_t i = 0; i < layers.size(); ++i) layers[i].turns = (*list)[i] != 0;
    return;
  }
  const std::int64_t period = period_of(config, family, remarks);
  for (std::size_t i = 0; i < layers.size(); ++i) {
    layers[i].turns = period <= 0 || (static_cast<std::int64_t>(i) + 1) % period != 0;
  }
}

void apply_base_list(const Config& config, const Family& family, std::vector<Layer>& layers) {
  const Json* const json = find(config, family.base_key);
  if (json == nullptr) return;
  const auto* const list = json->as<Json::Array>();
  if (list == nullptr) refuse(config, family.base_key, "a list with the base of each layer");
  check_size(family.base_key, list->size(), std::ssize(layers));
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const Json& one = (*list)[i];
    const auto* const whole = one.as<std::int64_t>();
    const auto* const number = one.as<double>();
    layers[i].base = whole != nullptr ? static_cast<double>(*whole) : number != nullptr ? *number : 0;
    layers[i].turns = layers[i].base > 0;
  }
}

}  // namespace

bool is_attention(std::string_view type) {
  for (const std::string_view other : {"linear_attention", "mamba", "mamba2", "conv", "recurrent", "moe", "mlp"}) {
    if (type == other) return false;
  }
  return true;
}

std::vector<Layer> layers_of(const Config& config, const Family& family, std::int64_t count, Remarks& remarks) {
  std::vector<Layer> layers(static_cast<std::size_t>(count));
  const bool are_listed = read_layer_types(config, layers);
  const auto by_period = [&](std::string_view one, std::string_view others, std::int64_t shift) {
    if (are_listed) return;
    const std::int64_t period = period_of(config, family, remarks);
    if (period <= 0) return;
    for (std::size_t i = 0; i < layers.size(); ++i) {
      const bool is_one = (static_cast<std::int64_t>(i) + shift) % period == 0;
      layers[i].type = is_one ? one : others;
      layers[i].turns = is_attention(layers[i].type);
    }
  };
  switch (family.rule) {
    case LayerRule::kAlike:
      break;
    case LayerRule::kNoRopeList:
      apply_no_rope_list(config, family, layers, remarks);
      break;
    case LayerRule::kSlidingOrAll:
      if (find(config, "sliding_window") == nullptr) break;
      [[fallthrough]];
    case LayerRule::kSlidingTurns:
      by_period(kFull, kSliding, 1);
      for (Layer& layer : layers) layer.turns = layer.type != kFull;
      break;
    case LayerRule::kLocalGlobal:
      by_period(kFull, kSliding, 1);
      break;
    case LayerRule::kGlobalFirst:
      by_period(kFull, kSliding, 0);
      break;
    case LayerRule::kAttentionEvery:
      by_period(kFull, kLinear, 1);
      break;
    case LayerRule::kBaseList:
      apply_base_list(config, family, layers);
      break;
  }
  return layers;
}

}  // namespace posenc::models
