#pragma once

// The steps of radians.h, shared by the library and the GPU kernels.

#include <array>
#include <bit>

#include "numerics/radians.h"

namespace posenc::numerics {
namespace detail {

// 1/(2π) = 0.28be60db…₁₆, 384 bits, least significant word first: 256 for the result and 104 for the largest float.
inline constexpr std::array<std::uint64_t, 6> kTurnsPerRadian = {0x01924bba82746487, 0x6dc91b8e909374b8,
                                                                 0x7f9458eaf7aef158, 0x36d8a5664f10e410,
                                                                 0x7f09d5f47d4d3770, 0x28be60db9391054a};

// 2^exponent radians in turns, modulo one turn: a window of the digits above.
inline Frequency turns_of_power(int exponent) noexcept {
  Frequency unit;
  for (int word = 0; word < 4; ++word) {
    // Bit 0 of this word is bit `from` of the 384-bit fraction.
    const int from = 128 - exponent + 64 * word;
    const int index = from >= 0 ? from / 64 : -((63 - from) / 64);
    const int shift = from - 64 * index;
    const auto digit = [](int i) { return i >= 0 && i < 6 ? kTurnsPerRadian[i] : 0; };
    std::uint64_t bits = digit(index) >> shift;
    if (shift > 0) bits |= digit(index + 1) << (64 - shift);
    unit.words[word] = bits;
  }
  return unit;
}

}  // namespace detail

inline Angle radians_as_angle(float radians) noexcept {
  const auto bits = std::bit_cast<std::uint32_t>(radians);
  const auto biased = static_cast<int>(bits >> 23 & 0xFF);
  const std::uint32_t fraction = bits & 0x7FFFFF;
  const std::uint32_t mantissa = biased == 0 ? fraction : fraction | 0x800000;
  const Frequency unit = detail::turns_of_power((biased == 0 ? 1 : biased) - 150);
  return {bits >> 31 != 0 ? opposite(unit) : unit, mantissa};
}

}  // namespace posenc::numerics
