#include <fmt/format.h>

#include <cmath>

#include "lessons/quantities.h"
#include "lessons/story_builder.h"
#include "lessons/story_rotations.h"
#include "lessons/tellers.h"
#include "posenc/apply.h"

namespace posenc::lessons {
namespace {

std::string base_name(double base) { return fmt::format("base-{:.0f}", base); }

// cos(ω_i · (distance − ahead)), averaged over the pairs.
CellTerms mean_cosine(const Rotation& form, std::int64_t distance, std::int64_t ahead = 0) {
  CellTerms cell{ahead == 0 ? "mean of cos(ω_i · distance)" : "mean of cos(ω_i · (distance − ahead))"};
  for (std::size_t i = 0; i < form.frequencies.size(); ++i) {
    const double angle = static_cast<double>(distance - ahead) * radians_of(form.frequencies[i]);
    cell.terms.push_back({{fmt::format("cos(ω{} · {})", i, distance - ahead), std::cos(angle)}});
  }
  cell.divisor = CellFactor{"pairs", static_cast<double>(form.frequencies.size())};
  return cell;
}

// The score of two vectors of ones, `distance` positions apart, for 1 at distance 0; the key is first rotated to `ahead`.
double score_of_ones(const Rotation& form, std::int64_t distance, std::int64_t ahead = 0) {
  const auto dims = static_cast<std::int64_t>(2 * form.frequencies.size());
  std::vector<double> query(static_cast<std::size_t>(dims), 1.0), key = query;
  rotate(view(query.data(), {1, dims}), {.first = distance}, form);
  rotate(view(key.data(), {1, dims}), {.first = ahead}, form);
  return dot(query, key) / static_cast<double>(dims);
}

// The scores of ones at the distances 0 to `count` − 1.
std::vector<double> scores_up_to(const Rotation& form, std::int64_t count) {
  const auto dims = static_cast<std::int64_t>(2 * form.frequencies.size());
  std::vector<double> queries(static_cast<std::size_t>(count * dims), 1.0), scores;
  rotate(view(queries.data(), {count, dims}), {}, form);
  for (std::size_t at = 0; at < queries.size(); at += static_cast<std::size_t>(dims)) {
    double sum = 0;
    for (std::size_t i = at; i < at + static_cast<std::size_t>(dims); ++i) sum += queries[i];
    scores.push_back(sum / static_cast<double>(dims));
  }
  return scores;
}

// Σ_j |S_j| / Σ_j j, where S_j is the sum of e^(i ω distance) over the first j pairs: 1 at distance 0.
CellTerms bound_terms(const Rotation& form, std::int64_t distance) {
  CellTerms cell{"Σ |S_j| / Σ j,  S_j = Σ e^(i ω distance) over the first j pairs"};
  double across = 0, along = 0, pairs = 0;
  for (std::size_t i = 0; i < form.frequencies.size(); ++i) {
    const double angle = static_cast<double>(distance) * radians_of(form.frequencies[i]);
    across += std::sin(angle);
    along += std::cos(angle);
    cell.terms.push_back({{fmt::format("|S{}|", i + 1), std::sqrt(along * along + across * across)}});
    pairs += static_cast<double>(i + 1);
  }
  cell.divisor = CellFactor{"Σ j", pairs};
  return cell;
}

StoryMatrix means_by_base(const std::vector<Rotation>& forms, std::vector<std::string> bases,
                          const std::vector<std::int64_t>& distances) {
  std::vector<double> values;
  std::vector<CellTerms> cells;
  for (const std::int64_t distance : distances) {
    for (const Rotation& form : forms) {
      values.push_back(score_of_ones(form, distance));
      cells.push_back(mean_cosine(form, distance));
    }
  }
  return computed({"M", "M: mean cosine over all pairs, by distance", as_labels(distances), std::move(bases)},
                  std::move(values), std::move(cells));
}

std::int64_t rises_in(const std::vector<double>& scores) {
  std::int64_t rises = 0;
  for (std::size_t i = 1; i < scores.size(); ++i) rises += scores[i] > scores[i - 1] ? 1 : 0;
  return rises;
}

std::int64_t first_below(const std::vector<double>& scores, double level) {
  std::int64_t distance = 0;
  while (scores[static_cast<std::size_t>(distance)] >= level) ++distance;
  return distance;
}

}  // namespace

Story tell_decay(const StoryContent& content, const StoryOptions& options) {
  StoryBuilder story(content, options);
  const std::int64_t dims = content.integer("dims"), length = content.integer("length");
  const std::int64_t ahead = content.integer("ahead");
  const double level = content.number("level");
  std::vector<Rotation> forms;
  std::vector<std::string> bases;
  for (const double base : content.numbers("bases")) {
    forms.push_back(prepare(Rope{.dims = dims, .base = base, .layout = PairLayout::kInterleaved}));
    bases.push_back(base_name(base));
  }
  const Rotation& form = forms.front();
  story.say("dims", std::to_string(dims));
  story.say("pairs", std::to_string(dims / 2));
  story.say("length", std::to_string(length));
  story.say("ahead", std::to_string(ahead));
  story.say("level", fmt::format("{:g}", level));

  story.step("puzzle");
  const std::vector<std::int64_t> some_pairs = content.integers("pairs"), near = content.integers("near");
  std::vector<std::string> columns;
  std::vector<CellTerms> single;
  for (const std::int64_t pair : some_pairs) columns.push_back(fmt::format("pair{}", pair));
  for (const std::int64_t distance : near) {
    for (const std::int64_t pair : some_pairs) {
      single.push_back(
          {"cos(distance · ω)",
           {{{"distance", static_cast<double>(distance)}, {fmt::format("ω{}", pair), frequency_at(form, pair)}}},
           "cos"});
    }
  }
  story.show(computed({"O", "O: score of a single pair, q = k of norm 1, by distance", as_labels(near), columns},
                      std::move(single)));

  story.step("mean");
  story.formula("score(q, q, distance) / score(q, q, 0) = mean of cos(ω_i · distance), q = (1, 1, …)");
  const std::vector<std::int64_t> distances = content.integers("distances");
  story.show(means_by_base(forms, bases, distances));
  std::vector<StoryFact> facts;
  const std::vector<double> scores = scores_up_to(form, length);
  facts.push_back(
      count(fmt::format("distances below {} at which it rises, {}", length, bases.front()), rises_in(scores)));
  for (std::size_t i = 0; i < forms.size(); ++i) {
    facts.push_back(count(fmt::format("first distance below {:g}, {}", level, bases[i]),
                          first_below(scores_up_to(forms[i], length), level)));
  }
  story.show(std::move(facts));

  story.step("bound");
  story.formula("size of the score = |Σ h_i e^(i ω_i (m − n))| ≤ max |h_(i+1) − h_i| · Σ |S_(i+1)|");
  std::vector<CellTerms> bounds;
  for (const std::int64_t distance : distances) bounds.push_back(bound_terms(form, distance));
  story.show(computed({"B", "B: the sum of the bound, 1 at distance 0", as_labels(distances), {"bound"}},
                      std::move(bounds)));

  story.step("content");
  const std::vector<std::int64_t> around = content.integers("around");
  std::vector<double> values;
  std::vector<CellTerms> cells;
  for (const std::int64_t distance : around) {
    CellTerms opposite = mean_cosine(form, distance);
    opposite.formula = "−mean of cos(ω_i · distance)";
    for (std::vector<CellFactor>& term : opposite.terms) term.front().value = -term.front().value;
    values.insert(values.end(), {score_of_ones(form, distance), score_of_ones(form, distance, ahead),
                                 -score_of_ones(form, distance)});
    cells.insert(cells.end(), {mean_cosine(form, distance), mean_cosine(form, distance, ahead), std::move(opposite)});
  }
  story.show(
      computed({"K", "K: scores of three keys, by distance", as_labels(around), {"same", "rotated", "opposite"}},
               std::move(values), std::move(cells)));

  story.step("bias");
  const Bias alibi = prepare(Alibi{.heads = content.integer("alibi_heads")});
  std::vector<double> penalties;
  std::vector<CellTerms> penalty_cells;
  const double slope = -bias_at(alibi, 0, 1, 0);
  for (const std::int64_t distance : distances) {
    penalties.push_back(bias_at(alibi, 0, distance, 0));
    penalty_cells.push_back(
        {"−slope · distance", {{{"−slope", -slope}, {"distance", static_cast<double>(distance)}}}});
  }
  story.show(computed({"L", "L: ALiBi's bias in head 0, by distance", as_labels(distances), {"bias"}},
                      std::move(penalties), std::move(penalty_cells)));
  return story.finish();
}

}  // namespace posenc::lessons
