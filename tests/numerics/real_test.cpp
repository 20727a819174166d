// 448-bit numbers against MPFR.

#include "numerics/real.h"

#include <gtest/gtest.h>
#include <mpfr.h>

#include <cmath>
#include <limits>
#include <random>

#include "numerics/real_access.h"

namespace posenc::numerics::real_test {
namespace {

class Exact {
 public:
  static constexpr int kPrecision = 1000;
  Exact() { mpfr_init2(value_, kPrecision); }
  explicit Exact(const Real& x) : Exact() {
    mpfr_set_zero(value_, 1);
    for (std::size_t i = Real::kWords; i-- > 0;) {
      mpfr_mul_2si(value_, value_, 64, MPFR_RNDN);
      mpfr_add_ui(value_, value_, RealAccess::words(x)[i], MPFR_RNDN);
    }
    mpfr_mul_2si(value_, value_, RealAccess::exponent(x) - Real::kBits, MPFR_RNDN);
    if (RealAccess::negative(x)) mpfr_neg(value_, value_, MPFR_RNDN);
  }
  Exact(const Exact&) = delete;
  Exact& operator=(const Exact&) = delete;
  ~Exact() { mpfr_clear(value_); }
  mpfr_ptr get() { return value_; }

 private:
  mpfr_t value_;
};

// log2 of |got − want| / |want|; −∞ where they are the same.
double error_bits(const Real& got, Exact& want) {
  Exact difference(got);
  mpfr_sub(difference.get(), difference.get(), want.get(), MPFR_RNDN);
  if (mpfr_zero_p(difference.get())) return -std::numeric_limits<double>::infinity();
  mpfr_div(difference.get(), difference.get(), want.get(), MPFR_RNDN);
  mpfr_abs(difference.get(), difference.get(), MPFR_RNDN);
  mpfr_log2(difference.get(), difference.get(), MPFR_RNDN);
  return mpfr_get_d(difference.get(), MPFR_RNDN);
}

// All 448 bits random.
Real any_real(std::mt19937_64& random, int range = 60) {
  std::array<std::uint64_t, Real::kWords> words{};
  for (std::uint64_t& word : words) word = random();
  if (random() % 8 == 0) words[random() % 6] = random() % 2 == 0 ? 0 : ~std::uint64_t{0};  // long runs of equal bits
  words.back() |= std::uint64_t{1} << 63;
  const Real x(words, static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(2 * range)) - range);
  return random() % 2 == 0 ? x : -x;
}

TEST(Real, SumsProductsAndQuotientsAreRoundedToTheLastBit) {
  std::mt19937_64 random(1);
  Exact want;
  for (int round = 0; round < 4000; ++round) {
    const Real a = any_real(random), b = round % 5 == 0 ? -a + ldexp(any_real(random), -300) : any_real(random);
    Exact x(a), y(b);
    mpfr_add(want.get(), x.get(), y.get(), MPFR_RNDN);
    ASSERT_LE(error_bits(a + b, want), -448) << round;
    mpfr_sub(want.get(), x.get(), y.get(), MPFR_RNDN);
    ASSERT_LE(error_bits(a - b, want), -448) << round;
    mpfr_mul(want.get(), x.get(), y.get(), MPFR_RNDN);
    ASSERT_LE(error_bits(a * b, want), -448) << round;
    mpfr_div(want.get(), x.get(), y.get(), MPFR_RNDN);
    ASSERT_LE(error_bits(a / b, want), -448) << round;
    ASSERT_EQ(a < b, mpfr_less_p(x.get(), y.get()) != 0);
    ASSERT_EQ(a == b, mpfr_equal_p(x.get(), y.get()) != 0);
  }
}

TEST(Real, FunctionsAreGoodTo416Bits) {
  std::mt19937_64 random(2);
  Exact want;
  for (int round = 0; round < 300; ++round) {
    const Real a = abs(any_real(random, 200)), small = any_real(random, 8), b = any_real(random, 5);
    Exact x(a), s(small), y(b);
    mpfr_sqrt(want.get(), x.get(), MPFR_RNDN);
    ASSERT_LE(error_bits(sqrt(a), want), -416) << round;
    mpfr_log(want.get(), x.get(), MPFR_RNDN);
    ASSERT_LE(error_bits(log(a), want), -416) << round;
    mpfr_exp(want.get(), s.get(), MPFR_RNDN);
    ASSERT_LE(error_bits(exp(small), want), -416) << round;
    mpfr_pow(want.get(), x.get(), y.get(), MPFR_RNDN);
    ASSERT_LE(error_bits(pow(a, b), want), -400) << round;
    ASSERT_TRUE(floor(a) <= a && a < floor(a) + 1 && ceil(a) >= a && ceil(a) - floor(a) <= 1 && floor(-a) == -ceil(a))
        << round;
  }
  mpfr_const_pi(want.get(), MPFR_RNDN);
  mpfr_mul_ui(want.get(), want.get(), 2, MPFR_RNDN);
  EXPECT_LE(error_bits(two_pi(), want), -447);
  mpfr_const_log2(want.get(), MPFR_RNDN);
  EXPECT_LE(error_bits(log(Real(2)), want), -440);
}

TEST(Real, WhatFitsIsExact) {
  EXPECT_EQ(Real(6) / 2, Real(3));
  EXPECT_EQ(Real(1) / 3 * 3, Real(1));
  EXPECT_EQ(sqrt(Real(144)), Real(12));
  EXPECT_EQ(sqrt(ldexp(Real(1), -200)), ldexp(Real(1), -100));
  EXPECT_EQ(pow(Real(10), Real(20)), Real(10'000'000'000) * Real(10'000'000'000));
  EXPECT_EQ(pow(Real(2), Real(-3)), Real(0.125));
  EXPECT_EQ(pow(Real(4), Real(0.5)), Real(2));
  EXPECT_EQ(exp(Real(0)), Real(1));
  EXPECT_EQ(log(Real(1)), Real(0));
  EXPECT_EQ(floor(Real(-2.5)), Real(-3));
  EXPECT_EQ(ceil(Real(-2.5)), Real(-2));
  EXPECT_EQ(Real(-7).convert_to<std::int64_t>(), -7);
  EXPECT_EQ(Real(~std::uint64_t{0}).convert_to<std::uint64_t>(), ~std::uint64_t{0});
  EXPECT_EQ(Real(std::numeric_limits<std::int64_t>::min()).convert_to<std::int64_t>(),
            std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(ldexp(Real(1), 80).convert_to<std::int64_t>(), std::numeric_limits<std::int64_t>::max());
}

template <class T> T by_mpfr(mpfr_ptr value) {
  if constexpr (sizeof(T) == 4) return mpfr_get_flt(value, MPFR_RNDN);
  return static_cast<T>(mpfr_get_d(value, MPFR_RNDN));
}

// Random numbers, and those halfway between two floats or a little beside.
template <class T> void check_conversions(int range) {
  std::mt19937_64 random(3);
  for (int round = 0; round < 20000; ++round) {
    Real x = any_real(random, range);
    if (round % 2 == 0) {
      const T near = x.convert_to<T>();
      const Real other = std::nextafter(near, T{0});
      x = (Real(near) + other) / 2;
      if (round % 3 != 0) x += ldexp(x, random() % 2 == 0 ? -300 : -440) * (random() % 2 == 0 ? 1 : -1);
    }
    if (RealAccess::kind(x) != RealAccess::Kind::kFinite) continue;
    Exact want(x);
    ASSERT_EQ(x.convert_to<T>(), by_mpfr<T>(want.get())) << round;
  }
}

TEST(Real, ConversionsAreToTheNearestWithTiesToEven) {
  check_conversions<double>(60);
  check_conversions<float>(60);
  check_conversions<double>(1090);  // below the least normal number, and beyond the largest
  check_conversions<float>(160);
}

TEST(Real, InfinitiesAndNans) {
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ((Real(1) / 0).convert_to<double>(), infinity);
  EXPECT_EQ((Real(-1) / 0).convert_to<double>(), -infinity);
  EXPECT_EQ(Real(1) / Real(infinity), Real(0));
  EXPECT_EQ(log(Real(0)).convert_to<double>(), -infinity);
  EXPECT_EQ((Real(infinity) + 1).convert_to<double>(), infinity);
  for (const Real& nan : {Real(0) / 0, Real(infinity) - Real(infinity), log(Real(-1)), sqrt(Real(-1)),
                          Real(0) * infinity, Real(std::nan(""))}) {
    EXPECT_TRUE(std::isnan(nan.convert_to<double>()));
    EXPECT_FALSE(nan == nan);
    EXPECT_FALSE(nan < 1 || nan > 1);
  }
  EXPECT_TRUE(Real(-infinity) < Real(-1e300) && Real(infinity) > Real(1e300));
}

}  // namespace
}  // namespace posenc::numerics::real_test
