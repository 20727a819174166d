#pragma once

#include <optional>

#include "diagnosis/samples.h"

namespace posenc::diagnosis {

/// The sinusoids that were added, if they explain the change: sure or likely. Without remarks.
std::optional<Diagnosis> explain_by_waves(const Samples& samples);

/// What was added at each token, y − factor·x, as the mean over heads; and what heads do not share.
struct Added {
  std::vector<double> values;  // [sequence, features]
  double factor = 1;           // on x
  double energy = 0;           // of the values
  double apart = 0;            // energy that heads do not share, of all heads
  double noise = 0;            // variance of one value due to rounding
};
/// With one head the factor cannot be determined, and is the given one.
Added added_of(const Samples& samples, double factor_of_one_head);

}  // namespace posenc::diagnosis
