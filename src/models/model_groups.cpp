#include "models/model_groups.h"

#include <utility>

namespace posenc::models {

std::vector<LayerGroup> grouped(std::vector<LayerGroup> layers) {
  std::vector<LayerGroup> groups;  // without their layers until the end
  std::vector<std::vector<std::int64_t>> members;
  std::vector<bool> is_mixed;
  for (LayerGroup& layer : layers) {
    const std::vector<std::int64_t> numbers = std::exchange(layer.layers, {});
    const std::string type = layer.layer_type;
    std::size_t at = 0;
    for (; at < groups.size(); ++at) {
      layer.layer_type = groups[at].layer_type;  // the type does not count
      if (groups[at] == layer) break;
    }
    if (at == groups.size()) {
      layer.layer_type = type;
      groups.push_back(std::move(layer));
      members.emplace_back();
      is_mixed.push_back(false);
    }
    if (groups[at].layer_type != type) is_mixed[at] = true;
    for (const std::int64_t number : numbers) {
      if (number >= 0) members[at].push_back(number);
    }
  }
  for (std::size_t i = 0; i < groups.size(); ++i) {
    groups[i].layers = std::move(members[i]);
    if (groups.size() == 1 || is_mixed[i]) groups[i].layer_type.clear();
  }
  return groups;
}

void set_scheme(LayerGroup& group, Scheme scheme) {
  group.scheme_name = name_of(scheme);
  group.scheme = std::move(scheme);
}

void check_groups(const std::vector<LayerGroup>& groups, std::optional<std::int64_t> trained_length) {
  for (const LayerGroup& group : groups) {
    const auto* const rope = group.scheme ? std::get_if<Rope>(&*group.scheme) : nullptr;
    if (rope != nullptr) prepare(*rope, {.length = trained_length.value_or(1)});
  }
}

}  // namespace posenc::models

namespace posenc {

std::string layer_ranges(std::span<const std::int64_t> layers) {
  std::string text;
  for (std::size_t i = 0; i < layers.size();) {
    std::size_t last = i;
    while (last + 1 < layers.size() && layers[last + 1] == layers[last] + 1) ++last;
    text += fmt::format("{}{}", text.empty() ? "" : ",", layers[i]);
    if (last > i) text += fmt::format("-{}", layers[last]);
    i = last + 1;
  }
  return text;
}

}  // namespace posenc
