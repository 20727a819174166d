#include "terms/distance_table/distance_table.h"

#include <fmt/format.h>

#include "forms/checks.h"
#include "posenc/error.h"
#include "terms/tables.h"

namespace posenc {

ConstTensorView table_of(const DistanceTable& source, std::int64_t heads) noexcept {
  if (source.weights.data != nullptr) return source.weights;
  const std::int64_t rows = heads > 0 ? static_cast<std::int64_t>(source.values.size()) / heads : 0;
  return view(source.values.data(), {rows, heads});
}

namespace terms {

void Term<DistanceTable>::check(std::string_view verb, const DistanceTable& source, std::int64_t heads) {
  if (source.axes.empty() || source.axes.size() > 255) {
    raise(fmt::format("{}: the form must have 1 to 255 axes but has {}", verb, source.axes.size()));
  }
  const ConstTensorView table = table_of(source, heads);
  check_tensor(verb, "the form's table", table, 2, 2, "2 axes, rows and heads");
  check_heads(verb, heads, table.shape[1]);
  Range named{0, 0};
  for (const DistanceMap& map : source.axes) {
    const Range entries = check_map(verb, map);
    if (entries.least < -kPositionLimit || entries.most > kPositionLimit) {
      raise(fmt::format("{}: the form names row {}", verb, entries.least < 0 ? entries.least : entries.most));
    }
    named.least += entries.least;
    named.most += entries.most;
  }
  check_rows(verb, named, table.shape[0]);
}

DistanceTable Term<DistanceTable>::one_head(const DistanceTable& all, std::int64_t heads, std::int64_t head) {
  DistanceTable one = all;
  if (one.weights.data != nullptr) {
    one.weights.data =
        static_cast<const std::byte*>(one.weights.data) + head * one.weights.strides[1] * size_of(one.weights.type);
    one.weights.shape[1] = 1;
    return one;
  }
  const auto stride = static_cast<std::size_t>(heads), rows = one.values.size() / stride;
  for (std::size_t row = 0; row < rows; ++row) {
    one.values[row] = all.values[row * stride + static_cast<std::size_t>(head)];
  }
  one.values.resize(rows);
  return one;
}

void Term<DistanceTable>::bind(DistanceTable& source, const Tables& given) { bind_only(source.weights, given); }

}  // namespace terms
}  // namespace posenc
