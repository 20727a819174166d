#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "posenc/forms.h"
#include "terms/tokens.h"

namespace posenc::terms {

/// The distance that counts on one axis.
inline std::int64_t entry_of(const DistanceMap& map, std::int64_t distance) noexcept {
  const auto last = static_cast<std::int64_t>(map.entries.size()) - 1;
  return map.entries[std::clamp<std::int64_t>(distance - map.first, 0, last)];
}

/// The distance of the last entry.
inline std::int64_t last_of(const DistanceMap& map) noexcept {
  return map.first + static_cast<std::int64_t>(map.entries.size()) - 1;
}

/// Calls visit(row) for each row that the distance of a query and a key selects: one per axis, or none.
template <class Visit> void each_row(const VectorsByDistance& vectors, const Score& at, const Visit& visit) {
  for (std::size_t axis = 0; axis < vectors.axes.size(); ++axis) {
    const std::int64_t row = entry_of(vectors.axes[axis], at.distance(static_cast<int>(axis)));
    if (row != kNoRow) visit(row);
  }
}

}  // namespace posenc::terms
