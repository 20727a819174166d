#pragma once

#include <bit>
#include <cstdint>

#include "posenc/half_types.h"

namespace posenc::numerics {

/// A binary floating-point format: significant bits, and the exponent of the last bit of its smallest number.
struct Format {
  int bits;
  int least_exponent;
};
template <class T> constexpr Format format_of();
template <> constexpr Format format_of<float>() { return {24, -149}; }
template <> constexpr Format format_of<double>() { return {53, -1074}; }
template <> constexpr Format format_of<Half>() { return {11, -24}; }
template <> constexpr Format format_of<BFloat16>() { return {8, -133}; }

/// The exponent and fraction bits of |value| in a format with that many fraction bits and that bias, rounded once (to
/// nearest, ties to even). Past the largest exponent they go on counting. Range: finite.
constexpr std::uint64_t round_to_field(double value, int fraction, int bias) {
  const auto bits = std::bit_cast<std::uint64_t>(value);
  const int exponent = static_cast<int>(bits >> 52 & 0x7FF);
  const int biased = exponent - 1023 + bias;
  // Below the normal range the fraction loses one bit per power of two.
  const int shift = 52 - fraction + (biased < 1 ? 1 - biased : 0);
  if (shift > 54 || exponent == 0) return 0;
  const std::uint64_t full = (bits & ((std::uint64_t{1} << 52) - 1)) | std::uint64_t{1} << 52;
  const std::uint64_t half = std::uint64_t{1} << (shift - 1);
  const std::uint64_t rest = full & ((half << 1) - 1);
  std::uint64_t kept = full >> shift;
  if (rest > half || (rest == half && (kept & 1))) ++kept;
  // A carry out of the fraction increments the exponent, which is exactly how rounding up to a power of two works.
  return biased < 1 ? kept : kept + (static_cast<std::uint64_t>(biased - 1) << fraction);
}

/// A 16-bit format, rounded once. `fraction` is 10 for f16 and 7 for bf16.
constexpr std::uint16_t round_to_16_bits(double value, int fraction) {
  const auto bits = std::bit_cast<std::uint64_t>(value);
  const auto sign = static_cast<std::uint16_t>(bits >> 48 & 0x8000);
  const int bias = (1 << (14 - fraction)) - 1;
  const std::uint16_t infinity = static_cast<std::uint16_t>(((2 * bias) + 1) << fraction);
  if ((bits >> 52 & 0x7FF) == 0x7FF) {
    // A NaN stays a NaN: its quiet bit is set whatever else is dropped.
    const auto quiet = static_cast<std::uint16_t>(value != value ? 1 << (fraction - 1) : 0);
    return static_cast<std::uint16_t>(sign | infinity | quiet);
  }
  const std::uint64_t field = round_to_field(value, fraction, bias);
  return static_cast<std::uint16_t>(sign | (field < infinity ? field : infinity));
}

/// e4m3, rounded once; what is too large becomes the largest number.
constexpr std::uint8_t round_to_e4m3(double value) {
  constexpr std::uint64_t kLargest = 0x7E, kNaN = 0x7F;
  const auto bits = std::bit_cast<std::uint64_t>(value);
  const std::uint64_t sign = bits >> 56 & 0x80;
  if (value != value) return static_cast<std::uint8_t>(sign | kNaN);
  const std::uint64_t field = (bits >> 52 & 0x7FF) == 0x7FF ? kLargest : round_to_field(value, 3, 7);
  return static_cast<std::uint8_t>(sign | (field < kLargest ? field : kLargest));
}

/// value · 2^exponent if the result is a double, exactly. Range: −1200 < exponent < 1000.
constexpr double times_power(double value, int exponent) {
  const auto power = [](int n) { return std::bit_cast<double>(static_cast<std::uint64_t>(n + 1023) << 52); };
  const int half = exponent / 2;
  return value * power(half) * power(exponent - half);
}

/// |value| = digits · 2^exponent, 2^52 ≤ digits < 2^53. Range: finite, not 0.
struct Parts {
  std::uint64_t digits;
  int exponent;
};
constexpr Parts parts_of(double value) {
  constexpr std::uint64_t kHidden = std::uint64_t{1} << 52;
  const auto bits = std::bit_cast<std::uint64_t>(value);
  const int biased = static_cast<int>(bits >> 52 & 0x7FF);
  const std::uint64_t fraction = bits & (kHidden - 1);
  if (biased != 0) return {fraction | kHidden, biased - 1075};
  const int shift = std::countl_zero(fraction) - 11;  // a subnormal has no hidden digit
  return {fraction << shift, -1074 - shift};
}

/// Rounds once, to nearest, ties to even.
template <class T> constexpr T narrow(double value);
template <> constexpr double narrow<double>(double value) { return value; }
template <> constexpr float narrow<float>(double value) { return static_cast<float>(value); }
template <> constexpr Half narrow<Half>(double value) { return {round_to_16_bits(value, 10)}; }
template <> constexpr BFloat16 narrow<BFloat16>(double value) { return {round_to_16_bits(value, 7)}; }
template <> constexpr E4M3 narrow<E4M3>(double value) { return {round_to_e4m3(value)}; }

/// A block with the bytes of ggml's quantize_row_q8_0_ref (ggml/src/ggml-quants.c, llama.cpp 01243c58): in f32, d = the largest
/// |x| / 127, each value is x · (1 / d) rounded to nearest, halves away from 0, and the scale is d as f16. ggml's vector code
/// rounds halves to even instead. Where its C has no defined result: a block with an element that is not finite has the scale
/// NaN, and one whose 1 / d is not finite (d up to 2^-128) has values of 0.
constexpr Q8Block q8_block_of(const float* x) {
  const auto size = [](float value) { return value < 0 ? -value : value; };
  float largest = 0;
  bool is_finite = true;
  for (std::int64_t i = 0; i < Q8Block::kElements; ++i) {
    largest = size(x[i]) > largest ? size(x[i]) : largest;
    is_finite = is_finite && x[i] - x[i] == 0;
  }
  if (!is_finite) return {Half{0x7E00}, {}};
  const float d = largest / 127.0f, by = d > 0x1p-128f ? 1.0f / d : 0.0f;
  Q8Block block{narrow<Half>(static_cast<double>(d)), {}};
  for (std::int64_t i = 0; i < Q8Block::kElements; ++i) {
    const float scaled = size(x[i]) * by;
    const int whole = static_cast<int>(scaled);  // the rest is exact
    const int rounded = whole + (scaled - static_cast<float>(whole) >= 0.5f ? 1 : 0);
    block.values[i] = static_cast<std::int8_t>(x[i] < 0 ? -rounded : rounded);
  }
  return block;
}

/// Exact.
constexpr double widen(double value) { return value; }
constexpr double widen(float value) { return static_cast<double>(value); }
constexpr double widen(BFloat16 value) {
  return static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(value.bits) << 16));
}
constexpr double widen(Half value) {
  const std::uint32_t sign = (value.bits & 0x8000u) << 16;
  const std::uint32_t exponent = value.bits >> 10 & 0x1F, fraction = value.bits & 0x3FFu;
  if (exponent == 0x1F) return static_cast<double>(std::bit_cast<float>(sign | 0x7F800000u | fraction << 13));
  if (exponent != 0) return static_cast<double>(std::bit_cast<float>(sign | (exponent + 112) << 23 | fraction << 13));
  const double magnitude = static_cast<double>(fraction) * 0x1p-24;
  return sign != 0 ? -magnitude : magnitude;
}
constexpr double widen(E4M3 value) {
  const std::uint32_t sign = (value.bits & 0x80u) << 24, exponent = value.bits >> 3 & 0xF, fraction = value.bits & 7u;
  if ((value.bits & 0x7Fu) == 0x7F) return static_cast<double>(std::bit_cast<float>(sign | 0x7FC00000u));
  if (exponent != 0) return static_cast<double>(std::bit_cast<float>(sign | (exponent + 120) << 23 | fraction << 20));
  const double magnitude = static_cast<double>(fraction) * 0x1p-9;
  return sign != 0 ? -magnitude : magnitude;
}

}  // namespace posenc::numerics
