#include <gtest/gtest.h>
#include <mpfr.h>

#include <cmath>
#include <limits>

#include "posenc/posenc.h"
#include "schemes/golden_array.h"

namespace posenc::kerple_test {
namespace {

using tests::refusal;

std::vector<double> values_of(const Kerple& scheme, std::int64_t length) {
  return std::get<DistanceTable>(prepare(scheme, {.length = length}).source).values;
}

// The kernel by MPFR, rounded once.
double exact_value(const Kerple& scheme, std::size_t head, double distance) {
  mpfr_t value, rate;
  mpfr_inits2(300, value, rate, nullptr);
  mpfr_set_d(rate, scheme.rates[head], MPFR_RNDN);
  if (scheme.kernel == KerpleKernel::kLog) {
    mpfr_mul_d(value, rate, distance, MPFR_RNDN);
    mpfr_log1p(value, value, MPFR_RNDN);
  } else {
    mpfr_set_d(value, distance, MPFR_RNDN);
    mpfr_pow(value, value, rate, MPFR_RNDN);
  }
  mpfr_mul_d(value, value, -scheme.amplitudes[head], MPFR_RNDN);
  const double result = mpfr_get_d(value, MPFR_RNDN);
  mpfr_clears(value, rate, nullptr);
  return result;
}

TEST(Kerple, IsTheNearestDouble) {
  for (const KerpleKernel kernel : {KerpleKernel::kLog, KerpleKernel::kPower}) {
    const Kerple scheme{.kernel = kernel, .amplitudes = {1.0, 0.37, 2.5, 1e-3}, .rates = {1.0, 0.011, 1.9, 0.5}};
    const auto values = values_of(scheme, 3000);
    std::int64_t apart = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
      const double want = exact_value(scheme, i % 4, static_cast<double>(i / 4));
      ASSERT_NEAR(values[i], want, std::fabs(want) * 0x1p-52) << i;
      if (values[i] != want) ++apart;
    }
    // the roots of squares, times 1e-3, lie halfway between two doubles now and then
    EXPECT_LE(apart, kernel == KerpleKernel::kLog ? 0 : 6);
  }
}

TEST(Kerple, PowerOfRateOneIsAlibi) {
  const Bias alibi = prepare(Alibi{.heads = 4});
  const auto& slopes = std::get<Slopes>(alibi.source).slopes;
  const Kerple scheme{.kernel = KerpleKernel::kPower, .amplitudes = slopes, .rates = {1, 1, 1, 1}};
  std::vector<double> want(4 * 9 * 9), got(want.size());
  bias(view(want.data(), {4, 9, 9}), {}, {}, alibi);
  bias(view(got.data(), {4, 9, 9}), {}, {}, prepare(scheme, {.length = 9}));
  EXPECT_EQ(got, want);
}

// Through bias_backward and the chain rule, against differences in float64.
TEST(Kerple, GradientsOfBothParameters) {
  const std::int64_t heads = 2, tokens = 13;
  std::vector<double> slope(static_cast<std::size_t>(heads * tokens * tokens));
  for (std::size_t i = 0; i < slope.size(); ++i) slope[i] = std::sin(static_cast<double>(7 * i + 1));
  for (const KerpleKernel kernel : {KerpleKernel::kLog, KerpleKernel::kPower}) {
    const Kerple scheme{.kernel = kernel, .amplitudes = {0.8, 1.7}, .rates = {0.3, 1.2}};
    const auto loss = [&](const Kerple& s) {
      std::vector<double> out(slope.size());
      bias(view(out.data(), {heads, tokens, tokens}), {.first = 5}, {.first = 2}, prepare(s, {.length = 32}));
      double sum = 0;
      for (std::size_t i = 0; i < out.size(); ++i) sum += out[i] * slope[i];
      return sum;
    };
    std::vector<double> d_table(32 * heads);
    bias_backward(view(d_table.data(), {32, heads}), view(slope.data(), {heads, tokens, tokens}),
                  {{.first = 5}, {.first = 2}}, prepare(scheme, {.length = 32}));
    const KerpleGradient gradient = backward(scheme, d_table);
    const double step = 1e-5;
    for (std::size_t h = 0; h < 2; ++h) {
      Kerple less = scheme, more = scheme;
      less.amplitudes[h] -= step, more.amplitudes[h] += step;
      EXPECT_NEAR(gradient.amplitudes[h], (loss(more) - loss(less)) / (2 * step), 1e-7);
      less = more = scheme;
      less.rates[h] -= step, more.rates[h] += step;
      EXPECT_NEAR(gradient.rates[h], (loss(more) - loss(less)) / (2 * step), 1e-7);
    }
  }
}

TEST(Kerple, SaysWhatIsWrong) {
  const auto message = [](const Kerple& scheme, std::int64_t length) {
    return refusal([&] { prepare(scheme, {.length = length}); });
  };
  EXPECT_EQ(message({}, 0),
            "kerple: the length is missing; its values are made for distances below it (PrepareOptions::length)");
  EXPECT_EQ(message({}, 1 << 21), "kerple: length must be between 1 and 1048576 but is 2097152");
  EXPECT_EQ(message({.amplitudes = {}, .rates = {}}, 4),
            "kerple: number of amplitudes must be between 1 and 65536 but is 0");
  EXPECT_EQ(message({.amplitudes = {1, 2}}, 4), "kerple: rates must be as many as amplitudes, 2, but are 1");
  EXPECT_EQ(message({.amplitudes = {0}}, 4), "kerple: amplitudes must be above 0 and finite but one is 0");
  EXPECT_EQ(message({.rates = {std::nan("")}}, 4), "kerple: rates must be above 0 and finite but one is nan");
  EXPECT_EQ(message({.kernel = KerpleKernel::kPower, .rates = {2.5}}, 4),
            "kerple: rates of the power kernel must be at most 2 but one is 2.5");
  EXPECT_EQ(refusal([] {
              const std::vector<double> gradient(3);
              backward(Kerple{.amplitudes = {1, 1}, .rates = {1, 1}}, gradient);
            }),
            "kerple: a gradient of 3 numbers does not divide into 2 heads");
  EXPECT_EQ(refusal([] {
              std::vector<float> out(40);
              bias(view(out.data(), {1, 1, 40}), {}, {}, prepare(Kerple{}, {.length = 32}));
            }),
            "bias: key offset 39 is outside -31 to 31, which the form was prepared for");
}

}  // namespace
}  // namespace posenc::kerple_test
