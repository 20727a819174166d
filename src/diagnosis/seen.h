#pragma once

#include "diagnosis/power.h"

namespace posenc::diagnosis {

/// For a comparison that found no difference: which rivals these tensors exclude and which they could not have shown. If
/// one of the latter is another convention, the result is inconclusive, with the reason and what would decide.
void weigh(const Probe& probe, CheckResult& result);

}  // namespace posenc::diagnosis
