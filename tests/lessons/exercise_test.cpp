// Thousands of exercises: the answer computed in plain doubles from the given numbers, and the grader on right and
// known wrong answers.
#include "posenc/exercise.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <numbers>
#include <set>
#include <string>

#include "posenc/error.h"

namespace posenc::exercise_test {
namespace {

constexpr std::uint64_t kSeeds = 120;  // of each of 18 kinds

struct Given {
  const Exercise& exercise;
  double operator[](std::string_view name) const {
    for (const auto& [known, value] : exercise.given) {
      if (known == name) return value;
    }
    ADD_FAILURE() << exercise.kind << " gives no " << name;
    return 0;
  }
  bool has(std::string_view name) const {
    return std::any_of(exercise.given.begin(), exercise.given.end(),
                       [&](const auto& one) { return one.first == name; });
  }
};

double omega(double d, double i, double base = 10000.0) { return std::pow(base, -2 * i / d); }

double wave(double width, double position, double column, double base) {
  const double angle = position * omega(width, std::floor(column / 2), base);
  return std::fmod(column, 2) == 0 ? std::sin(angle) : std::cos(angle);
}

double alibi_slope(double heads, double head) {
  double power = 1;
  while (2 * power <= heads) power *= 2;
  return head < power ? std::pow(2.0, -8 * (head + 1) / power) : std::pow(2.0, -4 * (2 * (head - power) + 1) / power);
}

double t5_bucket(double relative, bool both) {
  const double buckets = both ? 16 : 32, exact = buckets / 2;
  const double r = both ? std::fabs(relative) : std::max(-relative, 0.0);
  const double first = both && relative > 0 ? buckets : 0;
  if (r < exact) return first + r;
  const double share = std::log(r / exact) / std::log(128 / exact) * (buckets - exact);
  return first + std::min(buckets - 1, exact + std::floor(share + 1e-9));
}

double llama3(const Given& g) {
  const double turns = g["length"] * omega(128, g["pair"], 500000) / (2 * std::numbers::pi);
  const double kept = std::clamp((turns - 1) / 3, 0.0, 1.0);
  return 1 / (kept + (1 - kept) / g["factor"]);
}

double table_size(const Given& g) {
  if (g.has("rows")) return (g["rows"] + g["offset"]) * g["width"];
  if (g.has("window")) return std::pow(2 * g["window"] - 1, 2) * g["heads"];
  if (g.has("buckets")) return g["buckets"] * g["heads"];
  return (2 * g["reach"] + 1) * g["width"];
}

const std::map<std::string, std::function<double(const Given&)>> kOracles = {
    {"pe-value", [](const Given& g) { return wave(g["width"], g["position"], g["column"], g["base"]); }},
    {"token-plus-position",
     [](const Given& g) { return g["token"] + wave(g["width"], g["position"], g["column"], 10000); }},
    {"dot-product",
     [](const Given& g) {
       double sum = 0;
       for (int i = 0; i < g["width"]; ++i)
         sum += wave(g["width"], g["m"], i, 10000) * wave(g["width"], g["n"], i, 10000);
       return sum;
     }},
    {"frequency", [](const Given& g) { return omega(g["dims"], g["pair"], g["base"]); }},
    {"wavelength", [](const Given& g) { return 2 * std::numbers::pi / omega(g["dims"], g["pair"], g["base"]); }},
    {"angle", [](const Given& g) { return g["position"] * omega(g["dims"], g["pair"]); }},
    {"shift",
     [](const Given& g) { return std::sin(std::atan2(g["sine"], g["cosine"]) + g["shift"] * g["frequency"]); }},
    {"rope-turn",
     [](const Given& g) {
       const double angle = g["position"] * omega(g["dims"], g["pair"]);
       return g["second"] == 1 ? g["b"] * std::cos(angle) + g["a"] * std::sin(angle)
                               : g["a"] * std::cos(angle) - g["b"] * std::sin(angle);
     }},
    {"rope-score",
     [](const Given& g) {
       const double d = g["query"] - g["key"];
       return (g["q_a"] * std::cos(d) - g["q_b"] * std::sin(d)) * g["k_a"] +
              (g["q_b"] * std::cos(d) + g["q_a"] * std::sin(d)) * g["k_b"];
     }},
    {"linear-angle", [](const Given& g) { return g["position"] / g["factor"] * omega(g["dims"], g["pair"]); }},
    {"ntk-slowdown",
     [](const Given& g) {
       const double base = 10000 * std::pow(g["factor"], g["dims"] / (g["dims"] - 2));
       return omega(g["dims"], g["pair"]) / omega(g["dims"], g["pair"], base);
     }},
    {"yarn-magnitude", [](const Given& g) { return 0.1 * std::log(g["factor"]) + 1; }},
    {"llama3-slowdown", llama3},
    {"alibi-bias",
     [](const Given& g) { return -alibi_slope(g["heads"], g["head"]) * std::fabs(g["query"] - g["key"]); }},
    {"t5-bucket", [](const Given& g) { return t5_bucket(g["key"] - g["query"], g["bidirectional"] == 1); }},
    {"kerple-bias",
     [](const Given& g) { return -g["amplitude"] * std::log(1 + g["rate"] * (g["query"] - g["key"])); }},
    {"softmax-weight",
     [](const Given& g) {
       const double root = std::sqrt(g["features"]);
       const double e[] = {std::exp(g["first"] / root), std::exp(g["second"] / root), std::exp(g["third"] / root)};
       return e[static_cast<int>(g["which"])] / (e[0] + e[1] + e[2]);
     }},
    {"table-size", table_size},
};

std::string as_asked(const Exercise& exercise, double value) {
  return fmt::format("{:.{}f}", value, exercise.decimals);
}

class EachKind : public testing::TestWithParam<std::string> {};

TEST_P(EachKind, AnswersAreThoseOfPlainDoubles) {
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    const Exercise one = exercise(GetParam(), seed);
    EXPECT_EQ(one.kind, GetParam());
    const double expected = kOracles.at(one.kind)({one});
    EXPECT_NEAR(one.answer, expected, 1e-9 * std::max(1.0, std::fabs(expected))) << one.prompt;
    EXPECT_TRUE(one.whole ? one.decimals == 0 && one.answer == std::round(one.answer) : one.decimals <= 8)
        << one.prompt;
  }
}

TEST_P(EachKind, RightIsRightHoweverItIsWritten) {
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    const Exercise one = exercise(GetParam(), seed);
    const std::string shown = shown_answer(one);
    const auto is_right = [&](const std::string& text) { return grade(one, text).verdict == Mark::kRight; };
    EXPECT_TRUE(is_right(shown)) << one.prompt << " " << shown;
    EXPECT_TRUE(is_right("  " + shown + " ")) << shown;
    std::string with_comma = shown;
    std::replace(with_comma.begin(), with_comma.end(), '.', ',');
    EXPECT_TRUE(is_right(with_comma)) << with_comma;
    if (shown.starts_with('-')) {
      EXPECT_TRUE(is_right("\u2212" + shown.substr(1)));
    } else {
      EXPECT_TRUE(is_right("+" + shown));
    }
    EXPECT_TRUE(is_right(fmt::format("{:.17g}", one.answer))) << one.prompt;
    // one unit more or less passes, two do not
    const double unit = one.whole ? 1 : std::pow(10.0, -one.decimals);
    EXPECT_EQ(grade(one, one.answer + 0.99 * unit).verdict == Mark::kRight, !one.whole) << one.prompt;
    EXPECT_NE(grade(one, one.answer + 1.01 * unit).verdict, Mark::kRight) << one.prompt;
    EXPECT_NE(grade(one, one.answer - 2 * unit).verdict, Mark::kRight) << one.prompt;
  }
}

TEST_P(EachKind, EveryMistakeIsNamed) {
  std::set<std::string> names;
  std::size_t fewest = 100;
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    const Exercise one = exercise(GetParam(), seed);
    fewest = std::min(fewest, one.mistakes.size());
    for (std::size_t i = 0; i < one.mistakes.size(); ++i) {
      const Mistake& mistake = one.mistakes[i];
      names.insert(mistake.name);
      EXPECT_FALSE(mistake.because.empty());
      const Grade graded = grade(one, as_asked(one, mistake.value));
      EXPECT_EQ(graded.verdict, Mark::kKnownMistake) << one.prompt << "\n" << mistake.name << " " << mistake.value;
      EXPECT_EQ(std::count(graded.mistakes.begin(), graded.mistakes.end(), i), 1) << one.prompt << mistake.name;
      // what is listed cannot be taken for the answer
      EXPECT_NE(as_asked(one, mistake.value), shown_answer(one)) << one.prompt << mistake.name;
    }
  }
  EXPECT_GE(names.size(), 4U) << GetParam();
  EXPECT_GE(fewest, 2U) << GetParam();
}

TEST_P(EachKind, TheSameSeedForEver) {
  std::set<std::string> prompts;
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    const Exercise one = exercise(GetParam(), seed), again = exercise(GetParam(), seed);
    EXPECT_EQ(one.prompt, again.prompt);
    EXPECT_EQ(one.answer, again.answer);
    prompts.insert(one.prompt);
    for (const std::string& text : {one.prompt, one.hint, one.working}) {
      EXPECT_FALSE(text.empty()) << one.kind;
      EXPECT_EQ(text.find("nan"), std::string::npos) << text;
      EXPECT_EQ(text.find("inf"), std::string::npos) << text;
    }
  }
  EXPECT_GE(prompts.size(), GetParam() == "yarn-magnitude" || GetParam() == "llama3-slowdown" ? 10U : 40U);
}

std::vector<std::string> kind_names() {
  std::vector<std::string> names;
  for (const ExerciseKind& kind : exercise_kinds()) names.emplace_back(kind.name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(Exercise, EachKind, testing::ValuesIn(kind_names()), [](const auto& kind) {
  std::string name = kind.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

TEST(Exercise, AnySeedGivesAnyKind) {
  std::set<std::string> kinds;
  for (std::uint64_t seed = 0; seed < 1000; ++seed) kinds.insert(exercise(seed).kind);
  EXPECT_EQ(kinds.size(), exercise_kinds().size());
  EXPECT_EQ(kOracles.size(), exercise_kinds().size());
  EXPECT_EQ(exercise(~std::uint64_t{0}).seed, ~std::uint64_t{0});
  EXPECT_THROW(exercise("nothing", 1), Error);
}

TEST(Exercise, TheMistakesThatEverybodyMakes) {
  // d = 4, position 1, column 2: sin(0.01) is the answer
  Exercise found;
  for (std::uint64_t seed = 0; found.kind.empty() && seed < 100000; ++seed) {
    const Exercise one = exercise("pe-value", seed);
    const Given given{one};
    if (given["width"] == 4 && given["base"] == 10000 && given["position"] == 3 && given["column"] == 2) found = one;
  }
  ASSERT_FALSE(found.kind.empty());
  const auto named = [&](double typed) {
    const Grade graded = grade(found, typed);
    std::set<std::string> names;
    for (const std::size_t i : graded.mistakes) names.insert(found.mistakes[i].name);
    return names;
  };
  EXPECT_EQ(shown_answer(found), "0.030");
  EXPECT_TRUE(named(std::sin(0.3)).contains("i for 2i"));
  EXPECT_TRUE(named(std::cos(0.03)).contains("sin and cos swapped"));
  EXPECT_TRUE(named(std::sin(0.03 * std::numbers::pi / 180)).contains("degrees for radians"));
  EXPECT_TRUE(named(std::sin(300)).contains("× for ÷"));
  EXPECT_TRUE(named(std::sin(0.04)).contains("one position too far"));
  EXPECT_TRUE(named(std::sin(0.02)).contains("one position short"));
  EXPECT_TRUE(named(std::sin(3 / std::sqrt(1000.0))).contains("wrong base"));
  EXPECT_EQ(grade(found, 12.5).verdict, Mark::kWrong);
}

TEST(Exercise, WhatIsNotANumber) {
  const Exercise one = exercise("pe-value", 1);
  for (const char* text :
       {"", " ", "x", "1.2.3", "1,2,3", "0x10", "nan", "inf", "1e999", "--1", "+-1", "1 2", "1;", "\xff"}) {
    EXPECT_EQ(grade(one, std::string_view(text)).verdict, Mark::kNotANumber) << text;
  }
}

TEST(Exercise, ThousandsSeparators) {
  Exercise count;
  count.answer = 98688;
  count.whole = true;
  EXPECT_EQ(grade(count, "98,688").verdict, Mark::kRight);
  EXPECT_EQ(grade(count, "98688").verdict, Mark::kRight);
  EXPECT_EQ(grade(count, "9,868").verdict, Mark::kWrong);
  EXPECT_EQ(grade(count, "98,68").verdict, Mark::kWrong) << "a decimal comma";
  Exercise wave;
  wave.answer = 54410.2;
  wave.decimals = 1;
  EXPECT_EQ(grade(wave, "54,410.2").verdict, Mark::kRight);
  EXPECT_EQ(grade(wave, "54410,2").verdict, Mark::kRight);
  Exercise small;
  small.answer = 98.688;
  small.decimals = 3;
  EXPECT_EQ(grade(small, "98,688").verdict, Mark::kRight) << "where that is the answer, a decimal comma";
  EXPECT_EQ(grade(small, "0,98").verdict, Mark::kWrong);
  EXPECT_EQ(grade(small, "1,24,6").verdict, Mark::kNotANumber);
}

// The hint gives the formula of this very number of heads, and the answer follows it.
TEST(Exercise, AlibiTeachesTheFormulaOfItsHeads) {
  bool was_other = false;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const Exercise one = exercise("alibi-bias", seed);
    const auto given = [&](std::string_view name) {
      return std::find_if(one.given.begin(), one.given.end(), [&](const auto& pair) { return pair.first == name; })
          ->second;
    };
    const double heads = given("heads"), head = given("head"), distance = given("query") - given("key");
    const double first = heads == 6 ? 4 : heads == 12 ? 8 : heads;
    const double exponent = head < first ? -8 * (head + 1) / first : -8 * (2 * (head - first) + 1) / (2 * first);
    EXPECT_NEAR(one.answer, -distance * std::pow(2.0, exponent), 1e-12) << one.prompt;
    EXPECT_EQ(one.hint.find("is not a power of two") != std::string::npos, first != heads) << one.hint;
    was_other = was_other || first != heads;
  }
  EXPECT_TRUE(was_other);
}

TEST(Exercise, TooFewDigits) {
  Exercise one;
  one.answer = 0.8414709848;
  one.decimals = 3;
  EXPECT_EQ(grade(one, "0.84").verdict, Mark::kTooFewDigits);
  EXPECT_EQ(grade(one, "0.8").verdict, Mark::kTooFewDigits);
  EXPECT_EQ(grade(one, "0.841").verdict, Mark::kRight);
  EXPECT_EQ(grade(one, "0.8415").verdict, Mark::kRight);
  EXPECT_EQ(grade(one, "8.41e-1").verdict, Mark::kRight);
  EXPECT_EQ(grade(one, "0.85").verdict, Mark::kWrong);
  EXPECT_EQ(grade(one, "8.5e-1").verdict, Mark::kWrong);
}

}  // namespace
}  // namespace posenc::exercise_test
