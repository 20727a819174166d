#pragma once

#include <string>
#include <vector>

#include "models/layers.h"
#include "posenc/json.h"
#include "posenc/model.h"

namespace posenc::models {

/// What the reading of one part gives.
struct PartReading {
  std::vector<LayerGroup> groups = {};
  std::optional<std::int64_t> trained_length = {};
  std::optional<std::int64_t> usable_length = {};
  std::optional<double> attn_factor = {}, other_base = {};
  std::optional<std::int64_t> other_rotary_dim = {};
};

/// Layers that are alike in everything but their number and type together, in the order of their first. They keep
/// their type where there are several groups and all layers of one share it. A layer of −1: it is not said which.
std::vector<LayerGroup> grouped(std::vector<LayerGroup> layers);

/// Names a scheme by its JSON, and makes it where this build has it.
void name_scheme(LayerGroup& group, const Json::Object& fields);
void set_scheme(LayerGroup& group, Scheme scheme);

/// Makes the form of every group once. Throws: Error for fields that do not go together.
void check_groups(const std::vector<LayerGroup>& groups, std::optional<std::int64_t> trained_length);

}  // namespace posenc::models
