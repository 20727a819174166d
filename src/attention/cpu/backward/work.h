#pragma once

#include <cstdint>
#include <vector>

#include "attention/cpu/score_bias.h"
#include "attention/job.h"

namespace posenc::attend::cpu {

using Floats = std::vector<float>;
inline Floats floats(std::int64_t count) { return Floats(count); }

// What both passes need for every query: its logsumexp in units of log 2, and D = Σ dO · O.
struct QuerySums {
  Floats logs, deltas;  // [batch, heads, queries]
};

struct BackwardWork {
  BackwardJob& job;
  const ScoreBias& bias;
  const QuerySums& sums;
};

}  // namespace posenc::attend::cpu
