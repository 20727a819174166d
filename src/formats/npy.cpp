#include "posenc/npy.h"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <string_view>

#include "formats/byte_reader.h"
#include "formats/npy_head.h"

namespace posenc {
namespace {

static_assert(std::endian::native == std::endian::little, "arrays are handed out in the machine's own byte order");

std::uint8_t swapped(std::uint8_t bits) { return bits; }
std::uint16_t swapped(std::uint16_t bits) { return __builtin_bswap16(bits); }
std::uint32_t swapped(std::uint32_t bits) { return __builtin_bswap32(bits); }
std::uint64_t swapped(std::uint64_t bits) { return __builtin_bswap64(bits); }

/// Calls visit(source) for each element in the order of the result; `source` is its index in the file.
template <class Visit> void visit_in_order(const NpyHead& head, std::int64_t count, Visit visit) {
  if (!head.fortran_order || head.shape.rank < 2) {
    for (std::int64_t i = 0; i < count; ++i) visit(i);
    return;
  }
  Extents strides;  // of the file: the first axis is contiguous
  std::int64_t stride = 1;
  for (int axis = 0; axis < head.shape.rank; ++axis) {
    strides.push_back(stride);
    stride *= head.shape[axis];
  }
  Extents index = head.shape;
  index.value.fill(0);
  std::int64_t source = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    visit(source);
    for (int axis = head.shape.rank - 1; axis >= 0; --axis) {
      source += strides[axis];
      if (++index[axis] < head.shape[axis]) break;
      source -= strides[axis] * head.shape[axis];
      index[axis] = 0;
    }
  }
}

/// The elements of a file in sequence, in the order and the type of the result.
template <class Bits, class Convert>
std::vector<std::byte> convert(const CheckedNpyHead& file, std::span<const std::byte> data, Convert convert_one) {
  using Result = decltype(convert_one(Bits{}, std::int64_t{}));
  const std::size_t count = data.size() / sizeof(Bits);
  std::vector<std::byte> out(count * sizeof(Result));
  std::byte* to = out.data();
  visit_in_order(file.head, static_cast<std::int64_t>(count), [&](std::int64_t source) {
    Bits bits;
    std::memcpy(&bits, data.data() + source * sizeof(Bits), sizeof(Bits));
    const Result result = convert_one(file.element.big_endian ? swapped(bits) : bits, source);
    std::memcpy(to, &result, sizeof(Result));
    to += sizeof(Result);
  });
  return out;
}

template <class Bits> std::vector<std::byte> keep(const CheckedNpyHead& file, std::span<const std::byte> data) {
  return convert<Bits>(file, data, [](Bits bits, std::int64_t) { return bits; });
}

template <class Signed> std::vector<std::byte> widen(const CheckedNpyHead& file, std::span<const std::byte> data) {
  using Bits = std::make_unsigned_t<Signed>;
  return convert<Bits>(file, data,
                       [](Bits bits, std::int64_t) { return static_cast<std::int64_t>(static_cast<Signed>(bits)); });
}

/// Bools and unsigned integers, none of which may exceed `most`.
template <class Bits>
std::vector<std::byte> widen_up_to(std::uint64_t most, const CheckedNpyHead& file, std::span<const std::byte> data) {
  return convert<Bits>(file, data, [&](Bits bits, std::int64_t source) {
    if (bits > most) {
      raise_at(static_cast<std::uint64_t>(file.head.data_offset) + static_cast<std::uint64_t>(source) * sizeof(Bits),
               fmt::format("an element must be at most {} but is {}", most, bits));
    }
    return static_cast<std::int64_t>(bits);
  });
}

std::vector<std::byte> read_elements(const CheckedNpyHead& file, std::span<const std::byte> data) {
  constexpr auto kMost = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  const NpyElement& element = file.element;
  if (size_of(element.type) == element.size && element.kind != 'u') {
    const bool as_it_is = !element.big_endian && (!file.head.fortran_order || file.head.shape.rank < 2);
    if (as_it_is) return {data.begin(), data.end()};
    if (element.size == 2) return keep<std::uint16_t>(file, data);
    if (element.size == 4) return keep<std::uint32_t>(file, data);
    return keep<std::uint64_t>(file, data);
  }
  if (element.kind == 'i') {
    if (element.size == 1) return widen<std::int8_t>(file, data);
    if (element.size == 2) return widen<std::int16_t>(file, data);
    return widen<std::int32_t>(file, data);
  }
  if (element.kind == 'b') return widen_up_to<std::uint8_t>(1, file, data);
  if (element.size == 1) return widen_up_to<std::uint8_t>(kMost, file, data);
  if (element.size == 2) return widen_up_to<std::uint16_t>(kMost, file, data);
  if (element.size == 4) return widen_up_to<std::uint32_t>(kMost, file, data);
  return widen_up_to<std::uint64_t>(kMost, file, data);
}

std::string_view descr_of(DataType type) {
  constexpr std::array<std::string_view, 6> kDescrs = {"<f4", "<f8", "<f2", "<V2", "<i8", "|b1"};
  const auto number = static_cast<std::size_t>(type);
  if (number >= kDescrs.size()) raise(fmt::format("npy: unknown element type {}", number));
  return kDescrs[number];
}

}  // namespace

NpyHead read_npy_head(std::span<const std::byte> bytes, std::int64_t file_size, const NpyOptions& options) {
  return check_npy_head(bytes, file_size, options).head;
}

NpyArray read_npy(std::span<const std::byte> bytes, const NpyOptions& options) {
  CheckedNpyHead file = check_npy_head(bytes, static_cast<std::int64_t>(bytes.size()), options);
  const auto data = bytes.subspan(file.head.data_offset,  // both have been checked
                                  static_cast<std::size_t>(file.data_size));
  NpyArray array;
  array.type = file.head.type;
  array.shape = file.head.shape;
  array.bytes = read_elements(file, data);
  array.notes = std::move(file.head.notes);
  return array;
}

std::string npy_head(DataType type, const Extents& shape) {
  if (count_of(shape) < 0 || shape.rank > Extents::kMax) {
    raise(fmt::format("npy: shape must have at most {} extents of 0 or more, and fewer than 2^63 elements, but is {}",
                      Extents::kMax, to_string(shape)));
  }
  std::string header = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': (", descr_of(type));
  for (int axis = 0; axis < shape.rank; ++axis) {
    if (axis > 0) header += ' ';
    header += fmt::format("{},", shape[axis]);
  }
  if (shape.rank > 1) header.pop_back();  // (3,) but (3, 4)
  header += "), }";
  constexpr std::size_t kBefore = 10;
  constexpr std::size_t kAlignment = 64;
  const std::size_t least = kBefore + header.size() + 1;
  header.append((kAlignment - least % kAlignment) % kAlignment, ' ');
  header += '\n';
  std::string head("\x93NUMPY\x01\x00", 8);
  head += static_cast<char>(header.size() & 0xFF);
  head += static_cast<char>(header.size() >> 8);
  return head + header;
}

}  // namespace posenc
