#include "cli/pages/tour_properties.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "cli/pages/prove_text.h"

namespace posenc::cli {
namespace {

// What fits on a screen: the ways that most models know word order, and none.
constexpr std::string_view kFamiliar[] = {"none", "sinusoidal", "learned", "rope", "alibi", "t5"};
constexpr Property kTold[] = {Property::kUnique,        Property::kAnyLength, Property::kLinearShift,
                              Property::kDotByDistance, Property::kRelative,  Property::kOrderBlind};

ReportTable table_of(std::span<const Proven> proven, std::span<const Property> properties) {
  ReportTable table;
  table.header = {""};
  for (const Property property : properties) table.header.emplace_back(card_of(property).heading);
  for (const Proven& scheme : proven) {
    std::vector<std::string>& row = table.rows.emplace_back();
    row.push_back(proven_label(scheme));
    for (const Property property : properties) {
      row.push_back(finding_cell(scheme.findings[static_cast<std::size_t>(property)]));
    }
  }
  return table;
}

}  // namespace

ReportSection properties_section() {
  const std::vector<Proven> all = prove_every_scheme();
  std::vector<Proven> familiar;
  for (const Proven& scheme : all) {
    if (std::find(std::begin(kFamiliar), std::end(kFamiliar), name_of(scheme.scheme)) != std::end(kFamiliar)) {
      familiar.push_back(scheme);
    }
  }
  std::vector<Property> every;
  for (const PropertyCard& card : property_cards()) every.push_back(card.property);
  const bool as_claimed = std::all_of(all.begin(), all.end(), [](const Proven& scheme) {
    return std::all_of(scheme.findings.begin(), scheme.findings.end(), is_as_claimed);
  });

  ReportSection section;
  section.heading = "What is said of it, measured";
  section.text = fmt::format(
      "Each row unique, at any length, a shift one matrix, dot products and scores a matter of distance alone; and "
      "whether attention stays blind to order. Over {} positions:",
      ProveOptions{}.length);
  section.table = table_of(familiar, kTold);
  section.page_table = table_of(all, every);
  section.closing = fmt::format("✓ holds, ✗ fails, · does not apply, * with random numbers for trained ones; {}.",
                                as_claimed ? "all as the field claims" : "! marks what differs from the claims");
  return section;
}

}  // namespace posenc::cli
