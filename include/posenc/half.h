#pragma once

#include "posenc/types.h"

namespace posenc {

/// The value of a 16-bit float, exact.
double to_double(BFloat16 value) noexcept;
double to_double(Half value) noexcept;
inline double to_double(float value) noexcept { return static_cast<double>(value); }
inline double to_double(double value) noexcept { return value; }

/// Rounded once, to nearest, ties to even; values that are too large become infinite.
BFloat16 to_bfloat16(double value) noexcept;
Half to_half(double value) noexcept;

}  // namespace posenc
