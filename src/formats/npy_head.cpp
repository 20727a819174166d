#include "formats/npy_head.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>
#include <string_view>

#include "formats/byte_reader.h"
#include "formats/excerpt.h"
#include "formats/npy_dictionary.h"

namespace posenc {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr std::int64_t kMaxHeader = kNpyHeadBytes - 12;
constexpr std::int64_t kMaxInt64 = std::numeric_limits<std::int64_t>::max();

std::optional<NpyElement> find_element(std::string_view descr) {
  struct Row {
    std::string_view code;
    DataType type;
  };
  static constexpr Row kRows[] = {{"f2", DataType::kF16}, {"f4", DataType::kF32}, {"f8", DataType::kF64},
                                  {"i1", DataType::kI64}, {"i2", DataType::kI64}, {"i4", DataType::kI64},
                                  {"i8", DataType::kI64}, {"u1", DataType::kI64}, {"u2", DataType::kI64},
                                  {"u4", DataType::kI64}, {"u8", DataType::kI64}, {"b1", DataType::kI64},
                                  {"V2", DataType::kBF16}};
  if (descr.size() != 3) return std::nullopt;
  const char order = descr.front();
  for (const Row& row : kRows) {
    if (descr.substr(1) != row.code) continue;
    const NpyElement element{row.code[0], row.code[1] - '0', order == '>', row.type};
    const bool orderless = element.size == 1 || element.kind == 'V';
    if (order == '<' || (order == '>' && element.kind != 'V') || (order == '|' && orderless)) return element;
  }
  return std::nullopt;
}

std::string_view why_refused(std::string_view descr) {
  const char kind = descr.size() < 2 ? '\0' : descr[1];
  if (kind == 'O' || descr == "O") return "holds Python objects (pickled objects are never loaded)";
  if (kind == 'U' || kind == 'S') return "is text, not numbers";
  if (kind == 'M' || kind == 'm') return "is a time, not a number";
  if (kind == 'c') return "is complex (save the real and the imaginary part)";
  return "is not read (f2, f4, f8, i1 to i8, u1 to u8 and b1 are, with < or > for the byte order)";
}

NpyElement read_descr(const NpyDictionary& dictionary, const NpyOptions& options) {
  const auto element = find_element(dictionary.descr);
  if (element && element->kind == 'u' && element->size == 2 && options.uint16_is_bf16) {
    return {'V', 2, element->big_endian, DataType::kBF16};
  }
  if (element && (element->kind != 'V' || options.void2_is_bf16)) return *element;
  const std::string_view why =
      element ? "is two bytes of unknown meaning (say bf16 if it is that)" : why_refused(dictionary.descr);
  raise_at(dictionary.descr_offset, fmt::format("dtype '{}' {}", excerpt(dictionary.descr), why));
}

/// The bytes of all elements. An extent of 0 does not allow the others to overflow: strides must fit as well.
std::int64_t size_of_data(const NpyDictionary& dictionary, const NpyElement& element) {
  // i1 becomes i64: the wider of the two must fit.
  std::int64_t bound = std::max<std::int64_t>(element.size, size_of(element.type));
  std::int64_t count = 1;
  for (int axis = 0; axis < dictionary.shape.rank; ++axis) {
    const std::int64_t extent = dictionary.shape[axis];
    if (extent == 0) {
      count = 0;
      continue;
    }
    if (bound > kMaxInt64 / extent) {
      raise_at(dictionary.shape_offset,
               fmt::format("shape {} has more bytes than 2^63", to_string(dictionary.shape)));
    }
    bound *= extent;
    count *= extent;
  }
  return count * element.size;
}

/// Up to the dictionary: magic, version, length.
std::string_view take_header(ByteReader& reader, std::int64_t file_size) {
  if (file_size == 0) raise_at(0, "the file is empty");
  const auto magic = reader.take(std::min<std::uint64_t>(kMagic.size(), reader.remaining()), "the magic");
  if (std::memcmp(magic.data(), kMagic.data(), magic.size()) != 0) {
    const bool zip = magic.size() >= 2 && std::memcmp(magic.data(), "PK", 2) == 0;
    raise_at(0,
             zip ? "not a .npy file (it is a zip archive, perhaps .npz)" : "not a .npy file (it begins otherwise)");
  }
  if (magic.size() < kMagic.size())
    raise_at(0, fmt::format("the file ends after {} bytes, too short for .npy", file_size));
  const int major = reader.u8("its version");
  const int minor = reader.u8("its version");
  if (major < 1 || major > 3 || minor != 0) {
    raise_at(6, fmt::format("version {}.{} is unknown (1.0, 2.0 and 3.0 are read)", major, minor));
  }
  const std::uint64_t length_offset = reader.offset();
  const std::int64_t length = major == 1 ? reader.u16("the header length") : reader.u32("the header length");
  if (length > kMaxHeader) {
    raise_at(length_offset, fmt::format("the header is {} bytes long, the limit is {}", length, kMaxHeader));
  }
  const auto header = reader.take(static_cast<std::uint64_t>(length), "the header");
  if (header.empty()) raise_at(length_offset, "the header is empty");
  return {reinterpret_cast<const char*>(header.data()), header.size()};
}

}  // namespace

CheckedNpyHead check_npy_head(std::span<const std::byte> bytes, std::int64_t file_size, const NpyOptions& options) {
  if (file_size < static_cast<std::int64_t>(bytes.size())) {
    raise(fmt::format("npy: file_size is {} but {} bytes were given", file_size, bytes.size()));
  }
  if (static_cast<std::int64_t>(bytes.size()) < std::min(file_size, kNpyHeadBytes)) {
    raise(fmt::format("npy: the first {} bytes of the file are needed but {} were given",
                      std::min(file_size, kNpyHeadBytes), bytes.size()));
  }
  ByteReader reader(bytes);
  const std::string_view header = take_header(reader, file_size);
  NpyDictionary dictionary = read_npy_dictionary(header, reader.offset() - header.size());
  CheckedNpyHead result;
  result.element = read_descr(dictionary, options);
  result.data_size = size_of_data(dictionary, result.element);
  NpyHead& head = result.head;
  head.type = result.element.type;
  head.stored_size = result.element.size;
  head.shape = dictionary.shape;
  head.fortran_order = dictionary.fortran_order;
  head.big_endian = result.element.big_endian;
  head.data_offset = static_cast<std::int64_t>(reader.offset());
  head.notes = std::move(dictionary.notes);
  if (head.type == DataType::kBF16 && options.uint16_is_bf16 && dictionary.descr.find('u') != std::string::npos) {
    head.notes.emplace_back("uint16 is read as the bits of bf16");
  }
  if (head.data_offset % 16 != 0) {
    head.notes.push_back(fmt::format("the data begins at byte {}, not at a multiple of 16", head.data_offset));
  }
  const std::int64_t present = file_size - head.data_offset;
  if (present < result.data_size) {
    raise_at(static_cast<std::uint64_t>(head.data_offset),
             fmt::format("the data of shape {} needs {} bytes but only {} remain (the file is truncated)",
                         to_string(head.shape), result.data_size, present));
  }
  if (present > result.data_size) {
    const std::int64_t trailing = present - result.data_size;
    if (!options.allow_trailing) {
      raise_at(static_cast<std::uint64_t>(head.data_offset + result.data_size),
               fmt::format("{} bytes follow the last element (allow trailing bytes to read it anyway)", trailing));
    }
    head.notes.push_back(fmt::format("{} bytes after the last element were ignored", trailing));
  }
  return result;
}

}  // namespace posenc
