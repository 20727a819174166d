// Layer groups of families that add vectors or biases, and the options of all layers beside their scheme.

#include "models/part_groups.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "formats/excerpt.h"
#include "models/sizes.h"
#include "posenc/error.h"

namespace posenc::models {
namespace {

bool is_causal(const Config& config, const Family& family) {
  const Json* const both = find(config, "use_bidirectional_attention");
  const bool is_on = both != nullptr && ((both->as<bool>() != nullptr && *both->as<bool>()) ||
                                         (both->as<std::string>() != nullptr && *both->as<std::string>() == "all"));
  if (is_on) return false;
  if (family.part == "encoder") return family.mask == Mask::kCausal;  // is_decoder belongs to the decoder
  if (holds(config, "is_decoder")) return true;
  if (family.mask == Mask::kByKey && holds(config, "causal")) return true;
  // transformers 5.16, masking_utils.py: create_causal_mask
  if (flag(config, "is_causal") == false) return false;
  return family.mask == Mask::kCausal;
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
    LayerGroup one = all;
    one.layers = {static_cast<std::int64_t>(i)};
    one.layer_type = layers[i].type;
    set_attention_options(one, layers[i], config, family);
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
  if (length && family.part != "encoder" && !family.waves.turns) {
    reading.trained_length = reading.usable_length =
        family.first.is_in_table ? std::max<std::int64_t>(*length - group.first_position, 0) : *length;
  }
  for (LayerGroup& one : layers_with_options(group, config, family, remarks))
    reading.groups.push_back(std::move(one));
}

// The grid is square, as in every family that resizes one.
void say_resize(const Family& family, std::int64_t patches, Remarks& remarks) {
  const auto side = static_cast<std::int64_t>(std::lround(std::sqrt(static_cast<double>(patches))));
  if (!family.patches.resize.is_known || side * side != patches) return;
  say(remarks.notes,
      fmt::format(
          "for another grid of patches the table is resized: scheme resized, trained_grid {0},{0}, filter {1}{2}{3}, "
          "prefix {4}",
          side, choice_name(family.patches.resize.filter), family.patches.resize.corners ? ", corners" : "",
          family.patches.resize.antialias ? ", antialias" : "", family.patches.extra));
}

void add_patches(const Config& config, const Family& family, PartReading& reading, Remarks& remarks) {
  LayerGroup group = group_of_all(config, family);
  const auto patches = patches_of(config, family);
  const auto width = hidden_size(config, family);
  if (patches && width) {
    set_scheme(group, Learned{.rows = *patches + family.patches.extra, .width = *width});
    say_resize(family, *patches, remarks);
  } else {
    set_formula(
        group, Learned::name,
        "x + table[patch]: trained; the image's, the patch's or the hidden size is missing to say how many rows");
  }
  reading.groups.push_back(std::move(group));
}

// The features of each axis if they are unequal; otherwise empty.
std::vector<std::int64_t> axes_of(const Config& config, const Family& family, std::int64_t head) {
  std::vector<std::int64_t> axes;
  const std::string_view key = first_of(config, {"axes_dims_rope", "rope_axes_dim"});  // diffusers
  if (family.encoding == Encoding::kVideoRope) {
    const std::int64_t side = 2 * (head / 6);
    axes = {head - 2 * side, side, side};
  } else if (const auto given = key.empty() ? std::nullopt : numbers(config, key)) {
    for (const double one : *given) {
      const bool is_fine = one >= 2 && one <= 65536 && one / 2 == std::floor(one / 2);
      if (!is_fine) refuse(config, key, "a list of even integers from 2 to 65536");
      axes.push_back(static_cast<std::int64_t>(one));
    }
    if (axes.size() > 8) refuse(config, key, "a list of at most 8");
  }
  return axes;
}

void add_image_rope(const Config& config, const Family& family, PartReading& reading, Remarks& remarks) {
  LayerGroup group = group_of_all(config, family);
  const std::int64_t head = head_size(config, family);
  const auto entries = nested(config, "rope_parameters");
  std::optional<double> base = entries ? positive(*entries, "rope_theta") : std::nullopt;
  if (!base) base = positive(config, "rope_theta");
  if (!base) {
    say(remarks.assumed,
        fmt::format("{}rope_theta = {} (in the family's code; not given)", config.place, family.rope.image_base));
  }
  Rope rope{.dims = head,
            .base = base.value_or(family.rope.image_base),
            .layout = family.rope.layout,
            .sections = {head / 4, head / 4},
            .section_order = family.rope.section_order};
  if (const std::vector<std::int64_t> axes = axes_of(config, family, head); !axes.empty()) {
    rope.dims = 0;
    rope.sections.clear();
    for (const std::int64_t features : axes) {
      rope.dims += features;
      rope.sections.push_back(features / 2);
    }
    set_scheme(group, rope);
  } else if (head % 4 != 0) {
    set_formula(group, Rope::name, "pairs rotated by row and column, half of them each; a head is no multiple of 4");
  } else {
    set_scheme(group, rope);
  }
  reading.groups.push_back(std::move(group));
}

// A layer of the whole grid spreads as many positions over it as a window has. transformers 5.16 (d56c55bf),
// modeling_sam3.py: Sam3ViTLayer, Sam3ViTRotaryEmbedding.
void add_window_rope(const Config& config, const Family& family, PartReading& reading, Remarks& remarks) {
  const auto grid = patch_grid_of(config, family);
  const auto window = integer(config, "window_size");
  const std::int64_t head = head_size(config, family);
  if (!grid || !window || *window < 1 || grid->rows < 1 || head % 4 != 0) {
    LayerGroup group = group_of_all(config, family);
    set_formula(group, Rope::name, family.formula);
    reading.groups.push_back(std::move(group));
    return;
  }
  std::vector<double> whole = {7, 15, 23, 31};
  if (const auto listed = numbers(config, "global_attn_indexes")) {
    whole = *listed;
  } else if (layer_count(config, family) != 32) {
    say(remarks.assumed, config.place + "global_attn_indexes = 7, 15, 23, 31 (in the family's code; not given)");
  }
  std::vector<LayerGroup> found;
  for (std::int64_t number = 0; number < layer_count(config, family); ++number) {
    LayerGroup group;
    group.layers = {number};
    set_attention_options(group, Layer{}, config, family);
    const bool is_whole = std::find(whole.begin(), whole.end(), static_cast<double>(number)) != whole.end();
    group.layer_type = is_whole ? "attention" : "attention in windows";
    Rope rope{.dims = head,
              .base = positive(config, "rope_theta").value_or(family.rope.image_base),
              .layout = family.rope.layout,
              .sections = {head / 4, head / 4},
              .section_order = family.rope.section_order};
    const double factor = static_cast<double>(grid->rows) / static_cast<double>(*window);
    if (is_whole && factor != 1) rope.scaling = LinearScaling{.factor = factor};
    set_scheme(group, rope);
    found.push_back(std::move(group));
  }
  for (LayerGroup& group : grouped(std::move(found))) reading.groups.push_back(std::move(group));
}

void add_patch_rope(const Config& config, const Family& family, PartReading& reading, Remarks& remarks) {
  LayerGroup group = group_of_all(config, family);
  const auto grid = patch_grid_of(config, family);
  const std::int64_t head = head_size(config, family);
  if (!grid || head % 4 != 0) {
    set_formula(group, family.name, family.formula);
  } else {
    const auto base = positive(config, "rope_theta");
    if (!base) {
      say(remarks.assumed,
          fmt::format("{}rope_theta = {} (in the family's code; not given)", config.place, family.rope.image_base));
    }
    set_scheme(group, PatchRope{.dims = head,
                                .base = base.value_or(family.rope.image_base),
                                .patches = {grid->rows, grid->columns}});
    say(remarks.notes, "the grid is that of image_size; an image of another size has a grid of its own");
  }
  reading.groups.push_back(std::move(group));
}

// One table per stage: its heads and layers are lists.
void add_stages(const Config& config, const Family& family, PartReading& reading) {
  const auto depths = numbers(config, "depths");
  const std::string_view key = first_of(config, {"num_heads", "num_attention_heads"});
  const auto heads = key.empty() ? std::nullopt : numbers(config, key);
  const auto window = integer(config, "window_size");
  const auto trained_windows = numbers(config, "pretrained_window_sizes");
  if (!depths || !heads || !window || depths->size() != heads->size()) {
    LayerGroup group = group_of_all(config, family);
    set_formula(group, name_of(family.encoding),
                "score + a number for each offset in a window and head; depths, num_heads or window_size is missing");
    reading.groups.push_back(std::move(group));
    return;
  }
  std::int64_t first = 0;
  for (std::size_t stage = 0; stage < depths->size(); ++stage) {
    LayerGroup group;
    group.layer_type = fmt::format("stage {}", stage + 1);
    set_attention_options(group, Layer{}, config, family);
    const auto end = first + static_cast<std::int64_t>((*depths)[stage]);
    if (end > kMostLayers || (*heads)[stage] < 1)
      refuse(config, "depths", fmt::format("at most {} in all", kMostLayers));
    for (; first < end; ++first) group.layers.push_back(first);
    const auto count = static_cast<std::int64_t>((*heads)[stage]);
    if (family.encoding == Encoding::kSwin) {
      set_scheme(group, Swin{.heads = count, .window = {*window, *window}});
    } else {
      LogCpb scheme{.heads = count, .window = {*window, *window}};
      const double trained = trained_windows && stage < trained_windows->size() ? (*trained_windows)[stage] : 0;
      if (trained >= 2 && trained <= 65536) scheme.trained_window.assign(2, static_cast<std::int64_t>(trained));
      set_scheme(group, scheme);
    }
    reading.groups.push_back(std::move(group));
  }
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
    LayerGroup group;
    group.layers = {number};
    group.layer_type = layer.type;
    set_attention_options(group, layer, config, family);
    adjust(group, layer, config, family);
    if (family.encoding == Encoding::kNone) {
      say_none(remarks, layer.type);
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
}

}  // namespace

void set_attention_options(LayerGroup& group, const Layer& layer, const Config& config, const Family& family) {
  group.token_mixer = is_attention(layer.type) ? family.token_mixer : std::string_view(layer.type);
  if (!group.token_mixer.empty()) return;
  group.is_causal = layer.type != "cross_attention" && is_causal(config, family);
  group.other_attention = family.other_attention;
  if (!is_known_type(layer.type)) {
    group.other_attention = fmt::format("its type, {}, is not known", excerpt(layer.type));
  }
  group.is_unscaled = family.scale.is_none;
  group.has_sinks = family.has_sinks;
  if (is_sliding(layer.type) || layer.window) {
    const std::string_view key = first_of(config, {family.window.key, "sliding_window", "sliding_window_size"});
    if (layer.window) {
      group.window = layer.window;
    } else if (!key.empty()) {
      group.window = integer(config, key);
    }
    // transformers 5.16 rejects it too: masking_utils.py
    if (!group.window) group.other_attention = "it slides over a window that the file does not give";
    // transformers 5.16: modernbert's and gemma3's configurations halve it, masking_utils.py compares distances:
    // below the window where attention is causal, up to it where it is not (gemma3's own mask: below)
    const bool is_switched =
        family.mask == Mask::kCausal && group.is_causal == false && flag(config, "is_causal") != false;
    if (group.window && (family.window.is_width || is_switched)) *group.window /= 2;
    if (group.window && group.is_causal == false) *group.window += 1;
  }
  if (layer.type == "chunked_attention") {
    group.chunk = integer(config, "attention_chunk_size");
    if (!group.chunk) group.other_attention = "it sees chunks of a length that the file does not give";
  }
  if (!family.scale.key.empty()) group.scale = positive(config, family.scale.key);
  if (!family.scale.root_key.empty()) {
    if (const auto value = positive(config, family.scale.root_key)) group.scale = 1.0 / std::sqrt(*value);
  }
  // MLA: an engine may keep keys as the latent vectors that they are made of, and its queries then have as many features as
  // these; the scale stays that of the head. transformers 5.16 (d56c55bf), qk_head_dim ** -0.5 in modeling_{deepseek_v2,
  // deepseek_v3, deepseek_v32, minicpm3, longcat_flash, glm4_moe_lite, glm_moe_dsa, mistral4, youtu, axk1, axk2}.py; vLLM
  // a014e35f: deepseek_v2.py (kimi_k2), openpangu.py, kimi_k3/amd/linear.py (kimi_linear).
  if (!group.scale) {
    const auto plain = integer(config, "qk_nope_head_dim", 0), rotated = integer(config, "qk_rope_head_dim", 0);
    if (plain && rotated && *plain + *rotated > 0)
      group.scale = 1.0 / std::sqrt(static_cast<double>(*plain) + static_cast<double>(*rotated));
  }
  if (family.scale.is_capped) group.softcap = positive(config, "attn_logit_softcapping").value_or(0.0);
}

void adjust(LayerGroup& group, const Layer& layer, const Config& config, const Family& family) {
  if (family.adjust != nullptr && group.token_mixer.empty()) family.adjust({group, layer, config, family});
}

void add_groups(const Config& config, const Family& family, PartReading& reading, Remarks& remarks) {
  switch (family.encoding) {
    case Encoding::kRope:
      return add_rope_groups(config, family, reading, remarks);
    case Encoding::kLearned:
    case Encoding::kSinusoidal:
      return add_vectors(config, family, reading, remarks);
    case Encoding::kPatches:
      return add_patches(config, family, reading, remarks);
    case Encoding::kPatchRope:
      return add_patch_rope(config, family, reading, remarks);
    case Encoding::kWindowRope:
      return add_window_rope(config, family, reading, remarks);
    case Encoding::kImageRope:
    case Encoding::kVideoRope:
      return add_image_rope(config, family, reading, remarks);
    case Encoding::kSwin:
    case Encoding::kLogCpb:
      return add_stages(config, family, reading);
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
