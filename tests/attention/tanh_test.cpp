// The tanh of the softcap, on every SIMD target: error in units of the last place, and the special values.

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "attention/tanh_test.cpp"
#ifndef HWY_COMPILE_ALL_ATTAINABLE
#define HWY_COMPILE_ALL_ATTAINABLE 1
#endif
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"

// after foreach_target.h, so that it is compiled for each target
#include "attention/cpu/tanh-inl.h"

HWY_BEFORE_NAMESPACE();
namespace posenc::attend::cpu::HWY_NAMESPACE {

// cap · tanh(x / cap), or tanh(x) if the cap is 0; count is a multiple of every vector.
void capped(const float* x, float cap, float* out, std::size_t count) {
  const hn::ScalableTag<float> d;
  for (std::size_t i = 0; i < count; i += hn::Lanes(d)) {
    const auto v = hn::LoadU(d, x + i);
    hn::StoreU(cap > 0 ? cap_of(d, v, cap) : tanh_of(d, v), d, out + i);
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

namespace posenc::attend::cpu {
namespace {

HWY_EXPORT(capped);

double units_from(float got, double want) {
  int exponent = 0;
  std::frexp(want, &exponent);
  return std::fabs(static_cast<double>(got) - want) / std::ldexp(1.0, exponent - 24);
}

// Every 997th float of either sign, from 2^-100 to 2^100, with caps and without.
TEST(Tanh, IsWithinFourUnitsAndCapsWithinFive) {
  for (const std::string& target : simd_targets()) {
    SCOPED_TRACE(target);
    force_simd_target(target);
    std::vector<float> x;
    for (auto bits = std::bit_cast<std::uint32_t>(0x1p-100f); bits < std::bit_cast<std::uint32_t>(0x1p100f);
         bits += 997) {
      const auto size = std::bit_cast<float>(bits);
      x.push_back(bits % 2 == 0 ? size : -size);
    }
    while (x.size() % 256 != 0) x.push_back(9.0f);
    std::vector<float> y(x.size());
    for (const float cap : {0.0f, 1.0f, 43.28f, 72.13475f}) {
      HWY_DYNAMIC_DISPATCH(capped)(x.data(), cap, y.data(), x.size());
      const double c = cap > 0 ? static_cast<double>(cap) : 1.0;
      double worst = 0;
      for (std::size_t i = 0; i < x.size(); ++i) {
        worst = std::max(worst, units_from(y[i], c * std::tanh(static_cast<double>(x[i]) / c)));
      }
      EXPECT_LE(worst, cap > 0 ? 5.0 : 4.0) << "cap " << cap;
      RecordProperty(target, std::to_string(worst));
    }
    force_simd_target("");
  }
}

TEST(Tanh, KnowsSpecialValues) {
  for (const std::string& target : simd_targets()) {
    SCOPED_TRACE(target);
    force_simd_target(target);
    std::vector<float> x(256, 0.0f), y(256);
    x[0] = HUGE_VALF;
    x[1] = -HUGE_VALF;
    x[2] = std::nanf("");
    x[3] = -0.0f;
    x[4] = 1e-30f;
    for (const float cap : {0.0f, 50.0f}) {
      const float most = cap > 0 ? cap : 1.0f;
      HWY_DYNAMIC_DISPATCH(capped)(x.data(), cap, y.data(), x.size());
      EXPECT_EQ(y[0], most);
      EXPECT_EQ(y[1], -most);
      EXPECT_TRUE(std::isnan(y[2]));
      EXPECT_EQ(std::bit_cast<std::uint32_t>(y[3]), 0x80000000U);
      EXPECT_EQ(y[4], 1e-30f);
    }
    force_simd_target("");
  }
}

}  // namespace
}  // namespace posenc::attend::cpu
#endif
