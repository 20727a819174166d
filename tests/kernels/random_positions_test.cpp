// Randomised positions: a sorted sample without duplicates, every position equally likely.

#include <gtest/gtest.h>

#include <algorithm>

#include "posenc/positions.h"
#include "schemes/golden_array.h"

namespace posenc::random_positions_test {
namespace {

TEST(RandomisedPositions, AreSortedDifferentAndInRange) {
  for (const std::int64_t longest : {std::int64_t{40}, std::int64_t{500}, kPositionLimit}) {
    const std::vector<std::int64_t> ids = randomised_positions(40, longest, 3);
    ASSERT_EQ(ids.size(), 40u);
    EXPECT_TRUE(std::adjacent_find(ids.begin(), ids.end(), std::greater_equal<>()) == ids.end());
    EXPECT_GE(ids.front(), 0);
    EXPECT_LT(ids.back(), longest);
    EXPECT_EQ(ids, randomised_positions(40, longest, 3));
  }
  const std::vector<std::int64_t> all = randomised_positions(5, 5, 1);
  EXPECT_EQ(all, (std::vector<std::int64_t>{0, 1, 2, 3, 4}));
  EXPECT_NE(randomised_positions(40, 500, 3), randomised_positions(40, 500, 4));
  EXPECT_TRUE(randomised_positions(0, 0, 1).empty());
}

// 3 of 10, 20,000 times: each position is drawn 6000 times, give or take five standard deviations (65 each).
TEST(RandomisedPositions, EachIsEquallyLikely) {
  std::vector<int> drawn(10);
  for (std::uint64_t seed = 0; seed < 20000; ++seed) {
    for (const std::int64_t id : randomised_positions(3, 10, seed)) ++drawn[static_cast<std::size_t>(id)];
  }
  for (const int times : drawn) EXPECT_NEAR(times, 6000, 325);
}

TEST(RandomisedPositions, Refusals) {
  EXPECT_EQ(tests::refusal([] { randomised_positions(6, 5, 1); }),
            "randomised_positions: longest must be from count, 6, to 2^53 but is 5");
  EXPECT_NE(tests::refusal([] { randomised_positions(-1, 5, 1); }), "");
}

}  // namespace
}  // namespace posenc::random_positions_test
