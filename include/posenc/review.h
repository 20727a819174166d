#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace posenc {

/// How well one item is known, by FSRS-6 with its published default parameters: open-spaced-repetition, fsrs-rs, FSRS6_DEFAULT_PARAMETERS; the
/// model is of Ye et al., 2022, "A Stochastic Shortest Path Algorithm for Optimizing Spaced Repetition Scheduling". Days
/// are counted from 1970-01-01.
struct ReviewState {
  double stability = 0.0;   ///< days until the probability of recall falls to 0.9; 0: never reviewed
  double difficulty = 0.0;  ///< 1 (easy) to 10
  std::int64_t last = 0;    ///< day of the last review
  std::int64_t due = 0;     ///< day
  int repetitions = 0;      ///< days in a row on which it was known at once
  int lapses = 0;           ///< days on which it was forgotten
  bool operator==(const ReviewState&) const = default;
};

inline constexpr double kLeastStability = 0.001;
inline constexpr std::int64_t kLongestInterval = 36500;

/// The grades, as a learner types them.
inline constexpr int kAgain = 1, kHard = 2, kGood = 3, kEasy = 4;

/// The probability of recall after this many days: (1 + (0.9^(−1/w) − 1) · days / stability)^(−w), w = 0.1542.
/// Range: stability ≥ kLeastStability, days ≥ 0.
double recall_probability(const ReviewState& state, std::int64_t days);

/// The state after a review with this grade on this day. The item is due when the probability of recall has fallen to
/// 0.9, in whole days and at least one. Reviews on the day of the last one change the state by FSRS's rule for them.
/// Range: grades other than kAgain to kEasy are an Error.
ReviewState reviewed(const ReviewState& before, int grade, std::int64_t day);

/// What was forgotten or hard is asked again on the same day.
inline bool asks_again_today(int grade) { return grade < kGood; }

/// One answer. The log of answers is kept, so that another scheduler can be fitted later.
struct Review {
  std::string id;
  std::int64_t at = 0;            ///< seconds since 1970-01-01 UTC
  std::int64_t day = 0;           ///< the learner's own day
  int grade = 0;                  ///< kAgain to kEasy
  bool again = false;             ///< asked again on the same day
  std::int64_t milliseconds = 0;  ///< from question to answer
  bool operator==(const Review&) const = default;
};

/// A learner's progress.
struct PracticeProgress {
  std::map<std::string, ReviewState, std::less<>> items = {};
  std::vector<Review> log = {};  ///< oldest first; beyond kLongestLog entries, the oldest are dropped
  bool operator==(const PracticeProgress&) const = default;
};
inline constexpr std::size_t kLongestLog = 100'000;

void record(PracticeProgress& progress, const Review& review);

/// Of these ids, those that are due on this day (longest overdue first), then those never seen, in the given order.
/// With `later`, followed by those due later, soonest first.
std::vector<std::string> in_order_of_need(const PracticeProgress& progress, const std::vector<std::string>& ids,
                                          std::int64_t day, bool later = false);

/// {"format": "posenc-practice", "version": 2, "items": {…}, "log": […]}
std::string to_json(const PracticeProgress& progress);

/// Whether the text is progress in a newer format than this library knows, and so not damaged.
bool is_newer_progress(std::string_view json);
/// Version 1, whose grades and intervals were SM-2's, is read by scheduling its log anew.
/// Throws: Error "line L, column C: …" or "items: …" for text that to_json does not write.
PracticeProgress progress_from_json(std::string_view json);

}  // namespace posenc
