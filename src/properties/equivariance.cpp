// Att(PX) = P·Att(X): whether attention is permutation-equivariant.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "posenc/apply.h"
#include "posenc/attention.h"
#include "posenc/error.h"
#include "posenc/random.h"
#include "properties/rows.h"
#include "properties/scores.h"
#include "properties/trial.h"

namespace posenc {
namespace {

using namespace properties;

constexpr std::int64_t kModelWidth = 32;  // if the form does not specify it
constexpr std::int64_t kHeadFeatures = 16;

// The error bound of attention in f32: 2e-6 · Σ weight·|v| for scores up to 16 (attention.h). The relative error of
// an exponential is the absolute error of its score, which grows with the score.
constexpr double kAttentionError = 2e-6, kScoresOfContract = 16;

struct Layer {
  std::int64_t width = 0, heads = 1, features = 0;  // of a token; of q, k and v
  std::vector<double> q, k, v;                      // [width, heads · features]
};

Layer random_layer(const Form& form, Random& random) {
  Layer layer;
  const auto* const addition = std::get_if<Addition>(&form);
  layer.width = addition != nullptr ? addition->width : kModelWidth;
  layer.heads = heads_of(form);
  layer.features = addition != nullptr ? kHeadFeatures : head_features_of(form);
  const double size = std::sqrt(3.0 / static_cast<double>(layer.width));
  for (std::vector<double>* const weights : {&layer.q, &layer.k, &layer.v}) {
    weights->resize(layer.width * layer.heads * layer.features);
    for (double& weight : *weights) weight = size * random.uniform();
  }
  return layer;
}

// Each token's product is summed in the same order, so a shuffled token gives bit-identical results.
std::vector<float> projected(const std::vector<float>& x, const std::vector<double>& weights, std::size_t width) {
  const std::size_t columns = weights.size() / width, tokens = x.size() / width;
  std::vector<float> result(tokens * columns);
  for (std::size_t t = 0; t < tokens; ++t) {
    for (std::size_t c = 0; c < columns; ++c) {
      double sum = 0;
      for (std::size_t i = 0; i < width; ++i) sum += static_cast<double>(x[t * width + i]) * weights[i * columns + c];
      result[t * columns + c] = static_cast<float>(sum);
    }
  }
  return result;
}

struct Attended {
  std::vector<float> out;    // [tokens, heads · features]
  double largest_value = 0;  // |v|
  double largest_score = 0;  // among scores that affect the result, see below
};

double largest_of(const std::vector<float>& values) {
  double most = 0;
  for (const float value : values) most = larger(most, std::fabs(static_cast<double>(value)));
  return most;
}

Attended attended(const Form& form, const Layer& layer, std::vector<float> x, const Sample& sample, bool causal) {
  const auto tokens = static_cast<std::int64_t>(sample.count);
  const std::size_t width = layer.width;
  AttentionOptions options;
  options.causal = causal;
  if (const auto* const addition = std::get_if<Addition>(&form)) {
    add(view(x.data(), {tokens, layer.width}), sample.positions(), *addition);
  } else {
    options.position = form;
    options.query_positions = options.key_positions = sample.positions();
  }
  const std::vector<float> q = projected(x, layer.q, width), k = projected(x, layer.k, width),
                           v = projected(x, layer.v, width);
  // The queries that relative-position vectors use in place of q are computed from the token, too.
  std::vector<float> own;
  const std::int64_t own_features = own_query_features(form);
  for (std::int64_t row = 0; row < tokens * layer.heads && own_features > 0; ++row) {
    for (std::int64_t f = 0; f < own_features; ++f) {
      own.push_back(q[row * layer.features + f % layer.features]);
    }
  }
  if (!own.empty()) {
    options.position_queries = swap_axes(view(std::as_const(own).data(), {tokens, layer.heads, own_features}), 0, 1);
  }
  std::vector<float> gates;  // [heads, tokens], computed from each token
  if (const auto* const bias = std::get_if<Bias>(&form); bias && inputs_of(*bias).log_gates) {
    for (std::int64_t row = 0; row < layer.heads * tokens; ++row) {
      const std::int64_t token = (row % tokens) * layer.heads + row / tokens;
      gates.push_back(static_cast<float>(log_gate(static_cast<double>(q[token * layer.features]))));
    }
    options.log_gates = view(std::as_const(gates).data(), {layer.heads, tokens});
  }
  Attended result;
  result.out.resize(q.size());
  const Extents shape{tokens, layer.heads, layer.features};
  const auto heads_first = [&](const std::vector<float>& data) { return swap_axes(view(data.data(), shape), 0, 1); };
  std::vector<float> sums(layer.heads * tokens);
  options.logsumexp = view(sums.data(), {layer.heads, tokens});
  attention(swap_axes(view(result.out.data(), shape), 0, 1), heads_first(q), heads_first(k), heads_first(v), options);
  result.largest_value = largest_of(v);
  // A score 16 below the logarithm of the sum has a weight below 2e-7, so its error is negligible.
  result.largest_score = largest_of(sums) + kScoresOfContract;
  return result;
}

// Never the identity.
std::vector<std::size_t> permutation_of(std::size_t count, Random& random) {
  std::vector<std::size_t> order(count);
  for (std::size_t i = 0; i < count; ++i) order[i] = i;
  for (std::size_t i = count; i-- > 1;) {
    std::swap(order[i], order[random.below(static_cast<std::int64_t>(i) + 1)]);
  }
  if (std::is_sorted(order.begin(), order.end())) std::swap(order.front(), order.back());
  return order;
}

std::vector<float> shuffled(const std::vector<float>& rows, const std::vector<std::size_t>& order) {
  const std::size_t width = rows.size() / order.size();
  std::vector<float> result(rows.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    std::copy_n(rows.begin() + static_cast<std::ptrdiff_t>(order[i] * width), width,
                result.begin() + static_cast<std::ptrdiff_t>(i * width));
  }
  return result;
}

}  // namespace

Equivariance equivariance(const Form& form, const EquivarianceOptions& options) {
  if (options.tokens < 2 || options.tokens > 4096 || options.permutations < 1) {
    raise(fmt::format("equivariance: needs 2 to 4096 tokens and at least 1 permutation, got {} and {}",
                      options.tokens, options.permutations));
  }
  Random random(static_cast<std::uint64_t>(options.seed));
  const Layer layer = random_layer(form, random);
  const Sample sample = sample_of(std::min(options.tokens, reach_of(form)), position_axes_of(form), options.tokens);
  std::vector<float> x(sample.count * layer.width);
  for (float& value : x) value = static_cast<float>(random.uniform());

  Equivariance result;
  result.tokens = static_cast<std::int64_t>(sample.count);
  result.permutations = options.permutations;
  const Attended plain = attended(form, layer, x, sample, options.causal);
  for (std::int64_t i = 0; i < options.permutations && sample.count > 1; ++i) {
    const std::vector<std::size_t> order = permutation_of(sample.count, random);
    const Attended moved = attended(form, layer, shuffled(x, order), sample, options.causal);
    const std::vector<float> expected = shuffled(plain.out, order);
    for (std::size_t j = 0; j < expected.size(); ++j) {
      const double difference = static_cast<double>(moved.out[j]) - static_cast<double>(expected[j]);
      result.difference = larger(result.difference, std::fabs(difference));
    }
    const double score = std::max(plain.largest_score, moved.largest_score);
    const double value = std::max(plain.largest_value, moved.largest_value);
    result.bound = larger(result.bound, 2 * kAttentionError * score / kScoresOfContract * value);
  }
  return result;
}

namespace properties {

Finding sees_order(const Trial& trial, bool causal) {
  const Property property = causal ? Property::kSeesOrderCausal : Property::kSeesOrder;
  if (trial.length < 2) return does_not_apply(property, trial, "It supports fewer than two positions.");
  const std::int64_t tokens = position_axes_of(trial.form) == 1 ? std::min<std::int64_t>(16, trial.length) : 16;
  const Equivariance found =
      equivariance(trial.form, {.causal = causal, .tokens = tokens, .seed = trial.options.seed});
  Finding finding = decided(property, trial, found.difference, found.bound, BoundSense::kAbove);
  finding.samples = found.permutations;
  finding.details = {{"tokens", static_cast<double>(found.tokens)}};
  const bool is_nothing = std::holds_alternative<Nothing>(trial.form);
  if (finding.outcome == Outcome::kFails) {
    finding.meaning = fmt::format(
        "Permutation-equivariant: permuting {} tokens permutes the outputs and changes nothing else (difference "
        "{:.2g}, rounding).",
        found.tokens, found.difference);
  } else if (is_nothing) {
    finding.meaning =
        fmt::format("The causal mask alone breaks the symmetry: permuting tokens changes outputs by up to {:.2g}.",
                    found.difference);
  } else {
    finding.meaning = fmt::format("Permuting tokens changes outputs by up to {:.2g}.", found.difference);
  }
  return finding;
}

}  // namespace properties
}  // namespace posenc
