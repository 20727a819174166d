#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace posenc {

/// How well one item is known, by SM-2: Wozniak, 1990, "Optimization of repetition spacing in the practice of
/// learning". Days are counted from 1970-01-01.
struct ReviewState {
  int repetitions = 0;        ///< successful reviews in a row
  double easiness = 2.5;      ///< the factor by which intervals grow; at least 1.3
  std::int64_t interval = 0;  ///< days
  std::int64_t due = 0;       ///< day
  int lapses = 0;             ///< how often it was forgotten
  bool operator==(const ReviewState&) const = default;
};

inline constexpr double kLeastEasiness = 1.3;
inline constexpr std::int64_t kLongestInterval = 36500;

/// The state after a review with this grade (0 to 5; below 3 means forgotten) on this day:
///   grade ≥ 3:  1 day, then 6 days, then interval · easiness, rounded up;
///               easiness + 0.1 − (5 − grade)(0.08 + (5 − grade) · 0.02)
///   grade < 3:  starts again at 1 day; easiness is unchanged
/// Range: grades outside 0 to 5 are an Error.
ReviewState reviewed(const ReviewState& before, int grade, std::int64_t day);

/// In SM-2, an item graded below 4 is asked again on the same day, until it is graded 4.
inline bool asks_again_today(int grade) { return grade < 4; }

/// One answer. The log of answers is kept, so that another scheduler can be fitted later.
struct Review {
  std::string id;
  std::int64_t at = 0;   ///< seconds since 1970-01-01 UTC
  std::int64_t day = 0;  ///< the learner's own day
  int grade = 0;
  bool again = false;             ///< asked again on the same day: does not change the state
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

/// {"format": "posenc-practice", "version": 1, "items": {…}, "log": […]}
std::string to_json(const PracticeProgress& progress);

/// Whether the text is progress in a newer format than this library knows, and so not damaged.
bool is_newer_progress(std::string_view json);
/// Throws: Error "line L, column C: …" or "items: …" for text that to_json does not write.
PracticeProgress progress_from_json(std::string_view json);

}  // namespace posenc
