#include "posenc/npz.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <functional>
#include <optional>

#include "formats/file_bytes.h"

namespace posenc::npz_test {
namespace {

/// What a header of a member says.
struct Fields {
  std::string name;
  std::uint16_t flags = 0;
  std::uint16_t method = 0;
  std::uint32_t crc = 0;
  std::uint32_t stored = 0;
  std::uint32_t bytes = 0;
  std::string extra = {};
  std::optional<std::uint32_t> offset = {};  // else the true one
};

struct Part {
  Fields local;
  Fields central;
  std::string data;
};

struct End {
  std::uint16_t disk = 0;
  std::uint16_t members = 0;
  std::uint32_t size = 0;
  std::uint32_t offset = 0;
  std::string before = {};  // where ZIP64's second record stands
  std::string comment = {};
};

std::string deflated(const std::string& data) {
  std::string out(data.size() + 100, '\0');
  z_stream z{};
  EXPECT_EQ(deflateInit2(&z, 9, Z_DEFLATED, -15, 9, Z_DEFAULT_STRATEGY), Z_OK);
  z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(data.data()));
  z.avail_in = static_cast<uInt>(data.size());
  z.next_out = reinterpret_cast<Bytef*>(out.data());
  z.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&z, Z_FINISH), Z_STREAM_END);
  out.resize(z.total_out);
  deflateEnd(&z);
  return out;
}

Part part(const std::string& name, const std::string& content, bool deflate = false) {
  Fields fields{name};
  fields.crc = static_cast<std::uint32_t>(
      crc32(0, reinterpret_cast<const Bytef*>(content.data()), static_cast<uInt>(content.size())));
  std::string data = deflate ? deflated(content) : content;
  fields.method = deflate ? 8 : 0;
  fields.stored = static_cast<std::uint32_t>(data.size());
  fields.bytes = static_cast<std::uint32_t>(content.size());
  return {fields, fields, data};
}

std::string facts_of(const Fields& f) {
  return stored(f.flags) + stored(f.method) + stored<std::uint32_t>(0) + stored(f.crc) + stored(f.stored) +
         stored(f.bytes) + stored(static_cast<std::uint16_t>(f.name.size())) +
         stored(static_cast<std::uint16_t>(f.extra.size()));
}

std::string archive(const std::vector<Part>& parts, const std::function<void(End&)>& change = nullptr) {
  std::string file;
  std::string directory;
  for (const Part& p : parts) {
    directory += "PK\1\2" + stored<std::uint32_t>(20) + facts_of(p.central) + std::string(10, '\0');
    directory += stored(p.central.offset.value_or(static_cast<std::uint32_t>(file.size())));
    directory += p.central.name + p.central.extra;
    file += "PK\3\4" + stored<std::uint16_t>(20) + facts_of(p.local) + p.local.name + p.local.extra + p.data;
  }
  End end{0, static_cast<std::uint16_t>(parts.size()), static_cast<std::uint32_t>(directory.size()),
          static_cast<std::uint32_t>(file.size())};
  if (change) change(end);
  return file + directory + end.before + "PK\5\6" + stored(end.disk) + stored<std::uint16_t>(0) +
         stored(end.members) + stored(end.members) + stored(end.size) + stored(end.offset) +
         stored(static_cast<std::uint16_t>(end.comment.size())) + end.comment;
}

std::string zip64_end(std::uint64_t members, std::uint64_t size, std::uint64_t offset) {
  return "PK\6\6" + stored<std::uint64_t>(44) + stored<std::uint32_t>(0x2D002D) + stored<std::uint64_t>(0) +
         stored(members) + stored(members) + stored(size) + stored(offset) + "PK\6\7" + stored<std::uint32_t>(0) +
         stored(offset + size) + stored<std::uint32_t>(1);
}
std::string zip64_extra(const std::vector<std::uint64_t>& values) {
  return stored<std::uint16_t>(1) + stored(static_cast<std::uint16_t>(8 * values.size())) + stored_all(values);
}

std::string npy_of(const std::vector<float>& values) {
  return npy_head(DataType::kF32, {static_cast<std::int64_t>(values.size())}) + stored_all(values);
}

/// Reads every member of an archive.
std::vector<NpyArray> read_all(const std::string& file) {
  std::vector<NpyArray> arrays;
  for (const NpzMember& member : read_npz_directory(bytes_of(file)))
    arrays.push_back(read_npz(bytes_of(file), member));
  return arrays;
}
void read(const std::string& file) { read_all(file); }

// 30 + 5 bytes of header, 132 of data; the directory is at 167, its end record at 218.
const std::string kContent = npy_of({1.5F});
Part good_part() { return part("x.npy", kContent); }
std::string with(const std::function<void(Part&)>& change) {
  Part p = good_part();
  change(p);
  return archive({p});
}

TEST(ReadNpz, ReadsStoredAndDeflatedMembers) {
  const std::string file = archive({part("a.npy", npy_of({1, 2, 3})), part("b/c.npy", npy_of({4, 5}), true)});
  const std::vector<NpzMember> members = read_npz_directory(bytes_of(file));
  ASSERT_EQ(members.size(), 2U);
  EXPECT_EQ(members[0].name, "a");
  EXPECT_FALSE(members[0].deflated);
  EXPECT_EQ(members[0].bytes, 140);
  EXPECT_EQ(members[1].name, "b/c");
  EXPECT_TRUE(members[1].deflated);
  EXPECT_EQ(members[1].bytes, 136);
  const std::vector<NpyArray> arrays = read_all(file);
  EXPECT_EQ(arrays[0].shape, Extents{3});
  EXPECT_EQ(std::memcmp(arrays[1].bytes.data(), stored_all<float>({4, 5}).data(), 8), 0);
}

TEST(ReadNpz, ReadsArchivesWithoutMembers) { EXPECT_TRUE(read_all(archive({})).empty()); }

TEST(ReadNpz, ReadsWhatNumPyWrites) {
  // NumPy asks for ZIP64 in the header of a member, whatever its size.
  const std::string file = with([](Part& p) {
    p.local.extra = zip64_extra({p.local.bytes, p.local.stored});
    p.local.bytes = p.local.stored = 0xFFFFFFFF;
  });
  EXPECT_EQ(read_all(file).size(), 1U);
  // Into a pipe the sizes come after the data.
  const std::string piped = with([](Part& p) {
    p.data += "PK\7\10" + stored(p.local.crc) + stored(p.local.stored) + stored(p.local.bytes);
    p.local.flags = p.central.flags = 8;
    p.local.crc = p.local.stored = p.local.bytes = 0;
  });
  EXPECT_EQ(read_all(piped).size(), 1U);
}

TEST(ReadNpz, ReadsZip64) {
  const auto end = [](End& e) {
    e.before = zip64_end(1, e.size, e.offset);
    e.members = 0xFFFF;
    e.size = e.offset = 0xFFFFFFFF;
  };
  Part p = good_part();
  p.central.extra = stored<std::uint32_t>(0x0000CAFE) + zip64_extra({p.central.bytes, p.central.stored, 0});
  p.central.bytes = p.central.stored = 0xFFFFFFFF;
  p.central.offset = 0xFFFFFFFF;
  EXPECT_EQ(read_all(archive({p}, end)).size(), 1U);
  EXPECT_EQ(read_all(archive({good_part()}, [](End& e) { e.comment = "a comment"; })).size(), 1U);
}

TEST(ReadNpz, ReadsSeventyThousandMembersAndRefusesTheirCountInSixteenBits) {
  std::vector<Part> parts;
  for (int i = 0; i < 70'000; ++i) parts.push_back(part(fmt::format("{}.npy", i), ""));
  const auto zip64 = [](End& e) {
    e.before = zip64_end(70'000, e.size, e.offset);
    e.members = 0xFFFF;
  };
  EXPECT_EQ(read_npz_directory(bytes_of(archive(parts, zip64))).size(), 70'000U);
  const std::string error = error_of([&] { read(archive(parts)); });
  EXPECT_NE(error.find("follow the last of 4464 members in the directory"), std::string::npos) << error;
}

TEST(ReadNpz, RefusesWhatIsNoArchive) {
  const std::string good = archive({good_part()});
  ASSERT_EQ(good.size(), 240U);
  const auto end_with = [](const std::function<void(End&)>& change) { return archive({good_part()}, change); };
  const std::vector<BadFile> cases = {
      {"empty", "", "byte 0: the file is empty"},
      {"text", "hello", "byte 0: not a .npz file (it does not begin as a zip archive)"},
      {".npy", kContent, "byte 0: not a .npz file (it is .npy)"},
      {"no end record", good.substr(0, 230), "byte 230: the archive has no end record (the file is truncated)"},
      {"bytes after it", good + "x", "byte 241: the archive has no end record (the file is truncated)"},
      {"two archives", good + good,
       "byte 458: a directory of 51 bytes at byte 167 does not end at byte 458 where its end record begins"},
      {"an archive as comment", end_with([&](End& e) { e.comment = good; }),
       "byte 218: the archive has two end records"},
      {"several parts", end_with([](End& e) { e.disk = 1; }), "byte 218: archives of several parts are not read"},
      {"a directory elsewhere", end_with([](End& e) { e.offset = 160; }),
       "byte 218: a directory of 51 bytes at byte 160 does not end at byte 218 where its end record begins"},
      {"a directory too large", end_with([](End& e) { e.size = 0xFFFFFFF0; }),
       "byte 218: a directory of 4294967280 bytes at byte 167 does not end at byte 218 where its end record begins"},
      {"more members than fit", end_with([](End& e) { e.members = 2; }),
       "byte 218: 2 members cannot be in a directory of 51 bytes (the limit is 1000000)"},
      {"fewer members", end_with([](End& e) { e.members = 0; }),
       "byte 167: 51 bytes follow the last of 0 members in the directory"},
      {"no ZIP64 record", end_with([](End& e) { e.members = 0xFFFF; }),
       "byte 218: the end record asks for a ZIP64 record, and there is none"},
      {"a directory at 2^63", end_with([](End& e) {
         e.before = zip64_end(1, 51, 167).replace(48, 8, stored<std::uint64_t>(1ULL << 63U));
         e.offset = 0xFFFFFFFF;
       }),
       "byte 218: the directory's offset is 9223372036854775808, past 2^63"},
      {"2^63 members", end_with([](End& e) {
         e.before = zip64_end(1ULL << 63U, 51, 167);
         e.members = 0xFFFF;
       }),
       "byte 218: the number of members is 9223372036854775808, past 2^63"},
      {"2^40 members", end_with([](End& e) {
         e.before = zip64_end(1ULL << 40U, 51, 167);
         e.members = 0xFFFF;
       }),
       "byte 218: 1099511627776 members cannot be in a directory of 51 bytes (the limit is 1000000)"},
      {"a ZIP64 record elsewhere", end_with([](End& e) {
         e.before = zip64_end(1, 51, 167).replace(64, 8, stored<std::uint64_t>(7));
         e.members = 0xFFFF;
       }),
       "byte 274: there is no ZIP64 record at byte 7"},
      {"a ZIP64 record past the end", end_with([](End& e) {
         e.before = zip64_end(1, 51, 167).replace(64, 8, stored<std::uint64_t>(1ULL << 62U));
         e.members = 0xFFFF;
       }),
       "byte 274: there is no ZIP64 record at byte 4611686018427387904"},
      {"a long ZIP64 record", end_with([](End& e) {
         e.before = zip64_end(1, 51, 167).replace(4, 8, stored<std::uint64_t>(45));
         e.members = 0xFFFF;
       }),
       "byte 218: the ZIP64 record is 45 bytes long but 44 remain"},
  };
  expect_refused(cases, read);
}

TEST(ReadNpz, RefusesMembersThatCannotBe) {
  const auto named = [](const std::string& name) { return archive({part(name, kContent)}); };
  const auto zero = std::string("a\0.npy", 6);
  const std::vector<BadFile> cases = {
      {"out of the archive", named("../x.npy"), "byte 170: member \"../x.npy\": the name leads out of the archive"},
      {"out in the middle", named("a/../../x.npy"),
       "byte 175: member \"a/../../x.npy\": the name leads out of the archive"},
      {"out of it on Windows", named("..\\x.npy"),
       "byte 170: member \"..\\\\x.npy\": the name leads out of the archive"},
      {"from the root", named("/x.npy"), "byte 168: member \"/x.npy\": the name is a path from the root"},
      {"a zero byte", named(zero), "byte 168: member \"a\\u0000.npy\": the name holds a control character"},
      {"a newline", named("a\n.npy"), "byte 168: member \"a\\n.npy\": the name holds a control character"},
      {"not .npy", named("x.txt"), "byte 167: member \"x.txt\": is not .npy (an .npz file holds nothing else)"},
      {"a folder", named("x/"), "byte 164: member \"x/\": is not .npy (an .npz file holds nothing else)"},
      {"no name", named(""), "byte 162: member \"\": is not .npy (an .npz file holds nothing else)"},
      {"encrypted", with([](Part& p) { p.local.flags = p.central.flags = 1; }),
       "byte 167: member \"x.npy\": is encrypted"},
      {"method 12", with([](Part& p) { p.local.method = p.central.method = 12; }),
       "byte 167: member \"x.npy\": compression method 12 is not read (stored and deflate are)"},
      {"stored in fewer bytes", with([](Part& p) { p.central.stored = 100; }),
       "byte 167: member \"x.npy\": is stored as it is, but in 100 bytes instead of 132"},
      {"2^63 bytes", with([](Part& p) {
         p.central.extra = zip64_extra({1ULL << 63U, 132});
         p.central.bytes = p.central.stored = 0xFFFFFFFF;
       }),
       "byte 167: the size of a member is 9223372036854775808, past 2^63"},
      {"no ZIP64 field", with([](Part& p) { p.central.bytes = 0xFFFFFFFF; }),
       "byte 167: member \"x.npy\": a size or offset asks for a ZIP64 field, and there is none"},
      {"a short ZIP64 field", with([](Part& p) {
         p.central.extra = zip64_extra({132});
         p.central.bytes = p.central.stored = 0xFFFFFFFF;
       }),
       "byte 167: member \"x.npy\": a size or offset asks for a ZIP64 field, and there is none"},
      {"a header past the directory", with([](Part& p) { p.central.offset = 167; }),
       "byte 167: member \"x.npy\": reaches to byte 197, where the directory is"},
      {"no header", with([](Part& p) { p.central.offset = 1; }),
       "byte 1: member \"x.npy\": its header is expected here"},
      {"data into the directory",
       with([](Part& p) { p.local.bytes = p.local.stored = p.central.bytes = p.central.stored = 133; }),
       "byte 167: member \"x.npy\": reaches to byte 168, where the directory is"},
      {"another name", with([](Part& p) { p.local.name = "y.npy"; }),
       "byte 0: member \"x.npy\": the name differs between its header and the directory"},
      {"another method", with([](Part& p) { p.local.method = 8; }),
       "byte 0: member \"x.npy\": the method differs between its header and the directory"},
      {"encrypted in its header", with([](Part& p) { p.local.flags = 1; }),
       "byte 0: member \"x.npy\": encryption differs between its header and the directory"},
      {"another CRC", with([](Part& p) { p.local.crc ^= 1U; }),
       "byte 0: member \"x.npy\": the CRC differs between its header and the directory"},
      {"another size", with([](Part& p) { p.local.bytes = 7; }),
       "byte 0: member \"x.npy\": the size differs between its header and the directory"},
      {"another stored size", with([](Part& p) { p.local.stored = 7; }),
       "byte 0: member \"x.npy\": the stored size differs between its header and the directory"},
      {"twice", archive({good_part(), good_part()}), "byte 385: member \"x.npy\": is in the archive twice"},
      {"bytes that two own",
       archive({part("x.npy", archive({part("y.npy", kContent)})),
                [] {
                  Part p = part("y.npy", kContent);
                  p.central.offset = 35;
                  return p;
                }()}),
       "byte 442: member \"x.npy\": reaches to byte 275, where member \"y.npy\" is"},
  };
  expect_refused(cases, read);
}

TEST(ReadNpz, ReadsNoByteTwiceToFindThatMembersShareIt) {
  // Each entry points to one header, which has 65,535 bytes of extra fields.
  Part long_one = part("a.npy", "");
  long_one.local.extra = std::string(65'535, 'e');
  std::vector<Part> parts = {long_one};
  for (int i = 0; i < 1000; ++i) {
    Part p = part(fmt::format("{}.npy", i), "");
    p.central.offset = 0;
    parts.push_back(p);
  }
  const std::string file = archive(parts);
  std::int64_t total = 0;
  const ByteSource counting(static_cast<std::int64_t>(file.size()),
                            [&](std::int64_t offset, std::span<std::byte> out) {
                              total += static_cast<std::int64_t>(out.size());
                              std::memcpy(out.data(), file.data() + offset, out.size());
                            });
  EXPECT_NE(error_of([&] { read_npz_directory(counting); }), "accepted");
  EXPECT_LE(total, 3 * static_cast<std::int64_t>(file.size()));
}

TEST(ReadNpz, RefusesDataThatIsNotAsDeclared) {
  const auto deflated_with = [](const std::function<void(Part&)>& change) {
    Part p = part("x.npy", kContent, true);
    change(p);
    p.local = p.central;
    return archive({p});
  };
  const auto size = static_cast<std::int64_t>(deflated(kContent).size());
  std::string changed = kContent;
  changed[130] = '!';
  const std::vector<BadFile> cases = {
      {"wrong CRC", with([](Part& p) { p.local.crc = p.central.crc = 7; }),
       fmt::format("byte 167: member \"x\": the data has CRC {:08x} but 00000007 is declared",
                   good_part().local.crc)},
      {"changed data", with([](Part& p) { p.data[130] = '!'; }),
       fmt::format("byte 167: member \"x\": the data has CRC {:08x} but {:08x} is declared",
                   part("x.npy", changed).local.crc, good_part().local.crc)},
      {"less than declared", deflated_with([](Part& p) { p.central.bytes = 133; }),
       fmt::format("byte {}: member \"x\": the data inflates to fewer than the 133 bytes that are declared",
                   35 + size)},
      {"bytes behind it", deflated_with([](Part& p) {
         p.data += "zz";
         p.central.stored += 2;
       }),
       fmt::format("byte {}: member \"x\": bytes follow the end of the deflated data", 35 + size)},
      {"cut", deflated_with([](Part& p) {
         p.data.resize(p.data.size() - 3);
         p.central.stored -= 3;
       }),
       fmt::format("byte {}: member \"x\": the deflated data ends too early", 35 + size - 3)},
      {"no code", deflated_with([](Part& p) { p.data[0] = '\xFF'; }),
       "byte 36: member \"x\": the deflated data is damaged"},
      {"not .npy inside", archive({part("x.npy", "hello, world")}), "byte 0: not a .npy file (it begins otherwise)"},
      {"nothing inside", archive({part("x.npy", "")}), "byte 0: the file is empty"},
  };
  expect_refused(cases, read);
}

TEST(ReadNpz, StopsBombs) {
  const std::string zeros = npy_of(std::vector<float>((64U << 20U) / 4));
  Part bomb = part("x.npy", zeros, true);
  ASSERT_LT(bomb.data.size() * 1000, zeros.size());
  EXPECT_EQ(error_of([&] { read(archive({bomb})); }),
            fmt::format("byte {}: member \"x.npy\": {} bytes in {} is more than 1000:1 (a zip bomb; save it without "
                        "compression)",
                        35 + bomb.data.size(), zeros.size(), bomb.data.size()));
  // said to be small
  bomb.local.bytes = bomb.central.bytes = 10;
  EXPECT_NE(error_of([&] { read(archive({bomb})); }).find("inflates to more than the 10 bytes"), std::string::npos);
  // said to be more than deflate can do
  Part liar = part("x.npy", kContent, true);
  liar.local.bytes = liar.central.bytes = 1U << 20U;
  EXPECT_NE(error_of([&] { read(archive({liar})); }).find("deflated bytes cannot become 1048576"), std::string::npos);
  // many zeros are no bomb where they are few enough
  EXPECT_EQ(read_all(archive({part("x.npy", npy_of(std::vector<float>(1U << 20U)), true)})).front().bytes.size(),
            4U << 20U);
}

TEST(ReadNpz, SurvivesTruncationAndChanges) {
  const std::string both = archive({part("a.npy", npy_of({1, 2, 3})), part("b.npy", npy_of({4, 5}), true)});
  expect_every_cut_refused(archive({good_part()}), read);
  expect_every_cut_refused(both, read);
  const std::string zip64 = archive({good_part()}, [](End& e) {
    e.before = zip64_end(1, e.size, e.offset);
    e.members = 0xFFFF;
  });
  expect_every_cut_refused(zip64, read);
  expect_survives_changes(both, 20'000, read);
  expect_survives_changes(zip64, 20'000, read);
}

TEST(NpzStream, ReadsInPiecesOfAnySize) {
  std::vector<float> values(100'000);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 977);
  const std::string content = npy_of(values);
  for (const bool deflate : {false, true}) {
    const std::string file = archive({part("x.npy", content, deflate)});
    const NpzMember member = read_npz_directory(bytes_of(file)).front();
    NpzStream stream(bytes_of(file), member);
    stream.skip(100);
    std::string got(100, '\0');
    got.replace(0, 100, content, 0, 100);
    for (std::size_t piece = 1; got.size() < content.size(); piece = piece * 3 % 50'021) {
      std::vector<std::byte> out(std::min(piece, content.size() - got.size()));
      stream.read(out);
      got.append(reinterpret_cast<const char*>(out.data()), out.size());
      EXPECT_EQ(stream.position(), static_cast<std::int64_t>(got.size()));
    }
    EXPECT_TRUE(got == content);
    std::vector<std::byte> more(1);
    EXPECT_EQ(error_of([&] { stream.read(more); }), "npz: 1 bytes of member \"x\" were asked for but 0 remain");
  }
}

TEST(NpzStream, RefusesMembersOfAnotherFile) {
  const std::string file = archive({good_part()});
  NpzMember member = read_npz_directory(bytes_of(file)).front();
  member.offset = 200;
  EXPECT_EQ(error_of([&] { NpzStream(bytes_of(file), member); }),
            "npz: member \"x\" does not lie within the 240 bytes that were given");
  member.deflated = true;
  member.offset = 35;
  member.bytes = 1LL << 60U;
  EXPECT_EQ(error_of([&] { read_npz(bytes_of(file), member); }),
            "npz: member \"x\" does not lie within the 240 bytes that were given");
}

}  // namespace
}  // namespace posenc::npz_test
