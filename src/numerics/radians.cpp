#include "numerics/radians-inl.h"

namespace posenc::numerics {

Angle angle_from_radians(float radians) noexcept { return radians_as_angle(radians); }

}  // namespace posenc::numerics
