// Layer groups of families whose attention has vectors by distance: their fields, from the config's keys.

#include <algorithm>
#include <utility>

#include "models/part_groups.h"
#include "models/sizes.h"
#include "posenc/schemes/decomposed.h"
#include "posenc/schemes/forget_gate.h"
#include "posenc/schemes/relative_logits.h"
#include "posenc/schemes/shaw.h"
#include "posenc/schemes/transformer_xl.h"

namespace posenc::models {
namespace {

void add_alike(const Config& config, const Family& family, PartReading& reading, const Scheme& scheme) {
  LayerGroup group = group_of_all(config, family);
  set_scheme(group, scheme);
  reading.groups.push_back(std::move(group));
}

// One group per kind of layer; scheme_of(layer, number) is its scheme.
template <class SchemeOf> void add_by_layer(const Config& config, const Family& family, PartReading& reading,
                                            Remarks& remarks, const SchemeOf& scheme_of) {
  std::vector<LayerGroup> found;
  const std::vector<Layer> layers = layers_of(config, family, layer_count(config, family), remarks);
  for (std::size_t i = 0; i < layers.size(); ++i) {
    LayerGroup group = group_of_layer(layers[i], static_cast<std::int64_t>(i), config, family);
    scheme_of(layers[i], static_cast<std::int64_t>(i), group);
    adjust(group, layers[i], config, family);
    found.push_back(std::move(group));
  }
  std::vector<LayerGroup> groups = grouped(std::move(found));
  if (groups.size() == 1) groups.front().layer_type = family.part;
  for (LayerGroup& group : groups) reading.groups.push_back(std::move(group));
}

// If a size is missing: the value it would have.
void add_without_sizes(const Config& config, const Family& family, PartReading& reading, Remarks& remarks) {
  Family named = family;
  named.encoding = Encoding::kNotComputed;
  named.name = name_of(family.encoding);
  add_groups(config, named, reading, remarks);
}

void add_transformer_xl(const Config& config, const Family& family, PartReading& reading, Remarks& remarks) {
  const auto heads = heads_of(config, family), width = hidden_size(config, family);
  if (!heads || !width || *width % 2 != 0) return add_without_sizes(config, family, reading, remarks);
  const auto clamp = finite(config, "clamp_len");
  add_alike(config, family, reading,
            TransformerXl{.heads = *heads,
                          .width = *width,
                          .layout = family.waves.layout,
                          .clamp = clamp && *clamp >= 1 ? static_cast<std::int64_t>(*clamp) : 0});
}

void add_relative_logits(const Config& config, const Family& family, PartReading& reading, Remarks& remarks) {
  add_by_layer(config, family, reading, remarks, [&](const Layer& layer, std::int64_t, LayerGroup& group) {
    const bool slides = is_sliding(layer.type);
    const auto extent = integer(config, slides ? "sliding_window_size" : "rel_extent");
    set_scheme(group, RelativeLogits{.extent = extent.value_or(slides ? 512 : 1024)});
  });
}

// Window layers and whole-grid layers: SAM lists the latter, ViTDet the former; SegGPT has only the latter.
void add_decomposed(const Config& config, const Family& family, PartReading& reading, Remarks& remarks) {
  const auto grid = patch_grid_of(config, family);
  const auto window = integer(config, "window_size", 0);
  const bool lists_whole = family.encoding == Encoding::kDecomposedWhole;
  if (!grid || std::max(grid->rows, grid->columns) > 4096) return add_without_sizes(config, family, reading, remarks);
  auto listed = numbers(config, lists_whole ? "global_attn_indexes" : "window_block_indices");
  if (!listed && lists_whole) {
    listed = {2, 5, 8, 11};  // the default of every class of this row
    if (layer_count(config, family) > 12) {
      note(remarks.assumed, config.place + "global_attn_indexes = 2, 5, 8, 11 (in the family's code; not given)");
    }
  }
  if (flag(config, "use_rel_pos") == false) return;
  add_by_layer(config, family, reading, remarks, [&](const Layer&, std::int64_t number, LayerGroup& group) {
    const bool is_listed =
        listed && std::find(listed->begin(), listed->end(), static_cast<double>(number)) != listed->end();
    const bool is_window = window && *window > 0 && is_listed != lists_whole;
    Decomposed scheme{.window = {grid->rows, grid->columns}};
    if (is_window) scheme.window = {*window, *window};
    group.layer_type = is_window ? "attention in windows" : std::string(family.part);
    set_scheme(group, scheme);
  });
}

}  // namespace

void add_relative_groups(const Config& config, const Family& family, PartReading& reading, Remarks& remarks) {
  if (family.encoding == Encoding::kTransformerXl) return add_transformer_xl(config, family, reading, remarks);
  if (family.encoding == Encoding::kRelativeLogits) return add_relative_logits(config, family, reading, remarks);
  if (name_of(family.encoding) == Decomposed::name) return add_decomposed(config, family, reading, remarks);
  if (family.encoding == Encoding::kForgetGate) return add_alike(config, family, reading, ForgetGate{});
  // VITS: vectors within window_size, and none beyond
  const auto window = integer(config, "window_size", 0);
  if (!window || *window == 0) return add_without_sizes(config, family, reading, remarks);
  add_alike(config, family, reading,
            Shaw{.left = *window, .right = *window, .with_values = true, .beyond = BeyondReach::kNone});
}

}  // namespace posenc::models
