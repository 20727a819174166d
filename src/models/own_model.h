#pragma once

#include <optional>

#include "posenc/json.h"
#include "posenc/model.h"

namespace posenc::models {

/// What posenc's own lab writes into its checkpoints: {"model_type": "posenc-lab", "position": SCHEME,
/// "num_hidden_layers", "max_position_embeddings", "is_causal"}. Empty for any other model_type.
/// Throws: Error that names key and rule.
std::optional<Model> own_model(const Json& config);

}  // namespace posenc::models
