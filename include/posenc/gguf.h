#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <variant>
#include <vector>

#include "posenc/tensor.h"

namespace posenc {

/// The types of a value in a .gguf file, with the codes used there.
enum class GgufType : std::uint32_t {
  kU8 = 0,
  kI8,
  kU16,
  kI16,
  kU32,
  kI32,
  kF32,
  kBool,
  kString,
  kArray,
  kU64,
  kI64,
  kF64
};

/// Elements of one type, none of which is an array. They have been checked, and are decoded only when needed.
struct GgufArray {
  GgufType type = GgufType::kU8;
  std::int64_t count = 0;
  std::span<const std::byte> bytes;
};

/// A value of the metadata. Signed integers are std::int64_t, unsigned ones std::uint64_t, both floats are double.
struct GgufValue {
  GgufType type = GgufType::kU8;
  std::variant<std::uint64_t, std::int64_t, double, bool, std::string_view, GgufArray> value;

  template <class T> const T* as() const { return std::get_if<T>(&value); }
};

struct GgufEntry {
  std::string_view key;
  GgufValue value;
};

/// A tensor of a .gguf file: its name, type, shape and location.
struct GgufTensor {
  std::string_view name;
  std::string_view dtype;        ///< ggml's name for the type: "F32", "Q4_K"
  std::optional<DataType> type;  ///< empty for a type that posenc does not compute with
  Extents shape;                 ///< outermost first, the reverse of ggml's order
  std::int64_t offset = 0;       ///< of its first byte, from the start of the file
  std::int64_t bytes = 0;
};

/// What precedes the data of a .gguf file. Strings refer to the bytes that were read, which must outlive it.
struct GgufHead {
  std::uint32_t version = 3;
  std::vector<GgufEntry> metadata;
  std::vector<GgufTensor> tensors;
  std::int64_t alignment = 32;
  std::int64_t data_offset = 0;

  /// The value of this key, or nullptr.
  const GgufValue* find(std::string_view key) const;
  /// The tensor of this name, or nullptr.
  const GgufTensor* find_tensor(std::string_view name) const;
};

/// Reads the metadata and tensor infos of a whole file, mapped or in memory. Counts and lengths are checked against the
/// bytes that remain; whether the type and value of a key make sense is not checked here.
/// Range: versions 2 and 3, little-endian; keys up to 65,535 bytes, strings up to 16 MiB, 1 to 4 dimensions.
/// Throws: Error "byte OFFSET: WHAT (hint)".
GgufHead read_gguf_head(std::span<const std::byte> file);

/// The value as an integer or a number; empty if it is neither, or does not fit.
std::optional<std::int64_t> gguf_integer(const GgufValue& value);
std::optional<double> gguf_number(const GgufValue& value);
/// The elements of an array as values.
std::vector<GgufValue> gguf_elements(const GgufArray& array);

/// A tensor such as rope_freqs.weight, without copying.
/// Throws: Error for quantised types, for bytes outside `file`, and for elements that are not aligned to their size.
ConstTensorView gguf_view(std::span<const std::byte> file, const GgufTensor& tensor);

}  // namespace posenc
