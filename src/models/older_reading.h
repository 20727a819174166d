#pragma once

#include <optional>
#include <string_view>

#include "models/config.h"
#include "posenc/model.h"

namespace posenc::models {

/// What transformers 4.57.6 reads in the config of a family that rotates; nothing if it reads the same.
std::optional<OlderReading> older_reading_of(std::string_view model_type, const Config& config);

}  // namespace posenc::models
