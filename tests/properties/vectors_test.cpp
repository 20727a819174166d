// Measurements of single rows, against plain loops in long double and against tables that are broken on purpose.

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "posenc/analysis.h"
#include "posenc/posenc.h"

namespace posenc::vectors_test {
namespace {

// The paper's table, by the C library in its widest type.
std::vector<double> sinusoids(std::int64_t rows, std::int64_t width) {
  std::vector<double> table;
  for (std::int64_t p = 0; p < rows; ++p) {
    for (std::int64_t j = 0; j < width; ++j) {
      const long double exponent = -static_cast<long double>(j - j % 2) / static_cast<long double>(width);
      const long double angle = static_cast<long double>(p) * std::pow(10000.0L, exponent);
      table.push_back(static_cast<double>(j % 2 == 0 ? std::sin(angle) : std::cos(angle)));
    }
  }
  return table;
}

Form as_rows(const std::vector<double>& table, std::int64_t width) {
  const auto rows = static_cast<std::int64_t>(table.size()) / width;
  return Addition{width, Rows{view(table.data(), {rows, width}), 0}};
}

double detail(const Finding& finding, std::string_view name) {
  for (const Detail& one : finding.details) {
    if (one.name == name) return one.value;
  }
  ADD_FAILURE() << "no detail " << name;
  return 0;
}

TEST(Unique, NearestPairIsThatOfAPlainLoop) {
  constexpr std::int64_t kRows = 200, kWidth = 8;
  const std::vector<double> table = sinusoids(kRows, kWidth);
  long double nearest = 1e9L;
  std::int64_t one = 0, other = 0;
  for (std::int64_t m = 0; m < kRows; ++m) {
    for (std::int64_t n = m + 1; n < kRows; ++n) {
      long double squares = 0;
      for (std::int64_t j = 0; j < kWidth; ++j) {
        const auto a = static_cast<long double>(static_cast<float>(table[static_cast<std::size_t>(m * kWidth + j)]));
        const auto b = static_cast<long double>(static_cast<float>(table[static_cast<std::size_t>(n * kWidth + j)]));
        squares += (a - b) * (a - b);
      }
      if (squares < nearest) nearest = squares, one = m, other = n;
    }
  }
  const Finding found = measure(Property::kUnique, make_trial(Sinusoidal{.width = kWidth}, {.length = kRows}));
  EXPECT_EQ(found.outcome, Outcome::kHolds);
  EXPECT_EQ(found.samples, kRows);
  EXPECT_NEAR(found.measured, static_cast<double>(std::sqrt(nearest)), 1e-12);
  EXPECT_EQ(detail(found, "position"), static_cast<double>(one));
  EXPECT_EQ(detail(found, "other_position"), static_cast<double>(other));
}

TEST(Unique, FailsWhereTwoRowsAreTheSame) {
  std::vector<double> table = sinusoids(64, 8);
  EXPECT_EQ(measure(Property::kUnique, make_trial(as_rows(table, 8))).outcome, Outcome::kHolds);
  for (std::size_t j = 0; j < 8; ++j) table[37 * 8 + j] = table[5 * 8 + j];
  const Finding found = measure(Property::kUnique, make_trial(as_rows(table, 8)));
  EXPECT_EQ(found.outcome, Outcome::kFails);
  EXPECT_EQ(found.measured, 0);
  EXPECT_EQ(detail(found, "position"), 5);
  EXPECT_EQ(detail(found, "other_position"), 37);
  EXPECT_EQ(measure(Property::kUnique, make_trial(Steps{.width = 4, .step = 0})).outcome, Outcome::kFails);
  table[3] = std::nan("");
  EXPECT_EQ(measure(Property::kUnique, make_trial(as_rows(table, 8))).outcome, Outcome::kFails)
      << "a NaN never holds";
}

TEST(Unique, BothEndsOfALongSequence) {
  const Finding found = measure(Property::kUnique, make_trial(Rope{.dims = 32}, {.length = 10'000'000}));
  EXPECT_EQ(found.outcome, Outcome::kHolds);
  EXPECT_EQ(found.length, 10'000'000);
  EXPECT_EQ(found.samples, 2048);
}

TEST(Unique, DoesNotApplyToWhatHasNoVectors) {
  for (const Scheme& scheme : {Scheme(None{}), Scheme(Alibi{})}) {
    EXPECT_EQ(measure(Property::kUnique, make_trial(scheme)).outcome, Outcome::kDoesNotApply);
  }
}

TEST(Bounded, WavesAreAndLinesAreNot) {
  const Finding waves = measure(Property::kBounded, make_trial(Sinusoidal{.width = 16, .scale = 0.5}));
  EXPECT_EQ(waves.outcome, Outcome::kHolds);
  EXPECT_EQ(waves.bound, 0.5);
  EXPECT_EQ(waves.measured, 0.5);  // the cosine of 0
  EXPECT_EQ(detail(waves, "furthest_position"), 0x1p53 - 1);

  const Finding lines = measure(Property::kBounded, make_trial(Steps{.width = 4, .step = 0.25}, {.length = 100}));
  EXPECT_EQ(lines.outcome, Outcome::kFails);
  EXPECT_EQ(lines.bound, 99 * 0.25);
  EXPECT_EQ(lines.measured, (0x1p53 - 1) * 0.25);

  const Finding yarn = measure(Property::kBounded, make_trial(Rope{.scaling = YarnScaling{.factor = 4}}));
  EXPECT_EQ(yarn.outcome, Outcome::kHolds);
  EXPECT_NEAR(yarn.bound, 0.1 * std::log(4.0) + 1, 1e-15);
}

TEST(Bounded, GrowthIsNot) {
  const Finding xpos = measure(Property::kBounded, make_trial(Rope{.scaling = XposScaling{}}));
  EXPECT_EQ(xpos.outcome, Outcome::kFails);
  EXPECT_GT(xpos.measured, 1e30);
  EXPECT_EQ(xpos.claim, Claim::kNone);
}

TEST(Resolvable, TheFirstBadIdeaIsLostInRounding) {
  const Finding steps = measure(Property::kResolvable, make_trial(Steps{.width = 64}));
  EXPECT_EQ(steps.outcome, Outcome::kFails);
  EXPECT_EQ(steps.claim, Claim::kFails);
  // a step of 0.0001 in each of 64 features
  EXPECT_NEAR(detail(steps, "step"), 0.0008, 1e-15);
  EXPECT_NEAR(steps.measured, 0.0008 / detail(steps, "token"), 1e-15);
  // numbers uniform in [-1, 1) have a mean square of 1/3
  EXPECT_NEAR(detail(steps, "token"), std::sqrt(64.0 / 3), 0.6);
  EXPECT_GT(detail(steps, "share_lost_in_bf16"), 0.8);

  const Finding waves = measure(Property::kResolvable, make_trial(Sinusoidal{.width = 64}));
  EXPECT_EQ(waves.outcome, Outcome::kHolds);
  long double squares = 0;  // of a step: 2 - 2 cos w for each pair, at every position
  for (int i = 0; i < 32; ++i) squares += 2 - 2 * std::cos(std::pow(10000.0L, -2.0L * i / 64));
  EXPECT_NEAR(detail(waves, "step"), static_cast<double>(std::sqrt(squares)), 1e-12);
  EXPECT_LT(detail(waves, "share_lost_in_bf16"), 0.7);
}

TEST(Resolvable, LargerStepsAreNot) {
  EXPECT_EQ(measure(Property::kResolvable, make_trial(Steps{.width = 64, .step = 0.1})).outcome, Outcome::kHolds);
}

TEST(Varied, BothBadIdeasTakeOneStepForEver) {
  for (const Scheme& scheme : {Scheme(Steps{.width = 16}), Scheme(Shift{.width = 16})}) {
    const Finding found = measure(Property::kVaried, make_trial(scheme));
    EXPECT_EQ(found.outcome, Outcome::kFails) << found.meaning;
    EXPECT_EQ(found.claim, Claim::kFails);
    EXPECT_LT(found.measured, 1e-9);
  }
  EXPECT_EQ(measure(Property::kVaried, make_trial(Sinusoidal{.width = 16})).outcome, Outcome::kHolds);

  // one step that is a little different is enough to be seen
  std::vector<double> table;
  for (int p = 0; p < 32; ++p) table.insert(table.end(), {0.5 * p, 1.0 + 0.25 * p});
  EXPECT_EQ(measure(Property::kVaried, make_trial(as_rows(table, 2))).outcome, Outcome::kFails);
  table[21] += 1e-9;
  EXPECT_EQ(measure(Property::kVaried, make_trial(as_rows(table, 2))).outcome, Outcome::kHolds);
}

TEST(Smooth, AdjacentRowsAreCloserThanAnyTwo) {
  const Finding waves = measure(Property::kSmooth, make_trial(Sinusoidal{.width = 64}));
  EXPECT_EQ(waves.outcome, Outcome::kHolds) << waves.meaning;
  EXPECT_EQ(waves.claim, Claim::kHolds);
  // ‖row(p+1) − row(p)‖² = Σ 2 (1 − cos ω_i), at every position
  long double squares = 0;
  for (int i = 0; i < 32; ++i) squares += 2 * (1 - std::cos(std::pow(10000.0L, -2.0L * i / 64)));
  EXPECT_NEAR(detail(waves, "adjacent_distance"), static_cast<double>(std::sqrt(squares)), 1e-12);
  EXPECT_NEAR(waves.measured, detail(waves, "adjacent_distance") / detail(waves, "rms_distance"), 1e-15);
}

TEST(Smooth, ATableOfNoiseIsNot) {
  const Finding noise = measure(Property::kSmooth, make_trial(Learned{.rows = 512, .width = 64}));
  EXPECT_EQ(noise.outcome, Outcome::kFails) << noise.meaning;
  EXPECT_EQ(noise.claim, Claim::kNone) << "training may make it smooth";
  EXPECT_EQ(measure(Property::kSmooth, make_trial(Alibi{})).outcome, Outcome::kDoesNotApply);
}

}  // namespace
}  // namespace posenc::vectors_test
