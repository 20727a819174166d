// Tensors made with known conventions must be diagnosed as such; no wrong result may be called sure.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <random>

#include "posenc/analysis.h"
#include "posenc/posenc.h"
#include "sanitized.h"
#include "tensors.h"

namespace posenc::diagnose_test {
namespace {

using namespace tests;

std::string shown(const Diagnosis& diagnosis) {
  std::string text(name_of(diagnosis.verdict));
  if (diagnosis.best) {
    text += fmt::format(" {} first {} magnitude {} {} residual {:.2g}", to_json(diagnosis.best->scheme),
                        diagnosis.best->first_position, diagnosis.best->magnitude, name_of(diagnosis.best->numerics),
                        diagnosis.best->residual);
  }
  for (const Convention& other : diagnosis.others) {
    text += fmt::format("\n  other {} {:.2g}", to_json(other.scheme), other.residual);
  }
  return text;
}

TEST(Diagnose, FindsEveryLayoutSignBaseAndStart) {
  int cases = 0;
  for (const PairLayout layout : {PairLayout::kHalves, PairLayout::kInterleaved, PairLayout::kInterleavedToHalves,
                                  PairLayout::kHalvesToInterleaved}) {
    for (const std::int64_t sign : {1, -1}) {
      for (const double base : {1000.0, 10000.0, 500000.0, 1e6}) {
        for (const std::int64_t first : {0, 1, 2, 100}) {
          ++cases;
          if (kSanitized && cases % (is_sample() ? 33 : 11) != 0) continue;  // of every kind some
          const Rope rope{.dims = 64, .base = base, .layout = layout, .sign = sign};
          const Made tensors = made(rope, {.first = first});
          const Diagnosis found = diagnose(tensors.before_view(), tensors.after_view());
          ASSERT_EQ(found.verdict, Verdict::kSure) << to_json(rope) << '\n' << shown(found);
          EXPECT_EQ(found.best->scheme, Scheme(rope)) << shown(found);
          EXPECT_EQ(found.best->first_position, first) << shown(found);
          EXPECT_EQ(found.best->magnitude, 1.0);
        }
      }
    }
  }
  EXPECT_EQ(cases, 128);
}

TEST(Diagnose, FindsBlocksWithinAHead) {
  for (const PairLayout layout : {PairLayout::kHalves, PairLayout::kInterleaved, PairLayout::kInterleavedToHalves}) {
    for (const auto& [dims, first_dim] : std::vector<std::pair<int, int>>{{32, 0}, {32, 96}, {64, 0}, {64, 64}}) {
      const Rope rope{.dims = dims, .layout = layout, .first_dim = first_dim};
      const Made tensors = made(rope, {.features = 128});
      const Diagnosis found = diagnose(tensors.before_view(), tensors.after_view());
      ASSERT_TRUE(found.best) << to_json(rope);
      EXPECT_EQ(found.best->scheme, Scheme(rope)) << shown(found);
    }
  }
}

TEST(Diagnose, FindsScalings) {
  const std::vector<RopeScaling> scalings = {
      NoScaling{},
      LinearScaling{.factor = 4},
      LinearScaling{.factor = 8},
      Llama3Scaling{.factor = 8},
      Llama3Scaling{.factor = 32},
      YarnScaling{.factor = 4, .original_length = 32768},
      YarnScaling{.factor = 40, .original_length = 4096},
  };
  for (const RopeScaling& scaling : scalings) {
    const Rope rope{.dims = 128, .base = 500000.0, .scaling = scaling};
    const Made tensors = made(rope, {.heads = 2, .sequence = 64, .features = 128});
    const Diagnosis found = diagnose(tensors.before_view(), tensors.after_view());
    ASSERT_TRUE(found.best) << to_json(rope);
    EXPECT_EQ(found.best->scheme, Scheme(rope)) << shown(found);
    EXPECT_NEAR(found.best->magnitude, prepare(rope).magnitude, 1e-5);
  }
}

TEST(Diagnose, ToleratesBf16) {
  for (const PairLayout layout : {PairLayout::kHalves, PairLayout::kInterleaved, PairLayout::kInterleavedToHalves}) {
    for (const double base : {10000.0, 500000.0}) {
      for (const std::int64_t first : {0, 1, 100}) {
        const Rope rope{.dims = 64, .base = base, .layout = layout};
        const Made tensors = made(rope, {.heads = 4, .sequence = 64, .first = first});
        const auto before = as_bf16(tensors.before), after = as_bf16(tensors.after);
        const Diagnosis found = diagnose(view(before.data(), tensors.shape), view(after.data(), tensors.shape));
        ASSERT_TRUE(found.best) << to_json(rope);
        const Rope& best = std::get<Rope>(found.best->scheme);
        EXPECT_EQ(best.layout, layout) << shown(found);
        EXPECT_EQ(best.dims, 64) << shown(found);
        EXPECT_EQ(found.best->first_position, first) << shown(found);
        EXPECT_TRUE(found.verdict != Verdict::kSure || found.best->scheme == Scheme(rope)) << shown(found);
      }
    }
  }
}

// Pairs that turn too little for their frequency to be measured: that they change at all says where the block ends,
// and what is left over says that they are scaled.
TEST(Diagnose, FindsPairsThatHardlyTurn) {
  const std::vector<Rope> ropes = {
      {.dims = 64, .base = 1e6, .layout = PairLayout::kInterleaved, .scaling = NtkScaling{.factor = 11}},
      {.dims = 32, .base = 1e6, .layout = PairLayout::kInterleaved, .scaling = NtkScaling{.factor = 4}},
      {.dims = 32, .base = 10000, .layout = PairLayout::kInterleaved, .scaling = Llama3Scaling{.factor = 8}},
      {.dims = 32, .base = 500000, .scaling = Llama3Scaling{.factor = 8}},
  };
  for (const Rope& rope : ropes) {
    for (unsigned seed = 1; seed <= 2; ++seed) {
      const Made tensors = made(rope, {.heads = 2, .sequence = 48, .seed = seed});
      const auto before = as_bf16(tensors.before), after = as_bf16(tensors.after);
      const Diagnosis found = diagnose(view(before.data(), tensors.shape), view(after.data(), tensors.shape));
      ASSERT_TRUE(found.best) << to_json(rope);
      const Rope& best = std::get<Rope>(found.best->scheme);
      EXPECT_EQ(best.dims, rope.dims) << shown(found);
      EXPECT_EQ(best.layout, rope.layout) << shown(found);
      if (const auto* const ntk = std::get_if<NtkScaling>(&*rope.scaling)) {
        EXPECT_TRUE(std::holds_alternative<NoScaling>(*best.scaling)) << shown(found);
        const auto dims = static_cast<double>(rope.dims);
        EXPECT_NEAR(best.base / (rope.base * std::pow(ntk->factor, dims / (dims - 2))), 1, 1e-9) << shown(found);
      } else {
        EXPECT_EQ(best.base, rope.base) << shown(found);
        EXPECT_TRUE(std::holds_alternative<Llama3Scaling>(*best.scaling)) << shown(found);
      }
    }
  }
}

// Where only the result is in bf16, features that stay have changed as well: by rounding.
TEST(Diagnose, DoesNotTakeRoundingForTurning) {
  const Rope rope{.dims = 32, .layout = PairLayout::kInterleaved};
  const Made tensors = made(rope, {.heads = 2, .sequence = 48});
  const auto after = as_bf16(tensors.after);
  const Diagnosis found = diagnose(tensors.before_view(), view(after.data(), tensors.shape));
  ASSERT_TRUE(found.best);
  EXPECT_EQ(found.best->scheme, Scheme(rope)) << shown(found);
}

TEST(Diagnose, TellsTheAngles) {
  const Rope rope{.dims = 64};
  for (const auto& [numerics, kind] :
       std::vector<std::pair<Numerics, AngleKind>>{{Numerics::kExact, AngleKind::kExact},
                                                   {Numerics::kHfF32, AngleKind::kHfF32},
                                                   {Numerics::kGgmlF32, AngleKind::kGgmlF32}}) {
    const Made tensors = made(rope, {.sequence = 32, .first = 20000, .numerics = numerics});
    std::vector<std::int64_t> ids;
    for (std::int64_t i = 0; i < 32; ++i) ids.push_back(20000 + i);
    const Diagnosis found = diagnose(tensors.before_view(), tensors.after_view(), {.positions = ids});
    ASSERT_TRUE(found.best);
    EXPECT_EQ(found.best->numerics, kind) << shown(found);
    EXPECT_TRUE(found.best->is_numerics_sure) << shown(found);
  }
}

// The bugs that people meet when they port a model.
TEST(Diagnose, NamesClassicBugs) {
  std::vector<std::int64_t> ids(32);
  for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<std::int64_t>(i);
  const How how{.heads = 2, .sequence = 32, .features = 128};
  const auto diagnosed = [&](const Made& tensors) {
    return diagnose(tensors.before_view(), tensors.after_view(), {.positions = ids});
  };
  const auto rope_of = [](const Diagnosis& found) { return std::get<Rope>(found.best->scheme); };
  const auto says = [](const Diagnosis& found, std::string_view words) {
    for (const std::string& remark : found.remarks) {
      if (remark.find(words) != std::string::npos) return true;
    }
    return false;
  };
  {  // 1: the wrong pairs
    const Diagnosis found = diagnosed(made(Rope{.dims = 128, .layout = PairLayout::kInterleaved}, how));
    EXPECT_EQ(rope_of(found).layout, PairLayout::kInterleaved) << shown(found);
  }
  {  // 2: the wrong direction
    const Diagnosis found = diagnosed(made(Rope{.dims = 128, .sign = -1}, how));
    EXPECT_TRUE(says(found, "clockwise")) << shown(found);
  }
  {  // 3: off by one
    How shifted = how;
    shifted.first = 1;
    const Diagnosis found = diagnosed(made(Rope{.dims = 128}, shifted));
    EXPECT_TRUE(says(found, "off by 1")) << shown(found);
  }
  {  // 4: i for 2i
    const Diagnosis found = diagnosed(made(Rope{.dims = 128, .base = 100}, how));
    EXPECT_TRUE(says(found, "square root of 10000")) << shown(found);
  }
  {  // 5: the size of a head for the features that turn
    const Diagnosis found = diagnosed(made(Rope{.dims = 32, .base = 10}, how));
    EXPECT_TRUE(says(found, "the 32 rotary dimensions")) << shown(found);
  }
  {  // 6: the default base where another belongs
    const Diagnosis found = diagnosed(made(Rope{.dims = 128, .base = 10000}, how));
    EXPECT_EQ(rope_of(found).base, 10000) << shown(found);
  }
  {  // 7: YaRN without its magnitude
    Rope rope{.dims = 128, .base = 1e6, .scaling = YarnScaling{.factor = 4, .original_length = 32768}};
    How flat = how;
    flat.magnitude = 1;
    flat.sequence = 32;
    const Diagnosis found = diagnosed(made(rope, flat));
    EXPECT_EQ(found.best->magnitude, 1.0) << shown(found);
    EXPECT_TRUE(std::holds_alternative<YarnScaling>(*rope_of(found).scaling)) << shown(found);
  }
  {  // 8: the magnitude twice
    How twice = how;
    twice.magnitude = 1.2;
    const Diagnosis found = diagnosed(made(Rope{.dims = 128}, twice));
    EXPECT_NEAR(found.best->magnitude, 1.2, 1e-5) << shown(found);
  }
  {  // 9: sine and cosine swapped
    Made tensors = made(Rope{.dims = 128}, how);
    const Rotation form = prepare(Rope{.dims = 128});
    std::vector<float> cosines(32 * 64), sines(32 * 64);
    tabulate(view(cosines.data(), {32, 64}), view(sines.data(), {32, 64}), {}, form);
    tensors.after = tensors.before;
    rotate(view(tensors.after.data(), tensors.shape), {},
           Rotation{.source = RotationTable{view(std::as_const(sines).data(), {32, 64}),
                                            view(std::as_const(cosines).data(), {32, 64})}});
    const Diagnosis found = diagnosed(tensors);
    ASSERT_TRUE(found.best) << shown(found);
    EXPECT_TRUE(found.best->is_swapped) << shown(found);
    EXPECT_EQ(rope_of(found).sign, 1) << shown(found);
  }
  {  // 10: frequencies in bf16
    Made tensors = made(Rope{.dims = 128}, how);
    Rotation form = prepare(Rope{.dims = 128}, {.numerics = Numerics::kHfF32});
    for (float& factor : std::get<PairWaves>(form.source).float32_angles.factors) {
      factor = std::bit_cast<float>(static_cast<std::uint32_t>(as_bf16({factor})[0].bits) << 16);
    }
    tensors.after = tensors.before;
    rotate(view(tensors.after.data(), tensors.shape), {}, form);
    const Diagnosis found = diagnosed(tensors);
    ASSERT_TRUE(found.best) << shown(found);
    EXPECT_EQ(found.best->numerics, AngleKind::kBf16Frequencies) << shown(found);
  }
}

TEST(Diagnose, FindsAddedSinusoids) {
  for (const Spacing spacing : {Spacing::kPaper, Spacing::kInclusive}) {
    for (const WaveLayout layout : {WaveLayout::kInterleaved, WaveLayout::kSinCos, WaveLayout::kCosSin}) {
      for (const std::int64_t first : {0, 1, 2}) {
        const Sinusoidal scheme{.width = 64, .spacing = spacing, .layout = layout};
        Made tensors;
        tensors.shape = {2, 16, 64};
        tensors.before = random_values(2 * 16 * 64);
        tensors.after = tensors.before;
        add(view(tensors.after.data(), tensors.shape), {.first = first}, prepare(scheme));
        const Diagnosis found = diagnose(tensors.before_view(), tensors.after_view());
        ASSERT_EQ(found.verdict, Verdict::kSure) << to_json(scheme) << shown(found);
        EXPECT_EQ(found.best->scheme, Scheme(scheme)) << shown(found);
        EXPECT_EQ(found.best->first_position, first);
      }
    }
  }
}

// Conventions of every kind against each other: what is called sure is right, and the pairs always are.
TEST(Diagnose, IsNeverSureAndWrong) {
  const std::vector<RopeScaling> scalings = {NoScaling{},
                                             LinearScaling{.factor = 4},
                                             NtkScaling{.factor = 4},
                                             Llama3Scaling{.factor = 8},
                                             YarnScaling{.factor = 4, .original_length = 32768},
                                             YarnScaling{.factor = 32, .original_length = 4096, .truncate = false},
                                             DynamicScaling{.factor = 2, .original_length = 8}};
  int sure = 0, right = 0, cases = 0;
  std::mt19937 random(20'261'115);
  const auto pick = [&](const auto& list) { return *(std::begin(list) + random() % std::size(list)); };
  for (; cases < (is_sample() ? 3 : kSanitized ? 8 : 48); ++cases) {
    const Rope rope{.dims = pick(std::vector<int>{32, 64, 128}),
                    .base = pick(std::vector<double>{10000.0, 500000.0, 1e6, 1000.0}),
                    .layout = pick(std::vector<PairLayout>{PairLayout::kHalves, PairLayout::kInterleaved,
                                                           PairLayout::kInterleavedToHalves}),
                    .sign = pick(std::vector<int>{1, -1}),
                    .scaling = pick(scalings)};
    const bool is_narrow = random() % 2 == 0;
    const How how{.heads = pick(std::vector<int>{1, 4}),
                  .sequence = pick(std::vector<int>{16, 64}),
                  .features = 128,
                  .first = pick(std::vector<int>{0, 1, 2, 100})};
    const Made tensors = made(rope, how);
    const auto before = as_bf16(tensors.before), after = as_bf16(tensors.after);
    const Diagnosis found = is_narrow
                                ? diagnose(view(before.data(), tensors.shape), view(after.data(), tensors.shape))
                                : diagnose(tensors.before_view(), tensors.after_view());
    const std::string what =
        fmt::format("{} {} from {}\n{}", to_json(rope), is_narrow ? "bf16" : "f32", how.first, shown(found));
    ASSERT_TRUE(found.best) << what;
    const Rope& best = std::get<Rope>(found.best->scheme);
    EXPECT_EQ(best.layout, rope.layout) << what;
    EXPECT_EQ(best.sign, rope.sign) << what;
    const Rotation one = prepare(best, {.length = how.first + how.sequence});
    const Rotation other = prepare(rope, {.length = how.first + how.sequence});
    bool is_right = best.dims == rope.dims && found.best->first_position == how.first;
    // ntk and a larger base are the same numbers
    for (std::size_t i = 0; is_right && i < one.frequencies.size(); ++i) {
      is_right = std::fabs(radians_of(one.frequencies[i]) / radians_of(other.frequencies[i]) - 1) < 1e-3;
    }
    right += is_right ? 1 : 0;
    sure += found.verdict == Verdict::kSure ? 1 : 0;
    EXPECT_TRUE(found.verdict != Verdict::kSure || is_right) << what;
    EXPECT_TRUE(is_narrow || is_right) << what;
  }
  if (is_sample()) return;  // too few for a rate
  EXPECT_GE(48 * right, 38 * cases) << right << " of " << cases;
  EXPECT_GE(48 * sure, 20 * cases) << sure << " of " << cases;
}

// Positions with three axes: text, an image of 4 x 4, text.
std::vector<std::int64_t> with_an_image(std::int64_t before, std::int64_t after) {
  std::vector<std::int64_t> time, height, width;
  const auto push = [&](std::int64_t t, std::int64_t h, std::int64_t w) {
    time.push_back(t);
    height.push_back(h);
    width.push_back(w);
  };
  for (std::int64_t i = 0; i < before; ++i) push(i, i, i);
  for (std::int64_t i = 0; i < 16; ++i) push(before, before + i / 4, before + i % 4);
  for (std::int64_t i = 0; i < after; ++i) push(before + 4 + i, before + 4 + i, before + 4 + i);
  time.insert(time.end(), height.begin(), height.end());
  time.insert(time.end(), width.begin(), width.end());
  return time;
}

TEST(Diagnose, FindsWhichAxisDrivesWhichPair) {
  const std::vector<std::int64_t> ids = with_an_image(6, 10);
  const Extents shape = {2, 32, 128};
  const std::vector<Rope> ropes = {
      {.dims = 128, .base = 1e6, .sections = {16, 24, 24}},
      {.dims = 128, .base = 5e6, .sections = {24, 20, 20}, .section_order = SectionOrder::kInterleaved},
      {.dims = 64, .base = 10000, .layout = PairLayout::kInterleaved, .sections = {8, 12, 12}},
      {.dims = 128,
       .base = 5e5,
       .layout = PairLayout::kInterleaved,
       .sections = {20, 22, 22},
       .section_order = SectionOrder::kAlternating},
      {.dims = 128, .base = 10000},
  };
  for (const Rope& rope : ropes) {
    Made tensors;
    tensors.shape = shape;
    tensors.before = random_values(static_cast<std::size_t>(count_of(shape)));
    tensors.after = tensors.before;
    const Rotation form = prepare(rope);
    const std::span<const std::int64_t> driven = std::span(ids).first(form.position_axes == 1 ? 32 : 96);
    rotate(view(tensors.after.data(), shape), {.ids = driven, .axes = form.position_axes}, form);
    const Diagnosis found = diagnose(tensors.before_view(), tensors.after_view(), {.positions = ids, .axes = 3});
    ASSERT_TRUE(found.best) << to_json(rope) << '\n' << shown(found);
    EXPECT_EQ(found.best->scheme, Scheme(rope)) << shown(found);
    EXPECT_EQ(found.verdict, Verdict::kSure) << shown(found);
    EXPECT_EQ(found.best->first_position, 0);
  }
}

// Text alone has the same position on all axes: which of them drives a pair cannot be seen, and is not claimed.
TEST(Diagnose, DoesNotGuessAxes) {
  std::vector<std::int64_t> ids;
  for (std::int64_t i = 0; i < 96; ++i) ids.push_back(i % 32);
  const Made tensors = made(Rope{.dims = 128, .base = 1e6}, {.sequence = 32, .features = 128});
  const Diagnosis found = diagnose(tensors.before_view(), tensors.after_view(), {.positions = ids, .axes = 3});
  ASSERT_TRUE(found.best) << shown(found);
  EXPECT_EQ(found.verdict, Verdict::kLikely) << shown(found);
}

// Searched divisors are no formula; but they can be measured.
TEST(Diagnose, MeasuresTheDivisorsOfLongrope) {
  for (const std::int64_t first : {0, 100}) {
    LongropeScaling scaling{.factor = 32, .original_length = 4096};
    for (int i = 0; i < 48; ++i) scaling.short_factors.push_back(1.05 + 0.3 * i + 0.2 * (i % 3));
    scaling.long_factors = scaling.short_factors;
    const Rope rope{.dims = 96, .scaling = scaling};
    const Made tensors = made(rope, {.heads = 2, .sequence = 64, .features = 96, .first = first});
    const Diagnosis found = diagnose(tensors.before_view(), tensors.after_view());
    ASSERT_TRUE(found.best) << shown(found);
    EXPECT_EQ(found.verdict, Verdict::kUnknown) << shown(found);
    const Rope& best = std::get<Rope>(found.best->scheme);
    ASSERT_TRUE(std::holds_alternative<LongropeScaling>(*best.scaling)) << shown(found);
    EXPECT_EQ(best.layout, PairLayout::kHalves);
    EXPECT_EQ(best.dims, 96);
    EXPECT_EQ(found.best->first_position, first) << shown(found);
    EXPECT_NEAR(found.best->magnitude, prepare(rope, {.length = 1}).magnitude, 1e-5);
    const std::vector<double>& divisors = std::get<LongropeScaling>(*best.scaling).short_factors;
    for (std::size_t i = 0; i < 40; ++i) EXPECT_NEAR(divisors[i], scaling.short_factors[i], 1e-2 * divisors[i]) << i;
    for (std::size_t i = 0; i < 24; ++i) EXPECT_NEAR(divisors[i], scaling.short_factors[i], 1e-4 * divisors[i]) << i;
  }
}

TEST(Diagnose, SaysWhenNothingFits) {
  Made tensors = made(Rope{.dims = 64});
  tensors.after = random_values(tensors.before.size(), 99);
  EXPECT_EQ(diagnose(tensors.before_view(), tensors.after_view()).verdict, Verdict::kNone);
  EXPECT_EQ(diagnose(tensors.before_view(), tensors.before_view()).verdict, Verdict::kUnchanged);
  const Made few = made(Rope{.dims = 64}, {.sequence = 3});
  EXPECT_EQ(diagnose(few.before_view(), few.after_view()).verdict, Verdict::kTooLittle);
}

TEST(Diagnose, RefusesWhatItCannotRead) {
  const Made tensors = made(Rope{.dims = 64});
  const auto error_of = [](const auto& call) -> std::string {
    try {
      call();
    } catch (const Error& error) {
      return error.what();
    }
    return "accepted";
  };
  EXPECT_EQ(error_of([&] {
              diagnose(tensors.before_view(), view(tensors.after.data(), {1, 8, 64}));
            }),
            "diagnose: both tensors must have the same shape, but have [1, 16, 64] and [1, 8, 64]");
  EXPECT_EQ(error_of([&] { diagnose(view(tensors.before.data(), {64}), view(tensors.after.data(), {64})); }),
            "diagnose: tensors are [..., sequence, features], not [64]");
  const std::vector<std::int64_t> ids = {0, 1};
  EXPECT_EQ(error_of([&] { diagnose(tensors.before_view(), tensors.after_view(), {.positions = ids}); }),
            "diagnose: there are 16 tokens in a sequence but 2 positions");
  EXPECT_EQ(error_of([&] { diagnose(tensors.before_view(), tensors.after_view(), {.axes = 3}); }),
            "diagnose: positions with several axes must be given");
  EXPECT_EQ(error_of([&] { diagnose(tensors.before_view(), tensors.after_view(), {.positions = ids, .axes = 9}); }),
            "diagnose: 9 axes are not 1 to 8");
}

}  // namespace
}  // namespace posenc::diagnose_test
