#pragma once

#include <cstdint>
#include <span>

namespace posenc::lab {

/// Seeds that a confidence interval needs.
inline constexpr std::int64_t kFewestSeeds = 5;

/// A mean and, of kFewestSeeds values or more, its 95% confidence interval by Student's t; of fewer, their range. Without
/// values NaN.
struct Estimate {
  double mean = 0, low = 0, high = 0;
};
Estimate estimate_of(std::span<const double> values);

}  // namespace posenc::lab
