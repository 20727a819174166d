// 16-bit values in float32 tensors, as `.float()` gives them; and verdicts that other conventions would explain as well.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "ports.h"
#include "posenc/report_json.h"

namespace posenc::narrow_test {
namespace {

using namespace tests;

const Rope kLlama{.dims = 64, .base = 500000, .scaling = Llama3Scaling{.factor = 8}};

Typed in_float32(const Typed& from) { return typed(from.values, from.shape, DataType::kF32); }

struct Made {
  Typed before, after;
};
// What a port in this type makes, saved as float32.
Made saved(const Rope& rope, DataType type, std::int64_t shift = 0, std::int64_t first = 0) {
  Port port{.rope = rope};
  port.position = [=](std::int64_t, double p) { return p + static_cast<double>(shift); };
  const Typed before = queries({4, 64, 64}, type);
  const Typed after = ported(port, before, counted_from(first, 64), first + 64);
  return {in_float32(before), in_float32(after)};
}

CheckResult checked(const Rope& rope, const Made& made, std::int64_t first = 0) {
  const std::vector<std::int64_t> ids = counted_from(first, made.before.shape.back(1));
  return check(rope, made.before.view(), made.after.view(), {.positions = ids});
}

TEST(Narrowed, ValuesOf16BitsAreComparedAsSuch) {
  for (const DataType type : {DataType::kBF16, DataType::kF16}) {
    SCOPED_TRACE(name_of(type));
    const CheckResult right = checked(kLlama, saved(kLlama, type, 0, 100000), 100000);
    EXPECT_EQ(right.agreement, Agreement::kAgrees) << right.reason << joined(right.advice);
    EXPECT_EQ(right.values_type, type);
    EXPECT_EQ(right.tolerance, default_tolerance(type));
    const CheckResult wrong = checked(kLlama, saved(kLlama, type, 1));
    EXPECT_EQ(wrong.agreement, Agreement::kDiffers);
    EXPECT_EQ(wrong.values_type, type);
    EXPECT_EQ(wrong.advice, std::vector<std::string>{"Positions are off by 1. Count from 0"});
  }
  // near position 0, bf16 does not show the scaling, in whatever type it was saved
  EXPECT_EQ(checked(kLlama, saved(kLlama, DataType::kBF16)).agreement, Agreement::kInconclusive);
  const Json json = json_of(checked(kLlama, saved(kLlama, DataType::kBF16)));
  EXPECT_EQ(*json.find("values")->as<std::string>(), "bf16");
}

TEST(Narrowed, AResultMayBeNarrowerThanWhatItCameFrom) {
  Made made = saved(kLlama, DataType::kF32);
  const CheckResult wide = checked(kLlama, made);
  EXPECT_EQ(wide.agreement, Agreement::kAgrees);
  EXPECT_FALSE(wide.values_type);
  made.after = in_float32(typed(made.after.values, made.after.shape, DataType::kBF16));
  const CheckResult narrow = checked(kLlama, made);
  EXPECT_NE(narrow.agreement, Agreement::kDiffers) << joined(narrow.advice);
  EXPECT_EQ(narrow.values_type, DataType::kBF16);
  // one value that is none of the type, and it is float32
  made.after.f32[77] = std::nextafter(made.after.f32[77], 100.0F);
  EXPECT_FALSE(checked(kLlama, made).values_type);
}

// Small integers, and slopes that are powers of two, fit in 16 bits as well.
TEST(Narrowed, ExactNumbersAreNotRounded) {
  const Extents shape{8, 64, 64};
  Typed before = typed(std::vector<double>(8 * 64 * 64), shape, DataType::kF32);
  std::vector<double> after;
  for (std::int64_t i = 0; i < 8 * 64 * 64; ++i) {
    after.push_back(-std::exp2(-static_cast<double>(i / 4096 + 1)) *
                    std::fabs(static_cast<double>(i % 64 - i / 64 % 64)));
  }
  const CheckResult alibi = check(Alibi{.heads = 8}, before.view(), typed(after, shape, DataType::kF32).view());
  EXPECT_EQ(alibi.agreement, Agreement::kAgrees) << alibi.reason;
  EXPECT_FALSE(alibi.values_type);
}

TEST(Narrowed, Diagnose) {
  const Made made = saved({.dims = 64, .base = 500000}, DataType::kBF16);
  const Diagnosis found = diagnose(made.before.view(), made.after.view());
  EXPECT_EQ(found.verdict, Verdict::kSure) << joined(found.remarks);
  EXPECT_NE(joined(found.remarks).find("all values are bf16"), std::string::npos) << joined(found.remarks);
}

// Two tokens at -1 and 0 are also two that count down and rotate clockwise: the simpler of the two, and not for sure.
TEST(DiagnoseAliases, NegativePositions) {
  const Rope rope{.dims = 64, .base = 1e6};
  for (const std::int64_t tokens : {2, 16}) {
    Port port{.rope = rope};
    port.position = [=](std::int64_t, double p) { return p - static_cast<double>(tokens - 1); };
    const Typed before = queries({4, tokens, 64}, DataType::kF32);
    const Typed after = ported(port, before, counted_from(0, tokens), tokens);
    const Diagnosis found = diagnose(before.view(), after.view());
    EXPECT_EQ(found.verdict, Verdict::kLikely);
    ASSERT_TRUE(found.best);
    EXPECT_EQ(std::get<Rope>(found.best->scheme).sign, 1);
    EXPECT_FALSE(found.best->is_reversed);
    EXPECT_EQ(found.best->first_position, 1 - tokens);
    ASSERT_FALSE(found.others.empty());
    EXPECT_TRUE(found.others[0].is_reversed);
    EXPECT_EQ(std::get<Rope>(found.others[0].scheme).sign, -1);
    EXPECT_EQ(found.others[0].first_position, 0);
  }
}

TEST(CheckAdvice, PositionsThatAreHalved) {
  Port port{.rope = kLlama};
  port.position = [](std::int64_t, double p) { return p / 2; };
  const Typed before = queries({8, 64, 64}, DataType::kF32);
  const std::vector<std::int64_t> ids = counted_from(0, 64);
  const CheckResult result = check(kLlama, before.view(), ported(port, before, ids, 64).view(), {.positions = ids});
  EXPECT_EQ(result.advice,
            std::vector<std::string>{"Every frequency is the expected one divided by 2: so are the positions, or a "
                                     "linear scaling was applied besides"});
}

// The first tokens of a long sequence: without its length, the right base is taken for a wrong one.
TEST(CheckAdvice, DynamicScalingOfALongerSequence) {
  const Rope dynamic{.dims = 128, .scaling = DynamicScaling{.factor = 2, .original_length = 2048}};
  const Typed before = queries({2, 32, 128}, DataType::kF32);
  const std::vector<std::int64_t> ids = counted_from(0, 32);
  const Typed after = ported({.rope = dynamic}, before, ids, 4096);
  const CheckResult result = check(dynamic, before.view(), after.view(), {.positions = ids});
  EXPECT_EQ(result.agreement, Agreement::kDiffers);
  ASSERT_EQ(result.advice.size(), 1u) << joined(result.advice);
  EXPECT_TRUE(result.advice[0].ends_with("for a sequence of 4096 tokens: check with --length 4096 if it has as many"))
      << result.advice[0];
  const CheckResult long_enough = check(dynamic, before.view(), after.view(), {.positions = ids, .length = 4096});
  EXPECT_EQ(long_enough.agreement, Agreement::kAgrees) << long_enough.reason;
  // a base that no length gives
  const Typed other = ported({.rope = {.dims = 128, .base = 5000}}, before, ids, 32);
  EXPECT_NE(
      joined(check(dynamic, before.view(), other.view(), {.positions = ids}).advice).find("base: expected 10000"),
      std::string::npos);
}

// In bf16, sections 24 24 16 in blocks are 24 20 20 in blocks: one mistake explains the tensors, and two do as well.
TEST(CheckSureness, AMistakeIsNotSureIfAnotherWouldNotShow) {
  const Rope meant{.dims = 128, .base = 5e6, .sections = {24, 20, 20}, .section_order = SectionOrder::kInterleaved};
  Rope port = meant;
  port.section_order = SectionOrder::kChunked;
  port.sections = {24, 24, 16};
  std::vector<std::int64_t> ids;
  for (std::int64_t axis = 0; axis < 3; ++axis) {
    for (std::int64_t i = 0; i < 76; ++i) {
      const std::int64_t patch = i - 5;
      ids.push_back(i < 5 ? i : i >= 69 ? i - 56 : axis == 0 ? 5 : axis == 1 ? 5 + patch / 8 : 5 + patch % 8);
    }
  }
  for (const DataType type : {DataType::kBF16, DataType::kF32}) {
    const Typed before = queries({8, 76, 128}, type);
    const CheckResult result =
        check(meant, before.view(), ported({.rope = port}, before, ids, 128).view(), {.positions = ids, .axes = 3});
    EXPECT_EQ(result.agreement, Agreement::kDiffers);
    const bool names_sections =
        joined(result.advice).find("sections: expected 24 20 20, got 24 24 16") != std::string::npos;
    EXPECT_TRUE(names_sections || result.diagnosis.verdict != Verdict::kSure) << joined(result.advice);
    EXPECT_EQ(names_sections, type == DataType::kF32) << joined(result.advice);
  }
}

}  // namespace
}  // namespace posenc::narrow_test
