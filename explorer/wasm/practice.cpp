// Exercises, questions and cards: content/ as the program shows it.

#include "explorer/wasm/call.h"
#include "posenc/error.h"
#include "posenc/exercise.h"
#include "posenc/question.h"
#include "posenc/review.h"
#include "posenc/walkthrough.h"

namespace posenc::page {
namespace {

Exercise asked_exercise(const Json& fields) {
  const auto seed = static_cast<std::uint64_t>(integer(fields, "seed", 1));
  const std::string kind = text(fields, "kind");
  return kind.empty() ? exercise(seed) : exercise(kind, seed);
}

Json strings(const std::vector<std::string>& words) {
  Json::Array list;
  for (const std::string& word : words) list.emplace_back(word);
  return list;
}

Answer make_exercise(const Question& question) {
  const Exercise made = asked_exercise(question.fields);
  Json::Array kinds;
  for (const ExerciseKind& kind : exercise_kinds()) {
    kinds.push_back(Json::Object{{"name", kind.name}, {"title", kind.title}, {"topic", kind.topic}});
  }
  return {Json::Object{{"kind", made.kind},
                       {"seed", static_cast<std::int64_t>(made.seed)},
                       {"prompt", made.prompt},
                       {"hint", made.hint},
                       {"working", made.working},
                       {"command", made.command},
                       {"answer", shown_answer(made)},
                       {"decimals", made.decimals},
                       {"whole", made.whole},
                       {"kinds", std::move(kinds)}},
          {}};
}

Answer graded(const Exercise& made, const std::string& typed) {
  const Grade found = grade(made, std::string_view(typed));
  constexpr std::string_view kMarks[] = {"right", "too-few-digits", "known-mistake", "wrong", "not-a-number"};
  Json::Array because;
  for (const std::size_t index : found.mistakes) because.emplace_back(made.mistakes[index].because);
  return {Json::Object{{"mark", kMarks[static_cast<std::size_t>(found.verdict)]},
                       {"because", std::move(because)},
                       {"answer", shown_answer(made)}},
          {}};
}

Json question_json(const posenc::Question& one) {
  Json::Array choices;
  for (const AnswerChoice& choice : one.choices) {
    choices.push_back(Json::Object{{"text", choice.text}, {"because", choice.because}, {"right", choice.right}});
  }
  return Json::Object{{"id", one.id},
                      {"topic", one.topic},
                      {"tags", strings(one.tags)},
                      {"prompt", one.prompt},
                      {"choices", std::move(choices)},
                      {"answer", one.answer},
                      {"hint", one.hint}};
}

Answer grade_answer(const Question& question) {
  return graded(asked_exercise(question.fields), text(question.fields, "typed"));
}

/// Exercises of several steps: rows to fill in, then a question.
Answer list_walkthroughs(const Question&) {
  Json::Array list;
  for (const Walkthrough& one : walkthroughs()) {
    Json::Array steps;
    for (const WalkthroughStep& step : one.steps) {
      Json::Array blanks;
      for (const WalkthroughBlank& blank : step.blanks) blanks.emplace_back(blank.label);
      steps.push_back(
          Json::Object{{"heading", step.heading}, {"blanks", std::move(blanks)}, {"result", step.result}});
    }
    list.push_back(Json::Object{{"title", one.title},
                                {"setup", one.setup},
                                {"steps", std::move(steps)},
                                {"question", question_json(one.question)}});
  }
  return {std::move(list), {}};
}

/// One number of such an exercise: {"walkthrough", "step", "blank", "typed"}.
Answer grade_blank(const Question& question) {
  const std::vector<Walkthrough> all = walkthroughs();
  const auto pick = [&](std::string_view name, std::size_t count) {
    const std::int64_t index = integer(question.fields, name, 0);
    if (index < 0 || index >= static_cast<std::int64_t>(count)) raise(std::string(name) + ": there is no such one");
    return static_cast<std::size_t>(index);
  };
  const Walkthrough& one = all[pick("walkthrough", all.size())];
  const WalkthroughStep& step = one.steps[pick("step", one.steps.size())];
  return graded(step.blanks[pick("blank", step.blanks.size())].exercise, text(question.fields, "typed"));
}

Answer list_questions(const Question&) {
  Json::Array list;
  for (const posenc::Question& one : questions()) list.push_back(question_json(one));
  return {std::move(list), {}};
}

Answer list_cards(const Question&) {
  Json::Array list;
  for (const Card& one : cards()) {
    list.push_back(Json::Object{
        {"id", one.id}, {"topic", one.topic}, {"tags", strings(one.tags)}, {"front", one.front}, {"back", one.back}});
  }
  return {std::move(list), {}};
}

/// One answer recorded: {"progress": text of to_json or "", "id", "grade", "day"} → the new progress.
Answer review(const Question& question) {
  const Json& fields = question.fields;
  const std::string before = text(fields, "progress");
  PracticeProgress progress = before.empty() ? PracticeProgress{} : progress_from_json(before);
  if (const std::string id = text(fields, "id"); !id.empty()) {
    record(progress, {.id = id,
                      .at = integer(fields, "at", 0),
                      .day = integer(fields, "day", 0),
                      .grade = static_cast<int>(integer(fields, "grade", 0)),
                      .milliseconds = integer(fields, "milliseconds", 0)});
  }
  std::vector<std::string> ids;
  for (const Card& one : cards()) ids.push_back(one.id);
  for (const posenc::Question& one : questions()) ids.push_back(one.id);
  return {Json::Object{{"progress", to_json(progress)},
                       {"order", strings(in_order_of_need(progress, ids, integer(fields, "day", 0), true))}},
          {}};
}

}  // namespace

std::span<const NamedCall> calls() {
  static constexpr NamedCall kCalls[] = {
      {"exercise", make_exercise},  {"grade", grade_answer}, {"questions", list_questions},
      {"cards", list_cards},        {"review", review},      {"walkthroughs", list_walkthroughs},
      {"grade-blank", grade_blank},
  };
  return kCalls;
}

}  // namespace posenc::page
