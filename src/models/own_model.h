#pragma once

#include <optional>

#include "posenc/json.h"
#include "posenc/model.h"

namespace posenc::models {

/// The config in checkpoints of posenc's own lab: {"model_type": "posenc-lab", "position": SCHEME,
/// "num_hidden_layers", "max_position_embeddings", "is_causal"}. Empty for any other model_type.
/// Throws: Error with key and rule.
std::optional<Model> own_model(const Json& config);

}  // namespace posenc::models
