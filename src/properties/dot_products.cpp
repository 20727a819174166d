// Dot products of rows, and biases: whether they depend only on the distance, and whether they fall with it.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "posenc/apply.h"
#include "posenc/error.h"
#include "properties/rows.h"
#include "properties/scores.h"
#include "properties/trial.h"

namespace posenc {
namespace {

using namespace properties;

constexpr std::int64_t kMostProductRows = 512;
constexpr std::int64_t kMostDistances = 4096;
constexpr std::int64_t kMostTokensBetween = 128;

// Compensated summation (Neumaier) of products in double, so that the error of the sum does not grow with width.
double dot(const double* a, const double* b, std::size_t width) {
  double sum = 0, lost = 0;
  for (std::size_t j = 0; j < width; ++j) {
    const double product = a[j] * b[j], next = sum + product;
    lost += std::fabs(sum) >= std::fabs(product) ? (sum - next) + product : (product - next) + sum;
    sum = next;
  }
  return sum + lost;
}

// Every value of a row is within 1.002u·A, so a product is within 3.1u·A² and the sum of d products within
// 3.1·d·u·A²; rounding a sum of at most d·A²/2 adds 0.5·d·u·A². Two dot products may differ by twice that.
double rounding_of_dots(std::size_t width, double amplitude) {
  return 8 * static_cast<double>(width) * kUnit * amplitude * amplitude;
}

// A · Σ A cos(ω_i δ): the cosines are those of the row at position δ.
void add_closed_forms(const Form& form, std::vector<DotProducts>& products) {
  const std::vector<WavePair> pairs = wave_pairs_of(form);
  if (pairs.empty()) return;
  Sample sample;
  sample.axes = position_axes_of(form);
  sample.count = products.size();
  for (int axis = 0; axis < sample.axes; ++axis) {
    for (const DotProducts& one : products) sample.ids.push_back(std::abs(one.offset[axis]));
  }
  const std::size_t width = width_of(form);
  const std::vector<double> rows = rows_at<double>(form, sample.positions(), sample.count);
  const std::vector<double> amplitudes(pairs.size(), signed_amplitude(form, pairs));
  std::vector<double> cosines(pairs.size());
  for (std::size_t i = 0; i < products.size(); ++i) {
    for (std::size_t j = 0; j < pairs.size(); ++j) cosines[j] = rows[i * width + pairs[j].cosine];
    products[i].closed_form = dot(amplitudes.data(), cosines.data(), pairs.size());
  }
}

// The scores of one query by distance: the smallest and the largest of the keys before and after it.
struct Profile {
  std::int64_t query = 0;
  std::size_t head = 0;
  std::vector<double> least, most;
};
struct Decay {
  std::vector<Profile> profiles;
  double rounding = 0;
};

// Queries at the start, in the middle and at the end: rows that grow look monotone if only the end is tested.
Decay decay_of_rows(const Form& form, std::int64_t length, std::int64_t distances) {
  const std::size_t width = width_of(form);
  Decay decay;
  double amplitude = 0;
  for (const std::int64_t query : {std::int64_t{0}, std::min<std::int64_t>(2, length - 1), length / 2, length - 1}) {
    Profile profile{query, 0, {}, {}};
    std::vector<std::int64_t> positions;
    std::vector<std::size_t> at;  // the distance of each position
    for (std::int64_t d = 0; d < distances; ++d) {
      for (const std::int64_t position : {query - d, query + d}) {
        if (position < 0 || position >= length || (d == 0 && position != query)) continue;
        positions.push_back(position);
        at.push_back(d);
      }
    }
    const Sample sample = sample_at(positions, position_axes_of(form));
    const std::vector<double> rows = rows_at<double>(form, sample.positions(), sample.count);
    for (const double value : rows) amplitude = larger(amplitude, std::fabs(value));
    for (std::size_t i = 0; i < sample.count; ++i) {
      const double product = dot(rows.data(), &rows[i * width], width);
      if (at[i] == profile.least.size()) {
        profile.least.push_back(product);
        profile.most.push_back(product);
      }
      profile.least[at[i]] = std::min(profile.least[at[i]], product);
      profile.most[at[i]] = larger(profile.most[at[i]], product);
    }
    decay.profiles.push_back(std::move(profile));
  }
  decay.rounding = rounding_of_dots(width, amplitude);
  return decay;
}

// Keys from the query's own token back to the first of a sequence whose other tokens are random.
Decay decay_in_sequence(const Trial& trial, std::int64_t distances) {
  const std::size_t tokens = distances;
  std::vector<ScorePair> pairs;
  for (std::size_t d = 0; d < tokens; ++d) pairs.push_back({tokens - 1, tokens - 1 - d});
  const std::vector<double> scores = scores_in_sequence(
      trial.form, pairs, random_query_and_key(head_features_of(trial.form), trial.options.seed), trial.options.seed);
  const std::size_t heads = heads_of(trial.form);
  Decay decay;
  decay.rounding = 64 * kUnit;  // of the logarithm of a weight
  for (std::size_t head = 0; head < heads; ++head) {
    std::vector<double> by_distance;
    for (std::size_t d = 0; d < tokens; ++d) by_distance.push_back(scores[d * heads + head]);
    decay.profiles.push_back({distances - 1, head, by_distance, by_distance});
  }
  return decay;
}

Decay decay_of_bias(const Trial& trial, const Bias& form, std::int64_t distances) {
  std::vector<std::int64_t> positions;
  for (std::int64_t d = 0; d < distances; ++d) positions.push_back(trial.length - 1 - d);
  const Sample sample = sample_at(positions, position_axes_of(trial.form));
  const std::size_t heads = heads_of(trial.form);
  std::vector<std::vector<double>> by_head(heads, std::vector<double>(sample.count));
  const auto decay_of_heads = [&] {
    Decay decay;
    for (std::size_t head = 0; head < heads; ++head) {
      decay.profiles.push_back({trial.length - 1, head, by_head[head], by_head[head]});
    }
    return decay;
  };
  if (needs_content(form)) {
    std::vector<ScorePair> pairs;
    for (std::size_t d = 0; d < sample.count; ++d) pairs.push_back({0, d});
    const QueryAndKey content = random_query_and_key(head_features_of(trial.form), trial.options.seed);
    const std::vector<double> scores = scores_of(trial.form, sample, pairs, content);
    for (std::size_t i = 0; i < scores.size(); ++i) by_head[i % heads][i / heads] = scores[i];
    return decay_of_heads();
  }
  std::vector<double> values(heads * sample.count);
  const Sample query = sample_at({trial.length - 1}, sample.axes);
  bias(view(values.data(), {static_cast<std::int64_t>(heads), 1, distances}), query.positions(), sample.positions(),
       form);
  for (std::size_t i = 0; i < values.size(); ++i) by_head[i / sample.count][i % sample.count] = values[i];
  return decay_of_heads();
}

struct Rise {
  double gain = 0;
  std::size_t near = 0, far = 0;
  double near_value = 0, far_value = 0;
  std::int64_t query = 0;
  std::size_t head = 0;
};

// The smallest distance that scores higher than distance 1; if there is none, the largest rise.
Rise rise_of(const Profile& profile, double rounding) {
  const auto rise = [&](std::size_t near, std::size_t far) {
    return Rise{profile.most[far] - profile.least[near],
                near,
                far,
                profile.least[near],
                profile.most[far],
                profile.query,
                profile.head};
  };
  for (std::size_t d = 2; d < profile.most.size(); ++d) {
    if (profile.most[d] > profile.least[1] + rounding) return rise(1, d);
  }
  Rise most;
  std::size_t least = 0;
  for (std::size_t d = 1; d < profile.most.size(); ++d) {
    if (!(profile.most[d] - profile.least[least] <= most.gain)) most = rise(least, d);
    if (profile.least[d] < profile.least[least]) least = d;
  }
  return most;
}

}  // namespace

std::vector<DotProducts> dot_by_distance(const Form& form, std::int64_t length) {
  if (!has_rows(form)) raise("dot_by_distance: the form has no rows");
  if (length < 1 || length > reach_of(form)) {
    raise(fmt::format("dot_by_distance: {} positions; the form supports {}", length, reach_of(form)));
  }
  const Sample sample = sample_of(length, position_axes_of(form), kMostProductRows);
  const std::size_t width = width_of(form);
  const std::vector<double> rows = rows_at<double>(form, sample.positions(), sample.count);
  std::map<std::vector<std::int64_t>, DotProducts> found;
  for (std::size_t m = 0; m < sample.count; ++m) {
    for (std::size_t n = m; n < sample.count; ++n) {
      const double product = dot(&rows[m * width], &rows[n * width], width);
      auto& one = found[sample.offset(m, n)];
      one.least = one.pairs == 0 || !(product >= one.least) ? product : one.least;
      one.most = one.pairs == 0 || !(product <= one.most) ? product : one.most;
      ++one.pairs;
    }
  }
  std::vector<DotProducts> products;
  for (auto& [offset, one] : found) {
    one.offset = offset;
    products.push_back(std::move(one));
  }
  add_closed_forms(form, products);
  return products;
}

namespace properties {

Finding dot_products(const Trial& trial) {
  if (!std::holds_alternative<Addition>(trial.form)) {
    return does_not_apply(Property::kDotByDistance, trial, "It adds no vectors; see the property on scores.");
  }
  if (trial.length < 2)
    return does_not_apply(Property::kDotByDistance, trial, "It supports fewer than two positions.");
  const std::vector<DotProducts> products = dot_by_distance(trial.form, trial.length);
  double spread = 0, from_closed_form = 0, largest = 0;
  std::int64_t pairs = 0;
  std::vector<std::int64_t> worst;
  for (const DotProducts& one : products) {
    if (!(one.most - one.least <= spread) || worst.empty()) worst = one.offset;
    spread = larger(spread, one.most - one.least);
    pairs += one.pairs;
    largest = larger(largest, std::max(std::fabs(one.most), std::fabs(one.least)));
    if (std::isnan(one.closed_form)) continue;
    from_closed_form = larger(from_closed_form, one.most - one.closed_form);
    from_closed_form = larger(from_closed_form, one.closed_form - one.least);
  }
  const bool has_closed_form = !products.empty() && !std::isnan(products.front().closed_form);
  const double bound = rounding_of_dots(width_of(trial.form), amplitude_of(trial.form, trial.length));
  // The closed form is another way to compute the same number, so the same bound applies.
  Finding finding = decided(Property::kDotByDistance, trial, larger(spread, has_closed_form ? from_closed_form : 0),
                            bound, BoundSense::kAtMost);
  finding.samples = pairs;
  const double ulp = std::ldexp(1.0, std::ilogb(largest > 0 ? largest : 1.0) - 52);
  finding.details = {
      {"spread", spread}, {"distance", static_cast<double>(worst.front())}, {"spread_in_ulps", spread / ulp}};
  if (has_closed_form) {
    finding.details.push_back({"from_closed_form", from_closed_form});
    finding.details.push_back({"from_closed_form_in_ulps", from_closed_form / ulp});
  }
  if (finding.outcome == Outcome::kHolds) {
    finding.meaning = fmt::format("Over {} pairs, dot products at one distance agree within {:.2g}", pairs, spread);
    const double ulps = std::round(from_closed_form / ulp);
    finding.meaning += has_closed_form ? fmt::format(", and equal the sum of cos(ω_i (m − n)) within {:.0f} ulp{}.",
                                                     ulps, ulps == 1 ? "" : "s")
                                       : std::string(".");
  } else {
    finding.meaning =
        fmt::format("Dot products at distance {} differ by up to {:.2g}: they depend on the absolute positions.",
                    worst.front(), spread);
  }
  return finding;
}

Finding monotone(const Trial& trial) {
  const auto* const bias = std::get_if<Bias>(&trial.form);
  if (bias == nullptr && !has_rows(trial.form)) {
    return does_not_apply(Property::kMonotone, trial, "It does not depend on distance.");
  }
  if (trial.length < 3) return does_not_apply(Property::kMonotone, trial, "It supports fewer than three positions.");
  const bool is_in_sequence = reads_tokens_between(trial.form);
  const std::int64_t distances = std::min(trial.length, is_in_sequence ? kMostTokensBetween : kMostDistances);
  const Decay decay = is_in_sequence    ? decay_in_sequence(trial, distances)
                      : bias != nullptr ? decay_of_bias(trial, *bias, distances)
                                        : decay_of_rows(trial.form, trial.length, distances);
  Rise worst;
  for (const Profile& profile : decay.profiles) {
    const Rise rise = rise_of(profile, decay.rounding);
    if (&profile == &decay.profiles.front() || !(rise.gain <= worst.gain)) worst = rise;
  }
  Finding finding = decided(Property::kMonotone, trial, worst.gain, decay.rounding, BoundSense::kAtMost);
  finding.samples = distances;
  if (finding.outcome == Outcome::kHolds) {
    finding.meaning = fmt::format("Up to distance {}, a closer position never scores lower.", distances - 1);
    return finding;
  }
  finding.details = {{"near_distance", static_cast<double>(worst.near)}, {"near_value", worst.near_value},
                     {"far_distance", static_cast<double>(worst.far)},   {"far_value", worst.far_value},
                     {"query", static_cast<double>(worst.query)},        {"head", static_cast<double>(worst.head)}};
  finding.meaning = fmt::format(
      "A farther position can score higher: at query {}, distance {} gives {:.4g}, distance {} only {:.4g}.",
      worst.query, worst.far, worst.far_value, worst.near, worst.near_value);
  return finding;
}

}  // namespace properties
}  // namespace posenc
