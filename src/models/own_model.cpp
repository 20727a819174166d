#include "models/own_model.h"

#include <fmt/format.h>

#include "posenc/error.h"

namespace posenc::models {
namespace {

constexpr std::string_view kOwnType = "posenc-lab";
constexpr std::int64_t kMostOwnLayers = 1 << 16;

const Json& own_key(const Json& config, std::string_view key) {
  const Json* const found = config.find(key);
  if (found == nullptr) raise(fmt::format("model_type \"{}\" needs the key \"{}\"", kOwnType, key));
  return *found;
}

std::int64_t own_count(const Json& config, std::string_view key, std::int64_t most) {
  const auto* const value = own_key(config, key).as<std::int64_t>();
  if (value == nullptr || *value < 1 || *value > most) {
    raise(fmt::format("{} must be a whole number from 1 to {}", key, most));
  }
  return *value;
}

}  // namespace

std::optional<Model> own_model(const Json& config) {
  const auto* const type = config.find<std::string>("model_type");
  if (type == nullptr || *type != kOwnType) return {};
  LayerGroup group;
  group.scheme = scheme_from_json(dump_json(own_key(config, "position")));
  group.scheme_name = name_of(*group.scheme);
  const auto* const causal = own_key(config, "is_causal").as<bool>();
  if (causal == nullptr) raise("is_causal must be true or false");
  group.is_causal = *causal;
  const std::int64_t layers = own_count(config, "num_hidden_layers", kMostOwnLayers);
  for (std::int64_t layer = 0; layer < layers; ++layer) group.layers.push_back(layer);
  Model model;
  model.model_type = kOwnType;
  model.trained_length = own_count(config, "max_position_embeddings", std::int64_t{1} << 53);
  model.usable_length = model.trained_length;
  model.groups.push_back(std::move(group));
  return model;
}

}  // namespace posenc::models
