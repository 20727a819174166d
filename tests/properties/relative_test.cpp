// The score of a query and a key depends only on their distance for schemes that claim it; the test detects those for
// which it does not.

#include <gtest/gtest.h>

#include <cmath>

#include "posenc/analysis.h"
#include "posenc/posenc.h"
#include "properties/scores.h"

namespace posenc::relative_test {
namespace {

Finding relative(const Scheme& scheme, const ProveOptions& options = {}) {
  return measure(Property::kRelative, make_trial(scheme, options));
}

// Scores as attention makes them, against the formula of RoPE in long double.
TEST(Scores, AreThoseOfTheFormula) {
  constexpr std::int64_t kDims = 8;
  const Form form = prepare(Rope{.dims = kDims});
  const properties::Sample sample = properties::sample_at({0, 1, 5, 1000, 99'999}, 1);
  const auto pairs = properties::all_pairs(sample);
  const auto content = properties::random_query_and_key(kDims, 3);
  const std::vector<double> scores = properties::scores_of(form, sample, pairs, content);
  ASSERT_EQ(scores.size(), 25U);
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    const std::int64_t m = sample.at(0, pairs[i].query), n = sample.at(0, pairs[i].key);
    long double sum = 0;
    for (std::size_t pair = 0; pair < 4; ++pair) {
      const long double w = std::pow(10000.0L, -2.0L * static_cast<long double>(pair) / kDims);
      const auto turned = [&](const std::vector<double>& x, std::int64_t p, bool second) {
        const auto a = static_cast<long double>(x[pair]), b = static_cast<long double>(x[pair + 4]);
        const long double angle = static_cast<long double>(p) * w;
        return second ? b * std::cos(angle) + a * std::sin(angle) : a * std::cos(angle) - b * std::sin(angle);
      };
      sum += turned(content.q, m, false) * turned(content.k, n, false) +
             turned(content.q, m, true) * turned(content.k, n, true);
    }
    // long double is double on some machines, and its angle is then off by half a unit of 1e5
    EXPECT_NEAR(scores[i], static_cast<double>(sum), 3e-11);
  }
}

// Each of them, stretched where it has a factor.
template <class... S> std::vector<RopeScaling> all_scalings(const std::variant<S...>*) {
  std::vector<RopeScaling> scalings = {S{}...};
  const auto stretch = []<class T>(T& scaling) {
    T::fields([&](std::string_view name, auto member, std::string_view) {
      if constexpr (std::is_same_v<decltype(member), double T::*>) {
        if (name == "factor" || name == "alpha") scaling.*member = 4;
      } else if constexpr (std::is_same_v<decltype(member), std::int64_t T::*>) {
        if (name == "original_length") scaling.*member = 128;
      }
    });
  };
  for (RopeScaling& scaling : scalings) std::visit(stretch, scaling);
  return scalings;
}

TEST(Relative, EveryScalingOfRope) {
  const std::vector<RopeScaling> scalings = all_scalings(static_cast<const RopeScaling*>(nullptr));
  EXPECT_EQ(std::get<YarnScaling>(scalings[6]), (YarnScaling{.factor = 4, .original_length = 128}));
  for (const RopeScaling& scaling : scalings) {
    const Finding found = relative(Rope{.dims = 32, .scaling = scaling});
    const std::string which = to_json(Rope{.dims = 32, .scaling = scaling});
    EXPECT_EQ(found.outcome, Outcome::kHolds) << which << found.measured << " " << found.bound;
    EXPECT_EQ(found.claim, Claim::kHolds) << which;
    EXPECT_GT(found.measured, 0) << "rounding is there, or nothing was measured: " << which;
  }
}

TEST(Relative, EveryLayoutAndSectionOfRope) {
  for (const PairLayout layout : {PairLayout::kHalves, PairLayout::kInterleaved, PairLayout::kInterleavedToHalves}) {
    EXPECT_EQ(relative(Rope{.dims = 16, .layout = layout, .sign = -1, .first_dim = 4}).outcome, Outcome::kHolds);
  }
  EXPECT_EQ(relative(Rope{.dims = 16, .first_dim = -16}).outcome, Outcome::kHolds);
  for (const SectionOrder order : {SectionOrder::kChunked, SectionOrder::kInterleaved}) {
    const Finding found = relative(Rope{.dims = 24, .sections = {4, 4, 4}, .section_order = order});
    EXPECT_EQ(found.outcome, Outcome::kHolds);
    EXPECT_GT(found.samples, 100);
  }
}

TEST(Relative, TenMillionPositionsNeedTheExactAngle) {
  const std::vector<Finding> found = compare_numerics(Rope{}, {.length = 10'000'000});
  ASSERT_EQ(found.size(), 3U);
  EXPECT_EQ(found[0].numerics, Numerics::kExact);
  EXPECT_EQ(found[0].outcome, Outcome::kHolds);
  EXPECT_LT(found[0].measured, 1e-14);
  for (const std::size_t i : {1U, 2U}) {
    EXPECT_EQ(found[i].outcome, Outcome::kFails);
    EXPECT_EQ(found[i].claim, Claim::kNone);
    EXPECT_GT(found[i].measured, 0.01);
  }
  EXPECT_EQ(compare_numerics(Sinusoidal{.width = 64}).size(), 3U);
  EXPECT_TRUE(compare_numerics(Alibi{}).empty());
  EXPECT_TRUE(compare_numerics(Learned{.rows = 8, .width = 4}).empty());
}

TEST(Relative, BiasesByConstruction) {
  for (const Scheme& scheme : {Scheme(Alibi{}), Scheme(T5{}), Scheme(Kerple{}), Scheme(Sandwich{}), Scheme(Swin{}),
                               Scheme(Swin{.window = {3, 4, 5}})}) {
    const Finding found = relative(scheme);
    EXPECT_EQ(found.outcome, Outcome::kHolds) << to_json(scheme);
    EXPECT_EQ(found.bound, 0) << "the same bytes, not nearly the same";
  }
  for (const Scheme& scheme :
       {Scheme(Shaw{}), Scheme(Shaw{.with_keys = true}), Scheme(Shaw{.with_values = true}), Scheme(Deberta{}),
        Scheme(TransformerXl{.width = 16}), Scheme(RelativeLogits{}), Scheme(Decomposed{}),
        Scheme(Decomposed{.window = {3, 4}, .trained_window = {5, 2}})}) {
    EXPECT_EQ(relative(scheme).outcome, Outcome::kHolds) << to_json(scheme);
  }
}

TEST(Relative, FireDependsOnTheQueryToo) {
  EXPECT_EQ(relative(Fire{}, {.length = 512}).outcome, Outcome::kHolds) << "all before its threshold";
  const Finding found = relative(Fire{});
  EXPECT_EQ(found.outcome, Outcome::kFails);
  EXPECT_EQ(found.claim, Claim::kFails);
  EXPECT_GT(found.measured, 1e-3);
}

// The same query and key at one distance, with other tokens between them.
TEST(Relative, GatesDependOnTheTokensBetween) {
  for (const Scheme& scheme : {Scheme(ForgetGate{}), Scheme(Cope{.rows = 8})}) {
    const Finding found = relative(scheme);
    EXPECT_EQ(found.outcome, Outcome::kFails) << to_json(scheme);
    EXPECT_EQ(found.claim, Claim::kFails);
    EXPECT_GT(found.measured, 0.1);
    EXPECT_NE(found.meaning.find("the tokens between key and query"), std::string::npos);
  }
  // a table of zeros adds nothing, whatever is counted
  const std::vector<double> zeros(8 * 16, 0.0);
  const Finding nothing = relative(Cope{.rows = 8}, {.weights = view(zeros.data(), {8, 16})});
  EXPECT_EQ(nothing.outcome, Outcome::kHolds) << nothing.measured << ' ' << nothing.bound;
  EXPECT_EQ(nothing.claim, Claim::kNone);
}

TEST(Relative, AddedVectorsMeetTheTokensAsWell) {
  const Finding found = relative(Sinusoidal{.width = 64});
  EXPECT_EQ(found.outcome, Outcome::kFails);
  EXPECT_EQ(found.claim, Claim::kFails);
}

TEST(Relative, ARotationThatIsOffIsSeen) {
  // cosines and sines of a table, the last of which was made from a position that is off by one
  constexpr std::int64_t kRows = 32, kPairs = 4;
  std::vector<double> cosines, sines;
  for (std::int64_t p = 0; p < kRows; ++p) {
    for (std::int64_t i = 0; i < kPairs; ++i) {
      const long double angle = static_cast<long double>(p) * std::pow(100.0L, -static_cast<long double>(i) / 4);
      cosines.push_back(static_cast<double>(std::cos(angle)));
      sines.push_back(static_cast<double>(std::sin(angle)));
    }
  }
  Rotation rotation;
  rotation.source = RotationTable{view(cosines.data(), {kRows, kPairs}), view(sines.data(), {kRows, kPairs})};
  EXPECT_EQ(measure(Property::kRelative, make_trial(rotation)).outcome, Outcome::kHolds);
  for (std::int64_t i = 0; i < kPairs; ++i) {
    const auto last = static_cast<std::size_t>((kRows - 1) * kPairs + i),
               before = last - static_cast<std::size_t>(kPairs);
    cosines[last] = cosines[before];
    sines[last] = sines[before];
  }
  const Finding found = measure(Property::kRelative, make_trial(rotation));
  EXPECT_EQ(found.outcome, Outcome::kFails);
  EXPECT_GT(found.measured, 0.01);
}

}  // namespace
}  // namespace posenc::relative_test
