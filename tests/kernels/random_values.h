#pragma once

#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include "numerics/narrow.h"

namespace posenc::tests {

/// In [−2, 2).
template <class T> std::vector<T> random_values(std::int64_t count, std::uint64_t seed = 1) {
  std::mt19937_64 random(seed);
  std::vector<T> values(static_cast<std::size_t>(count));
  for (T& value : values) value = numerics::narrow<T>(static_cast<double>(random() >> 11) * 0x1p-51 - 2.0);
  return values;
}

template <class T> bool same_bytes(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

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
