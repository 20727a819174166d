// The number of operations that a scheme adds per token, counted from its form.

#include <variant>

#include "posenc/properties.h"

namespace posenc {
namespace {

struct CostOfForm {
  std::int64_t keys, features;

  TokenCost operator()(const Nothing& form) const {
    return form.temperature ? TokenCost{.operations = features, .numbers = 1} : TokenCost{};
  }
  TokenCost operator()(const Addition& form) const { return {.operations = form.width, .numbers = form.width}; }
  TokenCost operator()(const Rotation& form) const {
    constexpr std::int64_t kOperationsPerPair = 6, kVectors = 2;
    const std::int64_t pairs = pairs_of(form), tables = form.growth.rates.empty() ? 1 : kVectors;
    return {.operations = kVectors * kOperationsPerPair * pairs, .numbers = tables * 2 * pairs};
  }
  TokenCost operator()(const Bias& form) const { return std::visit(*this, form.source); }

  TokenCost operator()(const Slopes&) const { return {.operations = 2 * keys, .numbers = 1}; }
  TokenCost operator()(const DistanceTable&) const { return {.operations = keys, .numbers = keys}; }
  TokenCost operator()(const DistanceVectors& vectors) const {
    TokenCost cost;
    for (const VectorsByDistance* one : {&vectors.for_queries, &vectors.for_keys, &vectors.for_values}) {
      if (table_of(*one).data == nullptr) continue;
      cost.operations += 2 * features * keys;  // a dot product, or an addition to a sum of values
      cost.numbers += features * keys;
    }
    if (!vectors.query_offsets.empty()) {
      cost.operations += features;
      cost.numbers += features;
    }
    return cost;
  }
  TokenCost operator()(const DistanceRatios& network) const {
    const auto width = static_cast<std::int64_t>(network.hidden_weights.size());
    // The ratio; a product, a sum, a product and a sum for each hidden unit; the output's bias and the sum with the
    // score.
    return {.operations = keys * (1 + 4 * width + 2), .numbers = keys + 3 * width + 1};
  }
  TokenCost operator()(const GateSums&) const { return {.operations = 2 * keys, .numbers = keys}; }
  TokenCost operator()(const CountedGates& gates) const {
    constexpr std::int64_t kOperationsPerKey = 6;  // gate, running sum, interpolation (3), score
    const std::int64_t rows = gates.table.shape.back(1);
    return {.operations = 2 * features * rows + kOperationsPerKey * keys, .numbers = features * rows};
  }
};

std::int64_t trained_numbers_of(const Scheme& scheme, std::int64_t features) {
  const TrainedTable table = trained_table_of(scheme);
  std::int64_t count = 0;
  if (!table.axes.empty()) {
    const std::int64_t tables = 1 + (table.has_key_weights ? 1 : 0) + (table.has_value_weights ? 1 : 0);
    count = tables * count_of(shape_of(table, features));
  }
  Scheme drawn = scheme;  // draw_trained asks for each trained number that is a field
  draw_trained(drawn, [&] {
    ++count;
    return 0.5;
  });
  return count;
}

}  // namespace

TokenCost cost_per_token(const Scheme& scheme, const CostOptions& options) {
  const Trial trial = make_trial(scheme, {.length = options.keys});
  TokenCost cost = std::visit(CostOfForm{options.keys, options.features}, trial.form);
  cost.parameters = trained_numbers_of(scheme, options.features);
  return cost;
}

}  // namespace posenc
