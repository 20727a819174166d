// Whether, for given content, attention's score depends on position only through the offset.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "posenc/apply.h"
#include "properties/rows.h"
#include "properties/scores.h"
#include "properties/trial.h"

namespace posenc::properties {
namespace {

constexpr std::int64_t kMostPositions = 48;

struct Spread {
  double least = 0, most = 0;
  bool is_empty = true;

  void take(double value) {
    least = is_empty || !(value >= least) ? value : least;
    most = is_empty || !(value <= most) ? value : most;
    is_empty = false;
  }
  double width() const { return most - least; }
};

struct Spreads {
  double worst = 0;
  std::vector<std::int64_t> offset;  // at which the worst is found
  std::int64_t pairs = 0;
};

// values: [pairs, heads]
Spreads spreads_of(const Sample& sample, const std::vector<ScorePair>& pairs, const std::vector<double>& values) {
  const std::size_t heads = values.size() / pairs.size();
  std::map<std::vector<std::int64_t>, std::vector<Spread>> by_offset;
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    auto& spreads = by_offset[sample.offset(pairs[i].query, pairs[i].key)];
    spreads.resize(heads);
    for (std::size_t head = 0; head < heads; ++head) spreads[head].take(values[i * heads + head]);
  }
  Spreads result;
  result.pairs = static_cast<std::int64_t>(pairs.size());
  for (const auto& [offset, spreads] : by_offset) {
    for (const Spread& spread : spreads) {
      if (result.offset.empty() || !(spread.width() <= result.worst)) result.offset = offset;
      result.worst = larger(result.worst, spread.width());
    }
  }
  return result;
}

// The bias itself, [pairs, heads].
std::vector<double> biases_of(const Bias& form, const Sample& sample, const std::vector<ScorePair>& pairs) {
  const std::size_t heads = std::max<std::int64_t>(form.heads, 1);
  const auto count = static_cast<std::int64_t>(sample.count);
  std::vector<double> all(heads * sample.count * sample.count), values;
  bias(view(all.data(), {static_cast<std::int64_t>(heads), count, count}), sample.positions(), sample.positions(),
       form);
  for (const ScorePair& pair : pairs) {
    for (std::size_t head = 0; head < heads; ++head) {
      values.push_back(all[(head * sample.count + pair.query) * sample.count + pair.key]);
    }
  }
  return values;
}

// The rounding error of a score of two unit vectors after rotation: a rotated feature is within 4u of its pair's
// length, so a product of two pairs is within 12u of theirs, and the sum of d products within (d + 12)u more; √2 for
// the sum of a pair's features. Twice that for the difference of two scores, with a margin for the logarithm from
// which they are recovered.
double rounding_of_scores(const Trial& trial, const Sample& sample) {
  const auto features = static_cast<double>(head_features_of(trial.form));
  double size = 1, growth = 0;
  if (const auto* const rotation = std::get_if<Rotation>(&trial.form)) {
    size = rotation->magnitude * rotation->magnitude * std::fabs(rotation->softmax_factor);
    double steepest = 0, span = 0, furthest = 0;
    const auto& [rates, centre] = pair_waves_of(*rotation).growth;
    for (const double rate : rates) steepest = std::max(steepest, std::fabs(rate));
    for (const std::int64_t id : sample.ids) {
      span = std::max(span, static_cast<double>(std::abs(id - sample.ids.front())));
      furthest = std::max(furthest, static_cast<double>(std::abs(id - centre)));
    }
    // The exponent of a growth is rounded as well; that error is proportional to the exponent.
    growth = 4 * (steepest * furthest + 2);
    if (steepest == 0) growth = 0;
    size *= std::exp(steepest * span);
  }
  if (std::holds_alternative<Addition>(trial.form)) {
    const double amplitude = amplitude_of(trial.form, trial.length);
    const double length = 1 + amplitude * std::sqrt(features);
    size = length * length;
  }
  return 4 * kUnit * (features + 20 + growth) * size;
}

}  // namespace

namespace {

constexpr std::int64_t kMostTokens = 32;  // of a sequence; attention runs once per pair

// The same query and key at one distance, with different tokens between them.
Finding relative_in_sequence(const Trial& trial) {
  std::vector<std::int64_t> positions;
  for (std::int64_t t = 0; t < std::min(trial.length, kMostTokens); ++t) positions.push_back(t);
  const Sample sample = sample_at(positions, 1);
  const std::vector<ScorePair> pairs = causal_pairs(sample.count);
  const std::vector<double> values = scores_in_sequence(
      trial.form, pairs, random_query_and_key(head_features_of(trial.form), trial.options.seed), trial.options.seed);
  const Spreads spreads = spreads_of(sample, pairs, values);
  Finding finding =
      decided(Property::kRelative, trial, spreads.worst, rounding_of_scores(trial, sample), BoundSense::kAtMost);
  finding.samples = spreads.pairs;
  finding.details = {{"distance", static_cast<double>(spreads.offset.front())}};
  finding.meaning =
      finding.outcome == Outcome::kFails
          ? fmt::format(
                "Scores at distance {} differ by up to {:.2g}: they depend on the tokens between key and query.",
                std::abs(spreads.offset.front()), spreads.worst)
          : fmt::format(
                "Over {} pairs of {} tokens, the score of one query and one key depends only on m - n, within {:.2g}.",
                spreads.pairs, sample.count, spreads.worst);
  return finding;
}

}  // namespace

Finding relative_scores(const Trial& trial) {
  if (trial.length < 2) return does_not_apply(Property::kRelative, trial, "It supports fewer than two positions.");
  if (reads_tokens_between(trial.form)) return relative_in_sequence(trial);
  const Sample sample = sample_of(trial.length, position_axes_of(trial.form), kMostPositions);
  const std::vector<ScorePair> pairs = all_pairs(sample);
  const auto* const bias = std::get_if<Bias>(&trial.form);
  const bool is_table = bias != nullptr && !needs_content(*bias);
  // A bias without vectors is compared directly: equal distances must give bit-identical values.
  const std::vector<double> values =
      is_table ? biases_of(*bias, sample, pairs)
               : scores_of(trial.form, sample, pairs,
                           random_query_and_key(head_features_of(trial.form), trial.options.seed));
  const Spreads spreads = spreads_of(sample, pairs, values);
  Finding finding = decided(Property::kRelative, trial, spreads.worst,
                            is_table ? 0 : rounding_of_scores(trial, sample), BoundSense::kAtMost);
  finding.samples = spreads.pairs;
  finding.details = {{"distance", static_cast<double>(spreads.offset.front())}};
  if (finding.outcome == Outcome::kFails) {
    finding.meaning =
        fmt::format("Scores at distance {} differ by up to {:.2g}: they depend on the absolute positions.",
                    std::abs(spreads.offset.front()), spreads.worst);
  } else if (std::holds_alternative<Nothing>(trial.form)) {
    finding.meaning = "The score does not depend on position at all.";
  } else if (is_table) {
    finding.meaning = fmt::format("By construction: over {} pairs, the same m - n adds the same number, bit for bit.",
                                  spreads.pairs);
  } else {
    finding.meaning = fmt::format(
        "Over {} pairs up to position {}, the score of one query and one key depends only on m - n, within {:.2g}.",
        spreads.pairs, trial.length - 1, spreads.worst);
  }
  return finding;
}

}  // namespace posenc::properties
