#include "formats/npz_directory.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <string_view>

#include "formats/byte_reader.h"
#include "formats/excerpt.h"
#include "formats/zip_end.h"
#include "posenc/npz.h"

namespace posenc {
namespace {

constexpr std::uint32_t kLocalSignature = 0x04034b50;
constexpr std::uint32_t kCentralSignature = 0x02014b50;

constexpr std::int64_t kLocalBytes = 30;

// Zeros deflate a thousandfold, and a few of them are harmless; a very large result from very little data is a zip
// bomb.
constexpr std::int64_t kMostRatio = 1000;
constexpr std::int64_t kSmall = 64 << 20;

constexpr std::uint32_t kMax32 = 0xFFFFFFFF;
constexpr std::uint16_t kEncrypted = 1U << 0U | 1U << 6U;
constexpr std::uint16_t kSizesFollow = 1U << 3U;

/// What both headers of a member state about it.
struct Facts {
  std::uint16_t flags = 0;
  std::uint16_t method = 0;
  std::uint32_t crc = 0;
  std::uint64_t stored = 0;
  std::uint64_t bytes = 0;
  std::uint64_t header_offset = 0;
  std::string name;
  std::int64_t entry_offset = 0;  // of its entry in the directory
};

/// The limit for the bytes of a member, and whose bytes follow; those of the directory if `name` is empty.
struct Limit {
  std::int64_t offset = 0;
  std::string_view name;
};

[[noreturn]] void fail(std::int64_t offset, std::string_view member, std::string_view what) {
  zip_fail(offset, fmt::format("member {}: {}", quoted(member), what));
}

/// Fields that do not fit in 32 bits are all ones, and their values are in extra field 1 in this order. A local
/// header has both sizes there or neither.
void read_zip64(std::span<const std::byte> extra, Facts& facts, bool is_local, std::int64_t offset) {
  constexpr std::uint16_t kZip64 = 1;
  const bool both = is_local && (facts.bytes == kMax32 || facts.stored == kMax32);
  std::vector<std::uint64_t*> wanted;
  if (both || facts.bytes == kMax32) wanted.push_back(&facts.bytes);
  if (both || facts.stored == kMax32) wanted.push_back(&facts.stored);
  if (facts.header_offset == kMax32) wanted.push_back(&facts.header_offset);
  if (wanted.empty()) return;
  ByteReader reader(extra);
  while (reader.remaining() >= 4) {
    const std::uint16_t id = reader.u16("extra field");
    const std::uint16_t size = reader.u16("extra field");
    if (size > reader.remaining()) break;
    ByteReader field(reader.take(size, "extra field"));
    if (id != kZip64) continue;
    if (field.remaining() < 8 * wanted.size()) break;
    for (std::uint64_t* const value : wanted) *value = field.u64("ZIP64 field");
    return;
  }
  fail(offset, facts.name, "a size or offset asks for a ZIP64 field, and there is none");
}

/// Flags up to the sizes: the same in both headers.
void read_facts(ByteReader& reader, Facts& facts) {
  facts.flags = reader.u16("flags");
  facts.method = reader.u16("method");
  reader.u32("time and date");
  facts.crc = reader.u32("CRC");
  facts.stored = reader.u32("stored size");
  facts.bytes = reader.u32("size");
}

/// Reads the next entry of the directory, at `offset` of the file.
Facts read_central(ByteReader& reader, std::int64_t offset) {
  if (reader.remaining() < kZipCentralBytes || reader.u32("signature") != kCentralSignature) {
    zip_fail(offset, "an entry of the directory is expected here");
  }
  Facts facts;
  reader.u32("versions");
  read_facts(reader, facts);
  const std::uint16_t name_length = reader.u16("name length");
  const std::uint16_t extra_length = reader.u16("extra length");
  const std::uint16_t comment_length = reader.u16("comment length");
  const std::uint16_t disk = reader.u16("disk");
  reader.take(6, "attributes");
  facts.header_offset = reader.u32("offset");
  if (reader.remaining() < std::uint64_t{name_length} + extra_length + comment_length) {
    zip_fail(offset, "the directory ends within this entry");
  }
  facts.name = zip_text(reader.take(name_length, "name"));
  read_zip64(reader.take(extra_length, "extra field"), facts, false, offset);
  reader.take(comment_length, "comment");
  if (disk != 0) fail(offset, facts.name, "archives of several parts are not read");
  return facts;
}

void check_name(std::string_view name, std::int64_t offset) {
  const bool is_printable = std::none_of(name.begin(), name.end(), [](char c) {
    const auto code = static_cast<unsigned char>(c);
    return code < 0x20 || code == 0x7F;
  });
  if (!is_printable) fail(offset, name, "the name holds a control character");
  if (name.starts_with('/') || name.starts_with('\\')) fail(offset, name, "the name is a path from the root");
  for (std::size_t at = 0; at <= name.size();) {
    const std::size_t end = std::min(name.find_first_of("/\\", at), name.size());
    if (name.substr(at, end - at) == "..") fail(offset, name, "the name leads out of the archive");
    at = end + 1;
  }
  if (!name.ends_with(".npy")) fail(offset, name, "is not .npy (an .npz file holds nothing else)");
}

void check_facts(const Facts& facts, std::int64_t offset) {
  check_name(facts.name, offset);
  if ((facts.flags & kEncrypted) != 0) fail(offset, facts.name, "is encrypted");
  if (facts.method != 0 && facts.method != 8) {
    fail(offset, facts.name, fmt::format("compression method {} is not read (stored and deflate are)", facts.method));
  }
  const std::int64_t bytes = zip_signed(facts.bytes, offset, "the size of a member");
  const std::int64_t stored = zip_signed(facts.stored, offset, "the stored size of a member");
  if (facts.method == 0 && bytes != stored) {
    fail(offset, facts.name, fmt::format("is stored as it is, but in {} bytes instead of {}", stored, bytes));
  }
  if (facts.method == 8 && bytes / kMostInflation > stored) {
    fail(offset, facts.name, fmt::format("{} deflated bytes cannot become {}", stored, bytes));
  }
  if (bytes > kSmall && bytes / kMostRatio > stored) {
    fail(offset, facts.name,
         fmt::format("{} bytes in {} is more than {}:1 (a zip bomb; save it without compression)", bytes, stored,
                     kMostRatio));
  }
}

void check_limit(const Facts& facts, std::int64_t end, const Limit& limit) {
  if (end <= limit.offset) return;
  const std::string whose = limit.name.empty() ? "the directory" : fmt::format("member {}", quoted(limit.name));
  fail(facts.entry_offset, facts.name, fmt::format("reaches to byte {}, where {} is", end, whose));
}

/// Reads the local header of a member and compares it with the directory. Returns where the member's bytes begin.
std::int64_t check_local(const ByteSource& file, const Facts& central, const Limit& limit) {
  const std::int64_t at = static_cast<std::int64_t>(central.header_offset);
  const auto differs = [&](std::string_view what) {
    fail(at, central.name, fmt::format("{} differs between its header and the directory", what));
  };
  const auto head = zip_bytes(file, at, kLocalBytes);
  ByteReader reader(head);
  if (reader.u32("signature") != kLocalSignature) fail(at, central.name, "its header is expected here");
  Facts local;
  reader.u16("version");
  read_facts(reader, local);
  const std::uint16_t name_length = reader.u16("name length");
  const std::uint16_t extra_length = reader.u16("extra length");
  const std::int64_t end = at + kLocalBytes + name_length + extra_length;
  check_limit(central, end, limit);
  const auto rest = zip_bytes(file, at + kLocalBytes, name_length + extra_length);
  local.name = zip_text(std::span(rest).first(name_length));
  if (local.name != central.name) differs("the name");
  if (local.method != central.method) differs("the method");
  if ((local.flags & kEncrypted) != 0) differs("encryption");
  read_zip64(std::span(rest).subspan(name_length), local, true, at);
  // If written before the sizes were known, they may be 0 here.
  const bool unknown = (local.flags & kSizesFollow) != 0;
  if (local.crc != central.crc && !(unknown && local.crc == 0)) differs("the CRC");
  if (local.stored != central.stored && !(unknown && local.stored == 0)) differs("the stored size");
  if (local.bytes != central.bytes && !(unknown && local.bytes == 0)) differs("the size");
  return end;
}

NpzMember member_of(const ByteSource& file, const Facts& facts, const Limit& limit) {
  NpzMember member;
  member.header_offset = static_cast<std::int64_t>(facts.header_offset);
  check_limit(facts, member.header_offset + kLocalBytes, limit);
  member.offset = check_local(file, facts, limit);
  member.stored_bytes = static_cast<std::int64_t>(facts.stored);
  check_limit(facts,
              zip_signed(facts.stored + static_cast<std::uint64_t>(member.offset), facts.entry_offset, "an end"),
              limit);
  member.bytes = static_cast<std::int64_t>(facts.bytes);
  member.deflated = facts.method == 8;
  member.crc = facts.crc;
  member.name = facts.name.substr(0, facts.name.size() - std::string_view(".npy").size());
  return member;
}

std::vector<Facts> read_entries(const ByteSource& file, const ZipDirectory& directory) {
  const auto bytes = zip_bytes(file, directory.offset, directory.size);
  ByteReader reader(bytes);
  std::vector<Facts> entries;
  entries.reserve(directory.members);
  for (std::int64_t i = 0; i < directory.members; ++i) {
    const std::int64_t offset = directory.offset + static_cast<std::int64_t>(reader.offset());
    entries.push_back(read_central(reader, offset));
    entries.back().entry_offset = offset;
    check_facts(entries.back(), offset);
    zip_signed(entries.back().header_offset, offset, "the offset of a member");
  }
  if (reader.remaining() > 0) {
    zip_fail(
        directory.offset + static_cast<std::int64_t>(reader.offset()),
        fmt::format("{} bytes follow the last of {} members in the directory", reader.remaining(), entries.size()));
  }
  return entries;
}

void refuse_repeated_names(const std::vector<Facts>& entries) {
  std::vector<const Facts*> order;
  for (const Facts& facts : entries) order.push_back(&facts);
  std::stable_sort(order.begin(), order.end(), [](const auto* a, const auto* b) { return a->name < b->name; });
  for (std::size_t i = 1; i < order.size(); ++i) {
    if (order[i - 1]->name == order[i]->name) fail(order[i]->entry_offset, order[i]->name, "is in the archive twice");
  }
}

}  // namespace

std::vector<NpzMember> read_npz_directory(const ByteSource& file) {
  const ZipDirectory directory = find_zip_directory(file);
  const std::vector<Facts> entries = read_entries(file, directory);
  refuse_repeated_names(entries);
  // In the order of their bytes, so that none is read twice, whatever the directory says.
  std::vector<std::size_t> order(entries.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return entries[a].header_offset < entries[b].header_offset; });
  std::vector<NpzMember> members(entries.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    Limit limit{directory.offset, ""};
    if (i + 1 < order.size()) {
      const Facts& next = entries[order[i + 1]];
      limit = {std::min(static_cast<std::int64_t>(next.header_offset), directory.offset), next.name};
    }
    members[order[i]] = member_of(file, entries[order[i]], limit);
  }
  return members;
}

}  // namespace posenc
