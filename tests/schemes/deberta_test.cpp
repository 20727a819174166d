#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "posenc/posenc.h"
#include "schemes/golden_array.h"

namespace posenc::deberta_test {
namespace {

using tests::entry_at;
using tests::golden_values;
using tests::refusal;

TEST(Deberta, BucketsAreTransformers) {
  const auto want = golden_values<float>("deberta-logbucket-bucket");
  const DistanceMap map = rows_of({});
  for (std::int64_t apart = -600; apart <= 600; ++apart) {  // query − key
    const auto bucket = static_cast<std::int64_t>(want[static_cast<std::size_t>(apart + 600)]);
    ASSERT_EQ(entry_at(map, -apart), std::clamp<std::int64_t>(bucket + 256, 0, 511)) << apart;
  }
}

TEST(Deberta, WithoutBucketsDistancesAreClipped) {
  const DistanceMap map = rows_of({.buckets = 0, .max_distance = 5});
  for (std::int64_t apart = -9; apart <= 9; ++apart) {
    EXPECT_EQ(entry_at(map, -apart), std::clamp<std::int64_t>(apart + 5, 0, 9)) << apart;
  }
}

TEST(Deberta, HasOneTermForEachTable) {
  const std::vector<float> table(3 * 16 * 2);
  const ConstTensorView weights = view(table.data(), {3, 16, 2});
  const Deberta both{.buckets = 8, .max_distance = 20};
  Deberta one = both;
  one.position_to_content = false;
  const Bias two = prepare(both, {.weights = weights, .key_weights = weights});
  EXPECT_EQ(two.heads, 3);
  EXPECT_DOUBLE_EQ(std::get<DistanceVectors>(two.source).softmax_factor, 1 / std::sqrt(3.0));
  EXPECT_EQ(std::get<DistanceVectors>(two.source).for_keys.axes.front(), rows_of(both));
  const Bias single = prepare(one, {.weights = weights});
  EXPECT_DOUBLE_EQ(std::get<DistanceVectors>(single.source).softmax_factor, 1 / std::sqrt(2.0));
  EXPECT_EQ(std::get<DistanceVectors>(single.source).for_keys.table.data, nullptr);
}

TEST(Deberta, SaysWhatIsWrong) {
  const std::vector<float> table(2 * 16 * 2);
  const auto message = [&](const Deberta& scheme, const Extents& queries, const Extents& keys) {
    return refusal(
        [&] { prepare(scheme, {.weights = view(table.data(), queries), .key_weights = view(table.data(), keys)}); });
  };
  const Extents good = {2, 16, 2};
  EXPECT_EQ(message({.buckets = 3, .max_distance = 20}, good, good),
            "deberta: buckets must be 0 or between 4 and 8192 but is 3");
  EXPECT_EQ(message({.buckets = 8, .max_distance = 5}, good, good),
            "deberta: max_distance must be above 5, half of the buckets and one, but is 5");
  EXPECT_EQ(message({.buckets = 0, .max_distance = 0}, good, good),
            "deberta: max_distance must be between 1 and 1048576 but is 0");
  EXPECT_EQ(message({.buckets = 8, .max_distance = 20}, {2, 15, 2}, good),
            "deberta: the table for queries must be [16, features] or [heads, 16, features] but is [2, 15, 2]");
  EXPECT_EQ(message({.buckets = 8, .max_distance = 20}, good, {1, 16, 2}),
            "deberta: the two tables must have the same number of heads but have 2 and 1");
  EXPECT_EQ(refusal([] { prepare(Deberta{}); }),
            "deberta: the trained table for queries of 512 rows is missing: pass it as weights");
  EXPECT_EQ(refusal([] { prepare(Deberta{.content_to_position = false, .position_to_content = false}); }),
            "deberta: at least one of content_to_position and position_to_content must be true");
}

}  // namespace
}  // namespace posenc::deberta_test
