#pragma once

#include <string>
#include <vector>

#include "posenc/diagnosis.h"

namespace posenc::diagnosis {

/// How the scheme found differs from the expected one, and how to fix it, one sentence each. `features` are those of the
/// tensors.
std::vector<std::string> advice_on(const Scheme& wanted, const Diagnosis& found, std::int64_t features);

}  // namespace posenc::diagnosis
