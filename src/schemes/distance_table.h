#pragma once

#include <cstdint>
#include <string_view>

#include "posenc/forms.h"
#include "schemes/check.h"

namespace posenc::schemes {

/// The length that a table by distance is computed for.
inline void check_table_length(std::string_view scheme, std::int64_t length) {
  if (length == 0) {
    raise(fmt::format(
        "{}: the length is missing; its values are made for distances below it (PrepareOptions::length)", scheme));
  }
  check_between(scheme, "length", length, 1, kDistanceLimit);
}

/// The offsets within an extent. The table counts m − n, which is −δ, from row `start` in steps of `stride`.
inline DistanceMap map_of_extent(std::int64_t extent, std::int64_t start, std::int64_t stride) {
  DistanceMap map{.first = 1 - extent, .entries = {}, .open = false};
  for (std::int64_t delta = 1 - extent; delta < extent; ++delta) {
    map.entries.push_back(start + (extent - 1 - delta) * stride);
  }
  return map;
}

/// A table of the distances 0 … length − 1, the same in both directions: fill(distance, row) writes one number per
/// head.
template <class Fill>
DistanceTable table_by_distance(std::string_view scheme, std::int64_t length, std::int64_t heads, const Fill& fill) {
  check_table_length(scheme, length);
  DistanceTable source;
  DistanceMap map;
  map.first = 1 - length;
  map.open = false;  // greater distances were not computed
  for (std::int64_t distance = 1 - length; distance < length; ++distance) {
    map.entries.push_back(distance < 0 ? -distance : distance);
  }
  source.axes.push_back(std::move(map));
  source.values.resize(length * heads);
  for (std::int64_t distance = 0; distance < length; ++distance) fill(distance, &source.values[distance * heads]);
  return source;
}

}  // namespace posenc::schemes
