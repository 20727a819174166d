#pragma once

#include <vector>

#include "cli/plots/figure.h"

namespace posenc::cli {

/// Round numbers along an axis, about `wanted` of them: 1, 2 or 5 times a power of ten apart; on a logarithmic axis
/// whole powers of ten. An axis that has its own ticks keeps those within its range.
std::vector<Tick> ticks_of(const Axis& axis, int wanted);

/// Where a value lies along an axis: 0 at its beginning, 1 at its end, whatever scale and direction.
double share_of(const Axis& axis, double value);

}  // namespace posenc::cli
