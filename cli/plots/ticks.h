#pragma once

#include <vector>

#include "cli/plots/figure.h"

namespace posenc::cli {

/// Round numbers along an axis, about `wanted` of them: 1, 2 or 5 times a power of ten apart; on a logarithmic axis
/// powers of ten. An axis with its own ticks keeps those within its range.
std::vector<Tick> ticks_of(const Axis& axis, int wanted);

/// The position of a value along an axis: 0 at its start, 1 at its end, for any scale and direction.
double share_of(const Axis& axis, double value);

}  // namespace posenc::cli
