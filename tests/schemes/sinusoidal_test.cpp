#include "posenc/schemes/sinusoidal.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numbers>

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

// transformers 5.16 (d56c55bf), modeling_detr.py: build_sine_position_embedding of DetrSinePositionEmbedding, run once with
// torch 2.11 in float64 on 3 rows and 5 columns. Its 1e-6 in (r + 1)/(3 + 1e-6) is a fraction as well.
TEST(Sinusoidal, CoordinatesOfDetr) {
  struct Token {
    std::int64_t number;
    std::vector<double> row;
  };
  const std::vector<Token> tokens = {
      {0,
       {0.86602575285, -0.4999993954, 0.0209424129036, 0.999780683621, 0.951056438631, 0.309017233401,
        0.0125660373703, 0.999921044235}},
      {8,
       {-0.866024705652, -0.500001209199, 0.0418756397788, 0.999122830684, -0.951056826952, 0.309016038269,
        0.0502443081394, 0.998736957111}},
      {14,
       {-2.09439440482e-06, 0.999999999998, 0.0627904986267, 0.998026729743, -1.25663681085e-06, 0.999999999999,
        0.0627905069877, 0.998026729217}},
  };
  const Sinusoidal scheme{.width = 8, .axes = 2, .turns = true};
  const Addition form = prepare(scheme, {.denominators = {3'000'001, 5'000'001}});
  for (const Token& token : tokens) {
    const std::vector<std::int64_t> ids = {1'000'000 * (token.number / 5 + 1), 1'000'000 * (token.number % 5 + 1)};
    std::vector<double> row(8);
    tabulate(view(row.data(), {1, 8}), {.ids = ids, .axes = 2}, form);
    for (std::size_t i = 0; i < 8; ++i) EXPECT_NEAR(row[i], token.row[i], 2e-12) << token.number << ' ' << i;
  }
  // a whole coordinate is a whole turn of the first wave
  expect_row({.width = 4, .turns = true}, 1, {0, 1, s(2 * std::numbers::pi / 100), c(2 * std::numbers::pi / 100)});
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
  try {
    prepare(Sinusoidal{.turns = true}, {.numerics = Numerics::kHfF32});
    ADD_FAILURE() << "accepted";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "sinusoidal: hf-f32 is not available with turns: coordinates are fractions");
  }
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
