#pragma once

#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <string_view>

#include "numerics/real.h"
#include "posenc/error.h"
#include "posenc/prepare_options.h"
#include "posenc/tensor.h"

namespace posenc::schemes {

/// The largest width of a scheme; a larger one is a mistake, and its frequencies would exhaust the memory.
inline constexpr std::int64_t kWidthLimit = std::int64_t{1} << 20;
inline constexpr std::int64_t kHeadLimit = 65536;
/// The greatest distance that has its own entry in a map or table.
inline constexpr std::int64_t kDistanceLimit = std::int64_t{1} << 20;

inline void check_between(std::string_view scheme, std::string_view field, std::int64_t value, std::int64_t low,
                          std::int64_t high) {
  if (value >= low && value <= high) return;
  raise(fmt::format("{}: {} must be between {} and {} but is {}", scheme, field, low, high, value));
}

inline void check_finite(std::string_view scheme, std::string_view field, double value) {
  if (!std::isfinite(value)) raise(fmt::format("{}: {} must be a finite number but is {}", scheme, field, value));
}

/// The divisor of an axis's positions; 1 if they are integers. Float32 angles do not support a division.
inline std::int64_t denominator_of(std::string_view scheme, const PrepareOptions& options, std::size_t axis,
                                   std::size_t axes) {
  const std::vector<std::int64_t>& all = options.denominators;
  if (all.empty()) return 1;
  if (all.size() != 1 && all.size() != axes) {
    raise(fmt::format("{}: there must be 1 denominator or one for each of {} axes but there are {}", scheme, axes,
                      all.size()));
  }
  const std::int64_t denominator = all[all.size() == 1 ? 0 : axis];
  check_between(scheme, "a denominator of positions", denominator, 1, (std::int64_t{1} << 62) - 1);
  if (denominator != 1 && options.numerics != Numerics::kExact) {
    raise(fmt::format("{}: {} takes whole positions, not fractions", scheme, name_of(options.numerics)));
  }
  return denominator;
}

/// Divided only if positions are fractions: a division takes thirty times as long as a product.
inline numerics::Real over(const numerics::Real& radians, std::int64_t denominator) {
  return denominator == 1 ? radians : radians / denominator;
}

/// The caller's table, of exactly this shape.
inline ConstTensorView table_of_shape(std::string_view scheme, const ConstTensorView& table, const Extents& shape) {
  if (table.data == nullptr) {
    raise(fmt::format("{}: the trained table {} is missing: pass it as weights", scheme, to_string(shape)));
  }
  if (table.shape != shape) {
    raise(fmt::format("{}: the table must be {} but is {}", scheme, to_string(shape), to_string(table.shape)));
  }
  return table;
}

/// What a table of vectors is for, and the argument that supplies it, in every language's API.
struct VectorTable {
  std::string_view what = "table", argument = "weights";
};

/// The caller's vectors, [rows, features] or [heads, rows, features]. Returns the heads, 0 if all share them.
inline std::int64_t check_vectors(std::string_view scheme, const VectorTable& kind, const ConstTensorView& table,
                                  std::int64_t rows) {
  const std::string_view what = kind.what;
  if (table.data == nullptr) {
    raise(fmt::format("{}: the trained {} of {} rows is missing: pass it as {}", scheme, what, rows, kind.argument));
  }
  const int rank = table.shape.rank;
  if ((rank != 2 && rank != 3) || table.shape.back(1) != rows || table.shape.back(0) < 1) {
    raise(fmt::format("{}: the {} must be [{}, features] or [heads, {}, features] but is {}", scheme, what, rows,
                      rows, to_string(table.shape)));
  }
  return rank == 3 ? table.shape[0] : 0;
}

}  // namespace posenc::schemes
