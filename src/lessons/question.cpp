#include "posenc/question.h"

#include <fmt/format.h>

#include <algorithm>

#include "lessons/content_json.h"
#include "posenc/content.h"
#include "posenc/formula.h"
#include "posenc/json.h"

namespace posenc {
namespace {

using lessons::complain;
using lessons::list_of;
using lessons::text_of;

std::vector<std::string> tags_of(const Json& json, std::string_view where) {
  std::vector<std::string> tags;
  for (const Json& tag : list_of(json, "tags", where)) {
    const auto* text = tag.as<std::string>();
    if (text == nullptr) complain(where, "a tag must be text");
    tags.push_back(*text);
  }
  return tags;
}

// Calls take(entry, topic, where) for every entry of content/KIND/TOPIC.json, topic by topic.
template <class Take> void each_entry(std::string_view kind, const Take& take) {
  for (const std::string& topic : lessons::topics()) {
    const std::string file = fmt::format("{}/{}.json", kind, topic);
    const Json json = parse_json(content(file));
    for (const Json& entry : list_of(json, kind, file)) {
      take(entry, topic, fmt::format("{}: {}", file, text_of(entry, "id", file)));
    }
  }
}

// Whom a question is for: it is a tag as well, so that --tag selects it.
std::string level_of(const Json& json, std::string_view where) {
  std::string level = text_of(json, "level", where);
  if (level != "learner" && level != "engineer") complain(where, "'level' must be learner or engineer");
  return level;
}

AnswerChoice choice_from(const Json& json, std::string_view where) {
  AnswerChoice choice;
  choice.text = fill_template(text_of(json, "text", where));
  const auto* is_right = json.find<bool>("right");
  choice.right = is_right != nullptr && *is_right;
  choice.because = fill_template(text_of(json, "because", where, !choice.right));
  return choice;
}

Question question_from(const Json& json, const std::string& topic, const std::string& where) {
  Question question;
  question.id = text_of(json, "id", where);
  question.topic = topic;
  question.tags = tags_of(json, where);
  question.tags.push_back(level_of(json, where));
  question.prompt = fill_template(text_of(json, "prompt", where));
  question.answer = fill_template(text_of(json, "answer", where));
  question.hint = fill_template(text_of(json, "hint", where, false));
  question.source = citation(text_of(json, "source", where));
  if (json.find("choices") == nullptr) return question;
  for (const Json& entry : list_of(json, "choices", where)) {
    question.choices.push_back(choice_from(entry, where));
    if (question.choices.back().right) question.choices.back().because = question.answer;
  }
  const auto right = std::count_if(question.choices.begin(), question.choices.end(),
                                   [](const AnswerChoice& choice) { return choice.right; });
  if (right != 1) complain(where, fmt::format("{} choices are right", right));
  return question;
}

}  // namespace

std::string citation(std::string_view source) {
  const std::size_t end = std::min(source.find_first_of(" ,"), source.size());
  const Json file = parse_json(content("sources.json"));
  std::string text = text_of(file, source.substr(0, end), "sources.json");
  std::string_view rest = source.substr(end);
  if (rest.empty()) return text;
  rest.remove_prefix(std::min(rest.find_first_not_of(" ,"), rest.size()));
  return fmt::format("{}, {}", text, rest);
}

namespace {

std::vector<Question> read_questions() {
  std::vector<Question> list;
  each_entry("questions", [&](const Json& entry, const std::string& topic, const std::string& where) {
    list.push_back(question_from(entry, topic, where));
  });
  return list;
}

std::vector<Card> read_cards() {
  std::vector<Card> list;
  each_entry("cards", [&](const Json& entry, const std::string& topic, const std::string& where) {
    Card card;
    card.id = text_of(entry, "id", where);
    card.topic = topic;
    card.tags = tags_of(entry, where);
    card.front = fill_template(text_of(entry, "front", where));
    card.back = fill_template(text_of(entry, "back", where));
    card.tex = text_of(entry, "tex", where, false);
    card.source = citation(text_of(entry, "source", where));
    list.push_back(std::move(card));
  });
  return list;
}

}  // namespace

// Cached, because computing the numbers takes a second in a web page.
std::vector<Question> questions() {
  static const std::vector<Question> all = read_questions();
  return all;
}
std::vector<Card> cards() {
  static const std::vector<Card> all = read_cards();
  return all;
}

}  // namespace posenc
