#include "posenc/scheme.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "posenc/posenc.h"

namespace posenc::scheme_test {
namespace {

std::string message_of(void (*call)()) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

TEST(Scheme, IsFoundByName) {
  for (const std::string_view name : scheme_names()) EXPECT_EQ(name_of(scheme_named(name)), name);
}

TEST(Scheme, SuggestsTheNearestName) {
  EXPECT_EQ(message_of([] { scheme_named("sinusodal"); }), "unknown scheme 'sinusodal' (did you mean 'sinusoidal'?)");
  EXPECT_EQ(message_of([] { scheme_named("sinus"); }), "unknown scheme 'sinus' (did you mean 'sinusoidal'?)");
  EXPECT_EQ(message_of([] { scheme_named("learnt"); }), "unknown scheme 'learnt' (did you mean 'learned'?)");
  EXPECT_EQ(message_of([] { scheme_named("xyzzyxyzzy"); }),
            fmt::format("unknown scheme 'xyzzyxyzzy' (choose from: {})", fmt::join(scheme_names(), ", ")));
}

// A third of the letters may be wrong.
TEST(Scheme, SuggestsNothingThatIsFarAway) {
  EXPECT_EQ(nearest_name("abcdef", {"abcdyz"}), "abcdyz");
  EXPECT_EQ(nearest_name("abcdef", {"abcxyz"}), "");
}

TEST(Scheme, NonePreparesToNothing) { EXPECT_TRUE(std::holds_alternative<Nothing>(prepare(Scheme(None{})))); }

TEST(Learned, NeedsTheCallersTable) {
  EXPECT_EQ(message_of([] { prepare(Learned{.rows = 4, .width = 2}); }),
            "learned: the trained table [4, 2] is missing: pass it as weights");
  EXPECT_EQ(message_of([] {
              const float table[6] = {};
              prepare(Learned{.rows = 4, .width = 2}, {.weights = view(table, {3, 2})});
            }),
            "learned: the table must be [4, 2] but is [3, 2]");
  EXPECT_EQ(message_of([] { prepare(Learned{.rows = 4, .width = 2, .offset = 4}); }),
            "learned: offset must be between 0 and 3 but is 4");
}

TEST(BadIdeas, AreWhatTheyAreSaidToBe) {
  std::vector<double> steps(3 * 4), shift(3 * 4);
  tabulate(view(steps.data(), {3, 4}), {.first = 1}, prepare(Steps{.width = 4}));
  tabulate(view(shift.data(), {3, 4}), {}, prepare(Shift{.width = 4, .seed = 42}));
  EXPECT_DOUBLE_EQ(steps[0], 0.0001);
  EXPECT_DOUBLE_EQ(steps[4], 0.0002);
  EXPECT_EQ(steps[8], steps[11]);
  for (std::size_t c = 0; c < 4; ++c) {
    EXPECT_GE(shift[c], -1);
    EXPECT_LT(shift[c], 1);
    EXPECT_NEAR(shift[4 + c] - shift[c], 0.02, 1e-15);
  }
  EXPECT_NE(shift[0], shift[1]);
}

TEST(Positions, PackMaskAndGrid) {
  using List = std::vector<std::int64_t>;
  EXPECT_EQ(packed_positions(List{3, 0, 2}), (List{0, 1, 2, 0, 1}));
  EXPECT_EQ(positions_from_mask(List{0, 0, 1, 1, 1, 1, 0, 0}, {.batch = 2}), (List{1, 1, 0, 1, 0, 1, 1, 1}));
  EXPECT_EQ(positions_from_mask(List{1, 1, 0}, {.rule = MaskRule::kRoberta}), (List{2, 3, 1}));
  EXPECT_EQ(grid_positions(List{2, 3}), (List{0, 0, 0, 1, 1, 1, 0, 1, 2, 0, 1, 2}));
  EXPECT_EQ(grid_positions(List{1, 2, 2}), (List{0, 0, 0, 0, 0, 0, 1, 1, 0, 1, 0, 1}));
  EXPECT_EQ(grid_positions(List{0, 5}), List{});
  EXPECT_EQ(message_of([] {
              packed_positions(List{2, -1});
            }),
            "packed_positions: length 1 must not be negative but is -1");
  EXPECT_EQ(message_of([] {
              positions_from_mask(List{1, 1, 1}, {.batch = 2});
            }),
            "positions_from_mask: a mask of 3 values does not divide into 2 rows");
  EXPECT_EQ(message_of([] {
              grid_positions(List{1ll << 40, 1ll << 40});
            }),
            "grid_positions: the grid has more than 9007199254740992 cells");
}

}  // namespace
}  // namespace posenc::scheme_test
