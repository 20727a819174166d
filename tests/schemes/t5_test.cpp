#include <gtest/gtest.h>

#include <cstring>

#include "backends.h"
#include "numerics/fixed.h"
#include "posenc/posenc.h"
#include "schemes/golden_array.h"
#include "schemes/log_buckets.h"

namespace posenc::t5_test {
namespace {

using tests::entry_at;
using tests::golden_values;
using tests::refusal;

TEST(T5, BucketsAreTransformers) {
  for (const bool bidirectional : {true, false}) {
    const auto want = golden_values<std::int64_t>(bidirectional ? "t5-bucket-bidirectional" : "t5-bucket-causal");
    const DistanceMap map = buckets_of({.bidirectional = bidirectional});
    for (std::int64_t distance = -600; distance <= 600; ++distance) {
      ASSERT_EQ(entry_at(map, distance), want[static_cast<std::size_t>(distance + 600)]) << distance;
    }
  }
}

TEST(T5, BiasIsTransformersToTheLastBit) {
  for (const bool bidirectional : {true, false}) {
    const std::string name = bidirectional ? "t5-bias-bidirectional" : "t5-bias-causal";
    const auto table = golden_values<float>(name + "-table"), want = golden_values<float>(name + "-bias");
    const Bias form =
        prepare(T5{.heads = 4, .bidirectional = bidirectional}, {.weights = view(table.data(), {32, 4})});
    tests::for_each_engine([&] {
      std::vector<float> out(want.size());
      bias(view(out.data(), {1, 4, 40, 300}), {}, {}, form);
      EXPECT_EQ(std::memcmp(out.data(), want.data(), 4 * out.size()), 0) << name;
    });
  }
}

// The definition, r by r, in whole numbers: bucket E + j and up is where r^(B−E) · E^j ≥ max_distance^j · E^(B−E).
TEST(T5, EveryBoundIsTheExactOne) {
  using Whole = numerics::uint128;
  const auto power = [](std::int64_t base, std::int64_t exponent) {
    Whole result = 1;
    for (std::int64_t i = 0; i < exponent; ++i) result *= static_cast<Whole>(base);
    return result;
  };
  for (const std::int64_t count : {2, 3, 4, 5, 8, 12}) {
    for (const std::int64_t max_distance : {7, 16, 32, 100, 128}) {
      const std::int64_t exact = count / 2, steps = count - exact;
      if (max_distance <= exact) continue;
      const DistanceMap map = buckets_of({.buckets = count, .max_distance = max_distance, .bidirectional = false});
      for (std::int64_t r = 0; r <= max_distance + 3; ++r) {
        std::int64_t want = r;
        if (r >= exact) {
          for (want = exact; want + 1 < count; ++want) {
            const std::int64_t j = want + 1 - exact;
            if (power(r, steps) * power(exact, j) < power(max_distance, j) * power(exact, steps)) break;
          }
        }
        ASSERT_EQ(entry_at(map, -r), want) << count << ' ' << max_distance << ' ' << r;
        ASSERT_EQ(entry_at(map, r + 1), 0);
      }
    }
  }
}

TEST(T5, BoundsOnWholeNumbersAreSeen) {
  for (const std::int64_t step : {0, 2, 4, 6, 8}) {
    const schemes::LogStep bound = schemes::log_step(8, 128, step, 8);
    EXPECT_TRUE(bound.exact);
    EXPECT_EQ(bound.floor, std::int64_t{8} << step / 2);
  }
  EXPECT_FALSE(schemes::log_step(8, 128, 1, 8).exact);
  EXPECT_EQ(schemes::log_step(8, 128, 1, 8).floor, 11);
  EXPECT_TRUE(schemes::log_step(1, 1 << 20, 1000, 2000).exact);
  EXPECT_EQ(schemes::log_step(1, 1 << 20, 1000, 2000).floor, 1024);
}

TEST(T5, PastMaxDistanceNothingChanges) {
  const DistanceMap map = buckets_of({});
  EXPECT_LE(map.entries.size(), 2 * 128 + 1u);
  EXPECT_TRUE(map.open);
  EXPECT_EQ(entry_at(map, -1'000'000), 15);
  EXPECT_EQ(entry_at(map, 1'000'000), 31);
}

TEST(T5, SaysWhatIsWrong) {
  const float table[64] = {};
  const auto message = [&](const T5& scheme, const Extents& shape) {
    return refusal([&] { prepare(scheme, {.weights = view(table, shape)}); });
  };
  EXPECT_EQ(message({.heads = 0}, {32, 0}), "t5: heads must be between 1 and 65536 but is 0");
  EXPECT_EQ(message({.heads = 2, .buckets = 31}, {31, 2}),
            "t5: buckets must be even if it is bidirectional but is 31");
  EXPECT_EQ(message({.heads = 2, .buckets = 31, .bidirectional = false}, {31, 2}), "accepted");
  EXPECT_EQ(message({.heads = 2, .buckets = 2}, {2, 2}), "t5: buckets must be between 4 and 8192 but is 2");
  EXPECT_EQ(message({.heads = 2, .max_distance = 8}, {32, 2}),
            "t5: max_distance must be above 8, the distances with a bucket of their own, but is 8");
  EXPECT_EQ(message({.heads = 2, .max_distance = 1 << 30}, {32, 2}),
            "t5: max_distance must be between 1 and 1048576 but is 1073741824");
  EXPECT_EQ(message({.heads = 2}, {2, 32}), "t5: the table must be [32, 2] but is [2, 32]");
  EXPECT_EQ(refusal([] { prepare(T5{}); }), "t5: the trained table [32, 8] is missing: pass it as weights");
}

}  // namespace
}  // namespace posenc::t5_test
