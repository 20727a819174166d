#pragma once

#include <cstdint>
#include <limits>

#include "posenc/half.h"
#include "posenc/tensor.h"

namespace posenc::diagnosis {

/// The element at an offset, counted in elements. Integers give NaN: callers reject them first.
inline double element(const ConstTensorView& x, std::int64_t offset) {
  switch (x.type) {
    case DataType::kF32:
      return static_cast<double>(static_cast<const float*>(x.data)[offset]);
    case DataType::kF64:
      return static_cast<const double*>(x.data)[offset];
    case DataType::kF16:
      return to_double(static_cast<const Half*>(x.data)[offset]);
    case DataType::kBF16:
      return to_double(static_cast<const BFloat16*>(x.data)[offset]);
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
