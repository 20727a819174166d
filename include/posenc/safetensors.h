#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "posenc/byte_source.h"
#include "posenc/tensor.h"

namespace posenc {

/// A tensor of a .safetensors file: its name, type, shape and location.
struct SafetensorsTensor {
  std::string name = {};
  std::string_view dtype = {};        ///< as the file writes it: "F32", "BF16", "U8", "F8_E4M3"
  std::optional<DataType> type = {};  ///< empty for a type that posenc does not compute with
  Extents shape = {};
  std::int64_t offset = 0;  ///< of its first byte, from the start of the file
  std::int64_t bytes = 0;
};

/// What precedes the data of a .safetensors file.
struct SafetensorsHead {
  std::vector<SafetensorsTensor> tensors;  ///< in the order of their bytes
  std::vector<std::pair<std::string, std::string>> metadata;
  std::int64_t data_offset = 0;  ///< of the first tensor: 8 + the length of the header

  /// The tensor of this name, or nullptr.
  const SafetensorsTensor* find(std::string_view name) const;
};

/// Reads the head and checks it against the size of the file: each tensor begins where the last one ends, and the
/// last one ends where the file does; sizes follow from dtype and shape; names are unique. Range: headers up to
/// 100,000,000 bytes, 1,000,000 tensors, names up to 65,536 bytes, 8 dimensions. Throws: Error "byte OFFSET: WHAT
/// (hint)".
SafetensorsHead read_safetensors_head(const ByteSource& file);

/// A view of a tensor in a file that is entirely in memory; it is valid as long as that memory.
/// Throws: Error for a dtype that is not f32, f64, f16, bf16 or i64, for bytes outside `file`, and for elements that are
/// not aligned to their size (which old writers allow; copy such a tensor first).
ConstTensorView safetensors_view(std::span<const std::byte> file, const SafetensorsTensor& tensor);

/// The bytes that precede the data, a multiple of 8. Reads the metadata and each tensor's name, type (or else dtype) and
/// shape from the head; sorts the tensors, widest elements first and then by name, which keeps all of them aligned; and
/// fills in the rest. The data must follow in that order.
/// Throws: Error for an empty, too long or repeated name, an unknown dtype or an impossible shape.
std::string lay_out_safetensors(SafetensorsHead& head);

}  // namespace posenc
