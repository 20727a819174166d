#include "terms/distance_table/distance_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

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
namespace {

// The least and greatest distance between a query and a key it attends to.
struct Reach {
  std::int64_t low = 0, high = 0;
};
Reach reach_of(const Tokens& tokens) {
  Reach reach;
  bool is_first = true;
  for (const KeyRange& key_range : std::span(tokens.key_ranges, tokens.key_range_count)) {
    if (key_range.begin == key_range.end) continue;
    const std::int64_t low = key_range.diagonal + tokens.places.shift - (key_range.end - 1);
    const std::int64_t high = key_range.diagonal + tokens.places.shift - key_range.begin;
    reach.low = is_first ? low : std::min(reach.low, low);
    reach.high = is_first ? high : std::max(reach.high, high);
    is_first = false;
  }
  return reach;
}

// The table of one head, in units of log 2.
void fill_column(const ConstTensorView& table, std::int64_t h, AlignedVector<float>& column) {
  for (std::int64_t row = 0; row < table.shape[0]; ++row) {
    column[row] = static_cast<float>(kLog2E * numerics::table_element<double>(table, row, h));
  }
}

DistanceRow distance_row(const DistanceMap& map, const AlignedVector<float>& column, const Reach& reach,
                         std::int64_t padding) {
  const auto value = [&](std::int64_t x) { return column[entry_of(map, -x)]; };
  const std::int64_t last = last_of(map);
  DistanceRow row;
  row.low = std::clamp(-last, reach.low, reach.high);
  row.high = std::clamp(-map.first, reach.low, reach.high);
  // a run of equal values at either end becomes part of the tail
  while (row.low < row.high && value(row.low) == value(row.low + 1)) ++row.low;
  while (row.high > row.low && value(row.high) == value(row.high - 1)) --row.high;
  row.first = row.low - padding;
  row.values.resize(row.high - row.low + 1 + 2 * padding);
  float* const values = row.values.data();
  std::fill_n(values, padding, value(row.low));
  for (std::int64_t x = row.low; x <= row.high; ++x) values[x - row.first] = value(x);
  std::fill_n(values + (row.high + 1 - row.first), padding, value(row.high));
  return row;
}

}  // namespace

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

DistanceTable Term<DistanceTable>::some_heads(const DistanceTable& all, std::int64_t heads, const HeadRange& range) {
  DistanceTable some = all;
  if (some.weights.data != nullptr) {
    some.weights.data = static_cast<const std::byte*>(some.weights.data) +
                        range.first * some.weights.strides[1] * size_of(some.weights.type);
    some.weights.shape[1] = range.count;
    return some;
  }
  some.values.clear();
  for (auto row = all.values.begin(); row != all.values.end(); row += heads) {
    some.values.insert(some.values.end(), row + range.first, row + range.first + range.count);
  }
  return some;
}

void Term<DistanceTable>::bind(DistanceTable& source, const Tables& given) { bind_only(source.weights, given); }

std::optional<DistanceTiles> Term<DistanceTable>::tiles(const DistanceTable& source, const Tokens& tokens,
                                                        const TileExtents& extents) {
  if (!tokens.places.by_index) return std::nullopt;
  DistanceTiles tiles;
  const Reach seen = reach_of(tokens);
  const ConstTensorView table = table_of(source, extents.heads);
  AlignedVector<float> column(table.shape[0]);
  tiles.rows.reserve(extents.heads);
  for (std::int64_t h = 0; h < extents.heads; ++h) {
    fill_column(table, h, column);
    tiles.rows.push_back(distance_row(source.axes.front(), column, seen, 2 * extents.reach));
  }
  return tiles;
}

}  // namespace terms
}  // namespace posenc
