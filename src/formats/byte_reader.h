#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "posenc/error.h"

namespace posenc {

/// Throws: Error "byte OFFSET: WHAT".
[[noreturn]] inline void raise_at(std::uint64_t offset, std::string_view what) {
  raise(fmt::format("byte {}: {}", offset, what));
}

/// Reads bytes from front to back. Every read checks what remains, so that no format can read out of bounds or trust
/// a count that the file cannot contain. `what` names the item that is read: "the header length".
class ByteReader {
 public:
  explicit ByteReader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  std::uint64_t offset() const { return position_; }
  std::uint64_t remaining() const { return bytes_.size() - position_; }
  std::span<const std::byte> rest() const { return bytes_.subspan(position_); }

  /// Throws: Error at the first byte of the item if it is not entirely within the file.
  std::span<const std::byte> take(std::uint64_t count, std::string_view what) {
    if (count > remaining()) {
      raise_at(offset(),
               fmt::format("the file ends within {} ({} bytes are needed, {} remain)", what, count, remaining()));
    }
    const auto taken = bytes_.subspan(position_, count);
    position_ += count;
    return taken;
  }
  /// `count` items of `size` bytes each; the product cannot overflow.
  std::span<const std::byte> take(std::uint64_t count, std::uint64_t size, std::string_view what) {
    if (size > 0 && count > remaining() / size) {
      raise_at(offset(), fmt::format("the file ends within {} ({} x {} bytes are needed, {} remain)", what, count,
                                     size, remaining()));
    }
    return take(count * size, what);
  }

  std::uint8_t u8(std::string_view what) { return static_cast<std::uint8_t>(little_endian(1, what)); }
  std::uint16_t u16(std::string_view what) { return static_cast<std::uint16_t>(little_endian(2, what)); }
  std::uint32_t u32(std::string_view what) { return static_cast<std::uint32_t>(little_endian(4, what)); }
  std::uint64_t u64(std::string_view what) { return little_endian(8, what); }

 private:
  std::uint64_t little_endian(std::uint64_t size, std::string_view what) {
    std::uint64_t value = 0;
    unsigned shift = 0;
    for (const std::byte byte : take(size, what)) {
      value |= std::to_integer<std::uint64_t>(byte) << shift;
      shift += 8;
    }
    return value;
  }

  std::span<const std::byte> bytes_;
  std::size_t position_ = 0;
};

}  // namespace posenc
