#include "formats/gguf_value.h"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <limits>

namespace posenc {
namespace {

constexpr std::uint32_t kTypes = 13;

// Bytes of one value, in the order of GgufType; for texts and arrays, the minimum.
constexpr std::array<std::uint64_t, kTypes> kLeastBytes = {1, 1, 2, 2, 4, 4, 4, 1, 8, 12, 8, 8, 8};

std::uint64_t least_bytes(GgufType type) { return kLeastBytes[static_cast<std::size_t>(type)]; }

GgufType take_type(ByteReader& reader) {
  const std::uint64_t at = reader.offset();
  const std::uint32_t type = reader.u32("the type of a value");
  if (type >= kTypes) raise_at(at, fmt::format("unknown value type {} (known: 0 to {})", type, kTypes - 1));
  return static_cast<GgufType>(type);
}

bool take_bool(ByteReader& reader) {
  const std::uint64_t at = reader.offset();
  const std::uint8_t byte = reader.u8("a bool");
  if (byte > 1) raise_at(at, fmt::format("a bool must be 0 or 1 but is {}", byte));
  return byte == 1;
}

GgufArray take_array(ByteReader& reader);

GgufValue take_value_of(ByteReader& reader, GgufType type) {
  switch (type) {
    case GgufType::kU8:
      return {type, std::uint64_t{reader.u8("a value")}};
    case GgufType::kU16:
      return {type, std::uint64_t{reader.u16("a value")}};
    case GgufType::kU32:
      return {type, std::uint64_t{reader.u32("a value")}};
    case GgufType::kU64:
      return {type, reader.u64("a value")};
    case GgufType::kI8:
      return {type, std::int64_t{static_cast<std::int8_t>(reader.u8("a value"))}};
    case GgufType::kI16:
      return {type, std::int64_t{static_cast<std::int16_t>(reader.u16("a value"))}};
    case GgufType::kI32:
      return {type, std::int64_t{static_cast<std::int32_t>(reader.u32("a value"))}};
    case GgufType::kI64:
      return {type, static_cast<std::int64_t>(reader.u64("a value"))};
    case GgufType::kF32:
      return {type, static_cast<double>(std::bit_cast<float>(reader.u32("a value")))};
    case GgufType::kF64:
      return {type, std::bit_cast<double>(reader.u64("a value"))};
    case GgufType::kBool:
      return {type, take_bool(reader)};
    case GgufType::kString:
      return {type, take_gguf_text(reader, kLongestGgufText, "a text")};
    case GgufType::kArray:
      return {type, take_array(reader)};
  }
  raise(fmt::format("gguf: unknown value type {}", static_cast<std::uint32_t>(type)));
}

GgufArray take_array(ByteReader& reader) {
  const std::uint64_t type_at = reader.offset();
  GgufArray array;
  array.type = take_type(reader);
  if (array.type == GgufType::kArray) raise_at(type_at, "an array must not hold arrays");
  const std::uint64_t count_at = reader.offset();
  const std::uint64_t count = reader.u64("the length of an array");
  const std::uint64_t size = least_bytes(array.type);
  if (count > reader.remaining() / size) {
    raise_at(count_at, fmt::format("an array of {} elements needs at least {} bytes for each but {} remain", count,
                                   size, reader.remaining()));
  }
  array.count = static_cast<std::int64_t>(count);
  if (array.type != GgufType::kString && array.type != GgufType::kBool) {
    array.bytes = reader.take(count, size, "an array");
    return array;
  }
  // Each must be checked: texts to find the next one, bools because not every byte is valid.
  const std::span<const std::byte> rest = reader.rest();
  const std::uint64_t begin = reader.offset();
  for (std::uint64_t i = 0; i < count; ++i) take_value_of(reader, array.type);
  array.bytes = rest.first(reader.offset() - begin);
  return array;
}

}  // namespace

std::string_view take_gguf_text(ByteReader& reader, std::uint64_t longest, std::string_view what) {
  const std::uint64_t at = reader.offset();
  const std::uint64_t length = reader.u64("the length of a text");
  if (length > longest) raise_at(at, fmt::format("{} is {} bytes long, the limit is {}", what, length, longest));
  if (length > reader.remaining()) {
    raise_at(at, fmt::format("{} is {} bytes long but {} remain", what, length, reader.remaining()));
  }
  const auto bytes = reader.take(length, what);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

GgufValue take_gguf_value(ByteReader& reader) { return take_value_of(reader, take_type(reader)); }

std::optional<std::int64_t> gguf_integer(const GgufValue& value) {
  constexpr auto kMost = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  if (const auto* const integer = value.as<std::int64_t>()) return *integer;
  const auto* const natural = value.as<std::uint64_t>();
  if (natural == nullptr || *natural > kMost) return std::nullopt;
  return static_cast<std::int64_t>(*natural);
}

std::optional<double> gguf_number(const GgufValue& value) {
  if (const auto* const number = value.as<double>()) return *number;
  if (const auto* const natural = value.as<std::uint64_t>()) return static_cast<double>(*natural);
  if (const auto* const integer = value.as<std::int64_t>()) return static_cast<double>(*integer);
  return std::nullopt;
}

std::vector<GgufValue> gguf_elements(const GgufArray& array) {
  if (array.type == GgufType::kArray) raise("gguf: an array must not hold arrays");
  ByteReader reader(array.bytes);
  std::vector<GgufValue> values;
  for (std::int64_t i = 0; i < array.count; ++i) values.push_back(take_value_of(reader, array.type));
  return values;
}

}  // namespace posenc
