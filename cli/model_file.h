#pragma once

#include <string>

#include "posenc/model.h"

namespace posenc::cli {

/// Reads what a path says of position: a config.json, a folder that holds one, or a .gguf file.
/// Throws: Failure "FILE: WHAT" for anything else.
Model model_from(const std::string& path);

}  // namespace posenc::cli
