#pragma once

#include "numerics/wave.h"

namespace posenc::numerics {

/// A float32 angle in radians as an exact Angle: the float is mantissa·2^e, and 2^e radians are a unit known to 256
/// bits for any e, so the reduction modulo one turn remains an integer multiplication.
/// `negative` angles are measured in the opposite direction: sin(−a) = −sin(a), by negating the unit.
/// Range: every finite float. Error: as for any Angle.
Angle angle_from_radians(float radians) noexcept;

}  // namespace posenc::numerics
