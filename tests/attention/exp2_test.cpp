// The power of 2 that softmax uses, on every SIMD target: error in units of the last place, and the special values.

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "attention/exp2_test.cpp"
#ifndef HWY_COMPILE_ALL_ATTAINABLE
#define HWY_COMPILE_ALL_ATTAINABLE 1
#endif
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"

// after foreach_target.h, so that it is compiled for each target
#include "attention/cpu/exp2-inl.h"

HWY_BEFORE_NAMESPACE();
namespace posenc::attend::cpu::HWY_NAMESPACE {

void powers(const float* x, float* out, std::size_t count) {  // count is a multiple of every vector
  const hn::ScalableTag<float> d;
  for (std::size_t i = 0; i < count; i += hn::Lanes(d)) {
    hn::StoreU(exp2_of_negative(d, hn::LoadU(d, x + i)), d, out + i);
  }
}

}  // namespace posenc::attend::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <vector>

#include "backends.h"
#include "sanitized.h"

namespace posenc::attend::cpu {
namespace {

HWY_EXPORT(powers);

double units_off(float got, float x) {
  const double want = std::exp2(static_cast<double>(x));
  int exponent = 0;
  std::frexp(want, &exponent);
  return std::fabs(static_cast<double>(got) - want) / std::ldexp(1.0, exponent - 24);
}

// Every float from −2 to −1, which are all fractions there are at that size, and every 997th of all others.
TEST(Exp2, IsWithinOneAndAHalfUnits) {
  for (const std::string& target : simd_targets()) {
    SCOPED_TRACE(target);
    force_simd_target(target);
    double worst = 0;
    std::vector<float> x, y;
    const auto flush = [&] {
      while (x.size() % 256 != 0) x.push_back(0.0f);
      y.resize(x.size());
      HWY_DYNAMIC_DISPATCH(powers)(x.data(), y.data(), x.size());
      for (std::size_t i = 0; i < x.size(); ++i) worst = std::max(worst, units_off(y[i], x[i]));
      x.clear();
    };
    const auto from = std::bit_cast<std::uint32_t>(-1.0f), to = std::bit_cast<std::uint32_t>(-126.0f);
    const std::uint32_t every = is_sample() || target == "EMU128" || target == "SCALAR" ? 61 : 1;
    for (std::uint32_t bits = from; bits <= std::bit_cast<std::uint32_t>(-2.0f); bits += every) {
      x.push_back(std::bit_cast<float>(bits));
      if (x.size() == 1 << 16) flush();
    }
    for (std::uint32_t bits = 0x80000000U; bits <= to; bits += 997) {
      x.push_back(std::bit_cast<float>(bits));
      if (x.size() == 1 << 16) flush();
    }
    flush();
    EXPECT_LE(worst, 1.5);
    RecordProperty(target, std::to_string(worst));
    force_simd_target("");
  }
}

TEST(Exp2, KnowsSpecialValues) {
  for (const std::string& target : simd_targets()) {
    SCOPED_TRACE(target);
    force_simd_target(target);
    std::vector<float> x(256, 0.0f), y(256);
    x[0] = -HUGE_VALF;
    x[1] = std::nanf("");
    x[2] = -0.0f;
    x[3] = -127.0f;
    x[4] = -1e30f;
    x[5] = -126.0f;
    x[6] = -1e-30f;
    HWY_DYNAMIC_DISPATCH(powers)(x.data(), y.data(), x.size());
    EXPECT_EQ(y[0], 0.0f);
    EXPECT_TRUE(std::isnan(y[1]));
    EXPECT_EQ(y[2], 1.0f);
    EXPECT_EQ(y[3], 0.0f);
    EXPECT_EQ(y[4], 0.0f);
    EXPECT_EQ(y[5], 0x1p-126f);
    EXPECT_EQ(y[6], 1.0f);
    EXPECT_EQ(y[255], 1.0f);
    force_simd_target("");
  }
}

}  // namespace
}  // namespace posenc::attend::cpu
#endif
