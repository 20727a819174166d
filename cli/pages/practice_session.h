#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "cli/pages/practice_plan.h"
#include "posenc/review.h"
#include "posenc/walkthrough.h"

namespace posenc::cli {

/// Prints one item after another and reads answers from standard input, until all are known, the input ends or the
/// learner stops. Each answer is passed to `keep` at once. Items that were not known are asked again at the end.
/// Returns the reviews. Throws: what `keep` and the streams throw, and Failure for a signal, after a summary.
std::vector<Review> practice(const std::vector<PracticeItem>& items, std::uint64_t seed, std::int64_t day,
                             const std::function<void(const Review&)>& keep);

/// Goes through the steps of a walkthrough in the same way. Nothing is stored.
void practice_walkthrough(const Walkthrough& walkthrough);

}  // namespace posenc::cli
