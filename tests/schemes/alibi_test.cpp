#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "backends.h"
#include "posenc/posenc.h"
#include "schemes/golden_array.h"

namespace posenc {
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

// BLOOM: slope·j, so differences of neighbours are slopes. Its float32 powers are what the last digits differ by.
TEST(Alibi, BloomsBias) {
  const auto heads = golden_values<std::int64_t>("alibi-bloom-heads");
  const auto bias_rows = golden_values<float>("alibi-bloom-bias");
  std::size_t at = 0;
  double largest = 0;
  for (const std::int64_t count : heads) {
    for (const double slope : slopes_of({.heads = count})) {
      for (std::size_t j = 0; j < 20; ++j, ++at) {
        const double want = slope * static_cast<double>(j);
        if (j > 0) largest = std::max(largest, std::fabs(static_cast<double>(bias_rows[at]) - want) / want);
      }
    }
  }
  EXPECT_EQ(at, bias_rows.size());
  RecordProperty("largest_relative_difference", std::to_string(largest));
  EXPECT_LE(largest, 1e-7) << largest;
}

TEST(Alibi, MptsBiasIsThatOfTheLastQuery) {
  for (const std::int64_t heads : {8, 12, 16}) {
    const auto want = golden_values<float>("alibi-mpt-" + std::to_string(heads) + "-bias");
    tests::for_each_engine([&] {
      std::vector<float> out(want.size());
      bias(view(out.data(), {heads, 1, 20}), {.first = 19}, {}, prepare(Alibi{.heads = heads}));
      for (std::size_t i = 0; i < out.size(); ++i) ASSERT_NEAR(out[i], want[i], std::fabs(want[i]) * 1e-7f) << i;
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
}  // namespace posenc
