#include <fmt/format.h>

#include "lessons/story_builder.h"
#include "lessons/story_rotations.h"
#include "lessons/tellers.h"

namespace posenc::lessons {
namespace {

// "r1c2" → row 1, column 2.
std::string patch_name(const AxisPositions& place) { return fmt::format("r{}c{}", place[0], place[1]); }

StoryMatrix numbering(std::int64_t rows, std::int64_t columns) {
  MatrixLabels labels{"N", "N: patches numbered like text", {}, {}};
  std::vector<CellTerms> cells;
  for (std::int64_t column = 0; column < columns; ++column) labels.columns.push_back(fmt::format("column{}", column));
  for (std::int64_t row = 0; row < rows; ++row) {
    labels.rows.push_back(fmt::format("row{}", row));
    for (std::int64_t column = 0; column < columns; ++column) {
      cells.push_back({"row · columns + column",
                       {{{"row", static_cast<double>(row)}, {"columns", static_cast<double>(columns)}},
                        {{"column", static_cast<double>(column)}}}});
    }
  }
  StoryMatrix matrix = computed(std::move(labels), std::move(cells));
  matrix.digits = 0;
  return matrix;
}

// With one number per patch: the score of a patch with the one to its left, and with the one above it.
StoryMatrix scores_by_width(const StoryMatrix& q, const StoryMatrix& k, const Rotation& form,
                            const std::vector<std::int64_t>& widths) {
  std::vector<double> values;
  std::vector<CellTerms> cells;
  for (const std::int64_t width : widths) {
    for (const std::int64_t offset : {std::int64_t{1}, width}) {
      values.push_back(rotated_score(q, k, form, {offset}, {0}));
      cells.push_back(score_terms(q, k, angles_at(form, {offset})));
    }
  }
  return computed(
      {"F", "F: scores by the width of the image, one number per patch", as_labels(widths), {"left", "above"}},
      std::move(values), std::move(cells));
}

// Both axes drive every pair: φ = column · θ_column + row · θ_row. The position is (column, row).
std::vector<CellFactor> mixed_angles(const Rotation& form, const AxisPositions& position) {
  std::vector<CellFactor> angles;
  for (std::size_t i = 0; i < form.frequencies.size() / 2; ++i) {
    angles.push_back({fmt::format("θ{0}c · {1} + θ{0}r · {2}", i, position[0], position[1]),
                      static_cast<double>(position[0]) * radians_of(form.frequencies[2 * i]) +
                          static_cast<double>(position[1]) * radians_of(form.frequencies[2 * i + 1])});
  }
  return angles;
}

// The scores of a query that lies this many rows below and columns to the right of the key.
StoryMatrix scores_by_offset(MatrixLabels labels, const StoryMatrix& q, const StoryMatrix& k, const Rotation& form,
                             const std::vector<std::int64_t>& offsets) {
  std::vector<double> values;
  std::vector<CellTerms> cells;
  for (const std::int64_t down : offsets) {
    labels.rows.push_back(fmt::format("down{}", down));
    labels.columns.push_back(fmt::format("right{}", down));
    for (const std::int64_t right : offsets) {
      const bool is_mixed = !is_plain(form);
      const AxisPositions offset = is_mixed ? AxisPositions{right, down} : AxisPositions{down, right};
      values.push_back(rotated_score(q, k, form, offset, {0, 0}));
      cells.push_back(score_terms(q, k, is_mixed ? mixed_angles(form, offset) : angles_at(form, offset)));
    }
  }
  return computed(std::move(labels), std::move(values), std::move(cells));
}

// 0 if a score is a sum of one function of the rows and one of the columns.
double interaction(const StoryMatrix& scores) {
  return scores.at(1, 1) - scores.at(1, 0) - scores.at(0, 1) + scores.at(0, 0);
}

}  // namespace

Story tell_patches(const StoryContent& content, const StoryOptions& options) {
  StoryBuilder story(content, options);
  const std::int64_t dims = content.integer("dims"), rows = content.integer("rows"),
                     columns = content.integer("columns");
  const double base = content.number("base");
  const Rotation line = prepare(Rope{.dims = dims, .base = base, .layout = PairLayout::kInterleaved});
  const Rotation axial = prepare(Rope{.dims = dims,
                                      .base = base,
                                      .layout = PairLayout::kInterleaved,
                                      .sections = {dims / 4, dims / 4},
                                      .section_order = SectionOrder::kRestarting});
  const Rotation mixed =
      prepare(RopeMixed{.heads = 1, .dims = dims, .base = base, .directions = {content.number("direction")}});
  const std::vector<std::string> features = numbered("d", static_cast<std::size_t>(dims));
  const std::vector<std::string> pairs = numbered("pair", static_cast<std::size_t>(dims / 2));
  const std::vector<std::int64_t> widths = content.integers("widths"), offset = content.integers("offset");
  const std::vector<std::int64_t> flat = content.integers("places"), offsets = content.integers("offsets");
  story.say("rows", std::to_string(rows));
  story.say("columns", std::to_string(columns));
  story.say("end", std::to_string(columns - 1));
  story.say("wide", std::to_string(widths.back()));
  story.say("down", std::to_string(offset[0]));
  story.say("right", std::to_string(offset[1]));
  story.say("half", std::to_string(dims / 4));

  story.step("puzzle");
  story.show(numbering(rows, columns));

  story.step("failure");
  const StoryMatrix q = story.show(given({"q", "q: a query", {"q"}, features}, content.table("q")));
  const StoryMatrix k = story.show(given({"k", "k: a key", {"k"}, features}, content.table("k")));
  story.show(scores_by_width(q, k, line, widths));

  story.step("angles");
  story.formula(fmt::format("φ_i = row · ω_i for the first {0} pairs, column · ω_i for the last {0}", dims / 4));
  std::vector<AxisPositions> keys, queries;
  std::vector<std::string> key_names, query_names;
  std::vector<CellTerms> key_angles, query_angles;
  for (std::size_t i = 0; i + 1 < flat.size(); i += 2) {
    keys.push_back({flat[i], flat[i + 1]});
    queries.push_back({flat[i] + offset[0], flat[i + 1] + offset[1]});
    key_names.push_back(patch_name(keys.back()));
    query_names.push_back(patch_name(queries.back()));
    for (const CellFactor& angle : angles_at(axial, keys.back())) key_angles.push_back({"place · ω", {{angle}}});
    for (const CellFactor& angle : angles_at(axial, queries.back())) query_angles.push_back({"place · ω", {{angle}}});
  }
  story.show(computed({"Fk", "Fk: angles of the key at its patch", key_names, pairs}, std::move(key_angles)));
  story.show(computed({"Fq", "Fq: angles of the query at its patch", query_names, pairs}, std::move(query_angles)));

  story.step("scores");
  const StoryMatrix rk =
      story.show(rotated_rows({"Rk", "Rk: the key at its patch", key_names, features}, k, "Fk", axial, keys));
  const StoryMatrix rq =
      story.show(rotated_rows({"Rq", "Rq: the query at its patch", query_names, features}, q, "Fq", axial, queries));
  std::vector<CellTerms> scores;
  for (std::size_t i = 0; i < keys.size(); ++i) scores.push_back(row_product(rq, i, rk, i));
  const StoryMatrix s =
      story.show(computed({"S", "S: score by the patch of the key", key_names, {"score"}}, std::move(scores)));
  story.show({residual("spread of these scores", spread_of(s.values))});

  story.step("sum");
  const StoryMatrix t = story.show(scores_by_offset({"T", "T: score by offset", {}, {}}, q, k, axial, offsets));
  story.show({residual("T[1, 1] − T[1, 0] − T[0, 1] + T[0, 0]", interaction(t))});

  story.step("mixed");
  const StoryMatrix m =
      story.show(scores_by_offset({"M", "M: score by offset, mixed", {}, {}}, q, k, mixed, offsets));
  story.show({fact("M[1, 1] − M[1, 0] − M[0, 1] + M[0, 0]", interaction(m), 4)});
  return story.finish();
}

}  // namespace posenc::lessons
