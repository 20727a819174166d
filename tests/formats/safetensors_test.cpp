#include "posenc/safetensors.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <limits>

#include "formats/file_bytes.h"
#include "sanitized.h"

namespace posenc::safetensors_test {
namespace {

using Metadata = std::vector<std::pair<std::string, std::string>>;

std::string file_with(const std::string& header, const std::string& data = "") {
  return stored<std::uint64_t>(header.size()) + header + data;
}

std::string entry(std::string_view name, std::string_view dtype, std::string_view shape, std::string_view offsets) {
  return fmt::format(R"("{}":{{"dtype":"{}","shape":{},"data_offsets":{}}})", name, dtype, shape, offsets);
}

SafetensorsHead read(const std::string& file) { return read_safetensors_head(bytes_of(file)); }

/// As `read`, and every tensor that has a type of ours as a view. The copy is aligned as a mapped file is.
void read_all(const std::string& file) {
  std::vector<std::uint64_t> aligned(file.size() / 8 + 1);
  if (!file.empty()) std::memcpy(aligned.data(), file.data(), file.size());
  const std::span<const std::byte> bytes(reinterpret_cast<const std::byte*>(aligned.data()), file.size());
  const SafetensorsHead head = read_safetensors_head(bytes);
  for (const SafetensorsTensor& tensor : head.tensors) {
    if (tensor.type) safetensors_view(bytes, tensor);
  }
}

/// One tensor of 8 bytes whose entry is what is wrong.
std::string with_entry(std::string_view dtype, std::string_view shape, std::string_view offsets) {
  return file_with("{" + entry("a", dtype, shape, offsets) + "}", "12345678");
}

std::string good_file() {
  return file_with("{\"__metadata__\":{\"format\":\"pt\"}," + entry("b", "F32", "[2,1]", "[8,16]") + "," +
                       entry("a.weight", "I64", "[1]", "[0,8]") + "," + entry("c", "BOOL", "[3]", "[16,19]") +
                       "}    ",
                   stored<std::int64_t>(-5) + stored_all<float>({1.5F, -2.0F}) + std::string("\1\0\1", 3));
}

TEST(ReadSafetensors, ReadsWhatTheReferenceWrites) {
  const std::string header =
      R"({"__metadata__":{"format":"pt"},"wpe":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]}}      )";
  const std::string file = file_with(header, stored_all<float>({1, 2, 3, 4, 5, 6}));
  const SafetensorsHead head = read(file);
  EXPECT_EQ(head.metadata, (Metadata{{"format", "pt"}}));
  EXPECT_EQ(head.data_offset, static_cast<std::int64_t>(8 + header.size()));
  ASSERT_EQ(head.tensors.size(), 1U);
  const SafetensorsTensor& tensor = head.tensors.front();
  EXPECT_EQ(tensor.name, "wpe");
  EXPECT_EQ(tensor.dtype, "F32");
  EXPECT_EQ(tensor.type, DataType::kF32);
  EXPECT_EQ(tensor.shape, (Extents{2, 3}));
  EXPECT_EQ(tensor.offset, head.data_offset);
  EXPECT_EQ(tensor.bytes, 24);
  EXPECT_EQ(head.find("wpe"), &tensor);
  EXPECT_EQ(head.find("wp"), nullptr);
}

TEST(ReadSafetensors, PutsTensorsInTheOrderOfTheirBytes) {
  const SafetensorsHead head = read(good_file());
  ASSERT_EQ(head.tensors.size(), 3U);
  EXPECT_EQ(head.tensors[0].name, "a.weight");
  EXPECT_EQ(head.tensors[1].name, "b");
  EXPECT_EQ(head.tensors[1].offset, head.data_offset + 8);
  EXPECT_EQ(head.tensors[2].dtype, "BOOL");
  EXPECT_FALSE(head.tensors[2].type.has_value());
}

TEST(ReadSafetensors, KnowsEveryDtype) {
  const std::vector<std::pair<const char*, int>> bits = {
      {"BOOL", 8},  {"U8", 8},          {"I8", 8},      {"I16", 16},    {"U16", 16},    {"F16", 16},
      {"BF16", 16}, {"I32", 32},        {"U32", 32},    {"F32", 32},    {"C64", 64},    {"F64", 64},
      {"I64", 64},  {"U64", 64},        {"F8_E5M2", 8}, {"F8_E4M3", 8}, {"F8_E8M0", 8}, {"F8_E4M3FNUZ", 8},
      {"F4", 4},    {"F8_E5M2FNUZ", 8}, {"F6_E2M3", 6}, {"F6_E3M2", 6}};
  for (const auto& [dtype, width] : bits) {
    const std::string file = file_with("{" + entry("x", dtype, "[4]", fmt::format("[0,{}]", width / 2)) + "}",
                                       std::string(width / 2, 'x'));
    ASSERT_EQ(error_of([&] { read(file); }), "accepted") << dtype;
    EXPECT_EQ(read(file).tensors.front().dtype, dtype);
  }
}

TEST(ReadSafetensors, AcceptsWhatIsUnusualButRight) {
  EXPECT_TRUE(read(file_with("{}")).tensors.empty());
  EXPECT_TRUE(read(file_with("{ }   \n")).tensors.empty());
  EXPECT_EQ(read(file_with("{" + entry("", "F32", "[]", "[0,4]") + "}", "1234")).tensors.front().shape, Extents{});
  // tensors without elements share their place with the next one
  const SafetensorsHead empty =
      read(file_with("{" + entry("a", "F32", "[1]", "[0,4]") + "," + entry("b", "F32", "[0,7]", "[0,0]") + "," +
                         entry("c", "F64", "[3,0]", "[4,4]") + "}",
                     "1234"));
  ASSERT_EQ(empty.tensors.size(), 3U);
  EXPECT_EQ(empty.tensors.front().name, "b");
  EXPECT_EQ(empty.tensors.back().shape, (Extents{3, 0}));
}

TEST(ReadSafetensors, RefusesHeadersThatCannotBe) {
  const std::string nested = "{\"a\":" + std::string(100'000, '[') + std::string(100'000, ']') + "}";
  const std::vector<BadFile> cases = {
      {"empty", "", "byte 0: the file is empty"},
      {"1 byte", "1", "byte 0: the file ends within the header length (8 bytes are needed, 1 remain)"},
      {"7 bytes", "1234567", "byte 0: the file ends within the header length (8 bytes are needed, 7 remain)"},
      {"longer than the file", stored<std::uint64_t>(11) + "{}",
       "byte 0: the header is 11 bytes long but only 2 remain (the file is truncated)"},
      {"2^63", stored<std::uint64_t>(1ULL << 63U) + "{}",
       "byte 0: the header is 9223372036854775808 bytes long, the limit is 100000000 (is it a .safetensors file?)"},
      {"past the limit", stored<std::uint64_t>(100'000'001) + "{}",
       "byte 0: the header is 100000001 bytes long, the limit is 100000000 (is it a .safetensors file?)"},
      {"no header", file_with(""), "byte 8: the header must be a JSON object and begin with '{'"},
      {"a list", file_with("[]"), "byte 8: the header must be a JSON object and begin with '{'"},
      {"space first", file_with(" {}"), "byte 8: the header must be a JSON object and begin with '{'"},
      {"invalid UTF-8", file_with("{\"\xC0\x80\":{}}"), "byte 10: invalid UTF-8"},
      {"zero byte", file_with(std::string("{}\0", 3)), "byte 10: zero byte (JSON is UTF-8 text)"},
      {"more after it", file_with("{} x"), "byte 11: expected the end of the text, got 'x'"},
      {"two objects", file_with("{}{}"), "byte 10: expected the end of the text, got '{'"},
      {"not closed", file_with("{"), "byte 9: expected a key in double quotes, but the text ends"},
      {"too deep", file_with(nested), "byte 15: nested deeper than 3"},
      {"2^64", with_entry("F32", "[18446744073709551616]", "[0,8]"),
       "byte 37: integer 18446744073709551616 does not fit in 64 bits"},
  };
  expect_refused(cases, read);
}

TEST(ReadSafetensors, RefusesEntriesThatCannotBe) {
  const auto only = [](const std::string& members) { return file_with("{" + members + "}", "12345678"); };
  const std::string a = entry("a", "F32", "[2]", "[0,8]");
  const std::vector<BadFile> cases = {
      {"repeated tensor", only(a + ",\n" + a), "byte 63: repeated tensor \"a\""},
      {"repeated under an escape", only(a + "," + entry("\\u0061", "F32", "[2]", "[0,8]")),
       "byte 62: repeated tensor \"a\""},
      {"repeated inner key", only(R"("a":{"dtype":"F32","dtype":"F32","shape":[2],"data_offsets":[0,8]})"),
       "byte 28: repeated key \"dtype\" (first on line 1)"},
      {"metadata is a list", only("\"__metadata__\":[]," + a), "byte 9: __metadata__ must be an object of texts"},
      {"metadata of numbers", only("\"__metadata__\":{\"n\":1}," + a), "byte 9: __metadata__: \"n\" must be a text"},
      {"metadata twice", only("\"__metadata__\":{},\"__metadata__\":{}," + a),
       "byte 27: repeated key \"__metadata__\""},
      {"a number for a tensor", only("\"a\":3"),
       "byte 9: tensor \"a\": must be an object with dtype, shape and data_offsets"},
      {"no dtype", only(R"("a":{"shape":[2],"data_offsets":[0,8]})"),
       "byte 9: tensor \"a\": key \"dtype\" is missing"},
      {"no shape", only(R"("a":{"dtype":"F32","data_offsets":[0,8]})"),
       "byte 9: tensor \"a\": key \"shape\" is missing"},
      {"no offsets", only(R"("a":{"dtype":"F32","shape":[2]})"),
       "byte 9: tensor \"a\": key \"data_offsets\" is missing"},
      {"unknown key", only(R"("a":{"dtype":"F32","shape":[2],"data_offsets":[0,8],"x":1})"),
       "byte 9: tensor \"a\": unknown key \"x\" (only dtype, shape and data_offsets may be there)"},
      {"dtype is a number", only(R"("a":{"dtype":32,"shape":[2],"data_offsets":[0,8]})"),
       "byte 9: tensor \"a\": dtype must be a text such as \"F32\""},
      {"unknown dtype", with_entry("F31", "[2]", "[0,8]"), "byte 9: tensor \"a\": dtype \"F31\" is unknown"},
      {"shape -1", with_entry("F32", "[-1]", "[0,8]"),
       "byte 9: tensor \"a\": an extent must not be negative but is -1"},
      {"shape 1.5", with_entry("F32", "[1.5]", "[0,8]"),
       "byte 9: tensor \"a\": an extent must be an integer but is 1.5"},
      {"shape 1e3", with_entry("F32", "[1e3]", "[0,8]"),
       "byte 9: tensor \"a\": an extent must be an integer but is 1000.0"},
      {"shape true", with_entry("F32", "[true]", "[0,8]"),
       "byte 9: tensor \"a\": an extent must be an integer but is true"},
      {"shape is a number", with_entry("F32", "2", "[0,8]"),
       "byte 9: tensor \"a\": shape must be a list of integers"},
      {"nine dimensions", with_entry("F32", "[1,1,1,1,1,1,1,1,2]", "[0,8]"),
       "byte 9: tensor \"a\": shape must have at most 8 dimensions but has 9"},
      {"the product wraps", with_entry("F16", "[4194305,4194305,211106198978564]", "[0,8]"),
       "byte 9: tensor \"a\": F16 of shape [4194305, 4194305, 211106198978564] has more bits than 2^63"},
      {"the product wraps beside a 0", with_entry("F16", "[0,4194305,4194305,211106198978564]", "[0,0]"),
       "byte 9: tensor \"a\": F16 of shape [0, 4194305, 4194305, 211106198978564] has more bits than 2^63"},
      {"one offset", with_entry("F32", "[2]", "[8]"),
       "byte 9: tensor \"a\": data_offsets must be two integers, where the data begins and where it ends"},
      {"three offsets", with_entry("F32", "[2]", "[0,4,8]"),
       "byte 9: tensor \"a\": data_offsets must be two integers, where the data begins and where it ends"},
      {"offsets with a point", with_entry("F32", "[2]", "[0.0,8]"),
       "byte 9: tensor \"a\": data_offsets must be two integers, where the data begins and where it ends"},
      {"negative offset", with_entry("F32", "[2]", "[-8,0]"),
       "byte 9: tensor \"a\": data_offsets must not be negative but begin at -8"},
      {"reversed offsets", with_entry("F32", "[2]", "[8,0]"),
       "byte 9: tensor \"a\": data_offsets end at 0, before they begin at 8"},
      {"past the end", with_entry("F32", "[3]", "[0,12]"),
       "byte 9: tensor \"a\": data_offsets end at 12 but there are 8 bytes of data (the file is truncated)"},
      {"far past the end", with_entry("F32", "[2]", "[9223372036854775799,9223372036854775807]"),
       "byte 9: tensor \"a\": data_offsets end at 9223372036854775807 but there are 8 bytes of data (the file is "
       "truncated)"},
      {"another size", with_entry("F32", "[1]", "[0,8]"),
       "byte 9: tensor \"a\": F32 of shape [1] has 4 bytes but data_offsets span 8"},
      {"half a byte", with_entry("F4", "[15]", "[0,8]"),
       "byte 9: tensor \"a\": F4 of shape [15] does not fill its last byte"},
      {"six bits", with_entry("F6_E2M3", "[5]", "[0,4]"),
       "byte 9: tensor \"a\": F6_E2M3 of shape [5] does not fill its last byte"},
      {"a newline in the name", only("\"a\\nb\":3"),
       "byte 9: tensor \"a\\nb\": must be an object with dtype, shape and data_offsets"},
      {"a long name", only("\"" + std::string(65'537, 'n') + "\":3"),
       fmt::format("byte 9: tensor \"{:n>40}...\": the name is 65537 bytes long, the limit is 65536", "")},
  };
  expect_refused(cases, read);
}

TEST(ReadSafetensors, RefusesDataThatIsNobodysOrTwoTensors) {
  const auto two = [](const char* first, const char* second, std::size_t size) {
    const std::string header = "{" + entry("a", "U8", "[4]", first) + "," + entry("b", "U8", "[4]", second) + "}";
    return file_with(header, std::string(size, 'x'));
  };
  const std::vector<BadFile> cases = {
      {"a hole", two("[0,4]", "[5,9]", 9),
       "byte 117: tensor \"b\" begins at 5 of the data but the one before it ends at 4 (a hole)"},
      {"a hole in front", two("[1,5]", "[5,9]", 9),
       "byte 113: tensor \"a\" begins at 1 of the data but the one before it ends at 0 (a hole)"},
      {"an overlap", two("[0,4]", "[3,7]", 8),
       "byte 116: tensor \"b\" begins at 3 of the data but the one before it ends at 4 (they overlap)"},
      {"the same bytes", two("[0,4]", "[0,4]", 4),
       "byte 113: tensor \"b\" begins at 0 of the data but the one before it ends at 4 (they overlap)"},
      {"bytes after the last", two("[0,4]", "[4,8]", 11), "byte 121: 3 bytes follow the last tensor"},
      {"bytes and no tensors", file_with("{}", "PK"), "byte 10: 2 bytes follow the last tensor"},
  };
  expect_refused(cases, read);
}

TEST(ReadSafetensors, BoundsTheNumberOfValuesOfOneTensor) {
  std::string zeros = "[0";
  for (int i = 0; i < 100'000; ++i) zeros += ",0";
  const std::string error = error_of([&] { read(with_entry("F32", zeros + "]", "[0,8]")); });
  EXPECT_NE(error.find("more than 100000 values"), std::string::npos) << error;
}

TEST(ReadSafetensors, BoundsTheLengthOfATextBeforeItIsCopied) {
  const std::string header = "{\"__metadata__\":{\"a\":\"" + std::string((16U << 20U) + 1, 'x') + "\"}}";
  EXPECT_EQ(error_of([&] { read(file_with(header)); }), "byte 29: a string is longer than 16777216 bytes");
}

TEST(ReadSafetensors, ReadsManyTensorsQuickly) {
  const int count = is_sample() ? 10'000 : 100'000;
  std::string header = "{";
  for (int i = 0; i < count; ++i) {
    header += fmt::format("{}\"t{}\":{{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[{},{}]}}", i > 0 ? "," : "",
                          i, i, i + 1);
  }
  const std::string data(static_cast<std::size_t>(count), 'x');
  EXPECT_EQ(read(file_with(header + "}", data)).tensors.size(), static_cast<std::size_t>(count));
  header += ",\"t7\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}}";
  const std::string error = error_of([&] { read(file_with(header, data)); });
  EXPECT_EQ(error, fmt::format("byte {}: repeated tensor \"t7\"", 8 + header.size() - 53));
}

TEST(ReadSafetensors, ReadsFromASourceWithoutItsData) {
  const std::string header = "{" + entry("x", "F32", "[1048576,1024]", "[0,4294967296]") + "}";
  const std::string front = file_with(header);
  const ByteSource source(static_cast<std::int64_t>(front.size()) + (1LL << 32U),
                          [&](std::int64_t offset, std::span<std::byte> out) {
                            ASSERT_LE(static_cast<std::size_t>(offset) + out.size(), front.size());
                            std::memcpy(out.data(), front.data() + offset, out.size());
                          });
  EXPECT_EQ(read_safetensors_head(source).tensors.front().bytes, 1LL << 32U);
}

TEST(ReadSafetensors, SurvivesTruncationAndChanges) {
  expect_every_cut_refused(good_file(), read_all);
  expect_every_cut_refused(file_with("{" + entry("x", "BF16", "[2,2]", "[0,8]") + "} ", "12345678"), read_all);
  expect_survives_changes(good_file(), 20'000, read_all);
}

TEST(SafetensorsView, ShowsTheElementsWithoutCopying) {
  const std::string header = "{" + entry("x", "F32", "[2]", "[0,8]") + "}  ";  // 8 + 56
  std::vector<float> file(18);
  const std::string text = file_with(header, stored_all<float>({1.5F, -2.0F}));
  ASSERT_EQ(text.size(), 72U);
  std::memcpy(file.data(), text.data(), text.size());
  const auto bytes = std::as_bytes(std::span(file));
  const SafetensorsHead head = read_safetensors_head(bytes);
  const ConstTensorView view = safetensors_view(bytes, head.tensors.front());
  EXPECT_EQ(view.data, file.data() + 16);
  EXPECT_EQ(view.type, DataType::kF32);
  EXPECT_EQ(view.shape, Extents{2});
}

TEST(SafetensorsView, RefusesWhatItCannotShow) {
  alignas(8) const std::array<std::byte, 32> bytes{};
  SafetensorsTensor tensor{"x", "F32", DataType::kF32, {2}, 24, 8};
  EXPECT_EQ(error_of([&] { safetensors_view(bytes, tensor); }), "accepted");
  tensor.offset = 22;
  EXPECT_EQ(error_of([&] { safetensors_view(bytes, tensor); }),
            "tensor \"x\": the data at byte 22 is not aligned for f32 (copy it first)");
  tensor.offset = 25;
  EXPECT_EQ(error_of([&] { safetensors_view(bytes, tensor); }),
            "tensor \"x\": 8 bytes from byte 25 on are not within the 32 that were given");
  tensor.type.reset();
  tensor.dtype = "I32";
  EXPECT_EQ(error_of([&] { safetensors_view(bytes, tensor); }),
            "tensor \"x\": dtype I32 is not read (F32, F64, F16, BF16 and I64 are)");
}

TEST(LayOutSafetensors, IsReadBackAsItWas) {
  SafetensorsHead head;
  head.metadata = {{"made by", "posenc \"x\"\n"}, {"\u00e9", ""}};
  head.tensors = {{"half", "", DataType::kF16, {3}}, {"b", "", DataType::kF32, {2, 2}}, {"a", "", DataType::kF32, {}},
                  {"bits", "U8", {}, {5}},           {"ids", "", DataType::kI64, {1}},  {"none", "F4", {}, {0, 3}}};
  const std::string bytes = lay_out_safetensors(head);
  EXPECT_EQ(bytes.size() % 8, 0U);
  EXPECT_EQ(head.data_offset, static_cast<std::int64_t>(bytes.size()));
  const SafetensorsHead back = read(bytes + std::string(8 + 4 + 16 + 6 + 5, '\0'));
  EXPECT_EQ(back.metadata, head.metadata);
  EXPECT_EQ(back.data_offset, head.data_offset);
  const std::vector<std::string> names = {"ids", "a", "b", "half", "bits", "none"};
  ASSERT_EQ(back.tensors.size(), names.size());
  for (std::size_t i = 0; i < names.size(); ++i) {
    EXPECT_EQ(back.tensors[i].name, names[i]);
    EXPECT_EQ(head.tensors[i].name, names[i]);
    EXPECT_EQ(back.tensors[i].dtype, head.tensors[i].dtype);
    EXPECT_EQ(back.tensors[i].type, head.tensors[i].type);
    EXPECT_EQ(back.tensors[i].shape, head.tensors[i].shape);
    EXPECT_EQ(back.tensors[i].offset, head.tensors[i].offset);
    EXPECT_EQ(back.tensors[i].bytes, head.tensors[i].bytes);
  }
  SafetensorsHead again = back;
  EXPECT_EQ(lay_out_safetensors(again), bytes);
}

TEST(LayOutSafetensors, WritesWhatOthersRead) {
  SafetensorsHead head;
  head.tensors = {{"table", "", DataType::kF32, {2, 3}}};
  EXPECT_EQ(lay_out_safetensors(head),
            stored<std::uint64_t>(64) + R"({"table":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]}}   )");
  SafetensorsHead nothing;
  EXPECT_EQ(lay_out_safetensors(nothing), stored<std::uint64_t>(8) + "{}      ");
}

TEST(LayOutSafetensors, RefusesWhatNobodyCouldRead) {
  const auto error_with = [](std::vector<SafetensorsTensor> tensors) {
    SafetensorsHead head;
    head.tensors = std::move(tensors);
    return error_of([&] { lay_out_safetensors(head); });
  };
  const std::int64_t huge = std::numeric_limits<std::int64_t>::max() / 64;
  EXPECT_EQ(error_with({{"", "", DataType::kF32, {1}}}), "safetensors: tensor \"\": the name is empty");
  EXPECT_EQ(error_with({{"__metadata__", "", DataType::kF32, {1}}}),
            "safetensors: tensor \"__metadata__\": the name is taken by the metadata");
  EXPECT_EQ(error_with({{"x", "", DataType::kF32, {1}}, {"x", "", DataType::kF64, {1}}}),
            "safetensors: two tensors are named \"x\"");
  EXPECT_EQ(error_with({{"x", "F33", {}, {1}}}), "safetensors: tensor \"x\": dtype 'F33' is unknown");
  EXPECT_EQ(error_with({{"x", "", DataType::kF32, {-1}}}), "safetensors: tensor \"x\": shape [-1] cannot be");
  EXPECT_EQ(error_with({{"x", "", DataType::kF32, {1, 1, 1, 1, 1, 1, 1, 1, 1}}}),
            "safetensors: tensor \"x\": shape [1, 1, 1, 1, 1, 1, 1, 1] cannot be");
  EXPECT_EQ(error_with({{"x", "F4", {}, {3}}}), "safetensors: tensor \"x\": shape [3] cannot be with F4");
  EXPECT_EQ(error_with({{"x", "", DataType::kF64, {huge, 2}}}),
            fmt::format("safetensors: tensor \"x\": shape [{}, 2] cannot be with F64", huge));
  EXPECT_EQ(error_with({{"\xFF", "", DataType::kF64, {1}}}),
            "safetensors: a name or a text of the metadata is not UTF-8");
}

}  // namespace
}  // namespace posenc::safetensors_test
