#pragma once

#include <variant>

#include "kernels/job.h"
#include "numerics/narrow.h"
#include "numerics/radians.h"
#include "numerics/wave.h"

namespace posenc::kernels {

/// Calls visit(T{}) with the element type that `type` names.
template <class Visitor> auto with_type(DataType type, Visitor&& visit) {
  switch (type) {
    case DataType::kF64:
      return visit(double{});
    case DataType::kF16:
      return visit(Half{});
    case DataType::kBF16:
      return visit(BFloat16{});
    default:
      return visit(float{});
  }
}

/// Sums of T are made in this type.
template <class T> using Working = std::conditional_t<std::is_same_v<T, double>, double, float>;

/// The angle of one wave at one token.
inline numerics::Angle angle_of(const Waves& waves, std::size_t wave, const TokenPositions& positions, std::int64_t b,
                                std::int64_t t) noexcept {
  const std::uint8_t axis = waves.waves[wave].axis;
  const std::int64_t position = positions.at(b, t, axis);
  const std::vector<float>& factors = waves.float32_angles.factors;
  if (factors.empty()) return {waves.waves[wave].frequency, static_cast<std::uint64_t>(position)};
  auto radians = static_cast<float>(position);
  if (waves.float32_angles.chained) {
    std::size_t first = wave;
    while (first > 0 && waves.waves[first - 1].axis == axis) --first;
    for (; first < wave; ++first) radians *= factors[first];
  }
  return numerics::angle_from_radians(radians * factors[wave]);
}

/// An element of the caller's table in the working type, rounded once.
template <class W> W table_element(const ConstTensorView& table, std::int64_t row, std::int64_t column) noexcept {
  const std::int64_t at = row * table.strides[0] + column * table.strides[1];
  return with_type(table.type, [&](auto kind) {
    return numerics::narrow<W>(numerics::widen(static_cast<const decltype(kind)*>(table.data)[at]));
  });
}

inline double line_element(const Lines& lines, std::size_t column, std::int64_t position) noexcept {
  return lines.start[column] + static_cast<double>(position) * lines.step[column];
}

}  // namespace posenc::kernels
