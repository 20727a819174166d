// The number of operations that a scheme adds per token, counted from its form.

#include <variant>

#include "posenc/properties.h"
#include "terms/terms.h"

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
    const std::int64_t pairs = pairs_of(form), tables = has_growth(form) ? kVectors : 1;
    return {.operations = kVectors * kOperationsPerPair * pairs, .numbers = tables * 2 * pairs};
  }
  TokenCost operator()(const Bias& form) const {
    const terms::Cost cost = terms::cost(form, {keys, features});
    return {.operations = cost.operations, .numbers = cost.numbers};
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
