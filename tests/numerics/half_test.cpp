// Every float of 16 and 8 bits: its value, and the conversion back.

#include "posenc/half.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace posenc::half_test {
namespace {

// By the definition of the formats, with `fraction` bits after the point.
double value_of(unsigned bits, int fraction) {
  const int exponent_bits = 15 - fraction, bias = (1 << (exponent_bits - 1)) - 1;
  const int exponent = static_cast<int>(bits >> fraction) & ((1 << exponent_bits) - 1);
  const double digits = bits & ((1U << fraction) - 1);
  const double sign = (bits & 0x8000U) != 0 ? -1 : 1;
  if (exponent == (1 << exponent_bits) - 1) {
    return digits == 0 ? sign * std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN();
  }
  const double scaled = exponent == 0 ? digits : digits + (1 << fraction);
  return sign * std::ldexp(scaled, (exponent == 0 ? 1 : exponent) - bias - fraction);
}

template <class T, class Round> void check_all(int fraction, Round round) {
  for (unsigned bits = 0; bits < 0x10000U; ++bits) {
    const T one{static_cast<std::uint16_t>(bits)};
    const double expected = value_of(bits, fraction), value = to_double(one);
    if (std::isnan(expected)) {
      ASSERT_TRUE(std::isnan(value)) << bits;
      ASSERT_TRUE(std::isnan(to_double(round(value)))) << bits;
      continue;
    }
    ASSERT_EQ(value, expected) << bits;
    ASSERT_EQ(std::signbit(value), std::signbit(expected)) << bits;
    ASSERT_EQ(round(value), one) << bits;
  }
}

TEST(Half, EveryValueThereAndBack) {
  check_all<Half>(10, to_half);
  check_all<BFloat16>(7, to_bfloat16);
}

TEST(Half, RoundsToNearestAndTiesToEven) {
  EXPECT_EQ(to_double(to_bfloat16(257)), 256);  // between 256 and 258: to the even one
  EXPECT_EQ(to_double(to_bfloat16(259)), 260);  // between 258 and 260
  EXPECT_EQ(to_double(to_bfloat16(257.01)), 258);
  EXPECT_EQ(to_double(to_half(2049)), 2048);
  EXPECT_EQ(to_double(to_half(2051)), 2052);
  EXPECT_EQ(to_double(to_half(65519)), 65504);  // the largest; half a step more is infinite
  EXPECT_TRUE(std::isinf(to_double(to_half(65520))));
}

TEST(E4M3, EveryValueThereAndBack) {
  for (unsigned bits = 0; bits < 0x100U; ++bits) {
    const E4M3 one{static_cast<std::uint8_t>(bits)};
    const int exponent = static_cast<int>(bits >> 3 & 0xF), digits = static_cast<int>(bits & 7);
    const double size = exponent == 0 ? std::ldexp(digits, -9) : std::ldexp(8 + digits, exponent - 10);
    if ((bits & 0x7FU) == 0x7F) {
      EXPECT_TRUE(std::isnan(to_double(one))) << bits;
      continue;
    }
    EXPECT_EQ(to_double(one), (bits & 0x80U) != 0 ? -size : size) << bits;
    EXPECT_EQ(to_e4m3(to_double(one)), one) << bits;
  }
  EXPECT_EQ(to_e4m3(std::nan("")).bits & 0x7F, 0x7F);
}

TEST(E4M3, RoundsToNearestAndSaturates) {
  // halfway between neighbours: to the even one
  for (unsigned bits = 0; bits < 0x7EU; ++bits) {
    const double low = to_double(E4M3{static_cast<std::uint8_t>(bits)}),
                 high = to_double(E4M3{static_cast<std::uint8_t>(bits + 1)}), middle = (low + high) / 2;
    EXPECT_EQ(to_e4m3(middle).bits, bits + bits % 2) << bits;
    EXPECT_EQ(to_e4m3(std::nextafter(middle, 0)).bits, bits) << bits;
    EXPECT_EQ(to_e4m3(-std::nextafter(middle, 1e9)).bits, 0x80U + bits + 1) << bits;
  }
  const double infinity = std::numeric_limits<double>::infinity();
  for (const double large : {448.0, 464.0, 480.0, 1e300, infinity}) {
    EXPECT_EQ(to_double(to_e4m3(large)), 448);
    EXPECT_EQ(to_double(to_e4m3(-large)), -448);
  }
  EXPECT_EQ(to_e4m3(1e-300).bits, 0);
  EXPECT_EQ(to_e4m3(-0.0).bits, 0x80);
}

}  // namespace
}  // namespace posenc::half_test
