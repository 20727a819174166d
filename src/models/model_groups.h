#pragma once

#include <string>
#include <vector>

#include "posenc/json.h"
#include "posenc/model.h"

namespace posenc::models {

/// A layer and what it does; −1: it is not said which.
struct GroupedLayer {
  std::int64_t layer = 0;
  std::string type;
  Scheme scheme;
};

/// Layers with the same scheme together, in the order of their first. They keep their type where there are several
/// groups and all layers of one share it.
std::vector<LayerGroup> grouped(const std::vector<GroupedLayer>& layers);

/// Names a scheme by its JSON, and makes it where this build has it.
void name_scheme(LayerGroup& group, const Json::Object& fields);

/// Makes the form of every group once. Throws: Error for fields that do not go together.
void check_groups(const Model& model);

}  // namespace posenc::models
