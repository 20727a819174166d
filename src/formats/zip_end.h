#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "posenc/byte_source.h"

// The terms are those of the .ZIP File Format Specification 6.3: a local header before each member, the central
// directory after the last, the end record after that; ZIP64 has a second end record with wider fields.
namespace posenc {

/// The size of an entry of the central directory, without its name and extra fields.
inline constexpr std::int64_t kZipCentralBytes = 46;

/// The central directory of an archive, known to be within the file.
struct ZipDirectory {
  std::int64_t offset = 0;
  std::int64_t size = 0;
  std::int64_t members = 0;
};

/// Throws: Error "byte OFFSET: WHAT" if the file is not an archive, has no end record or two, or if the directory
/// does not end at the end record.
ZipDirectory find_zip_directory(const ByteSource& file);

/// Throws: Error "byte OFFSET: WHAT".
[[noreturn]] void zip_fail(std::int64_t offset, std::string_view what);
/// Throws: Error if the value is past 2^63.
std::int64_t zip_signed(std::uint64_t value, std::int64_t offset, std::string_view what);
/// These bytes, which must be within the file.
std::vector<std::byte> zip_bytes(const ByteSource& file, std::int64_t offset, std::int64_t size);
std::string_view zip_text(std::span<const std::byte> bytes);

}  // namespace posenc
