#pragma once

#include "posenc/types.h"

namespace posenc {

/// The value of a 16-bit or 8-bit float, exact.
double to_double(BFloat16 value) noexcept;
double to_double(Half value) noexcept;
double to_double(E4M3 value) noexcept;
inline double to_double(float value) noexcept { return static_cast<double>(value); }
inline double to_double(double value) noexcept { return value; }

/// Rounded once, to nearest, ties to even; values that are too large become infinite.
BFloat16 to_bfloat16(double value) noexcept;
Half to_half(double value) noexcept;
/// The same, but values beyond ±448 become ±448.
E4M3 to_e4m3(double value) noexcept;

}  // namespace posenc
