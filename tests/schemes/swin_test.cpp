#include <gtest/gtest.h>

#include "backends.h"
#include "posenc/posenc.h"
#include "schemes/golden_array.h"

namespace posenc::swin_test {
namespace {

using tests::refusal;

// The published recipe: (m_h − n_h + H − 1)·(2W − 1) + (m_w − n_w + W − 1).
TEST(Swin, ReadsTheRowOfTheOffset) {
  const std::int64_t height = 3, width = 4, tokens = height * width, rows = 5 * 7, heads = 2;
  std::vector<float> table(rows * heads);
  for (std::size_t i = 0; i < table.size(); ++i) table[i] = static_cast<float>(i);
  const Bias form =
      prepare(Swin{.heads = heads, .window = {height, width}}, {.weights = view(table.data(), {rows, heads})});
  const std::vector<std::int64_t> extents = {height, width};
  const auto ids = grid_positions(extents);
  tests::for_each_engine([&] {
    std::vector<float> out(heads * tokens * tokens);
    bias(view(out.data(), {heads, tokens, tokens}), {.ids = ids, .axes = 2}, {.ids = ids, .axes = 2}, form);
    for (std::int64_t h = 0; h < heads; ++h) {
      for (std::int64_t m = 0; m < tokens; ++m) {
        for (std::int64_t n = 0; n < tokens; ++n) {
          const std::int64_t row = (m / width - n / width + height - 1) * 7 + (m % width - n % width + width - 1);
          ASSERT_EQ(out[static_cast<std::size_t>((h * tokens + m) * tokens + n)],
                    static_cast<float>(row * heads + h));
        }
      }
    }
  });
}

TEST(Swin, SaysWhatIsWrong) {
  const std::vector<float> table(169 * 4);
  const auto message = [&](const Swin& scheme, const Extents& shape) {
    return refusal([&] { prepare(scheme, {.weights = view(table.data(), shape)}); });
  };
  EXPECT_EQ(message({}, {169, 4}), "accepted");
  EXPECT_EQ(message({}, {168, 4}), "swin: the table must be [169, 4] but is [168, 4]");
  EXPECT_EQ(message({.heads = 0}, {169, 4}), "swin: heads must be between 1 and 65536 but is 0");
  EXPECT_EQ(message({.window = {}}, {169, 4}), "swin: number of extents of window must be between 1 and 3 but is 0");
  EXPECT_EQ(message({.window = {7, 0}}, {169, 4}), "swin: extents of window must be between 1 and 4096 but is 0");
  const std::vector<std::int64_t> extents = {8, 1};
  const auto ids = grid_positions(extents);
  const Positions far{.ids = ids, .axes = 2};
  EXPECT_EQ(refusal([&] {
              std::vector<float> out(4 * 8 * 8);
              bias(view(out.data(), {4, 8, 8}), far, far, prepare(Swin{}, {.weights = view(table.data(), {169, 4})}));
            }),
            "bias: key offset -7 is outside -6 to 6, which the form was prepared for");
}

}  // namespace
}  // namespace posenc::swin_test
