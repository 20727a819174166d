#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cstdint>
#include <ctime>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "cli/pages/practice_plan.h"
#include "cli/pages/practice_session.h"
#include "cli/pages/progress_file.h"
#include "cli/system/failure.h"
#include "cli/system/streams.h"
#include "cli/verbs/verbs.h"

namespace posenc::cli {
namespace {

constexpr std::int64_t kSecondsOfDay = 86400;

struct PracticeFlags {
  std::string kind, tag, today, walkthrough;
  std::optional<std::int64_t> seed;
  std::int64_t count = PracticeWish{}.count;
  bool no_progress = false, list = false, json = false, path = false;
};

std::int64_t day_number(std::tm date) {
  date.tm_hour = date.tm_min = date.tm_sec = 0;
  return static_cast<std::int64_t>(timegm(&date)) / kSecondsOfDay;
}

std::string date_of(std::int64_t day) {
  const auto seconds = static_cast<std::time_t>(day * kSecondsOfDay);
  std::tm parts{};
  std::array<char, 32> text{};
  if (gmtime_r(&seconds, &parts) != nullptr) std::strftime(text.data(), text.size(), "%Y-%m-%d", &parts);
  return text.data();
}

// The learner's own day: it begins at local midnight.
std::int64_t today(const std::string& given) {
  if (given.empty()) {
    const std::time_t now = std::time(nullptr);
    std::tm parts{};
    if (localtime_r(&now, &parts) == nullptr) return static_cast<std::int64_t>(now) / kSecondsOfDay;
    return day_number(parts);
  }
  std::tm parts{};
  const auto part = [&](std::size_t at, std::size_t length) {
    int value = -1;
    if (given.size() == 10) std::from_chars(given.data() + at, given.data() + at + length, value);
    return value;
  };
  parts.tm_year = part(0, 4) - 1900;
  parts.tm_mon = part(5, 2) - 1;
  parts.tm_mday = part(8, 2);
  const std::int64_t day = day_number(parts);
  // an invalid date is normalised to another one
  if (date_of(day) != given || day < 0) refuse(fmt::format("--today: '{}' is not a date such as 2026-11-15", given));
  return day;
}

std::string plan_json(const PracticeWish& wish) {
  Json::Array items;
  for (const PracticeItem& item : practice_plan(wish, {})) items.push_back(as_json(item, wish.seed));
  return dump_json(Json::Object{{"seed", std::to_string(wish.seed)}, {"items", std::move(items)}}, 2) + "\n";
}

// "4 tomorrow, 3 on 2026-11-21"
std::string outlook(const PracticeProgress& progress, std::int64_t day) {
  std::map<std::int64_t, int> due;
  for (const auto& [id, state] : progress.items) ++due[std::max(state.due, day)];
  std::string text;
  int shown = 0;
  for (const auto& [when, count] : due) {
    if (++shown > 3) break;
    const std::string words = when == day       ? "today"
                              : when == day + 1 ? "tomorrow"
                                                : fmt::format("on {}", date_of(when));
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, words);
  }
  return text;
}

int run(const PracticeFlags& flags) {
  if (!flags.walkthrough.empty()) {
    const Walkthrough chosen = walkthrough_named(flags.walkthrough);
    if (flags.json) {
      print(dump_json(walkthrough_json(chosen), 2) + "\n");
    } else {
      practice_walkthrough(chosen);
    }
    return kDone;
  }
  PracticeWish wish;
  wish.kind = flags.kind;
  wish.tag = flags.tag;
  wish.seed = flags.seed ? static_cast<std::uint64_t>(*flags.seed) : std::random_device()() % 1'000'000;
  wish.day = today(flags.today);
  wish.count = flags.count;
  if (flags.json) {
    print(flags.list ? practice_list_json() : plan_json(wish));
    return kDone;
  }

  std::optional<ProgressFile> file;
  PracticeProgress progress;
  if (!flags.no_progress) {
    file.emplace();
    progress = file->load();
  }
  if (flags.path) {
    const std::vector<PathTopic> path = practice_path(progress);
    const std::size_t current = current_topic(path);
    // new items come from this topic, due ones from all topics met so far
    for (std::size_t i = 0; i <= current; ++i) wish.topics.push_back(path[i].name);
    print(path_text(path, current) + "\n");
  }
  if (flags.list) {
    print(practice_list(wish, progress));
    return kDone;
  }
  const std::vector<PracticeItem> items = practice_plan(wish, progress);
  if (items.empty()) {
    print(fmt::format("Nothing is due: {}.\n", outlook(progress, wish.day)));
    return kDone;
  }
  const std::vector<Review> reviews = practice(items, wish.seed, wish.day, [&](const Review& review) {
    if (file) progress = file->add(review);
  });
  if (!file) {
    print("Progress was not saved (--no-progress).\n");
  } else if (!reviews.empty()) {
    print(fmt::format("Due: {}.\nProgress saved in {}.\n", outlook(progress, wish.day), one_line(file->path())));
  }
  return kDone;
}

}  // namespace

Verb practice_verb(Command program) {
  Verb verb;
  verb.name = "practice";
  verb.summary = "practice with questions, flash cards and generated exercises (spaced repetition)";
  verb.usage = "[--kind questions|cards|fill-ins] [--tag TAG] [--count N]";
  verb.details =
      "Asks the items that are due, then new ones. Fill-ins are generated, as many as you like, and a wrong number "
      "is traced to the mistake that produces it. An item returns when you would still know it with a probability "
      "of 90% (FSRS-6), sooner if it was hard. Progress is saved after every answer in "
      "$XDG_DATA_HOME/posenc/practice.json or ~/.local/share/posenc/practice.json.";
  verb.examples =
      "posenc practice\n"
      "posenc practice --path\n"
      "posenc practice --walkthrough sinusoidal-rows\n"
      "posenc practice --kind fill-ins --tag rope\n"
      "posenc practice --list\n"
      "posenc practice --kind fill-ins --seed 7 --count 3 --json";
  verb.command = program.add_subcommand(verb.name);
  auto flags = std::make_shared<PracticeFlags>();
  verb.command.add_choice("--kind", flags->kind, {"questions", "cards", "fill-ins"},
                          "questions, cards or fill-ins (default: all)");
  verb.command.add_option("--tag", flags->tag, "only items with this tag: rope, alibi, bugs, pe-value …")
      .type_name("TAG");
  constexpr std::int64_t kMostItems = 10000;
  verb.command.add_integer("--count", flags->count, {1, kMostItems}, "number of items");
  verb.command.add_integer("--seed", flags->seed, {.least = 0},
                           "the same seed asks the same items (default: a new one each time)");
  verb.command.add_option("--today", flags->today, "pretend that today is YYYY-MM-DD").type_name("DATE");
  verb.command.add_flag("--path", flags->path,
                        "follow the path through all topics: goals, stories to read, progress");
  verb.command
      .add_option("--walkthrough", flags->walkthrough, "fill in a longer exercise step by step: sinusoidal-rows")
      .type_name("NAME");
  verb.command.add_flag("--no-progress", flags->no_progress, "neither read nor save progress");
  verb.command.add_flag("--list", flags->list, "list all items and when they are due");
  verb.command.add_flag("--json", flags->json,
                        "print what a beginner would be asked, with answers; with --list, everything");
  verb.run = [flags] { return run(*flags); };
  return verb;
}

}  // namespace posenc::cli
