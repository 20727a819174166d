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

// How many words after `from` the word `to` is; full stops are ignored.
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
  if (first < 0 || second < 0) raise("content: stories/shift.json: the sentence does not contain its words");
  return second - first;
}

// A block [c s; −s c] for each pair on the diagonal, where c and s are from the row at position k.
StoryMatrix shift_matrix(const std::string& name, const Sinusoidal& scheme, std::int64_t k) {
  const std::vector<std::int64_t> at = {k};
  const StoryMatrix row = waves({"", "", {""}, numbered("d", scheme.width)}, scheme, at);
  const std::size_t width = row.columns.size();
  const std::vector<double> frequencies = frequencies_of(scheme);
  std::vector<double> values(width * width);
  std::vector<CellTerms> cells(width * width, constant("0: features of different pairs do not mix"));
  for (std::size_t i = 0; i < width; i += 2) {
    const std::vector<CellFactor> angle = {{"k", static_cast<double>(k)},
                                           {fmt::format("ω{}", i / 2), frequencies[i / 2]}};
    const auto set = [&](std::size_t place, double value, CellTerms cell) {
      values[place] = value;
      cells[place] = std::move(cell);
    };
    const double sine = row.at(0, i), cosine = row.at(0, i + 1);
    std::vector<CellFactor> back = angle;
    back.front().value = -back.front().value;
    back.front().name = "−k";
    set(i * width + i, cosine, {"cos(k · ω_i)", {angle}, "cos"});
    set(i * width + i + 1, sine, {"sin(k · ω_i)", {angle}, "sin"});
    set((i + 1) * width + i, -sine, {"sin(−k · ω_i)", {back}, "sin"});
    set((i + 1) * width + i + 1, cosine, {"cos(k · ω_i)", {angle}, "cos"});
  }
  return computed({name, fmt::format("{}: moves every row by {}", name, k), row.columns, row.columns},
                  std::move(values), std::move(cells));
}

std::vector<std::int64_t> moved_by(const std::vector<std::int64_t>& positions, std::int64_t k) {
  std::vector<std::int64_t> result;
  for (const std::int64_t position : positions) result.push_back(position + k);
  return result;
}

StoryMatrix recovered_rotations(const StoryMatrix& before, const StoryMatrix& after) {
  std::vector<std::string> columns;
  std::vector<CellTerms> cells;
  for (std::size_t i = 0; i < before.columns.size() / 2; ++i) {
    columns.push_back(fmt::format("cos{}", i));
    columns.push_back(fmt::format("sin{}", i));
  }
  for (std::size_t row = 0; row < before.rows.size(); ++row) {
    for (std::size_t i = 0; i < before.columns.size(); i += 2) {
      const CellFactor s = cell_factor(before, row, i), c = cell_factor(before, row, i + 1);
      const CellFactor later_s = cell_factor(after, row, i), later_c = cell_factor(after, row, i + 1);
      cells.push_back({"dot product of the pair at p and at p + k", {{c, later_c}, {s, later_s}}});
      cells.push_back({"cross product of the pair at p and at p + k", {{c, later_s}, {{"−1", -1.0}, s, later_c}}});
    }
  }
  return computed({"T", "T: the rotation of each pair, from the two rows", before.rows, columns}, std::move(cells));
}

// An affine ramp start + p · step also has a shift matrix: I + k · step · 1 · uᵀ, with u · start = 1 and u · 1 = 0.
void show_affine(StoryBuilder& story, const std::vector<double>& start, double step,
                 const std::vector<std::int64_t>& positions) {
  const std::vector<std::string> features = numbered("d", start.size());
  const double mean = std::accumulate(start.begin(), start.end(), 0.0) / static_cast<double>(start.size());
  double size = 0;
  for (const double value : start) size += (value - mean) * (value - mean);
  if (size == 0) raise("story: --start needs at least two different numbers");
  std::vector<CellTerms> rows, next, matrix;
  for (const std::int64_t position : positions) {
    for (std::size_t i = 0; i < start.size(); ++i) {
      const CellFactor begin = {fmt::format("start{}", i), start[i]}, by = {"step", step};
      rows.push_back({"start + p · step", {{begin}, {by, {"p", static_cast<double>(position)}}}});
      next.push_back({"start + (p + 1) · step", {{begin}, {by, {"p + 1", static_cast<double>(position + 1)}}}});
    }
  }
  for (std::size_t row = 0; row < start.size(); ++row) {
    for (std::size_t i = 0; i < start.size(); ++i) {
      CellTerms cell{"(row = column ? 1 : 0) + step · u[column]"};
      cell.terms = {{{"1 on the diagonal", row == i ? 1.0 : 0.0}},
                    {{"step", step}, {fmt::format("u{}", i), (start[i] - mean) / size}}};
      matrix.push_back(std::move(cell));
    }
  }
  const std::vector<std::string> labels = as_labels(positions);
  const StoryMatrix before = story.show(computed({"B", "B: an affine ramp at p", labels, features}, std::move(rows)));
  const StoryMatrix n =
      story.show(computed({"N", "N: moves every row of the ramp by 1", features, features}, std::move(matrix)));
  const StoryMatrix made = story.show(product("NB", "NB = N · B", before, n, {.transposed = true}));
  const double residue = largest_difference(made, computed({"", "", labels, features}, std::move(next)));
  double growth = 0, norm = 0;
  for (std::size_t row = 0; row < before.rows.size(); ++row) {
    const double length = std::sqrt(dot(row_of(before, row), row_of(before, row)));
    if (row == 0) norm = length;
    growth = std::max(growth, length);
  }
  story.show({residual("largest |N·B(p) − B(p+1)|", residue), fact("norm of the first row", norm),
              fact("norm of the last row", growth)});
}

}  // namespace

Story tell_shift(const StoryContent& content, const StoryOptions& options) {
  StoryBuilder story(content, options);
  const std::string from = content.text("from"), to = content.text("to");
  const std::int64_t k = words_between(content.text("sentence"), from, to);
  const Sinusoidal scheme{.width = content.integer("width")};
  const std::vector<std::string> features = numbered("d", scheme.width);
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
  std::vector<CellTerms> lines;
  for (std::size_t i = 0; i < frequencies.size(); ++i) {
    const std::string power = fmt::format("{}^(−2·{}/{})", scheme.base, i, scheme.width);
    lines.push_back({"base^(−2i/d)", {{{power, frequencies[i]}}}});
    lines.push_back(
        {"2π / ω_i", {{{"2π", 2 * std::numbers::pi}}}, "", CellFactor{fmt::format("ω{}", i), frequencies[i]}});
  }
  const double fastest = 2 * std::numbers::pi / frequencies.front();
  story.say("wavelength", fmt::format("{:.2f}", fastest));
  story.show(
      computed({"W", "W: the pairs", numbered("pair", frequencies.size()), {"frequency", "wavelength"}}, lines));
  story.compare("shortest wavelength in positions", fastest);

  story.step("matrix");
  story.formula("(sin ω(p+k), cos ω(p+k)) = ( cos ωk  sin ωk ; −sin ωk  cos ωk ) · (sin ωp, cos ωp)");
  const StoryMatrix m = story.show(shift_matrix("M", scheme, k));

  story.step("applied");
  const std::vector<std::int64_t> positions = content.integers("positions");
  const StoryMatrix before =
      story.show(waves({"P", "P: the encoding at p", as_labels(positions), features}, scheme, positions));
  const StoryMatrix after =
      story.show(waves({"P+", fmt::format("P+: the encoding at p + {}", k), as_labels(positions), features}, scheme,
                       moved_by(positions, k)));
  const StoryMatrix made = story.show(product("MP", "MP = M · P", before, m, {.transposed = true}));
  std::vector<std::int64_t> all(content.integer("every_position_below"));
  std::iota(all.begin(), all.end(), 0);
  const auto table = [&](const std::vector<std::int64_t>& at) {
    return waves({"", "", std::vector<std::string>(at.size()), features}, scheme, at);
  };
  const double everywhere =
      largest_difference(product("", "", table(all), m, {.transposed = true}), table(moved_by(all, k)));
  story.show({residual("largest |M·P(p) − P(p+k)|, these positions", largest_difference(made, after)),
              residual(fmt::format("the same for every position below {}", all.size()), everywhere)});

  story.step("recovered");
  const StoryMatrix rotations = story.show(recovered_rotations(before, after));
  story.show({residual("largest difference within a column", largest_spread(rotations))});

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

  story.step("affine");
  show_affine(story, options.start.empty() ? content.numbers("affine_start") : options.start,
              content.number("affine_step"), content.integers("affine_positions"));
  return story.finish();
}

}  // namespace posenc::lessons
