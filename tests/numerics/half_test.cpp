// Every 16-bit float: its value, and the conversion back.

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

}  // namespace
}  // namespace posenc::half_test
