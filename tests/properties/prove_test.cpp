// Every scheme against every property; the claims; the largest supported lengths; whether a position's encoding stays
// the same.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "posenc/analysis.h"
#include "posenc/posenc.h"

namespace posenc::prove_test {
namespace {

TEST(Prove, EverySchemeHasEveryPropertyAndIsAsClaimed) {
  std::set<std::string_view> seen;
  for (const Scheme& scheme : schemes_to_prove()) {
    seen.insert(name_of(scheme));
    const std::vector<Finding> findings = prove(scheme);
    ASSERT_EQ(findings.size(), property_cards().size());
    int claims = 0;
    for (std::size_t i = 0; i < findings.size(); ++i) {
      const Finding& finding = findings[i];
      EXPECT_EQ(finding.property, property_cards()[i].property);
      EXPECT_TRUE(is_as_claimed(finding)) << name_of(scheme) << ": " << finding.meaning << " " << finding.measured;
      EXPECT_FALSE(finding.meaning.empty());
      EXPECT_EQ(finding.meaning.back(), '.');
      if (finding.outcome == Outcome::kDoesNotApply) continue;
      EXPECT_TRUE(std::isfinite(finding.measured)) << name_of(scheme) << " " << name_of(finding.property);
      EXPECT_TRUE(std::isfinite(finding.bound));
      claims += finding.claim == Claim::kNone ? 0 : 1;
    }
    EXPECT_GE(claims, 4) << name_of(scheme) << ": a scheme of which next to nothing is claimed";
  }
  EXPECT_EQ(seen.size(), std::variant_size_v<Scheme>);
}

// Whatever is drawn at random.
TEST(Prove, AtOtherSeedsAndLengths) {
  for (const std::int64_t seed : {2, 3, -9}) {
    for (const std::int64_t length : {64, 700}) {
      for (const Scheme& scheme : schemes_to_prove()) {
        for (const Property property : {Property::kConsistent, Property::kAnyLength, Property::kRelative,
                                        Property::kSeesOrder, Property::kSeesOrderCausal, Property::kMonotone}) {
          const Finding finding = measure(property, make_trial(scheme, {.length = length, .seed = seed}));
          EXPECT_TRUE(is_as_claimed(finding)) << name_of(scheme) << " " << finding.meaning;
        }
      }
    }
  }
}

TEST(Prove, ShortestLengthsAreNoTrouble) {
  for (const Scheme& scheme : schemes_to_prove()) {
    for (const std::int64_t length : {2, 3, 4, 5}) EXPECT_EQ(prove(scheme, {.length = length}).size(), 13U);
  }
  EXPECT_EQ(prove(Learned{.rows = 1, .width = 1}).size(), 13U);
  EXPECT_EQ(prove(Swin{.window = {1, 1}}).size(), 13U);
}

TEST(Prove, LongestLengthToo) {
  for (const Finding& finding : prove(Sinusoidal{.width = 16}, {.length = kPositionLimit})) {
    EXPECT_TRUE(is_as_claimed(finding)) << finding.meaning;
  }
  for (const Finding& finding : prove(Rope{.dims = 16}, {.length = kPositionLimit})) {
    EXPECT_TRUE(is_as_claimed(finding)) << finding.meaning;
  }
  EXPECT_THROW(prove(None{}, {.length = 1}), Error);
  EXPECT_THROW(prove(None{}, {.length = kPositionLimit + 1}), Error);
}

TEST(Claims, AreKeptApartFromOutcomes) {
  Finding finding;
  finding.outcome = Outcome::kFails;
  finding.claim = Claim::kHolds;
  EXPECT_FALSE(is_as_claimed(finding));
  finding.claim = Claim::kFails;
  EXPECT_TRUE(is_as_claimed(finding));
  finding.outcome = Outcome::kHolds;
  EXPECT_FALSE(is_as_claimed(finding));
  finding.claim = Claim::kNone;
  EXPECT_TRUE(is_as_claimed(finding));
  finding.claim = Claim::kHolds;
  finding.outcome = Outcome::kDoesNotApply;
  EXPECT_TRUE(is_as_claimed(finding));
}

// Claims that the numbers deny: waves so small that f32 has none of them, turns so slow that attention sees none.
TEST(Claims, CanBeBroken) {
  const Finding same = measure(Property::kUnique, make_trial(Sinusoidal{.width = 8, .scale = 1e-60}));
  EXPECT_EQ(same.claim, Claim::kHolds);
  EXPECT_EQ(same.outcome, Outcome::kFails);
  EXPECT_FALSE(is_as_claimed(same));
  const Finding blind = measure(Property::kSeesOrder, make_trial(Rope{.scaling = LinearScaling{.factor = 1e30}}));
  EXPECT_EQ(blind.claim, Claim::kHolds);
  EXPECT_EQ(blind.outcome, Outcome::kFails);
  EXPECT_FALSE(is_as_claimed(blind));
}

TEST(Consistent, HoldsUnlessTheLengthIsAsked) {
  for (const Scheme& scheme : schemes_to_prove()) {
    if (name_of(scheme) == ForgetGate::name || name_of(scheme) == Cope::name) continue;  // they read no positions
    const Finding finding = measure(Property::kConsistent, make_trial(scheme));
    EXPECT_EQ(finding.outcome, Outcome::kHolds) << name_of(scheme);
    EXPECT_EQ(finding.measured, 0);
    EXPECT_GT(finding.samples, 0);
  }
  for (const RopeScaling& scaling :
       {RopeScaling(DynamicScaling{.factor = 2}), RopeScaling(LongropeScaling{.factor = 4})}) {
    const Finding finding = measure(Property::kConsistent, make_trial(Rope{.scaling = scaling}));
    EXPECT_EQ(finding.outcome, Outcome::kFails) << finding.meaning;
    EXPECT_EQ(finding.claim, Claim::kNone);
    EXPECT_GT(finding.measured, 0);
  }
}

TEST(AnyLength, LearnedTablesEnd) {
  const Trial trial = make_trial(Learned{.rows = 512, .width = 8}, {.length = 4096});
  EXPECT_TRUE(trial.has_random_weights);
  EXPECT_EQ(trial.length, 512);
  const Finding finding = measure(Property::kAnyLength, trial);
  EXPECT_EQ(finding.outcome, Outcome::kFails);
  EXPECT_EQ(finding.claim, Claim::kFails);
  EXPECT_EQ(finding.measured, 512);
  EXPECT_NE(finding.meaning.find("position 512 is rejected"), std::string::npos);
  // and so it is
  std::vector<float> row(8);
  const auto* const form = std::get_if<Addition>(&trial.form);
  tabulate(view(row.data(), {1, 8}), {.first = 511}, *form);
  EXPECT_THROW(tabulate(view(row.data(), {1, 8}), {.first = 512}, *form), Error);
}

// A factor on queries: it depends on the position once that has passed the floor, and on nothing else ever.
TEST(Relative, OfTemperatures) {
  const Finding past = measure(Property::kRelative, make_trial(QueryTemperature{.floor = 64}));
  EXPECT_EQ(past.outcome, Outcome::kFails);
  EXPECT_EQ(past.claim, Claim::kFails);
  const Finding before = measure(Property::kRelative, make_trial(QueryTemperature{}, {.length = 1024}));
  EXPECT_EQ(before.outcome, Outcome::kHolds);
  EXPECT_EQ(before.claim, Claim::kNone);
  const Finding order = measure(Property::kSeesOrder, make_trial(QueryTemperature{}));
  EXPECT_EQ(order.outcome, Outcome::kFails);
  EXPECT_EQ(order.claim, Claim::kFails);
  EXPECT_EQ(measure(Property::kRelative, make_trial(PatchRope{})).claim, Claim::kHolds);
  EXPECT_EQ(measure(Property::kRelative, make_trial(PatchRope{})).outcome, Outcome::kHolds);
}

// Angles that two axes add up to depend on the offset alone; sums of waves do not, unless each pair is one wave.
TEST(Relative, OfHeadsOfTheirOwn) {
  const Finding mixed = measure(Property::kRelative, make_trial(RopeMixed{.heads = 3, .dims = 8}));
  EXPECT_EQ(mixed.outcome, Outcome::kHolds);
  EXPECT_EQ(mixed.claim, Claim::kHolds);
  const Finding fope = measure(Property::kRelative, make_trial(Fope{.heads = 3, .dims = 16}));
  EXPECT_EQ(fope.outcome, Outcome::kFails);
  EXPECT_EQ(fope.claim, Claim::kFails);
  const Finding alone = measure(Property::kRelative, make_trial(Form(prepare(Fope{.heads = 3, .dims = 16}))));
  EXPECT_EQ(alone.outcome, Outcome::kHolds);
  for (const Scheme& scheme : {Scheme(RopeMixed{.heads = 3, .dims = 8}), Scheme(Fope{.heads = 3, .dims = 16})}) {
    for (const Finding& finding : prove(scheme)) {
      if (finding.claim == Claim::kNone || finding.outcome == Outcome::kDoesNotApply) continue;
      EXPECT_EQ(finding.outcome == Outcome::kHolds, finding.claim == Claim::kHolds)
          << name_of(scheme) << ' ' << finding.meaning;
    }
  }
}

TEST(AnyLength, OfTheOthers) {
  const auto outcome = [](const Scheme& scheme) { return measure(Property::kAnyLength, make_trial(scheme)).outcome; };
  for (const Scheme& scheme :
       {Scheme(None{}), Scheme(Sinusoidal{}), Scheme(Rope{}), Scheme(Alibi{}), Scheme(T5{}), Scheme(Kerple{}),
        Scheme(Fire{}), Scheme(Sandwich{}), Scheme(Shaw{}), Scheme(Deberta{}), Scheme(RelativeLogits{}),
        Scheme(TransformerXl{.width = 16}), Scheme(TransformerXl{.width = 16, .clamp = 8})}) {
    EXPECT_EQ(outcome(scheme), Outcome::kHolds) << name_of(scheme);
  }
  EXPECT_EQ(outcome(Swin{}), Outcome::kFails);
  EXPECT_EQ(outcome(LogCpb{}), Outcome::kFails);
  EXPECT_EQ(outcome(QueryTemperature{}), Outcome::kHolds);
  EXPECT_EQ(outcome(PatchRope{}), Outcome::kHolds);
  EXPECT_EQ(outcome(RopeMixed{}), Outcome::kHolds);
  EXPECT_EQ(outcome(Fope{}), Outcome::kHolds);
  EXPECT_EQ(outcome(Resized{.width = 8}), Outcome::kFails);
  EXPECT_EQ(outcome(Decomposed{}), Outcome::kFails);
  EXPECT_EQ(outcome(Rope{.scaling = XposScaling{}}), Outcome::kFails);
}

// A gate is below 1, so that every token more between key and query lowers the score; a trained table may do anything.
TEST(Monotone, OfGates) {
  const Finding gates = measure(Property::kMonotone, make_trial(ForgetGate{}));
  EXPECT_EQ(gates.outcome, Outcome::kHolds) << gates.meaning;
  EXPECT_EQ(gates.claim, Claim::kHolds);
  EXPECT_EQ(measure(Property::kMonotone, make_trial(Cope{})).outcome, Outcome::kFails);
  const std::vector<double> zeros(64 * 16, 0.0);
  const Trial flat = make_trial(Cope{}, {.weights = view(zeros.data(), {64, 16})});
  EXPECT_EQ(measure(Property::kMonotone, flat).outcome, Outcome::kHolds);
}

TEST(Consistent, DoesNotApplyToGates) {
  for (const Scheme& scheme : {Scheme(ForgetGate{}), Scheme(Cope{})}) {
    EXPECT_EQ(measure(Property::kConsistent, make_trial(scheme)).outcome, Outcome::kDoesNotApply);
    EXPECT_EQ(measure(Property::kSeesOrder, make_trial(scheme)).outcome, Outcome::kHolds);
    EXPECT_EQ(measure(Property::kSeesOrderCausal, make_trial(scheme)).outcome, Outcome::kHolds);
    EXPECT_EQ(measure(Property::kAnyLength, make_trial(scheme)).outcome, Outcome::kHolds);
  }
}

// The last position that a form knows can be used, the next cannot.
TEST(Reach, IsWhereTheLibraryStops) {
  const Trial swin = make_trial(Swin{.window = {7, 7}});
  EXPECT_EQ(reach_of(swin.form), 7);
  EXPECT_EQ(reach_of(make_trial(Kerple{}, {.length = 100}).form), 100);
  EXPECT_EQ(reach_of(make_trial(Fire{}, {.length = 100}).form), 100);
  EXPECT_EQ(reach_of(prepare(Rope{})), kPositionLimit);
  const Rotation xpos = prepare(Rope{.dims = 8, .scaling = XposScaling{}});
  const std::int64_t reach = reach_of(Form(xpos));
  std::vector<double> values(4), sines(4);
  tabulate(view(values.data(), {1, 4}), view(sines.data(), {1, 4}), {.first = reach - 1}, xpos);
  EXPECT_THROW(tabulate(view(values.data(), {1, 4}), view(sines.data(), {1, 4}), {.first = reach}, xpos), Error);
  std::vector<double> scores(4);
  const auto* const window = std::get_if<Bias>(&swin.form);
  const std::vector<std::int64_t> zero = {0, 0}, last = {6, 6}, next = {7, 0};
  const auto at = [](const std::vector<std::int64_t>& ids) { return Positions{.first = 0, .ids = ids, .axes = 2}; };
  bias(view(scores.data(), {4, 1, 1}), at(last), at(zero), *window);
  EXPECT_THROW(bias(view(scores.data(), {4, 1, 1}), at(next), at(zero), *window), Error);
}

TEST(Trial, TablesOfTheCallerAreUsed) {
  const std::vector<double> table(32 * 4, 0.25);  // every row the same
  const Trial trial = make_trial(Learned{.rows = 32, .width = 4}, {.weights = view(table.data(), {32, 4})});
  EXPECT_FALSE(trial.has_random_weights);
  EXPECT_EQ(measure(Property::kUnique, trial).outcome, Outcome::kFails);
}

TEST(Trial, TheSameSeedGivesTheSameNumbers) {
  const Finding one = measure(Property::kDotByDistance, make_trial(Learned{.rows = 32, .width = 4}, {.seed = 5}));
  const Finding two = measure(Property::kDotByDistance, make_trial(Learned{.rows = 32, .width = 4}, {.seed = 5}));
  const Finding other = measure(Property::kDotByDistance, make_trial(Learned{.rows = 32, .width = 4}, {.seed = 6}));
  EXPECT_EQ(one.measured, two.measured);
  EXPECT_NE(one.measured, other.measured);
}

TEST(Cards, AreInTheOrderOfThePropertiesAndFitAColumn) {
  std::set<std::string_view> names;
  for (std::size_t i = 0; i < property_cards().size(); ++i) {
    const PropertyCard& card = property_cards()[i];
    EXPECT_EQ(static_cast<std::size_t>(card.property), i);
    EXPECT_EQ(&card_of(card.property), &card);
    EXPECT_LE(card.heading.size(), 9U);
    EXPECT_TRUE(names.insert(card.name).second);
  }
}

}  // namespace
}  // namespace posenc::prove_test
