#include "posenc/review.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "posenc/error.h"

namespace posenc {

namespace {

// FSRS-6: open-spaced-repetition/fsrs-rs, src/inference_v6.rs, FSRS6_DEFAULT_PARAMETERS; the formulas with the same
// symbols in the wiki of open-spaced-repetition/fsrs4anki, "The Algorithm".
constexpr std::array<double, 21> kW = {0.212,  1.2931, 2.3065, 8.2956, 6.4133, 0.8334, 3.0194,
                                       0.001,  1.8722, 0.1666, 0.796,  1.4835, 0.0614, 0.2629,
                                       1.6483, 0.6014, 1.8729, 0.5425, 0.0912, 0.0658, 0.1542};
constexpr double kDueRecall = 0.9;

double initial_difficulty(int grade) { return kW[4] - std::exp(kW[5] * (grade - 1)) + 1; }

double in_range(double difficulty) { return std::clamp(difficulty, 1.0, 10.0); }

double next_difficulty(double difficulty, int grade) {
  const double damped = difficulty - kW[6] * (grade - kGood) * (10 - difficulty) / 9;
  return in_range(kW[7] * initial_difficulty(kEasy) + (1 - kW[7]) * damped);
}

double same_day_stability(double stability, int grade) {
  const double factor = std::exp(kW[17] * (grade - kGood + kW[18])) * std::pow(stability, -kW[19]);
  return stability * (grade >= kGood ? std::max(factor, 1.0) : factor);
}

double forgotten_stability(const ReviewState& state, double recall) {
  const double lost = kW[11] * std::pow(state.difficulty, -kW[12]) * (std::pow(state.stability + 1, kW[13]) - 1) *
                      std::exp(kW[14] * (1 - recall));
  return std::min(lost, state.stability / std::exp(kW[17] * kW[18]));
}

double recalled_stability(const ReviewState& state, double recall, int grade) {
  const double bonus = grade == kHard ? kW[15] : grade == kEasy ? kW[16] : 1.0;
  const double growth = std::exp(kW[8]) * (11 - state.difficulty) * std::pow(state.stability, -kW[9]) *
                        std::expm1(kW[10] * (1 - recall)) * bonus;
  return state.stability * (1 + growth);
}

double next_stability(const ReviewState& state, int grade, std::int64_t days) {
  if (days == 0) return same_day_stability(state.stability, grade);
  const double recall = recall_probability(state, days);
  return grade == kAgain ? forgotten_stability(state, recall) : recalled_stability(state, recall, grade);
}

}  // namespace

double recall_probability(const ReviewState& state, std::int64_t days) {
  const double decay = -kW[20];
  const double factor = std::pow(kDueRecall, 1 / decay) - 1;
  return std::pow(1 + factor * static_cast<double>(days) / state.stability, decay);
}

ReviewState reviewed(const ReviewState& before, int grade, std::int64_t day) {
  if (grade < kAgain || grade > kEasy) raise(fmt::format("review: a grade is 1 to 4 but is {}", grade));
  const bool is_first = before.stability == 0.0;
  const std::int64_t days = is_first ? 0 : std::max<std::int64_t>(day - before.last, 0);
  ReviewState after = before;
  const double stability = is_first ? kW[grade - 1] : next_stability(before, grade, days);
  after.stability = std::clamp(stability, kLeastStability, static_cast<double>(kLongestInterval));
  after.difficulty = is_first ? in_range(initial_difficulty(grade)) : next_difficulty(before.difficulty, grade);
  // by definition, recall falls to 0.9 after `stability` days
  after.last = day;
  after.due = day + std::max<std::int64_t>(std::llrint(after.stability), 1);
  // what is asked again on the same day was not known at once
  const bool is_new_day = is_first || days > 0;
  if (grade == kAgain) after.repetitions = 0;
  if (is_new_day && grade == kAgain) ++after.lapses;
  if (is_new_day && grade != kAgain) ++after.repetitions;
  return after;
}

void record(PracticeProgress& progress, const Review& review) {
  progress.log.push_back(review);
  if (progress.log.size() > kLongestLog) {
    progress.log.erase(progress.log.begin(), progress.log.end() - static_cast<std::ptrdiff_t>(kLongestLog));
  }
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
