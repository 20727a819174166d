#pragma once

#include <string>
#include <vector>

#include "posenc/diagnosis.h"

namespace posenc::diagnosis {

/// What stands out in a diagnosis, a sentence each.
std::vector<std::string> remarks_on(const Diagnosis& diagnosis, bool are_positions_known);

}  // namespace posenc::diagnosis
