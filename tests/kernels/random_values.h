#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "numerics/narrow.h"

namespace posenc::tests {

/// Values between −1 and 1, the same for a seed everywhere.
template <class T> std::vector<T> some_values(std::int64_t count, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<T> values;
  for (std::int64_t i = 0; i < count; ++i) {
    values.push_back(numerics::narrow<T>(static_cast<double>(random() >> 11) * 0x1p-52 - 1.0));
  }
  return values;
}

}  // namespace posenc::tests
