#include "figures/bias_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "figures/position_table.h"
#include "posenc/apply.h"
#include "posenc/attention.h"
#include "posenc/error.h"
#include "posenc/json.h"
#include "terms/terms.h"

namespace posenc::figures {
namespace {

constexpr std::int64_t kMostNumbers = 1 << 24;  // of a table that replaces a trained one

std::vector<std::string_view> names_of_biases() {
  std::vector<std::string_view> names;
  for (const std::string_view name : scheme_names()) {
    if (is_bias(scheme_named(name))) names.push_back(name);
  }
  return names;
}

// The bias with a table whose row n holds n, so that each distance shows which row it reads. All heads are equal.
BiasValues with_numbered_rows(const Scheme& scheme, const TrainedTable& table, PrepareOptions options) {
  const Extents shape = shape_of(table, 1);
  const std::int64_t count = count_of(shape);
  if (count < 1 || count > kMostNumbers) {
    raise(
        fmt::format("{}: a table of {} is too large to draw without its numbers", name_of(scheme), to_string(shape)));
  }
  std::vector<double> numbers;
  // If the form's vectors are computed from a projection, every weight of that projection is 1.
  const bool is_projection = table.axes.back().extent != kAnyExtent && has_vectors(table);
  const std::int64_t in_row = count / shape[0];
  for (std::int64_t row = 0; row < shape[0]; ++row) {
    numbers.insert(numbers.end(), in_row, is_projection ? 1.0 : static_cast<double>(row));
  }
  const Boxed<SharedNumbers> kept = shared(std::move(numbers));
  options.weights = options.key_weights = options.value_weights = {data_of(kept), DataType::kF64, shape};
  BiasValues bias{std::get<Bias>(prepare(scheme, options)), std::string(table.axes.front().name)};
  bias.numbers = kept;
  if (bias.row_name.ends_with('s')) bias.row_name.pop_back();
  auto* const source = std::get_if<DistanceTable>(&bias.form.source);
  if (source == nullptr) return bias;
  bias.form.heads = 1;
  source->weights = {};
  for (std::int64_t row = 0; row < shape[0]; ++row) source->values.push_back(static_cast<double>(row));
  return bias;
}

// What relative-position vectors add to the score of a query of ones and a key of zeros, [heads, queries, keys]. Each
// pair is a sequence of its own in one batch.
std::vector<double> scores_of_ones(const Bias& form, const std::vector<std::int64_t>& queries,
                                   const std::vector<std::int64_t>& keys) {
  const auto& vectors = std::get<DistanceVectors>(form.source);
  const std::int64_t heads = std::max<std::int64_t>(form.heads, 1), met = query_features_of(vectors);
  const auto pairs = static_cast<std::int64_t>(queries.size() * keys.size());
  std::vector<std::int64_t> query_ids, key_ids;
  for (const std::int64_t query : queries) {
    query_ids.insert(query_ids.end(), keys.size(), query);
    key_ids.insert(key_ids.end(), keys.begin(), keys.end());
  }
  const std::vector<double> ones(met, 1.0), zeros(ones.size(), 0.0);
  std::vector<double> out(pairs * heads), sums(out.size()), scores(out.size());
  const Extents same{0, 0, 0, 1};
  const ConstTensorView q(ones.data(), DataType::kF64, {pairs, heads, 1, met}, same);
  const ConstTensorView k(zeros.data(), DataType::kF64, {pairs, heads, 1, met}, same);
  const ConstTensorView v(zeros.data(), DataType::kF64, {pairs, heads, 1, 1}, same);
  AttentionOptions options{.position = form, .scale = 1.0};
  if (vectors.has_own_queries) options.position_queries = q;
  options.query_positions = Positions{.ids = query_ids};
  options.key_positions = Positions{.ids = key_ids};
  options.logsumexp = view(sums.data(), {pairs, heads, 1});
  attention(view(out.data(), {pairs, heads, 1, 1}), q, k, v, options);
  for (std::int64_t at = 0; at < pairs * heads; ++at) {
    scores[at % heads * pairs + at / heads] = sums[at];
  }
  return scores;
}

constexpr std::int64_t kMostExampleTokens = 1024;  // each query attends to every earlier key
constexpr std::int64_t kExampleStep = 8;           // every eighth token differs from the others
constexpr double kHighGate = 0.98, kLowGate = 0.02, kForgettingGate = 0.2;

// Sets up the example for a form that depends on the tokens between: forget gates of 0.98, and 0.2 at every eighth
// token; or a query of ones for which every eighth key counts as 0.98 and the others as 0.02.
void use_example(BiasValues& bias) {
  bias.is_of_tokens = true;
  if (inputs_of(bias.form).log_gates) {
    bias.note = fmt::format("Example: every {}th token has a gate of {}, the others {}. Later keys are masked.",
                            kExampleStep, kForgettingGate, kHighGate);
    return;
  }
  if (bias.is_numbered()) bias.row_name = "position";
  bias.note = fmt::format("Example: every {}th key counts as {}, the others as {}. Later keys are masked.",
                          kExampleStep, kHighGate, kLowGate);
}

// What the form adds to the scores of the example, [heads, tokens, tokens]; 0 for keys after their query.
std::vector<double> example_scores(const Bias& form, std::int64_t tokens) {
  if (tokens > kMostExampleTokens) {
    raise(fmt::format("bias: it depends on every token between key and query, so zoom ends at {} at most",
                      kMostExampleTokens));
  }
  const bool has_gates = inputs_of(form).log_gates;  // otherwise it counts those of the scores
  const std::int64_t heads = std::max<std::int64_t>(form.heads, 1);
  const std::int64_t d = std::max<std::int64_t>(terms::features(form), 1);
  const std::size_t count = tokens;
  std::vector<double> gates, plain, keys;
  for (std::int64_t t = 0; t < tokens; ++t) {
    const bool differs = t % kExampleStep == kExampleStep - 1;
    gates.push_back(std::log(differs ? kForgettingGate : kHighGate));
    const double gate = differs ? kHighGate : kLowGate;
    plain.push_back(has_gates ? 0.0 : std::log(gate / (1 - gate)));
    keys.insert(keys.end(), d, plain.back() / static_cast<double>(d));
  }
  const std::vector<double> ones(d, 1.0);
  std::vector<double> out(count * heads), sums(out.size()), weights(out.size() * count);
  AttentionOptions options{.position = form, .causal = true, .scale = 1.0};
  if (has_gates) options.log_gates = {gates.data(), DataType::kF64, {1, heads, tokens}, {0, 0, 1}};
  options.weights = view(weights.data(), {1, heads, tokens, tokens});
  options.logsumexp = view(sums.data(), {1, heads, tokens});
  const ConstTensorView q(ones.data(), DataType::kF64, {1, heads, tokens, d}, {0, 0, 0, 1});
  const ConstTensorView k(keys.data(), DataType::kF64, {1, heads, tokens, d}, {0, 0, d, 1});
  const ConstTensorView v(ones.data(), DataType::kF64, {1, heads, tokens, 1}, {0, 0, 0, 1});
  attention(view(out.data(), {1, heads, tokens, 1}), q, k, v, options);
  for (std::size_t at = 0; at < weights.size(); ++at) {
    const std::size_t query = at / count % count, key = at % count;
    const double added = std::log(weights[at]) + sums[at / count] - plain[key];
    weights[at] = key > query || std::fabs(added) < 1e-12 ? 0.0 : added;  // hides rounding errors
  }
  return weights;
}

}  // namespace

BiasValues bias_values(const PlottedScheme& scheme, const Request& request, std::int64_t length) {
  const std::string_view name = name_of(scheme.scheme);
  if (!is_bias(scheme.scheme)) {
    raise(fmt::format("{}: adds nothing to the scores (these do: {})", name, fmt::join(names_of_biases(), ", ")));
  }
  const PrepareOptions options{
      .length = std::max(length, request.length), .numerics = request.numerics, .weights = scheme.weights};
  const TrainedTable table = trained_table_of(scheme.scheme);
  const bool is_numbered = !table.axes.empty() && scheme.weights.data == nullptr;
  BiasValues bias = is_numbered ? with_numbered_rows(scheme.scheme, table, options)
                                : BiasValues{std::get<Bias>(prepare(scheme.scheme, options)), ""};
  if (terms::reads_tokens_between(bias.form)) use_example(bias);
  if (position_axes_of(bias.form) != 1) {
    raise(fmt::format("{}: positions have several axes, and figures have one", name));
  }
  if (auto* const vectors = std::get_if<DistanceVectors>(&bias.form.source)) {
    if (query_features_of(*vectors) == 0) {
      raise(fmt::format("{}: its vectors multiply keys alone, so there is nothing to draw for a query", name));
    }
    // A table computed from the weights shows its values instead of row numbers.
    if (bias.is_numbered()) bias.row_name = vectors->for_queries.values.empty() ? "row" : "";
    vectors->for_values = {};
    vectors->for_keys = {};
    vectors->softmax_factor = 1.0;
    bias.is_of_vectors = true;
  }
  return bias;
}

std::vector<double> bias_between(const BiasValues& bias, const std::vector<std::int64_t>& queries,
                                 const std::vector<std::int64_t>& keys) {
  const auto rows = static_cast<std::int64_t>(queries.size()), columns = static_cast<std::int64_t>(keys.size());
  if (bias.is_of_vectors) return scores_of_ones(bias.form, queries, keys);
  if (bias.is_of_tokens) {
    const std::int64_t tokens =
        1 + std::max(*std::max_element(queries.begin(), queries.end()), *std::max_element(keys.begin(), keys.end()));
    const std::vector<double> all = example_scores(bias.form, tokens);
    std::vector<double> picked;
    for (std::int64_t head = 0; head < bias.heads(); ++head) {
      for (const std::int64_t query : queries) {
        for (const std::int64_t key : keys) {
          picked.push_back(all[(head * tokens + query) * tokens + key]);
        }
      }
    }
    return picked;
  }
  std::vector<double> values(bias.form.heads * rows * columns);
  posenc::bias(view(values.data(), {bias.form.heads, rows, columns}), {.ids = queries}, {.ids = keys}, bias.form);
  return values;
}

std::vector<std::vector<double>> bias_by_distance(const BiasValues& bias, const Range& distances) {
  const std::int64_t query = distances.to - 1;
  std::vector<std::int64_t> keys;
  for (std::int64_t distance = distances.from; distance < distances.to; ++distance) keys.push_back(query - distance);
  const std::vector<double> values = bias_between(bias, {query}, keys);
  std::vector<std::vector<double>> heads;
  for (auto row = values.begin(); row != values.end(); row += distances.count()) {
    heads.emplace_back(row, row + distances.count());
  }
  return heads;
}

std::string label_of(const PlottedScheme& scheme, const std::vector<PlottedScheme>& all) {
  const std::string_view name = name_of(scheme.scheme);
  const auto has_name = [&](const PlottedScheme& other) { return name_of(other.scheme) == name; };
  if (std::count_if(all.begin(), all.end(), has_name) < 2) return std::string(name);
  // The fields in which the schemes of this name differ.
  const Json json = json_of(scheme.scheme);
  std::string text(name);
  for (const auto& [key, value] : *json.as<Json::Object>()) {
    const auto differs = [&, &field = key, &mine = value](const PlottedScheme& other) {
      if (!has_name(other)) return false;
      const Json theirs = json_of(other.scheme);
      return theirs.find(field) != nullptr && *theirs.find(field) != mine;
    };
    if (!std::any_of(all.begin(), all.end(), differs)) continue;
    const Json* const type = value.find("type");
    const auto* const word = type != nullptr ? type->as<std::string>() : value.as<std::string>();
    const auto* const number = value.as<double>();
    text += fmt::format(" {} {}", key,
                        word != nullptr     ? *word
                        : number != nullptr ? fmt::format("{}", *number)
                                            : dump_json(value).substr(0, 16));
  }
  return text;
}

}  // namespace posenc::figures
