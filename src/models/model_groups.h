#pragma once

#include <string>
#include <vector>

#include "models/layers.h"
#include "posenc/model.h"

namespace posenc::models {

/// The result of reading one part.
struct PartReading {
  std::vector<LayerGroup> groups = {};
  std::optional<std::int64_t> trained_length = {};
  std::optional<std::int64_t> usable_length = {};
  std::optional<double> attn_factor = {}, yarn_ratio = {}, other_base = {};
  std::optional<std::int64_t> other_rotary_dim = {}, hf_rotary_dim = {};
};

/// Groups layers that are alike in everything but their number and type, in the order of their first. A group keeps
/// its type if there are several groups and all its layers share it. A layer of −1: the layer is not specified.
std::vector<LayerGroup> grouped(std::vector<LayerGroup> layers);

void set_scheme(LayerGroup& group, Scheme scheme);

/// Creates the form of every group once. Throws: Error for incompatible fields.
void check_groups(const std::vector<LayerGroup>& groups, std::optional<std::int64_t> trained_length);

}  // namespace posenc::models
