// One matrix for every position: the one found against the one of the formula, and tables that have none.

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "posenc/analysis.h"
#include "posenc/posenc.h"

namespace posenc::shift_test {
namespace {

using std::size_t;

// [sin k w, cos k w] of the paper turns into itself by this, row by row.
long double expected_entry(size_t row, size_t column, size_t width, int k) {
  if (row / 2 != column / 2) return 0;
  const long double exponent = -static_cast<long double>(row - row % 2) / static_cast<long double>(width);
  const long double angle = static_cast<long double>(k) * std::pow(10000.0L, exponent);
  if (row == column) return std::cos(angle);
  return row % 2 == 0 ? std::sin(angle) : -std::sin(angle);
}

TEST(ShiftMatrix, OfWavesIsOneRotationForEachPair) {
  for (const int k : {1, 3, 50}) {
    const ShiftMap map = shift_matrix(prepare(Sinusoidal{.width = 8}), k, {.length = 1000});
    EXPECT_FALSE(map.is_fitted);
    ASSERT_EQ(map.matrix.size(), 64U);
    for (size_t row = 0; row < 8; ++row) {
      for (size_t column = 0; column < 8; ++column) {
        EXPECT_NEAR(map.matrix[row * 8 + column], static_cast<double>(expected_entry(row, column, 8, k)), 3e-16);
      }
    }
    EXPECT_LE(map.residual, map.bound);
    EXPECT_EQ(map.bound, 10 * 0x1p-53);
  }
}

TEST(ShiftMatrix, CarriesRowsOfAPlainLoop) {
  constexpr int kShift = 7;
  const ShiftMap map = shift_matrix(prepare(Sinusoidal{.width = 4}), kShift, {.length = 100});
  const auto value = [](int p, int j) {
    const long double angle = static_cast<long double>(p) * (j < 2 ? 1.0L : 0.01L);
    return static_cast<double>(j % 2 == 0 ? std::sin(angle) : std::cos(angle));
  };
  for (int p = 0; p < 90; ++p) {
    for (int row = 0; row < 4; ++row) {
      double sum = 0;
      for (int column = 0; column < 4; ++column)
        sum += map.matrix[static_cast<size_t>(row * 4 + column)] * value(p, column);
      EXPECT_NEAR(sum, value(p + kShift, row), 2e-15);
    }
  }
}

// The same table without its formula: found by least squares alone.
TEST(ShiftMatrix, IsFoundInATableOfNumbers) {
  constexpr std::int64_t kRows = 400, kWidth = 6;
  std::vector<double> table;
  for (std::int64_t p = 0; p < kRows; ++p) {
    for (const long double frequency : {1.0L, 0.1L, 0.02L}) {
      table.push_back(static_cast<double>(std::sin(static_cast<long double>(p) * frequency)));
      table.push_back(static_cast<double>(std::cos(static_cast<long double>(p) * frequency)));
    }
  }
  const Form form = Addition{kWidth, Rows{view(table.data(), {kRows, kWidth}), 0}};
  const ShiftMap map = shift_matrix(form, 1, {.length = kRows});
  EXPECT_TRUE(map.is_fitted);
  EXPECT_EQ(map.rank, kWidth);
  EXPECT_LE(map.residual, map.bound);
  const long double frequencies[] = {1.0L, 0.1L, 0.02L};
  for (size_t row = 0; row < 6; ++row) {
    for (size_t column = 0; column < 6; ++column) {
      long double entry = 0;
      if (row == column)
        entry = std::cos(frequencies[row / 2]);
      else if (row / 2 == column / 2)
        entry = row < column ? std::sin(frequencies[row / 2]) : -std::sin(frequencies[row / 2]);
      EXPECT_NEAR(map.matrix[row * 6 + column], static_cast<double>(entry), 1e-11);
    }
  }
  EXPECT_EQ(measure(Property::kLinearShift, make_trial(form, {.length = kRows})).outcome, Outcome::kHolds);

  table[100 * kWidth + 3] += 1e-6;  // one wrong number, and there is no such matrix
  EXPECT_EQ(measure(Property::kLinearShift, make_trial(form, {.length = kRows})).outcome, Outcome::kFails);
}

TEST(LinearShift, RandomRowsHaveNone) {
  const Finding found = measure(Property::kLinearShift, make_trial(Learned{.rows = 512, .width = 64}));
  EXPECT_EQ(found.outcome, Outcome::kFails) << found.meaning;
  EXPECT_GT(found.measured, 0.1);
  // as many rows as features can always be carried somewhere, so nothing is said
  EXPECT_EQ(measure(Property::kLinearShift, make_trial(Learned{.rows = 100, .width = 64})).outcome,
            Outcome::kDoesNotApply);
}

TEST(LinearShift, OfTheBadIdeas) {
  // p·c in every feature: no matrix takes 0 to c
  const Finding steps = measure(Property::kLinearShift, make_trial(Steps{.width = 16}));
  EXPECT_EQ(steps.outcome, Outcome::kFails) << steps.meaning;
  // start + p·c: M = I + c·wᵀ with w·start = 1 and w·1 = 0 does it, so sines have no monopoly here
  const Finding shift = measure(Property::kLinearShift, make_trial(Shift{.width = 16}));
  EXPECT_EQ(shift.outcome, Outcome::kHolds) << shift.meaning << " " << shift.measured << " " << shift.bound;
}

TEST(LinearShift, EveryLayoutSpacingAndAxis) {
  for (const WaveLayout layout : {WaveLayout::kInterleaved, WaveLayout::kSinCos, WaveLayout::kCosSin}) {
    for (const Spacing spacing : {Spacing::kPaper, Spacing::kInclusive}) {
      for (const std::int64_t axes : {1, 2, 3}) {
        const Sinusoidal scheme{.width = 24, .spacing = spacing, .layout = layout, .scale = -0.7, .axes = axes};
        const Finding found = measure(Property::kLinearShift, make_trial(scheme));
        EXPECT_EQ(found.outcome, Outcome::kHolds) << to_json(scheme) << found.measured;
        EXPECT_EQ(found.claim, Claim::kHolds);
      }
    }
  }
}

TEST(LinearShift, ASineWithoutItsCosineHasNone) {
  const Finding trimmed = measure(Property::kLinearShift, make_trial(Sinusoidal{.width = 7, .odd = OddWidth::kTrim}));
  EXPECT_EQ(trimmed.outcome, Outcome::kFails) << trimmed.meaning;
  EXPECT_EQ(trimmed.claim, Claim::kNone);
  const Finding padded = measure(Property::kLinearShift, make_trial(Sinusoidal{.width = 7, .odd = OddWidth::kZero}));
  EXPECT_EQ(padded.outcome, Outcome::kHolds) << padded.meaning;
}

TEST(LinearShift, FarOutOnlyWithExactAngles) {
  constexpr std::int64_t kFar = 10'000'000;
  const Sinusoidal scheme{.width = 64};
  EXPECT_EQ(measure(Property::kLinearShift, make_trial(scheme, {.length = kFar})).outcome, Outcome::kHolds);
  const Finding usual =
      measure(Property::kLinearShift, make_trial(scheme, {.length = kFar, .numerics = Numerics::kHfF32}));
  EXPECT_EQ(usual.outcome, Outcome::kFails);
  EXPECT_EQ(usual.claim, Claim::kNone);
  EXPECT_GT(usual.measured, 0.1);
}

TEST(ShiftMatrix, RefusesWhatItCannotDo) {
  EXPECT_THROW(shift_matrix(prepare(Alibi{}), 1), Error);
  EXPECT_THROW(shift_matrix(prepare(Sinusoidal{.width = 8}), -1), Error);
  EXPECT_THROW(shift_matrix(prepare(Sinusoidal{.width = 8}), 10, {.length = 10}), Error);
}

}  // namespace
}  // namespace posenc::shift_test
