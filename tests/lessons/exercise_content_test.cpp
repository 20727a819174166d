// Exercises as data: what an entry may contain, and what is rejected. The real entries are tested in
// exercise_test.cpp.

#include "lessons/exercise_content.h"

#include <gtest/gtest.h>

#include <string>

#include "lessons/formula_names.h"
#include "posenc/error.h"

namespace posenc::exercise_content_test {
namespace {

using lessons::Draft;
using lessons::FormulaNames;

// An entry with these members besides those that every entry needs.
Draft draft_of(const std::string& members, std::uint64_t seed = 1) {
  const Json text = parse_json("{" + members + R"(, "prompt": "p", "hint": "h", "mistakes": []})");
  Random random(seed);
  return lessons::drafted({{"kind", "title", "topic"}, "test.json: kind", &text}, random);
}

template <class Work> std::string error_of(const Work& work) {
  try {
    work();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

FormulaNames some_names() {
  FormulaNames names;
  names.set("x", 3.0);
  names.set("decimals", 2.0);
  names.set("word", std::string("turn"));
  return names;
}

TEST(ExerciseContent, FormulasHaveVariablesChoicesAndSums) {
  const FormulaNames names = some_names();
  EXPECT_EQ(evaluate_formula("2*x + 1", names), 7);
  EXPECT_EQ(evaluate_formula("x < 4 ? 10 : 20", names), 10);
  EXPECT_EQ(evaluate_formula("x >= 4 ? 10 : x == 3 ? 30 : 20", names), 30);
  EXPECT_EQ(evaluate_formula("(x != 3 ? 1 : 2) * 5", names), 10);
  EXPECT_EQ(evaluate_formula("sum(i, 1, x, i*i) + 1", names), 15);
  EXPECT_EQ(evaluate_formula("sum(i, 1, 2, sum(j, 1, i, 10*i + j))", names), 11 + 21 + 22);
  EXPECT_EQ(
      fill_template("{{word}}s: {{x/4 | decimals}}, {{-x | (1)}}, {{x | (1)}}, {{x > 1 ? 'many' : 'one'}}", names),
      "turns: 0.75, (-3.0), 3.0, many");
}

TEST(ExerciseContent, FormulasThatDoNotEvaluateAreNamed) {
  const FormulaNames names = some_names();
  EXPECT_EQ(error_of([&] { evaluate_formula("y + 1", names); }),
            "formula: a function, a variable or pi expected at 'y + 1'");
  EXPECT_EQ(error_of([&] { evaluate_formula("x < 4 ? 10", names); }), "formula: ':' expected at ''");
  EXPECT_EQ(error_of([&] { evaluate_formula("word", names); }), "formula: 'word' is text, not a number");
  EXPECT_EQ(error_of([&] { evaluate_formula("(word) + 1", names); }), "formula: a number expected at 'word) + 1'");
  EXPECT_EQ(error_of([&] { evaluate_formula("sum(i, 1, 5000, i)", names); }), "formula: sum needs 1 to 4096 terms");
  EXPECT_EQ(error_of([&] { evaluate_formula("sum(i, 2, 1, i)", names); }), "formula: sum needs 1 to 4096 terms");
  EXPECT_EQ(error_of([&] { evaluate_formula(std::string(100, '(') + "1", names); }), "formula: brackets too deep");
}

TEST(ExerciseContent, VariablesAreDrawnInOrder) {
  const std::string members = R"("draw": {"n": {"from": 3, "to": 5}, "tenth": {"from": -1, "to": 1, "decimals": 1},
      "one": {"one_of": [7, 9]}, "m": "2*n", "case": [{"when": "n == 3", "value": 30}, {"value": "n"}]},
      "given": ["n", "tenth", "one", "m", "case"], "answer": "m / 3", "decimals": 1, "working": "{{answer | decimals}}")";
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const Draft draft = draft_of(members, seed);
    const auto given = [&](std::size_t i) { return draft.given.at(i).second; };
    EXPECT_TRUE(given(0) == 3 || given(0) == 4 || given(0) == 5);
    EXPECT_TRUE(given(1) >= -1 && given(1) <= 1);
    EXPECT_TRUE(given(2) == 7 || given(2) == 9);
    EXPECT_EQ(given(3), 2 * given(0));
    EXPECT_EQ(given(4), given(0) == 3 ? 30 : given(0));
    EXPECT_EQ(draft.answer, 2 * given(0) / 3);
  }
  EXPECT_EQ(draft_of(members, 5).prompt, draft_of(members, 5).prompt);
}

TEST(ExerciseContent, SchemesTakeDrawnFields) {
  const Draft draft = draft_of(R"~("draw": {"dims": {"one_of": [8]}}, "given": [],
      "schemes": {"mine": {"scheme": {"scheme": "rope", "dims": "=dims",
                                      "scaling": {"type": "linear", "factor": "=dims/2"}}}},
      "answer": "slowdown('mine', 1)", "decimals": 3,
      "working": [{"when": "0", "text": "no"}, {"text": "{{asked}}"}])~");
  EXPECT_EQ(draft.answer, 4);
  EXPECT_EQ(draft.working, "to 3 decimals");
}

TEST(ExerciseContent, DigitsDecideDecimals) {
  const auto decimals = [](const std::string& answer) {
    return draft_of(R"("draw": {}, "given": [], "answer": ")" + answer + R"(", "digits": 3, "working": "w")")
        .decimals;
  };
  EXPECT_EQ(decimals("0.01234"), 4);
  EXPECT_EQ(decimals("1.234"), 2);
  EXPECT_EQ(decimals("1234"), 0);
}

TEST(ExerciseContent, MalformedEntriesAreNamed) {
  const auto refused = [](const std::string& members) { return error_of([&] { draft_of(members); }); };
  EXPECT_EQ(refused(R"("given": [])"), "content: test.json: kind: 'draw' must be an object");
  EXPECT_EQ(refused(R"("draw": {}, "given": [])"), "content: test.json: kind: 'answer' is missing");
  EXPECT_EQ(refused(R"("draw": {"n": {"from": 3, "to": 2}})"),
            "content: test.json: kind: there is nothing from 3 to 2");
  EXPECT_EQ(refused(R"("draw": {"n": [{"when": 0, "value": 1}]})"),
            "content: test.json: kind: no case of 'n' applies");
  EXPECT_EQ(refused(R"("draw": {"n": {"one_of": []}})"), "content: test.json: kind: 'one_of' is empty");
  EXPECT_EQ(refused(R"("draw": {}, "given": [], "answer": true)"),
            "content: test.json: kind: true is neither a number nor a formula");
}

}  // namespace
}  // namespace posenc::exercise_content_test
