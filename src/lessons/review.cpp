#include "posenc/review.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "posenc/error.h"

namespace posenc {

ReviewState reviewed(const ReviewState& before, int grade, std::int64_t day) {
  if (grade < 0 || grade > 5) raise(fmt::format("review: a grade is 0 to 5 but is {}", grade));
  ReviewState after = before;
  if (grade < 3) {
    after.repetitions = 0;
    after.interval = 1;
    ++after.lapses;
  } else {
    ++after.repetitions;
    if (after.repetitions == 1) {
      after.interval = 1;
    } else if (after.repetitions == 2) {
      after.interval = 6;
    } else {
      const double longer = std::ceil(static_cast<double>(before.interval) * before.easiness);
      after.interval = static_cast<std::int64_t>(std::min(longer, static_cast<double>(kLongestInterval)));
    }
    const int short_of_five = 5 - grade;
    after.easiness = std::max(kLeastEasiness, before.easiness + 0.1 - short_of_five * (0.08 + short_of_five * 0.02));
  }
  after.due = day + after.interval;
  return after;
}

void record(PracticeProgress& progress, const Review& review) {
  progress.log.push_back(review);
  if (progress.log.size() > kLongestLog) {
    progress.log.erase(progress.log.begin(), progress.log.end() - static_cast<std::ptrdiff_t>(kLongestLog));
  }
  if (review.again) return;
  ReviewState& state = progress.items[review.id];
  state = reviewed(state, review.grade, review.day);
}

std::vector<std::string> in_order_of_need(const PracticeProgress& progress, const std::vector<std::string>& ids,
                                          std::int64_t day, bool later) {
  std::vector<std::pair<std::int64_t, std::string>> known;
  std::vector<std::string> fresh;
  for (const std::string& id : ids) {
    if (const auto found = progress.items.find(id); found != progress.items.end()) {
      known.emplace_back(found->second.due, id);
    } else {
      fresh.push_back(id);
    }
  }
  std::stable_sort(known.begin(), known.end(),
                   [](const auto& one, const auto& other) { return one.first < other.first; });
  std::vector<std::string> order;
  for (const auto& [due, id] : known) {
    if (due <= day) order.push_back(id);
  }
  order.insert(order.end(), fresh.begin(), fresh.end());
  for (const auto& [due, id] : known) {
    if (later && due > day) order.push_back(id);
  }
  return order;
}

}  // namespace posenc
