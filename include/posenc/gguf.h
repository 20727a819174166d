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

/// The types that a value of a .gguf file may have, with the numbers that stand there.
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

/// Elements of one type, none of which is an array. They were checked, and stay in the file until asked for.
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

/// A tensor of a .gguf file: where its bytes stand and what they are.
struct GgufTensor {
  std::string_view name;
  std::string_view dtype;        ///< as ggml says it: "F32", "Q4_K"
  std::optional<DataType> type;  ///< empty where it is a type that we do not compute with
  Extents shape;                 ///< outermost first, which is ggml's order reversed
  std::int64_t offset = 0;       ///< of its first byte, from the front of the file
  std::int64_t bytes = 0;
};

/// What stands before the data of a .gguf file. Texts are parts of the bytes that were read, which must outlive it.
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

/// Reads metadata and tensor infos of a file that is mapped or in memory as a whole. No count is believed that the
/// bytes which remain do not back. Whether a key has a type and value that make sense is for others to judge. Range:
/// versions 2 and 3, little-endian; keys up to 65,535 bytes, texts up to 16 MiB, 1 to 4 dimensions. Throws: Error
/// "byte OFFSET: WHAT (hint)".
GgufHead read_gguf_head(std::span<const std::byte> file);

/// The value as an integer or a number, or nothing where it is none (or past 2^63).
std::optional<std::int64_t> gguf_integer(const GgufValue& value);
std::optional<double> gguf_number(const GgufValue& value);
/// The elements of an array, each as a value of its own.
std::vector<GgufValue> gguf_elements(const GgufArray& array);

/// A tensor such as rope_freqs.weight, without copying.
/// Throws: Error for quantised types, for bytes outside of `file`, and for elements that do not stand at a multiple
/// of their size.
ConstTensorView gguf_view(std::span<const std::byte> file, const GgufTensor& tensor);

}  // namespace posenc
