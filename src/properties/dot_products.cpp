// What two rows have in common: whether it is a matter of distance alone, and whether it falls with distance.

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

// Products in double, their sum with the lost parts added back (Neumaier), so that its error does not grow with
// width.
double dot(const double* a, const double* b, std::size_t width) {
  double sum = 0, lost = 0;
  for (std::size_t j = 0; j < width; ++j) {
    const double product = a[j] * b[j], next = sum + product;
    lost += std::fabs(sum) >= std::fabs(product) ? (sum - next) + product : (product - next) + sum;
    sum = next;
  }
  return sum + lost;
}

// Every value of a row is within 1.002u·A, so a product is within 3.1u·A², their sum within 3.1·d·u·A² and a rounding
// of at most d·A²/2 within 0.5·d·u·A²; two of them may differ by twice that.
double rounding_of_dots(std::size_t width, double amplitude) {
  return 8 * static_cast<double>(width) * kUnit * amplitude * amplitude;
}

// A · Σ A cos(ω_i δ): the cosines are those of the row at δ itself.
void add_closed_forms(const Form& form, std::vector<DotProducts>& products) {
  const std::vector<WavePair> pairs = wave_pairs_of(form);
  if (pairs.empty()) return;
  Sample sample;
  sample.axes = position_axes_of(form);
  sample.count = products.size();
  for (int axis = 0; axis < sample.axes; ++axis) {
    for (const DotProducts& one : products)
      sample.ids.push_back(std::abs(one.offset[static_cast<std::size_t>(axis)]));
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

// What a further key must not exceed, by distance from 0 on; one list for each head.
struct Decay {
  std::vector<std::vector<double>> heads;
  double rounding = 0;
};

Decay decay_of_rows(const Form& form, std::int64_t length, std::int64_t distances) {
  std::vector<std::int64_t> positions;
  for (std::int64_t d = 0; d < distances; ++d) positions.push_back(length - 1 - d);
  const Sample sample = sample_at(positions, position_axes_of(form));
  const std::size_t width = width_of(form);
  const std::vector<double> rows = rows_at<double>(form, sample.positions(), sample.count);
  Decay decay;
  decay.heads.resize(1);
  double amplitude = 0;
  for (const double value : rows) amplitude = larger(amplitude, std::fabs(value));
  for (std::size_t d = 0; d < sample.count; ++d) decay.heads[0].push_back(dot(rows.data(), &rows[d * width], width));
  decay.rounding = rounding_of_dots(width, amplitude);
  return decay;
}

Decay decay_of_bias(const Trial& trial, const Bias& form, std::int64_t distances) {
  std::vector<std::int64_t> positions;
  for (std::int64_t d = 0; d < distances; ++d) positions.push_back(trial.length - 1 - d);
  const Sample sample = sample_at(positions, position_axes_of(trial.form));
  const auto heads = static_cast<std::size_t>(heads_of(trial.form));
  Decay decay;
  decay.heads.assign(heads, std::vector<double>(sample.count));
  if (std::holds_alternative<DistanceVectors>(form.source)) {
    std::vector<ScorePair> pairs;
    for (std::size_t d = 0; d < sample.count; ++d) pairs.push_back({0, d});
    const QueryAndKey content = random_query_and_key(head_features_of(trial.form), trial.options.seed);
    const std::vector<double> scores = scores_of(trial.form, sample, pairs, content);
    for (std::size_t i = 0; i < scores.size(); ++i) decay.heads[i % heads][i / heads] = scores[i];
    return decay;
  }
  std::vector<double> values(heads * sample.count);
  const Sample query = sample_at({trial.length - 1}, sample.axes);
  bias(view(values.data(), {static_cast<std::int64_t>(heads), 1, distances}), query.positions(), sample.positions(),
       form);
  for (std::size_t i = 0; i < values.size(); ++i) decay.heads[i / sample.count][i % sample.count] = values[i];
  return decay;
}

struct Rise {
  double gain = 0;
  std::size_t near = 0, far = 0, head = 0;
  double near_value = 0, far_value = 0;
};

// The nearest distance that has more than a neighbour has; where there is none, the largest rise.
Rise rise_of(const std::vector<double>& values, double rounding) {
  const auto rise = [&](std::size_t near, std::size_t far) {
    return Rise{values[far] - values[near], near, far, 0, values[near], values[far]};
  };
  for (std::size_t d = 2; d < values.size(); ++d) {
    if (values[d] > values[1] + rounding) return rise(1, d);
  }
  Rise most;
  std::size_t least = 0;
  for (std::size_t d = 1; d < values.size(); ++d) {
    if (!(values[d] - values[least] <= most.gain)) most = rise(least, d);
    if (values[d] < values[least]) least = d;
  }
  return most;
}

}  // namespace

std::vector<DotProducts> dot_by_distance(const Form& form, std::int64_t length) {
  if (!has_rows(form)) raise("dot_by_distance: the form has no rows");
  if (length < 1 || length > reach_of(form)) {
    raise(fmt::format("dot_by_distance: {} positions; the form knows {}", length, reach_of(form)));
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
    return does_not_apply(Property::kDotByDistance, trial,
                          "It adds no vectors; what scores do with distance is the statement on scores.");
  }
  if (trial.length < 2) return does_not_apply(Property::kDotByDistance, trial, "It knows fewer than two positions.");
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
  // The closed form is held to the same bound: it is one more way to make the same number.
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
    finding.meaning =
        fmt::format("Over {} pairs the dot product is the same at each distance to {:.2g}", pairs, spread);
    finding.meaning += has_closed_form
                           ? fmt::format(", and is the sum of cos(w_i d) to {:.0f} ulps.", from_closed_form / ulp)
                           : std::string(".");
  } else {
    finding.meaning = fmt::format("Pairs {} apart have dot products that differ by {:.2g}: where they stand matters.",
                                  worst.front(), spread);
  }
  return finding;
}

Finding monotone(const Trial& trial) {
  const auto* const bias = std::get_if<Bias>(&trial.form);
  if (bias == nullptr && !has_rows(trial.form)) {
    return does_not_apply(Property::kMonotone, trial, "It says nothing of distance.");
  }
  if (trial.length < 3) return does_not_apply(Property::kMonotone, trial, "It knows fewer than two distances.");
  const std::int64_t distances = std::min(trial.length, kMostDistances);
  const Decay decay =
      bias != nullptr ? decay_of_bias(trial, *bias, distances) : decay_of_rows(trial.form, trial.length, distances);
  Rise worst;
  for (std::size_t head = 0; head < decay.heads.size(); ++head) {
    Rise rise = rise_of(decay.heads[head], decay.rounding);
    rise.head = head;
    if (head == 0 || !(rise.gain <= worst.gain)) worst = rise;
  }
  Finding finding = decided(Property::kMonotone, trial, worst.gain, decay.rounding, BoundSense::kAtMost);
  finding.samples = distances;
  if (finding.outcome == Outcome::kHolds) {
    finding.meaning = fmt::format("Up to a distance of {} a nearer key never has less.", distances - 1);
    return finding;
  }
  finding.details = {{"near_distance", static_cast<double>(worst.near)},
                     {"near_value", worst.near_value},
                     {"far_distance", static_cast<double>(worst.far)},
                     {"far_value", worst.far_value},
                     {"head", static_cast<double>(worst.head)}};
  finding.meaning = fmt::format("Closer is not always higher: distance {} gives {:.3f}, distance {} gives {:.3f}.",
                                worst.far, worst.far_value, worst.near, worst.near_value);
  return finding;
}

}  // namespace properties
}  // namespace posenc
