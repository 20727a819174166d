#include "posenc/walkthrough.h"

#include <fmt/format.h>

#include <algorithm>

#include "lessons/content_json.h"
#include "posenc/content.h"
#include "posenc/formula.h"
#include "posenc/json.h"

namespace posenc {
namespace lessons {
namespace {

constexpr std::string_view kFile = "walkthroughs.json";

double plain_number(const Json& json, std::string_view where) {
  if (const auto* const whole = json.as<std::int64_t>()) return static_cast<double>(*whole);
  if (const auto* const number = json.as<double>()) return *number;
  complain(where, "a variable of a blank must be a number");
}

// The variables of the step, which all its blanks share, and those of the blank.
ExerciseVariables variables_of(const Json& step, const Json& blank, std::string_view where) {
  ExerciseVariables variables;
  for (const Json* const from : {&step, &blank}) {
    const auto* const object = from->find<Json::Object>("variables");
    if (object == nullptr) complain(where, "'variables' must be an object");
    for (const auto& [name, value] : *object) variables.emplace_back(name, plain_number(value, where));
  }
  return variables;
}

WalkthroughStep walkthrough_step(const Json& json, const std::string& kind, std::string_view where) {
  WalkthroughStep step;
  step.heading = text_of(json, "heading", where);
  std::string filled;
  for (const Json& blank : list_of(json, "blanks", where)) {
    step.blanks.push_back({text_of(blank, "label", where), exercise(kind, variables_of(json, blank, where))});
    filled += fmt::format("{}{}", filled.empty() ? "" : ", ", shown_answer(step.blanks.back().exercise));
  }
  step.result = fmt::format("{} = ({})", text_of(json, "result", where), filled);
  return step;
}

Question question_named(std::string_view id, std::string_view where) {
  std::vector<Question> all = questions();
  const auto found = std::find_if(all.begin(), all.end(), [&](const Question& one) { return one.id == id; });
  if (found == all.end()) complain(where, fmt::format("there is no question '{}'", id));
  return std::move(*found);
}

}  // namespace
}  // namespace lessons

std::vector<Walkthrough> walkthroughs() {
  std::vector<Walkthrough> list;
  const Json file = parse_json(content(lessons::kFile));
  for (const Json& entry : lessons::list_of(file, "walkthroughs", lessons::kFile)) {
    Walkthrough one;
    one.id = lessons::text_of(entry, "id", lessons::kFile);
    const std::string where = fmt::format("{}: {}", lessons::kFile, one.id);
    one.title = lessons::text_of(entry, "title", where);
    one.topic = lessons::text_of(entry, "topic", where);
    one.setup = fill_template(lessons::text_of(entry, "setup", where));
    const std::string kind = lessons::text_of(entry, "kind", where);
    for (const Json& step : lessons::list_of(entry, "steps", where)) {
      one.steps.push_back(lessons::walkthrough_step(step, kind, where));
    }
    one.question = lessons::question_named(lessons::text_of(entry, "question", where), where);
    one.source = citation(lessons::text_of(entry, "source", where));
    list.push_back(std::move(one));
  }
  return list;
}

}  // namespace posenc
