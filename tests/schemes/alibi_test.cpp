#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "backends.h"
#include "posenc/posenc.h"
#include "schemes/golden_array.h"

namespace posenc::alibi_test {
namespace {

using tests::golden_values;
using tests::refusal;

std::vector<double> slopes_of(const Alibi& scheme) { return std::get<Slopes>(prepare(scheme).source).slopes; }

TEST(Alibi, SlopesOfAPowerOfTwoHalve) {
  EXPECT_EQ(slopes_of({.heads = 8}),
            (std::vector<double>{0x1p-1, 0x1p-2, 0x1p-3, 0x1p-4, 0x1p-5, 0x1p-6, 0x1p-7, 0x1p-8}));
  EXPECT_EQ(slopes_of({.heads = 1}), std::vector<double>{0x1p-8});
  EXPECT_EQ(slopes_of({.heads = 2, .max_bias = 4}), (std::vector<double>{0x1p-2, 0x1p-4}));
}

TEST(Alibi, HeadsPastThePowerOfTwoStandBetween) {
  const auto slopes = slopes_of({.heads = 12});
  for (int h = 0; h < 8; ++h) EXPECT_EQ(slopes[static_cast<std::size_t>(h)], std::exp2(-h - 1));
  for (int h = 8; h < 12; ++h) {
    EXPECT_DOUBLE_EQ(slopes[static_cast<std::size_t>(h)], std::exp2(-0.5 * (2 * (h - 8) + 1)));
  }
}

TEST(Alibi, FalconRoundsSlopesAndThenDivides) {
  const auto slopes = slopes_of({.heads = 71, .scale = 0.125, .round_bf16 = true});
  const auto whole = slopes_of({.heads = 71});
  for (std::size_t h = 0; h < 71; ++h) {
    const double back = slopes[h] * 8;
    EXPECT_NEAR(back, whole[h], whole[h] * 0x1p-8);
    int exponent = 0;
    const double mantissa = std::frexp(back, &exponent) * 256;  // bf16 has 8 significant bits
    EXPECT_EQ(mantissa, std::floor(mantissa));
  }
}

// BLOOM writes slope·j. It raises a rounded slope to powers in float32, which loses up to 5e-7; hf-f32 repeats that.
struct Difference {
  double largest = 0;          // relative
  std::int64_t differing = 0;  // slopes that are not the same float
};
Difference difference_from_bloom(Numerics numerics) {
  const auto heads = golden_values<std::int64_t>("alibi-bloom-heads");
  const auto rows = golden_values<float>("alibi-bloom-bias");
  std::size_t at = 0;
  Difference difference;
  for (const std::int64_t count : heads) {
    const Bias form = prepare(Alibi{.heads = count}, {.numerics = numerics});
    for (const double slope : std::get<Slopes>(form.source).slopes) {
      const auto want = static_cast<double>(rows[at + 1]);
      difference.largest = std::max(difference.largest, std::fabs(slope - want) / want);
      if (static_cast<float>(slope) != rows[at + 1]) ++difference.differing;
      for (std::size_t j = 0; j < 20; ++j, ++at) {
        // the product is rounded to float32 once more
        const double product = want * static_cast<double>(j);
        EXPECT_NEAR(static_cast<double>(rows[at]), product, product * 1e-7);
      }
    }
  }
  EXPECT_EQ(at, 845 * 20u);
  return difference;
}
TEST(Alibi, BloomsSlopes) {
  EXPECT_LE(difference_from_bloom(Numerics::kExact).largest, 5e-7);
  // torch's power is one ulp off at head 14 of 32 to 40 heads, and nowhere else
  const Difference repeated = difference_from_bloom(Numerics::kHfF32);
  EXPECT_EQ(repeated.differing, 9);
  EXPECT_LE(repeated.largest, 1.01e-7);
}

TEST(Alibi, MptsBiasIsThatOfTheLastQuery) {
  for (const std::int64_t heads : {8, 12, 16}) {
    const auto want = golden_values<float>("alibi-mpt-" + std::to_string(heads) + "-bias");
    tests::for_each_engine([&] {
      std::vector<float> out(want.size());
      bias(view(out.data(), {heads, 1, 20}), {.first = 19}, {}, prepare(Alibi{.heads = heads}));
      for (std::size_t i = 0; i < out.size(); ++i) {
        // slope and product are rounded to float32 in turn; the last but one is the slope itself
        const float budget = i % 20 == 18 ? 1e-7f : 1.2e-7f;
        ASSERT_NEAR(out[i], want[i], std::fabs(want[i]) * budget) << i;
      }
    });
  }
}

TEST(Alibi, SaysWhatIsWrong) {
  const double nan = std::nan(""), inf = std::numeric_limits<double>::infinity();
  const auto message = [](const Alibi& scheme) { return refusal([&] { prepare(scheme); }); };
  EXPECT_EQ(message({.heads = 0}), "alibi: heads must be between 1 and 65536 but is 0");
  EXPECT_EQ(message({.heads = -3}), "alibi: heads must be between 1 and 65536 but is -3");
  EXPECT_EQ(message({.max_bias = 0}), "alibi: max_bias must be above 0 and at most 1000 but is 0");
  EXPECT_EQ(message({.max_bias = nan}), "alibi: max_bias must be above 0 and at most 1000 but is nan");
  EXPECT_EQ(message({.scale = inf}), "alibi: scale must be at least 0 and finite but is inf");
  EXPECT_EQ(message({.scale = -1}), "alibi: scale must be at least 0 and finite but is -1");
}

}  // namespace
}  // namespace posenc::alibi_test
