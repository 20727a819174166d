#include "posenc/npy.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "posenc/error.h"

namespace posenc::npy_test {
namespace {

using Notes = std::vector<std::string>;

std::span<const std::byte> bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

/// A file of any version around any header, which is padded as NumPy does it.
std::string file_with(std::string header, const std::string& data = "", int version = 1) {
  const std::size_t before = version == 1 ? 10 : 12;
  header.append(63 - (before + header.size()) % 64, ' ');
  header += '\n';
  std::string file = "\x93NUMPY";
  file += {static_cast<char>(version), '\0'};
  for (std::size_t i = 0; i < before - 8; ++i) file += static_cast<char>(header.size() >> (8 * i) & 0xFF);
  return file + header + data;
}

std::string dictionary(std::string_view descr, std::string_view shape, bool fortran_order = false) {
  return fmt::format("{{'descr': '{}', 'fortran_order': {}, 'shape': {}, }}", descr, fortran_order ? "True" : "False",
                     shape);
}

/// One element of type T for each value, as the file holds them.
template <class T> std::string data_of(const std::vector<T>& values, bool big_endian = false) {
  std::string data;
  for (const T value : values) {
    std::string one(sizeof(T), '\0');
    std::memcpy(one.data(), &value, sizeof(T));
    data += big_endian ? std::string(one.rbegin(), one.rend()) : one;
  }
  return data;
}

template <class T> std::vector<T> values_of(const NpyArray& array) {
  std::vector<T> values(array.bytes.size() / sizeof(T));
  if (!values.empty()) std::memcpy(values.data(), array.bytes.data(), array.bytes.size());
  return values;
}

std::string error_of(const std::string& file, const NpyOptions& options = {}) {
  try {
    read_npy(bytes_of(file), options);
    return "accepted";
  } catch (const Error& error) {
    return error.what();
  }
}

/// The error of a header whose value for one key is wrong; without data.
std::string error_of_header(const std::string& header) { return error_of(file_with(header)); }

TEST(ReadNpy, ReadsAFileAsNumPyWritesIt) {
  const std::string file = "\x93NUMPY\x01" + std::string("\0v\0", 3) +
                           "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }" + std::string(58, ' ') +
                           "\n" + data_of<float>({1, 2, 3, 4, 5, 6});
  ASSERT_EQ(file.size(), 128U + 24U);
  const NpyHead head = read_npy_head(bytes_of(file), 152);
  EXPECT_EQ(head.type, DataType::kF32);
  EXPECT_EQ(head.stored_size, 4);
  EXPECT_EQ(head.shape, (Extents{2, 3}));
  EXPECT_FALSE(head.fortran_order);
  EXPECT_FALSE(head.big_endian);
  EXPECT_EQ(head.data_offset, 128);
  EXPECT_EQ(head.notes, Notes{});
  const NpyArray array = read_npy(bytes_of(file));
  EXPECT_EQ(array.type, DataType::kF32);
  EXPECT_EQ(array.shape, (Extents{2, 3}));
  EXPECT_EQ(values_of<float>(array), (std::vector<float>{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(array.notes, Notes{});
  EXPECT_EQ(array.view().strides, (Extents{3, 1}));
}

TEST(ReadNpy, ReadsEveryVersion) {
  for (const int version : {1, 2, 3}) {
    const std::string file = file_with(dictionary("<f8", "(2,)"), data_of<double>({0.5, -1}), version);
    EXPECT_EQ(values_of<double>(read_npy(bytes_of(file))), (std::vector<double>{0.5, -1})) << version;
  }
}

TEST(ReadNpy, ReadsFloatsOfEitherByteOrder) {
  const std::vector<std::uint16_t> halves = {0x3C00, 0x1234};
  for (const bool big : {false, true}) {
    const std::string order = big ? ">" : "<";
    const NpyArray f2 = read_npy(bytes_of(file_with(dictionary(order + "f2", "(2,)"), data_of(halves, big))));
    const NpyArray f4 = read_npy(bytes_of(file_with(dictionary(order + "f4", "(1,)"), data_of<float>({0.1F}, big))));
    const NpyArray f8 = read_npy(bytes_of(file_with(dictionary(order + "f8", "(1,)"), data_of<double>({0.1}, big))));
    EXPECT_EQ(f2.type, DataType::kF16);
    EXPECT_EQ(f4.type, DataType::kF32);
    EXPECT_EQ(f8.type, DataType::kF64);
    EXPECT_EQ(values_of<std::uint16_t>(f2), halves);
    EXPECT_EQ(values_of<float>(f4), std::vector<float>{0.1F});
    EXPECT_EQ(values_of<double>(f8), std::vector<double>{0.1});
  }
}

template <class T> void expect_widened(const std::string& code, const std::vector<T>& values) {
  const std::vector<std::int64_t> expected(values.begin(), values.end());
  for (const char order : {'<', '>', '|'}) {
    if (order == '|' && sizeof(T) > 1) continue;
    const std::string header = dictionary(order + code, fmt::format("({},)", values.size()));
    const std::string file = file_with(header, data_of(values, order == '>'));
    const NpyArray array = read_npy(bytes_of(file));
    EXPECT_EQ(array.type, DataType::kI64);
    EXPECT_EQ(values_of<std::int64_t>(array), expected) << order << code;
    const NpyHead head = read_npy_head(bytes_of(file), static_cast<std::int64_t>(file.size()));
    EXPECT_EQ(head.type, DataType::kI64);
    EXPECT_EQ(head.stored_size, static_cast<std::int64_t>(sizeof(T)));
  }
}

TEST(ReadNpy, WidensIntegersAndBools) {
  expect_widened<std::int8_t>("i1", {-128, -1, 0, 127});
  expect_widened<std::int16_t>("i2", {-32768, -2, 32767});
  expect_widened<std::int32_t>("i4", {std::numeric_limits<std::int32_t>::min(), 7, -7});
  expect_widened<std::int64_t>("i8", {std::numeric_limits<std::int64_t>::min(), 7, -7});
  expect_widened<std::uint8_t>("u1", {0, 255});
  expect_widened<std::uint16_t>("u2", {1, 65535});
  expect_widened<std::uint32_t>("u4", {1, 4294967295});
  expect_widened<std::uint64_t>("u8", {1, 9223372036854775807});
  expect_widened<std::uint8_t>("b1", {0, 1, 1});
}

TEST(ReadNpy, RefusesElementsThatDoNotFit) {
  EXPECT_EQ(error_of(file_with(dictionary("<u8", "(2,)"), data_of<std::uint64_t>({1, 9223372036854775808U}))),
            "byte 136: an element must be at most 9223372036854775807 but is 9223372036854775808");
  EXPECT_EQ(error_of(file_with(dictionary("|b1", "(3,)"), data_of<std::uint8_t>({1, 0, 7}))),
            "byte 130: an element must be at most 1 but is 7");
}

TEST(ReadNpy, ReadsBf16OnlyWhenAsked) {
  const std::vector<std::uint16_t> values = {0x3F80, 0xC000};
  for (const std::string descr : {"|V2", "<V2"}) {
    const std::string file = file_with(dictionary(descr, "(2,)"), data_of(values));
    const NpyArray array = read_npy(bytes_of(file), {.void2_is_bf16 = true});
    EXPECT_EQ(array.type, DataType::kBF16);
    EXPECT_EQ(values_of<std::uint16_t>(array), values);
    EXPECT_EQ(error_of(file),
              fmt::format("byte 20: dtype '{}' is two bytes of unknown meaning (say bf16 if it is that)", descr));
  }
}

TEST(ReadNpy, ReadsScalarsAndEmptyArrays) {
  const NpyArray scalar = read_npy(bytes_of(file_with(dictionary("<f4", "()"), data_of<float>({2}))));
  EXPECT_EQ(scalar.shape, Extents{});
  EXPECT_EQ(values_of<float>(scalar), std::vector<float>{2});
  for (const bool fortran_order : {false, true}) {
    const NpyArray empty = read_npy(bytes_of(file_with(dictionary("<i4", "(3, 0, 2)", fortran_order))));
    EXPECT_EQ(empty.shape, (Extents{3, 0, 2}));
    EXPECT_TRUE(empty.bytes.empty());
  }
}

TEST(ReadNpy, TurnsFortranOrderAround) {
  // Element [i, j, k] is 100 i + 10 j + k; in the file, i runs fastest.
  std::vector<std::int16_t> stored;
  for (int k = 0; k < 4; ++k) {
    for (int j = 0; j < 3; ++j) {
      for (int i = 0; i < 2; ++i) stored.push_back(static_cast<std::int16_t>(100 * i + 10 * j + k));
    }
  }
  std::vector<std::int64_t> expected;
  for (int i = 0; i < 2; ++i) {
    for (int j = 0; j < 3; ++j) {
      for (int k = 0; k < 4; ++k) expected.push_back(100 * i + 10 * j + k);
    }
  }
  for (const bool big : {false, true}) {
    const std::string file = file_with(dictionary(big ? ">i2" : "<i2", "(2, 3, 4)", true), data_of(stored, big));
    const NpyArray array = read_npy(bytes_of(file));
    EXPECT_EQ(array.shape, (Extents{2, 3, 4}));
    EXPECT_EQ(values_of<std::int64_t>(array), expected);
  }
  const std::string matrix = file_with(dictionary("<f4", "(2, 3)", true), data_of<float>({1, 4, 2, 5, 3, 6}));
  EXPECT_EQ(values_of<float>(read_npy(bytes_of(matrix))), (std::vector<float>{1, 2, 3, 4, 5, 6}));
  const std::string row = file_with(dictionary("<f4", "(3,)", true), data_of<float>({1, 2, 3}));
  EXPECT_EQ(values_of<float>(read_npy(bytes_of(row))), (std::vector<float>{1, 2, 3}));
}

TEST(ReadNpy, NamesTheElementInTheFileThatDoesNotFit) {
  const std::string file = file_with(dictionary("|b1", "(2, 2)", true), data_of<std::uint8_t>({1, 1, 9, 0}));
  EXPECT_EQ(error_of(file), "byte 130: an element must be at most 1 but is 9");
}

TEST(ReadNpy, AcceptsUnusualHeadersWithANote) {
  const std::string data = data_of<float>({1, 2});
  const auto notes_of = [](const std::string& file) { return read_npy(bytes_of(file)).notes; };
  EXPECT_EQ(notes_of(file_with(dictionary("<f4", "(2L, 1L)"), data)),
            Notes{"an extent ends in L, as Python 2 wrote it"});
  const std::string bare = dictionary("<f4", "(2,)");
  const std::string length(1, static_cast<char>(bare.size()));
  EXPECT_EQ(notes_of("\x93NUMPY\x01" + std::string(1, '\0') + length + std::string(1, '\0') + bare + data),
            (Notes{"the header does not end in a newline", "the data begins at byte 67, not at a multiple of 16"}));
  EXPECT_EQ(notes_of(file_with("{\"shape\":(2,),\"fortran_order\":False,\"descr\":\"<f4\"}", data)), Notes{});
  EXPECT_EQ(notes_of(file_with("\t{ 'descr' :'<f4' , 'fortran_order':False,\n'shape':( 2 , ) }", data)), Notes{});
}

TEST(ReadNpy, RefusesTrailingBytesUnlessAllowed) {
  const std::string file = file_with(dictionary("<f4", "(1,)"), data_of<float>({1}) + "abc");
  EXPECT_EQ(error_of(file), "byte 132: 3 bytes follow the last element (allow trailing bytes to read it anyway)");
  const NpyArray array = read_npy(bytes_of(file), {.allow_trailing = true});
  EXPECT_EQ(values_of<float>(array), std::vector<float>{1});
  EXPECT_EQ(array.notes, Notes{"3 bytes after the last element were ignored"});
}

TEST(ReadNpy, RefusesWhatIsNoNpyFile) {
  const std::string good = file_with(dictionary("<f4", "()"), data_of<float>({1}));
  const auto with_version = [&](int major, int minor) {
    std::string file = good;
    file[6] = static_cast<char>(major);
    file[7] = static_cast<char>(minor);
    return file;
  };
  EXPECT_EQ(error_of(""), "byte 0: the file is empty");
  EXPECT_EQ(error_of("\x93NUMP"), "byte 0: the file ends after 5 bytes, too short for .npy");
  EXPECT_EQ(error_of("hello"), "byte 0: not a .npy file (it begins otherwise)");
  EXPECT_EQ(error_of("\x93numpy" + good.substr(6)), "byte 0: not a .npy file (it begins otherwise)");
  EXPECT_EQ(error_of("PK\x03\x04 and more"), "byte 0: not a .npy file (it is a zip archive, perhaps .npz)");
  for (const int major : {0, 4, 9, 255}) {
    EXPECT_EQ(error_of(with_version(major, 0)),
              fmt::format("byte 6: version {}.0 is unknown (1.0, 2.0 and 3.0 are read)", major));
  }
  EXPECT_EQ(error_of(with_version(1, 1)), "byte 6: version 1.1 is unknown (1.0, 2.0 and 3.0 are read)");
}

TEST(ReadNpy, RefusesHeaderLengthsThatCannotBe) {
  const auto file = [](const char* version_and_length, std::size_t size, const std::string& rest) {
    return "\x93NUMPY" + std::string(version_and_length, size) + rest;
  };
  EXPECT_EQ(error_of(file("", 0, "")), "byte 6: the file ends within its version (1 bytes are needed, 0 remain)");
  EXPECT_EQ(error_of(file("\x01\0", 2, "")),
            "byte 8: the file ends within the header length (2 bytes are needed, 0 remain)");
  EXPECT_EQ(error_of(file("\x01\0\xC8\0", 4, "{}")),
            "byte 10: the file ends within the header (200 bytes are needed, 2 remain)");
  EXPECT_EQ(error_of(file("\x02\0\xF0\xFF\xFF\xFF", 6, "{}")),
            "byte 8: the header is 4294967280 bytes long, the limit is 10000");
  EXPECT_EQ(error_of(file("\x01\0\0\0", 4, "")), "byte 8: the header is empty");
  EXPECT_EQ(error_of(file_with(dictionary("<f4", "()") + std::string(10'000, ' '), "1234")),
            "byte 8: the header is 10102 bytes long, the limit is 10000");
  const std::string longest = dictionary("<f4", "()") + std::string(9900, ' ');
  EXPECT_EQ(error_of(file_with(longest, "1234")), "accepted");
}

TEST(ReadNpy, RefusesHeadersThatAreNoDictionaryOfThreeKeys) {
  struct Case {
    const char* header;
    const char* error;
  };
  const std::vector<Case> cases = {
      {"[]", "byte 10: the header must be a dictionary; got '['"},
      {"__import__('os').system('true')", "byte 10: the header must be a dictionary; got '_'"},
      {"{}", "byte 11: key 'descr' is missing"},
      {"{'descr': '<f4', 'shape': ()}", "byte 38: key 'fortran_order' is missing"},
      {"{'descr': '<f4', 'fortran_order': False}", "byte 49: key 'shape' is missing"},
      {"{'fortran_order': False, 'shape': ()}", "byte 46: key 'descr' is missing"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (), 'x': 1}",
       "byte 64: unknown key 'x' (only descr, fortran_order and shape may be there)"},
      {"{'descr': '<f4', 'descr': '<f8', 'fortran_order': False, 'shape': ()}", "byte 27: repeated key 'descr'"},
      {"{descr: '<f4'}", "byte 11: expected a quoted key; got 'd'"},
      {"{,}", "byte 11: expected a quoted key; got ','"},
      {"{'descr' '<f4'}", "byte 19: a key must be followed by ':'; got '''"},
      {"{'descr': '<f4' 'shape': ()}", "byte 26: the dictionary must go on with ',' or end with '}'; got '''"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': ()} x",
       "byte 64: nothing may follow the dictionary but 'x' does"},
      {"{'descr': '<f4', 'fortran_order': 0, 'shape': ()}", "byte 44: fortran_order must be True or False but is 0"},
      {"{'descr': '<f4', 'fortran_order': 'no', 'shape': ()}",
       "byte 44: fortran_order must be True or False but is '''"},
      {"{'descr': '<f4', 'fortran_order': Falsey, 'shape': ()}",
       "byte 44: fortran_order must be True or False but is Falsey"},
      {"{'descr': '<f\\x34'}", "byte 23: a quoted string must be closed; got '\\'"},
      {"{'descr': '<f4\n'}", "byte 24: a quoted string must be closed; got byte 0x0a"},
      {"{'descr': '<f4\x1b'}", "byte 24: a quoted string must be closed; got byte 0x1b"},
      {"{'descr': '<f4\"}", "byte 63: a quoted string must be closed; got byte 0x0a"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': ()",
       "byte 64: the dictionary must go on with ',' or end with '}'; got the header's end"},
  };
  for (const Case& c : cases) EXPECT_EQ(error_of_header(c.header), c.error) << c.header;
}

TEST(ReadNpy, RefusesDtypesThatAreNoNumbers) {
  struct Case {
    const char* descr;
    const char* error;
  };
  const char* const kUnread =
      "is not read (f2, f4, f8, i1 to i8, u1 to u8 and b1 are, with < or > for the byte order)";
  const std::vector<Case> cases = {
      {"|O", "holds Python objects (pickled objects are never loaded)"},
      {"O", "holds Python objects (pickled objects are never loaded)"},
      {"|O8", "holds Python objects (pickled objects are never loaded)"},
      {"<U9", "is text, not numbers"},
      {"|S4", "is text, not numbers"},
      {"<M8[ns]", "is a time, not a number"},
      {"<m8[D]", "is a time, not a number"},
      {"<c8", "is complex (save the real and the imaginary part)"},
      {"|V4", kUnread},
      {">V2", kUnread},
      {"<f16", kUnread},
      {"<f3", kUnread},
      {"f4", kUnread},
      {"=f4", kUnread},
      {"|f4", kUnread},
      {"", kUnread},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(error_of_header(dictionary(c.descr, "(1,)")), fmt::format("byte 20: dtype '{}' {}", c.descr, c.error));
  }
  EXPECT_EQ(error_of_header("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': ()}"),
            "byte 20: structured dtypes are not read (save each field as an array of its own)");
  EXPECT_EQ(error_of_header("{'descr': __import__('os'), 'fortran_order': False, 'shape': ()}"),
            "byte 20: descr must be a quoted dtype such as '<f4'; got '_'");
  EXPECT_EQ(error_of_header(dictionary(std::string(100, 'z'), "()")).substr(0, 65),
            fmt::format("byte 20: dtype '{:z>40}...' is n", ""));
}

TEST(ReadNpy, RefusesShapesThatCannotBe) {
  struct Case {
    std::string shape;
    const char* error;
  };
  const std::vector<Case> cases = {
      {"3", "byte 60: shape must be a tuple such as (3, 4); got '3'"},
      {"[3]", "byte 60: shape must be a tuple such as (3, 4); got '['"},
      {"(3)", "byte 60: shape must be a tuple but is a number (write (3,))"},
      {"(-1,)", "byte 61: an extent must not be negative but is -1"},
      {"(2, 2.0)", "byte 64: an extent must be an integer but is 2.0"},
      {"(1e3,)", "byte 61: an extent must be an integer but is 1e3"},
      {"(True,)", "byte 61: an extent must be an integer but is True"},
      {"(0x10,)", "byte 61: an extent must be an integer but is 0x10"},
      {"(1_000,)", "byte 61: an extent must be an integer but is 1_000"},
      {"(2LL,)", "byte 61: an extent must be an integer but is 2LL"},
      {"(L,)", "byte 61: an extent must be an integer but is L"},
      {"(2.5L,)", "byte 61: an extent must be an integer but is 2.5L"},
      {"(007,)", "byte 61: an extent must not begin with 0 but is 007"},
      {"(99999999999999999999,)", "byte 61: an extent must be below 2^63 but is 99999999999999999999"},
      {"(0, 9223372036854775808)", "byte 64: an extent must be below 2^63 but is 9223372036854775808"},
      {"(,)", "byte 61: expected an extent, got ','"},
      {"(2,,)", "byte 63: expected an extent, got ','"},
      {"(2 3)", "byte 63: shape must continue with ',' or end with ')'; got '3'"},
      {"('2',)", "byte 61: expected an extent, got '''"},
      {"((2,),)", "byte 61: shape must not hold parentheses within parentheses"},
      {std::string(3000, '('), "byte 61: shape must not hold parentheses within parentheses"},
      {"(1, 1, 1, 1, 1, 1, 1, 1, 1)", "byte 85: shape must have at most 8 dimensions"},
      {"(1099511627776, 1099511627776)", "byte 60: shape [1099511627776, 1099511627776] has more bytes than 2^63"},
      {"(0, 1099511627776, 1099511627776)",
       "byte 60: shape [0, 1099511627776, 1099511627776] has more bytes than 2^63"},
      {"(2305843009213693952,)", "byte 60: shape [2305843009213693952] has more bytes than 2^63"},
      {"(1152921504606846976,)",
       "byte 128: the data of shape [1152921504606846976] needs 4611686018427387904 bytes but only 0 remain (the "
       "file is truncated)"},
  };
  for (const Case& c : cases) EXPECT_EQ(error_of_header(dictionary("<f4", c.shape)), c.error) << c.shape;
  EXPECT_EQ(error_of(file_with(dictionary("<f4", "(1, 1, 1, 1, 1, 1, 1, 1)"), "1234")), "accepted");
}

TEST(ReadNpy, ChecksTheWidenedSizeToo) {
  EXPECT_EQ(error_of_header(dictionary("|i1", "(4611686018427387904,)")),
            "byte 60: shape [4611686018427387904] has more bytes than 2^63");
}

TEST(ReadNpy, RefusesTruncationAtEveryByte) {
  const std::vector<std::string> files = {
      file_with(dictionary("<f4", "(2, 3)"), std::string(24, 'x')),
      file_with(dictionary(">i8", "(2, 3)", true), std::string(48, 'x'), 2),
      file_with(dictionary("|u1", "(7,)"), "1234567", 3),
      file_with(dictionary("<f8", "()"), "12345678"),
      npy_head(DataType::kI64, {5}) + std::string(40, 'x'),
  };
  for (const std::string& file : files) {
    EXPECT_EQ(error_of(file), "accepted");
    for (std::size_t length = 0; length < file.size(); ++length) {
      const std::string error = error_of(file.substr(0, length));
      ASSERT_EQ(error.substr(0, 5), "byte ") << error;
      EXPECT_LE(std::stoul(error.substr(5)), length) << error;
    }
  }
}

TEST(ReadNpy, SurvivesAnyChangedByteOfTheHead) {
  const std::string good = file_with(dictionary("<f4", "(2L, 3)"), std::string(24, 'x'));
  for (std::size_t at = 0; at < 76; ++at) {
    for (int byte = 0; byte < 256; ++byte) {
      std::string file = good;
      file[at] = static_cast<char>(byte);
      const std::string outcome = error_of(file);
      EXPECT_TRUE(outcome == "accepted" || outcome.starts_with("byte ")) << outcome;
    }
  }
}

TEST(ReadNpyHead, NeedsOnlyTheFrontOfALargeFile) {
  const std::string head = npy_head(DataType::kF32, {1 << 20, 1 << 10});
  const std::string front = head + std::string(20'000 - head.size(), 'x');
  const std::int64_t size = 128 + (std::int64_t{4} << 30);
  EXPECT_EQ(read_npy_head(bytes_of(front), size).shape, (Extents{1 << 20, 1 << 10}));
  const auto error = [&](std::int64_t file_size, const std::string& bytes) {
    try {
      read_npy_head(bytes_of(bytes), file_size);
      return std::string("accepted");
    } catch (const Error& caught) {
      return std::string(caught.what());
    }
  };
  EXPECT_EQ(error(size - 1, front).substr(0, 10), "byte 128: ");
  EXPECT_EQ(error(size + 1, front).substr(0, 17), "byte 4294967424: ");
  EXPECT_EQ(error(size, head), "npy: the first 10012 bytes of the file are needed but 128 were given");
  EXPECT_EQ(error(5, head), "npy: file_size is 5 but 128 bytes were given");
}

TEST(NpyHead, IsWhatNumPyWrites) {
  EXPECT_EQ(npy_head(DataType::kF32, {3, 4}), "\x93NUMPY\x01" + std::string("\0v\0", 3) +
                                                  "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }" +
                                                  std::string(58, ' ') + "\n");
  EXPECT_NE(npy_head(DataType::kF64, {7}).find("'<f8', 'fortran_order': False, 'shape': (7,), }"), std::string::npos);
  EXPECT_NE(npy_head(DataType::kI64, {}).find("'<i8', 'fortran_order': False, 'shape': (), }"), std::string::npos);
}

TEST(NpyHead, ReadsBackForEveryTypeAndShape) {
  std::mt19937_64 random(1);
  for (const DataType type : {DataType::kF32, DataType::kF64, DataType::kF16, DataType::kBF16, DataType::kI64}) {
    for (int rank = 0; rank <= Extents::kMax; ++rank) {
      Extents shape;
      for (int axis = 0; axis < rank; ++axis) shape.push_back(static_cast<std::int64_t>(random() % 4));
      std::string file = npy_head(type, shape);
      EXPECT_EQ(file.size() % 64, 0U);
      std::string data;
      for (std::int64_t i = count_of(shape) * size_of(type); i > 0; --i) data += static_cast<char>(random());
      file += data;
      const NpyArray array = read_npy(bytes_of(file), {.void2_is_bf16 = true});
      EXPECT_EQ(array.type, type);
      EXPECT_EQ(array.shape, shape);
      EXPECT_EQ(std::string(reinterpret_cast<const char*>(array.bytes.data()), array.bytes.size()), data);
      EXPECT_EQ(array.notes, Notes{});
    }
  }
  const std::int64_t most = std::numeric_limits<std::int64_t>::max();
  const std::string longest = npy_head(DataType::kF32, {0, most, most, most, most, most, most, most});
  EXPECT_EQ(longest.size() % 64, 0U);
}

TEST(NpyHead, RefusesShapesThatCannotBe) {
  EXPECT_THROW(npy_head(DataType::kF32, {-1}), Error);
  EXPECT_THROW(npy_head(DataType::kF32, {1, 1, 1, 1, 1, 1, 1, 1, 1}), Error);
  EXPECT_THROW(npy_head(DataType::kF32, {std::int64_t{1} << 40, std::int64_t{1} << 40}), Error);
}

}  // namespace
}  // namespace posenc::npy_test
