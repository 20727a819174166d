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
  int repetitions = 0;        ///< in a row that were not forgotten
  double easiness = 2.5;      ///< at least 1.3: by how much intervals grow
  std::int64_t interval = 0;  ///< days
  std::int64_t due = 0;       ///< day
  int lapses = 0;             ///< how often it was forgotten
  bool operator==(const ReviewState&) const = default;
};

inline constexpr double kLeastEasiness = 1.3;
inline constexpr std::int64_t kLongestInterval = 36500;

/// The state after a review of this grade (0 to 5, below 3 is forgotten) on this day:
///   grade ≥ 3:  1 day, then 6 days, then interval · easiness, rounded up;
///               easiness + 0.1 − (5 − grade)(0.08 + (5 − grade) · 0.02)
///   grade < 3:  from the beginning, 1 day; easiness stays
/// Range: grades outside 0 to 5 are an Error.
ReviewState reviewed(const ReviewState& before, int grade, std::int64_t day);

/// SM-2 has what scored below 4 asked again on the same day, until it scores 4.
inline bool asks_again_today(int grade) { return grade < 4; }

/// One answer, kept for ever: from these another scheduler can be fitted later.
struct Review {
  std::string id;
  std::int64_t at = 0;   ///< seconds since 1970-01-01 UTC
  std::int64_t day = 0;  ///< the learner's own day
  int grade = 0;
  bool again = false;             ///< asked again on the same day: does not count for the state
  std::int64_t milliseconds = 0;  ///< from question to answer
  bool operator==(const Review&) const = default;
};

/// What a learner has done so far.
struct PracticeProgress {
  std::map<std::string, ReviewState, std::less<>> items = {};
  std::vector<Review> log = {};  ///< oldest first; at most kLongestLog, then the oldest go
  bool operator==(const PracticeProgress&) const = default;
};
inline constexpr std::size_t kLongestLog = 100'000;

void record(PracticeProgress& progress, const Review& review);

/// Of these ids, those that are due on this day (longest overdue first), then those never seen, in their order.
/// With `later`, then those due later, soonest first.
std::vector<std::string> in_order_of_need(const PracticeProgress& progress, const std::vector<std::string>& ids,
                                          std::int64_t day, bool later = false);

/// {"format": "posenc-practice", "version": 1, "items": {…}, "log": […]}
std::string to_json(const PracticeProgress& progress);

/// Whether the text is progress of a version that this library does not know; it is not damaged then.
bool is_newer_progress(std::string_view json);
/// Throws: Error "line L, column C: …" or "items: …" for text that is not what to_json writes.
PracticeProgress progress_from_json(std::string_view json);

}  // namespace posenc
