// Cosines and sines that are sums of waves: the bytes of the reference, also where little but rounding errors is left.

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "backends.h"
#include "posenc/apply.h"
#include "posenc/scheme.h"

namespace posenc::mixture_test {

using tests::for_each_host_engine;

constexpr std::int64_t kTokens = 64, kFirst = 1000, kPairs = kTokens;

// Cosine and sine of one wave at each token, rounded to double.
std::pair<std::vector<double>, std::vector<double>> waves_at_tokens(const Rotation& one) {
  std::vector<double> cosines(kTokens), sines(kTokens);
  force_backend("reference");
  tabulate(view(cosines.data(), {kTokens, 1}), view(sines.data(), {kTokens, 1}), {.first = kFirst}, one);
  force_backend("");
  return {cosines, sines};
}

// The cosine of pair j is the wave less its value at token j, so exactly 0 there; or the sine is. Not both: one value in
// doubt is enough to compute a whole row anew.
Rotation differences(bool of_cosines) {
  Rotation form = prepare(Rope{.dims = 2});
  const auto [cosines, sines] = waves_at_tokens(form);
  Mixture mixture{.pairs = kPairs, .mixed = kPairs};
  mixture.cosines.assign(kPairs, -1.0);
  mixture.sines.assign(kPairs, -1.0);
  (of_cosines ? mixture.cosine_offsets : mixture.sine_offsets) = of_cosines ? cosines : sines;
  form.source = mixture;
  return form;
}

// (1, 0) in each pair, which becomes its cosine and sine.
std::vector<float> rotated(const Rotation& form, std::int64_t tokens_at_once) {
  std::vector<float> x;
  for (std::int64_t i = 0; i < kTokens * 2 * kPairs; ++i) x.push_back(i % (2 * kPairs) < kPairs ? 1.0f : 0.0f);
  for (std::int64_t t = 0; t < kTokens; t += tokens_at_once) {
    rotate(view(x.data() + t * 2 * kPairs, {tokens_at_once, 2 * kPairs}), {.first = kFirst + t}, form);
  }
  return x;
}

TEST(Mixture, SumsThatCancelHaveTheBytesOfTheReference) {
  for (const bool of_cosines : {true, false}) {
    const Rotation form = differences(of_cosines);
    force_backend("reference");
    const std::vector<float> expected = rotated(form, kTokens);
    for (std::int64_t t = 0; t < kTokens; ++t) {
      ASSERT_EQ(expected[static_cast<std::size_t>(t * 2 * kPairs + (of_cosines ? 0 : kPairs) + t)], 0.0f);
    }
    for_each_host_engine([&] {
      EXPECT_TRUE(rotated(form, kTokens) == expected);
      EXPECT_TRUE(rotated(form, 1) == expected);
    });
  }
}

}  // namespace posenc::mixture_test
