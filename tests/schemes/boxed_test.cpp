#include <gtest/gtest.h>

#include <utility>

#include "posenc/schemes/rope.h"

namespace posenc::boxed_test {
namespace {

TEST(Boxed, IsAValue) {
  const YarnScaling yarn{.factor = 4};
  Boxed<RopeScaling> none, scaling = yarn;
  EXPECT_TRUE(std::holds_alternative<NoScaling>(*std::as_const(none)));
  EXPECT_EQ(none, NoScaling{});
  EXPECT_EQ(std::get<YarnScaling>(*scaling), yarn);
  EXPECT_NE(scaling, none);
  EXPECT_NE(scaling, YarnScaling{.factor = 8});

  Boxed<RopeScaling> copy = scaling;
  std::get<YarnScaling>(*copy).factor = 8;
  EXPECT_EQ(scaling, yarn);
  EXPECT_EQ(copy, YarnScaling{.factor = 8});
  copy = scaling;
  EXPECT_EQ(copy, yarn);
  Boxed<RopeScaling>& same = copy;
  copy = same;
  EXPECT_EQ(copy, yarn);
  const Boxed<RopeScaling> moved = std::move(copy);
  EXPECT_EQ(moved, yarn);
  copy = LinearScaling{.factor = 2};
  EXPECT_EQ(copy->index(), RopeScaling(LinearScaling{}).index());
  copy = none;
  EXPECT_EQ(copy, none);
  *none = yarn;  // what is written to none stays its own
  EXPECT_EQ(none, yarn);
  EXPECT_EQ(Boxed<RopeScaling>(), NoScaling{});
  EXPECT_EQ(scaling->index(), RopeScaling(YarnScaling{}).index());
  scaling.reset();
  EXPECT_FALSE(scaling);
}

TEST(Boxed, ItsOwnerIsOneToo) {
  const Rope rope{.dims = 64, .scaling = LinearScaling{.factor = 2}};
  Rope other = rope;
  EXPECT_EQ(other, rope);
  other.scaling = LinearScaling{.factor = 3};
  EXPECT_NE(other, rope);
  EXPECT_EQ(rope.scaling, RopeScaling(LinearScaling{.factor = 2}));
}

}  // namespace
}  // namespace posenc::boxed_test
