#pragma once

#include <span>
#include <string>

#include "models/config.h"
#include "models/layers.h"

namespace posenc::models {

/// Warns, in one line, of keys about position that the file has and the reader did not ask for; and of dual chunk attention.
void warn_of_unread(const Config& config, std::span<const std::string> read, Remarks& remarks);

}  // namespace posenc::models
