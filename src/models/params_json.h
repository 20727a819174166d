#pragma once

#include <optional>

#include "models/config.h"
#include "models/layers.h"
#include "posenc/json.h"

namespace posenc::models {

/// Whether this is the params.json that Meta and Mistral publish beside consolidated.*: dim, n_layers and n_heads, and no
/// model_type.
bool is_params_json(const Json& json);

/// The same as a config.json of Hugging Face. Its weights have interleaved pairs there, which conversion permutes.
/// Throws: Error for what this reader does not know (MLA, vision and audio parts).
Json config_of_params(const Json& params, Remarks& remarks);

}  // namespace posenc::models
