#include <gtest/gtest.h>

#include "posenc/posenc.h"
#include "schemes/golden_array.h"

namespace posenc::shaw_test {
namespace {

using tests::entry_at;
using tests::refusal;

TEST(Shaw, ClipsAtBothEnds) {
  const std::vector<float> table(6 * 4);
  const Bias form = prepare(Shaw{.left = 3, .right = 2}, {.weights = view(table.data(), {6, 4})});
  EXPECT_EQ(form.heads, 0);
  const auto& source = std::get<DistanceVectors>(form.source);
  for (std::int64_t distance = -6; distance <= 6; ++distance) {
    EXPECT_EQ(entry_at(source.for_queries.rows, distance), std::clamp<std::int64_t>(distance, -3, 2) + 3);
  }
  EXPECT_EQ(source.for_keys.table.data, nullptr);
  EXPECT_EQ(source.softmax_factor, 1.0);
}

// Hugging Face: row = query − key + max − 1 of 2·max − 1.
TEST(Shaw, CountsTheOtherWayAsTransformersDoes) {
  const std::vector<float> table(2 * 7 * 4);
  const Shaw scheme{.left = 3, .right = 3, .order = DistanceOrder::kQueryMinusKey, .with_keys = true};
  const Bias form = prepare(scheme, {.weights = view(table.data(), {2, 7, 4})});
  EXPECT_EQ(form.heads, 2);
  const auto& source = std::get<DistanceVectors>(form.source);
  for (std::int64_t apart = -3; apart <= 3; ++apart) EXPECT_EQ(entry_at(source.for_queries.rows, -apart), apart + 3);
  EXPECT_EQ(source.for_keys.rows, source.for_queries.rows);
  EXPECT_EQ(source.for_keys.table.data, table.data());
}

TEST(Shaw, SaysWhatIsWrong) {
  const std::vector<float> table(64);
  EXPECT_EQ(refusal([] { prepare(Shaw{.left = -1}); }), "shaw: left must be between 0 and 1048576 but is -1");
  EXPECT_EQ(refusal([] { prepare(Shaw{}); }),
            "shaw: the table of 129 rows is missing; it is the caller's (Situation)");
  EXPECT_EQ(refusal([&] {
              prepare(Shaw{.left = 1, .right = 1}, {.weights = view(table.data(), {4, 2})});
            }),
            "shaw: the table must be [3, features] or [heads, 3, features] but is [4, 2]");
}

}  // namespace
}  // namespace posenc::shaw_test
