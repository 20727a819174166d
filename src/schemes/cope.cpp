#include "posenc/schemes/cope.h"

#include <algorithm>

#include "schemes/check.h"

namespace posenc {

TrainedTable Cope::trained_table() const {
  return {{{"rows", std::clamp<std::int64_t>(rows, 0, std::int64_t{1} << 40)}, {"features"}}};
}

Bias prepare(const Cope& s, const PrepareOptions& options) {
  schemes::check_between(Cope::name, "rows", s.rows, 1, schemes::kDistanceLimit);
  const std::int64_t heads = schemes::check_vectors(Cope::name, {}, options.weights, s.rows);
  return {heads, CountedGates{options.weights}};
}

}  // namespace posenc
