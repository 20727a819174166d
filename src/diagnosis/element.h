#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "posenc/tensor.h"

namespace posenc::diagnosis {

inline double from_half(std::uint16_t bits) {
  const int exponent = (bits >> 10) & 31, fraction = bits & 1023;
  const double sign = (bits & 0x8000) != 0 ? -1 : 1;
  if (exponent == 31) {
    return fraction == 0 ? sign * std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN();
  }
  return sign * (exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25));
}

/// The element at an offset, counted in elements. Integers are NaN: callers refuse them first.
inline double element(const ConstTensorView& x, std::int64_t offset) {
  switch (x.type) {
    case DataType::kF32:
      return static_cast<double>(static_cast<const float*>(x.data)[offset]);
    case DataType::kF64:
      return static_cast<const double*>(x.data)[offset];
    case DataType::kF16:
      return from_half(static_cast<const Half*>(x.data)[offset].bits);
    case DataType::kBF16: {
      const std::uint32_t bits = static_cast<const BFloat16*>(x.data)[offset].bits;
      return static_cast<double>(std::bit_cast<float>(bits << 16));
    }
    default:
      return std::numeric_limits<double>::quiet_NaN();
  }
}

/// The index of element `number` of a dense array of this shape, outermost first.
inline Extents index_of(std::int64_t number, const Extents& shape) {
  Extents index = shape;
  for (int axis = shape.rank - 1; axis >= 0; --axis) {
    index[axis] = number % shape[axis];
    number /= shape[axis];
  }
  return index;
}

inline std::int64_t offset_of(const Extents& index, const Extents& strides) {
  std::int64_t offset = 0;
  for (int axis = 0; axis < index.rank; ++axis) offset += index[axis] * strides[axis];
  return offset;
}

}  // namespace posenc::diagnosis
