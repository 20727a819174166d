#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "lessons/story_builder.h"
#include "lessons/story_matrices.h"
#include "lessons/tellers.h"

namespace posenc::lessons {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

std::vector<std::int64_t> range(std::int64_t first, std::int64_t count) {
  std::vector<std::int64_t> result(count);
  std::iota(result.begin(), result.end(), first);
  return result;
}

// Σ cos(ω_i · distance), from the cosines in the row at that distance.
CellTerms sum_of_cosines(const StoryMatrix& rows_of_distances, std::size_t row) {
  CellTerms cell{"Σ cos(ω_i · distance)"};
  for (std::size_t i = 1; i < rows_of_distances.columns.size(); i += 2) {
    cell.terms.push_back(
        {{fmt::format("cos(ω{} · {})", i / 2, rows_of_distances.rows[row]), rows_of_distances.at(row, i)}});
  }
  return cell;
}

struct Line {
  CellTerms smallest, largest;
};

// The smallest and largest dot product of two rows `distance` apart.
Line line_of(const StoryMatrix& p, std::size_t distance) {
  std::size_t low = 0, high = 0;
  const auto value = [&](std::size_t n) { return dot(row_of(p, n), row_of(p, n + distance)); };
  for (std::size_t n = 0; n + distance < p.rows.size(); ++n) {
    if (value(n) < value(low)) low = n;
    if (value(n) > value(high)) high = n;
  }
  return {row_product(p, low, p, low + distance), row_product(p, high, p, high + distance)};
}

StoryMatrix flat_lines(const StoryMatrix& p) {
  MatrixLabels labels{"D", "D: row m − n, column n; constant within each row", {}, {}};
  std::vector<double> values;
  std::vector<CellTerms> cells;
  const std::size_t length = p.rows.size();
  for (std::size_t n = 0; n + 1 < length; ++n) labels.columns.push_back(std::to_string(n));
  for (std::size_t distance = 1; distance < length; distance += 2) {
    labels.rows.push_back(std::to_string(distance));
    for (std::size_t n = 0; n + 1 < length; ++n) {
      const bool is_there = n + distance < length;
      cells.push_back(is_there ? row_product(p, n, p, n + distance) : CellTerms{});
      values.push_back(is_there ? value_of(cells.back()) : kNone);
    }
  }
  return computed(std::move(labels), std::move(values), std::move(cells));
}

StoryMatrix pairs_of_rows(const StoryMatrix& rows, const std::vector<double>& frequencies, double distance) {
  std::vector<CellTerms> cells;
  for (std::size_t i = 0; i < frequencies.size(); ++i) {
    const std::vector<CellFactor> sines = {cell_factor(rows, 0, 2 * i), cell_factor(rows, 1, 2 * i)};
    const std::vector<CellFactor> cosines = {cell_factor(rows, 0, 2 * i + 1), cell_factor(rows, 1, 2 * i + 1)};
    cells.push_back({"sin a · sin b", {sines}});
    cells.push_back({"cos a · cos b", {cosines}});
    cells.push_back({"sin a · sin b + cos a · cos b", {sines, cosines}});
    cells.push_back({"cos(ω_i · (m − n))", {{{fmt::format("ω{}", i), frequencies[i]}, {"m − n", distance}}}, "cos"});
  }
  return computed({"T",
                   "T: the contribution of each pair",
                   numbered("pair", frequencies.size()),
                   {"sin·sin", "cos·cos", "sum", "cos(m−n)"}},
                  std::move(cells));
}

}  // namespace

Story tell_dot_product(const StoryContent& content, const StoryOptions& options) {
  StoryBuilder story(content, options);
  const Sinusoidal scheme{.width = content.integer("width")};
  const std::int64_t length = content.integer("length"), m = content.integer("m"), n = content.integer("n");
  const std::vector<std::string> features = numbered("d", scheme.width);
  const auto table = [&](std::string name, std::string caption, const std::vector<std::int64_t>& positions) {
    return waves({std::move(name), std::move(caption), as_labels(positions), features}, scheme, positions);
  };
  story.say("m", std::to_string(m));
  story.say("n", std::to_string(n));
  story.say("width", std::to_string(scheme.width));

  story.step("rows");
  const StoryMatrix rows = story.show(table("P", "P: the two rows", {m, n}));

  story.step("pairs");
  story.formula("sin a sin b + cos a cos b = cos(a − b)");
  const std::vector<double> frequencies = frequencies_of(scheme);
  story.show(pairs_of_rows(rows, frequencies, static_cast<double>(m - n)));

  story.step("closed");
  story.formula("P(m) · P(n) = Σ cos(ω_i (m − n))");
  const double direct = dot(row_of(rows, 0), row_of(rows, 1));
  const double closed = value_of(sum_of_cosines(table("", "", {m - n}), 0));
  story.say("product", direct);
  story.show({fact("dot product of the rows", direct), fact("sum of cosines", closed),
              residual("difference", std::fabs(direct - closed))});

  const StoryMatrix p = table("P", "", range(0, length));
  story.step("flat");
  story.show(flat_lines(p));

  story.step("distances");
  const std::vector<std::int64_t> distances = range(0, length);
  const StoryMatrix rows_of_distances = table("", "", distances);
  const std::int64_t far = content.integer("far");
  const StoryMatrix far_rows = table("P", "", range(far, length));
  std::vector<CellTerms> lines, far_lines;
  std::vector<double> sums;
  double spread = 0, away = 0, far_away = 0;
  for (std::size_t distance = 0; distance < distances.size(); ++distance) {
    const Line line = line_of(p, distance);
    const CellTerms there = row_product(far_rows, 0, far_rows, distance);
    lines.insert(lines.end(), {line.smallest, line.largest, sum_of_cosines(rows_of_distances, distance)});
    far_lines.insert(far_lines.end(), {row_product(p, 0, p, distance), there});
    sums.push_back(value_of(lines.back()));
    const double smallest = value_of(line.smallest), largest = value_of(line.largest);
    spread = std::max(spread, largest - smallest);
    away = std::max({away, std::fabs(largest - sums[distance]), std::fabs(smallest - sums[distance])});
    far_away = std::max(far_away, std::fabs(value_of(there) - sums[distance]));
  }
  story.show(computed(
      {"L", "L: all pairs at each distance", as_labels(distances), {"smallest", "largest", "sum-of-cosines"}},
      lines));
  story.show({residual("largest spread at one distance", spread), residual("largest difference from the sum", away)});

  story.step("far");
  story.say("far", std::to_string(far));
  story.show(computed(
      {"G", "G: dot products with the first row", as_labels(distances), {"from-0", fmt::format("from-{}", far)}},
      far_lines));
  story.show({residual("largest difference from the sum", far_away)});

  story.step("smooth");
  double step = 0;
  for (std::size_t i = 1; i < sums.size(); ++i) step = std::max(step, std::fabs(sums[i] - sums[i - 1]));
  const double slope = std::accumulate(frequencies.begin(), frequencies.end(), 0.0);
  story.say("fastest", fmt::format("{:g}", frequencies.front()));
  story.say("slope", slope);
  story.say("largest_step", step);
  story.show({fact("largest change from one distance to the next", step), fact("bound: Σ ω_i", slope)});

  story.step("monotone");
  // The largest beyond distance 1: if it exceeds that at distance 1, the dot product is not monotone.
  const auto best = std::max_element(sums.begin() + 2, sums.end());
  const bool is_monotone = std::is_sorted(sums.rbegin(), sums.rend());
  story.say("higher", std::to_string(best - sums.begin()));
  story.say("higher_value", *best);
  story.say("one_value", sums[1]);
  story.say("claim", content.text("claim"));
  story.show({check("monotone: falls with every step", is_monotone),
              fact(fmt::format("distance {}", best - sums.begin()), *best), fact("distance 1", sums[1])});
  if (!is_monotone) story.note("claim");
  return story.finish();
}

}  // namespace posenc::lessons
