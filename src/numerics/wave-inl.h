#pragma once

// The steps of wave.h, shared by the library (wave.cpp) and the GPU kernels (kernels/cuda/elements.cuh): plain
// arithmetic, without system functions.

#include <array>
#include <bit>

#include "numerics/wave.h"

namespace posenc::numerics {
namespace detail {

// --- level 1: double ------------------------------------------------------------------------------------------

inline double quarter_value(unsigned quarter, double sine, double cosine) noexcept {
  const double value = quarter & 1 ? cosine : sine;
  return quarter & 2 ? -value : value;
}

// --- level 2: integers ------------------------------------------------------------------------------------------

// 2^128/(2n+1)! and 2^128/(2n)!, n = 1 … 17, each short by less than 2.
constexpr std::array<uint128, 18> fixed_series(bool sine) {
  std::array<uint128, 18> table{};
  uint128 term = ~uint128{0};
  for (unsigned n = 1; n <= 17; ++n) {
    term /= sine ? (2 * n) * (2 * n + 1) : (2 * n - 1) * (2 * n);
    table[n] = term;
  }
  return table;
}
inline constexpr auto kFixedSine = fixed_series(true), kFixedCosine = fixed_series(false);
inline constexpr uint128 kFixedTwoPi = uint128{0xC90FDAA22168C234} << 64 | 0xC4C6628B80DC1CD1;  // floor(2π·2^125)
inline constexpr uint128 kOne = ~uint128{0};                                                    // 1 − 2^-128

inline int leading_zeros(uint128 value) noexcept {
  const auto high = static_cast<std::uint64_t>(value >> 64);
  return high != 0 ? std::countl_zero(high) : 64 + std::countl_zero(static_cast<std::uint64_t>(value));
}

// A positive number mantissa·2^exponent with the mantissa's top bit set and an error of at most `slack` units of its
// last bit. slack 0: rounding the mantissa rounds the number, because it is exact or because nothing lies between.
struct WideFraction {
  uint128 mantissa;
  int exponent;
  uint128 slack;
};

inline void normalise(WideFraction& number) noexcept {
  const int shift = leading_zeros(number.mantissa);
  number.mantissa <<= shift;
  number.slack <<= shift;
  number.exponent -= shift;
}

// Sine or cosine of 0 < phase ≤ 1/8 turn. Error in units of 2^-128: the mantissa of the phase is truncated (1), 2π is
// truncated and so is the product (2): the error of the fixed-point angle is at most 4, of its square 8; each Horner
// step adds at most 3 and passes on 0.62 of the previous error: the error of the series is at most 16. The sine is
// the product of both, with an error of at most 32 before it is normalised by up to 2 bits. Hence 2^8, plus the error
// of the phase itself: count·2^-257 turns.
inline WideFraction by_series(const Frequency& phase, std::uint64_t count, bool sine) noexcept {
  // Words move up until the first is not 0. Words have constant indices: on a GPU, variable ones would go through
  // memory.
  int zeros = 0;
  std::array<std::uint64_t, 3> top = {phase.words[3], phase.words[2], phase.words[1]};
  std::uint64_t last = phase.words[0];
  while (zeros < 192 && top[0] == 0) {
    top = {top[1], top[2], last};
    last = 0;
    zeros += 64;
  }
  const int shift = std::countl_zero(top[0]);
  uint128 mantissa = static_cast<uint128>(top[0]) << 64 | top[1];
  if (shift > 0) mantissa = mantissa << shift | top[2] >> (64 - shift);
  zeros += shift;  // phase = mantissa · 2^-(128 + zeros), zeros ≥ 2

  const uint128 angle = multiply_high(mantissa, kFixedTwoPi);  // · 2^-(125 + zeros)
  const int right = zeros - 3;
  const uint128 fixed = right < 0 ? angle << -right : right < 128 ? angle >> right : 0;  // · 2^-128
  const uint128 square = multiply_high(fixed, fixed);
  const auto& series = sine ? kFixedSine : kFixedCosine;
  uint128 sum = series[17];
  for (std::size_t n = 17; n-- > 1;) sum = series[n] - multiply_high(square, sum);
  const uint128 ratio = kOne - multiply_high(square, sum);  // sin(x)/x, or cos x

  // So close to 1 that only the side matters: 1 − 2^-128 stands for every number in (1 − 2^-100, 1), and for its
  // product with a 53-bit scale, since no format has a midpoint between either of them and the end.
  if (!sine && zeros >= 54) return {kOne, -128, 0};

  const int lost = zeros - 129;  // the phase's error: count·2^lost units of its mantissa
  const uint128 off = lost <= -53 ? 1
                      : lost < 0  ? (count >> -lost) + 1
                      : lost < 64 ? uint128{count} << lost
                                  : kOne >> 4;
  WideFraction result = sine ? WideFraction{multiply_high(angle, ratio), -(125 + zeros), 256 + 4 * off}
                             : WideFraction{ratio, -128, 256 + 4 * off};
  normalise(result);
  return result;
}

// value · |scale|, scale ≠ 0.
inline WideFraction scaled(WideFraction value, double scale) noexcept {
  const Parts parts = parts_of(scale);
  const uint128 factor = static_cast<uint128>(parts.digits) << 75;  // |scale| = factor · 2^(exponent − 128)
  value.mantissa = multiply_high(value.mantissa, factor);
  value.exponent += parts.exponent + 53;
  if (value.slack != 0) value.slack += 1;
  normalise(value);
  return value;
}

// To nearest in the format, ties to even.
struct Rounding {
  double value;
  bool decided;
};
inline Rounding round_wide(const WideFraction& number, Format format) noexcept {
  const int leading = number.exponent + 127;
  const int room = leading - format.least_exponent + 1;  // bits above the smallest number's last
  const int kept = room < format.bits ? room : format.bits;
  if (kept < 0) return {0.0, true};
  const uint128 half = uint128{1} << (127 - kept);
  const uint128 rest = kept == 0 ? number.mantissa : number.mantissa & ((half << 1) - 1);
  const std::uint64_t digits = kept == 0 ? 0 : static_cast<std::uint64_t>(number.mantissa >> (128 - kept));
  const uint128 distance = rest > half ? rest - half : half - rest;
  const bool up = rest == half ? (digits & 1) != 0 : rest > half;
  return {times_power(static_cast<double>(digits + (up ? 1 : 0)), number.exponent + 128 - kept),
          number.slack == 0 || distance > number.slack};
}

}  // namespace detail

// Error. The remainder of the phase, in turns, is too small by less than count·2^-128. From 2^-12 turns up, the angle
// x + low is computed in integers: truncating 2π at 2^-61 and the product at 2^-61 leaves it within 2^-60, and low
// holds what does not fit into x. Then, in units of 2^-53 absolute: the error of the sine's last sum is at most 0.5,
// of the rest of its polynomial (below 0.09) 0.3, of its omitted terms and of the angle 0.1; of the cosine's last sum
// 0.5, of the rest (below 0.31) 0.6. Both are below 2: 2^-52.
// Below 2^-12 turns, x is the product of doubles: conversion 2, 2π 0.4 and product 1 unit, relative; with the sum 1
// and the rest 0.1 that is below 8 units: 2^-50, relative, and far less in absolute terms. The missing count·2^-128
// stays below one more unit if the remainder is at least count·2^-75, which `relative` indicates.
Reduced reduce(const Angle& angle) noexcept {
#ifdef __CUDA_ARCH__
#pragma clang fp contract(on)  // a fused product has the same error bound at half the work
#endif
  const uint128 phase = times_short(angle.unit, angle.count);
  const auto top = static_cast<std::uint64_t>(phase >> 64);
  const auto quarter = static_cast<unsigned>((top + (std::uint64_t{1} << 61)) >> 62);
  const auto rest = static_cast<std::int64_t>(top - (static_cast<std::uint64_t>(quarter) << 62));
  const auto magnitude = static_cast<std::uint64_t>(rest < 0 ? -rest : rest);
  double x = 0.0, low = 0.0;
  if (magnitude >= std::uint64_t{1} << 52) {
    const auto radians = static_cast<std::int64_t>(static_cast<uint128>(magnitude) * kFixedTwoPi61 >> 64);
    const auto whole = static_cast<double>(radians);
    x = whole * 0x1p-61;
    low = static_cast<double>(radians - static_cast<std::int64_t>(whole)) * 0x1p-61;
    if (rest < 0) x = -x, low = -low;
  } else {
    const double turns =
        static_cast<double>(rest) * 0x1p-64 + static_cast<double>(static_cast<std::uint64_t>(phase)) * 0x1p-128;
    x = turns * kTwoPi;
  }
  const double z = x * x;
  double s = kSineSeries[7], c = kCosineSeries[6];
  for (std::size_t k = 7; k-- > 0;) s = kSineSeries[k] - z * s;
  for (std::size_t k = 6; k-- > 0;) c = kCosineSeries[k] - z * c;
  const double cosine = 1.0 - (0.5 * z + (x * low - z * (z * c)));
  return {quarter, x + (low * cosine - x * (z * s)), cosine, magnitude > (angle.count >> 11) + 1};
}

SineCosine sine_cosine(const Reduced& r) noexcept {
  return {detail::quarter_value(r.quarter, r.sine, r.cosine), detail::quarter_value(r.quarter + 1, r.sine, r.cosine)};
}

namespace detail {

// sin(2π(angle + quarter/4)): its magnitude and sign.
struct SignedWave {
  WideFraction size;
  bool negative, is_zero;
};
inline SignedWave by_integers(const Angle& angle, unsigned quarter) noexcept {
  Frequency phase = times(angle.unit, angle.count);
  phase.words[3] += static_cast<std::uint64_t>(quarter) << 62;
  const auto nearest = static_cast<unsigned>((phase.words[3] + (std::uint64_t{1} << 61)) >> 62);
  phase.words[3] -= static_cast<std::uint64_t>(nearest) << 62;
  const bool behind = static_cast<std::int64_t>(phase.words[3]) < 0;
  if (behind) phase = opposite(phase);
  const bool sine = (nearest & 1) == 0;
  const bool negative = ((nearest & 2) != 0) != (sine && behind);
  const bool on_quarter = (phase.words[0] | phase.words[1] | phase.words[2] | phase.words[3]) == 0;
  if (on_quarter) return {WideFraction{uint128{1} << 127, -127, 0}, negative, sine};
  return {by_series(phase, angle.count, sine), negative, false};
}

}  // namespace detail

template <class T> bool round_wave_by_integers(T& out, const Angle& angle, unsigned quarter, double scale) noexcept {
  const detail::SignedWave wave = detail::by_integers(angle, quarter);
  if (wave.is_zero || scale == 0) {
    out = narrow<T>(0.0);  // an exact zero is +0; only what rounds to zero keeps its sign
    return true;
  }
  const detail::Rounding rounded = detail::round_wide(detail::scaled(wave.size, scale), format_of<T>());
  if (!rounded.decided && sizeof(T) < sizeof(double)) return false;
  out = narrow<T>(wave.negative != (scale < 0) ? -rounded.value : rounded.value);
  return true;
}

template <class T> bool round_surely(T& out, const Reduced& r, unsigned quarter, double scale) noexcept {
  if constexpr (sizeof(T) < sizeof(double)) {
    const bool sine = ((r.quarter + quarter) & 1) == 0;
    const double value = detail::quarter_value(r.quarter + quarter, r.sine, r.cosine) * scale;
    // 2^-50 and half an ulp for the scale, doubled; then checks what the exact value could round to.
    const double error = (value < 0 ? -value : value) * 0x1p-49;
    const T low = narrow<T>(value - error), high = narrow<T>(value + error);
    if (low == high && value != 0 && (r.relative || !sine)) {
      out = low;
      return true;
    }
  }
  return false;
}

template <class T>
bool round_wave(T& out, const Angle& angle, const Reduced& r, unsigned quarter, double scale) noexcept {
  return round_surely(out, r, quarter, scale) || round_wave_by_integers(out, angle, quarter, scale);
}

}  // namespace posenc::numerics
