#include "terms/tables.h"

#include <fmt/format.h>

#include <algorithm>

#include "posenc/error.h"

namespace posenc::terms {

void TermDefaults::refuse_tables() { raise("bind: the form reads no weights"); }

void check_size(std::string_view verb, std::string_view what, std::size_t size, std::size_t wanted) {
  if (size != wanted) raise(fmt::format("{}: the form must have {} {} but has {}", verb, wanted, what, size));
}

Range check_map(std::string_view verb, const DistanceMap& map) {
  if (map.entries.empty()) raise(fmt::format("{}: the form has an empty map of distances", verb));
  if (map.first < -kPositionLimit || map.first > kPositionLimit) {
    raise(fmt::format("{}: the form's first distance must be within 2^53 but is {}", verb, map.first));
  }
  const auto [least, most] = std::minmax_element(map.entries.begin(), map.entries.end());
  return {*least, *most};
}

void check_rows(std::string_view verb, const Range& named, std::int64_t rows) {
  if (named.least >= 0 && named.most < rows) return;
  raise(fmt::format("{}: the form names rows {} to {} of a table with {}", verb, named.least, named.most, rows));
}

void check_heads(std::string_view verb, std::int64_t heads, std::int64_t found) {
  if (found != heads) raise(fmt::format("{}: the form has {} heads but its table has {}", verb, heads, found));
}

void check_vector_features(std::string_view verb, const ConstTensorView& table, std::int64_t features,
                           std::string_view what) {
  if (table.data == nullptr || table.shape.back(0) == features) return;
  raise(fmt::format("{}: the form's vectors have {} features but {} has {}", verb, table.shape.back(0), what,
                    features));
}

void bind_only(ConstTensorView& table, const Tables& given) {
  if (given.key_weights.data != nullptr) raise("bind: the form reads no key_weights");
  if (given.value_weights.data != nullptr) raise("bind: the form reads no value_weights");
  replace_table(table, given.weights, "weights");
}

}  // namespace posenc::terms
