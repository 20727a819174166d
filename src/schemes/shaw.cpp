#include "posenc/schemes/shaw.h"

#include <algorithm>

#include "schemes/check.h"

namespace posenc {

TrainedTable Shaw::trained_table() const {
  // of fields that prepare() refuses, no more than fits
  constexpr std::int64_t kMost = std::int64_t{1} << 40;
  return {{{"rows", std::clamp(left, -kMost, kMost) + std::clamp(right, -kMost, kMost) + 1}, {"features"}}};
}

Bias prepare(const Shaw& s, const Situation& now) {
  schemes::check_between(Shaw::name, "left", s.left, 0, schemes::kDistanceLimit);
  schemes::check_between(Shaw::name, "right", s.right, 0, schemes::kDistanceLimit);
  const std::int64_t rows = s.left + s.right + 1;
  const std::int64_t heads = schemes::check_vectors(Shaw::name, "table", now.weights, rows);

  VectorsByDistance vectors;
  vectors.rows.first = -s.left;
  for (std::int64_t row = 0; row < rows; ++row) {
    vectors.rows.entries.push_back(s.order == DistanceOrder::kKeyMinusQuery ? row : rows - 1 - row);
  }
  vectors.table = now.weights;
  DistanceVectors source{vectors, {}, 1.0};
  if (s.with_keys) source.for_keys = std::move(vectors);
  return {heads, std::move(source)};
}

}  // namespace posenc
