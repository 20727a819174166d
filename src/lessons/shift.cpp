#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

#include "lessons/story_builder.h"
#include "lessons/story_matrices.h"
#include "lessons/tellers.h"
#include "posenc/error.h"

namespace posenc::lessons {
namespace {

// How many words `to` stands after `from`; a full stop is no part of a word.
std::int64_t words_between(std::string_view sentence, std::string_view from, std::string_view to) {
  std::int64_t number = 0, first = -1, second = -1;
  while (!sentence.empty()) {
    const std::size_t end = std::min(sentence.find(' '), sentence.size());
    std::string_view word = sentence.substr(0, end);
    while (word.ends_with('.')) word.remove_suffix(1);
    if (word == from) first = number;
    if (word == to) second = number;
    ++number;
    sentence.remove_prefix(std::min(end + 1, sentence.size()));
  }
  if (first < 0 || second < 0) raise("content: stories/shift.json: the sentence lacks its words");
  return second - first;
}

// [c s; −s c] for each pair, on the diagonal: c and s are the row of position k.
StoryMatrix shift_matrix(const std::string& name, const Sinusoidal& scheme, std::int64_t k) {
  const std::vector<std::int64_t> at = {k};
  const StoryMatrix row = waves({"", "", {""}, numbered("d", static_cast<std::size_t>(scheme.width))}, scheme, at);
  const std::size_t width = row.columns.size();
  std::vector<double> values(width * width);
  for (std::size_t i = 0; i < width; i += 2) {
    const double sine = row.at(0, i), cosine = row.at(0, i + 1);
    values[i * width + i] = cosine;
    values[i * width + i + 1] = sine;
    values[(i + 1) * width + i] = -sine;
    values[(i + 1) * width + i + 1] = cosine;
  }
  return measured({name, fmt::format("{}: moves every row by {}", name, k), row.columns, row.columns}, values,
                  "cos(k·ω_i) on the diagonal, ± sin(k·ω_i) beside it");
}

std::vector<std::int64_t> moved_by(const std::vector<std::int64_t>& positions, std::int64_t k) {
  std::vector<std::int64_t> result;
  for (const std::int64_t position : positions) result.push_back(position + k);
  return result;
}

StoryMatrix recovered_turns(const StoryMatrix& before, const StoryMatrix& after) {
  std::vector<std::string> columns;
  std::vector<double> values;
  for (std::size_t i = 0; i < before.columns.size() / 2; ++i) {
    columns.push_back(fmt::format("cos{}", i));
    columns.push_back(fmt::format("sin{}", i));
  }
  for (std::size_t row = 0; row < before.rows.size(); ++row) {
    for (std::size_t i = 0; i < before.columns.size(); i += 2) {
      const double s = before.at(row, i), c = before.at(row, i + 1);
      const double later_s = after.at(row, i), later_c = after.at(row, i + 1);
      values.push_back(c * later_c + s * later_s);
      values.push_back(c * later_s - s * later_c);
    }
  }
  return measured({"T", "T: the turn of each pair, from the two rows", before.rows, columns}, values,
                  "the scalar and the cross product of a pair at p and at p + k");
}

double largest_spread(const StoryMatrix& matrix) {
  double largest = 0;
  for (std::size_t column = 0; column < matrix.columns.size(); ++column) {
    double low = matrix.at(0, column), high = low;
    for (std::size_t row = 0; row < matrix.rows.size(); ++row) {
      low = std::min(low, matrix.at(row, column));
      high = std::max(high, matrix.at(row, column));
    }
    largest = std::max(largest, high - low);
  }
  return largest;
}

}  // namespace

Story tell_shift(const StoryContent& content, const StoryOptions& options) {
  StoryBuilder story(content, options);
  const std::string from = content.text("from"), to = content.text("to");
  const std::int64_t k = words_between(content.text("sentence"), from, to);
  const Sinusoidal scheme{.width = content.integer("width")};
  const std::vector<std::string> features = numbered("d", static_cast<std::size_t>(scheme.width));
  story.say("sentence", content.text("sentence"));
  story.say("from", from);
  story.say("to", to);
  story.say("k", std::to_string(k));

  story.step("distance");
  const std::string distance = fmt::format("distance from {} to {}", from, to);
  story.show({count(distance, k)});
  story.compare(distance, static_cast<double>(k));

  story.step("waves");
  const std::vector<double> frequencies = frequencies_of(scheme);
  std::vector<double> lines;
  for (const double frequency : frequencies) {
    lines.push_back(frequency);
    lines.push_back(2 * std::numbers::pi / frequency);
  }
  const double fastest = 2 * std::numbers::pi / frequencies.front();
  story.say("wavelength", fmt::format("{:.2f}", fastest));
  story.show(
      measured({"W", "W: the hands", numbered("pair", frequencies.size()), {"frequency", "positions-per-turn"}},
               lines, "ω_i, and 2π / ω_i"));
  story.compare("positions per turn of the fastest pair", fastest);

  story.step("matrix");
  story.formula("(sin ω(p+k), cos ω(p+k)) = ( cos ωk  sin ωk ; −sin ωk  cos ωk ) · (sin ωp, cos ωp)");
  const StoryMatrix m = story.show(shift_matrix("M", scheme, k));

  story.step("applied");
  const std::vector<std::int64_t> positions = content.integers("positions");
  const StoryMatrix before =
      story.show(waves({"P", "P: the table at p", as_labels(positions), features}, scheme, positions));
  const StoryMatrix after =
      story.show(waves({"P+", fmt::format("P+: the table at p + {}", k), as_labels(positions), features}, scheme,
                       moved_by(positions, k)));
  const StoryMatrix made = story.show(product("MP", "MP: M times the row at p", before, m, {.transposed = true}));
  std::vector<std::int64_t> all(static_cast<std::size_t>(content.integer("every_position_below")));
  std::iota(all.begin(), all.end(), 0);
  const auto table = [&](const std::vector<std::int64_t>& at) {
    return waves({"", "", std::vector<std::string>(at.size()), features}, scheme, at);
  };
  const double everywhere =
      largest_difference(product("", "", table(all), m, {.transposed = true}), table(moved_by(all, k)));
  story.show({residual("largest |M·P(p) − P(p+k)|, these positions", largest_difference(made, after)),
              residual(fmt::format("the same for every position below {}", all.size()), everywhere)});

  story.step("recovered");
  const StoryMatrix turns = story.show(recovered_turns(before, after));
  story.show({residual("largest difference within a column", largest_spread(turns))});

  story.step("composed");
  const std::vector<std::int64_t> parts = content.integers("parts");
  if (parts.size() != 2) raise("content: stories/shift.json: parts: needs two");
  const std::int64_t total = parts[0] + parts[1];
  story.say("part0", std::to_string(parts[0]));
  story.say("part1", std::to_string(parts[1]));
  story.say("total", std::to_string(total));
  const StoryMatrix first = story.show(shift_matrix("M0", scheme, parts[0]));
  const StoryMatrix second = story.show(shift_matrix("M1", scheme, parts[1]));
  const StoryMatrix both = story.show(product("M10", "M10 = M1 · M0", second, first));
  story.show({residual(fmt::format("largest |M1 · M0 − matrix of {}|", total),
                       largest_difference(both, shift_matrix("", scheme, total)))});
  return story.finish();
}

}  // namespace posenc::lessons
