#include "properties/scores.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "posenc/attention.h"
#include "posenc/random.h"
#include "terms/terms.h"

namespace posenc::properties {
namespace {

constexpr std::int64_t kFeatures = 16;      // if the form does not specify it
constexpr std::size_t kPairsAtOnce = 1024;  // of an Addition, whose tokens differ from pair to pair

std::vector<double> unit_vector(std::int64_t features, Random& random) {
  std::vector<double> values(features);
  double squares = 0;
  for (double& value : values) {
    value = random.uniform();
    squares += value * value;
  }
  for (double& value : values) value /= std::sqrt(squares);
  return values;
}

// [axes, pairs]: the position of the query (or key) of each pair.
std::vector<std::int64_t> ids_of(const Sample& sample, const std::vector<ScorePair>& pairs,
                                 std::size_t ScorePair::*which) {
  std::vector<std::int64_t> ids;
  for (int axis = 0; axis < sample.axes; ++axis) {
    for (const ScorePair& pair : pairs) ids.push_back(sample.at(axis, pair.*which));
  }
  return ids;
}

// One query and one key in each sequence of a batch.
void attend(std::vector<double>& scores, const ConstTensorView& q, const ConstTensorView& k,
            AttentionOptions& options) {
  const std::int64_t batch = q.shape[0], heads = q.shape[1];
  const double one = 1;
  const ConstTensorView v(&one, DataType::kF64, {batch, heads, 1, 1}, {0, 0, 0, 0});
  std::vector<double> out(batch * heads);
  const std::size_t begin = scores.size();
  scores.resize(begin + out.size());
  options.scale = 1;
  options.logsumexp = view(scores.data() + begin, {batch, heads, 1});
  attention(view(out.data(), {batch, heads, 1, 1}), q, k, v, options);
}

std::vector<double> scores_of_addition(const Form& form, const Sample& sample, const std::vector<ScorePair>& pairs,
                                       const QueryAndKey& content) {
  const std::size_t width = width_of(form);
  const std::vector<double> rows = rows_at<double>(form, sample.positions(), sample.count);
  std::vector<double> scores, q, k;
  for (std::size_t begin = 0; begin < pairs.size(); begin += kPairsAtOnce) {
    const std::size_t count = std::min(kPairsAtOnce, pairs.size() - begin);
    q.assign(count * width, 0.0);
    k.assign(count * width, 0.0);
    for (std::size_t i = 0; i < count; ++i) {
      const ScorePair& pair = pairs[begin + i];
      for (std::size_t j = 0; j < width; ++j) {
        q[i * width + j] = content.q[j] + rows[pair.query * width + j];
        k[i * width + j] = content.k[j] + rows[pair.key * width + j];
      }
    }
    const Extents shape{static_cast<std::int64_t>(count), 1, 1, static_cast<std::int64_t>(width)};
    AttentionOptions options;
    attend(scores, view(q.data(), shape), view(k.data(), shape), options);
  }
  return scores;
}

// The queries that multiply the vectors of a form with its own queries: the content of q, repeated. Empty: q does.
std::vector<double> position_query_for(const Form& form, const QueryAndKey& content) {
  std::vector<double> query(own_query_features(form));
  for (std::size_t f = 0; f < query.size(); ++f) query[f] = content.q[f % content.q.size()];
  return query;
}

}  // namespace

std::int64_t heads_of(const Form& form) noexcept {
  if (const auto* const rotation = std::get_if<Rotation>(&form)) return posenc::heads_of(*rotation);
  const auto* const bias = std::get_if<Bias>(&form);
  return bias == nullptr ? 1 : std::max<std::int64_t>(bias->heads, 1);
}

std::int64_t own_query_features(const Form& form) noexcept {
  const auto* const bias = std::get_if<Bias>(&form);
  return bias != nullptr ? inputs_of(*bias).position_query_features : 0;
}

std::int64_t head_features_of(const Form& form) noexcept {
  if (const auto* const addition = std::get_if<Addition>(&form)) return addition->width;
  if (const auto* const rotation = std::get_if<Rotation>(&form)) {
    const std::int64_t dims = 2 * pairs_of(*rotation);
    return rotation->first_dim < 0 ? std::max(dims, -rotation->first_dim) : rotation->first_dim + dims;
  }
  if (const auto* const bias = std::get_if<Bias>(&form)) {
    if (const std::int64_t features = terms::features(*bias); features != 0) return features;
  }
  return kFeatures;
}

bool reads_tokens_between(const Form& form) noexcept {
  const auto* const bias = std::get_if<Bias>(&form);
  return bias != nullptr && terms::reads_tokens_between(*bias);
}

std::vector<ScorePair> causal_pairs(std::size_t tokens) {
  std::vector<ScorePair> pairs;
  for (std::size_t m = 0; m < tokens; ++m) {
    for (std::size_t n = 0; n <= m; ++n) pairs.push_back({m, n});
  }
  return pairs;
}

double log_gate(double logit) noexcept { return -std::log1p(std::exp(-logit)); }

std::vector<ScorePair> all_pairs(const Sample& sample) {
  std::vector<ScorePair> pairs;
  for (std::size_t m = 0; m < sample.count; ++m) {
    for (std::size_t n = 0; n < sample.count; ++n) pairs.push_back({m, n});
  }
  return pairs;
}

QueryAndKey random_query_and_key(std::int64_t features, std::int64_t seed) {
  Random random(static_cast<std::uint64_t>(seed));
  QueryAndKey content;
  content.q = unit_vector(features, random);
  content.k = unit_vector(features, random);
  return content;
}

std::vector<double> scores_of(const Form& form, const Sample& sample, const std::vector<ScorePair>& pairs,
                              const QueryAndKey& content) {
  if (std::holds_alternative<Addition>(form)) return scores_of_addition(form, sample, pairs, content);
  const std::vector<std::int64_t> query_ids = ids_of(sample, pairs, &ScorePair::query);
  const std::vector<std::int64_t> key_ids = ids_of(sample, pairs, &ScorePair::key);
  AttentionOptions options;
  options.position = form;
  if (const auto* const bias = std::get_if<Bias>(&form)) options.position = terms::of_scores(*bias);
  options.query_positions = Positions{.first = 0, .ids = query_ids, .axes = sample.axes};
  options.key_positions = Positions{.first = 0, .ids = key_ids, .axes = sample.axes};
  const auto batch = static_cast<std::int64_t>(pairs.size());
  const Extents shape{batch, heads_of(form), 1, static_cast<std::int64_t>(content.q.size())};
  const Extents same_for_all{0, 0, 0, 1};
  std::vector<double> scores;
  const std::vector<double> own = position_query_for(form, content);
  if (!own.empty()) {
    Extents own_shape = shape;
    own_shape[3] = static_cast<std::int64_t>(own.size());
    options.position_queries = {own.data(), DataType::kF64, own_shape, same_for_all};
  }
  attend(scores, {content.q.data(), DataType::kF64, shape, same_for_all},
         {content.k.data(), DataType::kF64, shape, same_for_all}, options);
  return scores;
}

std::vector<double> scores_in_sequence(const Form& form, const std::vector<ScorePair>& pairs,
                                       const QueryAndKey& content, std::int64_t seed) {
  Random random(static_cast<std::uint64_t>(seed));
  const std::size_t features = content.k.size();
  const std::size_t heads = heads_of(form);
  std::size_t tokens = 0;
  for (const ScorePair& pair : pairs) tokens = std::max(tokens, pair.query + 1);
  std::vector<double> drawn, gates;
  for (std::size_t t = 0; t < tokens; ++t) {
    const std::vector<double> key = unit_vector(static_cast<std::int64_t>(features), random);
    drawn.insert(drawn.end(), key.begin(), key.end());
  }
  for (std::size_t at = 0; at < heads * tokens; ++at) gates.push_back(log_gate(1 + 3 * random.uniform()));
  // a sequence for each pair: up to its query, with the key at its place
  std::vector<double> keys;
  std::vector<std::int64_t> lengths;
  for (const ScorePair& pair : pairs) {
    keys.insert(keys.end(), drawn.begin(), drawn.end());
    const auto place = keys.end() - static_cast<std::ptrdiff_t>((tokens - pair.key) * features);
    std::copy(content.k.begin(), content.k.end(), place);
    lengths.push_back(static_cast<std::int64_t>(pair.query) + 1);
  }
  const auto batch = static_cast<std::int64_t>(pairs.size()), all_heads = static_cast<std::int64_t>(heads),
             all_tokens = static_cast<std::int64_t>(tokens), width = static_cast<std::int64_t>(features);
  std::vector<double> out(pairs.size() * heads), sums(out.size()), weights(out.size() * tokens);
  const double one = 1;
  AttentionOptions options{.position = form, .causal = true, .scale = 1.0};
  if (inputs_of(std::get<Bias>(form)).log_gates) {
    options.log_gates = {gates.data(), DataType::kF64, {batch, all_heads, all_tokens}, {0, all_tokens, 1}};
  }
  options.key_lengths = lengths;
  options.weights = view(weights.data(), {batch, all_heads, 1, all_tokens});
  options.logsumexp = view(sums.data(), {batch, all_heads, 1});
  attention(view(out.data(), {batch, all_heads, 1, 1}),
            {content.q.data(), DataType::kF64, {batch, all_heads, 1, width}, {0, 0, 0, 1}},
            view(std::as_const(keys).data(), {batch, 1, all_tokens, width}),
            {&one, DataType::kF64, {batch, 1, all_tokens, 1}, {0, 0, 0, 0}}, options);
  std::vector<double> scores;
  for (std::size_t i = 0; i < out.size(); ++i) {
    scores.push_back(std::log(weights[i * tokens + pairs[i / heads].key]) + sums[i]);
  }
  return scores;
}

}  // namespace posenc::properties
