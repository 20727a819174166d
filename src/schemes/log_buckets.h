#pragma once

#include <cstdint>

namespace posenc::schemes {

/// Where a logarithmic scale passes from one bucket to the next: floor(from · (to/from)^(step/steps)), and whether
/// that is exact. Decided in integers if 400 bits leave a doubt, because published settings put such points exactly
/// on integers (T5: 16, 32, 64), where the logarithm of a float may fall on either side.
struct LogStep {
  std::int64_t floor = 0;
  bool exact = false;
};
/// Range: 1 ≤ from < to, 0 ≤ step, 1 ≤ steps.
LogStep log_step(std::int64_t from, std::int64_t to, std::int64_t step, std::int64_t steps);

}  // namespace posenc::schemes
