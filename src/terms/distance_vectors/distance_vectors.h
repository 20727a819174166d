#pragma once

#include "terms/distance_maps.h"
#include "terms/tables.h"
#include "terms/term.h"

namespace posenc::terms {

/// Products with q and k enter the scores before the softcap, and vectors are added to values: engines do both, not
/// through element().
template <> struct Term<DistanceVectors> : TermDefaults {
  static constexpr std::string_view name = "distance-vectors";
  static constexpr bool is_in_elements = false;
  static constexpr std::string_view only_attention =
      "vectors by distance are dotted with q and k, so only attention can add them";

  static void check(std::string_view verb, const DistanceVectors& source, std::int64_t heads);
  static DistanceVectors some_heads(const DistanceVectors& all, std::int64_t heads, const HeadRange& range);
  static Cost cost(const DistanceVectors& source, const CostSizes& sizes);
  static void bind(DistanceVectors& source, const Tables& given);
  static double element(const DistanceVectors&, std::int64_t, const Score&) noexcept { return 0; }
  /// Those of the vectors that there are.
  static void each_map(const DistanceVectors& source, const auto& visit) {
    for (const VectorsByDistance* const part : {&source.for_queries, &source.for_keys, &source.for_values}) {
      if (table_of(*part).data != nullptr) visit(part->axes);
    }
  }

  static BiasInputs inputs(const DistanceVectors& source) {
    if (!source.has_own_queries) return {};
    return {.position_queries = true, .position_query_features = query_features_of(source)};
  }
  static double softmax_factor(const DistanceVectors& source) { return source.softmax_factor; }
  static double vector_scale(const DistanceVectors& source, double scale) { return source.is_scaled ? scale : 1.0; }
  static VectorTables vectors(const DistanceVectors& source, std::int64_t heads);
  static std::int64_t features(const DistanceVectors& source);
  static void check_features(std::string_view verb, const DistanceVectors& source, std::int64_t q, std::int64_t v);
  static DistanceVectors of_scores(DistanceVectors source) {
    source.for_values = {};
    return source;
  }
};

}  // namespace posenc::terms
