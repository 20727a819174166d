#pragma once

#include <cstdint>
#include <string_view>

#include "posenc/tensor.h"

namespace posenc {

/// Whether only caches may have the type: their elements are rotated before they are written, and not afterwards.
constexpr bool is_of_8_bits(DataType type) noexcept { return type == DataType::kE4M3 || type == DataType::kQ8_0; }

/// The types that a tensor may have: those of numbers, and with `kOfCache` e4m3 and q8_0 too.
enum class Types : std::uint8_t { kOfNumbers, kOfCache };

/// Checks rank, strides, data and type of a tensor; returns its number of elements. `axes` describes it in words.
/// Throws: Error that begins with the verb.
std::int64_t check_tensor(std::string_view verb, std::string_view what, const ConstTensorView& view, int least_rank,
                          int most_rank, std::string_view axes, Types types = Types::kOfNumbers);

/// The same memory with blocks in place of elements; for types that have none, the same view. Of checked views, or if the
/// strides are whole blocks.
template <class Void> BasicTensorView<Void> in_blocks(BasicTensorView<Void> view) {
  const std::int64_t block = elements_of_block(view.type);
  if (block == 1) return view;
  const int last = view.shape.rank - 1;
  for (int axis = 0; axis < last; ++axis) view.strides[axis] /= block;
  if (last >= 0) view.shape[last] /= block;
  return view;
}

/// Checks that the device is one, and that the strides stay within the address space, so that sums of them do not
/// overflow. No extent may be negative. Throws: Error that begins with the verb.
void check_reach(std::string_view verb, std::string_view what, const ConstTensorView& view);

/// For slice_heads: checks that heads first … first + count − 1 are among `heads`; 0: any number. Throws: Error.
void check_head_slice(std::int64_t first, std::int64_t count, std::int64_t heads);

/// For bind: replaces a table by one of the same shape. Throws: Error if there is none, or the shapes differ.
void replace_table(ConstTensorView& table, const ConstTensorView& given, std::string_view what);

}  // namespace posenc
