// ln and e^x with 100 bits, against MPFR.

#include "numerics/logarithm.h"

#include <gtest/gtest.h>
#include <mpfr.h>

#include <algorithm>
#include <cmath>
#include <random>

namespace posenc::numerics::logarithm_test {
namespace {

// |high + low − exact| / |exact|, where `exact` is f(x) by MPFR.
double error_of(const Wide& got, double x, int (*function)(mpfr_ptr, mpfr_srcptr, mpfr_rnd_t)) {
  mpfr_t exact, difference;
  mpfr_inits2(300, exact, difference, nullptr);
  mpfr_set_d(exact, x, MPFR_RNDN);
  function(exact, exact, MPFR_RNDN);
  mpfr_sub_d(difference, exact, got.high, MPFR_RNDN);
  mpfr_sub_d(difference, difference, got.low, MPFR_RNDN);
  if (!mpfr_zero_p(exact)) mpfr_div(difference, difference, exact, MPFR_RNDN);
  const double error = std::fabs(mpfr_get_d(difference, MPFR_RNDN));
  mpfr_clears(exact, difference, nullptr);
  return error;
}

TEST(Logarithm, IsWithin75Bits) {
  std::mt19937_64 random(1);
  double largest = 0;
  for (int i = 0; i < 200'000; ++i) {
    const double mantissa = 1 + static_cast<double>(random() >> 12) * 0x1p-52;
    const double near_one = 1 + (static_cast<double>(random() >> 12) * 0x1p-52 - 0.5) * std::exp2(-(i % 40));
    for (const double x : {std::ldexp(mantissa, i % 200 - 100), near_one}) {
      largest = std::max(largest, error_of(log_of({x, 0.0}), x, &mpfr_log));
    }
  }
  for (int i = 1; i < 5000; ++i) largest = std::max(largest, error_of(log_of({1.0 * i, 0.0}), i, &mpfr_log));
  EXPECT_LE(largest, 0x1p-75) << std::log2(largest);
}

TEST(Logarithm, ExponentialIsWithin75Bits) {
  std::mt19937_64 random(2);
  double largest = 0;
  for (int i = 0; i < 200'000; ++i) {
    const double unit = static_cast<double>(random() >> 11) * 0x1p-52 - 1.0;
    const double x = i % 2 == 0 ? unit * 600 : unit * std::exp2(-(i % 60));
    largest = std::max(largest, error_of(exp_of({x, 0.0}), x, &mpfr_exp));
  }
  EXPECT_LE(largest, 0x1p-75) << std::log2(largest);
  EXPECT_EQ(exp_of({0.0, 0.0}).high, 1.0);
}

TEST(Logarithm, OfOneIsZero) {
  EXPECT_EQ(log_of({1.0, 0.0}).high, 0.0);
  EXPECT_EQ(log_of({1.0, 0.0}).low, 0.0);
}

// The second part of a number counts.
TEST(Logarithm, TakesBothParts) {
  const Wide twice = log_of(exp_of({1.0 / 3, 0.0}));
  EXPECT_EQ(twice.high, 1.0 / 3);
  EXPECT_LE(std::fabs(twice.low), 0x1p-75);
}

}  // namespace
}  // namespace posenc::numerics::logarithm_test
