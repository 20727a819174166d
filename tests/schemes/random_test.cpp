#include "posenc/random.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <vector>

namespace posenc::random_test {
namespace {

TEST(Random, IsSplitMix64) {
  // the first numbers of the reference implementation (Vigna, splitmix64.c) from this seed
  Random random(1234567);
  for (const std::uint64_t expected : {6457827717110365317U, 3203168211198807973U, 9817491932198370423U,
                                       4593380528125082431U, 16408922859458223821U}) {
    EXPECT_EQ(random.next(), expected);
  }
}

TEST(Random, StaysInItsRange) {
  Random random(1);
  std::set<std::int64_t> seen;
  for (int i = 0; i < 1000; ++i) {
    const double uniform = random.uniform();
    EXPECT_TRUE(uniform >= -1 && uniform < 1);
    seen.insert(random.below(6));
  }
  EXPECT_EQ(seen, (std::set<std::int64_t>{0, 1, 2, 3, 4, 5}));
}

TEST(Random, ShufflesWithoutLoss) {
  std::vector<int> list(20);
  std::iota(list.begin(), list.end(), 0);
  const std::vector<int> sorted = list;
  Random(7).shuffle(list);
  EXPECT_NE(list, sorted);
  std::vector<int> again = sorted;
  Random(7).shuffle(again);
  EXPECT_EQ(again, list);
  std::sort(list.begin(), list.end());
  EXPECT_EQ(list, sorted);
}

}  // namespace
}  // namespace posenc::random_test
