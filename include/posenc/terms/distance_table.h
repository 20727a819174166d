#pragma once

#include <cstdint>
#include <vector>

#include "posenc/tensor.h"
#include "posenc/terms/distance_map.h"
#include "posenc/terms/numbered.h"

namespace posenc {

/// table[row, h], where row is the sum of the entries of all axes: any bias that depends only on the distance.
struct DistanceTable {
  std::vector<DistanceMap> axes;  // one per position axis
  ConstTensorView weights;        // [rows, heads], the caller's; if it has no data:
  std::vector<double> values;     // [rows, heads], computed by the scheme
};
template <> struct NumberedTerm<1> { using Type = DistanceTable; };
/// The table of either kind: a view, valid as long as the memory it refers to.
ConstTensorView table_of(const DistanceTable& source, std::int64_t heads) noexcept;

}  // namespace posenc
