// What a check could not have seen: it agrees only with tensors in which every known mistake would show.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "ports.h"

namespace posenc::power_test {
namespace {

using namespace tests;

const Rope kLlama{.dims = 128, .base = 500000, .scaling = Llama3Scaling{.factor = 8}};
const Rope kYarn{.dims = 128, .base = 1e6, .scaling = YarnScaling{.factor = 4, .original_length = 32768}};

Rope scaled(const Rope& rope, const RopeScaling& scaling) {
  Rope port = rope;
  port.scaling = scaling;
  return port;
}

struct Tokens {
  std::int64_t heads = 8, count = 16, first = 0;
  DataType type = DataType::kBF16;
};

CheckResult checked(const Rope& expected, const Rope& port, const Tokens& tokens) {
  const Typed before = queries({tokens.heads, tokens.count, 128}, tokens.type);
  const std::vector<std::int64_t> ids = counted_from(tokens.first, tokens.count);
  const Typed after = ported({.rope = port}, before, ids, tokens.first + tokens.count);
  return check(expected, before.view(), after.view(), {.positions = ids});
}

bool names(const std::vector<Alternative>& list, std::string_view name) {
  return std::any_of(list.begin(), list.end(), [&](const Alternative& one) { return one.name == name; });
}

// Ports that 16 tokens of bf16 once passed as right.
struct Wrong {
  Rope expected, port;
  const char *name, *words;
};
std::vector<Wrong> wrong_ports() {
  return {{kLlama, scaled(kLlama, NoScaling{}), "no llama3 scaling", "llama3 scaling from none"},
          {kLlama, scaled(kLlama, Llama3Scaling{.factor = 16}), "factor 16", "factor 8 from 16"},
          {kYarn, scaled(kYarn, YarnScaling{.factor = 4, .original_length = 65536}), "original_length 65536",
           "original_length 32768 from 65536"},
          {kYarn, scaled(kYarn, YarnScaling{.factor = 1, .attention_factor = prepare(kYarn).magnitude}),
           "yarn magnitude without its frequencies", "yarn frequencies from unscaled ones"}};
}

TEST(CheckPower, SixteenTokensOfBf16DoNotShowAScaling) {
  for (const Wrong& one : wrong_ports()) {
    for (const Rope& port : {one.port, one.expected}) {
      const CheckResult result = checked(one.expected, port, {});
      EXPECT_EQ(result.agreement, Agreement::kInconclusive) << one.name;
      EXPECT_TRUE(names(result.unseen, one.name)) << one.name << ": " << result.reason;
      EXPECT_FALSE(names(result.excluded, one.name));
      EXPECT_TRUE(names(result.excluded, "pairs interleaved"));
    }
    // the same in float32 is seen
    EXPECT_EQ(checked(one.expected, one.port, {.type = DataType::kF32}).agreement, Agreement::kDiffers) << one.name;
    const CheckResult right = checked(one.expected, one.expected, {.type = DataType::kF32});
    EXPECT_EQ(right.agreement, Agreement::kAgrees) << right.reason;
    EXPECT_TRUE(names(right.excluded, one.name)) << one.name;
    EXPECT_TRUE(right.unseen.empty());
    EXPECT_TRUE(right.reason.empty());
  }
}

// What it says would decide does, for right and wrong ports, whatever the values.
TEST(CheckPower, TheTokensThatItAsksForDecide) {
  for (const Wrong& one : wrong_ports()) {
    const CheckResult result = checked(one.expected, one.expected, {});
    ASSERT_EQ(result.agreement, Agreement::kInconclusive);
    ASSERT_EQ(result.deciding.size(), 2u) << result.reason;
    EXPECT_EQ(result.deciding[0].tokens, 16);
    EXPECT_EQ(result.deciding[1].first_positions, std::vector<std::int64_t>{0});
    for (const DecidingTokens& enough : result.deciding) {
      const Tokens tokens{.heads = 1, .count = enough.tokens, .first = enough.first_positions.front()};
      const CheckResult right = checked(one.expected, one.expected, tokens);
      EXPECT_EQ(right.agreement, Agreement::kAgrees) << right.reason;
      if (enough.tokens > 16) continue;
      EXPECT_EQ(checked(one.expected, one.port, tokens).agreement, Agreement::kDiffers) << one.name;
    }
    EXPECT_TRUE(result.is_float32_enough);
  }
}

TEST(CheckPower, SaysWhatAndWhatWould) {
  const CheckResult result = checked(kLlama, kLlama, {});
  EXPECT_TRUE(result.reason.starts_with("these 16 tokens cannot tell llama3 scaling from none, ")) << result.reason;
  EXPECT_NE(result.reason.find(" more; 16 tokens from position "), std::string::npos) << result.reason;
  EXPECT_NE(result.reason.find(" on would, or "), std::string::npos) << result.reason;
  EXPECT_TRUE(result.reason.ends_with(", or these in float32")) << result.reason;
}

// Rounding of angles is named apart: alone if nothing else is open, and never in place of what is.
TEST(CheckPower, RoundingOfAnglesIsApart) {
  const Rope plain{.dims = 128};
  const CheckResult alone = checked(plain, plain, {.heads = 1, .count = 64});
  ASSERT_EQ(alone.agreement, Agreement::kInconclusive);
  EXPECT_TRUE(std::all_of(alone.unseen.begin(), alone.unseen.end(), [](auto& one) { return one.is_rounding; }));
  EXPECT_TRUE(names(alone.unseen, "f16 frequencies"));
  EXPECT_TRUE(
      alone.reason.starts_with("these 64 tokens exclude every other known mistake, but cannot tell float32 angles "
                               "from those rounded to 16 bits (f16 frequencies"))
      << alone.reason;
  EXPECT_TRUE(alone.reason.ends_with("or these in float32")) << alone.reason;
  const CheckResult both = checked(kLlama, kLlama, {.heads = 1});
  const auto rounding =
      std::count_if(both.unseen.begin(), both.unseen.end(), [](auto& one) { return one.is_rounding; });
  EXPECT_GT(rounding, 0);
  EXPECT_EQ(both.reason.find("16 bits"), std::string::npos) << both.reason;
  const auto others = std::ssize(both.unseen) - rounding - 3;  // three are shown
  EXPECT_NE(both.reason.find(fmt::format("and {} more;", others)), std::string::npos) << both.reason;
  const CheckResult far = checked(plain, plain, {.heads = 1, .first = 8192});
  ASSERT_EQ(far.agreement, Agreement::kAgrees) << far.reason;
  EXPECT_EQ(std::count_if(far.excluded.begin(), far.excluded.end(), [](auto& one) { return one.is_rounding; }), 5);
}

// One token at position 0 shows nothing; at position 1, in float32, everything that one token can.
TEST(CheckPower, PositionZeroShowsNothing) {
  const Rope rope{.dims = 128};
  const CheckResult zero = checked(rope, rope, {.count = 1, .type = DataType::kF32});
  EXPECT_EQ(zero.agreement, Agreement::kInconclusive);
  EXPECT_TRUE(zero.reason.starts_with("this token cannot tell rope from none, ")) << zero.reason;
  ASSERT_FALSE(zero.deciding.empty());
  EXPECT_EQ(zero.deciding[0].first_positions, std::vector<std::int64_t>{1});
  EXPECT_EQ(checked(rope, rope, {.count = 1, .first = 1, .type = DataType::kF32}).agreement, Agreement::kAgrees);
}

// A head of zeros shows nothing, but the others do: then all are examined.
TEST(CheckPower, LargeTensors) {
  const Rope rope{.dims = 128};
  const auto with_zeros = [&](std::int64_t heads) {
    Typed before = queries({8, 64, 128}, DataType::kF32);
    std::fill(before.values.begin(), before.values.begin() + heads * 64 * 128, 0.0);
    before = typed(before.values, before.shape, DataType::kF32);
    const std::vector<std::int64_t> ids = counted_from(0, 64);
    return check(rope, before.view(), ported({.rope = rope}, before, ids, 64).view(), {.positions = ids}).agreement;
  };
  EXPECT_EQ(with_zeros(0), Agreement::kAgrees);
  EXPECT_EQ(with_zeros(1), Agreement::kAgrees);
  EXPECT_EQ(with_zeros(8), Agreement::kInconclusive);
}

// Dynamic scaling does nothing within the trained length.
TEST(CheckPower, ScalingsThatDependOnTheLength) {
  const Rope dynamic = scaled(Rope{.dims = 128}, DynamicScaling{.factor = 2, .original_length = 64});
  const Tokens within{.type = DataType::kF32};
  const CheckResult result = checked(dynamic, dynamic, within);
  EXPECT_EQ(result.agreement, Agreement::kInconclusive);
  EXPECT_TRUE(names(result.unseen, "no dynamic scaling"));
  ASSERT_FALSE(result.deciding.empty()) << result.reason;
  const Tokens beyond{.first = result.deciding[0].first_positions.front(), .type = DataType::kF32};
  EXPECT_EQ(beyond.first, 49);  // the last of 16 tokens is the first beyond 64
  EXPECT_EQ(checked(dynamic, dynamic, beyond).agreement, Agreement::kAgrees);
  EXPECT_EQ(checked(dynamic, Rope{.dims = 128}, beyond).agreement, Agreement::kDiffers);
}

// Text has the same position on every axis: sections do not show.
TEST(CheckPower, SeveralAxes) {
  const Rope rope{.dims = 128, .base = 1e6, .sections = {16, 24, 24}};
  const Typed before = queries({2, 16, 128}, DataType::kF32);
  std::vector<std::int64_t> text;
  for (int axis = 0; axis < 3; ++axis) {
    for (std::int64_t i = 0; i < 16; ++i) text.push_back(i);
  }
  const CheckResult result =
      check(rope, before.view(), ported({.rope = rope}, before, text, 16).view(), {.positions = text, .axes = 3});
  EXPECT_EQ(result.agreement, Agreement::kInconclusive);
  EXPECT_TRUE(names(result.unseen, "height and width swapped"));
  ASSERT_EQ(result.deciding.size(), 1u) << result.reason;
  std::vector<std::int64_t> ids;
  for (const std::int64_t first : result.deciding[0].first_positions) {
    for (std::int64_t i = 0; i < 16; ++i) ids.push_back(first + i);
  }
  const CheckResult apart =
      check(rope, before.view(), ported({.rope = rope}, before, ids, 16).view(), {.positions = ids, .axes = 3});
  EXPECT_EQ(apart.agreement, Agreement::kAgrees) << apart.reason;
}

// Distances decide about a bias: T5's buckets beyond the first few.
TEST(CheckPower, Biases) {
  const T5 t5{.heads = 4};
  std::vector<double> table;
  for (int i = 0; i < 32 * 4; ++i) table.push_back(std::sin(3.0 * i));
  const auto with_keys = [&](std::int64_t keys) {
    const Extents shape{4, keys, keys};
    const Typed before = queries(shape, DataType::kF32);
    std::vector<double> after = before.values;
    const Bias form = prepare(t5, {.weights = view(std::as_const(table).data(), {32, 4})});
    bias(view(after.data(), shape), {}, {}, form);
    for (std::size_t i = 0; i < after.size(); ++i) after[i] += before.values[i];
    const Typed made = typed(after, shape, DataType::kF32);
    return check(t5, before.view(), made.view(), {.weights = view(std::as_const(table).data(), {32, 4})});
  };
  const CheckResult few = with_keys(8);
  EXPECT_EQ(few.agreement, Agreement::kInconclusive);
  EXPECT_TRUE(names(few.unseen, "max_distance 256")) << few.reason;
  ASSERT_EQ(few.deciding.size(), 1u) << few.reason;
  EXPECT_EQ(with_keys(few.deciding[0].tokens).agreement, Agreement::kAgrees);
  EXPECT_EQ(with_keys(few.deciding[0].tokens - 1).agreement, Agreement::kInconclusive);
}

}  // namespace
}  // namespace posenc::power_test
