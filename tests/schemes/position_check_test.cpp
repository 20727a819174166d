#include "posenc/position_check.h"

#include <gtest/gtest.h>

#include <vector>

#include "posenc/error.h"

namespace posenc::position_check_test {
namespace {

using Ids = std::vector<std::int64_t>;

TEST(PositionCheck, LeftPadding) {
  const Ids mask = {0, 0, 1, 1, 1, 1, 1, 1};
  const MaskOptions two{.batch = 2};
  const PositionCheck right = check_positions(Ids{7, 7, 0, 1, 0, 1, 2, 3}, mask, two);
  EXPECT_TRUE(right.agrees());
  EXPECT_EQ(right.tokens, 6);
  EXPECT_EQ(right.untested, "");
  const PositionCheck counted = check_positions(Ids{0, 1, 2, 3, 0, 1, 2, 3}, mask, two);
  EXPECT_FALSE(counted.agrees());
  EXPECT_EQ(counted.differing, 2);
  EXPECT_EQ(counted.first->row, 0);
  EXPECT_EQ(counted.first->token, 2);
  EXPECT_EQ(counted.first->expected, 0);
  EXPECT_EQ(counted.first->got, 2);
  EXPECT_EQ(counted.cause, "padding was counted: the ids are those of columns, not of tokens");
  EXPECT_EQ(check_positions(Ids{1, 1, 1, 2, 1, 2, 3, 4}, mask, two).cause,
            "every token is at 1 position past the expected one");
  EXPECT_EQ(check_positions(Ids{1, 1, 0, 1, 0, 1, 2, 4}, mask, two).cause, "");
}

// Padding after the tokens changes nothing, which the check says.
TEST(PositionCheck, WhatTheInputsCannotTell) {
  const PositionCheck after = check_positions(Ids{0, 1, 2, 9}, Ids{1, 1, 1, 0});
  EXPECT_TRUE(after.agrees());
  EXPECT_NE(after.untested, "");
  EXPECT_FALSE(check_positions(Ids{5, 5}, Ids{0, 0}).agrees());
  // a row that ends with padding is not in front of the next one
  EXPECT_NE(check_positions(Ids{0, 1, 0, 1}, Ids{1, 0, 1, 1}, {.batch = 2}).untested, "");
  EXPECT_NE(check_packed_positions(Ids{0, 1, 2}, Ids{0, 3}).untested, "");
}

TEST(PositionCheck, Roberta) {
  const MaskOptions roberta{.rule = MaskRule::kRoberta};
  EXPECT_TRUE(check_positions(Ids{1, 2, 3}, Ids{0, 1, 1}, roberta).agrees());
  EXPECT_EQ(check_positions(Ids{2, 3, 4}, Ids{0, 1, 1}, roberta).cause,
            "padding was counted: the ids are those of columns, not of tokens");
  EXPECT_EQ(check_positions(Ids{0, 1, 2}, Ids{0, 1, 1}, roberta).cause,
            "padding was counted, and the first position is 0 instead of 2");
}

TEST(PositionCheck, PackedSequences) {
  const Ids boundaries = {0, 3, 5};
  EXPECT_TRUE(check_packed_positions(Ids{0, 1, 2, 0, 1}, boundaries).agrees());
  const PositionCheck joined = check_packed_positions(Ids{0, 1, 2, 3, 4}, boundaries);
  EXPECT_EQ(joined.cause, "positions do not restart: the sequences were not told apart");
  EXPECT_EQ(joined.first->token, 3);
  EXPECT_EQ(check_packed_positions(Ids{0, 1, 0, 1, 2}, boundaries).cause,
            "positions restart at token 2, where no sequence starts");
  EXPECT_EQ(check_packed_positions(Ids{0, 1, 2, 3, 0}, boundaries).cause,
            "positions do not restart at token 3, where a sequence starts");
  EXPECT_EQ(check_packed_positions(Ids{2, 3, 4, 2, 3}, boundaries).cause,
            "every token is at 2 positions past the expected one");
}

TEST(PositionCheck, Rejects) {
  EXPECT_THROW(check_positions(Ids{0}, Ids{1, 1}), Error);
  EXPECT_THROW(check_packed_positions(Ids{0, 1}, Ids{0, 1}), Error);
  EXPECT_THROW(check_packed_positions(Ids{0, 1}, Ids{1, 2}), Error);
  EXPECT_THROW(check_packed_positions(Ids{0, 1}, Ids{0, 2, 1, 2}), Error);
  EXPECT_THROW(check_packed_positions(Ids{0}, Ids{}), Error);
}

}  // namespace
}  // namespace posenc::position_check_test
