#pragma once

#include <cstdint>

#include "posenc/frequency.h"

#ifdef __FAST_MATH__
#error "posenc is exact: build it without -ffast-math and -Ofast"
#endif

namespace posenc::numerics {

// 128-bit integers are an extension of g++ and clang on every 64-bit machine and in WebAssembly.
__extension__ using uint128 = unsigned __int128;

/// The upper half of the 256-bit product: floor(a·b / 2^128).
constexpr uint128 multiply_high(uint128 a, uint128 b) {
  const auto a0 = static_cast<std::uint64_t>(a), a1 = static_cast<std::uint64_t>(a >> 64);
  const auto b0 = static_cast<std::uint64_t>(b), b1 = static_cast<std::uint64_t>(b >> 64);
  const uint128 low = static_cast<uint128>(a0) * b0;
  const uint128 cross1 = static_cast<uint128>(a0) * b1, cross2 = static_cast<uint128>(a1) * b0;
  const uint128 carry = (low >> 64) + static_cast<std::uint64_t>(cross1) + static_cast<std::uint64_t>(cross2);
  return static_cast<uint128>(a1) * b1 + (cross1 >> 64) + (cross2 >> 64) + (carry >> 64);
}

/// count × frequency modulo one turn, exact: only whole turns overflow.
constexpr Frequency times(const Frequency& frequency, std::uint64_t count) {
  Frequency product;
  uint128 carry = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    carry += static_cast<uint128>(frequency.words[i]) * count;
    product.words[i] = static_cast<std::uint64_t>(carry);
    carry >>= 64;
  }
  return product;
}

/// The upper 128 bits of `times`, short of the exact value by less than count·2^-128 turns.
constexpr uint128 times_short(const Frequency& frequency, std::uint64_t count) {
  const uint128 top = static_cast<uint128>(frequency.words[3]) << 64 | frequency.words[2];
  return top * count;
}

/// One turn minus the phase: the opposite angle.
constexpr Frequency opposite(const Frequency& phase) {
  Frequency result;
  bool carry = true;
  for (std::size_t i = 0; i < 4; ++i) {
    result.words[i] = ~phase.words[i] + (carry ? 1u : 0u);
    carry = carry && result.words[i] == 0;
  }
  return result;
}

/// one + other modulo one turn, exact.
constexpr Frequency sum_of(const Frequency& one, const Frequency& other) {
  Frequency sum;
  uint128 carry = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    carry += static_cast<uint128>(one.words[i]) + other.words[i];
    sum.words[i] = static_cast<std::uint64_t>(carry);
    carry >>= 64;
  }
  return sum;
}

/// position × frequency modulo one turn, exact; the position may be negative.
constexpr Frequency phase_at(const Frequency& frequency, std::int64_t position) {
  if (position < 0) return opposite(times(frequency, static_cast<std::uint64_t>(-position)));
  return times(frequency, static_cast<std::uint64_t>(position));
}

}  // namespace posenc::numerics
