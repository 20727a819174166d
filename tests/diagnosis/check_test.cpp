// Whether an implementation matches a scheme: both verdicts of every check, and each threshold from both sides.

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "posenc/analysis.h"
#include "posenc/posenc.h"
#include "tensors.h"

namespace posenc {
namespace {

using namespace tests;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

std::string error_of(const auto& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

// Queries in double, [tokens, features], rotated by plain loops: halves.
std::vector<double> rotated(const std::vector<double>& x, std::int64_t features, std::int64_t first,
                            const std::function<double(std::int64_t)>& frequency) {
  std::vector<double> y = x;
  const std::int64_t pairs = features / 2;
  for (std::int64_t token = 0; token < std::ssize(x) / features; ++token) {
    for (std::int64_t i = 0; i < pairs; ++i) {
      const double angle = static_cast<double>(token + first) * frequency(i);
      const auto a = static_cast<std::size_t>(token * features + i), b = a + static_cast<std::size_t>(pairs);
      y[a] = x[a] * std::cos(angle) - x[b] * std::sin(angle);
      y[b] = x[b] * std::cos(angle) + x[a] * std::sin(angle);
    }
  }
  return y;
}
std::vector<double> values(std::size_t count) {
  const std::vector<float> narrow = random_values(count);
  return {narrow.begin(), narrow.end()};
}
std::vector<float> narrowed(const std::vector<double>& wide) { return {wide.begin(), wide.end()}; }

double plain(std::int64_t i) { return std::pow(10000.0, -static_cast<double>(i) / 16); }

TEST(Check, TolerancesByType) {
  EXPECT_EQ(default_tolerance(DataType::kF64), 1e-12);
  EXPECT_EQ(default_tolerance(DataType::kF32), 2e-6);
  EXPECT_EQ(default_tolerance(DataType::kF16), 2e-3);
  EXPECT_EQ(default_tolerance(DataType::kBF16), 1.6e-2);
}

// An error of one element, relative to the norm of its pair, just below and just above the tolerance.
TEST(Check, ToleranceFromBothSides) {
  const std::vector<double> x = values(8 * 32);
  const std::vector<double> y = rotated(x, 32, 0, plain);
  const std::size_t at = 3;  // of the first token: at position 0 angles in float32 have no leeway
  const double norm = std::hypot(y[at], y[at + 16]);
  for (const double tolerance : {0.0, 1e-4, 1e-9}) {
    const double room = tolerance == 0 ? 1e-12 : tolerance;
    for (const double share : {0.9, 1.1}) {
      std::vector<double> off = y;
      off[at] += share * room * norm;
      const CheckResult result = check(Rope{.dims = 32}, view(std::as_const(x).data(), {8, 32}),
                                       view(std::as_const(off).data(), {8, 32}), {.tolerance = tolerance});
      EXPECT_EQ(result.agreement, share < 1 ? Agreement::kAgrees : Agreement::kDiffers) << tolerance << ' ' << share;
      EXPECT_EQ(result.tolerance, room);
      if (share > 1) {
        ASSERT_TRUE(result.first);
        EXPECT_EQ(result.first->index, (std::vector<std::int64_t>{0, 3}));
        EXPECT_NEAR(result.first->expected, y[at], 1e-14);
        EXPECT_EQ(result.first->got, off[at]);
      }
    }
  }
}

// The wider tolerance of the two types counts; and f32's from both sides.
TEST(Check, ToleranceOfFloat32) {
  const std::vector<double> x = values(8 * 32);
  const std::vector<double> y = rotated(x, 32, 0, plain);
  const std::size_t at = 2 * 32 + 1;
  const double norm = std::hypot(y[at], y[at + 16]);
  for (const double share : {0.8, 1.2}) {
    std::vector<double> off = y;
    off[at] += share * 2e-6 * norm;
    const std::vector<float> after = narrowed(off);
    const CheckResult result =
        check(Rope{.dims = 32}, view(std::as_const(x).data(), {8, 32}), view(after.data(), {8, 32}));
    EXPECT_EQ(result.agreement, share < 1 ? Agreement::kAgrees : Agreement::kDiffers) << share;
    EXPECT_EQ(result.tolerance, 2e-6);
  }
}

// Frequencies in float32 may be two units in the last place off, and no more: at position 100,000 that is seen.
TEST(Check, LeewayFromBothSides) {
  const std::vector<double> x = values(4 * 32);
  constexpr std::int64_t kFirst = 100'000;
  for (const double units : {0.0, 1.5, -1.5, 3.0, -3.0}) {
    const auto frequency = [&](std::int64_t i) {
      // as Hugging Face has it, to the last bit: 1 / 10000^(2i/d), each step in float32
      const float exact =
          1.0F / static_cast<float>(std::pow(10000.0, static_cast<double>(static_cast<float>(i) / 16)));
      return static_cast<double>(exact) * (1 + units * std::ldexp(1.0, -23));
    };
    const std::vector<float> after = narrowed(rotated(x, 32, kFirst, frequency));
    const CheckResult result = check(Rope{.dims = 32}, view(std::as_const(x).data(), {4, 32}),
                                     view(after.data(), {4, 32}), {.first_position = kFirst});
    EXPECT_EQ(result.agreement, std::fabs(units) < 2 ? Agreement::kAgrees : Agreement::kDiffers) << units;
    if (result.agreement == Agreement::kAgrees) {
      EXPECT_EQ(result.numerics, Numerics::kHfF32);
    }
  }
}

TEST(Check, EveryKindOfScheme) {
  const Made tensors = made(Rope{.dims = 64});
  EXPECT_EQ(check(Rope{.dims = 64}, tensors.before_view(), tensors.after_view()).agreement, Agreement::kAgrees);
  EXPECT_EQ(check(Rope{.dims = 64}, tensors.before_view(), tensors.before_view()).agreement, Agreement::kDiffers);
  EXPECT_EQ(check(None{}, tensors.before_view(), tensors.before_view()).agreement, Agreement::kAgrees);
  EXPECT_EQ(check(None{}, tensors.before_view(), tensors.after_view()).agreement, Agreement::kDiffers);
  for (const Scheme& scheme :
       {Scheme(Sinusoidal{.width = 64}), Scheme(Steps{.width = 64}), Scheme(Shift{.width = 64})}) {
    std::vector<float> after = tensors.before;
    add(view(after.data(), tensors.shape), {}, std::get<Addition>(prepare(scheme)));
    EXPECT_EQ(check(scheme, tensors.before_view(), view(std::as_const(after).data(), tensors.shape)).agreement,
              Agreement::kAgrees);
    EXPECT_EQ(check(scheme, tensors.before_view(), tensors.before_view()).agreement, Agreement::kDiffers);
  }
}

TEST(Check, SaysWhatToChange) {
  const Made tensors = made(Rope{.dims = 64, .base = 500000}, {.heads = 2, .sequence = 32});
  const CheckResult result = check(Rope{.dims = 64}, tensors.before_view(), tensors.after_view());
  ASSERT_EQ(result.agreement, Agreement::kDiffers);
  EXPECT_EQ(result.diagnosis.verdict, Verdict::kSure);
  EXPECT_EQ(result.advice, std::vector<std::string>{"base: expected 10000, got 500000"});
}

// One position: 0 rotates nothing, so that there is nothing to agree with.
TEST(Check, PositionZeroAloneChangesNothing) {
  const Made tensors = made(Rope{.dims = 64}, {.sequence = 1});
  const CheckResult result = check(Rope{.dims = 64}, tensors.before_view(), tensors.before_view());
  EXPECT_EQ(result.agreement, Agreement::kInconclusive);
  EXPECT_EQ(result.largest_change, 0);
}

// What a mistake changes just below and just above the tolerance: a comparison that cannot fail is no agreement.
TEST(Check, PowerFromBothSides) {
  for (const double size : {0.9, 1.1}) {
    std::vector<double> x(4 * 8, 1.0), y = x;
    // steps add p·step: positions that are off by one change every value by one step
    const Steps scheme{.width = 8, .step = size * 1e-3};
    for (std::size_t i = 0; i < y.size(); ++i) y[i] += static_cast<double>(i / 8) * scheme.step;
    const CheckResult result = check(scheme, view(std::as_const(x).data(), {4, 8}),
                                     view(std::as_const(y).data(), {4, 8}), {.tolerance = 1e-3});
    EXPECT_EQ(result.agreement, size < 1 ? Agreement::kInconclusive : Agreement::kAgrees) << size;
  }
}

// The right pairs at other places: the scores of queries and keys that are both rotated so are the same.
TEST(Check, UpToAPermutation) {
  const auto as = [](PairLayout expected, PairLayout layout) {
    const Made tensors = made(Rope{.dims = 64, .layout = layout});
    return check(Rope{.dims = 64, .layout = expected}, tensors.before_view(), tensors.after_view()).agreement;
  };
  EXPECT_EQ(as(PairLayout::kInterleavedToHalves, PairLayout::kInterleaved), Agreement::kUpToPermutation);
  EXPECT_EQ(as(PairLayout::kInterleavedToHalves, PairLayout::kInterleavedToHalves), Agreement::kAgrees);
  EXPECT_EQ(as(PairLayout::kInterleavedToHalves, PairLayout::kHalves), Agreement::kDiffers);
  EXPECT_EQ(as(PairLayout::kHalves, PairLayout::kHalvesToInterleaved), Agreement::kUpToPermutation);
}

// The first tokens of a longer sequence.
TEST(Check, LengthOfTheSequence) {
  const Rope rope{.dims = 64, .scaling = DynamicScaling{.factor = 2, .original_length = 32}};
  std::vector<float> after = random_values(2 * 16 * 64);
  const std::vector<float> before = after;
  rotate(view(after.data(), {2, 16, 64}), {}, prepare(rope, {.length = 4096}));
  const auto with = [&](std::int64_t length) {
    return check(rope, view(before.data(), {2, 16, 64}), view(std::as_const(after).data(), {2, 16, 64}),
                 {.length = length})
        .agreement;
  };
  EXPECT_EQ(with(4096), Agreement::kAgrees);
  EXPECT_EQ(with(2048), Agreement::kDiffers);
  EXPECT_EQ(with(0), Agreement::kDiffers);
  EXPECT_EQ(error_of([&] { with(15); }), "check: a length of 15 tokens does not reach the last position, 15");
}

struct Scores {
  std::vector<double> before, after;
  Extents shape = {4, 6, 6};
  CheckResult check_as(const Scheme& scheme, const CheckOptions& options = {}) const {
    return check(scheme, view(before.data(), shape), view(after.data(), shape), options);
  }
};
Scores scores_with(const std::function<double(std::int64_t, std::int64_t, std::int64_t)>& bias) {
  Scores scores;
  scores.before = values(4 * 6 * 6);
  scores.after = scores.before;
  for (std::int64_t i = 0; i < 144; ++i) scores.after[static_cast<std::size_t>(i)] += bias(i / 36, i / 6 % 6, i % 6);
  return scores;
}
double slope(std::int64_t head) { return std::exp2(-2.0 * static_cast<double>(head + 1)); }

TEST(Check, Biases) {
  const Alibi alibi{.heads = 4};
  const auto right = [](std::int64_t h, std::int64_t m, std::int64_t n) {
    return -slope(h) * static_cast<double>(std::abs(n - m));
  };
  EXPECT_EQ(scores_with(right).check_as(alibi).agreement, Agreement::kAgrees);
  EXPECT_EQ(scores_with([](auto, auto, auto) { return 0.0; }).check_as(alibi).agreement, Agreement::kDiffers);
  const auto bloom = [](std::int64_t h, std::int64_t, std::int64_t n) { return slope(h) * static_cast<double>(n); };
  EXPECT_EQ(scores_with(bloom).check_as(alibi).agreement, Agreement::kDiffers);
  EXPECT_EQ(scores_with(bloom).check_as(alibi, {.is_causal = true}).agreement, Agreement::kUpToQuery);
  // a constant for each query, and nothing else, is no ALiBi
  const auto constant = [](auto, std::int64_t m, auto) { return static_cast<double>(m); };
  EXPECT_EQ(scores_with(constant).check_as(alibi, {.is_causal = true}).agreement, Agreement::kDiffers);
  EXPECT_EQ(scores_with(right).check_as(Alibi{.heads = 4, .max_bias = 4}).agreement, Agreement::kDiffers);
}

// A mask is −infinity, or a number below −1e8; and it hides nothing at or before the query.
TEST(Check, Masks) {
  const Alibi alibi{.heads = 4};
  const auto masked_by = [](double mask, std::int64_t from) {
    return scores_with([=](std::int64_t h, std::int64_t m, std::int64_t n) {
      return n >= m + from ? mask : -slope(h) * static_cast<double>(std::abs(n - m));
    });
  };
  for (const double mask : {-kInfinity, -3e38, -1.1e8}) {
    const CheckResult result = masked_by(mask, 1).check_as(alibi);
    EXPECT_EQ(result.agreement, Agreement::kAgrees) << mask;
    EXPECT_EQ(result.masked, 4 * 15);
    EXPECT_EQ(masked_by(mask, 0).check_as(alibi).agreement, Agreement::kDiffers) << mask;
  }
  for (const double number : {-0.9e8, -1e4, kInfinity}) {
    EXPECT_EQ(masked_by(number, 1).check_as(alibi).agreement, Agreement::kDiffers) << number;
  }
  Scores padded = masked_by(-kInfinity, 0);
  padded.before = padded.after;
  EXPECT_EQ(padded.check_as(alibi).agreement, Agreement::kDiffers);  // what is not masked has no bias
  padded.before.assign(144, -kInfinity);
  padded.after = padded.before;
  EXPECT_EQ(error_of([&] { padded.check_as(alibi); }),
            "check: every score is masked, so there is nothing to compare");
}

TEST(Check, Refuses) {
  const Made tensors = made(Rope{.dims = 64}, {.heads = 3});
  const auto with = [&](const Scheme& scheme, const CheckOptions& options = {}) {
    return error_of([&] { check(scheme, tensors.before_view(), tensors.after_view(), options); });
  };
  EXPECT_EQ(with(Alibi{.heads = 8}),
            "check: alibi has 8 heads, but the scores [3, 16, 64] have 3: biases are compared on scores [heads, "
            "queries, keys]");
  EXPECT_EQ(with(Rope{.dims = 64}, {.is_causal = true}), "check: rope is not a bias, so it takes no keys");
  const std::vector<std::int64_t> ids = {0, 1};
  EXPECT_EQ(with(Rope{.dims = 64}, {.positions = ids}), "check: there are 16 tokens but 2 positions");
  EXPECT_EQ(with(Rope{.dims = 64}, {.axes = 2}), "check: positions with several axes must be given");
  EXPECT_EQ(with(Rope{.dims = 64}, {.tolerance = -1}), "check: the tolerance must be at least 0 but is -1");
  EXPECT_EQ(error_of([&] {
              check(Rope{.dims = 64}, tensors.before_view(), view(tensors.after.data(), {3, 8, 64}));
            }),
            "check: both tensors must have the same shape, but have [3, 16, 64] and [3, 8, 64]");
  std::vector<float> bad = tensors.before;
  bad[7] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(error_of([&] {
              check(Rope{.dims = 64}, view(std::as_const(bad).data(), tensors.shape), tensors.after_view());
            }),
            "check: the tensor before holds numbers that are not finite");
  // after: a difference, not an error
  const CheckResult result =
      check(Rope{.dims = 64}, tensors.before_view(), view(std::as_const(bad).data(), tensors.shape));
  EXPECT_EQ(result.agreement, Agreement::kDiffers);
  EXPECT_EQ(result.advice.size(), 1u);
}

}  // namespace
}  // namespace posenc
