
#include <array>

#include "posenc/properties.h"
#include "properties/rows.h"
#include "properties/trial.h"

namespace posenc {
namespace {

// In the order of Property.
constexpr std::array<PropertyCard, 13> kCards = {{
    {Property::kUnique, "unique", "unique", "no two positions have the same vector",
     "smallest distance between two rows"},
    {Property::kBounded, "bounded", "bounded", "values are bounded at every position",
     "largest value at any position"},
    {Property::kConsistent, "consistent", "same", "a position has the same values in every sequence",
     "values whose bytes differ"},
    {Property::kAnyLength, "any-length", "any len.", "defined at any length", "largest supported length"},
    {Property::kLinearShift, "linear-shift", "shift", "moving by k is one matrix for all positions",
     "residual of row(p+k) = M row(p)"},
    {Property::kDotByDistance, "dot-by-distance", "dot", "the dot product of two rows depends only on their distance",
     "spread over all pairs at one distance"},
    {Property::kMonotone, "monotone", "monotone", "monotone: a closer position never scores lower",
     "largest gain of a farther position over a closer one"},
    {Property::kRelative, "relative", "relative", "position enters the score of query and key only as m - n",
     "spread of scores at one distance, |q| = |k| = 1"},
    {Property::kSeesOrder, "sees-order", "order", "attention sees word order",
     "largest difference between Att(ΠX) and Π Att(X)"},
    {Property::kSeesOrderCausal, "sees-order-causal", "order/cm", "with a causal mask, attention sees word order",
     "largest difference between Att(ΠX) and Π Att(X)"},
    {Property::kResolvable, "resolvable", "resolved", "adjacent positions are distinguishable in bf16",
     "norm of a step relative to the norm of a token"},
    {Property::kVaried, "varied", "varied", "differences between adjacent rows vary",
     "largest difference of two steps relative to their norm"},
    {Property::kSmooth, "smooth", "smooth", "adjacent positions have similar vectors",
     "largest distance of adjacent rows relative to the rms distance of two rows"},
}};

// In the order of Property.
constexpr std::array<Finding (*)(const Trial&), 13> kMeasures = {
    properties::unique_rows,
    properties::bounded_values,
    properties::same_bytes,
    properties::any_length,
    properties::linear_shift,
    properties::dot_products,
    properties::monotone,
    properties::relative_scores,
    [](const Trial& trial) { return properties::sees_order(trial, false); },
    [](const Trial& trial) { return properties::sees_order(trial, true); },
    properties::resolvable_steps,
    properties::varied_steps,
    properties::smooth_rows};

constexpr std::array<std::string_view, 3> kOutcomes = {"holds", "fails", "does-not-apply"};
constexpr std::array<std::string_view, 3> kClaimNames = {"none", "holds", "fails"};
constexpr std::array<std::string_view, 3> kComparisons = {"at-most", "at-least", "above"};

bool is_true(double measured, BoundSense comparison, double bound) {
  if (comparison == BoundSense::kAtMost) return measured <= bound;
  return comparison == BoundSense::kAtLeast ? measured >= bound : measured > bound;
}

// ggml computes the angles by a product from pair to pair, which one section order does not allow.
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
  return kMeasures[static_cast<std::size_t>(property)](trial);
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
    if (numerics != Numerics::kExact && is_exact_alone(scheme)) continue;
    ProveOptions these = options;
    these.numerics = numerics;
    const Trial trial = make_trial(scheme, these);
    if (properties::fastest_wave(trial.form) == 0) return {};
    const bool is_rotation = std::holds_alternative<Rotation>(trial.form);
    findings.push_back(measure(is_rotation ? Property::kRelative : Property::kDotByDistance, trial));
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
