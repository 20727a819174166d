#pragma once

#include "numerics/real.h"

namespace posenc::numerics {

/// high + low, |low| at most half an ulp of high: about 106 bits.
struct Wide {
  double high = 0.0, low = 0.0;
};

/// Sums and products of doubles, without rounding.
Wide exact_sum(double a, double b) noexcept;
Wide exact_product(double a, double b) noexcept;
/// Error: a few units in the 104th bit.
Wide sum_of(const Wide& a, const Wide& b) noexcept;
Wide product_of(const Wide& a, const Wide& b) noexcept;

/// The nearest two doubles.
Wide wide_from(const Real& value);

/// ln(x) and e^x by tables and short polynomials, using only + − × ÷ and fma: the same bits on every machine, which
/// the C library's functions do not guarantee. For cases with too many values for 400-bit numbers.
/// Error: at most 2^-75, relative: rounding to double is correct except for one value in 2^20.
/// Range: x positive and normal; for e^x, |x| ≤ 600.
Wide log_of(const Wide& x);
Wide exp_of(const Wide& x);

}  // namespace posenc::numerics
