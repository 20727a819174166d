#include "posenc/story.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "posenc/content.h"
#include "posenc/error.h"
#include "posenc/json.h"

namespace posenc::story_test {
namespace {

std::string message_of(const std::function<void()>& attempt) {
  try {
    attempt();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

std::vector<const StoryMatrix*> matrices_of(const Story& story) {
  std::vector<const StoryMatrix*> result;
  for (const StoryStep& step : story.steps) {
    for (const StoryBlock& block : step.blocks) {
      if (const auto* const matrix = std::get_if<StoryMatrix>(&block)) result.push_back(matrix);
    }
  }
  return result;
}

std::vector<StoryFact> facts_of(const Story& story) {
  std::vector<StoryFact> result;
  for (const StoryStep& step : story.steps) {
    for (const StoryBlock& block : step.blocks) {
      if (const auto* const held = std::get_if<StoryFacts>(&block)) {
        result.insert(result.end(), held->facts.begin(), held->facts.end());
      }
    }
  }
  return result;
}

// What a reader does with an opened cell.
double value_of(const CellTerms& cell) {
  double sum = 0;
  for (const std::vector<CellFactor>& term : cell.terms) {
    double product = 1;
    for (const CellFactor& factor : term) product *= factor.value;
    sum += product;
  }
  if (cell.function == "sin") sum = std::sin(sum);
  if (cell.function == "cos") sum = std::cos(sum);
  if (cell.function == "√") sum = std::sqrt(sum);
  if (cell.function == "abs") sum = std::fabs(sum);
  if (cell.function == "floor") sum = std::floor(sum);
  return cell.divisor ? sum / cell.divisor->value : sum;
}

TEST(Story, EveryFileOfContentIsToldAndNoOther) {
  std::set<std::string> files, told;
  for (const ContentFile& file : content_files()) {
    if (file.name.starts_with("stories/")) files.emplace(file.name);
  }
  for (const StoryCard& card : stories()) {
    told.insert("stories/" + card.name + ".json");
    EXPECT_FALSE(card.summary.empty());
    EXPECT_EQ(tell_story(card.name).title, card.title);
  }
  EXPECT_EQ(files, told);
}

// content/topics.json is the only order: of stories, questions and cards.
TEST(Story, WhatATopicNeedsIsTaughtBeforeIt) {
  const Json file = parse_json(content("topics.json"));
  std::set<std::string> taught;
  std::vector<std::string> order;
  for (const Json& topic : *file.find("topics")->as<Json::Array>()) {
    for (const Json& before : *topic.find("after")->as<Json::Array>()) {
      EXPECT_TRUE(taught.contains(*before.as<std::string>())) << *before.as<std::string>();
    }
    taught.insert(*topic.find("name")->as<std::string>());
    for (const Json& story : *topic.find("stories")->as<Json::Array>()) order.push_back(*story.as<std::string>());
  }
  std::vector<std::string> told;
  for (const StoryCard& card : stories()) told.push_back(card.name);
  EXPECT_EQ(told, order);
  const auto place = [&](std::string_view name) { return std::find(told.begin(), told.end(), name) - told.begin(); };
  EXPECT_EQ(place("dog-bites-man"), 0);
  EXPECT_LT(place("alibi"), place("cat-sat")) << "a subtraction is easier than a sine";
  EXPECT_LT(place("why-inside-attention"), place("rope")) << "the reason comes before the answer";
}

TEST(Story, IsWellFormed) {
  for (const StoryCard& card : stories()) {
    const Story story = tell_story(card.name);
    std::set<std::string> names;
    for (const StoryMatrix* const matrix : matrices_of(story)) {
      EXPECT_TRUE(names.insert(matrix->name).second) << matrix->name;
      EXPECT_EQ(matrix->values.size(), matrix->rows.size() * matrix->columns.size());
      EXPECT_TRUE(matrix->caption.starts_with(matrix->name)) << matrix->caption;
      for (const auto& labels : {matrix->rows, matrix->columns}) {
        EXPECT_EQ(std::set<std::string>(labels.begin(), labels.end()).size(), labels.size()) << matrix->name;
        for (const std::string& label : labels) EXPECT_EQ(label.find(' '), std::string::npos) << label;
      }
    }
    for (const StoryStep& step : story.steps) {
      EXPECT_EQ((step.heading + step.text).find_first_of("{}"), std::string::npos) << step.text;
    }
  }
}

// Every cell that opens gives itself back, but for where the angle of a far position is rounded to a double.
TEST(Story, EveryCellIsWhatItOpensInto) {
  int opened = 0;
  for (const StoryCard& card : stories()) {
    const Story story = tell_story(card.name);
    for (const StoryMatrix* const matrix : matrices_of(story)) {
      for (std::size_t row = 0; row < matrix->rows.size(); ++row) {
        for (std::size_t column = 0; column < matrix->columns.size(); ++column) {
          if (std::isnan(matrix->at(row, column))) continue;
          const std::string name = matrix->name + " " + matrix->rows[row] + " " + matrix->columns[column];
          const CellExpansion cell = expand_cell(story, name);
          EXPECT_EQ(cell.value, matrix->at(row, column)) << name;
          // only data and constants have nothing to open
          if (cell.parts.terms.empty()) {
            EXPECT_TRUE(cell.parts.formula == "given" || cell.value == 0) << card.name << " " << name;
            continue;
          }
          // position × frequency in double tells nothing of an angle that far out
          if (std::fabs(cell.parts.terms.front().front().value) > 1e7) continue;
          ++opened;
          EXPECT_NEAR(value_of(cell.parts), cell.value, 1e-9) << card.name << " " << name;
        }
      }
    }
  }
  EXPECT_GT(opened, 500);
}

TEST(Story, FrankAndAlex) {
  const Story story = tell_story("frank-and-alex");
  const auto shown = [&](const char* cell) { return shown_number(expand_cell(story, cell).value, 3); };
  EXPECT_EQ(shown("K' Frank street-stall"), "5.251");
  EXPECT_EQ(shown("K' Frank upscale"), "1.862");
  EXPECT_EQ(shown("K' Alex street-stall"), "2.546");
  EXPECT_EQ(shown("K' Alex knows-upscale"), "1.726");
  EXPECT_EQ(shown("Q Frank street-stall"), "2.884");
  EXPECT_EQ(shown("Q Frank upscale"), "0.474");
  EXPECT_EQ(expand_cell(story, "K' Alex upscale").misprint->printed, "1.577");
  EXPECT_FALSE(expand_cell(story, "K' Alex upscale").misprint->is_rounding);
  EXPECT_TRUE(expand_cell(story, "K' Emma upscale").misprint->is_rounding);
  EXPECT_FALSE(expand_cell(story, "K' Daniel upscale").misprint.has_value());
  const StoryMatrix* const distances = find_matrix(story, "D");
  ASSERT_NE(distances, nullptr);
  for (std::size_t row = 0; row < distances->rows.size(); ++row) {
    EXPECT_EQ(distances->at(row, 0), 0.0) << "alike without position";
    EXPECT_GT(distances->at(row, 1), 0.01) << distances->rows[row];
  }
  for (const StoryFact& fact : facts_of(story)) {
    if (const bool* const holds = std::get_if<bool>(&fact.value)) {
      EXPECT_TRUE(*holds) << fact.name;
    }
  }
}

TEST(Story, TheMessageAtTheEndOfTheTableIsTheLibrarysOwn) {
  const auto errors = [](const Story& story) {
    std::vector<std::string> texts;
    for (const StoryFact& fact : facts_of(story)) {
      if (const auto* const text = std::get_if<std::string>(&fact.value)) texts.push_back(*text);
    }
    return texts;
  };
  EXPECT_TRUE(errors(tell_story("learned-or-sinusoidal")).empty()) << "nobody to catch it";
  const auto told = errors(tell_story("learned-or-sinusoidal", {.message_of = message_of}));
  ASSERT_EQ(told.size(), 1U);
  EXPECT_EQ(told.front(), "tabulate: position 512 is past the table: 512 rows with offset 0 end at position 511");
}

TEST(Story, OwnWords) {
  const Story story = tell_story("dog-bites-man", {.text = "the cat saw the dog"});
  const StoryMatrix* const x = find_matrix(story, "X1");
  ASSERT_NE(x, nullptr);
  EXPECT_EQ(x->rows, (std::vector<std::string>{"the", "cat", "saw", "the.2", "dog"}));
  for (std::size_t i = 0; i < x->columns.size(); ++i) EXPECT_EQ(x->at(0, i), x->at(3, i)) << "one word, one row";
  for (std::size_t row = 0; row < x->rows.size(); ++row) {
    double length = 0;
    for (std::size_t i = 0; i < x->columns.size(); ++i) length += x->at(row, i) * x->at(row, i);
    EXPECT_NEAR(length, 1.0, 1e-15);
  }
}

// With the same weights for both halves, concatenation changes the input and its width, and nothing after it.
TEST(Story, ScoresOfASentenceAreThoseOfTheStory) {
  const std::string text = "the cat sees the dog";
  const Story told = tell_story("dog-bites-man", {.text = text});
  for (const bool with_positions : {false, true}) {
    const SentenceScores made = sentence_scores(text, with_positions);
    EXPECT_EQ(made.words, (std::vector<std::string>{"the", "cat", "sees", "the.2", "dog"}));
    const std::string name = with_positions ? "S1'" : "S1";
    bool is_found = false;
    for (const StoryMatrix* const matrix : matrices_of(told)) {
      if (matrix->name != name) continue;
      is_found = true;
      ASSERT_EQ(made.scores.size(), matrix->values.size());
      for (std::size_t i = 0; i < made.scores.size(); ++i) EXPECT_NEAR(made.scores[i], matrix->values[i], 1e-14) << i;
    }
    EXPECT_TRUE(is_found) << name;
  }
  EXPECT_NE(sentence_scores(text, true).scores, sentence_scores(text, false).scores);
  EXPECT_EQ(message_of([] { sentence_scores("alone", false); }), "text: needs 2 to 12 words");
}

TEST(Story, ConcatenatedOrAdded) {
  for (const std::int64_t width : {2, 4, 6}) {
    const Story added = tell_story("frank-and-alex", {.base = 500.0, .width = width});
    const Story both = tell_story("frank-and-alex", {.base = 500.0, .width = width, .concatenated = true});
    EXPECT_EQ(static_cast<std::int64_t>(find_matrix(added, "X'")->columns.size()), width);
    EXPECT_EQ(static_cast<std::int64_t>(find_matrix(both, "X'")->columns.size()), 2 * width);
    for (const char* const name : {"Q'", "K'", "V'", "S'", "A'", "O'"}) {
      const StoryMatrix &one = *find_matrix(added, name), &other = *find_matrix(both, name);
      ASSERT_EQ(one.values.size(), other.values.size());
      for (std::size_t i = 0; i < one.values.size(); ++i) EXPECT_NEAR(one.values[i], other.values[i], 1e-13) << name;
    }
    EXPECT_NE(find_matrix(added, "Q'")->values, find_matrix(tell_story("frank-and-alex"), "Q'")->values);
  }
}

TEST(Story, Refusals) {
  const auto refusal = [](std::string_view name, const StoryOptions& options) {
    return message_of([&] { tell_story(name, options); });
  };
  EXPECT_EQ(refusal("cat-sta", {}), "unknown story 'cat-sta' (did you mean 'cat-sat'?)");
  EXPECT_EQ(refusal("rope", {.text = "a b"}),
            "story: --text works only with dog-bites-man and frank-and-alex, not with rope");
  EXPECT_EQ(refusal("rope", {.base = 500.0}), "story: --base works only with frank-and-alex, not with rope");
  EXPECT_EQ(refusal("frank-and-alex", {.width = 8}), "width: must be an even number from 2 to 6 but is 8");
  EXPECT_EQ(refusal("frank-and-alex", {.base = 0.5}), "sinusoidal: base must be between 1 and 1e36 but is 0.5");
  EXPECT_EQ(refusal("rope", {.digits = 18}), "story: digits must be from 0 to 17 but is 18");
  EXPECT_EQ(refusal("dog-bites-man", {.text = "a"}), "text: needs 2 to 12 words");
  EXPECT_EQ(refusal("dog-bites-man", {.text = "a \xC0\x80"}), "text: is not UTF-8");
  EXPECT_EQ(refusal("dog-bites-man", {.text = "a \xC2\x9B"}), "text: holds a control character");
  EXPECT_EQ(refusal("dog-bites-man", {.text = "a \xE2\x82"}), "text: is not UTF-8");
  const Story story = tell_story("cat-sat");
  EXPECT_EQ(message_of([&] { expand_cell(story, "P 0 d9"); }),
            "cell: P has no column 'd9' (choose from: d0, d1, d2, d3)");
}

TEST(Story, NumbersAsTheyAreShown) {
  EXPECT_EQ(shown_number(-0.0004, 3), "0.000");
  EXPECT_EQ(shown_number(-0.0006, 3), "-0.001");
  EXPECT_EQ(shown_number(0.5, 0), "0");
  EXPECT_EQ(shown_fact({"", true}), "yes");
  EXPECT_EQ(shown_fact({"", 1.0 / 3.0, 2, true}), "0.33");
}

TEST(Story, Json) {
  const Json json = to_json(tell_story("cat-sat"));
  EXPECT_EQ(parse_json(dump_json(json)), json);
  EXPECT_EQ(*json.find("story")->as<std::string>(), "cat-sat");
}

}  // namespace
}  // namespace posenc::story_test
