#include "terms/distance_vectors/distance_vectors.h"

#include <fmt/format.h>

#include <utility>

#include "forms/checks.h"
#include "posenc/error.h"

namespace posenc {

ConstTensorView table_of(const VectorsByDistance& vectors) noexcept {
  if (vectors.table.data != nullptr || vectors.values.empty()) return vectors.table;
  return view(vectors.values.data(), vectors.shape);
}

std::int64_t query_features_of(const DistanceVectors& source) noexcept {
  const ConstTensorView table = table_of(source.for_queries);
  return table.data == nullptr ? 0 : table.shape.back(0);
}

namespace terms {
namespace {

VectorsByDistance vectors_of_heads(const VectorsByDistance& all, const HeadRange& range) {
  VectorsByDistance some = all;
  some.table = rows_of_heads(all.table, range);
  if (some.table.data == nullptr && !some.values.empty() && some.shape.rank == 3) {
    some.shape[0] = range.count;
    const auto first = all.values.begin() + range.first * all.shape[1] * all.shape[2];
    some.values.assign(first, first + count_of(some.shape));
  }
  return some;
}

}  // namespace

void Term<DistanceVectors>::check(std::string_view verb, const DistanceVectors& source, std::int64_t heads) {
  std::size_t axes = 0;
  for (const VectorsByDistance* vectors : {&source.for_queries, &source.for_keys, &source.for_values}) {
    const ConstTensorView table = table_of(*vectors);
    if (table.data == nullptr) continue;
    check_tensor(verb, "the form's table", table, 2, 3, "2 or 3 axes, heads, rows and features");
    if (vectors->axes.empty() || vectors->axes.size() > 255 || (axes != 0 && vectors->axes.size() != axes)) {
      raise(fmt::format("{}: the form's vectors must have 1 to 255 axes, as many each, but have {}", verb,
                        vectors->axes.size()));
    }
    axes = vectors->axes.size();
    for (const DistanceMap& map : vectors->axes) {
      const Range entries = check_map(verb, map);
      check_rows(verb, {entries.least == kNoRow ? 0 : entries.least, entries.most}, table.shape.back(1));
    }
    if (table.shape.rank == 3) check_heads(verb, heads, table.shape[0]);
  }
  if (source.query_offsets.empty()) return;
  check_size(verb, "offsets of queries", source.query_offsets.size(), heads * query_features_of(source));
}

DistanceVectors Term<DistanceVectors>::some_heads(const DistanceVectors& all, std::int64_t heads,
                                                  const HeadRange& range) {
  DistanceVectors some = all;
  some.for_queries = vectors_of_heads(all.for_queries, range);
  some.for_keys = vectors_of_heads(all.for_keys, range);
  some.for_values = vectors_of_heads(all.for_values, range);
  if (!all.query_offsets.empty() && heads > 0) {
    const auto features = static_cast<std::ptrdiff_t>(all.query_offsets.size()) / heads;
    const auto first = all.query_offsets.begin() + range.first * features;
    some.query_offsets.assign(first, first + range.count * features);
  }
  return some;
}

Cost Term<DistanceVectors>::cost(const DistanceVectors& source, const CostSizes& sizes) {
  Cost cost;
  each_map(source, [&](const auto&) {
    cost.operations += 2 * sizes.features * sizes.keys;  // a dot product, or what is added to a sum of values
    cost.numbers += sizes.features * sizes.keys;
  });
  if (!source.query_offsets.empty()) {
    cost.operations += sizes.features;
    cost.numbers += sizes.features;
  }
  return cost;
}

void Term<DistanceVectors>::bind(DistanceVectors& source, const Tables& given) {
  DistanceVectors bound = source;
  if (bound.for_queries.table.data == nullptr && !bound.for_queries.values.empty()) {
    raise("bind: the form's vectors were computed from the weights: prepare it again");
  }
  replace_table(bound.for_queries.table, given.weights, "weights");
  if (given.key_weights.data != nullptr) replace_table(bound.for_keys.table, given.key_weights, "key_weights");
  if (given.value_weights.data != nullptr)
    replace_table(bound.for_values.table, given.value_weights, "value_weights");
  source = std::move(bound);
}

VectorTables Term<DistanceVectors>::vectors(const DistanceVectors& source, std::int64_t heads) {
  VectorTables tables{table_of(source.for_queries), table_of(source.for_keys), table_of(source.for_values)};
  if (!source.query_offsets.empty()) tables.offsets = {heads, query_features_of(source)};
  return tables;
}

std::int64_t Term<DistanceVectors>::features(const DistanceVectors& source) {
  const std::int64_t of_queries = source.has_own_queries ? 0 : query_features_of(source);
  if (of_queries != 0) return of_queries;
  const ConstTensorView table = table_of(source.for_keys);
  return table.data == nullptr ? 0 : table.shape.back(0);
}

void Term<DistanceVectors>::check_features(std::string_view verb, const DistanceVectors& source, std::int64_t q,
                                           std::int64_t v) {
  check_vector_features(verb, table_of(source.for_keys), q, "k");
  check_vector_features(verb, table_of(source.for_values), v, "v");
  if (!source.has_own_queries) check_vector_features(verb, table_of(source.for_queries), q, "q");
}

}  // namespace terms
}  // namespace posenc
