#include "lessons/story_builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "posenc/error.h"
#include "posenc/question.h"

namespace posenc {
namespace lessons {
namespace {

int digits_after_point(std::string_view text) {
  const std::size_t point = text.find('.');
  return point == std::string_view::npos ? 0 : static_cast<int>(text.size() - point - 1);
}

}  // namespace
}  // namespace lessons

std::string misprint_place(const Misprint& misprint) {
  return misprint.matrix.empty() ? misprint.row
                                 : fmt::format("{}[{}, {}]", misprint.matrix, misprint.row, misprint.column);
}

std::string correct_number(const Misprint& misprint) {
  const bool is_whole = misprint.value == std::floor(misprint.value);
  return shown_number(misprint.value, std::max(lessons::digits_after_point(misprint.printed), is_whole ? 0 : 2));
}

namespace lessons {
namespace {

constexpr int kMostDigits = 17;

// A printed number that is off by less than this many units in its last digit is a rounding error, not a mistake.
constexpr double kRoundingUnits = 2.0;

double number_from(std::string_view text) {
  double value = std::numeric_limits<double>::quiet_NaN();
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

bool agrees(std::string_view printed, double value) {
  return shown_number(value, digits_after_point(printed)) == printed;
}

Misprint misprint_of(std::string_view printed, double value) {
  Misprint result;
  result.value = value;
  result.printed = printed;
  const double unit = std::pow(10.0, -digits_after_point(printed));
  result.is_rounding = std::fabs(number_from(printed) - value) < kRoundingUnits * unit;
  return result;
}

// "Frank, knows-upscale: 1.862, not 1.703"
std::string corrected(const Misprint& misprint) {
  const std::string where =
      misprint.column.empty() ? misprint.row : fmt::format("{}, {}", misprint.row, misprint.column);
  return fmt::format("{}: {}, not {}", where, correct_number(misprint), misprint.printed);
}

// For wrong numbers only; rounding errors are listed in the errata.
StoryNote note_on(std::vector<Misprint> misprints) {
  std::vector<std::string> parts;
  for (const Misprint& misprint : misprints) parts.push_back(corrected(misprint));
  return {fmt::format("The source text is wrong here: {}.", fmt::join(parts, "; ")), std::move(misprints)};
}

}  // namespace

std::vector<Misprint> misprints_of(const StoryMatrix& matrix, const std::vector<std::vector<std::string>>& printed) {
  std::vector<Misprint> result;
  if (printed.empty()) return result;
  const bool fits =
      printed.size() == matrix.rows.size() &&
      std::all_of(printed.begin(), printed.end(), [&](auto& row) { return row.size() == matrix.columns.size(); });
  if (!fits) raise(fmt::format("content: the printed cells of {} have a different shape", matrix.name));
  for (std::size_t row = 0; row < matrix.rows.size(); ++row) {
    for (std::size_t column = 0; column < matrix.columns.size(); ++column) {
      const std::string& text = printed[row][column];
      if (text.empty() || agrees(text, matrix.at(row, column))) continue;
      Misprint misprint = misprint_of(text, matrix.at(row, column));
      misprint.matrix = matrix.name;
      misprint.row = matrix.rows[row];
      misprint.column = matrix.columns[column];
      result.push_back(std::move(misprint));
    }
  }
  return result;
}

bool is_own(const StoryOptions& options) {
  return !options.text.empty() || options.base || options.width || options.concatenated;
}

StoryBuilder::StoryBuilder(const StoryContent& content, const StoryOptions& options)
    : content_(content), options_(options) {
  story_.name = content.name();
  story_.title = content.text("title");
  story_.summary = content.text("summary");
  story_.source = citation(content.text("source"));
  if (content.has("figure")) story_.figure = content.text("figure");
  for (const std::string& line : content.texts("python")) story_.python += line + "\n";
  if (options.digits && (*options.digits < 0 || *options.digits > kMostDigits)) {
    raise(fmt::format("story: digits must be from 0 to {} but is {}", kMostDigits, *options.digits));
  }
}

void StoryBuilder::step(std::string_view id) {
  auto [heading, text] = content_.step(id);
  story_.steps.push_back({std::move(heading), std::move(text)});
}

StoryMatrix StoryBuilder::show(StoryMatrix matrix) {
  if (options_.digits) matrix.digits = *options_.digits;
  // Numbers of the reader's choice were not printed.
  const auto printed = is_own(options_) ? std::vector<std::vector<std::string>>{} : content_.printed(matrix.name);
  std::vector<Misprint> misprints = misprints_of(matrix, printed);
  story_.steps.back().blocks.emplace_back(matrix);
  errata_.insert(errata_.end(), misprints.begin(), misprints.end());
  std::erase_if(misprints, [](const Misprint& misprint) { return misprint.is_rounding; });
  if (!misprints.empty()) story_.steps.back().blocks.emplace_back(note_on(std::move(misprints)));
  return matrix;
}

void StoryBuilder::show(std::vector<StoryFact> facts) {
  for (StoryFact& one : facts) {
    if (options_.digits && !one.significant) one.digits = *options_.digits;
  }
  story_.steps.back().blocks.emplace_back(StoryFacts{std::move(facts)});
}

void StoryBuilder::formula(std::string text) {
  story_.steps.back().blocks.emplace_back(StoryFormula{std::move(text)});
}

void StoryBuilder::note(std::string_view id) {
  story_.steps.back().blocks.emplace_back(StoryNote{content_.note(id)});
}

void StoryBuilder::compare(std::string_view fact, double value) {
  const std::string printed = content_.printed_fact(fact);
  if (printed.empty() || agrees(printed, value)) return;
  Misprint misprint = misprint_of(printed, value);
  misprint.row = fact;
  misprint.is_rounding = false;  // a count is either right or wrong
  errata_.push_back(misprint);
  story_.steps.back().blocks.emplace_back(note_on({std::move(misprint)}));
}

void StoryBuilder::say(std::string name, std::string text) { said_.emplace_back(std::move(name), std::move(text)); }

void StoryBuilder::say(std::string name, double value, int digits) {
  say(std::move(name), shown_number(value, options_.digits.value_or(digits)));
}

std::string StoryBuilder::filled(const std::string& text) const {
  std::string result;
  std::size_t from = 0;
  while (true) {
    const std::size_t open = text.find('{', from);
    result += text.substr(from, open - from);
    if (open == std::string::npos) return result;
    const std::size_t close = text.find('}', open);
    const std::string name = text.substr(open + 1, close == std::string::npos ? close : close - open - 1);
    const auto found = std::find_if(said_.begin(), said_.end(), [&](const auto& pair) { return pair.first == name; });
    if (close == std::string::npos || found == said_.end()) {
      raise(fmt::format("content: stories/{}.json: {{{}}} has no value", story_.name, name));
    }
    result += found->second;
    from = close + 1;
  }
}

Story StoryBuilder::finish() {
  if (!errata_.empty()) {
    step("errata");
    story_.steps.back().blocks.emplace_back(StoryErrata{content_.text("follows"), std::move(errata_)});
  }
  for (StoryStep& step : story_.steps) {
    step.heading = filled(step.heading);
    step.text = filled(step.text);
    for (StoryBlock& block : step.blocks) {
      if (auto* const note = std::get_if<StoryNote>(&block)) {
        if (note->misprints.empty()) note->text = filled(note->text);
      } else if (auto* const formula = std::get_if<StoryFormula>(&block)) {
        formula->text = filled(formula->text);
      }
    }
  }
  return std::move(story_);
}

StoryFact fact(std::string name, double value, int digits) { return {std::move(name), value, digits}; }
StoryFact residual(std::string name, double value) { return {std::move(name), value, 2, true}; }
StoryFact count(std::string name, std::int64_t value) { return {std::move(name), value}; }
StoryFact check(std::string name, bool value) { return {std::move(name), value}; }
StoryFact worded(std::string name, std::string value) { return {std::move(name), std::move(value)}; }

}  // namespace lessons
}  // namespace posenc
