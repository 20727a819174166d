#pragma once

#include <cstdint>
#include <string_view>

#include "posenc/tensor.h"

namespace posenc {

/// The types that a tensor may have: those of numbers, and with `kOfCache` e4m3 too.
enum class Types : std::uint8_t { kOfNumbers, kOfCache };

/// Checks rank, strides, data and type of a tensor; returns its number of elements. `axes` describes it in words.
/// Throws: Error that begins with the verb.
std::int64_t check_tensor(std::string_view verb, std::string_view what, const ConstTensorView& view, int least_rank,
                          int most_rank, std::string_view axes, Types types = Types::kOfNumbers);

/// Checks that the device is one, and that the strides stay within the address space, so that sums of them do not
/// overflow. No extent may be negative. Throws: Error that begins with the verb.
void check_reach(std::string_view verb, std::string_view what, const ConstTensorView& view);

/// For slice_heads: checks that heads first … first + count − 1 are among `heads`; 0: any number. Throws: Error.
void check_head_slice(std::int64_t first, std::int64_t count, std::int64_t heads);

/// For bind: replaces a table by one of the same shape. Throws: Error if there is none, or the shapes differ.
void replace_table(ConstTensorView& table, const ConstTensorView& given, std::string_view what);

}  // namespace posenc
