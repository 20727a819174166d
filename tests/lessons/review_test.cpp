#include "posenc/review.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "posenc/error.h"

namespace posenc::review_test {
namespace {

TEST(Review, ThePublishedRules) {
  // I(1) = 1, I(2) = 6, I(n) = I(n−1) · EF rounded up; grade 4 leaves EF as it is
  ReviewState state;
  std::int64_t day = 1000;
  for (const int expected : {1, 6, 15, 38, 95, 238}) {
    state = reviewed(state, 4, day);
    EXPECT_EQ(state.interval, expected);
    EXPECT_EQ(state.due, day + expected);
    EXPECT_DOUBLE_EQ(state.easiness, 2.5);
    day = state.due;
  }
  EXPECT_EQ(state.repetitions, 6);
  EXPECT_EQ(state.lapses, 0);
}

TEST(Review, Easiness) {
  // EF' = EF − 0.8 + 0.28q − 0.02q², the same in the paper's other form
  for (int grade = 3; grade <= 5; ++grade) {
    const ReviewState state = reviewed({}, grade, 0);
    EXPECT_NEAR(state.easiness, 2.5 - 0.8 + 0.28 * grade - 0.02 * grade * grade, 1e-12) << grade;
  }
  ReviewState hard;
  for (int i = 0; i < 50; ++i) hard = reviewed(hard, 3, i);
  EXPECT_EQ(hard.easiness, 1.3);
}

TEST(Review, ForgottenStartsAgainWithTheSameEasiness) {
  ReviewState state;
  for (int i = 0; i < 4; ++i) state = reviewed(state, 5, i);
  const double easiness = state.easiness;
  EXPECT_GT(state.interval, 6);
  for (int grade = 0; grade < 3; ++grade) {
    const ReviewState after = reviewed(state, grade, 77);
    EXPECT_EQ(after.interval, 1);
    EXPECT_EQ(after.due, 78);
    EXPECT_EQ(after.repetitions, 0);
    EXPECT_EQ(after.lapses, 1);
    EXPECT_EQ(after.easiness, easiness);
    EXPECT_EQ(reviewed(reviewed(after, 4, 78), 4, 79).interval, 6);
  }
}

TEST(Review, IntervalsStayWithinACentury) {
  ReviewState state;
  for (int i = 0; i < 100; ++i) state = reviewed(state, 5, i);
  EXPECT_EQ(state.interval, kLongestInterval);
}

TEST(Review, GradesOutsideAreRefused) {
  EXPECT_THROW(reviewed({}, -1, 0), Error);
  EXPECT_THROW(reviewed({}, 6, 0), Error);
  EXPECT_TRUE(asks_again_today(3));
  EXPECT_FALSE(asks_again_today(4));
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

TEST(Progress, RepeatsOfTheSameDayAreLoggedOnly) {
  PracticeProgress progress;
  record(progress, {.id = "a", .at = 5, .day = 10, .grade = 1});
  const ReviewState once = progress.items["a"];
  record(progress, {.id = "a", .at = 6, .day = 10, .grade = 4, .again = true});
  EXPECT_EQ(progress.items["a"], once);
  EXPECT_EQ(progress.log.size(), 2U);
}

PracticeProgress some_progress() {
  PracticeProgress progress;
  record(progress, {.id = "order-why", .at = 1'700'000'000, .day = 19675, .grade = 4, .milliseconds = 1234});
  record(progress, {.id = "card-yarn", .at = 1'700'000'100, .day = 19675, .grade = 3});
  record(progress, {.id = "card-yarn", .at = 1'700'000'200, .day = 19675, .grade = 5, .again = true});
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
       {with("posenc-practice", "something"), with("\"version\":1", "\"version\":0"),
        with("\"version\":1", "\"version\":\"1\""), with("\"easiness\":2.5", "\"easiness\":-1"),
        with("\"easiness\":2.5", "\"easiness\":null"), with("\"interval\":1", "\"interval\":-5"),
        with("\"interval\":1", "\"interval\":1.5"), with("\"due\":", "\"dew\":"), with(",4,0,1234]", ",9,0,1234]"),
        with(",4,0,1234]", ",4,0]"), with("\"log\":[", "\"log\":[7,"), std::string("[]"), std::string("null"),
        std::string("{}"), std::string(1000, '['), std::string("\xff\xfe")}) {
    EXPECT_THROW(progress_from_json(text), Error) << text;
  }
}

TEST(Progress, ANewerVersionIsNotDamage) {
  EXPECT_FALSE(is_newer_progress(to_json(PracticeProgress{})));
  EXPECT_TRUE(is_newer_progress("{\"format\": \"posenc-practice\", \"version\": 2, \"anything\": ["));
  EXPECT_FALSE(is_newer_progress("{\"format\":\"another\",\"version\":2}"));
  EXPECT_FALSE(is_newer_progress(""));
  EXPECT_THROW(progress_from_json("{\"format\":\"posenc-practice\",\"version\":2}"), Error);
}

}  // namespace
}  // namespace posenc::review_test
