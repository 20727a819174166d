#pragma once

#include <cstdint>
#include <vector>

#include "posenc/tensor.h"
#include "posenc/terms/distance_map.h"
#include "posenc/terms/numbered.h"

namespace posenc {

/// The map entry of a distance without a vector: nothing is added there.
inline constexpr std::int64_t kNoRow = -1;

/// Vectors selected by distance: each axis selects one row of the table, or none, and the rows are summed.
struct VectorsByDistance {
  std::vector<DistanceMap> axes;  // one per position axis
  ConstTensorView table;          // [rows, features], shared by all heads, or [heads, rows, features]; the caller's
  std::vector<double> values;     // used if `table` has no data: computed by the scheme; both empty: no vectors
  Extents shape = {};             // of the values
};
/// The table of either kind, without data if there is none: a view, valid as long as the memory it refers to.
ConstTensorView table_of(const VectorsByDistance& vectors) noexcept;

/// score(m, n) = factor · scale · (q_m·k_n + (q_m + c)·A[δ] + k_n·B[δ]),   out_m = Σ_n weight(m, n) · (v_n + C[δ])
/// Needs q and k, so only attention can add it (Shaw, DeBERTa, Transformer-XL).
struct DistanceVectors {
  VectorsByDistance for_queries;           // A
  VectorsByDistance for_keys;              // B
  double softmax_factor = 1.0;             // `factor`: multiplies the scale of attention
  VectorsByDistance for_values = {};       // C, with as many features as the values
  std::vector<double> query_offsets = {};  // c, [heads, features]; empty: 0
  bool is_scaled = true;         // false: products with A and B are not multiplied by factor and scale (SAM)
  bool has_own_queries = false;  // A is dotted with AttentionOptions::position_queries instead of q (Inkling)
};
template <> struct NumberedTerm<2> { using Type = DistanceVectors; };
/// The number of features of the vectors dotted with queries; 0: there are none.
std::int64_t query_features_of(const DistanceVectors& source) noexcept;

}  // namespace posenc
