// The work that a scheme adds per token, against counts made by hand.

#include <gtest/gtest.h>

#include "posenc/properties.h"

namespace posenc::cost_test {
namespace {

struct Counts {
  std::int64_t operations, numbers, parameters;
};

void expect_cost(const Scheme& scheme, const CostOptions& options, const Counts& expected) {
  const TokenCost cost = cost_per_token(scheme, options);
  EXPECT_EQ(cost.operations, expected.operations) << name_of(scheme);
  EXPECT_EQ(cost.numbers, expected.numbers) << name_of(scheme);
  EXPECT_EQ(cost.parameters, expected.parameters) << name_of(scheme);
}

TEST(Cost, IsCountedFromTheForm) {
  const CostOptions options{.keys = 10, .features = 16};
  expect_cost(None{}, options, {0, 0, 0});
  expect_cost(Sinusoidal{.width = 16}, options, {16, 16, 0});
  expect_cost(Learned{.rows = 100, .width = 16}, options, {16, 16, 1600});
  // 8 pairs, 4 products and 2 sums each, for the query and for the key
  expect_cost(Rope{.dims = 16}, options, {96, 16, 0});
  expect_cost(Rope{.dims = 16, .scaling = XposScaling{}}, options, {96, 32, 0});
  expect_cost(Alibi{.heads = 4}, options, {20, 1, 0});
  expect_cost(T5{.heads = 4, .buckets = 32}, options, {10, 10, 128});
}

TEST(Cost, GrowsWithKeysOnlyWhereEveryKeyCosts) {
  for (const Scheme& scheme : schemes_to_prove()) {
    const TokenCost few = cost_per_token(scheme, {.keys = 16}), many = cost_per_token(scheme, {.keys = 48});
    EXPECT_GE(few.operations, 0) << name_of(scheme);
    EXPECT_EQ(many.parameters, few.parameters) << name_of(scheme);
    EXPECT_EQ(many.operations > few.operations, is_bias(scheme)) << name_of(scheme);
  }
}

}  // namespace
}  // namespace posenc::cost_test
