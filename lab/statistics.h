#pragma once

#include <span>

namespace posenc::lab {

/// A mean, and where it lies with 95 % confidence: the percentiles of the means of 10,000 samples drawn with replacement
/// (Efron's bootstrap), the same on every run. Of one value there is no interval: low and high are NaN.
struct Estimate {
  double mean = 0, low = 0, high = 0;
};
Estimate bootstrap(std::span<const double> values);

}  // namespace posenc::lab
