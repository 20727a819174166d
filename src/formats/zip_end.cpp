#include "formats/zip_end.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "formats/byte_reader.h"

namespace posenc {
namespace {

constexpr std::uint32_t kEnd64Signature = 0x06064b50;
constexpr std::uint32_t kLocatorSignature = 0x07064b50;
constexpr std::string_view kEndSignature = "PK\5\6";

constexpr std::int64_t kEndBytes = 22;
constexpr std::int64_t kEnd64Bytes = 56;
constexpr std::int64_t kLocatorBytes = 20;
constexpr std::int64_t kLongestComment = 65'535;

constexpr std::int64_t kLongestDirectory = 100'000'000;
constexpr std::int64_t kMostMembers = 1'000'000;
constexpr std::uint32_t kMax16 = 0xFFFF;
constexpr std::uint32_t kInZip64 = 0xFFFFFFFF;

void check_beginning(const ByteSource& file) {
  if (file.size == 0) zip_fail(0, "the file is empty");
  const auto front = zip_bytes(file, 0, std::min<std::int64_t>(file.size, 6));
  const std::string_view text = zip_text(front);
  if (text.starts_with("PK\3\4") || text.starts_with(kEndSignature)) return;
  if (text == "\x93NUMPY") zip_fail(0, "not a .npz file (it is .npy)");
  zip_fail(0, "not a .npz file (it does not begin as a zip archive)");
}

/// The position of the end record. A comment may follow it; a second record in it, or one whose comment would contain
/// this one, makes a file that other programs would read differently.
std::int64_t find_end(const ByteSource& file) {
  const std::int64_t length = std::min(file.size, kEndBytes + kLongestComment);
  const auto tail = zip_bytes(file, file.size - length, length);
  const std::string_view text = zip_text(tail);
  const auto is_whole = [&](std::size_t at) {
    if (at + static_cast<std::size_t>(kEndBytes) > text.size()) return false;
    const std::size_t comment = static_cast<unsigned char>(text[at + 20]) | static_cast<unsigned char>(text[at + 21])
                                                                                << 8U;
    return at + static_cast<std::size_t>(kEndBytes) + comment == text.size();
  };
  const std::size_t last = text.rfind(kEndSignature);
  if (last == std::string_view::npos || !is_whole(last)) {
    zip_fail(file.size, "the archive has no end record (the file is truncated)");
  }
  for (std::size_t at = text.find(kEndSignature); at < last; at = text.find(kEndSignature, at + 1)) {
    if (is_whole(at)) zip_fail(file.size - length + static_cast<std::int64_t>(at), "the archive has two end records");
  }
  return file.size - length + static_cast<std::int64_t>(last);
}

/// The directory must end where the end record begins, so that the file can be read in only one way.
ZipDirectory check_directory(const ZipDirectory& directory, std::int64_t end, std::int64_t said_at) {
  const std::int64_t begin = end - directory.size;
  if (directory.size > end || directory.offset != begin) {
    zip_fail(said_at,
             fmt::format("a directory of {} bytes at byte {} does not end at byte {} where its end record begins",
                         directory.size, directory.offset, end));
  }
  if (directory.size > kLongestDirectory) {
    zip_fail(said_at,
             fmt::format("the directory is {} bytes long, the limit is {}", directory.size, kLongestDirectory));
  }
  if (directory.members > kMostMembers || directory.members > directory.size / kZipCentralBytes) {
    zip_fail(said_at, fmt::format("{} members cannot be in a directory of {} bytes (the limit is {})",
                                  directory.members, directory.size, kMostMembers));
  }
  return directory;
}

ZipDirectory read_end64(const ByteSource& file, std::int64_t end) {
  const std::int64_t locator_at = end - kLocatorBytes;
  if (locator_at < kEnd64Bytes) zip_fail(end, "the end record asks for a ZIP64 record, and there is none");
  const auto locator_bytes = zip_bytes(file, locator_at, kLocatorBytes);
  ByteReader locator(locator_bytes);
  if (locator.u32("signature") != kLocatorSignature) {
    zip_fail(end, "the end record asks for a ZIP64 record, and there is none");
  }
  locator.u32("disk");
  const std::int64_t at = zip_signed(locator.u64("offset"), locator_at, "the offset of the ZIP64 record");
  if (at > locator_at - kEnd64Bytes) zip_fail(locator_at, fmt::format("there is no ZIP64 record at byte {}", at));
  const auto record_bytes = zip_bytes(file, at, kEnd64Bytes);
  ByteReader record(record_bytes);
  if (record.u32("signature") != kEnd64Signature)
    zip_fail(locator_at, fmt::format("there is no ZIP64 record at byte {}", at));
  const std::uint64_t size = record.u64("size");
  if (size != static_cast<std::uint64_t>(locator_at - at - 12)) {
    zip_fail(at, fmt::format("the ZIP64 record is {} bytes long but {} remain", size, locator_at - at - 12));
  }
  record.u32("versions");
  const std::uint32_t disk = record.u32("disk");
  const std::uint32_t first_disk = record.u32("first disk");
  const std::uint64_t here = record.u64("members here");
  const std::uint64_t members = record.u64("members");
  if (disk != 0 || first_disk != 0 || here != members) zip_fail(at, "archives of several parts are not read");
  ZipDirectory directory;
  directory.members = zip_signed(members, at, "the number of members");
  directory.size = zip_signed(record.u64("directory size"), at, "the directory's size");
  directory.offset = zip_signed(record.u64("directory offset"), at, "the directory's offset");
  return check_directory(directory, at, at);
}

ZipDirectory read_end(const ByteSource& file, std::int64_t end) {
  const auto bytes = zip_bytes(file, end, kEndBytes);
  ByteReader reader(bytes);
  reader.u32("signature");
  const std::uint16_t disk = reader.u16("disk");
  const std::uint16_t first_disk = reader.u16("first disk");
  const std::uint16_t here = reader.u16("members here");
  const std::uint16_t members = reader.u16("members");
  const std::uint32_t size = reader.u32("directory size");
  const std::uint32_t offset = reader.u32("directory offset");
  if (members == kMax16 || size == kInZip64 || offset == kInZip64) return read_end64(file, end);
  if (disk != 0 || first_disk != 0 || here != members) zip_fail(end, "archives of several parts are not read");
  return check_directory({offset, size, members}, end, end);
}

}  // namespace

void zip_fail(std::int64_t offset, std::string_view what) { raise_at(static_cast<std::uint64_t>(offset), what); }

std::int64_t zip_signed(std::uint64_t value, std::int64_t offset, std::string_view what) {
  if (value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
    zip_fail(offset, fmt::format("{} is {}, past 2^63", what, value));
  }
  return static_cast<std::int64_t>(value);
}

std::vector<std::byte> zip_bytes(const ByteSource& file, std::int64_t offset, std::int64_t size) {
  std::vector<std::byte> bytes(size);
  file.read(offset, bytes);
  return bytes;
}

std::string_view zip_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

ZipDirectory find_zip_directory(const ByteSource& file) {
  check_beginning(file);
  return read_end(file, find_end(file));
}

}  // namespace posenc
