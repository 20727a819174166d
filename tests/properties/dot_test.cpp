// The dot product of two positions: flat lines, the closed form, and the counterexample to "closer is higher".

#include <gtest/gtest.h>

#include <cmath>

#include "posenc/analysis.h"
#include "posenc/posenc.h"

namespace posenc::dot_test {
namespace {

long double sum_of_cosines(std::int64_t distance, int width) {
  long double sum = 0;
  for (int i = 0; i < width / 2; ++i) {
    sum += std::cos(static_cast<long double>(distance) * std::pow(10000.0L, -2.0L * i / width));
  }
  return sum;
}

double detail(const Finding& finding, std::string_view name) {
  for (const Detail& one : finding.details) {
    if (one.name == name) return one.value;
  }
  ADD_FAILURE() << "no detail " << name;
  return 0;
}

TEST(DotByDistance, IsTheSumOfCosines) {
  constexpr std::int64_t kLength = 64;
  const auto products = dot_by_distance(prepare(Sinusoidal{.width = 8}), kLength);
  ASSERT_EQ(products.size(), static_cast<std::size_t>(kLength));
  for (const DotProducts& one : products) {
    const std::int64_t distance = one.offset.at(0);
    EXPECT_EQ(one.pairs, kLength - distance);
    const auto truth = static_cast<double>(sum_of_cosines(distance, 8));
    EXPECT_NEAR(one.closed_form, truth, 8 * 0x1p-53);
    EXPECT_NEAR(one.least, truth, 4 * 8 * 0x1p-53);
    EXPECT_NEAR(one.most, truth, 4 * 8 * 0x1p-53);
    EXPECT_LE(one.least, one.most);
  }
}

TEST(DotByDistance, HoldsForWavesAndNotForOthers) {
  const Finding waves = measure(Property::kDotByDistance, make_trial(Sinusoidal{.width = 64}));
  EXPECT_EQ(waves.outcome, Outcome::kHolds);
  EXPECT_EQ(waves.claim, Claim::kHolds);
  EXPECT_EQ(waves.bound, 8 * 64 * 0x1p-53);
  EXPECT_EQ(waves.samples, 512 * 513 / 2);
  EXPECT_LT(detail(waves, "from_closed_form_in_ulps"), 64);
  const Finding learned = measure(Property::kDotByDistance, make_trial(Learned{.rows = 64, .width = 16}));
  EXPECT_EQ(learned.outcome, Outcome::kFails);
  EXPECT_GT(learned.measured, 1);
  for (const Scheme& scheme : {Scheme(Steps{.width = 8}), Scheme(Shift{.width = 8})}) {
    const Finding found = measure(Property::kDotByDistance, make_trial(scheme));
    EXPECT_EQ(found.outcome, Outcome::kFails);
    EXPECT_EQ(found.claim, Claim::kFails);
  }
  EXPECT_EQ(measure(Property::kDotByDistance, make_trial(Rope{})).outcome, Outcome::kDoesNotApply);
}

TEST(DotByDistance, OneWrongNumberIsSeen) {
  std::vector<double> table(40 * 4);
  for (std::size_t p = 0; p < 40; ++p) {
    for (std::size_t i = 0; i < 2; ++i) {
      const double angle = static_cast<double>(p) * (i == 0 ? 1.0 : 0.01);
      table[p * 4 + 2 * i] = std::sin(angle);
      table[p * 4 + 2 * i + 1] = std::cos(angle);
    }
  }
  const Form form = Addition{4, Rows{view(table.data(), {40, 4}), 0}};
  EXPECT_EQ(measure(Property::kDotByDistance, make_trial(form)).outcome, Outcome::kHolds);
  table[17] += 1e-13;
  EXPECT_EQ(measure(Property::kDotByDistance, make_trial(form)).outcome, Outcome::kFails);
  table[17] = std::nan("");
  EXPECT_EQ(measure(Property::kDotByDistance, make_trial(form)).outcome, Outcome::kFails) << "a NaN never holds";
}

// i where 2i belongs gives other frequencies, but still waves: it holds, and that is no proof that the table is
// right.
TEST(DotByDistance, SaysNothingOfWhichFrequencies) {
  EXPECT_EQ(measure(Property::kDotByDistance, make_trial(Sinusoidal{.width = 16, .base = 100})).outcome,
            Outcome::kHolds);
}

TEST(DotByDistance, OnTwoAxesByOffset) {
  const auto products = dot_by_distance(prepare(Sinusoidal{.width = 8, .axes = 2}), 5);
  for (const DotProducts& one : products) {
    ASSERT_EQ(one.offset.size(), 2U);
    const long double truth = sum_of_cosines(one.offset[0], 4) + sum_of_cosines(one.offset[1], 4);
    EXPECT_NEAR(one.most, static_cast<double>(truth), 4e-15);
    EXPECT_NEAR(one.closed_form, static_cast<double>(truth), 4e-15);
  }
}

TEST(Monotone, TheCounterexampleOfEightFeatures) {
  const Finding found = measure(Property::kMonotone, make_trial(Sinusoidal{.width = 8}));
  EXPECT_EQ(found.outcome, Outcome::kFails);
  EXPECT_EQ(found.claim, Claim::kFails);
  EXPECT_EQ(detail(found, "near_distance"), 1);
  EXPECT_EQ(detail(found, "far_distance"), 6);
  EXPECT_NEAR(detail(found, "near_value"), static_cast<double>(sum_of_cosines(1, 8)), 1e-14);
  EXPECT_NEAR(detail(found, "far_value"), static_cast<double>(sum_of_cosines(6, 8)), 1e-14);
  EXPECT_NEAR(detail(found, "near_value"), 3.535, 5e-4);
  EXPECT_NEAR(detail(found, "far_value"), 3.784, 5e-4);
  EXPECT_NE(found.meaning.find("distance 6 gives 3.784, distance 1 only 3.535"), std::string::npos) << found.meaning;
}

TEST(Monotone, WideSinusoidsAndRopeToo) {
  for (const std::int64_t width : {2, 64, 128, 512, 1024}) {
    for (const Scheme& scheme : {Scheme(Sinusoidal{.width = width}), Scheme(Rope{.dims = width})}) {
      const Finding found = measure(Property::kMonotone, make_trial(scheme, {.length = 1024}));
      EXPECT_EQ(found.outcome, Outcome::kFails) << to_json(scheme);
      EXPECT_TRUE(is_as_claimed(found));
      const auto near = static_cast<std::int64_t>(detail(found, "near_distance"));
      const auto far = static_cast<std::int64_t>(detail(found, "far_distance"));
      EXPECT_LT(near, far);
      EXPECT_GT(sum_of_cosines(far, static_cast<int>(width)), sum_of_cosines(near, static_cast<int>(width)));
    }
  }
}

TEST(Monotone, RowsThatGrowAreNotMonotoneFromEveryQuery) {
  // From the last query they look so: every key behind it scores lower. From the third, keys ahead score higher.
  for (const Scheme& scheme : {Scheme(Steps{.width = 4}), Scheme(Shift{.width = 4})}) {
    const Finding found = measure(Property::kMonotone, make_trial(scheme));
    EXPECT_EQ(found.outcome, Outcome::kFails) << found.meaning;
    EXPECT_LT(detail(found, "near_distance"), detail(found, "far_distance"));
    EXPECT_LT(detail(found, "near_value"), detail(found, "far_value"));
  }
  // query 2, key 1: 4·step²·2·1 = 8e-8; key 6: 4.8e-7
  const Finding short_one = measure(Property::kMonotone, make_trial(Steps{.width = 4, .step = 1e-4}, {.length = 7}));
  EXPECT_EQ(short_one.outcome, Outcome::kFails) << short_one.meaning;
}

TEST(Monotone, BiasesThatFall) {
  for (const Scheme& scheme : {Scheme(Alibi{}), Scheme(Kerple{}), Scheme(Kerple{.kernel = KerpleKernel::kPower})}) {
    const Finding found = measure(Property::kMonotone, make_trial(scheme));
    EXPECT_EQ(found.outcome, Outcome::kHolds) << found.meaning;
    EXPECT_EQ(found.claim, Claim::kHolds);
    EXPECT_EQ(found.bound, 0);
  }
  const Finding sandwich = measure(Property::kMonotone, make_trial(Sandwich{}));
  EXPECT_EQ(sandwich.outcome, Outcome::kFails) << sandwich.meaning;
}

TEST(Monotone, ABrokenSlopeIsSeen) {
  const Form rising = Bias{2, Slopes{{0.5, -0.25}}};
  const Finding found = measure(Property::kMonotone, make_trial(rising));
  EXPECT_EQ(found.outcome, Outcome::kFails);
  EXPECT_EQ(detail(found, "head"), 1);
}

}  // namespace
}  // namespace posenc::dot_test
