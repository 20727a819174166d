#include "posenc/review.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "posenc/error.h"

namespace posenc::review_test {
namespace {

TEST(Review, FirstReviewsAsPublished) {
  // the states after a first review in the tests of ts-fsrs 5 and of fsrs-rs
  const double stability[] = {0.212, 1.2931, 2.3065, 8.2956};
  const double difficulty[] = {6.4133, 5.11217071, 2.11810397, 1.0};
  const std::int64_t interval[] = {1, 1, 2, 8};
  for (int grade = kAgain; grade <= kEasy; ++grade) {
    const auto at = static_cast<std::size_t>(grade - 1);
    const ReviewState state = reviewed({}, grade, 1000);
    EXPECT_DOUBLE_EQ(state.stability, stability[at]) << grade;
    EXPECT_NEAR(state.difficulty, difficulty[at], 1e-8) << grade;
    EXPECT_EQ(state.last, 1000);
    EXPECT_EQ(state.due, 1000 + interval[at]) << grade;
  }
}

TEST(Review, MemoryStatesAsPublished) {
  // the tests of fsrs-rs and ts-fsrs: again, then five times good, after 0, 0, 1, 3, 8 and 21 days
  ReviewState state;
  std::int64_t day = 0;
  const std::pair<int, std::int64_t> reviews[] = {{1, 0}, {3, 0}, {3, 1}, {3, 3}, {3, 8}, {3, 21}};
  for (const auto& [grade, days] : reviews) state = reviewed(state, grade, day += days);
  EXPECT_NEAR(state.stability, 53.62691, 1e-5);
  EXPECT_NEAR(state.difficulty, 6.3574867, 1e-6);
}

TEST(Review, IntervalsAsPublished) {
  // the test of ts-fsrs: six times good, twice again, five times good, each when due; what is learned first or again is
  // reviewed twice on its day there, and listed with an interval of 0
  const int grades[] = {3, 3, 3, 3, 3, 3, 1, 1, 3, 3, 3, 3, 3};
  const std::int64_t intervals[] = {0, 2, 11, 46, 163, 498, 0, 0, 2, 4, 7, 12, 21};
  ReviewState state;
  std::int64_t day = 100;
  for (std::size_t i = 0; i < std::size(grades); ++i) {
    state = reviewed(state, grades[i], day);
    if (intervals[i] == 0) continue;
    EXPECT_EQ(state.due - day, intervals[i]) << i;
    day = state.due;
  }
}

TEST(Review, RecallFallsToNineTenthsAtTheStability) {
  for (const double stability : {1.0, 7.0, 365.0}) {
    const ReviewState state{.stability = stability, .difficulty = 5.0};
    EXPECT_NEAR(recall_probability(state, static_cast<std::int64_t>(stability)), 0.9, 1e-15);
    EXPECT_EQ(recall_probability(state, 0), 1.0);
    EXPECT_LT(recall_probability(state, 1000), 0.9);
  }
}

TEST(Review, HardGrowsLessAndEasyMore) {
  const ReviewState state = reviewed(reviewed({}, kGood, 0), kGood, 2);
  const auto days = [&](int grade) { return reviewed(state, grade, 12).due - 12; };
  EXPECT_LT(days(kAgain), days(kHard));
  EXPECT_LT(days(kHard), days(kGood));
  EXPECT_LT(days(kGood), days(kEasy));
  EXPECT_GT(reviewed(state, kHard, 12).difficulty, state.difficulty);
  EXPECT_LT(reviewed(state, kEasy, 12).difficulty, state.difficulty);
}

TEST(Review, DaysAreCountedOnce) {
  ReviewState state = reviewed({}, kGood, 0);
  EXPECT_EQ(state.repetitions, 1);
  state = reviewed(state, kGood, 0);
  EXPECT_EQ(state.repetitions, 1);
  state = reviewed(state, kAgain, 5);
  state = reviewed(state, kAgain, 5);
  EXPECT_EQ(state.lapses, 1);
  state = reviewed(state, kGood, 5);
  EXPECT_EQ(state.repetitions, 0) << "on this day it was not known at once";
  EXPECT_EQ(reviewed(state, kHard, 6).repetitions, 1);
  EXPECT_EQ(reviewed(state, kGood, 3), reviewed({state}, kGood, 3)) << "a clock that was set back is no interval";
  EXPECT_EQ(reviewed(state, kGood, 3).stability, reviewed(state, kGood, 5).stability);
}

TEST(Review, IntervalsStayWithinACentury) {
  ReviewState state;
  for (int i = 0; i < 100; ++i) state = reviewed(state, kEasy, state.due);
  EXPECT_EQ(state.due - state.last, kLongestInterval);
  for (int i = 0; i < 1000; ++i) state = reviewed(state, kAgain, state.last);
  EXPECT_GE(state.stability, kLeastStability);
  EXPECT_EQ(state.due - state.last, 1);
}

TEST(Review, GradesOutsideAreRefused) {
  EXPECT_THROW(reviewed({}, 0, 0), Error);
  EXPECT_THROW(reviewed({}, 5, 0), Error);
  EXPECT_TRUE(asks_again_today(kHard));
  EXPECT_FALSE(asks_again_today(kGood));
}

TEST(Progress, OrderOfNeed) {
  PracticeProgress progress;
  progress.items["overdue"].due = 90;
  progress.items["today"].due = 100;
  progress.items["later"].due = 103;
  progress.items["soon"].due = 101;
  const std::vector<std::string> ids = {"later", "new-1", "today", "soon", "overdue", "new-2"};
  using List = std::vector<std::string>;
  EXPECT_EQ(in_order_of_need(progress, ids, 100), (List{"overdue", "today", "new-1", "new-2"}));
  EXPECT_EQ(in_order_of_need(progress, ids, 100, true),
            (List{"overdue", "today", "new-1", "new-2", "soon", "later"}));
}

TEST(Progress, RepeatsOfTheSameDayCount) {
  PracticeProgress progress;
  record(progress, {.id = "a", .at = 5, .day = 10, .grade = kAgain});
  const ReviewState once = progress.items["a"];
  record(progress, {.id = "a", .at = 6, .day = 10, .grade = kGood, .again = true});
  EXPECT_EQ(progress.items["a"], reviewed(once, kGood, 10));
  EXPECT_GT(progress.items["a"].stability, once.stability);
  EXPECT_EQ(progress.log.size(), 2U);
}

PracticeProgress some_progress() {
  PracticeProgress progress;
  record(progress, {.id = "order-why", .at = 1'700'000'000, .day = 19675, .grade = 4, .milliseconds = 1234});
  record(progress, {.id = "card-yarn", .at = 1'700'000'100, .day = 19675, .grade = 3});
  record(progress, {.id = "card-yarn", .at = 1'700'000'200, .day = 19675, .grade = 2, .again = true});
  record(progress, {.id = "pe-value", .at = 1'700'100'200, .day = 19676, .grade = 1});
  return progress;
}

TEST(Progress, ReadsWhatItWrote) {
  const PracticeProgress progress = some_progress();
  EXPECT_EQ(progress_from_json(to_json(progress)), progress);
  EXPECT_EQ(progress_from_json(to_json(PracticeProgress{})), PracticeProgress{});
}

TEST(Progress, TheLogIsBounded) {
  PracticeProgress progress;
  progress.log.resize(kLongestLog);
  record(progress, {.id = "last", .grade = 4});
  EXPECT_EQ(progress.log.size(), kLongestLog);
  EXPECT_EQ(progress.log.back().id, "last");
}

TEST(Progress, DamageIsNoticed) {
  const std::string good = to_json(some_progress());
  for (std::size_t length = 0; length + 2 < good.size(); ++length) {
    EXPECT_THROW(progress_from_json(good.substr(0, length)), Error) << length;
  }
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    text.replace(text.find(from), from.size(), to);
    return text;
  };
  for (const std::string& text :
       {with("posenc-practice", "something"), with("\"version\":2", "\"version\":0"),
        with("\"version\":2", "\"version\":\"2\""), with("\"stability\":", "\"stability\":-"),
        with("\"stability\":", "\"stability\":null,\"was\":"), with("\"difficulty\":", "\"difficulty\":11,\"was\":"),
        with("\"difficulty\":", "\"difficulty\":0.5,\"was\":"), with("\"last\":", "\"last\":1.5,\"was\":"),
        with("\"due\":", "\"dew\":"), with(",4,0,1234]", ",9,0,1234]"), with(",4,0,1234]", ",0,0,1234]"),
        with(",4,0,1234]", ",4,0]"), with("\"log\":[", "\"log\":[7,"), std::string("[]"), std::string("null"),
        std::string("{}"), std::string(1000, '['), std::string("\xff\xfe")}) {
    EXPECT_THROW(progress_from_json(text), Error) << text;
  }
}

TEST(Progress, TheFirstVersionIsScheduledAnew) {
  // SM-2's grades: below 3 forgotten, 3 hard, 4 good, 5 easy
  const PracticeProgress progress = progress_from_json(
      R"({"format":"posenc-practice","version":1,"items":{"a":{"repetitions":1,"easiness":2.5,"interval":6,"due":106,)"
      R"("lapses":0}},"log":[[0,99,"a",1,0,5],[1,99,"a",4,1,5],[2,100,"a",3,0,5],[3,106,"a",5,0,7]]})");
  ASSERT_EQ(progress.log.size(), 4U);
  EXPECT_EQ(progress.log[2].grade, kHard);
  ReviewState expected;
  const std::pair<int, std::int64_t> reviews[] = {{kAgain, 99}, {kGood, 99}, {kHard, 100}, {kEasy, 106}};
  for (const auto& [grade, day] : reviews) expected = reviewed(expected, grade, day);
  EXPECT_EQ(progress.items.at("a"), expected);
  EXPECT_NE(to_json(progress).find("\"version\":2"), std::string::npos);
}

TEST(Progress, ANewerVersionIsNotDamage) {
  EXPECT_FALSE(is_newer_progress(to_json(PracticeProgress{})));
  EXPECT_TRUE(is_newer_progress("{\"format\": \"posenc-practice\", \"version\": 3, \"anything\": ["));
  EXPECT_FALSE(is_newer_progress("{\"format\":\"another\",\"version\":3}"));
  EXPECT_FALSE(is_newer_progress(""));
  EXPECT_THROW(progress_from_json("{\"format\":\"posenc-practice\",\"version\":3}"), Error);
}

}  // namespace
}  // namespace posenc::review_test
