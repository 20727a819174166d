#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "posenc/tensor.h"

namespace posenc {

/// An element type of .safetensors. Some are narrower than a byte.
struct SafetensorsDtype {
  std::string_view name;  ///< static
  std::int64_t bits = 0;
  std::optional<DataType> type;
};

/// The longest tensor name that is read or written, in bytes.
inline constexpr std::size_t kLongestSafetensorsName = 65'536;

/// nullptr if there is none with this name.
const SafetensorsDtype* find_safetensors_dtype(std::string_view name);
const SafetensorsDtype& safetensors_dtype_of(DataType type);

/// Bytes of all elements; -1 past 2^63, -2 if the last byte is not full. An extent of 0 does not allow the others to
/// overflow: strides must fit as well.
std::int64_t safetensors_bytes(const SafetensorsDtype& dtype, const Extents& shape);

}  // namespace posenc
