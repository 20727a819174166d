#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <set>

#include "lessons/quantities.h"
#include "lessons/story_builder.h"
#include "lessons/story_matrices.h"
#include "lessons/tellers.h"
#include "posenc/error.h"

namespace posenc::lessons {
namespace {

StoryMatrix perplexities(const StoryContent& content, std::string name, std::string caption, std::string_view key) {
  StoryMatrix matrix = given({std::move(name), std::move(caption), content.texts(fmt::format("{}_rows", key)),
                              content.texts(fmt::format("{}_columns", key))},
                             content.table(key));
  matrix.digits = 2;
  return matrix;
}

std::size_t place_of(const std::vector<std::string>& names, const std::string& name) {
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) raise(fmt::format("story: who-extrapolates has no '{}'", name));
  return found - names.begin();
}

// A cell divided by the first one in its row.
CellTerms growth_terms(const StoryMatrix& matrix, std::size_t row, std::size_t column) {
  return {"perplexity / perplexity at the trained length",
          {{cell_factor(matrix, row, column)}},
          "",
          cell_factor(matrix, row, 0)};
}

// The growth of perplexity with each scheme: published, if available, and measured here.
StoryMatrix growths(const StoryMatrix& published, std::size_t at, const StoryMatrix& own) {
  std::vector<double> values;
  std::vector<CellTerms> cells;
  for (std::size_t row = 0; row < own.rows.size(); ++row) {
    const auto other = std::find(published.rows.begin(), published.rows.end(), own.rows[row]);
    if (other == published.rows.end()) {
      values.push_back(std::numeric_limits<double>::quiet_NaN());
      cells.push_back(constant("not published there"));
    } else {
      cells.push_back(growth_terms(published, other - published.rows.begin(), at));
      values.push_back(value_of(cells.back()));
    }
    cells.push_back(growth_terms(own, row, own.columns.size() - 1));
    values.push_back(value_of(cells.back()));
  }
  StoryMatrix matrix = computed({"G", "G: growth of perplexity", own.rows, {"published", "here"}}, std::move(values),
                                std::move(cells));
  matrix.digits = 2;
  return matrix;
}

// The scheme whose perplexity grows most in a column.
std::string worst_in(const StoryMatrix& growth, std::size_t column) {
  std::size_t worst = 0;
  for (std::size_t row = 1; row < growth.rows.size(); ++row) {
    if (growth.at(row, column) > growth.at(worst, column)) worst = row;  // false for NaN
  }
  return growth.rows[worst];
}

// The number of buckets that distances from `from` up to `to` use but shorter distances do not.
std::int64_t new_buckets(const DistanceMap& map, std::int64_t from, std::int64_t to) {
  std::set<std::int64_t> seen, added;
  for (std::int64_t distance = 0; distance < to; ++distance) {
    const std::int64_t bucket = entry_at(map, -distance);
    if (distance < from) {
      seen.insert(bucket);
    } else if (seen.find(bucket) == seen.end()) {
      added.insert(bucket);
    }
  }
  return static_cast<std::int64_t>(added.size());
}

CellTerms share_past(const Bias& form, std::int64_t head, std::int64_t from, std::int64_t to) {
  double past = 0, all = 0;
  for (std::int64_t distance = 0; distance < to; ++distance) {
    const double weight = std::exp(bias_at(form, head, distance, 0));
    all += weight;
    past += distance >= from ? weight : 0.0;
  }
  return {"Σ e^bias past the trained length / Σ e^bias",
          {{{fmt::format("Σ e^bias, distances {} to {}", from, to - 1), past}}},
          "",
          CellFactor{fmt::format("Σ e^bias, distances 0 to {}", to - 1), all}};
}

}  // namespace

Story tell_who_extrapolates(const StoryContent& content, const StoryOptions& options) {
  StoryBuilder story(content, options);
  const std::int64_t trained = content.integer("trained"), times = content.integer("times");
  const std::int64_t heads = content.integer("heads"), longest = trained * times;
  const T5 t5{.heads = heads, .buckets = content.integer("buckets"), .max_distance = trained, .bidirectional = false};
  story.say("trained", std::to_string(trained));
  story.say("times", std::to_string(times));
  story.say("longest", std::to_string(longest));
  story.say("seeds", std::to_string(content.integer("seeds")));
  story.say("max_distance", std::to_string(t5.max_distance));

  story.step("published");
  const StoryMatrix published =
      story.show(perplexities(content, "P", "P: published perplexity; column: tokens of a window", "published"));
  const std::vector<std::int64_t> span = content.integers("published_span");
  const std::size_t at = place_of(published.columns, std::to_string(span[1]));
  story.say("published_times", static_cast<double>(span[1]) / static_cast<double>(span[0]), 1);

  story.step("lab");
  const StoryMatrix own =
      story.show(perplexities(content, "M", "M: measured perplexity; column: bytes of a window", "lab"));

  story.step("growth");
  const StoryMatrix growth = story.show(growths(published, at, own));
  story.show({worded("grows most, published", worst_in(growth, 0)), worded("grows most, here", worst_in(growth, 1))});

  story.step("new");
  const std::int64_t dims = content.integer("head_width");
  std::int64_t unfinished = 0;
  for (std::int64_t pair = 0; pair < dims / 2; ++pair) {
    const double angle = frequency_at(dims, pair, 10000) * static_cast<double>(trained - 1);
    unfinished += angle < 2 * std::numbers::pi ? 1 : 0;
  }
  story.show({count("learned: rows that were never trained", longest - trained),
              count(fmt::format("RoPE: pairs, of {}, that did not complete a turn", dims / 2), unfinished),
              count("T5: buckets that were never used", new_buckets(buckets_of(t5), trained, longest))});

  story.step("weights");
  const Bias form = prepare(Alibi{.heads = heads});
  std::vector<CellTerms> shares;
  for (std::int64_t head = 0; head < heads; ++head) shares.push_back(share_past(form, head, trained, longest));
  story.show(computed(
      {"A", fmt::format("A: weight on keys {} or more positions back", trained), numbered("head", heads), {"share"}},
      std::move(shares)));

  story.step("window");
  const std::vector<double> slid = content.numbers("window_published");
  const double nats = content.number("window_lab_nats");
  const CellTerms theirs = {
      "perplexity at 3072 tokens / at 512", {{{"at 3072", slid[1]}}}, "", CellFactor{"at 512", slid[0]}};
  const CellTerms ours = {"e^difference of losses", {{{fmt::format("e^{}", shown_number(nats, 3)), std::exp(nats)}}}};
  story.show(computed({"W", "W: growth of ALiBi's perplexity in a sliding window", {"published", "here"}, {"growth"}},
                      {theirs, ours}));

  story.step("limits");
  return story.finish();
}

}  // namespace posenc::lessons
