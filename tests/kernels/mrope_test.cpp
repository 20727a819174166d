// Positions of text, images and videos, against get_rope_index of transformers 5.16 worked out by hand.

#include "posenc/mrope.h"

#include <gtest/gtest.h>

#include <string>

#include "posenc/error.h"

namespace posenc::mrope_test {
namespace {

using Ids = std::vector<std::int64_t>;

TEST(Mrope, TextIsTheSameOnAllAxes) {
  const std::vector<MropePiece> pieces = {{.text = 3}};
  const MropePositions made = mrope_positions(pieces, {.first = 7});
  EXPECT_EQ(made.ids, (Ids{7, 8, 9, 7, 8, 9, 7, 8, 9}));
  EXPECT_EQ(made.next, 10);
  EXPECT_EQ(mrope_positions({}, {.first = 7}).next, 7);
}

// 2 tokens, an image of 4 x 6 patches (2 x 3 tokens), 2 tokens.
TEST(Mrope, AnImageIsAGrid) {
  const std::vector<MropePiece> pieces = {{.text = 2}, {.frames = 1, .rows = 4, .columns = 6}, {.text = 2}};
  const MropePositions made = mrope_positions(pieces);
  EXPECT_EQ(made.tokens, 10);
  EXPECT_EQ(made.ids, (Ids{0, 1, 2, 2, 2, 2, 2, 2, 5, 6,  //
                           0, 1, 2, 2, 2, 3, 3, 3, 5, 6,  //
                           0, 1, 2, 3, 4, 2, 3, 4, 5, 6}));
  EXPECT_EQ(made.next, 7);
}

// Two frames 50 positions apart: text goes on past the grid, or past the last frame; generation past the largest.
TEST(Mrope, AVideoHasTime) {
  const std::vector<MropePiece> pieces = {
      {.text = 1}, {.frames = 2, .rows = 2, .columns = 2, .time_step = 50}, {.text = 1}};
  const MropePositions made = mrope_positions(pieces, {.merge = 1});
  EXPECT_EQ(made.ids, (Ids{0, 1, 1, 1, 1, 51, 51, 51, 51, 3,  //
                           0, 1, 1, 2, 2, 1,  1,  2,  2,  3,  //
                           0, 1, 2, 1, 2, 1,  2,  1,  2,  3}));
  EXPECT_EQ(made.next, 52);
  const MropePositions other = mrope_positions(pieces, {.merge = 1, .advance = MropeAdvance::kLargest});
  EXPECT_EQ(other.ids[9], 52);
  EXPECT_EQ(other.next, 53);
}

TEST(Mrope, SaysWhatIsWrong) {
  const auto refusal = [](const MropePiece& piece, const MropeOptions& options = {}) -> std::string {
    try {
      const std::vector<MropePiece> pieces = {piece};
      mrope_positions(pieces, options);
      return "accepted";
    } catch (const Error& error) {
      return error.what();
    }
  };
  EXPECT_EQ(refusal({.text = 1, .seconds = 1}), "mrope: seconds and sound belong to a grid, not to text");
  EXPECT_EQ(refusal({.frames = 1, .rows = 2, .columns = 2, .seconds = -1}),
            "mrope: seconds must be between 0 and 1e6 but is -1");
  EXPECT_EQ(refusal({.frames = 1, .rows = 2, .columns = 2, .sound = -1}),
            "mrope: sound must be between 0 and 2^20 tokens but is -1");
  EXPECT_EQ(refusal({.text = 1}, {.rate = 0}), "mrope: rate and chunk must be between 1 and 2^20 but are 0 and 50");
  EXPECT_EQ(refusal({}), "mrope: a piece must be text or a grid but has 0 tokens of text and extents 0, 0, 0");
  EXPECT_EQ(refusal({.text = 1, .frames = 1, .rows = 2, .columns = 2}),
            "mrope: a piece must be text or a grid but has 1 tokens of text and extents 1, 2, 2");
  EXPECT_EQ(refusal({.frames = 1, .rows = 3, .columns = 2}),
            "mrope: rows and columns must be multiples of merge, 2, but one is 3");
  EXPECT_EQ(refusal({.text = 1}, {.merge = 0}), "mrope: merge must be 1 or more but is 0");
  EXPECT_EQ(refusal({.text = 2}, {.first = (std::int64_t{1} << 53) - 1}),
            "mrope: position 9007199254740992 is outside 0 to 2^53 - 1");
  EXPECT_EQ(refusal({.text = 1}, {.first = (std::int64_t{1} << 53) - 1}), "accepted");
  EXPECT_EQ(refusal({.frames = 1, .rows = 2, .columns = 2, .time_step = -1}),
            "mrope: time_step must be between 0 and 2^20 but is -1");
}

}  // namespace
}  // namespace posenc::mrope_test
