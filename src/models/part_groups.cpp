// Layer groups of families that add vectors or biases.

#include "models/part_groups.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "models/sizes.h"
#include "posenc/error.h"

namespace posenc::models {
namespace {

std::int64_t needed_heads(const Config& config, const Family& family) {
  const auto heads = heads_of(config, family);
  if (!heads) raise(fmt::format("{}num_attention_heads is missing", config.place));
  return *heads;
}

std::int64_t needed_width(const Config& config, const Family& family) {
  const auto width = hidden_size(config, family);
  if (!width) raise(fmt::format("{}hidden_size is missing", config.place));
  if (*width > kMostFeatures) {
    raise(fmt::format("{}hidden_size must be at most {} but is {}", config.place, kMostFeatures, *width));
  }
  return *width;
}

// What a group of all layers becomes if they differ.
std::vector<LayerGroup> layers_with_options(const LayerGroup& all, const Config& config, const Family& family,
                                            Remarks& remarks) {
  if (family.layers == Pattern{} && family.adjust == nullptr) return {all};
  std::vector<LayerGroup> found;
  const std::vector<Layer> layers = layers_of(config, family, layer_count(config, family), remarks);
  for (std::size_t i = 0; i < layers.size(); ++i) {
    LayerGroup one = group_of_layer(layers[i], static_cast<std::int64_t>(i), config, family, all);
    adjust(one, layers[i], config, family);
    found.push_back(std::move(one));
  }
  if (found.empty()) return {all};
  std::vector<LayerGroup> groups = grouped(std::move(found));
  for (LayerGroup& group : groups) {
    if (!family.part.empty()) group.layer_type = family.part;
  }
  return groups;
}

void add_vectors(const Config& config, const Family& family, PartReading& reading, Remarks& remarks) {
  LayerGroup group = group_of_all(config, family);
  const std::int64_t width = needed_width(config, family);
  const auto length = length_of(config, family);
  if (family.encoding == Encoding::kSinusoidal) {
    Sinusoidal scheme{.width = width,
                      .spacing = family.waves.spacing,
                      .layout = family.waves.layout,
                      .axes = family.waves.axes,
                      .turns = family.waves.turns};
    if (width % 2 != 0) scheme.odd = family.waves.odd;
    set_scheme(group, scheme);
  } else {
    if (!length) raise(fmt::format("{}max_position_embeddings is missing", config.place));
    set_scheme(group, Learned{.rows = *length + family.first.offset, .width = width, .offset = family.first.offset});
  }
  if (family.first.is_after_padding) {
    if (const auto padding = integer(config, "pad_token_id", 0)) group.first_position = *padding + 1;
  }
  if (family.part == "encoder" && !family.waves.turns) group.trained_length = length;
  if (length && family.part != "encoder" && !family.waves.turns) {
    reading.trained_length = reading.usable_length =
        family.first.is_in_table ? std::max<std::int64_t>(*length - group.first_position, 0) : *length;
  }
  for (LayerGroup& one : layers_with_options(group, config, family, remarks))
    reading.groups.push_back(std::move(one));
}

// Which of DeBERTa's terms are present: a list, or one text with bars.
bool has_term(const Config& config, std::string_view term) {
  const Json* const json = find(config, "pos_att_type");
  if (json == nullptr) return false;
  if (const auto* const words = json->as<std::string>()) return words->find(term) != std::string::npos;
  const std::vector<std::string> list = *texts(config, "pos_att_type");
  return std::find(list.begin(), list.end(), term) != list.end();
}

void set_deberta(LayerGroup& group, const Config& config, const Family& family) {
  const auto at_least_1 = [&](std::string_view key) {
    const auto value = finite(config, key);
    return value && *value >= 1 ? std::optional(static_cast<std::int64_t>(*value)) : std::nullopt;
  };
  const auto distance = at_least_1("max_relative_positions");
  const auto length = length_of(config, family);
  if (!distance && !length) raise(fmt::format("{}max_position_embeddings is missing", config.place));
  const Deberta scheme{.buckets = at_least_1("position_buckets").value_or(0),
                       .max_distance = distance ? *distance : *length,
                       .content_to_position = has_term(config, "c2p"),
                       .position_to_content = has_term(config, "p2c")};
  if (scheme.content_to_position || scheme.position_to_content) return set_scheme(group, scheme);
  set_scheme(group, None{});
}

void set_alibi(LayerGroup& group, const Config& config, const Family& family) {
  Alibi scheme{.heads = needed_heads(config, family)};
  scheme.max_bias = positive(config, "attn_config.alibi_bias_max").value_or(8.0);
  if (family.encoding == Encoding::kAlibiOfQuotient) {
    scheme.scale = 1.0 / std::sqrt(static_cast<double>(head_size(config, family)));
    scheme.round_bf16 = true;
  }
  set_scheme(group, scheme);
}

void set_t5(LayerGroup& group, const Config& config, const Family& family) {
  const auto buckets = integer(config, "relative_attention_num_buckets");
  if (!buckets) raise(fmt::format("{}relative_attention_num_buckets is missing", config.place));
  set_scheme(group, T5{.heads = needed_heads(config, family),
                       .buckets = *buckets,
                       .max_distance = integer(config, "relative_attention_max_distance").value_or(128),
                       .bidirectional = family.mask == Mask::kBidirectional});
}

void set_shaw(LayerGroup& group, const Config& config) {
  const auto left = integer(config, "left_max_position_embeddings", 0);
  const auto right = integer(config, "right_max_position_embeddings", 0);
  if (!left || !right) {
    return set_formula(group, Shaw::name,
                       "score + q.table[clip(n - m, -left, right) + left]; left or right is not given");
  }
  set_scheme(group, Shaw{.left = *left, .right = *right});
}

void add_plain(const Config& config, const Family& family, PartReading& reading, Remarks& remarks) {
  std::vector<LayerGroup> found;
  const std::vector<Layer> layers = layers_of(config, family, layer_count(config, family), remarks);
  const auto make = [&](const Layer& layer, std::int64_t number) {
    LayerGroup group = group_of_layer(layer, number, config, family);
    adjust(group, layer, config, family);
    if (family.encoding == Encoding::kNone) {
      note_none(remarks, layer.type);
      set_scheme(group, None{});
    } else {
      set_formula(group, family.name, family.formula);
    }
    found.push_back(std::move(group));
  };
  for (std::size_t i = 0; i < layers.size(); ++i) make(layers[i], static_cast<std::int64_t>(i));
  if (layers.empty()) make(Layer{}, -1);
  for (LayerGroup& group : grouped(std::move(found))) {
    if (!family.part.empty()) group.layer_type = family.part;
    reading.groups.push_back(std::move(group));
  }
  // a decoder's length holds without position too
  const bool is_decoder = family.mask == Mask::kCausal && family.token_mixer.empty();
  if (family.encoding == Encoding::kNone && is_decoder) keep_length(config, family, reading);
}

}  // namespace

void keep_length(const Config& config, const Family& family, PartReading& reading) {
  if (reading.trained_length) return;
  reading.trained_length = reading.usable_length = length_of(config, family);
}

LayerGroup group_of_layer(const Layer& layer, std::int64_t number, const Config& config, const Family& family,
                          LayerGroup group) {
  group.layers = {number};
  group.layer_type = layer.type;
  set_attention_options(group, layer, config, family);
  return group;
}

LayerGroup group_of_all(const Config& config, const Family& family) {
  LayerGroup group;
  group.layer_type = family.part;
  group.first_position = family.first.position;
  set_attention_options(group, Layer{}, config, family);
  for (std::int64_t i = 0; i < layer_count(config, family); ++i) group.layers.push_back(i);
  return group;
}

void set_formula(LayerGroup& group, std::string_view name, std::string_view formula) {
  group.scheme_name = name;
  group.formula = formula;
}

void add_groups(const Config& config, const Family& family, PartReading& reading, Remarks& remarks) {
  switch (family.encoding) {
    case Encoding::kRope:
      return add_rope_groups(config, family, reading, remarks);
    case Encoding::kLearned:
    case Encoding::kSinusoidal:
      return add_vectors(config, family, reading, remarks);
    case Encoding::kPatches:
    case Encoding::kPatchRope:
    case Encoding::kWindowRope:
    case Encoding::kImageRope:
    case Encoding::kVideoRope:
    case Encoding::kSwin:
    case Encoding::kLogCpb:
      return add_image_groups(config, family, reading, remarks);
    case Encoding::kShawValues:
    case Encoding::kTransformerXl:
    case Encoding::kRelativeLogits:
    case Encoding::kForgetGate:
    case Encoding::kDecomposed:
    case Encoding::kDecomposedWhole:
      return add_relative_groups(config, family, reading, remarks);
    case Encoding::kNone:
    case Encoding::kNotComputed:
      return add_plain(config, family, reading, remarks);
    default:
      break;
  }
  LayerGroup group = group_of_all(config, family);
  if (name_of(family.encoding) == Alibi::name) set_alibi(group, config, family);
  if (family.encoding == Encoding::kT5) set_t5(group, config, family);
  if (family.encoding == Encoding::kDeberta) set_deberta(group, config, family);
  if (family.encoding == Encoding::kShaw) set_shaw(group, config);
  adjust(group, Layer{}, config, family);
  reading.groups.push_back(std::move(group));
  if (const auto length = length_of(config, family)) reading.trained_length = reading.usable_length = length;
}

}  // namespace posenc::models
