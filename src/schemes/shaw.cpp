#include "posenc/schemes/shaw.h"

#include <algorithm>

#include "schemes/check.h"

namespace posenc {

TrainedTable Shaw::trained_table() const {
  // for fields that prepare() rejects: at most what fits
  constexpr std::int64_t kMost = std::int64_t{1} << 40;
  return {.axes = {{"rows", std::clamp(left, -kMost, kMost) + std::clamp(right, -kMost, kMost) + 1}, {"features"}},
          .has_value_weights = with_values};
}

Bias prepare(const Shaw& s, const PrepareOptions& options) {
  schemes::check_between(Shaw::name, "left", s.left, 0, schemes::kDistanceLimit);
  schemes::check_between(Shaw::name, "right", s.right, 0, schemes::kDistanceLimit);
  const std::int64_t rows = s.left + s.right + 1;
  const std::int64_t heads = schemes::check_vectors(Shaw::name, {}, options.weights, rows);

  DistanceMap map;
  const bool ends = s.beyond == BeyondReach::kNone;
  map.first = -s.left - (ends ? 1 : 0);
  if (ends) map.entries.push_back(kNoRow);
  for (std::int64_t row = 0; row < rows; ++row) {
    map.entries.push_back(s.order == DistanceOrder::kKeyMinusQuery ? row : rows - 1 - row);
  }
  if (ends) map.entries.push_back(kNoRow);
  DistanceVectors source;
  source.for_queries = {.axes = {map}, .table = options.weights, .values = {}};
  if (s.with_keys) source.for_keys = source.for_queries;
  if (s.with_values) {
    const std::int64_t value_heads =
        schemes::check_vectors(Shaw::name, {"table for values", "value_weights"}, options.value_weights, rows);
    if (value_heads != heads) {
      raise(fmt::format("shaw: the two tables must have the same number of heads but have {} and {}", heads,
                        value_heads));
    }
    source.for_values = {.axes = {std::move(map)}, .table = options.value_weights, .values = {}};
  }
  return {heads, std::move(source)};
}

}  // namespace posenc
