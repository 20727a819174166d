#pragma once

#include <cstdint>
#include <vector>

namespace posenc {

/// Maps a distance δ = key position − query position on one axis to an integer:
///   entry(δ) = entries[δ − first],  clamped to the first and last entry.
struct DistanceMap {
  std::int64_t first = 0;             // δ of the first entry
  std::vector<std::int64_t> entries;  // one per δ, from `first` on
  bool open = true;                   // false: a distance outside the entries is rejected
  bool operator==(const DistanceMap&) const = default;
};

}  // namespace posenc
