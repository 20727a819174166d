#include <gtest/gtest.h>

#include <cmath>

#include "posenc/posenc.h"
#include "schemes/golden_array.h"

namespace posenc::sandwich_test {
namespace {

using tests::refusal;

// The published recipe: the dot product of two sinusoidal vectors, over 8(h+1)/heads.
TEST(Sandwich, IsTheDotProductOfSinusoids) {
  const std::int64_t heads = 3, dims = 16, tokens = 40;
  std::vector<double> table(static_cast<std::size_t>(tokens * dims));
  tabulate(view(table.data(), {tokens, dims}), {}, prepare(Sinusoidal{.width = dims}));
  std::vector<double> out(static_cast<std::size_t>(heads * tokens * tokens));
  bias(view(out.data(), {heads, tokens, tokens}), {}, {},
       prepare(Sandwich{.heads = heads, .dims = dims}, {.length = tokens}));
  for (std::int64_t h = 0; h < heads; ++h) {
    for (std::int64_t m = 0; m < tokens; ++m) {
      for (std::int64_t n = 0; n < tokens; ++n) {
        double dot = 0;
        for (std::int64_t c = 0; c < dims; ++c) {
          dot += table[static_cast<std::size_t>(m * dims + c)] * table[static_cast<std::size_t>(n * dims + c)];
        }
        const double ratio = 8.0 * static_cast<double>(h + 1) / static_cast<double>(heads);
        ASSERT_NEAR(out[static_cast<std::size_t>((h * tokens + m) * tokens + n)], dot / ratio, 1e-13);
      }
    }
  }
}

TEST(Sandwich, SaysWhatIsWrong) {
  const auto message = [](const Sandwich& scheme, std::int64_t length) {
    return refusal([&] { prepare(scheme, {.length = length}); });
  };
  EXPECT_EQ(message({}, 0),
            "sandwich: the length is missing; its values are made for distances below it (PrepareOptions::length)");
  EXPECT_EQ(message({.heads = 0}, 4), "sandwich: heads must be between 1 and 65536 but is 0");
  EXPECT_EQ(message({.dims = 7}, 4), "sandwich: dims must be even but is 7");
  EXPECT_EQ(message({.base = std::nan("")}, 4), "sandwich: base must be between 1 and 1e36 but is nan");
}

}  // namespace
}  // namespace posenc::sandwich_test
