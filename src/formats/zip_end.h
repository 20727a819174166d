#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "posenc/byte_source.h"

// The words are those of the .ZIP File Format Specification 6.3: a local header before each member, the central
// directory after the last, the end record after that; ZIP64 has a second end record with wider fields.
namespace posenc {

/// Of an entry of the central directory, without its name and extra fields.
inline constexpr std::int64_t kZipCentralBytes = 46;

/// The central directory of an archive, which was checked to lie within the file.
struct ZipDirectory {
  std::int64_t offset = 0;
  std::int64_t size = 0;
  std::int64_t members = 0;
};

/// Throws: Error "byte OFFSET: WHAT" where the file is no archive, has no end record or two, or where the directory
/// does not end at the end record.
ZipDirectory find_zip_directory(const ByteSource& file);

/// Throws: Error "byte OFFSET: WHAT".
[[noreturn]] void zip_fail(std::int64_t offset, std::string_view what);
/// Throws: Error where the value is past 2^63.
std::int64_t zip_signed(std::uint64_t value, std::int64_t offset, std::string_view what);
/// These bytes, which must lie within the file.
std::vector<std::byte> zip_bytes(const ByteSource& file, std::int64_t offset, std::int64_t size);
std::string_view zip_text(std::span<const std::byte> bytes);

}  // namespace posenc
