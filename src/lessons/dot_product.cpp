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
  std::vector<std::int64_t> result(static_cast<std::size_t>(count));
  std::iota(result.begin(), result.end(), first);
  return result;
}

// Σ cos(ω_i · distance): the cosines of the row of that position.
std::vector<double> sums_of_cosines(const StoryMatrix& rows_of_distances) {
  std::vector<double> sums;
  for (std::size_t row = 0; row < rows_of_distances.rows.size(); ++row) {
    double sum = 0;
    for (std::size_t i = 1; i < rows_of_distances.columns.size(); i += 2) sum += rows_of_distances.at(row, i);
    sums.push_back(sum);
  }
  return sums;
}

struct Line {
  double smallest = std::numeric_limits<double>::infinity();
  double largest = -std::numeric_limits<double>::infinity();
};

// Over all pairs of rows that are `distance` apart.
Line line_of(const StoryMatrix& p, std::size_t distance) {
  Line line;
  for (std::size_t n = 0; n + distance < p.rows.size(); ++n) {
    const double value = dot(row_of(p, n), row_of(p, n + distance));
    line.smallest = std::min(line.smallest, value);
    line.largest = std::max(line.largest, value);
  }
  return line;
}

StoryMatrix flat_lines(const StoryMatrix& p) {
  MatrixLabels labels{"D", "D: row m − n, column n; each row is one value", {}, {}};
  std::vector<double> values;
  const std::size_t length = p.rows.size();
  for (std::size_t n = 0; n + 1 < length; ++n) labels.columns.push_back(std::to_string(n));
  for (std::size_t distance = 1; distance < length; distance += 2) {
    labels.rows.push_back(std::to_string(distance));
    for (std::size_t n = 0; n + 1 < length; ++n) {
      values.push_back(n + distance < length ? dot(row_of(p, n), row_of(p, n + distance)) : kNone);
    }
  }
  return measured(std::move(labels), std::move(values), "P(n) · P(n + distance)");
}

StoryMatrix pairs_of_rows(const StoryMatrix& rows, const StoryMatrix& row_of_distance) {
  std::vector<double> values;
  const std::size_t pairs = rows.columns.size() / 2;
  for (std::size_t i = 0; i < pairs; ++i) {
    const double sines = rows.at(0, 2 * i) * rows.at(1, 2 * i);
    const double cosines = rows.at(0, 2 * i + 1) * rows.at(1, 2 * i + 1);
    for (const double value : {sines, cosines, sines + cosines, row_of_distance.at(0, 2 * i + 1)}) {
      values.push_back(value);
    }
  }
  return measured(
      {"T", "T: what each pair gives", numbered("pair", pairs), {"sin·sin", "cos·cos", "sum", "cos(m−n)"}}, values,
      "of the two rows, and the cosine of ω_i · (m − n)");
}

}  // namespace

Story tell_dot_product(const StoryContent& content, const StoryOptions& options) {
  StoryBuilder story(content, options);
  const Sinusoidal scheme{.width = content.integer("width")};
  const std::int64_t length = content.integer("length"), m = content.integer("m"), n = content.integer("n");
  const std::vector<std::string> features = numbered("d", static_cast<std::size_t>(scheme.width));
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
  story.show(pairs_of_rows(rows, table("", "", {m - n})));

  story.step("closed");
  story.formula("P(m) · P(n) = Σ cos(ω_i (m − n))");
  const double direct = dot(row_of(rows, 0), row_of(rows, 1));
  const double closed = sums_of_cosines(table("", "", {m - n})).front();
  story.say("product", direct);
  story.show({fact("product of the rows", direct), fact("sum of cosines", closed),
              residual("difference", std::fabs(direct - closed))});

  const StoryMatrix p = table("", "", range(0, length));
  story.step("flat");
  story.show(flat_lines(p));

  story.step("distances");
  const std::vector<std::int64_t> distances = range(0, length);
  const std::vector<double> sums = sums_of_cosines(table("", "", distances));
  const std::int64_t far = content.integer("far");
  const StoryMatrix far_rows = table("", "", range(far, length));
  std::vector<double> lines, far_lines;
  double spread = 0, away = 0, far_away = 0;
  for (std::size_t distance = 0; distance < distances.size(); ++distance) {
    const Line line = line_of(p, distance);
    for (const double value : {line.smallest, line.largest, sums[distance]}) lines.push_back(value);
    const double there = dot(row_of(far_rows, 0), row_of(far_rows, distance));
    for (const double value : {dot(row_of(p, 0), row_of(p, distance)), there}) far_lines.push_back(value);
    spread = std::max(spread, line.largest - line.smallest);
    away = std::max({away, std::fabs(line.largest - sums[distance]), std::fabs(line.smallest - sums[distance])});
    far_away = std::max(far_away, std::fabs(there - sums[distance]));
  }
  story.show(measured(
      {"L", "L: all pairs at each distance", as_labels(distances), {"smallest", "largest", "sum-of-cosines"}}, lines,
      "over all pairs of rows that far apart"));
  story.show({residual("largest spread at one distance", spread), residual("largest difference from the sum", away)});

  story.step("far");
  story.say("far", std::to_string(far));
  story.show(
      measured({"G", "G: products with the first row", as_labels(distances), {"from-0", fmt::format("from-{}", far)}},
               far_lines, "P(n) · P(n + distance)"));
  story.show({residual("largest difference from the sum", far_away)});

  story.step("monotone");
  // the best of all beyond 1: where it is above that of distance 1, nearer is not higher
  const auto best = std::max_element(sums.begin() + 2, sums.end());
  const bool is_monotone = std::is_sorted(sums.rbegin(), sums.rend());
  story.say("higher", std::to_string(best - sums.begin()));
  story.say("higher_value", *best);
  story.say("one_value", sums[1]);
  story.say("claim", content.text("claim"));
  story.show({check("falls with every step of distance", is_monotone),
              fact(fmt::format("distance {}", best - sums.begin()), *best), fact("distance 1", sums[1])});
  if (!is_monotone) story.note("claim");
  return story.finish();
}

}  // namespace posenc::lessons
