#pragma once

#include <cstddef>
#include <optional>

#include "terms/term.h"
#include "terms/tiles.h"

namespace posenc::terms {

template <> struct Term<Slopes> : TermDefaults {
  static constexpr std::string_view name = "slopes";

  static void check(std::string_view verb, const Slopes& source, std::int64_t heads);
  static Slopes some_heads(const Slopes& all, std::int64_t, const HeadRange& range) {
    const auto first = all.slopes.begin() + range.first;
    return {{first, first + range.count}};
  }
  static Cost cost(const Slopes&, const CostSizes& sizes) { return {.operations = 2 * sizes.keys, .numbers = 1}; }

  static constexpr bool is_of_distance(const Slopes&) { return true; }
  /// Subtracted from 0, so that a distance of 0 gives 0 and not −0.
  static double of_slope(double slope, std::int64_t distance) noexcept {
    return 0.0 - slope * static_cast<double>(distance < 0 ? -distance : distance);
  }
  static double value_at(const Slopes& source, std::int64_t, std::int64_t h, std::int64_t distance) noexcept {
    return of_slope(source.slopes[h], distance);
  }
  static double element(const Slopes& source, std::int64_t heads, const Score& at) noexcept {
    return value_at(source, heads, at.h, at.distance());
  }

  static std::optional<SlopeTiles> tiles(const Slopes& source, const Tokens& tokens, const TileExtents&);

  static Extents parameters(const Slopes&, std::int64_t heads) { return {heads}; }
  static std::int64_t head_parameters(const Slopes&, std::int64_t) { return 1; }
  static void add_gradient_at(const Slopes&, std::int64_t distance, double ds, double* sums) noexcept {
    sums[0] += ds * of_slope(1.0, distance);
  }
  static void add_gradient(const Slopes& source, std::int64_t, const Score& at, double ds, double* sums) noexcept {
    add_gradient_at(source, at.distance(), ds, sums);
  }
};

}  // namespace posenc::terms
