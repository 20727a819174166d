// Which heads and which tokens differ; and positions and angles in 16 bits, which are no packed sequences.

#include <gtest/gtest.h>

#include <algorithm>

#include "ports.h"

namespace posenc::parts_test {
namespace {

using namespace tests;

using Lines = std::vector<std::string>;

const Rope kRope{.dims = 64, .base = 500000};

struct Made {
  Typed before, after;
  std::vector<std::int64_t> ids;
  CheckResult checked(const Rope& rope = kRope) const {
    return check(rope, before.view(), after.view(), {.positions = ids});
  }
  Diagnosis diagnosed() const { return diagnose(before.view(), after.view(), {.positions = ids}); }
};

Made made(const Port& port, std::int64_t tokens = 64, DataType type = DataType::kF32, const Extents& outer = {8}) {
  Extents shape = outer;
  shape = outer.rank == 1 ? Extents{outer[0], tokens, 64} : Extents{outer[0] * outer[1], tokens, 64};
  Made result{queries(shape, type), {}, counted_from(0, tokens)};
  result.after = ported(port, result.before, result.ids, tokens);
  if (outer.rank == 2) result.before.shape = result.after.shape = {outer[0], outer[1], tokens, 64};
  return result;
}

Port by_head(const std::function<double(std::int64_t, double)>& position) {
  Port port{.rope = kRope};
  port.position = position;
  return port;
}

bool mentions(const Diagnosis& found, std::string_view words) {
  return joined(found.remarks).find(words) != std::string::npos;
}

TEST(CheckParts, OneHead) {
  for (const DataType type : {DataType::kF32, DataType::kF16, DataType::kBF16}) {
    const Made off = made(by_head([](std::int64_t head, double p) { return head == 3 ? p + 1 : p; }), 64, type);
    const CheckResult result = off.checked();
    EXPECT_EQ(result.agreement, Agreement::kDiffers);
    EXPECT_EQ(result.where, "head 3 differs, the other 7 agree");
    EXPECT_EQ(result.heads, std::vector<std::int64_t>{3});
    EXPECT_EQ(result.advice, Lines{"head 3: Positions are off by 1. Count from 0"});
  }
}

TEST(CheckParts, SomeHeadsAreNotRotated) {
  const Made some = made(by_head([](std::int64_t head, double p) { return head == 3 || head == 7 ? 0 : p; }));
  EXPECT_EQ(some.checked().where, "heads 3 and 7 differ, the other 6 agree");
  EXPECT_EQ(some.checked().advice, Lines{"heads 3 and 7: Nothing was applied: before and after are the same"});
  const Made half = made(by_head([](std::int64_t head, double p) { return head < 4 ? 0 : p; }));
  EXPECT_EQ(half.checked().where, "heads 0 to 3 differ, the other 4 agree");
  // all of them: then there is nothing to say about heads
  const Made all = made(by_head([](std::int64_t, double) { return 0; }));
  EXPECT_EQ(all.checked().where, "");
  EXPECT_TRUE(all.checked().heads.empty());
  // along a batch
  const Made batch =
      made(by_head([](std::int64_t row, double p) { return row / 4 == 1 ? p + 2 : p; }), 64, DataType::kF32, {2, 4});
  EXPECT_EQ(batch.checked().where, "sequence 1 differs, the other one agrees");
  const Made both =
      made(by_head([](std::int64_t row, double p) { return row % 4 == 1 ? p + 2 : p; }), 64, DataType::kF32, {2, 4});
  EXPECT_EQ(both.checked().where, "head 1 differs, the other 3 agree");
}

TEST(CheckParts, SomeTokensAreRotatedAgain) {
  for (const DataType type : {DataType::kF32, DataType::kBF16}) {
    const Made again = made(by_head([](std::int64_t, double p) { return p >= 16 ? 2 * p : p; }), 64, type);
    const CheckResult result = again.checked();
    EXPECT_EQ(result.where, "tokens 16 to 63 differ, 0 to 15 agree");
    EXPECT_EQ(result.advice, Lines{"tokens 16 to 63: The rotation was applied twice. Apply it once"});
    EXPECT_EQ(result.tokens.size(), 48u);
  }
  // position 0 is always right: that says nothing about tokens
  const Made base = made({.rope = {.dims = 64, .base = 10000}});
  EXPECT_EQ(base.checked().where, "");
  EXPECT_TRUE(base.checked().tokens.empty());
}

TEST(CheckParts, HeadsInAnotherOrder) {
  Made moved = made({.rope = kRope});
  const std::size_t size = 64 * 64;
  std::vector<double> values = moved.after.values;
  std::rotate(values.begin(), values.begin() + size, values.end());
  moved.after = typed(values, moved.after.shape, DataType::kF32);
  const CheckResult result = moved.checked();
  EXPECT_EQ(result.where, "heads are in another order: 1 2 3 4 5 6 7 0");
  EXPECT_EQ(result.diagnosis.verdict, Verdict::kSure);
  ASSERT_EQ(result.advice.size(), 1u);
  EXPECT_TRUE(result.advice[0].starts_with("Heads are permuted"));
}

// Without knowing what is right: heads and tokens are named, and nothing is called packed.
TEST(DiagnoseParts, NamesHeadsAndTokens) {
  const struct {
    std::function<double(std::int64_t, double)> position;
    const char* words;
  } cases[] = {
      {[](std::int64_t head, double p) { return head == 3 ? p + 1 : p; },
       "head 3 (along the axis before the sequence) is off by 1"},
      {[](std::int64_t head, double p) { return head < 4 ? 0 : p; },
       "heads 0 to 3 (along the axis before the sequence) are not rotated"},
      {[](std::int64_t, double p) { return p >= 32 ? 2 * p : p; },
       "the tokens at positions 32 to 63 are rotated twice"},
      {[](std::int64_t, double p) { return p >= 40 ? 0 : p; }, "the tokens at positions 40 to 63 are not rotated"},
  };
  for (const auto& one : cases) {
    const Diagnosis found = made(by_head(one.position)).diagnosed();
    EXPECT_TRUE(mentions(found, one.words)) << joined(found.remarks);
    EXPECT_FALSE(mentions(found, "packed")) << joined(found.remarks);
  }
  // what is packed is still called so
  const Diagnosis packed = made(by_head([](std::int64_t, double p) { return p >= 40 ? p - 40 : p; })).diagnosed();
  EXPECT_TRUE(mentions(packed, "packed")) << joined(packed.remarks);
}

TEST(DiagnoseParts, PositionsInBf16) {
  const auto rounded = [](std::int64_t, double p) { return rounded_to(p, DataType::kBF16); };
  for (const DataType type : {DataType::kF32, DataType::kBF16}) {
    const Made far = made(by_head(rounded), 288, type, {1});
    const Diagnosis found = far.diagnosed();
    ASSERT_TRUE(found.best);
    EXPECT_EQ(found.best->numerics, AngleKind::kBf16Positions) << joined(found.remarks);
    EXPECT_TRUE(found.best->positions.empty());
    EXPECT_EQ(far.checked().advice, Lines{"Positions are in bf16. Keep them as integers"});
  }
}

// bf16 has every integer up to 256: only past it do they matter.
TEST(DiagnoseParts, PositionsInBf16AreConsideredPast256) {
  const auto considers_them = [](const CheckResult& result) {
    const auto is_it = [](const Alternative& one) { return one.name == "bf16 positions"; };
    return std::ranges::any_of(result.excluded, is_it) || std::ranges::any_of(result.unseen, is_it);
  };
  const Port right{.rope = kRope};
  EXPECT_FALSE(considers_them(made(right, 257, DataType::kF32, {1}).checked()));
  EXPECT_TRUE(considers_them(made(right, 258, DataType::kF32, {1}).checked()));
}

TEST(CheckParts, AnglesIn16Bits) {
  for (const DataType narrow : {DataType::kF16, DataType::kBF16}) {
    const char* const name = narrow == DataType::kF16 ? "f16" : "bf16";
    for (const Rope& rope : {kRope, Rope{.dims = 64, .base = 500000, .scaling = Llama3Scaling{}}}) {
      Port frequencies{.rope = rope};
      frequencies.frequency = [=](double omega) { return rounded_to(omega, narrow); };
      const Made one = made(frequencies);
      EXPECT_EQ(one.checked(rope).advice,
                Lines{std::string("Frequencies are in ") + name + ". Keep them in float32"});
      Port angles = frequencies;
      angles.position = [=](std::int64_t, double p) { return rounded_to(p, narrow); };
      angles.angle = [=](double phi) { return rounded_to(phi, narrow); };
      const Made other = made(angles);
      EXPECT_EQ(other.checked(rope).advice,
                Lines{std::string("Angles, position times frequency, are in ") + name + ". Compute them in float32"});
    }
  }
}

}  // namespace
}  // namespace posenc::parts_test
