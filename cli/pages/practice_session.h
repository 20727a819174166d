#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "cli/pages/practice_plan.h"
#include "posenc/review.h"
#include "posenc/walkthrough.h"

namespace posenc::cli {

/// Asks item after item on standard output and takes answers from standard input, until all are known, the input
/// ends or the learner stops. Each answer goes to `keep` at once. What was not known comes again at the end.
/// Returns the reviews. Throws: what `keep` and the streams throw, and Failure for a signal, after a summary.
std::vector<Review> practice(const std::vector<PracticeItem>& items, std::uint64_t seed, std::int64_t day,
                             const std::function<void(const Review&)>& keep);

/// Goes through the steps of one in the same way. Nothing is kept.
void practice_walkthrough(const Walkthrough& walkthrough);

}  // namespace posenc::cli
