#pragma once

#include <vector>

#include "diagnosis/comparison.h"

namespace posenc::diagnosis {

/// Two tensors that differ from what is expected.
struct Difference {
  const Scheme& scheme;
  Tensors two;
  const CheckOptions& options;
  const CheckPositions& positions;
  std::int64_t length = 0;
  Expected expected;          // exact
  std::vector<bool> misses;   // elements that are not where they should be
  std::vector<bool> skipped;  // masked scores; empty: none
  double tolerance = 0, floor = 0, rounding = 0;
};

/// What was applied instead, where, and what to change: a known mistake that explains every element, or else what
/// diagnose finds; in the whole tensors, or in the heads or tokens that differ.
void explain(const Difference& difference, CheckResult& result);

}  // namespace posenc::diagnosis
