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
