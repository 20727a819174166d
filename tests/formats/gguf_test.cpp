#include "posenc/gguf.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <limits>

#include "formats/file_bytes.h"

namespace posenc::gguf_test {
namespace {

std::string text(const std::string& value) { return stored<std::uint64_t>(value.size()) + value; }
std::string type(std::uint32_t number) { return stored(number); }
std::string entry(const std::string& key, std::uint32_t number, const std::string& value) {
  return text(key) + type(number) + value;
}
std::string array(std::uint32_t number, std::uint64_t count, const std::string& elements) {
  return type(number) + stored(count) + elements;
}
std::string tensor(const std::string& name, const std::vector<std::uint64_t>& ne, std::uint32_t number,
                   std::uint64_t offset) {
  return text(name) + stored(static_cast<std::uint32_t>(ne.size())) + stored_all(ne) + stored(number) +
         stored(offset);
}

std::string head_of(std::uint64_t tensors, std::uint64_t entries, std::uint32_t version = 3) {
  return "GGUF" + stored(version) + stored(tensors) + stored(entries);
}

/// Entries and infos, then the data at the next multiple of 32.
std::string file_of(const std::vector<std::string>& entries, const std::vector<std::string>& tensors = {},
                    const std::string& data = "") {
  std::string file = head_of(tensors.size(), entries.size());
  for (const std::string& e : entries) file += e;
  for (const std::string& t : tensors) file += t;
  if (!data.empty()) file.append((32 - file.size() % 32) % 32, '\0');
  return file + data;
}

/// Everything that can be asked of a file. The copy is aligned as a mapped file is.
void read(const std::string& file) {
  std::vector<std::uint64_t> aligned(file.size() / 8 + 1);
  if (!file.empty()) std::memcpy(aligned.data(), file.data(), file.size());
  const std::span<const std::byte> bytes(reinterpret_cast<const std::byte*>(aligned.data()), file.size());
  const GgufHead head = read_gguf_head(bytes);
  for (const GgufEntry& e : head.metadata) {
    gguf_integer(e.value);
    gguf_number(e.value);
    if (const auto* const list = e.value.as<GgufArray>()) gguf_elements(*list);
  }
  for (const GgufTensor& t : head.tensors) {
    if (t.type) gguf_view(bytes, t);
  }
}

std::string good_file() {
  return file_of({entry("general.architecture", 8, text("llama")), entry("llama.rope.freq_base", 6, stored(5e5F)),
                  entry("llama.rope.dimension_sections", 9, array(5, 3, stored_all<std::int32_t>({16, 24, -1}))),
                  entry("tokenizer.ggml.tokens", 9, array(8, 3, text("a") + text("") + text("bc"))),
                  entry("some.flags", 9, array(7, 2, std::string("\1\0", 2)))},
                 {tensor("rope_freqs.weight", {2}, 0, 0), tensor("quantised", {32, 2}, 8, 32)},
                 stored_all<float>({1.0F, 8.0F}) + std::string(24 + 68, 'q'));
}

TEST(ReadGguf, ReadsEveryTypeOfValue) {
  const std::string file = file_of({
      entry("a", 0, stored<std::uint8_t>(255)),
      entry("b", 1, stored<std::int8_t>(-128)),
      entry("c", 2, stored<std::uint16_t>(65'535)),
      entry("d", 3, stored<std::int16_t>(-2)),
      entry("e", 4, stored<std::uint32_t>(4'000'000'000U)),
      entry("f", 5, stored<std::int32_t>(-3)),
      entry("g", 6, stored(0.1F)),
      entry("h", 7, std::string(1, '\1')),
      entry("i", 8, text("t\xFF")),
      entry("j", 9, array(12, 2, stored_all<double>({0.5, -1}))),
      entry("k", 10, stored<std::uint64_t>(1ULL << 63U)),
      entry("l", 11, stored(std::numeric_limits<std::int64_t>::min())),
      entry("m", 12, stored(0.1)),
      entry("n", 9, array(8, 0, "")),
  });
  const GgufHead head = read_gguf_head(bytes_of(file));
  EXPECT_EQ(head.version, 3U);
  ASSERT_EQ(head.metadata.size(), 14U);
  const auto value = [&](std::string_view key) { return *head.find(key); };
  EXPECT_EQ(gguf_integer(value("a")), 255);
  EXPECT_EQ(gguf_integer(value("b")), -128);
  EXPECT_EQ(gguf_integer(value("c")), 65'535);
  EXPECT_EQ(gguf_integer(value("d")), -2);
  EXPECT_EQ(gguf_integer(value("e")), 4'000'000'000);
  EXPECT_EQ(gguf_integer(value("f")), -3);
  EXPECT_EQ(gguf_number(value("f")), -3.0);
  EXPECT_EQ(gguf_number(value("g")), static_cast<double>(0.1F));
  EXPECT_EQ(gguf_integer(value("g")), std::nullopt);
  EXPECT_TRUE(*value("h").as<bool>());
  EXPECT_EQ(gguf_number(value("h")), std::nullopt);
  EXPECT_EQ(*value("i").as<std::string_view>(), "t\xFF");
  const std::vector<GgufValue> elements = gguf_elements(*value("j").as<GgufArray>());
  ASSERT_EQ(elements.size(), 2U);
  EXPECT_EQ(gguf_number(elements[1]), -1.0);
  EXPECT_EQ(gguf_integer(value("k")), std::nullopt);
  EXPECT_EQ(gguf_number(value("k")), 9223372036854775808.0);
  EXPECT_EQ(gguf_integer(value("l")), std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(gguf_number(value("m")), 0.1);
  EXPECT_TRUE(gguf_elements(*value("n").as<GgufArray>()).empty());
  EXPECT_EQ(head.find("z"), nullptr);
}

TEST(ReadGguf, ReadsTensors) {
  std::vector<std::uint64_t> aligned(good_file().size() / 8 + 1);
  std::memcpy(aligned.data(), good_file().data(), good_file().size());
  const std::span<const std::byte> file(reinterpret_cast<const std::byte*>(aligned.data()), good_file().size());
  const GgufHead head = read_gguf_head(file);
  ASSERT_EQ(head.tensors.size(), 2U);
  EXPECT_EQ(head.data_offset % 32, 0);
  const GgufTensor& freqs = *head.find_tensor("rope_freqs.weight");
  EXPECT_EQ(freqs.shape, Extents{2});
  EXPECT_EQ(freqs.dtype, "F32");
  EXPECT_EQ(freqs.bytes, 8);
  const ConstTensorView view = gguf_view(file, freqs);
  EXPECT_EQ(static_cast<const float*>(view.data)[1], 8.0F);
  const GgufTensor& quantised = *head.find_tensor("quantised");
  EXPECT_EQ(quantised.shape, (Extents{2, 32}));
  EXPECT_EQ(quantised.bytes, 68);
  EXPECT_EQ(error_of([&] { gguf_view(file, quantised); }),
            "tensor \"quantised\": type Q8_0 is not read (F32, F64, F16, BF16 and I64 are)");
  EXPECT_EQ(head.find_tensor("other"), nullptr);
}

TEST(ReadGguf, ReadsVersionTwoAndOtherAlignments) {
  EXPECT_EQ(read_gguf_head(bytes_of(head_of(0, 0, 2))).version, 2U);
  const std::string entries = entry("general.alignment", 4, stored<std::uint32_t>(8));
  std::string file = head_of(1, 1) + entries + tensor("x", {3}, 30, 8);
  file.append((8 - file.size() % 8) % 8, '\0');
  const GgufHead head = read_gguf_head(bytes_of(file + "12345678" + "abcdef"));
  EXPECT_EQ(head.alignment, 8);
  EXPECT_EQ(head.tensors.front().offset, static_cast<std::int64_t>(file.size()) + 8);
  EXPECT_EQ(head.tensors.front().type, DataType::kBF16);
}

TEST(ReadGguf, RefusesFrontsThatCannotBe) {
  const std::vector<BadFile> cases = {
      {"empty", "", "byte 0: the file is empty"},
      {"three bytes", "GGU", "byte 0: the file ends after 3 bytes, too short for .gguf"},
      {"magic", "GGML" + stored<std::uint32_t>(3), "byte 0: not a .gguf file (it begins otherwise)"},
      {"magic backwards", "FUGG" + stored<std::uint32_t>(3), "byte 0: not a .gguf file (it begins otherwise)"},
      {"big-endian", head_of(0, 0, 0x03000000), "byte 4: the file is big-endian (only little-endian ones are read)"},
      {"version 0", head_of(0, 0, 0), "byte 4: version 0 is not read (2 and 3 are)"},
      {"version 1", head_of(0, 0, 1), "byte 4: version 1 is not read (2 and 3 are)"},
      {"version 4", head_of(0, 0, 4), "byte 4: version 4 is not read (2 and 3 are)"},
      {"2^63 tensors", head_of(1ULL << 63U, 0),
       "byte 8: there are 9223372036854775808 tensors, the limit is 1000000"},
      {"-1 tensors", head_of(~0ULL, 0), "byte 8: there are 18446744073709551615 tensors, the limit is 1000000"},
      {"2^63 entries", head_of(0, 1ULL << 63U),
       "byte 16: there are 9223372036854775808 metadata entries, the limit is 1000000"},
      {"-1 entries", head_of(0, ~0ULL),
       "byte 16: there are 18446744073709551615 metadata entries, the limit is 1000000"},
      {"one entry too many", head_of(0, 1'000'001),
       "byte 16: there are 1000001 metadata entries, the limit is 1000000"},
      {"one tensor too many", head_of(1'000'001, 0), "byte 8: there are 1000001 tensors, the limit is 1000000"},
      {"entries that are not there", head_of(0, 1'000'000),
       "byte 16: 1000000 metadata entries need at least 14 bytes each but 0 remain"},
      {"tensors that are not there", head_of(1'000'000, 0),
       "byte 8: 1000000 tensors need at least 32 bytes each but 0 remain"},
  };
  expect_refused(cases, read);
}

TEST(ReadGguf, RefusesMetadataThatCannotBe) {
  const std::string filler(64, '\0');
  const auto one = [&](const std::string& e) { return head_of(0, 1) + e + filler; };
  const auto alignment = [&](std::uint32_t value) { return one(entry("general.alignment", 4, stored(value))); };
  const std::vector<BadFile> cases = {
      {"a key of 2^63 bytes", one(stored<std::uint64_t>(1ULL << 63U)),
       "byte 24: a key is 9223372036854775808 bytes long, the limit is 65535"},
      {"a key past the end", one(stored<std::uint64_t>(66) + "k"), "byte 24: a key is 66 bytes long but 65 remain"},
      {"a long key", one(text(std::string(65'536, 'k'))), "byte 24: a key is 65536 bytes long, the limit is 65535"},
      {"an empty key", one(entry("", 0, "x")), "byte 24: a key must not be empty"},
      {"a key with an accent", one(entry("\u00e9", 0, "x")), "byte 24: key \"\u00e9\" must be printable ASCII"},
      {"a key with a newline", one(entry("a\nb", 0, "x")), "byte 24: key \"a\\nb\" must be printable ASCII"},
      {"value type 13", one(entry("k", 13, "x")), "byte 33: unknown value type 13 (known: 0 to 12)"},
      {"value type 2^31", one(entry("k", 1U << 31U, "x")), "byte 33: unknown value type 2147483648 (known: 0 to 12)"},
      {"a bool of 7", one(entry("k", 7, "\7")), "byte 37: a bool must be 0 or 1 but is 7"},
      {"a text of 2^63 bytes", one(entry("k", 8, stored<std::uint64_t>(1ULL << 63U))),
       "byte 37: a text is 9223372036854775808 bytes long, the limit is 16777216"},
      {"a text past the end", one(entry("k", 8, stored<std::uint64_t>(65))),
       "byte 37: a text is 65 bytes long but 64 remain"},
      {"an array of 2^62", one(entry("k", 9, array(4, 1ULL << 62U, ""))),
       "byte 41: an array of 4611686018427387904 elements needs at least 4 bytes for each but 64 remain"},
      {"an array of 2^62 texts", one(entry("k", 9, array(8, 1ULL << 62U, ""))),
       "byte 41: an array of 4611686018427387904 elements needs at least 8 bytes for each but 64 remain"},
      {"an array of arrays", one(entry("k", 9, array(9, 1, array(4, 1, stored(1))))),
       "byte 37: an array must not hold arrays"},
      {"an array of type 13", one(entry("k", 9, array(13, 1, ""))),
       "byte 37: unknown value type 13 (known: 0 to 12)"},
      {"a bool of 2 in an array", one(entry("k", 9, array(7, 2, "\1\2"))), "byte 50: a bool must be 0 or 1 but is 2"},
      {"a text in an array past the end", one(entry("k", 9, array(8, 1, stored<std::uint64_t>(65)))),
       "byte 49: a text is 65 bytes long but 64 remain"},
      {"a repeated key", file_of({entry("k", 0, "x"), entry("a", 0, "x"), entry("k", 1, "y")}),
       "byte 52: repeated key \"k\""},
      {"alignment 0", alignment(0), "byte 24: general.alignment must be a power of two up to 1048576 but is 0"},
      {"alignment 3", alignment(3), "byte 24: general.alignment must be a power of two up to 1048576 but is 3"},
      {"alignment 2^31", alignment(1U << 31U),
       "byte 24: general.alignment must be a power of two up to 1048576 but is 2147483648"},
      {"alignment of another type", one(entry("general.alignment", 10, stored<std::uint64_t>(32))),
       "byte 24: general.alignment must be a u32"},
      {"alignment as text", one(entry("general.alignment", 8, text("32"))),
       "byte 24: general.alignment must be a u32"},
  };
  expect_refused(cases, read);
}

TEST(ReadGguf, RefusesTensorsThatCannotBe) {
  const std::string data(128, 'd');
  const auto one = [&](const std::string& t) { return file_of({}, {t}, data); };
  const auto with_dims = [&](std::uint32_t dims) {
    return head_of(1, 0) + text("x") + stored(dims) + std::string(100, '\0');
  };
  const std::vector<BadFile> cases = {
      {"0 dimensions", with_dims(0), "byte 33: tensor \"x\" must have 1 to 4 dimensions but has 0"},
      {"5 dimensions", with_dims(5), "byte 33: tensor \"x\" must have 1 to 4 dimensions but has 5"},
      {"2^32 - 1 dimensions", with_dims(~0U), "byte 33: tensor \"x\" must have 1 to 4 dimensions but has 4294967295"},
      {"extent 0", one(tensor("x", {4, 0}, 0, 0)),
       "byte 45: an extent of tensor \"x\" must be from 1 to 2^63 - 1 but is 0"},
      {"a negative extent", one(tensor("x", {~0ULL}, 0, 0)),
       "byte 37: an extent of tensor \"x\" must be from 1 to 2^63 - 1 but is 18446744073709551615"},
      {"the product wraps", one(tensor("x", {(1ULL << 42U) + 1, 1ULL << 22U, 1}, 0, 0)),
       "byte 33: tensor \"x\" of shape [1, 4194304, 4398046511105] has more bytes than 2^63"},
      {"the bytes wrap", one(tensor("x", {1ULL << 62U}, 0, 0)),
       "byte 33: tensor \"x\" of shape [4611686018427387904] has more bytes than 2^63"},
      {"part of a block", one(tensor("x", {33}, 2, 0)),
       "byte 33: tensor \"x\" has rows of 33 elements, but Q4_0 comes in blocks of 32"},
      {"an unknown type", one(tensor("x", {4}, 4, 0)), "byte 45: type 4 of tensor \"x\" is unknown"},
      {"type -1", one(tensor("x", {4}, ~0U, 0)), "byte 45: type 4294967295 of tensor \"x\" is unknown"},
      {"not aligned", one(tensor("x", {4}, 0, 4)),
       "byte 49: tensor \"x\" begins at 4 of the data, which is no multiple of 32"},
      {"out of the file", one(tensor("x", {4}, 0, 128)),
       "byte 24: tensor \"x\" needs 16 bytes from 128 of the data on, of which there are 128 (the file is "
       "truncated)"},
      {"too large", one(tensor("x", {33}, 0, 0)),
       "byte 24: tensor \"x\" needs 132 bytes from 0 of the data on, of which there are 128 (the file is truncated)"},
      {"wrapping", one(tensor("x", {4}, 0, ~0ULL - 31)),
       "byte 24: tensor \"x\" needs 16 bytes from 4611686018427387904 of the data on, of which there are 128 (the "
       "file is truncated)"},
      {"without data", file_of({}, {tensor("x", {4}, 0, 0)}),
       "byte 24: tensor \"x\" needs 16 bytes from 0 of the data on, of which there are 0 (the file is truncated)"},
      {"overlapping", file_of({}, {tensor("b", {9}, 0, 0), tensor("a", {4}, 0, 32)}, data),
       "byte 57: tensor \"a\" overlaps tensor \"b\""},
      {"the same place", file_of({}, {tensor("a", {4}, 0, 0), tensor("b", {4}, 0, 0)}, data),
       "byte 57: tensor \"b\" overlaps tensor \"a\""},
      {"repeated", file_of({}, {tensor("a", {4}, 0, 0), tensor("a", {4}, 0, 32)}, data),
       "byte 57: repeated tensor \"a\""},
      {"a long name", one(tensor(std::string(65, 'n'), {4}, 0, 0)),
       "byte 24: the name of a tensor is 65 bytes long, the limit is 64"},
  };
  expect_refused(cases, read);
}

TEST(ReadGguf, SurvivesTruncationAndChanges) {
  const std::string good = good_file();
  expect_every_cut_refused(good, read);
  expect_every_cut_refused(file_of({entry("k", 9,
                                          array(8, 400,
                                                [] {
                                                  std::string all;
                                                  for (int i = 0; i < 400; ++i) all += text(fmt::format("t{}", i));
                                                  return all;
                                                }()))}),
                           read);
  expect_survives_changes(good, 40'000, read);
}

TEST(GgufView, RefusesWhatItCannotShow) {
  alignas(8) const std::array<std::byte, 32> bytes{};
  GgufTensor t{"x", "F32", DataType::kF32, {2}, 24, 8};
  EXPECT_EQ(error_of([&] { gguf_view(bytes, t); }), "accepted");
  t.offset = 22;
  EXPECT_EQ(error_of([&] { gguf_view(bytes, t); }),
            "tensor \"x\": the data at byte 22 is not aligned for f32 (copy it first)");
  t.offset = 32;
  EXPECT_EQ(error_of([&] { gguf_view(bytes, t); }),
            "tensor \"x\": 8 bytes from byte 32 on are not within the 32 that were given");
}

}  // namespace
}  // namespace posenc::gguf_test
