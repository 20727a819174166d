#pragma once

#if (defined(_MSVC_LANG) ? _MSVC_LANG : __cplusplus) < 202002L
#error "posenc needs C++20: compile with -std=c++20 or later"
#endif

#include <cstdint>
#include <string_view>

#include "posenc/half_types.h"

namespace posenc {

/// Element types. f16 and bf16 are stored as their 16 bits, bool as one byte (0: false). Only masks may be bool, only caches
/// of keys and values e4m3 or q8_0.
///
/// q8_0 stores blocks of 32 elements of the last axis (Q8Block). Shapes and strides count elements, as for every type: the last
/// axis is contiguous, and it and all other strides are multiples of 32, so that {pages, heads, page size, 128} with dense
/// strides is ggml's memory, 136 bytes for each token and head.
enum class DataType : std::uint8_t { kF32, kF64, kF16, kBF16, kI64, kBool, kE4M3, kQ8_0 };

template <class T> constexpr DataType data_type_of();
template <> constexpr DataType data_type_of<float>() { return DataType::kF32; }
template <> constexpr DataType data_type_of<double>() { return DataType::kF64; }
template <> constexpr DataType data_type_of<Half>() { return DataType::kF16; }
template <> constexpr DataType data_type_of<BFloat16>() { return DataType::kBF16; }
template <> constexpr DataType data_type_of<std::int64_t>() { return DataType::kI64; }
template <> constexpr DataType data_type_of<E4M3>() { return DataType::kE4M3; }
template <> constexpr DataType data_type_of<Q8Block>() { return DataType::kQ8_0; }
template <> constexpr DataType data_type_of<bool>() { return DataType::kBool; }
template <> constexpr DataType data_type_of<std::uint8_t>() { return DataType::kBool; }

/// "f32", "f64", "f16", "bf16", "i64", "bool", "e4m3", "q8_0".
std::string_view name_of(DataType type) noexcept;
/// The elements that are stored together: 32 for q8_0, else 1.
constexpr std::int64_t elements_of_block(DataType type) noexcept {
  return type == DataType::kQ8_0 ? Q8Block::kElements : 1;
}
/// The size in bytes of an element; of q8_0, of a block.
std::int64_t size_of(DataType type) noexcept;
/// Throws: Error for any other name.
DataType data_type_from(std::string_view name);

}  // namespace posenc
