#pragma once

#include <array>
#include <cstdint>

#include "numerics/fixed.h"
#include "numerics/narrow.h"

namespace posenc::numerics {

/// An angle: `count` times `unit` turns. For the exact angle the unit is the wave's frequency and the count is the
/// position; float32 radians have the same form (see radians.h).
struct Angle {
  Frequency unit;
  std::uint64_t count = 0;  // below 2^53
};

/// The angle at a position; if that is negative, the angle of the opposite frequency.
constexpr Angle angle_at(const Frequency& frequency, std::int64_t position) noexcept {
  if (position < 0) return {opposite(frequency), static_cast<std::uint64_t>(-position)};
  return {frequency, static_cast<std::uint64_t>(position)};
}

/// An angle reduced to the nearest quarter turn, with sine and cosine of the remainder in double.
/// Error: at most 2^-52, absolute; and at most 2^-50, relative (for the sine only if `relative` is set).
struct Reduced {
  unsigned quarter = 0;
  double sine = 0.0;
  double cosine = 1.0;
  bool relative = false;
};
Reduced reduce(const Angle& angle) noexcept;

/// 1/first!, 1/(first+2)!, …: Taylor coefficients on |x| ≤ π/4. The omitted terms after x^17 and x^16 are below
/// x^19/19! < 2^-63 for the sine (relative to x) and x^18/18! < 2^-58 for the cosine.
constexpr std::array<double, 9> inverse_factorials(int first) {
  std::array<double, 9> table{};
  double factorial = 1;
  for (int n = 2, k = 0; k < 9; ++n) {
    factorial *= n;
    if (n >= first && (n - first) % 2 == 0) table[k++] = 1 / factorial;
  }
  return table;
}
inline constexpr auto kSineSeries = inverse_factorials(3);    // 1/3!, 1/5!, … 1/17!
inline constexpr auto kCosineSeries = inverse_factorials(4);  // 1/4!, 1/6!, … 1/16!
inline constexpr double kTwoPi = 6.283185307179586476925286766559;
/// 2π·2^61 truncated to 64 bits: the upper half of its product with turns·2^64 is the angle in units of 2^-61
/// radians.
inline constexpr std::uint64_t kFixedTwoPi61 = 0xC90FDAA22168C234;

/// Sine and cosine of the whole angle in double. Error: at most 2^-52, absolute.
struct SineCosine {
  double sine = 0.0;
  double cosine = 1.0;
};
SineCosine sine_cosine(const Reduced& reduced) noexcept;

/// The first level of round_wave: false if doubles cannot decide the rounding, and always for double.
template <class T>
[[nodiscard]] bool round_surely(T& out, const Reduced& reduced, unsigned quarter, double scale) noexcept;

/// scale · sin(2π(angle + quarter/4)), rounded once to T (to nearest, ties to even).
/// Error: 0.5 ulp (correctly rounded); for double, if 128 bits cannot decide, at most 0.501.
/// For other types, returns false and leaves `out` unchanged if 128 bits cannot decide the rounding: that takes a
/// value within 2^-100 of a midpoint, which no frequency of a scheme has been seen to give.
template <class T> [[nodiscard]] bool round_wave(T& out, const Angle& angle, const Reduced& reduced, unsigned quarter,
                                                 double scale) noexcept;

/// The same in integers only: the last level of round_wave, and the only one for double. Slower.
template <class T>
[[nodiscard]] bool round_wave_by_integers(T& out, const Angle& angle, unsigned quarter, double scale) noexcept;

/// sin(2π(angle + quarter/4)) as the sum of two doubles, the second at most half an ulp of the first.
/// Error: at most 6 · 2^-106, absolute.
struct DoubleDouble {
  double high = 0.0, low = 0.0;
};
DoubleDouble wave_in_double_double(const Angle& angle, unsigned quarter) noexcept;

}  // namespace posenc::numerics
