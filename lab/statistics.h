#pragma once

#include <span>

namespace posenc::lab {

/// A mean and its 95% confidence interval: percentiles of the means of 10,000 samples drawn with replacement (Efron's
/// bootstrap), the same on every run. With one value there is no interval: low and high are NaN.
struct Estimate {
  double mean = 0, low = 0, high = 0;
};
Estimate bootstrap(std::span<const double> values);

}  // namespace posenc::lab
