#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

#include "posenc/error.h"
#include "posenc/json.h"
#include "posenc/scheme.h"

namespace posenc::scheme_json_test {
namespace {

std::string error_of(std::string_view json) {
  try {
    return fmt::format("accepted: {}", to_json(scheme_from_json(json)));
  } catch (const Error& error) {
    return error.what();
  }
}

TEST(SchemeJson, WritesEveryFieldInOrder) {
  EXPECT_EQ(to_json(None{}), R"({"scheme":"none"})");
  EXPECT_EQ(to_json(Sinusoidal{}), R"({"scheme":"sinusoidal","width":512,"base":10000.0,"spacing":"paper",)"
                                   R"("layout":"interleaved","scale":1.0,"odd":"refuse","axes":1,"turns":false})");
  EXPECT_EQ(to_json(Learned{.rows = 514, .offset = 2}), R"({"scheme":"learned","rows":514,"width":512,"offset":2})");
  EXPECT_EQ(to_json(Steps{}), R"({"scheme":"steps","width":512,"step":0.0001})");
}

TEST(SchemeJson, ReadsBackEveryScheme) {
  const std::vector<Scheme> schemes = {
      None{},
      Sinusoidal{.width = 7,
                 .base = 0.1,
                 .spacing = Spacing::kInclusive,
                 .layout = WaveLayout::kCosSin,
                 .scale = 1.0 / 3.0,
                 .odd = OddWidth::kZero,
                 .axes = 3},
      Learned{.rows = 1, .width = 2, .offset = -3},
      Alibi{.heads = 71, .max_bias = 4.5, .scale = 0.125, .round_bf16 = true},
      T5{.heads = 3, .buckets = 64, .max_distance = 999, .bidirectional = false},
      Kerple{.kernel = KerpleKernel::kPower, .amplitudes = {0.1, 2}, .rates = {1e-300, 2}},
      Fire{.c = -0.1,
           .hidden_weights = {1, 0.5},
           .hidden_biases = {0, 1},
           .output_weights = {2, 3},
           .output_biases = {4}},
      Sandwich{.heads = 3, .dims = 8, .base = 1.5},
      Shaw{.left = 3, .right = 0, .order = DistanceOrder::kQueryMinusKey, .with_keys = true},
      Deberta{.buckets = 0, .max_distance = 7, .content_to_position = false, .position_to_content = true},
      Swin{.heads = 3, .window = {8, 7, 7}},
      Steps{.width = 5, .step = 1e-300},
      Shift{.width = 5, .step = -0.5, .seed = 9223372036854775807},
  };
  for (const Scheme& scheme : schemes) {
    EXPECT_EQ(scheme_from_json(to_json(scheme)), scheme) << to_json(scheme);
  }
}

// A value of a field that is not this one.
template <class T> void change(T& value);
template <class T> void change_list(std::vector<T>& list) {
  list.emplace_back();
  change(list.back());
}
template <class... S, std::size_t... I>
std::variant<S...> last_of(const std::variant<S...>&, std::index_sequence<I...>) {
  return std::variant<S...>(std::in_place_index<sizeof...(S) - 1>);
}
template <class... S> void change_choice(std::variant<S...>& value) {
  value = last_of(value, std::index_sequence_for<S...>());
}
void change_choice(Boxed<RopeScaling>& value) { change_choice(*value); }
template <class T> void change_optional(std::optional<T>& value) {
  value.emplace();
  change(*value);
}
template <class T> void change(T& value) {
  if constexpr (std::is_same_v<T, bool>) {
    value = !value;
  } else if constexpr (std::is_enum_v<T>) {
    value = static_cast<T>(value == T{} ? 1 : 0);
  } else if constexpr (std::is_arithmetic_v<T>) {
    value = value / 3 + T(7);
  } else if constexpr (requires { change_list(value); }) {
    change_list(value);
  } else if constexpr (requires { change_optional(value); }) {
    change_optional(value);
  } else {
    change_choice(value);
  }
}

TEST(SchemeJson, EveryFieldOfEverySchemeIsWrittenAndReadBack) {
  int fields = 0;
  for (const std::string_view name : scheme_names()) {
    const Scheme usual = scheme_named(name);
    EXPECT_EQ(scheme_from_json(to_json(usual)), usual) << name;
    EXPECT_EQ(dump_json(json_of(usual)), to_json(usual));
    const auto change_each = [&]<class S>(const S& scheme) {
      S::fields([&](std::string_view field, auto member, std::string_view) {
        Scheme other = scheme;
        change(std::get<S>(other).*member);
        EXPECT_NE(to_json(other), to_json(usual)) << name << ' ' << field;
        EXPECT_EQ(scheme_from_json(to_json(other)), other) << to_json(other);
        EXPECT_NE(json_of(other).find(field), nullptr) << name << ' ' << field;
        ++fields;
      });
    };
    std::visit(change_each, usual);
  }
  EXPECT_GE(fields, 40);
}

TEST(SchemeJson, MissingFieldsKeepTheirDefaults) {
  EXPECT_EQ(scheme_from_json(R"({"scheme":"sinusoidal"})"), Scheme(Sinusoidal{}));
  EXPECT_EQ(scheme_from_json(R"( { "width" : 8, "scheme" : "sinusoidal", "layout" : "sin-cos" } )"),
            Scheme(Sinusoidal{.width = 8, .layout = WaveLayout::kSinCos}));
}

TEST(SchemeJson, TakesAnIntegerForADouble) {
  EXPECT_EQ(scheme_from_json(R"({"scheme":"sinusoidal","base":500000})"), Scheme(Sinusoidal{.base = 500000.0}));
}

TEST(SchemeJson, RefusesWhatItDoesNotKnowAndSaysSo) {
  struct Case {
    const char* json;
    std::string error;
  };
  const std::vector<Case> cases = {
      {"", "line 1, column 1: the text is empty"},
      {"{\"scheme\":\"none\"", "line 1, column 17: expected ',' or '}', but the text ends"},
      {"[1]", "scheme: must be an object such as {\"scheme\":\"sinusoidal\"} but is [1]"},
      {"{}", fmt::format("scheme: the field \"scheme\" is missing (one of {})", fmt::join(scheme_names(), ", "))},
      {R"({"scheme":7})", "scheme: the field \"scheme\" must be a name in quotes but is 7"},
      {R"({"scheme":"sinusoidl"})", "unknown scheme 'sinusoidl' (did you mean 'sinusoidal'?)"},
      {R"({"scheme":"none","width":8})", "none: unknown field \"width\""},
      {R"({"scheme":"sinusoidal","widht":8})", "sinusoidal: unknown field \"widht\" (did you mean 'width'?)"},
      {R"({"scheme":"sinusoidal","":8})", "sinusoidal: unknown field \"\""},
      {R"({"scheme":"sinusoidal","width":8,"width":8})",
       "line 1, column 34: repeated key \"width\" (first on line 1)"},
      {R"({"scheme":"none","scheme":"none"})", "line 1, column 18: repeated key \"scheme\" (first on line 1)"},
      {R"({"scheme":"sinusoidal","width":"abc"})", "sinusoidal: width must be an integer but is \"abc\""},
      {R"({"scheme":"sinusoidal","width":512.0})", "sinusoidal: width must be an integer but is 512.0"},
      {R"({"scheme":"sinusoidal","width":true})", "sinusoidal: width must be an integer but is true"},
      {R"({"scheme":"sinusoidal","width":null})", "sinusoidal: width must be an integer but is null"},
      {R"({"scheme":"sinusoidal","base":"10000"})", "sinusoidal: base must be a number but is \"10000\""},
      {R"({"scheme":"sinusoidal","base":{"a":[1,2]}})", "sinusoidal: base must be a number but is {\"a\":[1,2]}"},
      {R"({"scheme":"sinusoidal","base":NaN})", "line 1, column 31: NaN is not a JSON number"},
      {R"({"scheme":"sinusoidal","spacing":"papr"})",
       "sinusoidal: spacing must be one of paper, inclusive but is \"papr\" (did you mean 'paper'?)"},
      {R"({"scheme":"sinusoidal","odd":1})", "sinusoidal: odd must be one of refuse, trim, zero but is 1"},
      {R"({"scheme":"sinusoidal","layout":""})",
       "sinusoidal: layout must be one of interleaved, sin-cos, cos-sin but is \"\""},
  };
  for (const Case& c : cases) EXPECT_EQ(error_of(c.json), c.error) << c.json;
}

TEST(SchemeJson, CutsLongValuesInMessages) {
  const std::string json = fmt::format(R"({{"scheme":"steps","width":"{:x>100000}"}})", "");
  EXPECT_EQ(error_of(json), fmt::format("steps: width must be an integer but is \"{:x>39}...", ""));
}

}  // namespace
}  // namespace posenc::scheme_json_test
