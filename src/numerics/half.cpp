#include "posenc/half.h"

#include "numerics/narrow.h"

namespace posenc {

double to_double(BFloat16 value) noexcept { return numerics::widen(value); }
double to_double(Half value) noexcept { return numerics::widen(value); }
double to_double(E4M3 value) noexcept { return numerics::widen(value); }

BFloat16 to_bfloat16(double value) noexcept { return numerics::narrow<BFloat16>(value); }
Half to_half(double value) noexcept { return numerics::narrow<Half>(value); }
E4M3 to_e4m3(double value) noexcept { return numerics::narrow<E4M3>(value); }

}  // namespace posenc
