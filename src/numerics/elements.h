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

/// The same for a cache, whose elements may also have eight bits: rows of these are of E4M3 or Q8Block.
template <class Visitor> auto with_cache_type(DataType type, Visitor&& visit) {
  return type == DataType::kE4M3   ? visit(E4M3{})
         : type == DataType::kQ8_0 ? visit(Q8Block{})
                                   : with_type(type, visit);
}

/// Element f of a row of a cache, exact.
template <class T> constexpr double element_of(const T* row, std::int64_t stride, std::int64_t f) {
  return widen(row[f * stride]);
}
constexpr double element_of(const Q8Block* row, std::int64_t, std::int64_t f) {
  const Q8Block& block = row[f / Q8Block::kElements];
  return widen(block.scale) * block.values[f % Q8Block::kElements];
}

/// An element of the caller's table in the working type, rounded once.
template <class W> W table_element(const ConstTensorView& table, std::int64_t row, std::int64_t column) noexcept {
  const std::int64_t at = row * table.strides[0] + column * table.strides[1];
  return with_type(table.type,
                   [&](auto kind) { return narrow<W>(widen(static_cast<const decltype(kind)*>(table.data)[at])); });
}

}  // namespace posenc::numerics
