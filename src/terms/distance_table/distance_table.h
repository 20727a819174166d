#pragma once

#include <cstddef>
#include <optional>

#include "numerics/elements.h"
#include "terms/distance_maps.h"
#include "terms/term.h"
#include "terms/tiles.h"

namespace posenc::terms {

/// The row of a table that a query and a key read.
inline std::int64_t row_of(const DistanceTable& source, const Score& at) noexcept {
  std::int64_t row = 0;
  for (std::size_t axis = 0; axis < source.axes.size(); ++axis) {
    row += entry_of(source.axes[axis], at.distance(static_cast<int>(axis)));
  }
  return row;
}

template <> struct Term<DistanceTable> : TermDefaults {
  static constexpr std::string_view name = "distance-table";

  static void check(std::string_view verb, const DistanceTable& source, std::int64_t heads);
  static DistanceTable some_heads(const DistanceTable& all, std::int64_t heads, const HeadRange& range);
  static Cost cost(const DistanceTable&, const CostSizes& sizes) {
    return {.operations = sizes.keys, .numbers = sizes.keys};
  }
  static void each_map(const DistanceTable& source, const auto& visit) { visit(source.axes); }
  static ConstTensorView weights(const DistanceTable& source) { return source.weights; }
  static void bind(DistanceTable& source, const Tables& given);

  static bool is_of_distance(const DistanceTable& source) { return source.axes.size() == 1; }
  static double value_at(const DistanceTable& source, std::int64_t heads, std::int64_t h,
                         std::int64_t distance) noexcept {
    return numerics::table_element<double>(table_of(source, heads), entry_of(source.axes.front(), distance), h);
  }
  static double element(const DistanceTable& source, std::int64_t heads, const Score& at) noexcept {
    return numerics::table_element<double>(table_of(source, heads), row_of(source, at), at.h);
  }

  static std::optional<DistanceTiles> tiles(const DistanceTable& source, const Tokens& tokens,
                                            const TileExtents& extents);

  static Extents parameters(const DistanceTable& source, std::int64_t heads) { return table_of(source, heads).shape; }
  static std::int64_t head_parameters(const DistanceTable& source, std::int64_t heads) {
    return table_of(source, heads).shape[0];
  }
  static void add_gradient_at(const DistanceTable& source, std::int64_t distance, double ds, double* sums) noexcept {
    sums[entry_of(source.axes.front(), distance)] += ds;
  }
  static void add_gradient(const DistanceTable& source, std::int64_t, const Score& at, double ds,
                           double* sums) noexcept {
    sums[row_of(source, at)] += ds;
  }
};

}  // namespace posenc::terms
