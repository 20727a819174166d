#include "cli/pages/tour_sections.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "cli/pages/prove_text.h"

namespace posenc::cli {
namespace {

// The schemes that most models use, and `none`: as many as fit on a screen.
constexpr std::string_view kFamiliar[] = {"none", "sinusoidal", "learned", "rope", "alibi", "t5"};
constexpr Property kTold[] = {Property::kUnique,        Property::kAnyLength, Property::kLinearShift,
                              Property::kDotByDistance, Property::kRelative,  Property::kSeesOrder};

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

// Only marks, so that all schemes and properties fit on a phone; `prove` shows the numbers.
ReportTable marks_of(std::span<const Proven> proven) {
  ReportTable table;
  table.has_marks = true;
  table.header = {""};
  for (const PropertyCard& card : property_cards()) table.header.emplace_back(card.heading);
  for (const Proven& scheme : proven) {
    std::vector<std::string>& row = table.rows.emplace_back();
    row.push_back(proven_label(scheme));
    for (const Finding& finding : scheme.findings) {
      const std::string cell = finding_cell(finding);
      row.push_back(cell.substr(0, cell.find(' ')));
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
  const bool as_claimed = std::all_of(all.begin(), all.end(), [](const Proven& scheme) {
    return std::all_of(scheme.findings.begin(), scheme.findings.end(), is_as_claimed);
  });

  ReportSection section;
  section.heading = "Which claims about positional encodings hold?";
  section.text = fmt::format(
      "Each cell tests one claim: rows unique, defined at any length, a shift is one matrix, dot products depend "
      "only on the distance, position enters scores only through it, attention sees word order. Measured over {} positions:",
      ProveOptions{}.length);
  section.table = table_of(familiar, kTold);
  section.page_table = marks_of(all);
  section.prose = {
      "Many claims are made about positional encodings. posenc tests each of them numerically, for every scheme, against "
      "a bound that follows from the number formats alone.",
      "Read a row to see what a scheme offers, a column to compare schemes. Every property is phrased so that one wants "
      "it to hold, but not every scheme claims all of them."};
  for (const PropertyCard& card : property_cards()) {
    section.legend.emplace_back(std::string(card.heading), std::string(card.statement));
  }
  section.closing = fmt::format("✓ holds, ✗ fails, · does not apply, * trained table drawn at random; {}.",
                                as_claimed ? "every result is as expected" : "! is not as expected");
  return section;
}

}  // namespace posenc::cli
