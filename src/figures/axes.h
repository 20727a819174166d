#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "posenc/figures.h"

namespace posenc::figures {

/// Sets the axis to [least, most], extended at both ends by `margin` times that range.
void fit(Axis& axis, double least, double most, double margin = 0.05);

/// first, first + 1 …
std::vector<double> counted(std::int64_t count, double first = 0);

/// "6.28", "19.9", "6,283", "∞".
std::string short_number(double value);

}  // namespace posenc::figures
