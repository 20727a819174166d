#include "cli/pages/practice_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "cli/pages/flash_card.h"
#include "cli/system/failure.h"
#include "cli/system/terminal.h"
#include "posenc/content.h"
#include "posenc/json.h"
#include "posenc/random.h"
#include "posenc/scheme.h"
#include "posenc/walkthrough.h"

namespace posenc::cli {
namespace {

// The difference of seeds between consecutive exercises of a session.
constexpr std::uint64_t kStep = 1;

// An item that a learner may select, with the words that select it.
struct Candidate {
  std::string id;
  std::vector<std::string> words;
  std::variant<Question, Card, ExerciseKind> what;
};

template <class T> Candidate candidate_of(const T& entry) {
  Candidate candidate{entry.id, entry.tags, entry};
  candidate.words.push_back(entry.topic);
  candidate.words.push_back(entry.id);
  return candidate;
}

using Pool = std::vector<Candidate>;

std::vector<Pool> pools_of(const PracticeWish& wish) {
  std::vector<Pool> pools;
  const auto wants = [&](std::string_view kind) { return wish.kind.empty() || wish.kind == kind; };
  if (!wish.kind.empty() && wish.kind != "questions" && wish.kind != "cards" && wish.kind != "fill-ins") {
    refuse(fmt::format("--kind: '{}' is not one of questions, cards, fill-ins", wish.kind));
  }
  if (wants("questions")) {
    Pool& pool = pools.emplace_back();
    for (const Question& question : questions()) pool.push_back(candidate_of(question));
    // What only an engine's author has to know comes after everything else, unless it is asked for.
    std::stable_partition(pool.begin(), pool.end(), [](const Candidate& candidate) {
      return std::find(candidate.words.begin(), candidate.words.end(), "engineer") == candidate.words.end();
    });
  }
  if (wants("fill-ins")) {
    Pool& pool = pools.emplace_back();
    for (const ExerciseKind& kind : exercise_kinds()) {
      pool.push_back({std::string(kind.name), {std::string(kind.name), std::string(kind.topic)}, kind});
    }
    // The seed determines the order of new items; questions and cards keep the order in which they are taught.
    Random(wish.seed).shuffle(pool);
  }
  if (wants("cards") && !wish.without_cards) {
    Pool& pool = pools.emplace_back();
    for (const Card& card : cards()) pool.push_back(candidate_of(card));
  }
  for (Pool& pool : pools) {
    std::erase_if(pool, [&](const Candidate& candidate) {
      return !wish.topics.empty() &&
             std::none_of(wish.topics.begin(), wish.topics.end(), [&](const std::string& topic) {
               return std::find(candidate.words.begin(), candidate.words.end(), topic) != candidate.words.end();
             });
    });
  }
  if (wish.tag.empty()) return pools;
  std::set<std::string> known;
  for (Pool& pool : pools) {
    for (const Candidate& candidate : pool) known.insert(candidate.words.begin(), candidate.words.end());
    std::erase_if(pool, [&](const Candidate& candidate) {
      return std::find(candidate.words.begin(), candidate.words.end(), wish.tag) == candidate.words.end();
    });
  }
  if (std::all_of(pools.begin(), pools.end(), [](const Pool& pool) { return pool.empty(); })) {
    const std::string_view near = nearest_name(wish.tag, {known.begin(), known.end()});
    refuse(fmt::format("--tag: nothing is tagged '{}'{}", wish.tag,
                       near.empty() ? " (see posenc practice --list)" : fmt::format(" (did you mean '{}'?)", near)));
  }
  return pools;
}

// Alternates between the pools, so that a session does not begin with a long series of one kind.
Pool taking_turns(const std::vector<Pool>& pools) {
  Pool all;
  std::size_t longest = 0;
  for (const Pool& pool : pools) longest = std::max(longest, pool.size());
  for (std::size_t i = 0; i < longest; ++i) {
    for (const Pool& pool : pools) {
      if (i < pool.size()) all.push_back(pool[i]);
    }
  }
  return all;
}

PracticeItem item_of(const Candidate& candidate, std::uint64_t seed) {
  if (const auto* question = std::get_if<Question>(&candidate.what)) return {*question};
  if (const auto* card = std::get_if<Card>(&candidate.what)) return {*card};
  return {exercise(candidate.id, seed)};
}

Json texts(const std::vector<std::string>& list) { return Json::Array(list.begin(), list.end()); }

Json question_json(const Question& question, const std::vector<std::size_t>& order) {
  Json::Array choices;
  for (const std::size_t i : order) {
    const AnswerChoice& choice = question.choices[i];
    choices.emplace_back(Json::Object{{"text", choice.text}, {"right", choice.right}, {"because", choice.because}});
  }
  return Json::Object{{"kind", "question"},
                      {"id", question.id},
                      {"topic", question.topic},
                      {"tags", texts(question.tags)},
                      {"prompt", question.prompt},
                      {"hint", question.hint},
                      {"choices", std::move(choices)},
                      {"answer", question.answer},
                      {"source", question.source}};
}

Json card_json(const Card& card) {
  return Json::Object{{"kind", "card"},      {"id", card.id},     {"topic", card.topic}, {"tags", texts(card.tags)},
                      {"front", card.front}, {"back", card.back}, {"tex", card.tex},     {"source", card.source}};
}

Json exercise_json(const Exercise& one) {
  Json::Object given;
  for (const auto& [name, value] : one.given) given.emplace_back(name, value);
  Json::Array mistakes;
  for (const Mistake& mistake : one.mistakes) {
    mistakes.emplace_back(
        Json::Object{{"name", mistake.name}, {"because", mistake.because}, {"value", mistake.value}});
  }
  return Json::Object{{"kind", "fill-in"},
                      {"id", one.kind},
                      {"seed", std::to_string(one.seed)},
                      {"prompt", one.prompt},
                      {"hint", one.hint},
                      {"given", std::move(given)},
                      {"answer", one.answer},
                      {"shown", shown_answer(one)},
                      {"decimals", one.decimals},
                      {"tolerance", tolerance_of(one)},
                      {"working", one.working},
                      {"command", one.command},
                      {"mistakes", std::move(mistakes)}};
}

// The beginning of a text, with an ellipsis if it is cut.
std::string cut(std::string_view text, int columns) {
  if (columns_of(text) <= columns) return std::string(text);
  const std::vector<std::string> lines = wrap(text, std::max(columns - 2, 1));
  return lines.front() + " …";
}

constexpr int kListColumns = 8 + 2 + 28 + 2 + 12 + 2;  // preceding the text of an entry

std::string due_words(const PracticeProgress& progress, const std::string& id, std::int64_t day) {
  const auto found = progress.items.find(id);
  if (found == progress.items.end()) return "new";
  const std::int64_t days = found->second.due - day;
  if (days <= 0) return "due";
  return days == 1 ? "tomorrow" : fmt::format("in {} days", days);
}

}  // namespace

const std::string& PracticeItem::id() const {
  if (const auto* question = std::get_if<Question>(&what)) return question->id;
  if (const auto* card = std::get_if<Card>(&what)) return card->id;
  return std::get<Exercise>(what).kind;
}

std::string_view PracticeItem::kind() const {
  constexpr std::string_view kNames[] = {"question", "card", "fill-in"};
  return kNames[what.index()];
}

std::string PracticeItem::topic() const {
  if (const auto* question = std::get_if<Question>(&what)) return question->topic;
  if (const auto* card = std::get_if<Card>(&what)) return card->topic;
  for (const ExerciseKind& known : exercise_kinds()) {
    if (known.name == id()) return std::string(known.topic);
  }
  return "";
}

std::vector<PracticeItem> practice_plan(const PracticeWish& wish, const PracticeProgress& progress) {
  const std::vector<Pool> pools = pools_of(wish);
  const Pool all = taking_turns(pools);
  std::map<std::string_view, const Candidate*> by_id;
  std::vector<std::string> ids, endless;
  for (const Candidate& candidate : all) {
    by_id[candidate.id] = &candidate;
    ids.push_back(candidate.id);
    if (std::holds_alternative<ExerciseKind>(candidate.what)) endless.push_back(candidate.id);
  }
  std::vector<std::string> order = in_order_of_need(progress, ids, wish.day);
  const std::size_t wanted = wish.count;
  endless = in_order_of_need(progress, endless, wish.day, true);
  while (order.size() < wanted && !endless.empty()) order.insert(order.end(), endless.begin(), endless.end());
  if (order.size() > wanted) order.resize(wanted);

  std::vector<PracticeItem> items;
  for (const std::string& id : order) {
    items.push_back(item_of(*by_id.at(id), wish.seed + kStep * static_cast<std::uint64_t>(items.size())));
  }
  return items;
}

Exercise another_exercise(const Exercise& one, std::uint64_t n) {
  return exercise(one.kind, one.seed + 1'000'000 * n);
}

std::vector<std::size_t> order_of_choices(const Question& question, std::uint64_t seed) {
  std::vector<std::size_t> order(question.choices.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  // Each question has its own order.
  std::uint64_t own = seed;
  for (const char letter : question.id) own = Random(own ^ static_cast<unsigned char>(letter)).next();
  Random(own).shuffle(order);
  return order;
}

std::vector<std::size_t> another_order_of_choices(const Question& question, std::uint64_t seed) {
  const auto right_place = [&](const std::vector<std::size_t>& order) {
    return std::find_if(order.begin(), order.end(), [&](std::size_t i) { return question.choices[i].right; }) -
           order.begin();
  };
  const auto before = right_place(order_of_choices(question, seed));
  constexpr std::uint64_t kMostShuffles = 64;  // a shuffle keeps the place with a probability of 1/3 or 1/4
  std::vector<std::size_t> order;
  for (std::uint64_t n = 1; n <= kMostShuffles; ++n) {
    order = order_of_choices(question, ~seed + n);
    if (right_place(order) != before) break;
  }
  return order;
}

Json as_json(const PracticeItem& item, std::uint64_t seed) {
  if (const auto* question = std::get_if<Question>(&item.what)) {
    return question_json(*question, order_of_choices(*question, seed));
  }
  if (const auto* card = std::get_if<Card>(&item.what)) return card_json(*card);
  return exercise_json(std::get<Exercise>(item.what));
}

Json walkthrough_json(const Walkthrough& one) {
  Json::Array steps;
  for (const WalkthroughStep& step : one.steps) {
    Json::Array blanks;
    for (const WalkthroughBlank& blank : step.blanks) {
      blanks.emplace_back(Json::Object{{"label", blank.label}, {"exercise", exercise_json(blank.exercise)}});
    }
    steps.emplace_back(
        Json::Object{{"heading", step.heading}, {"blanks", std::move(blanks)}, {"result", step.result}});
  }
  return Json::Object{{"kind", "walkthrough"},
                      {"id", one.id},
                      {"title", one.title},
                      {"topic", one.topic},
                      {"setup", one.setup},
                      {"steps", std::move(steps)},
                      {"question", question_json(one.question, order_of_choices(one.question, 0))},
                      {"source", one.source}};
}

Walkthrough walkthrough_named(std::string_view id) {
  std::vector<std::string> names;
  for (Walkthrough& one : walkthroughs()) {
    if (one.id == id) return std::move(one);
    names.push_back(one.id);
  }
  refuse(fmt::format("--walkthrough: there is no '{}' ({})", id, suggestion(id, {names.begin(), names.end()})));
}

std::vector<PathTopic> practice_path(const PracticeProgress& progress) {
  const Json file = parse_json(content("topics.json"));
  std::vector<PathTopic> path;
  const auto list = [](const Json& entry, std::string_view name) {
    std::vector<std::string> result;
    for (const Json& one : *entry.find<Json::Array>(name)) result.push_back(*one.as<std::string>());
    return result;
  };
  for (const Json& entry : *file.find<Json::Array>("topics")) {
    const auto text = [&](std::string_view name) { return *entry.find<std::string>(name); };
    path.push_back({text("name"), text("title"), text("goal"), list(entry, "after"), list(entry, "stories")});
  }
  constexpr std::int64_t kWellKnown = 1;  // consecutive repetitions
  for (const Pool& pool : pools_of({})) {
    for (const Candidate& candidate : pool) {
      const std::string topic = item_of(candidate, 0).topic();
      const auto place =
          std::find_if(path.begin(), path.end(), [&](const PathTopic& one) { return one.name == topic; });
      if (place == path.end()) continue;
      ++place->all;
      const auto found = progress.items.find(candidate.id);
      if (found == progress.items.end()) continue;
      ++place->met;
      if (found->second.repetitions >= kWellKnown) ++place->known;
    }
  }
  return path;
}

std::size_t current_topic(const std::vector<PathTopic>& path) {
  for (std::size_t i = 0; i < path.size(); ++i) {
    if (path[i].met < path[i].all) return i;
  }
  return path.size() - 1;
}

std::string path_text(const std::vector<PathTopic>& path, std::size_t current) {
  std::string text;
  for (std::size_t i = 0; i < path.size(); ++i) {
    const PathTopic& topic = path[i];
    text += fmt::format("{} {}. {}  {} of {} known\n", i == current ? ">" : " ", i + 1, pad_right(topic.title, 32),
                        topic.known, topic.all);
  }
  const PathTopic& now = path[current];
  std::vector<std::string> before;
  for (const PathTopic& topic : path) {
    if (std::find(now.after.begin(), now.after.end(), topic.name) != now.after.end()) before.push_back(topic.title);
  }
  std::string goal = fmt::format("Goal: {}", now.goal);
  if (!before.empty()) goal += fmt::format(" Builds on: {}.", fmt::join(before, ", "));
  text += "\n";
  for (const std::string& line : wrap(goal, std::min(output_columns(), 100))) text += line + "\n";
  for (const std::string& story : now.stories) text += fmt::format("Read: posenc explain {}\n", story);
  for (const Walkthrough& one : walkthroughs()) {
    if (one.topic == now.name) text += fmt::format("Work through: posenc practice --walkthrough {}\n", one.id);
  }
  return text;
}

std::string practice_list(const PracticeWish& wish, const PracticeProgress& progress) {
  const std::vector<Pool> pools = pools_of(wish);
  std::string text;
  for (const Pool& pool : pools) {
    for (const Candidate& candidate : pool) {
      const PracticeItem item = item_of(candidate, wish.seed);
      std::string_view about;
      if (const auto* question = std::get_if<Question>(&candidate.what)) about = question->prompt;
      if (const auto* card = std::get_if<Card>(&candidate.what)) about = card->front;
      if (const auto* kind = std::get_if<ExerciseKind>(&candidate.what)) about = kind->title;
      const std::string plain = cut(as_terminal_text(about, false), output_columns() - kListColumns);
      text += fmt::format("{}  {}  {}  {}\n", pad_right(item.kind(), 8), pad_right(candidate.id, 28),
                          pad_right(due_words(progress, candidate.id, wish.day), 12), plain);
    }
  }
  return text;
}

std::string practice_list_json() {
  Json::Array question_list, card_list, kinds;
  for (const Question& question : questions()) {
    std::vector<std::size_t> order(question.choices.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    question_list.push_back(question_json(question, order));
  }
  for (const Card& card : cards()) card_list.push_back(card_json(card));
  for (const ExerciseKind& kind : exercise_kinds()) {
    kinds.emplace_back(Json::Object{{"id", kind.name}, {"topic", kind.topic}, {"title", kind.title}});
  }
  return dump_json(Json::Object{{"questions", std::move(question_list)},
                                {"cards", std::move(card_list)},
                                {"fill_ins", std::move(kinds)}},
                   2) +
         "\n";
}

}  // namespace posenc::cli
