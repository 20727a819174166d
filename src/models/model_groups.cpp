#include "models/model_groups.h"

#include <fmt/format.h>

#include <algorithm>

namespace posenc::models {

std::vector<LayerGroup> grouped(const std::vector<GroupedLayer>& layers) {
  std::vector<LayerGroup> groups;
  std::vector<bool> is_mixed;
  for (const GroupedLayer& layer : layers) {
    std::size_t at = 0;
    while (at < groups.size() && *groups[at].scheme != layer.scheme) ++at;
    if (at == groups.size()) {
      LayerGroup group;
      group.scheme = layer.scheme;
      group.scheme_name = name_of(layer.scheme);
      group.layer_type = layer.type;
      groups.push_back(std::move(group));
      is_mixed.push_back(false);
    }
    if (groups[at].layer_type != layer.type) is_mixed[at] = true;
    if (layer.layer >= 0) groups[at].layers.push_back(layer.layer);
  }
  for (std::size_t i = 0; i < groups.size(); ++i) {
    if (groups.size() == 1 || is_mixed[i]) groups[i].layer_type.clear();
  }
  return groups;
}

void name_scheme(LayerGroup& group, const Json::Object& fields) {
  group.scheme_name = *fields.front().second.as<std::string>();
  const std::vector<std::string_view> names = scheme_names();
  if (std::find(names.begin(), names.end(), group.scheme_name) == names.end()) return;
  group.scheme = scheme_from_json(dump_json(Json(fields)));
}

void check_groups(const Model& model) {
  for (const LayerGroup& group : model.groups) {
    const auto* const rope = group.scheme ? std::get_if<Rope>(&*group.scheme) : nullptr;
    if (rope != nullptr) prepare(*rope, {.length = model.trained_length.value_or(1)});
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
