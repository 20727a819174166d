#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

namespace posenc {

/// SplitMix64 (Steele, Lea, Flood, 2014): the same numbers from the same seed on every machine, which the distributions
/// of the standard library do not guarantee. For examples and measurements, not for cryptography.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() noexcept {
    state_ += 0x9E3779B97F4A7C15;
    std::uint64_t mixed = state_;
    mixed = (mixed ^ mixed >> 30) * 0xBF58476D1CE4E5B9;
    mixed = (mixed ^ mixed >> 27) * 0x94D049BB133111EB;
    return mixed ^ mixed >> 31;
  }
  /// In [−1, 1).
  double uniform() noexcept { return static_cast<double>(next() >> 11) * 0x1p-52 - 1.0; }
  /// In 0 … count − 1. Its bias, below count/2^64, is negligible here.
  std::int64_t below(std::int64_t count) noexcept {
    return static_cast<std::int64_t>(next() % static_cast<std::uint64_t>(count));
  }
  /// Shuffles a list.
  template <class List> void shuffle(List& list) noexcept {
    for (std::size_t i = list.size(); i > 1; --i) {
      std::swap(list[i - 1], list[static_cast<std::size_t>(below(static_cast<std::int64_t>(i)))]);
    }
  }

 private:
  std::uint64_t state_;
};

}  // namespace posenc
