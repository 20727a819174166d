#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "attention/bias_element.h"

namespace posenc::attend {

/// Where a count of gates falls among the rows of a table.
struct ContextualPlace {
  std::int64_t below = 0, above = 0;  // ⌊p⌋ and ⌈p⌉
  double part = 0;                    // p − ⌊p⌋
  bool is_cut = false;                // clamped: p is the last row, however much the count grows
};
/// A NaN count is clamped too: the score of its key is NaN as well.
inline ContextualPlace contextual_place(double count, std::int64_t rows) noexcept {
  const auto last = static_cast<double>(rows - 1);
  if (!(count <= last)) return {rows - 1, rows - 1, 0, true};
  const double below = std::floor(count);
  return {static_cast<std::int64_t>(below), static_cast<std::int64_t>(std::ceil(count)), count - below, false};
}

/// σ(x) = 1 / (1 + e^−x), written so that neither exponential overflows.
inline double gate_of(double x) noexcept {
  const double small = std::exp(-std::fabs(x));
  return (x >= 0 ? 1.0 : small) / (1.0 + small);
}

}  // namespace posenc::attend
