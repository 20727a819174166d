#include "numerics/narrow.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace posenc::numerics::narrow_test {
namespace {

// All 65536 values, in order, make every neighbour and every midpoint of a 16-bit format.
template <class T> void expect_roundings_between_neighbours() {
  for (std::uint32_t bits = 0; bits < 0x7FFF; ++bits) {
    const T low{static_cast<std::uint16_t>(bits)}, high{static_cast<std::uint16_t>(bits + 1)};
    const double a = widen(low), b = widen(high);
    if (!std::isfinite(b)) break;
    ASSERT_EQ(narrow<T>(a), low);
    ASSERT_EQ(narrow<T>(-a).bits, low.bits | 0x8000);
    const double middle = a + (b - a) / 2;
    ASSERT_EQ(narrow<T>(middle), (bits & 1) == 0 ? low : high) << bits;
    ASSERT_EQ(narrow<T>(std::nextafter(middle, a)), low) << bits;
    ASSERT_EQ(narrow<T>(std::nextafter(middle, b)), high) << bits;
  }
}

TEST(Narrow, RoundsF16ToNearestEven) { expect_roundings_between_neighbours<Half>(); }
TEST(Narrow, RoundsBf16ToNearestEven) { expect_roundings_between_neighbours<BFloat16>(); }

TEST(Narrow, OverflowsToInfinityAndKeepsNan) {
  EXPECT_EQ(narrow<Half>(65519.99).bits, 0x7BFF);
  EXPECT_EQ(narrow<Half>(65520.0).bits, 0x7C00);
  EXPECT_EQ(narrow<Half>(-1e300).bits, 0xFC00);
  EXPECT_EQ(narrow<BFloat16>(1e300).bits, 0x7F80);
  EXPECT_TRUE(std::isnan(widen(narrow<Half>(std::numeric_limits<double>::quiet_NaN()))));
  EXPECT_TRUE(std::isnan(widen(narrow<BFloat16>(std::numeric_limits<double>::quiet_NaN()))));
  EXPECT_EQ(narrow<Half>(0x1p-26).bits, 0);
  EXPECT_EQ(narrow<Half>(0x1.8p-25).bits, 1);
}

}  // namespace
}  // namespace posenc::numerics::narrow_test
