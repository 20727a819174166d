#pragma once

#include "numerics/narrow.h"
#include "posenc/tensor.h"

namespace posenc::numerics {

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

/// The same for a cache, whose elements may also have eight bits.
template <class Visitor> auto with_cache_type(DataType type, Visitor&& visit) {
  return type == DataType::kE4M3 ? visit(E4M3{}) : with_type(type, visit);
}

/// An element of the caller's table in the working type, rounded once.
template <class W> W table_element(const ConstTensorView& table, std::int64_t row, std::int64_t column) noexcept {
  const std::int64_t at = row * table.strides[0] + column * table.strides[1];
  return with_type(table.type,
                   [&](auto kind) { return narrow<W>(widen(static_cast<const decltype(kind)*>(table.data)[at])); });
}

}  // namespace posenc::numerics
