#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "forms/checks.h"
#include "numerics/elements.h"
#include "posenc/forms.h"
#include "terms/term.h"

namespace posenc::terms {

/// [heads, rows, features] as the [rows, features] of one head; [rows, features] is shared by all heads.
inline ConstTensorView rows_of_head(ConstTensorView table, std::int64_t head) noexcept {
  if (table.data == nullptr || table.shape.rank != 3) return table;
  table.data = static_cast<const std::byte*>(table.data) + head * table.strides[0] * size_of(table.type);
  table.shape = {table.shape[1], table.shape[2]};
  table.strides = {table.strides[1], table.strides[2]};
  return table;
}

/// [heads, rows, features] of some heads; [rows, features] is shared by all heads.
inline ConstTensorView rows_of_heads(ConstTensorView table, const HeadRange& range) noexcept {
  if (table.data == nullptr || table.shape.rank != 3) return table;
  table.data = static_cast<const std::byte*>(table.data) + range.first * table.strides[0] * size_of(table.type);
  table.shape[0] = range.count;
  return table;
}

/// Element `f` of a row of vectors for head h.
inline double vector_element(const ConstTensorView& table, std::int64_t h, std::int64_t row, std::int64_t f) {
  return numerics::table_element<double>(rows_of_head(table, h), row, f);
}

// Each of these throws an Error, which begins with the verb, or with "bind".

void check_size(std::string_view verb, std::string_view what, std::size_t size, std::size_t wanted);
/// Checks that a map can be read, and returns its least and greatest entry.
struct Range {
  std::int64_t least, most;
};
Range check_map(std::string_view verb, const DistanceMap& map);
/// Checks that the rows a form may refer to are in its table.
void check_rows(std::string_view verb, const Range& named, std::int64_t rows);
/// Checks that a table has as many heads as the form; `found`: those of the table.
void check_heads(std::string_view verb, std::int64_t heads, std::int64_t found);
/// Checks that a table, if there is one, has the features of `what`.
void check_vector_features(std::string_view verb, const ConstTensorView& table, std::int64_t features,
                           std::string_view what);
/// For bind: the form reads a single table.
void bind_only(ConstTensorView& table, const Tables& given);

}  // namespace posenc::terms
