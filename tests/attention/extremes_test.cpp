// Numbers that no program means: each is an error of one line, and none is computed with.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "message_of.h"
#include "posenc/apply.h"
#include "posenc/attention.h"
#include "posenc/cache.h"
#include "posenc/error.h"
#include "posenc/schemes/rope.h"

namespace posenc::extremes_test {
namespace {

using tests::message_of;
constexpr std::int64_t kHuge = std::int64_t{1} << 62;

struct Tensors {
  std::vector<float> in = std::vector<float>(64, 0.5f), out = std::vector<float>(64, 7.0f);
  const Extents shape = {1, 2, 3, 4};
  ConstTensorView q() const { return view(in.data(), shape); }
  std::string attend(const TensorView& to, const ConstTensorView& q, const AttentionOptions& options = {}) {
    const std::string said = message_of([&] { attention(to, q, this->q(), this->q(), options); });
    EXPECT_EQ(out, std::vector<float>(64, 7.0f));
    return said;
  }
  std::string attend(const ConstTensorView& q, const AttentionOptions& options = {}) {
    return attend(view(out.data(), shape), q, options);
  }
};

TEST(Extremes, StridesPastMemory) {
  Tensors x;
  for (const std::int64_t stride : {kHuge, -kHuge, std::int64_t{1} << 61, std::int64_t{1} << 59}) {
    ConstTensorView q = x.q();
    q.strides[1] = q.strides[2] = stride;
    EXPECT_EQ(x.attend(q),
              "attention: q has strides past the end of memory: shape [1, 2, 3, 4], strides " + to_string(q.strides));
    const TensorView own(x.out.data(), DataType::kF32, q.shape, q.strides);
    EXPECT_EQ(message_of([&] { rotate(own, {}, prepare(Rope{.dims = 4})); }),
              "rotate: x has strides past the end of memory: shape [1, 2, 3, 4], strides " + to_string(q.strides));
  }
  ConstTensorView mask = x.q();
  mask.shape = {3, 3}, mask.strides = {kHuge, 1};
  EXPECT_EQ(x.attend(x.q(), {.mask = mask}),
            "attention: mask has strides past the end of memory: shape [3, 3], strides [4611686018427387904, 1]");
  ConstTensorView one = x.q();  // the stride of an axis with one entry is never taken
  one.strides[0] = kHuge;
  EXPECT_EQ(message_of([&] { attention(view(x.out.data(), x.shape), one, x.q(), x.q()); }), "accepted");
}

TEST(Extremes, TypesAndDevicesThatAreNone) {
  Tensors x;
  ConstTensorView q = x.q();
  q.type = static_cast<DataType>(77);
  EXPECT_EQ(x.attend(q), "attention: q must be f32, f64, f16 or bf16 but is unknown");
  EXPECT_EQ(x.attend(x.q(), {.mask = ConstTensorView(x.in.data(), static_cast<DataType>(77), {3, 3})}),
            "attention: mask must be bool or floating-point but is unknown");
  EXPECT_EQ(name_of(static_cast<DataType>(77)), "unknown");
  EXPECT_EQ(name_of(DataType::kBool), "bool");
  q = on(static_cast<Device>(7), x.q());
  EXPECT_EQ(x.attend(q), "attention: q is on a device with the number 7, which is none");
  EXPECT_EQ(name_of(static_cast<Device>(7)), "unknown");
}

TEST(Extremes, AxesThatATensorDoesNotHave) {
  Tensors x;
  EXPECT_EQ(message_of([&] { swap_axes(x.q(), 0, 9); }), "swap_axes: the tensor has 4 axes, so there is no axis 9");
  EXPECT_EQ(message_of([&] { swap_axes(x.q(), -1, 0); }), "swap_axes: the tensor has 4 axes, so there is no axis -1");
  EXPECT_EQ(message_of([&] { swap_axes(x.q(), 4, 0); }), "swap_axes: the tensor has 4 axes, so there is no axis 4");
  EXPECT_EQ(swap_axes(x.q(), 0, 3).shape, (Extents{4, 2, 3, 1}));
  EXPECT_EQ(x.attend(x.q(), {.axes = static_cast<Axes>(99)}),
            "attention: there is no order of axes with the number 99");
  EXPECT_EQ(message_of([&] { heads_first(x.q(), static_cast<Axes>(5)); }),
            "axes: there is no order of axes with the number 5");
  EXPECT_EQ(name_of(static_cast<Axes>(5)), "unknown");
}

TEST(Extremes, SlotsPastAnyCache) {
  const std::vector<std::int32_t> pages = {0, 3};
  EXPECT_EQ(message_of([&] { slots_of(pages, kHuge, 0, 2); }), "accepted");  // of page 0
  const std::vector<std::int32_t> third = {3};
  EXPECT_EQ(message_of([&] { slots_of(third, kHuge, 0, 2); }),
            "slots_of: page 3 of 4611686018427387904 tokens has slots past 2^53");
  const std::vector<std::int32_t> last = {2147483647};
  EXPECT_EQ(message_of([&] { slots_of(last, std::int64_t{1} << 23, 0, 1); }),
            "slots_of: page 2147483647 of 8388608 tokens has slots past 2^53");
  EXPECT_EQ(slots_of(last, std::int64_t{1} << 22, 1, 1), (std::vector<std::int64_t>{(2147483647LL << 22) + 1}));
}

TEST(Extremes, APageThatAWiderTableCouldHaveHad) {
  Tensors x;
  const std::vector<std::int32_t> table = {2147483647};
  const std::vector<std::int64_t> lengths = {3};
  EXPECT_EQ(x.attend(x.q(), {.key_lengths = lengths, .block_table = table}),
            "attention: block_table names page 2147483647 or more but there are 1");
}

}  // namespace
}  // namespace posenc::extremes_test
