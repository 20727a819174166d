#include "posenc/schemes/relative_logits.h"

#include <algorithm>

#include "schemes/check.h"

namespace posenc {

TrainedTable RelativeLogits::trained_table() const {
  return {{{"extent", std::clamp<std::int64_t>(extent, 0, std::int64_t{1} << 40)}, {"features"}}};
}

Bias prepare(const RelativeLogits& s, const PrepareOptions& options) {
  schemes::check_between(RelativeLogits::name, "extent", s.extent, 1, schemes::kDistanceLimit);
  const std::int64_t heads = schemes::check_vectors(RelativeLogits::name, {}, options.weights, s.extent);
  DistanceMap map;
  map.first = -s.extent;
  map.entries.push_back(kNoRow);
  for (std::int64_t row = s.extent - 1; row >= 0; --row) map.entries.push_back(row);
  map.entries.push_back(kNoRow);
  DistanceVectors source;
  source.for_queries = {.axes = {std::move(map)}, .table = options.weights, .values = {}};
  source.is_scaled = false;
  source.has_own_queries = true;
  return {heads, std::move(source)};
}

}  // namespace posenc
