// Each threshold of diagnose from both sides: noise, sizes and factors just within the limit, and just past it.

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <random>

#include "posenc/analysis.h"
#include "posenc/posenc.h"
#include "tensors.h"

namespace posenc {
namespace {

using namespace tests;

// Tensors in f32 with noise on the result, of `share` times the root mean square of the change.
Diagnosis with_noise(const Scheme& scheme, double share, const Extents& shape = {4, 32, 64}) {
  std::vector<float> before = random_values(static_cast<std::size_t>(count_of(shape))), after = before;
  const Form form = prepare(scheme);
  if (const auto* const rotation = std::get_if<Rotation>(&form)) rotate(view(after.data(), shape), {}, *rotation);
  if (const auto* const addition = std::get_if<Addition>(&form)) add(view(after.data(), shape), {}, *addition);
  double change = 0;
  for (std::size_t i = 0; i < after.size(); ++i) change += std::pow(after[i] - before[i], 2);
  const double size = share * std::sqrt(change / static_cast<double>(after.size()));
  const std::vector<float> noise = random_values(after.size(), 99);
  for (std::size_t i = 0; i < after.size(); ++i) {
    after[i] = static_cast<float>(static_cast<double>(after[i]) + size * static_cast<double>(noise[i]));
  }
  return diagnose(view(std::as_const(before).data(), shape), view(std::as_const(after).data(), shape));
}

TEST(DiagnoseThresholds, NoiseOnARotation) {
  const Rope rope{.dims = 64};
  EXPECT_EQ(with_noise(rope, 0).verdict, Verdict::kSure);
  EXPECT_EQ(with_noise(rope, 2e-8).verdict, Verdict::kSure);
  // more than rounding, so that something else happened too; but no other scheme explains it better
  for (const double share : {2e-6, 1e-3, 0.02}) {
    const Diagnosis found = with_noise(rope, share);
    EXPECT_EQ(found.verdict, Verdict::kLikely) << share;
    EXPECT_EQ(found.best->scheme, Scheme(rope)) << share;
    EXPECT_NEAR(found.best->residual, share, 0.1 * share) << share;
  }
  for (const double share : {0.04, 0.3}) {
    const Diagnosis found = with_noise(rope, share);
    EXPECT_TRUE(found.verdict == Verdict::kNone || found.verdict == Verdict::kNoPosition) << share;
    EXPECT_FALSE(found.best) << share;
  }
}

// Three times rounding, which is 1.2e-7 of this change, and 3 % of the change.
TEST(DiagnoseThresholds, NoiseOnARotationFromBothSides) {
  const Rope rope{.dims = 64};
  EXPECT_EQ(with_noise(rope, 1e-7).verdict, Verdict::kSure);
  EXPECT_EQ(with_noise(rope, 1.8e-7).verdict, Verdict::kLikely);
  EXPECT_EQ(with_noise(rope, 0.0295).verdict, Verdict::kLikely);
  EXPECT_EQ(with_noise(rope, 0.0305).verdict, Verdict::kNone);
}

TEST(DiagnoseThresholds, NoiseOnSinusoids) {
  const Sinusoidal scheme{.width = 64};
  EXPECT_EQ(with_noise(scheme, 0).verdict, Verdict::kSure);
  EXPECT_EQ(with_noise(scheme, 1.3e-7).verdict, Verdict::kSure);
  for (const double share : {2e-7, 1e-4, 1e-2, 0.5}) {
    const Diagnosis found = with_noise(scheme, share);
    EXPECT_NE(found.verdict, Verdict::kSure) << share;
    EXPECT_FALSE(found.best) << share;
  }
}

// A change below rounding is none; above it is one.
TEST(DiagnoseThresholds, Unchanged) {
  const Extents shape = {2, 16, 32};
  const std::vector<float> before = random_values(2 * 16 * 32);
  for (const auto& [size, is_unchanged] : {std::pair{0.5, true}, {2.0, false}}) {
    std::vector<float> after = before;
    const std::vector<float> noise = random_values(after.size(), 3);
    for (std::size_t i = 0; i < after.size(); ++i) {
      // 0.29 · 2^-7 is the rounding of bf16
      after[i] += static_cast<float>(size * 0.29 / 128) * noise[i];
    }
    const std::vector<BFloat16> wide = as_bf16(before);
    std::vector<float> exact;
    for (const BFloat16 value : wide) exact.push_back(std::bit_cast<float>(std::uint32_t{value.bits} << 16));
    for (std::size_t i = 0; i < after.size(); ++i) after[i] += exact[i] - before[i];
    const Diagnosis found = diagnose(view(wide.data(), shape), view(std::as_const(after).data(), shape));
    EXPECT_EQ(found.verdict == Verdict::kUnchanged, is_unchanged) << size << ' ' << name_of(found.verdict);
    EXPECT_FALSE(found.best) << size;
  }
}

// Frequencies that are doubled are a rotation applied twice; those 1.8 times as large are not.
TEST(DiagnoseThresholds, AppliedTwice) {
  for (const auto& [factor, is_twice] : {std::pair{2.0, true}, {1.8, false}, {2.2, false}}) {
    const Diagnosis found = with_noise(Rope{.dims = 64, .scaling = LinearScaling{.factor = 1 / factor}}, 0);
    ASSERT_TRUE(found.best) << factor;
    EXPECT_EQ(found.best->position_factor, is_twice ? 2 : 1) << factor;
    if (!is_twice) {
      EXPECT_NEAR(std::get<LinearScaling>(*std::get<Rope>(found.best->scheme).scaling).factor, 1 / factor, 1e-3);
    }
  }
}

// Four tokens of one head, or two that four heads share.
TEST(DiagnoseThresholds, FewestTokens) {
  const auto with = [](std::int64_t heads, std::int64_t tokens) {
    const Made tensors = made(Rope{.dims = 64}, {.heads = heads, .sequence = tokens});
    return diagnose(tensors.before_view(), tensors.after_view()).verdict;
  };
  EXPECT_EQ(with(1, 3), Verdict::kTooLittle);
  EXPECT_NE(with(1, 4), Verdict::kTooLittle);
  EXPECT_EQ(with(3, 3), Verdict::kTooLittle);
  EXPECT_NE(with(4, 3), Verdict::kTooLittle);
}

// Positions that skip some are told from twelve tokens on.
TEST(DiagnoseThresholds, FewestTokensOfOtherPositions) {
  for (const std::int64_t tokens : {11, 12}) {
    const Extents shape = {4, tokens, 64};
    const std::vector<float> before = random_values(static_cast<std::size_t>(count_of(shape)));
    std::vector<float> after = before;
    std::vector<std::int64_t> ids;
    for (std::int64_t i = 0; i < tokens; ++i) ids.push_back(i < tokens / 2 ? i : i + 7);
    rotate(view(after.data(), shape), {.ids = ids}, prepare(Rope{.dims = 64}));
    const Diagnosis found = diagnose(view(before.data(), shape), view(std::as_const(after).data(), shape));
    EXPECT_EQ(found.verdict, tokens < 12 ? Verdict::kNone : Verdict::kSure) << tokens;
    EXPECT_EQ(found.best && !found.best->positions.empty(), tokens >= 12) << tokens;
  }
}

// "Frequencies of no scheme" is for rotations that no base explains, and for no others.
TEST(DiagnoseThresholds, UnknownFrequencies) {
  LongropeScaling searched{.factor = 16, .original_length = 4096};
  for (int i = 0; i < 32; ++i) searched.short_factors.push_back(1.05 + 0.15 * (i + i % 3));
  searched.long_factors = searched.short_factors;
  const Made tensors = made(Rope{.dims = 64, .scaling = searched}, {.heads = 2, .sequence = 64});
  EXPECT_EQ(diagnose(tensors.before_view(), tensors.after_view()).verdict, Verdict::kUnknown);
  for (const double base : {1234.5, 10000.0, 77777.0}) {
    for (const double share : {0.0, 0.01, 0.02}) {
      const Diagnosis found = with_noise(Rope{.dims = 64, .base = base}, share);
      ASSERT_TRUE(found.best) << base;
      EXPECT_NE(found.verdict, Verdict::kUnknown) << base << ' ' << share;
      EXPECT_NEAR(std::get<Rope>(found.best->scheme).base, base, 1e-2 * base) << share;
    }
  }
}

TEST(DiagnoseThresholds, NamesChangesThatAreNoPosition) {
  const Extents shape = {4, 16, 32};
  const std::vector<float> before = random_values(4 * 16 * 32);
  const auto named = [&](const auto& make, std::string_view words) {
    std::vector<float> after = before;
    for (std::size_t i = 0; i < after.size(); ++i) after[i] = make(before[i], i);
    const Diagnosis found = diagnose(view(before.data(), shape), view(std::as_const(after).data(), shape));
    EXPECT_EQ(found.verdict, Verdict::kNoPosition) << words;
    ASSERT_FALSE(found.remarks.empty());
    EXPECT_NE(found.remarks.back().find(words), std::string::npos) << words << ": " << found.remarks.back();
  };
  const std::vector<float> noise = random_values(before.size(), 5);
  named([](float x, auto) { return 1.01F * x; }, "multiplied by 1.01");
  named([](float x, auto) { return x + 0.01F; }, "the same vector is added");
  named([](float x, std::size_t i) { return x * (1 + 0.1F * static_cast<float>(i % 32)); }, "its own factor");
  named([](float x, auto) { return std::round(x * 32) / 32; }, "steps (int8)");
  named([](float x, auto) { return std::bit_cast<float>(std::uint32_t{as_bf16({x})[0].bits} << 16); }, "bfloat16");
  named([](float x, std::size_t i) { return i % 7 == 0 ? 0 : x / 0.9F; }, "dropout");
  named([&](float, std::size_t i) { return before[i / 32 * 32 + (i + 5) % 32]; }, "permuted");
  named([&](float x, std::size_t i) { return x + 0.01F * noise[i]; }, "noise");
  named([&](float x, std::size_t i) { return x + 0.19F * noise[i]; }, "noise");
  std::vector<float> louder = before;  // a fifth of the values and more is too much to be noise
  for (std::size_t i = 0; i < louder.size(); ++i) louder[i] += 0.21F * noise[i];
  EXPECT_EQ(diagnose(view(before.data(), shape), view(std::as_const(louder).data(), shape)).verdict, Verdict::kNone);
  // an addition that heads share and tokens do not is a table: by position, but of nothing known here
  std::vector<float> after = before;
  for (std::size_t i = 0; i < after.size(); ++i) after[i] += 0.02F * noise[i % (16 * 32)];
  const Diagnosis found = diagnose(view(before.data(), shape), view(std::as_const(after).data(), shape));
  EXPECT_EQ(found.verdict, Verdict::kNone);
  EXPECT_NE(found.remarks.back().find("learned table"), std::string::npos);
}

}  // namespace
}  // namespace posenc
