#pragma once

#include <boost/multiprecision/cpp_bin_float.hpp>
#include <cstdint>
#include <vector>

#include "posenc/frequency.h"

namespace posenc::numerics {

/// A number of 400 bits, for making frequencies once: 256 of them reach the Frequency, 100 may stand before the
/// binary point, and what remains covers the rounding of a few hundred operations.
using Real =
    boost::multiprecision::number<boost::multiprecision::cpp_bin_float<400, boost::multiprecision::digit_base_2>,
                                  boost::multiprecision::et_off>;

/// The frequency of `radians` per position, rounded once to 2^-256 turns.
Frequency frequency_from(const Real& radians);

/// The k-th of `count` numbers that fall geometrically from 1: ratio^0, ratio^1 … with ratio = base^(−step).
/// Every published spacing of frequencies is one of these.
std::vector<Real> geometric(const Real& base, const Real& step, std::int64_t count);

const Real& two_pi();

/// The nearest float32.
float nearest_float(const Real& value);

}  // namespace posenc::numerics
