#include "posenc/json.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <ostream>
#include <random>
#include <string>
#include <vector>

#include "posenc/error.h"

namespace posenc::json_test {

void PrintTo(const Json& json, std::ostream* out) { *out << dump_json(json); }

namespace {

std::string error_of(std::string_view text, const JsonLimits& limits = {}) {
  try {
    const Json json = parse_json(text, limits);
    return fmt::format("accepted: {}", dump_json(json));
  } catch (const Error& error) {
    return error.what();
  }
}

std::string repeated(std::string_view text, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) all += text;
  return all;
}

TEST(ParseJson, ReadsEveryKindOfValue) {
  const Json json =
      parse_json(R"({"none":null,"yes":true,"no":false,"whole":-7,"part":0.5,"text":"a","list":[1,[]],"map":{}})");
  EXPECT_NE(json.find("none")->as<std::nullptr_t>(), nullptr);
  EXPECT_TRUE(*json.find("yes")->as<bool>());
  EXPECT_FALSE(*json.find("no")->as<bool>());
  EXPECT_EQ(*json.find("whole")->as<std::int64_t>(), -7);
  EXPECT_EQ(*json.find("part")->as<double>(), 0.5);
  EXPECT_EQ(*json.find("text")->as<std::string>(), "a");
  EXPECT_EQ(*json.find("list"), Json(Json::Array{1, Json::Array{}}));
  EXPECT_EQ(*json.find("map"), Json(Json::Object{}));
  EXPECT_EQ(json.find("absent"), nullptr);
  EXPECT_EQ(json.find("list")->find("list"), nullptr);
}

TEST(ParseJson, KeepsTheOrderOfKeys) {
  EXPECT_EQ(dump_json(parse_json(R"({"b":1,"a":2,"":3})")), R"({"b":1,"a":2,"":3})");
}

TEST(ParseJson, ReadsASingleValueWithSpaceAround) {
  EXPECT_EQ(parse_json(" \t\r\n 3 \n"), Json(3));
  EXPECT_EQ(parse_json("\"\""), Json(""));
}

TEST(ParseJson, KeepsIntegersExact) {
  EXPECT_EQ(*parse_json("9223372036854775807").as<std::int64_t>(), std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(*parse_json("-9223372036854775808").as<std::int64_t>(), std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(*parse_json("9007199254740993").as<std::int64_t>(), 9007199254740993);
  EXPECT_EQ(*parse_json("-0").as<std::int64_t>(), 0);
}

TEST(ParseJson, ReadsTheNearestDouble) {
  struct Case {
    const char* text;
    double value;
  };
  const std::vector<Case> cases = {
      {"1.0", 1.0},
      {"-0.0", -0.0},
      {"1e5", 1e5},
      {"1E+5", 1e5},
      {"0.1", 0.1},
      {"1.7976931348623157e308", std::numeric_limits<double>::max()},
      {"5e-324", std::numeric_limits<double>::denorm_min()},
      {"2.2250738585072011e-308", 2.2250738585072011e-308},
      {"1e-400", 0.0},
      {"-1e-400", -0.0},
      {"0.0000000001e-2147483639", 0.0},
      {"1e-99999999999999999999", 0.0},
      {"9007199254740993.0", 9007199254740992.0},
      // numbers on which RapidJSON 1.1.0's own conversion crashes or reads memory that nobody set
      {"128.74836467836484838364836483643636483648e-336", 0.0},
      {"6223372036854775296."
       "1701512723685473547372536854755293372036854685477529752233737201701512337200972013723685473",
       6223372036854775296.0},
      // half a step above 1, and a hair more
      {"1.00000000000000011102230246251565404236316680908203125", 1.0},
      {"1.00000000000000011102230246251565404236316680908203126", std::nextafter(1.0, 2.0)},
  };
  for (const Case& c : cases) {
    const Json json = parse_json(c.text);
    ASSERT_NE(json.as<double>(), nullptr) << c.text;
    EXPECT_EQ(std::bit_cast<std::uint64_t>(*json.as<double>()), std::bit_cast<std::uint64_t>(c.value)) << c.text;
  }
  const std::string far_down = fmt::format("0.{:0>400}1e5", "");
  EXPECT_EQ(*parse_json(far_down).as<double>(), 0.0);
}

TEST(ParseJson, DecodesEscapes) {
  EXPECT_EQ(parse_json(R"("\"\\\/\b\f\n\r\t\u0041\u00e9\ud83d\ude00\u0000")"),
            Json(std::string("\"\\/\b\f\n\r\tA\u00e9\U0001F600\0", 16)));
  EXPECT_EQ(parse_json("\"\xED\x9F\xBF \xEE\x80\x80\""), Json("\xED\x9F\xBF \xEE\x80\x80"));  // around the surrogates
}

TEST(ParseJson, RefusesMalformedTextAndSaysWhere) {
  struct Case {
    const char* text;
    const char* error;
  };
  const std::vector<Case> cases = {
      {"", "line 1, column 1: the text is empty"},
      {" \n\t", "line 2, column 2: the text is empty"},
      {"\xEF\xBB\xBF{}", "line 1, column 1: the text begins with a byte order mark (save it as UTF-8 without one)"},
      {"\xFF\xFE{", "line 1, column 1: the text is UTF-16 (save it as UTF-8)"},
      {"}", "line 1, column 1: expected a value, got '}'"},
      {"[", "line 1, column 2: expected a value, but the text ends"},
      {"{", "line 1, column 2: expected a key in double quotes, but the text ends"},
      {"{\"a\"", "line 1, column 5: expected ':', but the text ends"},
      {"{\"a\" 1}", "line 1, column 6: expected ':', got '1'"},
      {"{\"a\":", "line 1, column 6: expected a value, but the text ends"},
      {"{\"a\":1", "line 1, column 7: expected ',' or '}', but the text ends"},
      {"{\"a\":1]", "line 1, column 7: expected ',' or '}', got ']'"},
      {"{\"a\":1,}", "line 1, column 8: expected a key in double quotes, got '}'"},
      {"{'a':1}", "line 1, column 2: expected a key in double quotes, got '''"},
      {"{1:2}", "line 1, column 2: expected a key in double quotes, got '1'"},
      {"[1", "line 1, column 3: expected ',' or ']', but the text ends"},
      {"[1 2]", "line 1, column 4: expected ',' or ']', got '2'"},
      {"[1}", "line 1, column 3: expected ',' or ']', got '}'"},
      {"[1,]", "line 1, column 4: expected a value, got ']'"},
      {"[,1]", "line 1, column 2: expected a value, got ','"},
      {"{} x", "line 1, column 4: expected the end of the text, got 'x'"},
      {"{}\n{}", "line 2, column 1: expected the end of the text, got '{'"},
      {"// c\n{}", "line 1, column 1: expected a value, got '/' (JSON has no comments)"},
      {"{\n  # c\n}", "line 2, column 3: expected a key in double quotes, got '#' (JSON has no comments)"},
      {"nul", "line 1, column 1: nul is not a value"},
      {"[true, flase]", "line 1, column 8: flase is not a value"},
      {"True", "line 1, column 1: True is not a value"},
      {"nullx", "line 1, column 5: expected the end of the text, got 'x'"},
      {"[-]", "line 1, column 2: - is not a value"},
      {"[+1]", "line 1, column 2: expected a value, got '+'"},
      {"[.5]", "line 1, column 2: expected a value, got '.'"},
      {"[01]", "line 1, column 3: expected ',' or ']', got '1'"},
      {"[1.]", "line 1, column 4: expected a digit after '.', got ']'"},
      {"[1e]", "line 1, column 4: expected a digit of the exponent, got ']'"},
      {"[0x10]", "line 1, column 3: expected ',' or ']', got 'x'"},
      {"\"a", "line 1, column 3: the string has no closing quote"},
      {"\"a\nb\"", "line 1, column 3: control character 0x0a in a string must be escaped"},
      {"\"\\x\"", "line 1, column 2: unknown escape"},
      {"\"\\u12G4\"", "line 1, column 2: \\u needs four hexadecimal digits"},
      {"\"\\ud800\"", "line 1, column 2: half of a surrogate pair"},
      {"\"\\ud800\\u0041\"", "line 1, column 2: half of a surrogate pair"},
      {"[\"ok\", \"a\\\"\\udc00\"]", "line 1, column 8: the string holds half of a surrogate pair"},
      {"{\"\\udfff\":1}", "line 1, column 2: the string holds half of a surrogate pair"},
      {"\"\xED\xA0\x80\"", "line 1, column 2: invalid UTF-8"},
      {"\"\xC0\x80\"", "line 1, column 2: invalid UTF-8"},
      {"\"\xF5\x80\x80\x80\"", "line 1, column 2: invalid UTF-8"},
      {"\"\xE2\x82\"", "line 1, column 2: invalid UTF-8"},
      {"[\xFF]", "line 1, column 2: expected a value, got byte 0xff"},
      {"[\"\u00e9\u00e9\", x]", "line 1, column 8: x is not a value"},  // columns count characters
      {"[1,\r\n 2,\r\n ?]", "line 3, column 2: expected a value, got '?'"},
  };
  for (const Case& c : cases) EXPECT_EQ(error_of(c.text), c.error) << c.text;
}

TEST(ParseJson, RefusesAZeroByteAnywhere) {
  EXPECT_EQ(error_of(std::string_view("{}\0junk", 7)), "line 1, column 3: zero byte (JSON is UTF-8 text)");
  EXPECT_EQ(error_of(std::string_view("\"a\0\"", 4)), "line 1, column 3: zero byte (JSON is UTF-8 text)");
  EXPECT_EQ(error_of(std::string_view("{\0\"\0a\0", 6)), "line 1, column 2: zero byte (JSON is UTF-8 text)");
}

TEST(ParseJson, RefusesNumbersThatDoNotFit) {
  EXPECT_EQ(error_of("[9223372036854775808]"),
            "line 1, column 2: integer 9223372036854775808 does not fit in 64 bits");
  EXPECT_EQ(error_of("-9223372036854775809"),
            "line 1, column 1: integer -9223372036854775809 does not fit in 64 bits");
  EXPECT_EQ(error_of("18446744073709551616"),
            "line 1, column 1: integer 18446744073709551616 does not fit in 64 bits");
  EXPECT_EQ(error_of(std::string(300, '9')),
            "line 1, column 1: integer 9999999999999999999999999999999999999999... does not fit in 64 bits");
  EXPECT_EQ(error_of(std::string(400, '9')), "line 1, column 1: the number is too large");
  EXPECT_EQ(error_of("[1e400]"), "line 1, column 2: the number is too large");
  EXPECT_EQ(error_of("[1.8e308]"), "line 1, column 2: number 1.8e308 is too large");
  EXPECT_EQ(error_of("[-0.5e309]"), "line 1, column 2: number -0.5e309 is too large");
}

TEST(ParseJson, RefusesRepeatedKeysAndNamesBothLines) {
  EXPECT_EQ(error_of("{\"rope_theta\": 1,\n \"b\": 2,\n  \"rope_theta\": 3}"),
            "line 3, column 3: repeated key \"rope_theta\" (first on line 1)");
  EXPECT_EQ(error_of(R"({"a":{"b":1,"\u0062":2}})"), "line 1, column 13: repeated key \"b\" (first on line 1)");
  EXPECT_EQ(error_of(R"({"a\"":1,"c":2,"a\"":3,"c":4})"),
            "line 1, column 16: repeated key \"a\\\"\" (first on line 1)");
  EXPECT_EQ(error_of(R"({"":1,"":1})"), "line 1, column 7: repeated key \"\" (first on line 1)");
  EXPECT_EQ(parse_json(R"([{"a":1},{"a":1,"b":{"a":1}}])"),
            Json(Json::Array{Json::Object{{"a", 1}}, Json::Object{{"a", 1}, {"b", Json::Object{{"a", 1}}}}}));
}

TEST(ParseJson, FindsARepeatedKeyAmongManyQuickly) {
  std::string text = "{";
  for (int i = 0; i < 200'000; ++i) text += fmt::format("\"key{}\":0,\n", i);
  text += "\"key77\":1}";
  EXPECT_EQ(error_of(text), "line 200001, column 1: repeated key \"key77\" (first on line 78)");
}

TEST(ParseJson, ReadsPythonNumbersOnlyWhenAsked) {
  EXPECT_EQ(error_of("[0.0, Infinity]"), "line 1, column 7: Infinity is not a JSON number");
  EXPECT_EQ(error_of("-Infinity"), "line 1, column 1: -Infinity is not a JSON number");
  EXPECT_EQ(error_of("NaN"), "line 1, column 1: NaN is not a JSON number");
  const JsonLimits python{.python_numbers = true};
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(parse_json("[0.0, Infinity, -Infinity]", python), Json(Json::Array{0.0, infinity, -infinity}));
  EXPECT_TRUE(std::isnan(*parse_json("NaN", python).as<double>()));
  EXPECT_EQ(error_of("Inf", python), "line 1, column 1: Inf is not a value");
  EXPECT_EQ(error_of("-Inf", python), "line 1, column 1: -Inf is not a value");
  EXPECT_EQ(error_of("-NaN", python), "line 1, column 1: -NaN is not a value");
  EXPECT_EQ(error_of("nan", python), "line 1, column 1: nan is not a value");
  EXPECT_EQ(error_of("[Infinit]", python), "line 1, column 2: Infinit is not a value");
  EXPECT_EQ(error_of("[Infinitys]", python), "line 1, column 10: expected ',' or ']', got 's'");
  EXPECT_EQ(error_of("1e400", python), "line 1, column 1: the number is too large");
}

TEST(ParseJson, ReadsTheNumbersOfJavaScript) {
  const JsonLimits javascript{.large_integers = true};
  EXPECT_EQ(parse_json("9223372036854775807", javascript), Json(std::int64_t{9223372036854775807}));
  EXPECT_EQ(parse_json("9223372036854775808", javascript), Json(0x1p63));
  EXPECT_EQ(parse_json("-100000000000000000000", javascript), Json(-1e20));
  EXPECT_EQ(error_of(std::string(310, '9'), javascript), "line 1, column 1: the number is too large");
}

TEST(ParseJson, ReadsTheConfigsOfModels) {
  const Json config =
      parse_json(R"({"time_step_limit": [0.0, Infinity], "rope_theta": 500000.0})", kConfigJsonLimits);
  EXPECT_EQ(*config.find("rope_theta"), Json(500000.0));
  EXPECT_EQ(error_of(std::string(16'000'001, ' '), kConfigJsonLimits),
            "line 1, column 1: the text is 16000001 bytes long, the limit is 16000000");
  EXPECT_EQ(error_of("[" + repeated("0,", 1'000'000) + "0]", kConfigJsonLimits),
            "line 1, column 2000000: more than 1000000 values");
  EXPECT_EQ(error_of("{\"rope_theta\": 1e400}", kConfigJsonLimits), "line 1, column 16: the number is too large");
  EXPECT_EQ(error_of("{\"max_position_embeddings\": 9223372036854775808}", kConfigJsonLimits),
            "line 1, column 29: integer 9223372036854775808 does not fit in 64 bits");
}

TEST(ParseJson, StaysWithinItsLimits) {
  const auto nested = [](int depth) { return repeated("[", depth) + repeated("]", depth); };
  EXPECT_EQ(dump_json(parse_json(nested(64))), nested(64));
  EXPECT_EQ(error_of(nested(65)), "line 1, column 65: nested deeper than 64");
  EXPECT_EQ(error_of(repeated("[", 1'000'000)), "line 1, column 65: nested deeper than 64");
  EXPECT_EQ(error_of(repeated("{\"a\":", 1'000'000)), "line 1, column 321: nested deeper than 64");
  EXPECT_EQ(error_of("[]", {.depth = 0}), "line 1, column 1: nested deeper than 0");
  EXPECT_EQ(error_of(nested(1001), {.depth = 1'000'000}), "line 1, column 1001: nested deeper than 1000");
  EXPECT_EQ(error_of("[1, 2]", {.bytes = 5}), "line 1, column 1: the text is 6 bytes long, the limit is 5");
  EXPECT_EQ(parse_json("[1, 2]", {.bytes = 6, .values = 3}), Json(Json::Array{1, 2}));
  EXPECT_EQ(error_of("[1, 2, 3]", {.values = 3}), "line 1, column 8: more than 3 values");
  EXPECT_EQ(parse_json(R"(["abc", "\u0041"])", {.text = 6}), Json(Json::Array{"abc", "A"}));
  EXPECT_EQ(error_of(R"({"abc": "\"\\x"})", {.text = 4}), "line 1, column 9: a string is longer than 4 bytes");
  EXPECT_EQ(error_of(R"({"abcde": 1})", {.text = 4}), "line 1, column 2: a string is longer than 4 bytes");
  EXPECT_EQ(error_of(R"(["abcde)", {.text = 4}), "line 1, column 2: a string is longer than 4 bytes");
  EXPECT_EQ(error_of(R"(["abc\)", {.text = 4}), "line 1, column 6: unknown escape");
}

TEST(ParseJson, SurvivesTruncationAtEveryByte) {
  const std::string text =
      "{\"a\": [1, -2.5e-3, true, null], \"\\u00e9\\ud83d\\ude00\": {\"b\": \"\u00e9\\n\", \"c\": [[], {}]}, \"d\": "
      "1e5}";
  EXPECT_EQ(error_of(text).substr(0, 9), "accepted:");
  for (std::size_t length = 0; length < text.size(); ++length) {
    EXPECT_EQ(error_of(text.substr(0, length)).substr(0, 5), "line ") << text.substr(0, length);
  }
}

TEST(ParseJson, SurvivesAnyChangedByte) {
  const std::string good = R"({"a": [1, -2.5e-3, true], "\ud83d\ude00": {"b": "\n", "c": [[], {}]}, "d": Infinity})";
  for (std::size_t at = 0; at < good.size(); ++at) {
    for (int byte = 0; byte < 256; ++byte) {
      std::string text = good;
      text[at] = static_cast<char>(byte);
      const std::string outcome = error_of(text, {.python_numbers = true});
      EXPECT_TRUE(outcome.starts_with("accepted:") || outcome.starts_with("line ")) << outcome;
    }
  }
}

TEST(DumpJson, WritesCompactOrIndented) {
  const Json json = Json::Object{{"a", Json::Array{1, true, nullptr}}, {"b", Json::Object{}}, {"c", Json::Array{}}};
  EXPECT_EQ(dump_json(json), R"({"a":[1,true,null],"b":{},"c":[]})");
  EXPECT_EQ(dump_json(json, 2), "{\n  \"a\": [\n    1,\n    true,\n    null\n  ],\n  \"b\": {},\n  \"c\": []\n}");
  EXPECT_EQ(dump_json(json, -1), dump_json(json, 0));
}

TEST(DumpJson, WritesTheFewestDigitsAndKeepsDoublesDoubles) {
  struct Case {
    double value;
    const char* text;
  };
  const std::vector<Case> cases = {
      {0.0, "0.0"},
      {-0.0, "-0.0"},
      {1.0, "1.0"},
      {500000.0, "500000.0"},
      {0.1, "0.1"},
      {1e15, "1000000000000000.0"},
      {1e16, "1e+16"},
      {1e-4, "0.0001"},
      {1e-5, "1e-05"},
      {-2.5e-7, "-2.5e-07"},
      {1.0 / 3.0, "0.3333333333333333"},
      {5e-324, "5e-324"},
      {1.7976931348623157e308, "1.7976931348623157e+308"},

  };
  for (const Case& c : cases) EXPECT_EQ(dump_json(c.value), c.text);
  EXPECT_EQ(dump_json(std::numeric_limits<double>::quiet_NaN()), "null");
  EXPECT_EQ(dump_json(std::numeric_limits<double>::infinity()), "null");
  EXPECT_EQ(dump_json(-std::numeric_limits<double>::infinity()), "null");
  EXPECT_EQ(dump_json(std::numeric_limits<std::int64_t>::min()), "-9223372036854775808");
}

TEST(DumpJson, EscapesWhatMustBeAndIsAlwaysValidUtf8) {
  EXPECT_EQ(dump_json(std::string("\"\\/\b\f\n\r\t\x01\x1f\x7f\0", 12)),
            R"("\"\\/\b\f\n\r\t\u0001\u001f\u007f\u0000")");
  EXPECT_EQ(dump_json("\u00e9\u20ac\U0001F600"), "\"\u00e9\u20ac\U0001F600\"");
  EXPECT_EQ(dump_json("a\xFF\xC0\x80z"), R"("a\ufffd\ufffd\ufffdz")");
  EXPECT_EQ(dump_json("\xED\xA0\x80"), R"("\ufffd\ufffd\ufffd")");
  EXPECT_EQ(dump_json("\xE2\x82"), R"("\ufffd\ufffd")");
  EXPECT_EQ(dump_json(Json::Object{{"\n", 1}}), R"({"\n":1})");
}

/// A random value: any kind, any double but NaN and infinities, strings of any bytes below 0x80.
Json random_json(std::mt19937_64& random, int depth) {
  switch (random() % (depth > 0 ? 7 : 5)) {
    case 0:
      return nullptr;
    case 1:
      return random() % 2 == 0;
    case 2:
      return static_cast<std::int64_t>(random()) >> (random() % 64);
    case 3: {
      const auto value = std::bit_cast<double>(static_cast<std::uint64_t>(random()));
      return std::isfinite(value) ? value : 0.5;
    }
    case 4: {
      std::string text;
      for (std::uint64_t i = random() % 8; i > 0; --i) text += static_cast<char>(random() % 128);
      return text + "\u00e9";
    }
    case 5: {
      Json::Array array;
      for (std::uint64_t i = random() % 5; i > 0; --i) array.push_back(random_json(random, depth - 1));
      return array;
    }
    default: {
      Json::Object object;
      for (std::uint64_t i = random() % 5; i > 0; --i) {
        object.emplace_back(std::string(i, 'k'), random_json(random, depth - 1));
      }
      return object;
    }
  }
}

TEST(Json, ReadsBackWhatItWrites) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 20'000; ++i) {
    const Json json = random_json(random, 5);
    const std::string text = dump_json(json);
    const Json again = parse_json(text);
    ASSERT_EQ(again, json) << text;
    ASSERT_EQ(dump_json(again), text);
    ASSERT_EQ(parse_json(dump_json(json, 3)), json) << text;
  }
}

}  // namespace
}  // namespace posenc::json_test
