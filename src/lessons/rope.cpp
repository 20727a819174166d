#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "lessons/story_builder.h"
#include "lessons/story_rotations.h"
#include "lessons/tellers.h"

namespace posenc::lessons {
namespace {

// Positions of a rotation with one axis.
std::vector<AxisPositions> on_one_axis(const std::vector<std::int64_t>& positions) {
  std::vector<AxisPositions> result;
  for (const std::int64_t position : positions) result.push_back({position});
  return result;
}

StoryMatrix angles_of(MatrixLabels labels, const Rotation& form, const std::vector<std::int64_t>& positions) {
  std::vector<CellTerms> cells;
  for (const std::int64_t position : positions) {
    for (std::size_t i = 0; i < form.frequencies.size(); ++i) {
      cells.push_back({"position × frequency, in radians",
                       {{{"position", static_cast<double>(position)},
                         {fmt::format("ω{}", i), radians_of(form.frequencies[i])}}}});
    }
  }
  return computed(std::move(labels), std::move(cells));
}

std::vector<std::int64_t> shifted_by(const std::vector<std::int64_t>& positions, std::int64_t offset) {
  std::vector<std::int64_t> result;
  for (const std::int64_t position : positions) result.push_back(position + offset);
  return result;
}

}  // namespace

Story tell_rope(const StoryContent& content, const StoryOptions& options) {
  StoryBuilder story(content, options);
  const Rope scheme{.dims = content.integer("dims"), .layout = PairLayout::kInterleaved};
  const Rotation form = prepare(scheme);
  const std::vector<std::string> features = numbered("d", scheme.dims);
  const std::vector<std::string> pairs = numbered("pair", features.size() / 2);
  const std::vector<std::int64_t> starts = content.integers("starts");
  const std::int64_t offset = content.integer("offset");
  const std::vector<std::int64_t> queries = shifted_by(starts, offset);
  story.say("offset", std::to_string(offset));

  story.step("vectors");
  const StoryMatrix q = story.show(given({"q", "q: a query", {"q"}, features}, content.table("q")));
  const StoryMatrix k = story.show(given({"k", "k: a key", {"k"}, features}, content.table("k")));
  story.show({fact("q · k", dot(row_of(q, 0), row_of(k, 0)))});

  story.step("wanted");
  story.formula("f(q, m) = q · e^(i m ω),   Re[f(q, m) · conj f(k, n)] = Re[q · conj k · e^(i (m − n) ω)]");

  story.step("angles");
  story.formula(fmt::format("(a, b) → (a cos φ − b sin φ, a sin φ + b cos φ),  φ = p · ω_i,  ω_i = {}^(−2i/{})",
                            scheme.base, scheme.dims));
  story.show(angles_of({"Fq", "Fq: angles of the query at m", as_labels(queries), pairs}, form, queries));
  story.show(angles_of({"Fk", "Fk: angles of the key at n", as_labels(starts), pairs}, form, starts));

  story.step("rotated");
  const StoryMatrix rq = story.show(
      rotated_rows({"Rq", "Rq: the query at m", as_labels(queries), features}, q, "Fq", form, on_one_axis(queries)));
  const StoryMatrix rk = story.show(
      rotated_rows({"Rk", "Rk: the key at n", as_labels(starts), features}, k, "Fk", form, on_one_axis(starts)));
  const double length = std::sqrt(dot(row_of(q, 0), row_of(q, 0)));
  double stretched = 0;
  for (std::size_t row = 0; row < rq.rows.size(); ++row) {
    stretched = std::max(stretched, std::fabs(std::sqrt(dot(row_of(rq, row), row_of(rq, row))) - length));
  }
  story.say("length", length);
  story.show({residual("largest change of norm", stretched)});

  story.step("scores");
  const StoryMatrix scores = story.show(product("S", "S = Rq · Rkᵀ: row m, column n", rq, rk, {.transposed = true}));
  double low = scores.at(0, 0), high = low;
  for (std::size_t i = 0; i < starts.size(); ++i) {
    low = std::min(low, scores.at(i, i));
    high = std::max(high, scores.at(i, i));
  }
  story.show({residual("spread along the diagonal", high - low)});

  story.step("offsets");
  const std::vector<std::int64_t> offsets = content.integers("offsets");
  MatrixLabels labels{"L", "L: row distance m − n, column n", as_labels(offsets), as_labels(starts)};
  std::vector<CellTerms> lines, sums;
  double spread = 0, away = 0;
  for (const std::int64_t distance : offsets) {
    const std::vector<std::int64_t> at = shifted_by(starts, distance);
    const StoryMatrix there = rotated_rows({"Rq", "", as_labels(at), features}, q, "", form, on_one_axis(at));
    sums.push_back(score_terms(q, k, angles_at(form, {distance})));
    const double sum = value_of(sums.back());
    double smallest = dot(row_of(there, 0), row_of(rk, 0)), largest = smallest;
    for (std::size_t i = 0; i < starts.size(); ++i) {
      lines.push_back(row_product(there, i, rk, i));
      const double value = value_of(lines.back());
      smallest = std::min(smallest, value);
      largest = std::max(largest, value);
      away = std::max(away, std::fabs(value - sum));
    }
    spread = std::max(spread, largest - smallest);
  }
  story.show(computed(labels, lines));
  story.show({residual("largest spread within a line", spread)});

  story.step("closed");
  story.formula("score = Σ (q_i · k_i) cos(ω_i (m − n)) + (q_i × k_i) sin(ω_i (m − n))");
  story.show(computed({"C", "C: the formula, for each distance", as_labels(offsets), {"score"}}, sums));
  story.show({residual("largest difference from the scores above", away)});
  story.note("family");
  return story.finish();
}

}  // namespace posenc::lessons
