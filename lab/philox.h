#pragma once

#include <array>
#include <cmath>
#include <cstdint>

namespace posenc::lab {

/// Philox4x32-10 (Salmon et al., 2011): four random words from a counter and a key. It is stateless, so samples do
/// not depend on the order in which they are drawn.
inline std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter, std::array<std::uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t first = std::uint64_t{0xD2511F53} * counter[0];
    const std::uint64_t second = std::uint64_t{0xCD9E8D57} * counter[2];
    counter = {static_cast<std::uint32_t>(second >> 32) ^ counter[1] ^ key[0], static_cast<std::uint32_t>(second),
               static_cast<std::uint32_t>(first >> 32) ^ counter[3] ^ key[1], static_cast<std::uint32_t>(first)};
    key[0] += 0x9E3779B9;
    key[1] += 0xBB67AE85;
  }
  return counter;
}

/// Each use of random numbers has its own stream.
enum class Purpose : std::uint32_t { kInitial, kTraining, kEvaluation, kPositions, kText };

/// The random numbers of one sample of one step.
class Stream {
 public:
  Stream(std::uint64_t seed, Purpose purpose, std::int64_t step, std::int64_t sample)
      : key_{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)},
        counter_{0, static_cast<std::uint32_t>(sample), static_cast<std::uint32_t>(step),
                 static_cast<std::uint32_t>(purpose)} {}

  std::uint32_t next() {
    if (used_ == 4) {
      words_ = philox(counter_, key_);
      ++counter_[0];
      used_ = 0;
    }
    return words_[used_++];
  }
  /// From 0 to count − 1. Its bias, below count/2^32, is negligible for any number of samples drawn here.
  std::int64_t below(std::int64_t count) {
    return static_cast<std::int64_t>(std::uint64_t{next()} * static_cast<std::uint64_t>(count) >> 32);
  }
  /// In [0, 1).
  double uniform() { return next() * 0x1p-32; }
  /// Standard normal (Box–Muller; the second number of each pair is discarded).
  double normal() {
    const double radius = std::sqrt(-2 * std::log((next() + 1.0) * 0x1p-32));
    return radius * std::cos(6.283185307179586 * uniform());
  }

 private:
  std::array<std::uint32_t, 2> key_;
  std::array<std::uint32_t, 4> counter_;
  std::array<std::uint32_t, 4> words_{};
  std::uint32_t used_ = 4;
};

}  // namespace posenc::lab
