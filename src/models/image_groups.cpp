// Layer groups of families that see images: tables, rotations and biases by patch.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "models/part_groups.h"
#include "models/sizes.h"
#include "posenc/error.h"

namespace posenc::models {
namespace {

// The grid is square, as in every family that resizes one.
void note_resize(const Family& family, std::int64_t patches, Remarks& remarks) {
  const auto side = static_cast<std::int64_t>(std::lround(std::sqrt(static_cast<double>(patches))));
  if (!family.patches.resize.is_known || side * side != patches) return;
  note(
      remarks.notes,
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
    note_resize(family, *patches, remarks);
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

double given_or_assumed(std::optional<double> base, const Config& config, const Family& family, Remarks& remarks) {
  if (base) return *base;
  note(remarks.assumed,
       fmt::format("{}rope_theta = {} (in the family's code; not given)", config.place, family.rope.image_base));
  return family.rope.image_base;
}

Rope image_rope(const Family& family, std::int64_t head, double base) {
  return {.dims = head,
          .base = base,
          .layout = family.rope.layout,
          .sections = {head / 4, head / 4},
          .section_order = family.rope.section_order};
}

void add_image_rope(const Config& config, const Family& family, PartReading& reading, Remarks& remarks) {
  LayerGroup group = group_of_all(config, family);
  const std::int64_t head = head_size(config, family);
  const auto entries = nested(config, "rope_parameters");
  std::optional<double> base = entries ? positive(*entries, "rope_theta") : std::nullopt;
  if (!base) base = positive(config, "rope_theta");
  Rope rope = image_rope(family, head, given_or_assumed(base, config, family, remarks));
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
    note(remarks.assumed, config.place + "global_attn_indexes = 7, 15, 23, 31 (in the family's code; not given)");
  }
  std::vector<LayerGroup> found;
  for (std::int64_t number = 0; number < layer_count(config, family); ++number) {
    LayerGroup group = group_of_layer(Layer{}, number, config, family);
    const bool is_whole = std::find(whole.begin(), whole.end(), static_cast<double>(number)) != whole.end();
    group.layer_type = is_whole ? "attention" : "attention in windows";
    Rope rope = image_rope(family, head, positive(config, "rope_theta").value_or(family.rope.image_base));
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
    set_scheme(group, PatchRope{.dims = head,
                                .base = given_or_assumed(positive(config, "rope_theta"), config, family, remarks),
                                .patches = {grid->rows, grid->columns}});
    note(remarks.notes, "the grid is that of image_size; an image of another size has a grid of its own");
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

}  // namespace

void add_image_groups(const Config& config, const Family& family, PartReading& reading, Remarks& remarks) {
  switch (family.encoding) {
    case Encoding::kPatches:
      return add_patches(config, family, reading, remarks);
    case Encoding::kPatchRope:
      return add_patch_rope(config, family, reading, remarks);
    case Encoding::kWindowRope:
      return add_window_rope(config, family, reading, remarks);
    case Encoding::kImageRope:
    case Encoding::kVideoRope:
      return add_image_rope(config, family, reading, remarks);
    default:
      return add_stages(config, family, reading);
  }
}

}  // namespace posenc::models
