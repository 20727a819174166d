#pragma once

#if (defined(_MSVC_LANG) ? _MSVC_LANG : __cplusplus) < 202002L
#error "posenc needs C++20: compile with -std=c++20 or later"
#endif

#include <cstdint>
#include <string_view>

#include "posenc/half_types.h"

namespace posenc {

/// Element types. f16 and bf16 are stored as their 16 bits, bool as one byte (0: false). Only masks may be bool, only caches
/// of keys and values e4m3.
enum class DataType : std::uint8_t { kF32, kF64, kF16, kBF16, kI64, kBool, kE4M3 };

template <class T> constexpr DataType data_type_of();
template <> constexpr DataType data_type_of<float>() { return DataType::kF32; }
template <> constexpr DataType data_type_of<double>() { return DataType::kF64; }
template <> constexpr DataType data_type_of<Half>() { return DataType::kF16; }
template <> constexpr DataType data_type_of<BFloat16>() { return DataType::kBF16; }
template <> constexpr DataType data_type_of<std::int64_t>() { return DataType::kI64; }
template <> constexpr DataType data_type_of<E4M3>() { return DataType::kE4M3; }
template <> constexpr DataType data_type_of<bool>() { return DataType::kBool; }
template <> constexpr DataType data_type_of<std::uint8_t>() { return DataType::kBool; }

/// "f32", "f64", "f16", "bf16", "i64", "bool", "e4m3".
std::string_view name_of(DataType type) noexcept;
std::int64_t size_of(DataType type) noexcept;
/// Throws: Error for any other name.
DataType data_type_from(std::string_view name);

}  // namespace posenc
