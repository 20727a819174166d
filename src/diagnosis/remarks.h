#pragma once

#include <string>
#include <vector>

#include "posenc/diagnosis.h"

namespace posenc::diagnosis {

/// What is notable in a diagnosis, one sentence each.
std::vector<std::string> remarks_on(const Diagnosis& diagnosis, bool are_positions_known, bool has_pattern);

}  // namespace posenc::diagnosis
