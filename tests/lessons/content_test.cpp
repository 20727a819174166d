// The requirements on every file of questions and cards. tests/cli/content_test.py checks their numbers.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "posenc/content.h"
#include "posenc/exercise.h"
#include "posenc/json.h"
#include "posenc/question.h"
#include "posenc/scheme.h"
#include "posenc/story.h"

namespace posenc::content_test {
namespace {

struct Entry {
  std::string where, kind;
  Json json;
};

std::vector<Entry> entries() {
  std::vector<Entry> all;
  for (const ContentFile& file : content_files()) {
    for (const char* kind : {"questions", "cards"}) {
      if (!file.name.starts_with(std::string(kind) + "/")) continue;
      const Json json = parse_json(file.text);
      const auto* list = json.find(kind)->as<Json::Array>();
      for (const Json& entry : *list) {
        all.push_back({std::string(file.name) + ": " + *entry.find("id")->as<std::string>(), kind, entry});
      }
    }
  }
  return all;
}

// Every text that is or explains an answer.
std::vector<std::string> answers_of(const Json& json) {
  std::vector<std::string> texts;
  for (const char* name : {"answer", "back", "hint", "tex"}) {
    if (const Json* text = json.find(name)) texts.push_back(*text->as<std::string>());
  }
  if (const Json* choices = json.find("choices")) {
    for (const Json& choice : *choices->as<Json::Array>()) {
      texts.push_back(*choice.find("text")->as<std::string>());
      if (const Json* because = choice.find("because")) texts.push_back(*because->as<std::string>());
    }
  }
  return texts;
}

// The numbers outside templates. What follows a letter belongs to a name: T5, float32, GPT-2.
std::vector<std::string> typed_numbers(std::string text) {
  text = std::regex_replace(text, std::regex(R"(\{\{.*?\}\})"), "#");
  std::vector<std::string> numbers;
  const std::regex number(R"((^|[^A-Za-z0-9_.])(\d+(\.\d+)?([eE][-+]?\d+)?))");
  for (auto i = std::sregex_iterator(text.begin(), text.end(), number); i != std::sregex_iterator(); ++i) {
    numbers.push_back((*i)[2]);
  }
  return numbers;
}

bool may_be_typed(const std::string& number, const Json& json) {
  // Nothing with a point or an exponent: that would be a result, and results are computed.
  if (number.find_first_not_of("0123456789") != std::string::npos) return false;
  // One digit: a definition's own (2i/d, base^−2i, three terms).
  if (number.size() == 1) return true;
  // More: only what the entry itself declares as given, an input of the question and not its outcome.
  const Json* given = json.find("given");
  if (given == nullptr) return false;
  for (const Json& one : *given->as<Json::Array>()) {
    if (std::to_string(*one.as<std::int64_t>()) == number) return true;
  }
  return false;
}

TEST(Content, NoResultIsTypedByHand) {
  for (const Entry& entry : entries()) {
    for (const std::string& text : answers_of(entry.json)) {
      for (const std::string& number : typed_numbers(text)) {
        EXPECT_TRUE(may_be_typed(number, entry.json)) << entry.where << ": " << number << " in: " << text;
      }
    }
  }
}

TEST(Content, WhatIsDeclaredAsGivenIsUsed) {
  for (const Entry& entry : entries()) {
    const Json* given = entry.json.find("given");
    if (given == nullptr) continue;
    std::set<std::string> used;
    for (const std::string& text : answers_of(entry.json)) {
      for (const std::string& number : typed_numbers(text)) used.insert(number);
    }
    for (const Json& one : *given->as<Json::Array>()) {
      EXPECT_TRUE(used.contains(std::to_string(*one.as<std::int64_t>())))
          << entry.where << ": " << *one.as<std::int64_t>();
    }
  }
}

TEST(Content, KnownKeysOnly) {
  const std::map<std::string, std::set<std::string>> known = {
      {"questions", {"id", "level", "tags", "prompt", "hint", "given", "choices", "answer", "source"}},
      {"cards", {"id", "tags", "front", "back", "tex", "given", "source"}}};
  for (const Entry& entry : entries()) {
    for (const auto& [name, value] : *entry.json.as<Json::Object>()) {
      EXPECT_TRUE(known.at(entry.kind).contains(name)) << entry.where << ": " << name;
    }
  }
}

TEST(Content, IdsAreUniqueAndPlain) {
  std::set<std::string> seen;
  for (const Entry& entry : entries()) {
    const std::string& id = *entry.json.find("id")->as<std::string>();
    EXPECT_TRUE(seen.insert(id).second) << entry.where;
    EXPECT_TRUE(std::regex_match(id, std::regex("[a-z][a-z0-9]*(-[a-z0-9]+)+"))) << entry.where;
    EXPECT_EQ(id.starts_with("card-"), entry.kind == "cards") << entry.where;
  }
  for (const ExerciseKind& kind : exercise_kinds()) EXPECT_FALSE(seen.contains(std::string(kind.name)));
}

template <class... S> std::vector<std::string_view> names_of(const std::variant<S...>*) { return {S::name...}; }

TEST(Content, EnoughOfEverything) {
  const std::vector<Question> all_questions = questions();
  const std::vector<Card> all_cards = cards();
  EXPECT_GE(all_questions.size(), 40U);
  EXPECT_GE(all_cards.size(), 40U);
  const auto is_open = [](const Question& question) { return question.choices.empty(); };
  EXPECT_GE(std::count_if(all_questions.begin(), all_questions.end(), is_open), 15);
  EXPECT_GE(std::count_if(all_questions.begin(), all_questions.end(), std::not_fn(is_open)), 15);
  std::map<std::string, int> asked, on_cards;
  for (const Question& question : all_questions) {
    for (const std::string& tag : question.tags) ++asked[tag];
  }
  for (const Card& card : all_cards) {
    for (const std::string& tag : card.tags) ++on_cards[tag];
  }
  const auto taught = [&](std::string_view topic) {
    return asked.contains(std::string(topic)) && on_cards.contains(std::string(topic));
  };
  for (const char* topic :
       {"attention", "causal", "layout", "length", "distance", "exactness", "bugs", "scaling", "bad-idea"}) {
    EXPECT_TRUE(taught(topic)) << topic;
  }
  // A scaling that is new may come without; one that is taught stays so.
  const auto scalings = names_of(static_cast<const RopeScaling*>(nullptr));
  EXPECT_GE(std::count_if(scalings.begin(), scalings.end(), taught), 8);
}

TEST(Content, EverySchemeHasAPageTwoQuestionsAndACard) {
  const auto tagged = [](const auto& entries, const std::string& tag) {
    return std::count_if(entries.begin(), entries.end(), [&](const auto& entry) {
      return std::count(entry.tags.begin(), entry.tags.end(), tag) > 0;
    });
  };
  const Json pages = parse_json(content("scheme_pages.json"));
  for (const std::string_view scheme : scheme_names()) {
    EXPECT_NE(pages.find(scheme), nullptr) << scheme << ": no page in content/scheme_pages.json";
    EXPECT_GE(tagged(questions(), std::string(scheme)), 2) << scheme << ": questions with its name as a tag";
    EXPECT_GE(tagged(cards(), std::string(scheme)), 1) << scheme << ": cards with its name as a tag";
  }
}

TEST(Content, EveryQuestionIsForALearnerOrAnEngineer) {
  std::map<std::string, int> at_level;
  for (const Question& question : questions()) {
    ++at_level[question.tags.back()];
    EXPECT_TRUE(question.tags.back() == "learner" || question.tags.back() == "engineer") << question.id;
  }
  EXPECT_GE(at_level["learner"], 40);
  EXPECT_GE(at_level["engineer"], 20);
}

TEST(Content, EveryEntryNamesItsSource) {
  for (const Question& question : questions()) EXPECT_FALSE(question.source.empty()) << question.id;
  for (const Card& card : cards()) EXPECT_FALSE(card.source.empty()) << card.id;
  EXPECT_EQ(citation("vaswani-2017 §3.5"), "Vaswani et al. 2017, Attention Is All You Need, §3.5");
  EXPECT_EQ(citation("press-2022, released code"),
            "Press et al. 2022, Train Short, Test Long (ALiBi), released code");
}

// A citation is for what the section states. §3.2.1 defines attention. §3.5 has the formula, the range and the geometric
// spacing of wavelengths, addition, the linear map of a shift, the comparison with a learned table and the hope to
// extrapolate. It has neither dot products nor permutations: what we derive says so.
TEST(Content, TheFirstPaperIsCitedOnlyForWhatItStates) {
  const std::set<std::string> stated = {
      "card-added",      "card-sin-formula",     "card-sin-position-two",  "card-sin-shift",
      "card-sin-choice", "card-sin-wavelengths", "card-attention-formula", "learned-or-sinusoidal",
      "order-why",       "order-added",          "learned-paper-choice",   "order-softmax",
      "sin-formula",     "sin-row-one",          "sin-fastest-wave",       "sin-slowest-wave",
      "sin-spacing",     "sin-shift-map"};
  const std::regex section(R"(vaswani-2017 §3\.(5|2\.1).*)");
  for (const Entry& entry : entries()) {
    const std::string& id = *entry.json.find("id")->as<std::string>();
    EXPECT_EQ(std::regex_match(*entry.json.find("source")->as<std::string>(), section), stated.contains(id)) << id;
  }
  EXPECT_EQ(citation("derived-vaswani-2017 §3.5"),
            "derived from the definition in Vaswani et al. 2017, Attention Is All You Need, §3.5");
  for (const char* story : {"dot-product", "permutation-proof", "dog-bites-man", "look-back"}) {
    EXPECT_TRUE(tell_story(story).source.starts_with("derived from")) << story;
  }
}

TEST(Content, CardsMakeSenseWhenShuffled) {
  // a card that refers to the one before it, or is a name with a question mark
  const std::regex refers(R"(\b(behind it|of this|the above|the same as before)\b)");
  for (const Card& card : cards()) {
    EXPECT_FALSE(std::regex_search(card.front, refers)) << card.id << ": " << card.front;
    EXPECT_GE(std::count(card.front.begin(), card.front.end(), ' '), 2) << card.id << ": " << card.front;
  }
}

TEST(Content, ChoicesCanBeToldApart) {
  for (const Question& question : questions()) {
    EXPECT_FALSE(question.prompt.empty() || question.answer.empty() || question.tags.empty()) << question.id;
    if (question.choices.empty()) {
      EXPECT_FALSE(question.hint.empty()) << question.id << ": an open question has a hint";
      continue;
    }
    EXPECT_GE(question.choices.size(), 3U) << question.id;
    EXPECT_LE(question.choices.size(), 4U) << question.id << ": keys 1 to 4";
    std::set<std::string> texts;
    for (const AnswerChoice& choice : question.choices) {
      EXPECT_TRUE(texts.insert(choice.text).second) << question.id << ": " << choice.text;
      EXPECT_FALSE(choice.because.empty()) << question.id << ": " << choice.text;
    }
  }
}

TEST(Content, TextsAreClean) {
  const auto clean = [](const std::string& where, const std::string& text) {
    EXPECT_EQ(text.find("{{"), std::string::npos) << where;
    EXPECT_EQ(text.find("  "), std::string::npos) << where << ": two spaces";
    EXPECT_EQ(std::count(text.begin(), text.end(), '`') % 2, 0) << where << ": a backquote without its partner";
    EXPECT_EQ(text.find_first_of("\n\t\r"), std::string::npos) << where;
    EXPECT_FALSE(text.starts_with(' ') || text.ends_with(' ')) << where;
    EXPECT_LE(text.size(), 700U) << where << ": too long for a card or a screen";
  };
  for (const Question& question : questions()) {
    clean(question.id, question.prompt);
    clean(question.id, question.answer);
    clean(question.id, question.hint);
    for (const AnswerChoice& choice : question.choices) {
      clean(question.id, choice.text);
      clean(question.id, choice.because);
    }
  }
  for (const Card& card : cards()) {
    clean(card.id, card.front);
    clean(card.id, card.back);
    EXPECT_LE(card.back.size(), 420U) << card.id << ": must fit a card of 105 by 74 millimetres";
  }
}

}  // namespace
}  // namespace posenc::content_test
