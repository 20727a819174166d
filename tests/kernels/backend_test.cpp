#include "posenc/backend.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "posenc/error.h"

namespace posenc::backend_test {
namespace {

// A readable view of a tensor on a GPU is on that GPU: calls take one for the other without a word.
TEST(TensorViews, AReadableOneKeepsItsDevice) {
  float x[6] = {};
  const TensorView writable = swap_axes(on(Device::kCuda, view(x, {2, 3})), 0, 1);
  const ConstTensorView readable = writable;
  EXPECT_EQ(readable.device, Device::kCuda);
  EXPECT_EQ(readable.data, writable.data);
  EXPECT_EQ(readable.type, writable.type);
  EXPECT_EQ(readable.shape, writable.shape);
  EXPECT_EQ(readable.strides, writable.strides);
  EXPECT_EQ(ConstTensorView(view(x, {2, 3})).device, Device::kHost);
}

TEST(TensorViews, ASliceIsAPartOfAnAxis) {
  float x[24] = {};
  const TensorView whole = swap_axes(view(x, {2, 3, 4}), 0, 1);  // [3, 2, 4]
  const TensorView part = slice(whole, 0, 1, 2);
  EXPECT_EQ(part.data, x + 4);
  EXPECT_EQ(part.shape, (Extents{2, 2, 4}));
  EXPECT_EQ(part.strides, whole.strides);
  const ConstTensorView readable = slice(ConstTensorView(on(Device::kCuda, part)), 2, 3, 1);
  EXPECT_EQ(readable.data, x + 7);
  EXPECT_EQ(readable.device, Device::kCuda);
  EXPECT_EQ(slice(whole, 1, 2, 0).shape, (Extents{3, 0, 4}));
  const auto refusal_of = [&](int axis, std::int64_t first, std::int64_t count) -> std::string {
    try {
      slice(whole, axis, first, count);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(refusal_of(3, 0, 1), "slice: the tensor has 3 axes, so there is no axis 3");
  EXPECT_EQ(refusal_of(-1, 0, 1), "slice: the tensor has 3 axes, so there is no axis -1");
  EXPECT_EQ(refusal_of(0, 2, 2), "slice: axis 0 has 3 entries; 2 from entry 2 on are out of range");
  EXPECT_EQ(refusal_of(0, -1, 1), "slice: axis 0 has 3 entries; 1 from entry -1 on are out of range");
  EXPECT_NE(refusal_of(0, INT64_MAX, 1), "");
  EXPECT_NE(refusal_of(0, 1, INT64_MAX), "");
}

TEST(Backend, CanBeForcedAndGivenBack) {
  const auto names = backends();
  EXPECT_NE(std::find(names.begin(), names.end(), "reference"), names.end());
  force_backend("reference");
  EXPECT_EQ(backend(), "reference");
  force_backend("");
  EXPECT_EQ(backend(), backends().front());
  EXPECT_THROW(force_backend("gpu"), Error);
}

TEST(Backend, FollowsTheEnvironment) {
  setenv("POSENC_BACKEND", "reference", 1);
  EXPECT_EQ(backend(), "reference");
  setenv("POSENC_BACKEND", "abacus", 1);
  EXPECT_THROW(backend(), Error);
  unsetenv("POSENC_BACKEND");
  setenv("POSENC_THREADS", "3", 1);
  EXPECT_EQ(threads(), 3);
  setenv("POSENC_THREADS", "many", 1);
  EXPECT_THROW(threads(), Error);
  unsetenv("POSENC_THREADS");
  EXPECT_GE(threads(), 1);
  EXPECT_THROW(set_threads(-1), Error);
}

TEST(Backend, ListsSimdTargets) {
  const auto targets = simd_targets();
  ASSERT_FALSE(targets.empty());
  force_simd_target(targets.back());
  EXPECT_EQ(simd_targets(), targets) << "a forced target must not hide the others";
  force_simd_target("");
  EXPECT_THROW(force_simd_target("MMX"), Error);
}

}  // namespace
}  // namespace posenc::backend_test
