// What to change is said wherever the mistake is known, and nothing else is.

#include <gtest/gtest.h>

#include "ports.h"

namespace posenc::advice_test {
namespace {

using namespace tests;

using Lines = std::vector<std::string>;

const Rope kPlain{.dims = 64, .base = 500000};

template <class Scaling> Rope with(const Rope& rope, const Scaling& scaling) {
  Rope port = rope;
  port.scaling = scaling;
  return port;
}

CheckResult checked(const Rope& expected, const Port& port, const Extents& shape = {4, 32, 64},
                    DataType type = DataType::kF32, std::vector<std::int64_t> ids = {}) {
  if (ids.empty()) ids = counted_from(0, shape.back(1));
  const int axes = static_cast<int>(std::ssize(ids) / shape.back(1));
  const Typed before = queries(shape, type);
  const std::int64_t last = *std::max_element(ids.begin(), ids.end());
  const Typed after = ported(port, before, ids, last + 1);
  return check(expected, before.view(), after.view(), {.positions = ids, .axes = axes});
}

TEST(CheckAdvice, FieldsOfScalings) {
  const Rope llama = with(kPlain, Llama3Scaling{.factor = 8});
  EXPECT_EQ(checked(llama, {.rope = with(kPlain, Llama3Scaling{.factor = 32})}).advice,
            Lines{"factor: expected 8, got 32"});
  EXPECT_EQ(checked(llama, {.rope = with(kPlain, Llama3Scaling{.factor = 8, .original_length = 4096})}).advice,
            Lines{"original_length: expected 8192, got 4096"});
  const YarnScaling yarn{.factor = 4, .original_length = 8192};
  YarnScaling other = yarn;
  other.truncate = false;
  EXPECT_EQ(checked(with(kPlain, yarn), {.rope = with(kPlain, other)}).advice,
            Lines{"truncate: expected true, got false"});
  other = yarn;
  other.original_length = 16384;
  EXPECT_EQ(checked(with(kPlain, yarn), {.rope = with(kPlain, other)}).advice,
            Lines{"original_length: expected 8192, got 16384"});
  EXPECT_EQ(checked(with(kPlain, yarn), {.rope = kPlain}).advice, Lines{"scaling: expected yarn, got none"});
}

TEST(CheckAdvice, Places) {
  const Rope front{.dims = 32}, back{.dims = 32, .first_dim = 32}, from_end{.dims = 32, .first_dim = -32};
  EXPECT_EQ(checked(front, {.rope = back}).advice, Lines{"first rotary dimension: expected 0, got 32"});
  EXPECT_EQ(checked(from_end, {.rope = front}).advice, Lines{"first rotary dimension: expected 32, got 0"});
  Rope head = front;
  head.base = 100;  // 10000 to the power 32/64
  const CheckResult result = checked(front, {.rope = head});
  EXPECT_EQ(result.agreement, Agreement::kDiffers);
  EXPECT_FALSE(result.advice.empty());
}

TEST(CheckAdvice, Turnings) {
  Port port{.rope = kPlain};
  port.is_swapped = true;
  EXPECT_EQ(checked(kPlain, port).advice, Lines{"Sine and cosine are swapped. Swap them back"});
  port = {.rope = kPlain};
  port.lacks_minus = true;
  EXPECT_EQ(checked(kPlain, port).advice,
            Lines{"The first of each pair gains b·sin where it must lose it: rotate_half lacks its minus"});
  for (const PairLayout layout : {PairLayout::kHalves, PairLayout::kInterleaved}) {
    Rope rope = kPlain;
    rope.layout = layout;
    port = {.rope = rope};
    port.has_other_cosines = true;
    const CheckResult result = checked(rope, port);
    ASSERT_EQ(result.advice.size(), 1u);
    EXPECT_TRUE(result.advice[0].starts_with("Cosines and sines are in the order of other pairs"));
    EXPECT_EQ(result.diagnosis.verdict, Verdict::kSure);
  }
}

// Among conventions that fit alike, the expected one: once a wrong layout in four tokens of bf16 also "lacked" llama3.
TEST(CheckAdvice, TiesPreferWhatWasMeant) {
  const Rope llama{.dims = 128, .base = 500000, .scaling = Llama3Scaling{.factor = 8}};
  Rope interleaved = llama, clockwise = llama;
  interleaved.layout = PairLayout::kInterleaved;
  clockwise.sign = -1;
  Port twice{.rope = llama}, later{.rope = llama}, backwards{.rope = llama};
  twice.times = 2;
  later.position = [](std::int64_t, double p) { return p + 1; };
  backwards.position = [](std::int64_t, double p) { return 3 - p; };
  Port both{.rope = interleaved};
  both.position = [](std::int64_t, double p) { return p + 1; };
  const struct {
    Port port;
    std::size_t lines;
    const char* words;
  } cases[] = {{{.rope = interleaved}, 1, "pairs: expected halves, got interleaved"},
               {{.rope = clockwise}, 1, "direction: expected counter-clockwise, got clockwise"},
               {twice, 1, "applied twice"},
               {later, 1, "Positions are off by 1"},
               {backwards, 1, "Positions are reversed"},
               {both, 2, "pairs: expected halves, got interleaved"}};
  for (const auto& one : cases) {
    for (const DataType type : {DataType::kF32, DataType::kF16, DataType::kBF16}) {
      const CheckResult result = checked(llama, one.port, {4, 4, 128}, type);
      EXPECT_EQ(result.advice.size(), one.lines) << joined(result.advice);
      EXPECT_NE(joined(result.advice).find(one.words), std::string::npos)
          << one.words << ": " << joined(result.advice);
      EXPECT_EQ(joined(result.advice).find("scaling"), std::string::npos) << joined(result.advice);
    }
  }
}

TEST(CheckAdvice, SeveralAxes) {
  const Rope rope{.dims = 64, .base = 1e6, .sections = {8, 12, 12}};
  std::vector<std::int64_t> ids;
  for (std::int64_t axis = 0; axis < 3; ++axis) {
    for (std::int64_t i = 0; i < 36; ++i) ids.push_back(axis == 0 ? 7 : axis == 1 ? 7 + i / 6 : 7 + i % 6);
  }
  const auto advice = [&](const Rope& port, const std::vector<std::int64_t>& used) {
    const Typed before = queries({4, 36, 64}, DataType::kF32);
    const Typed after = ported({.rope = port}, before, used, 64);
    return check(rope, before.view(), after.view(), {.positions = ids, .axes = 3}).advice;
  };
  Rope port = rope;
  port.sections = {12, 12, 8};
  EXPECT_EQ(advice(port, ids), Lines{"sections: expected 8 12 12, got 12 12 8"});
  port = rope;
  port.section_order = SectionOrder::kInterleaved;
  EXPECT_EQ(advice(port, ids), Lines{"order of sections: expected chunked, got interleaved"});
  std::vector<std::int64_t> swapped = ids, first = ids, counted;
  std::swap_ranges(swapped.begin() + 36, swapped.begin() + 72, swapped.begin() + 72);
  EXPECT_EQ(advice(rope, swapped), Lines{"The positions of height and width are swapped. Swap them back"});
  std::copy(ids.begin(), ids.begin() + 36, first.begin() + 36);
  std::copy(ids.begin(), ids.begin() + 36, first.begin() + 72);
  EXPECT_NE(joined(advice(rope, first)).find("Every axis has the positions of the first"), std::string::npos);
  for (int axis = 0; axis < 3; ++axis) {
    for (std::int64_t i = 0; i < 36; ++i) counted.push_back(7 + i);
  }
  ASSERT_EQ(advice(rope, counted).size(), 1u);
  EXPECT_TRUE(advice(rope, counted)[0].starts_with("Every axis has the number of the token"));
}

TEST(CheckAdvice, TheOtherListOfLongrope) {
  LongropeScaling lists{.factor = 4, .original_length = 4096};
  for (int i = 0; i < 32; ++i) {
    lists.short_factors.push_back(1 + 0.01 * i);
    lists.long_factors.push_back(1.1 + 0.5 * i);
  }
  LongropeScaling other = lists;
  std::swap(other.short_factors, other.long_factors);
  const CheckResult result = checked(with(kPlain, lists), {.rope = with(kPlain, other)});
  ASSERT_EQ(result.advice.size(), 1u) << joined(result.advice);
  EXPECT_TRUE(result.advice[0].starts_with("The other of short_factor and long_factor was used"));
  EXPECT_EQ(result.diagnosis.verdict, Verdict::kSure);
}

Lines bias_advice(const Scheme& scheme, const std::function<double(std::int64_t, std::int64_t)>& added,
                  std::int64_t heads, std::int64_t keys, ConstTensorView table = {}) {
  const Typed before = queries({heads, keys, keys}, DataType::kF32);
  std::vector<double> after = before.values;
  for (std::size_t i = 0; i < after.size(); ++i) {
    const auto at = static_cast<std::int64_t>(i);
    after[i] += added(at / (keys * keys), at % keys - at / keys % keys);
  }
  return check(scheme, before.view(), typed(after, before.shape, DataType::kF32).view(), {.weights = table}).advice;
}

TEST(CheckAdvice, SlopesOfAlibi) {
  const auto naive = [](std::int64_t head, std::int64_t distance) {
    return -std::exp2(-8.0 * static_cast<double>(head + 1) / 12) * std::fabs(static_cast<double>(distance));
  };
  const Lines odd = bias_advice(Alibi{.heads = 12}, naive, 12, 24);
  ASSERT_EQ(odd.size(), 1u) << joined(odd);
  EXPECT_TRUE(odd[0].starts_with("Slopes are 2^(-8(h+1)/12), which is for powers of two"));
  const auto slope = [](std::int64_t head, std::int64_t heads) {
    return std::exp2(-8.0 * static_cast<double>(head + 1) / static_cast<double>(heads));
  };
  const auto reversed = [&](std::int64_t head, std::int64_t distance) {
    return -slope(7 - head, 8) * std::fabs(static_cast<double>(distance));
  };
  EXPECT_NE(joined(bias_advice(Alibi{.heads = 8}, reversed, 8, 24)).find("reverse order"), std::string::npos);
  const auto shards = [&](std::int64_t head, std::int64_t distance) {
    return -slope(head % 4, 4) * std::fabs(static_cast<double>(distance));
  };
  EXPECT_NE(joined(bias_advice(Alibi{.heads = 8}, shards, 8, 24)).find("start again every 4 heads"),
            std::string::npos);
}

TEST(CheckAdvice, DirectionOfT5) {
  const T5 t5{.heads = 4};
  std::vector<double> table;
  for (int i = 0; i < 32 * 4; ++i) table.push_back(std::sin(3.0 * i));
  const ConstTensorView weights = view(std::as_const(table).data(), {32, 4});
  const auto by = [&](const T5& scheme, double sign) {
    return [&, sign, map = buckets_of(scheme)](std::int64_t head, std::int64_t distance) {
      const std::int64_t at = std::clamp<std::int64_t>(static_cast<std::int64_t>(sign) * distance - map.first, 0,
                                                       std::ssize(map.entries) - 1);
      const std::int64_t row = map.entries[static_cast<std::size_t>(at)];
      return table[static_cast<std::size_t>(row * 4 + head)];
    };
  };
  EXPECT_EQ(bias_advice(t5, by(T5{.heads = 4, .bidirectional = false}, 1), 4, 64, weights),
            Lines{"bidirectional: expected true, got false"});
  EXPECT_EQ(bias_advice(t5, by(T5{.heads = 4, .max_distance = 256}, 1), 4, 64, weights),
            Lines{"max_distance: expected 128, got 256"});
  EXPECT_EQ(bias_advice(t5, by(t5, -1), 4, 64, weights),
            Lines{"Distances are query minus key: queries and keys are swapped. Use key minus query"});
}

// A single token is enough to name what was wrong with it, if one known mistake reproduces it.
TEST(CheckAdvice, OneToken) {
  Rope interleaved = kPlain;
  interleaved.layout = PairLayout::kInterleaved;
  const auto one = [&](const Rope& port) { return checked(kPlain, {.rope = port}, {8, 1, 64}, DataType::kF32, {7}); };
  EXPECT_EQ(one(interleaved).agreement, Agreement::kDiffers);
  ASSERT_FALSE(one(interleaved).advice.empty());
  EXPECT_TRUE(one(interleaved).advice[0].starts_with("pairs: expected halves, got interleaved"));
  EXPECT_EQ(one(interleaved).diagnosis.verdict, Verdict::kLikely);
}

}  // namespace
}  // namespace posenc::advice_test
