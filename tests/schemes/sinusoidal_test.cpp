#include "posenc/schemes/sinusoidal.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "posenc/posenc.h"

namespace posenc::sinusoidal_test {
namespace {

std::vector<double> row_at(const Sinusoidal& scheme, std::int64_t position) {
  std::vector<double> row(static_cast<std::size_t>(scheme.width));
  tabulate(view(row.data(), {1, scheme.width}), {.first = position}, prepare(scheme));
  return row;
}

void expect_row(const Sinusoidal& scheme, std::int64_t position, const std::vector<double>& want) {
  const auto got = row_at(scheme, position);
  ASSERT_EQ(got.size(), want.size());
  for (std::size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(got[i], want[i], 1e-15) << i;
}

double s(double x) { return std::sin(x); }
double c(double x) { return std::cos(x); }

TEST(Sinusoidal, FollowsThePaper) {
  expect_row({.width = 4}, 3, {s(3), c(3), s(0.03), c(0.03)});
  expect_row({.width = 6, .base = 8.0}, 5, {s(5), c(5), s(2.5), c(2.5), s(1.25), c(1.25)});
}

TEST(Sinusoidal, InclusiveSpacingEndsAtOneOverBase) {
  expect_row({.width = 6, .base = 100.0, .spacing = Spacing::kInclusive, .layout = WaveLayout::kSinCos}, 7,
             {s(7), s(0.7), s(0.07), c(7), c(0.7), c(0.07)});
  // One pair: tensor2tensor's guard, not a division by zero.
  expect_row({.width = 2, .spacing = Spacing::kInclusive}, 2, {s(2), c(2)});
}

TEST(Sinusoidal, LaysSinesAndCosinesOut) {
  expect_row({.width = 4, .layout = WaveLayout::kSinCos}, 2, {s(2), s(0.02), c(2), c(0.02)});
  expect_row({.width = 4, .layout = WaveLayout::kCosSin}, 2, {c(2), c(0.02), s(2), s(0.02)});
}

TEST(Sinusoidal, ScalesBeforeRounding) { expect_row({.width = 2, .scale = 0.25}, 1, {0.25 * s(1), 0.25 * c(1)}); }

TEST(Sinusoidal, EndsAnOddWidthAsAsked) {
  const double w = std::pow(10000.0, -2.0 / 5), v = std::pow(10000.0, -4.0 / 5);
  expect_row({.width = 5, .odd = OddWidth::kTrim}, 3, {s(3), c(3), s(3 * w), c(3 * w), s(3 * v)});
  expect_row({.width = 5, .layout = WaveLayout::kSinCos, .odd = OddWidth::kTrim}, 3,
             {s(3), s(3 * w), s(3 * v), c(3), c(3 * w)});
  expect_row({.width = 5, .spacing = Spacing::kInclusive, .layout = WaveLayout::kSinCos, .odd = OddWidth::kZero}, 3,
             {s(3), s(3e-4), c(3), c(3e-4), 0.0});
  expect_row({.width = 1, .odd = OddWidth::kTrim}, 3, {s(3)});
  expect_row({.width = 1, .odd = OddWidth::kZero}, 3, {0.0});
}

TEST(Sinusoidal, GivesEachAxisItsBlock) {
  const Addition form = prepare(Sinusoidal{.width = 8, .layout = WaveLayout::kSinCos, .axes = 2});
  const std::vector<std::int64_t> ids = {3, 5};  // [2 axes, 1 token]
  std::vector<double> row(8);
  tabulate(view(row.data(), {1, 8}), {.ids = ids, .axes = 2}, form);
  const std::vector<double> want = {s(3), s(0.03), c(3), c(0.03), s(5), s(0.05), c(5), c(0.05)};
  for (std::size_t i = 0; i < 8; ++i) EXPECT_NEAR(row[i], want[i], 1e-15);
}

TEST(Sinusoidal, SaysWhatIsWrong) {
  const std::pair<Sinusoidal, const char*> cases[] = {
      {{.width = 7}, "sinusoidal: width must be even but is 7 (odd trim or zero says how such a width ends)"},
      {{.width = 0}, "sinusoidal: width must be between 1 and 1048576 but is 0"},
      {{.width = -4}, "sinusoidal: width must be between 1 and 1048576 but is -4"},
      {{.width = 1ll << 31}, "sinusoidal: width must be between 1 and 1048576 but is 2147483648"},
      {{.width = 6, .axes = 2},
       "sinusoidal: width must be a multiple of 4 for 2 axes but is 6 (odd trim or zero says how such a width ends)"},
      {{.base = 0.0}, "sinusoidal: base must be between 1 and 1e36 but is 0"},
      {{.base = std::numeric_limits<double>::quiet_NaN()}, "sinusoidal: base must be between 1 and 1e36 but is nan"},
      {{.base = std::numeric_limits<double>::infinity()}, "sinusoidal: base must be between 1 and 1e36 but is inf"},
      {{.scale = std::numeric_limits<double>::infinity()},
       "sinusoidal: scale must be between -32768 and 32768 but is inf"},
      {{.axes = 4}, "sinusoidal: axes must be between 1 and 3 but is 4"},
  };
  for (const auto& [scheme, message] : cases) {
    try {
      prepare(scheme);
      ADD_FAILURE() << "accepted; expected: " << message;
    } catch (const Error& error) {
      EXPECT_STREQ(error.what(), message);
    }
  }
}

}  // namespace
}  // namespace posenc::sinusoidal_test
