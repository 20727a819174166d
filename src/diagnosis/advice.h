#pragma once

#include <string>
#include <vector>

#include "posenc/diagnosis.h"

namespace posenc::diagnosis {

/// What differs between the scheme that is wanted and what was found, and what to do about it, a sentence each.
std::vector<std::string> advice_on(const Scheme& wanted, const Diagnosis& found);

}  // namespace posenc::diagnosis
