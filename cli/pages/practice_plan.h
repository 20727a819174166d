#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "posenc/exercise.h"
#include "posenc/json.h"
#include "posenc/question.h"
#include "posenc/review.h"
#include "posenc/walkthrough.h"

namespace posenc::cli {

/// An item to answer. Progress is stored under its id; for fill-ins that is the kind.
struct PracticeItem {
  std::variant<Question, Card, Exercise> what;
  bool again = false;  // asked again on the same day

  const std::string& id() const;
  std::string_view kind() const;  // "question", "card", "fill-in"
  std::string topic() const;
};

struct PracticeWish {
  std::string kind = {};                 // questions, cards, fill-ins; empty: all
  std::string tag = {};                  // a tag, topic, id or kind of exercise; empty: all
  std::vector<std::string> topics = {};  // only these; empty: all
  bool without_cards = false;
  std::uint64_t seed = 0;
  std::int64_t count = 10;
  std::int64_t day = 0;
};

/// Items that are due, then new ones, alternating between questions, cards and fill-ins. If these are too few, more
/// fill-ins, whose supply is unlimited.
/// Throws: Failure if nothing matches the wish.
std::vector<PracticeItem> practice_plan(const PracticeWish& wish, const PracticeProgress& progress);

/// The n-th fill-in after an item: the same kind with different numbers.
Exercise another_exercise(const Exercise& exercise, std::uint64_t n);

/// The order in which the choices are shown, as 0-based indices. It depends on the seed and the question.
std::vector<std::size_t> order_of_choices(const Question& question, std::uint64_t seed);
/// Shuffled again, with the correct answer in a different place, so that learners do not memorise the place.
std::vector<std::size_t> another_order_of_choices(const Question& question, std::uint64_t seed);

Json as_json(const PracticeItem& item, std::uint64_t seed);
Json walkthrough_json(const Walkthrough& walkthrough);
/// Throws: Failure for an unknown name.
Walkthrough walkthrough_named(std::string_view id);

/// A topic and the progress in it.
struct PathTopic {
  std::string name, title, goal;
  std::vector<std::string> after, stories;
  std::size_t met = 0, known = 0, all = 0;  // items: asked at least once, known at the last review, in total
};
/// All topics, in the order in which they are taught.
std::vector<PathTopic> practice_path(const PracticeProgress& progress);
/// The first topic with items that have not been asked yet, or the last topic.
std::size_t current_topic(const std::vector<PathTopic>& path);
std::string path_text(const std::vector<PathTopic>& path, std::size_t current);

/// All items: as text with due dates, or as JSON with all texts.
std::string practice_list(const PracticeWish& wish, const PracticeProgress& progress);
std::string practice_list_json();

}  // namespace posenc::cli
