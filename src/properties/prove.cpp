#include <fmt/format.h>

#include <array>
#include <cmath>

#include "posenc/properties.h"
#include "properties/rows.h"
#include "properties/trial.h"

namespace posenc {
namespace {

// In the order of Property.
constexpr std::array<PropertyCard, 12> kCards = {{
    {Property::kUnique, "unique", "unique", "every position has a vector of its own",
     "smallest distance between two rows"},
    {Property::kBounded, "bounded", "bounded", "values stay small, however far the position",
     "largest value at any position"},
    {Property::kConsistent, "consistent", "the same", "a position is the same in every sequence",
     "values whose bytes differ"},
    {Property::kAnyLength, "any-length", "any len.", "it is defined at any length", "positions that are known"},
    {Property::kLinearShift, "linear-shift", "shift", "a step of k is one matrix for all positions",
     "residual of row(p+k) = M row(p)"},
    {Property::kDotByDistance, "dot-by-distance", "dot", "the dot product of two rows is a matter of distance alone",
     "spread over all pairs at one distance"},
    {Property::kMonotone, "monotone", "monotone", "nearer is never less",
     "what a further distance gains on a nearer"},
    {Property::kRelative, "relative", "relative", "the score of query and key is a matter of m - n alone",
     "spread of scores at one distance, |q| = |k| = 1"},
    {Property::kOrderBlind, "order-blind", "blind", "attention does not see order: Att(PX) = P Att(X)",
     "largest difference of the two"},
    {Property::kOrderBlindCausal, "order-blind-causal", "blind/cm", "the same under a causal mask",
     "largest difference of the two"},
    {Property::kAudible, "audible", "audible", "a step of one stands out in a token",
     "size of a step over size of a token"},
    {Property::kVaried, "varied", "varied", "steps are not all the same vector",
     "how far steps differ, over their length"},
}};

constexpr std::array<std::string_view, 3> kOutcomes = {"holds", "fails", "does-not-apply"};
constexpr std::array<std::string_view, 3> kClaimNames = {"none", "holds", "fails"};
constexpr std::array<std::string_view, 3> kComparisons = {"at-most", "at-least", "above"};

bool is_true(double measured, BoundSense comparison, double bound) {
  if (comparison == BoundSense::kAtMost) return measured <= bound;
  return comparison == BoundSense::kAtLeast ? measured >= bound : measured > bound;
}

// ggml multiplies from pair to pair, which one order of sections does not allow.
bool has_ggml_angles(const Scheme& scheme) {
  const auto* const rope = std::get_if<Rope>(&scheme);
  return rope == nullptr || rope->sections.empty() || rope->section_order != SectionOrder::kEvenOdd;
}

Finding begun(Property property, const Trial& trial) {
  Finding finding;
  finding.property = property;
  finding.numerics = trial.options.numerics;
  finding.length = trial.length;
  return finding;
}

}  // namespace

std::span<const PropertyCard> property_cards() noexcept { return kCards; }
const PropertyCard& card_of(Property property) noexcept { return kCards[static_cast<std::size_t>(property)]; }
std::string_view name_of(Property property) noexcept { return card_of(property).name; }
std::string_view name_of(Outcome outcome) noexcept { return kOutcomes[static_cast<std::size_t>(outcome)]; }
std::string_view name_of(Claim claim) noexcept { return kClaimNames[static_cast<std::size_t>(claim)]; }
std::string_view name_of(BoundSense comparison) noexcept {
  return kComparisons[static_cast<std::size_t>(comparison)];
}

bool is_as_claimed(const Finding& finding) noexcept {
  if (finding.claim == Claim::kNone || finding.outcome == Outcome::kDoesNotApply) return true;
  return (finding.claim == Claim::kHolds) == (finding.outcome == Outcome::kHolds);
}

Finding measure(Property property, const Trial& trial) {
  using namespace properties;
  switch (property) {
    case Property::kUnique:
      return unique_rows(trial);
    case Property::kBounded:
      return bounded_values(trial);
    case Property::kConsistent:
      return same_bytes(trial);
    case Property::kAnyLength:
      return any_length(trial);
    case Property::kLinearShift:
      return linear_shift(trial);
    case Property::kDotByDistance:
      return dot_products(trial);
    case Property::kMonotone:
      return monotone(trial);
    case Property::kRelative:
      return relative_scores(trial);
    case Property::kOrderBlind:
      return order_blind(trial, false);
    case Property::kOrderBlindCausal:
      return order_blind(trial, true);
    case Property::kAudible:
      return audible_steps(trial);
    case Property::kVaried:
      break;
  }
  return varied_steps(trial);
}

std::vector<Finding> prove(const Scheme& scheme, const ProveOptions& options) {
  const Trial trial = make_trial(scheme, options);
  std::vector<Finding> findings;
  for (const PropertyCard& card : kCards) findings.push_back(measure(card.property, trial));
  return findings;
}

std::vector<Finding> compare_numerics(const Scheme& scheme, const ProveOptions& options) {
  std::vector<Finding> findings;
  for (const Numerics numerics : {Numerics::kExact, Numerics::kHfF32, Numerics::kGgmlF32}) {
    if (numerics == Numerics::kGgmlF32 && !has_ggml_angles(scheme)) continue;
    ProveOptions these = options;
    these.numerics = numerics;
    const Trial trial = make_trial(scheme, these);
    if (properties::fastest_wave(trial.form) == 0) return {};
    const bool turns = std::holds_alternative<Rotation>(trial.form);
    findings.push_back(measure(turns ? Property::kRelative : Property::kDotByDistance, trial));
  }
  return findings;
}

namespace properties {

Finding decided(Property property, const Trial& trial, double measured, double bound, BoundSense comparison) {
  Finding finding = begun(property, trial);
  finding.measured = measured;
  finding.bound = bound;
  finding.comparison = comparison;
  finding.outcome = is_true(measured, comparison, bound) ? Outcome::kHolds : Outcome::kFails;
  finding.claim = claim_of(property, trial);
  return finding;
}

Finding does_not_apply(Property property, const Trial& trial, std::string why) {
  Finding finding = begun(property, trial);
  finding.meaning = std::move(why);
  return finding;
}

}  // namespace properties
}  // namespace posenc
