// Turns what a model's files say about a layer into attention's options. This is the only place that translates
// between the two.

#include "posenc/layer.h"

#include <fmt/format.h>

#include <algorithm>

#include "formats/excerpt.h"
#include "posenc/error.h"

namespace posenc {
namespace {

[[noreturn]] void refuse_layer(std::string_view name, std::string_view why) {
  raise(fmt::format("{}: {}", name, why));
}

// What attention would reject, or would never see: every sink needs its head, and every key head its group of heads.
void check_heads(std::string_view name, const LayerGroup& group, const LayerInputs& inputs) {
  if (!group.heads) return;
  if (group.key_heads && (*group.key_heads < 1 || *group.heads % *group.key_heads != 0)) {
    refuse_layer(name,
                 fmt::format("its {} heads are not a multiple of its {} key heads", *group.heads, *group.key_heads));
  }
  if (!group.has_sinks || inputs.sinks.data == nullptr) return;
  if (inputs.sinks.shape.rank != 1 || inputs.sinks.shape[0] != *group.heads) {
    refuse_layer(name, fmt::format("its sinks must be [{}], one for each head, but are {}", *group.heads,
                                   to_string(inputs.sinks.shape)));
  }
}

PreparedLayer prepared_layer(std::string_view name, const LayerGroup& group, const LayerInputs& inputs) {
  if (!group.token_mixer.empty()) {
    refuse_layer(name, fmt::format("it has no attention ({} instead)", group.token_mixer));
  }
  if (!group.scheme) {
    refuse_layer(name, fmt::format("its scheme, {}, is not computed: {}", group.scheme_name, group.formula));
  }
  if (!group.other_attention.empty()) {
    refuse_layer(name, fmt::format("its attention is not computed: {}", group.other_attention));
  }
  check_heads(name, group, inputs);
  PreparedLayer made;
  made.first_position = group.first_position;
  AttentionOptions& options = made.attention;
  if (std::holds_alternative<Learned>(*group.scheme) && inputs.prepare.weights.data == nullptr) {
    made.notes.emplace_back("the trained table of positions is added to the embeddings; it was not given");
  } else {
    Form form = prepare(*group.scheme, inputs.prepare);
    if (auto* const addition = std::get_if<Addition>(&form)) {
      made.addition = std::move(*addition);
    } else {
      options.position = std::move(form);
    }
  }
  const std::optional<bool> causal = group.is_causal ? group.is_causal : inputs.causal;
  if (!causal) refuse_layer(name, "the files do not say whether its attention is causal");
  if (group.is_causal && inputs.causal && *group.is_causal != *inputs.causal) {
    refuse_layer(name, fmt::format("its attention is {}causal", *group.is_causal ? "" : "not "));
  }
  options.causal = *causal;
  options.window = group.window.value_or(0);
  options.chunk = group.chunk.value_or(0);
  if (group.scale && group.is_unscaled) refuse_layer(name, "it has both a scale and is_unscaled");
  options.scale = group.is_unscaled ? std::optional(1.0) : group.scale;
  options.softcap = group.softcap;
  options.temperature = group.temperature;
  if (group.has_sinks) {
    if (inputs.sinks.data == nullptr) refuse_layer(name, "it has sinks, whose trained logits [heads] are missing");
    options.sinks = inputs.sinks;
  } else if (inputs.sinks.data != nullptr) {
    refuse_layer(name, "it has no sinks, but some were given");
  }
  return made;
}

bool has_layer(const LayerGroup& group, std::int64_t i) {
  // a group without a list covers all layers of its part
  return group.layers.empty() || std::find(group.layers.begin(), group.layers.end(), i) != group.layers.end();
}

std::string name_of_layer(std::int64_t i, std::string_view part) {
  return part.empty() ? fmt::format("layer {}", i) : fmt::format("layer {} of the {}", i, excerpt(std::string(part)));
}

// "; choose from: encoder, decoder", or nothing if no parts have names.
std::string choice_of_parts(const Model& model) {
  std::vector<std::string> names;
  const auto add = [&](const std::string& name) {
    if (!name.empty() && std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  };
  for (const LayerGroup& group : model.groups) {
    if (group.layer_type == "encoder" || group.layer_type == "decoder") add(group.layer_type);
  }
  for (const ModelPart& part : model.parts) add(part.name);
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "; choose from: " : ", ") + excerpt(name);
  return text;
}

}  // namespace

PreparedLayer prepare(const LayerGroup& group, const LayerInputs& inputs) {
  return prepared_layer(group.layers.empty() ? "layers" : fmt::format("layers {}", layer_ranges(group.layers)), group,
                        inputs);
}

const LayerGroup& group_of(const Model& model, std::int64_t i, std::string_view wanted_part) {
  const std::string name = name_of_layer(i, wanted_part);
  std::vector<const LayerGroup*> found;
  bool is_part = wanted_part.empty();
  std::vector<std::int64_t> its_layers;  // of that part
  const auto look = [&](const LayerGroup& group, bool is_meant) {
    if (!is_meant) return;
    is_part = true;
    its_layers.insert(its_layers.end(), group.layers.begin(), group.layers.end());
    if (has_layer(group, i)) found.push_back(&group);
  };
  for (const LayerGroup& group : model.groups) look(group, wanted_part.empty() || group.layer_type == wanted_part);
  for (const ModelPart& part : model.parts) {
    for (const LayerGroup& group : part.groups) look(group, !wanted_part.empty() && part.name == wanted_part);
  }
  if (!is_part) refuse_layer(name, fmt::format("the model has no such part{}", choice_of_parts(model)));
  if (i < 0 || found.empty()) {
    std::sort(its_layers.begin(), its_layers.end());
    its_layers.erase(std::unique(its_layers.begin(), its_layers.end()), its_layers.end());
    refuse_layer(name, its_layers.empty() ? "the model does not have it"
                                          : fmt::format("the model has layers {}", layer_ranges(its_layers)));
  }
  if (found.size() > 1) {
    std::string parts;
    for (const LayerGroup* group : found) parts += (parts.empty() ? "" : ", ") + excerpt(group->layer_type);
    refuse_layer(name, fmt::format("several parts have it: choose one of {}", parts));
  }
  return *found.front();
}

PreparedLayer layer(const Model& model, std::int64_t i, const LayerInputs& inputs) {
  PreparedLayer made = prepared_layer(name_of_layer(i, inputs.part), group_of(model, i, inputs.part), inputs);
  made.notes.insert(made.notes.end(), model.notes.begin(), model.notes.end());
  return made;
}

}  // namespace posenc
