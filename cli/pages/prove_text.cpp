#include "cli/pages/prove_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "cli/arrays/elision.h"
#include "cli/system/terminal.h"

namespace posenc::cli {
namespace {

constexpr int kCellColumns = 9;
constexpr int kPlaceColumns = kCellColumns + 1;  // including the gap before it

std::string coloured(std::string_view text, std::string_view code, bool colour) {
  return colour ? fmt::format("\033[{}m{}\033[0m", code, text) : std::string(text);
}

std::string_view mark_of(const Finding& finding) {
  if (finding.outcome == Outcome::kDoesNotApply) return "·";
  return finding.outcome == Outcome::kHolds ? "✓" : "✗";
}

// Green: holds, as expected. Red: not as expected. Dim: nothing is expected. An expected failure is plain.
std::string in_its_colour(std::string_view text, const Finding& finding, bool colour) {
  if (!is_as_claimed(finding)) return coloured(text, "1;31", colour);
  if (finding.claim == Claim::kNone) return dim(text, colour);
  return finding.outcome == Outcome::kHolds ? coloured(text, "32", colour) : std::string(text);
}

// Has at most 7 columns.
std::string short_number(double value) {
  if (std::isnan(value)) return "NaN";
  if (value == 0x1p53) return "2^53";
  if (value == std::floor(value) && std::fabs(value) < 1e6) return fmt::format("{:.0f}", value);
  return fmt::format("{:.2g}", value);
}

std::string_view sign_of(BoundSense comparison) {
  if (comparison == BoundSense::kAtMost) return "<=";
  return comparison == BoundSense::kAtLeast ? ">=" : ">";
}

std::string shift_text(const ShiftMap& map) {
  std::string text;
  const std::size_t width = map.width;
  for (std::size_t row = 0; row < width; ++row) {
    text += "   ";
    for (std::size_t column = 0; column < width; ++column) {
      text += fmt::format(" {:>7}", rounded(map.matrix[row * width + column], 3));
    }
    text += "\n";
  }
  return text;
}

std::string numerics_text(const Proven& proven, bool colour) {
  const Finding& first = proven.numerics.front();
  const std::string_view what = first.property == Property::kRelative ? "scores" : "dot products";
  std::string text = bold(fmt::format("Angles up to position {}", first.length - 1), colour) +
                     fmt::format(": spread of {} at one distance\n", what);
  for (const Finding& finding : proven.numerics) {
    text +=
        fmt::format("    {}  {:<8}  {}\n", pad_right(name_of(finding.numerics), 8), short_number(finding.measured),
                    finding.outcome == Outcome::kHolds ? "within rounding" : "more than rounding");
  }
  return text;
}

Json number_json(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

Json finding_json(const Finding& finding) {
  Json::Object object = {{"property", name_of(finding.property)},
                         {"statement", card_of(finding.property).statement},
                         {"outcome", name_of(finding.outcome)},
                         {"claim", name_of(finding.claim)},
                         {"as_claimed", is_as_claimed(finding)}};
  if (finding.outcome != Outcome::kDoesNotApply) {
    Json::Object details;
    for (const Detail& detail : finding.details)
      details.emplace_back(std::string(detail.name), number_json(detail.value));
    object.emplace_back("quantity", card_of(finding.property).measured);
    object.emplace_back("measured", number_json(finding.measured));
    object.emplace_back("comparison", name_of(finding.comparison));
    object.emplace_back("bound", number_json(finding.bound));
    object.emplace_back("numerics", name_of(finding.numerics));
    object.emplace_back("length", finding.length);
    object.emplace_back("samples", finding.samples);
    object.emplace_back("details", std::move(details));
  }
  object.emplace_back("meaning", finding.meaning);
  return object;
}

Json list_json(const std::vector<Finding>& findings) {
  Json::Array list;
  for (const Finding& finding : findings) list.push_back(finding_json(finding));
  return list;
}

}  // namespace

std::string finding_cell(const Finding& finding) {
  if (finding.outcome == Outcome::kDoesNotApply) return std::string(mark_of(finding));
  return fmt::format("{}{}{}", mark_of(finding), is_as_claimed(finding) ? " " : "!", short_number(finding.measured));
}

std::string proven_label(const Proven& proven) {
  return fmt::format("{}{}", name_of(proven.scheme), proven.has_random_weights ? "*" : "");
}

std::vector<Proven> prove_every_scheme(const ProveOptions& options) {
  std::vector<Proven> all;
  for (const Scheme& scheme : schemes_to_prove()) {
    const Trial trial = make_trial(scheme, options);
    Proven proven;
    proven.scheme = *trial.scheme;
    proven.has_random_weights = trial.has_random_weights;
    for (const PropertyCard& card : property_cards()) proven.findings.push_back(measure(card.property, trial));
    all.push_back(std::move(proven));
  }
  return all;
}

std::string properties_table(const std::vector<Proven>& proven, int columns, bool colour) {
  int label_columns = 0;
  for (const Proven& one : proven) label_columns = std::max(label_columns, columns_of(proven_label(one)));
  const auto cards = property_cards();
  const std::size_t place = kPlaceColumns;
  const std::size_t room = std::max(columns - label_columns, kPlaceColumns);
  // Blocks of equal size look better than full ones and a remainder.
  const std::size_t blocks = (cards.size() + room / place - 1) / (room / place);
  const std::size_t in_block = (cards.size() + blocks - 1) / blocks;
  std::string text;
  for (std::size_t begin = 0; begin < cards.size(); begin += in_block) {
    const std::size_t end = std::min(begin + in_block, cards.size());
    if (begin > 0) text += "\n";
    std::string head = pad_right("", label_columns);
    for (std::size_t i = begin; i < end; ++i) head += " " + pad_right(cards[i].heading, kCellColumns);
    text += bold(head.substr(0, head.find_last_not_of(' ') + 1), colour) + "\n";
    for (const Proven& one : proven) {
      std::string line = pad_right(proven_label(one), label_columns);
      for (std::size_t i = begin; i < end; ++i) {
        const Finding& finding = one.findings[i];
        const std::string cell = finding_cell(finding);
        line += " " + in_its_colour(cell, finding, colour);
        if (i + 1 < end) line += std::string(std::max(kCellColumns - columns_of(cell), 0), ' ');
      }
      text += line + "\n";
    }
  }
  return text;
}

std::string properties_legend(int columns, bool colour) {
  std::string text;
  const int indent = kCellColumns + 4;
  for (const PropertyCard& card : property_cards()) {
    std::string first = fmt::format("  {}  ", bold(pad_right(card.heading, kCellColumns), colour));
    for (const std::string& line : wrap(fmt::format("{}; {}", card.statement, card.measured), columns - indent)) {
      text += first + line + "\n";
      first = std::string(indent, ' ');
    }
  }
  return text;
}

std::string findings_text(const Proven& proven, int columns, bool colour) {
  std::string text = bold(name_of(proven.scheme), colour) + "\n";
  for (const std::string& line : wrap(to_json(proven.scheme), columns)) text += dim(line, colour) + "\n";
  if (proven.has_random_weights) text += "Its trained tables are drawn at random.\n";
  text += "\n";
  for (const Finding& finding : proven.findings) {
    const PropertyCard& card = card_of(finding.property);
    std::string line = fmt::format("{} {}", mark_of(finding), card.statement);
    if (finding.outcome != Outcome::kDoesNotApply) {
      line += fmt::format(": {} {} {}", short_number(finding.measured),
                          finding.outcome == Outcome::kHolds ? sign_of(finding.comparison)
                                                             : fmt::format("is not {}", sign_of(finding.comparison)),
                          short_number(finding.bound));
    }
    if (!is_as_claimed(finding)) {
      line += finding.claim == Claim::kHolds ? "  ! expected to hold" : "  ! expected to fail";
    }
    text += in_its_colour(line, finding, colour) + "\n";
    for (const std::string& words : wrap(finding.meaning, columns - 4)) text += fmt::format("    {}\n", words);
  }
  if (!proven.one_further.matrix.empty()) {
    text += "\n" + bold("The matrix that moves by one position", colour) + ": row(p+1) = M row(p) for every p\n";
    text += shift_text(proven.one_further);
  }
  if (!proven.numerics.empty()) text += "\n" + numerics_text(proven, colour);
  return text;
}

Json findings_json(const Proven& proven) {
  Json::Object object = {{"scheme", json_of(proven.scheme)},
                         {"random_weights", proven.has_random_weights},
                         {"findings", list_json(proven.findings)}};
  if (!proven.numerics.empty()) object.emplace_back("numerics", list_json(proven.numerics));
  if (!proven.one_further.matrix.empty()) {
    Json::Array matrix;
    const auto width = static_cast<std::ptrdiff_t>(proven.one_further.width);
    const auto& values = proven.one_further.matrix;
    for (auto row = values.begin(); row != values.end(); row += width) {
      Json::Array cells;
      for (auto cell = row; cell != row + width; ++cell) cells.push_back(number_json(*cell));
      matrix.push_back(std::move(cells));
    }
    object.emplace_back("one_further", std::move(matrix));
  }
  const CostOptions asked;
  object.emplace_back("cost_per_token", Json::Object{{"keys", asked.keys},
                                                     {"features", asked.features},
                                                     {"operations", proven.cost.operations},
                                                     {"numbers", proven.cost.numbers},
                                                     {"parameters", proven.cost.parameters}});
  return object;
}

}  // namespace posenc::cli
