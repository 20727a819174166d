// Slots on a GPU that would lead outside of the cache, or are given twice: never another write than those of their tokens.

#include <gtest/gtest.h>

#include <cstdint>

#if POSENC_CUDA
#include "kernels/cuda/module.h"
#endif
#include "kernels/cuda_values.h"
#include "posenc/cuda.h"
#include "posenc/posenc.h"

namespace posenc::cuda_slots_faults_test {
namespace {

using tests::expect_same_bytes;
using tests::message_of;
using tests::random_values;

constexpr std::int64_t kPage = 16;

// Slots past the end skip their tokens, and the next wait says so. Nothing around the cache is written.
template <class T> void expect_no_wild_write(std::int64_t features, [[maybe_unused]] std::string_view kernel) {
  constexpr std::int64_t kPages = 4, kHeads = 2, kGuard = 1 << 20;
  const std::int64_t row = kHeads * features, tokens = 6;
  const std::int64_t size = kPages * kPage * row;
  const auto before = random_values<T>(size + 2 * kGuard, 1);
  const auto k = random_values<T>(tokens * row, 2);
  const Rotation form = prepare(Rope{.dims = 16});
  const std::vector<std::int64_t> good = {5, -1, -1, 0, -1, 63};
  std::vector<T> want = before;
  const auto cache_in = [&](T* data) {
    return swap_axes(TensorView(data + kGuard, data_type_of<T>(), {kPages, kPage, kHeads, features}), 1, 2);
  };
  const auto tokens_in = [&](const T* data) {
    return swap_axes(ConstTensorView(data, data_type_of<T>(), {tokens, kHeads, features}), 0, 1);
  };
  rotate_into(cache_in(want.data()), good, tokens_in(k.data()), {.first = 3}, form);
  const cuda::Memory memory = cuda::memory_of(before), gpu_k = cuda::memory_of(k);
  const auto written = [&](const Slots& slots) {
#if POSENC_CUDA
    const kernels::cuda::ListKernels listed;
#endif
    rotate_into(on(Device::kCuda, cache_in(memory.as<T>())), slots, on(Device::kCuda, tokens_in(gpu_k.as<T>())),
                {.first = 3}, form);
#if POSENC_CUDA
    ASSERT_EQ(listed.names().size(), 1u);
    EXPECT_TRUE(listed.names()[0].starts_with(kernel)) << listed.names()[0];
#endif
  };
  for (const std::int64_t bad : {std::int64_t{64}, std::int64_t{1} << 31, (std::int64_t{1} << 32) + 1,
                                 std::int64_t{1} << 40, INT64_MAX, INT64_MIN}) {
    std::vector<std::int64_t> slots = good;
    slots[1] = slots[4] = bad;
    const cuda::Memory gpu_slots = cuda::memory_of(slots);
    written({std::span(gpu_slots.as<const std::int64_t>(), slots.size()), Device::kCuda});
    const std::string message = message_of([] { synchronize(); });
    const std::string wanted = "cuda: slot " + std::to_string(bad) +
                               " is past the end of the cache, which has 64 slots; its token was skipped";
    EXPECT_EQ(message, bad < 0 ? "accepted" : wanted);
    EXPECT_EQ(message_of([] { synchronize(); }), "accepted") << "said once";
    expect_same_bytes(memory.values<T>(before.size()), want, "the cache and what is around it");
    // Moving: neither side may be outside.
    const TensorView cache = on(Device::kCuda, cache_in(memory.as<T>()));
    const std::vector<std::int64_t> others = {-1, 7, bad, -1, 9, bad};
    const cuda::Memory gpu_others = cuda::memory_of(others);
    copy_slots(cache, {std::span(gpu_slots.as<const std::int64_t>(), 6), Device::kCuda},
               {std::span(gpu_others.as<const std::int64_t>(), 6), Device::kCuda});
    EXPECT_EQ(message_of([] { synchronize(); }), bad < 0 ? "accepted" : wanted);
    shift(cache, {std::span(gpu_others.as<const std::int64_t>() + 2, 1), Device::kCuda}, 64, form);
    EXPECT_EQ(message_of([] { synchronize(); }), bad < 0 ? "accepted" : wanted);
    expect_same_bytes(memory.values<T>(before.size()), want, "after moves that lead nowhere");
  }
  // Of 32 bits.
  const std::vector<std::int32_t> narrow = {5, 64, INT32_MAX, 0, INT32_MIN, 63};
  const cuda::Memory gpu_narrow = cuda::memory_of(narrow);
  written({std::span(gpu_narrow.as<const std::int32_t>(), narrow.size()), Device::kCuda});
  EXPECT_NE(message_of([] { synchronize(); }), "accepted");
  expect_same_bytes(memory.values<T>(before.size()), want, "32-bit slots");
}
TEST(CudaSlotFaults, OutsideTheCacheAreAnErrorOfTheNextWait) {
  SKIP_WITHOUT_CUDA();
  expect_no_wild_write<BFloat16>(64, "append_vectors");
  expect_no_wild_write<float>(30, "rotate_any");
}

TEST(CudaSlotFaults, OnTheHostAreCheckedAtTheCall) {
  SKIP_WITHOUT_CUDA();
  const auto values = random_values<float>(4 * 16 * 2 * 32, 1);
  const cuda::Memory memory = cuda::memory_of(values), tokens = cuda::memory_of(random_values<float>(3 * 2 * 32, 2));
  const TensorView cache =
      swap_axes(on(Device::kCuda, TensorView(memory.as<void>(), DataType::kF32, {4, 16, 2, 32})), 1, 2);
  const TensorView k = swap_axes(on(Device::kCuda, TensorView(tokens.as<void>(), DataType::kF32, {3, 2, 32})), 0, 1);
  const std::vector<std::int64_t> twice = {1, 2, 1}, past = {1, 64, 2}, few = {1}, good = {1, 2, 3};
  const Rotation rope = prepare(Rope{.dims = 32});
  EXPECT_EQ(message_of([&] { rotate_into(cache, twice, k, {}, rope); }), "rotate_into: slot 1 occurs twice");
  EXPECT_EQ(message_of([&] { copy_into(cache, past, k); }),
            "copy_into: slot 64 is past the end of the cache, which has 64 slots");
  EXPECT_EQ(message_of([&] { copy_into(cache, few, k); }),
            "copy_into: got 1 slots for 1 sequences of 3 tokens; each token needs one");
  EXPECT_EQ(message_of([&] { copy_slots(cache, twice, good); }), "copy_slots: slot 1 occurs twice");
  EXPECT_EQ(message_of([&] { shift(cache, past, 1, rope); }),
            "shift: slot 64 is past the end of the cache, which has 64 slots");
  EXPECT_EQ(message_of([&] { rotate_into(cache, good, k, {}, prepare(Rope{.dims = 64})); }),
            "rotate_into: k has 32 features, but the form rotates 64 from feature 0");
  std::vector<float> here(3 * 2 * 32);
  EXPECT_EQ(message_of([&] {
              copy_into(cache, good, swap_axes(view(here.data(), {3, 2, 32}), 0, 1));
            }),
            "copy_into: one tensor is on cuda but another is on host");
  synchronize();
  expect_same_bytes(memory.values<float>(values.size()), values, "the cache");
}

// A slot twice on the GPU: one of its tokens, or features of both, and all other tokens as they should be.
TEST(CudaSlotFaults, TwiceOnTheGpuIsNoOtherToken) {
  SKIP_WITHOUT_CUDA();
  const std::vector<std::int64_t> slots = {4, 9, 9, 6};
  const auto x = random_values<float>(4 * 64, 1);
  const cuda::Memory memory = cuda::memory_of(std::vector<float>(16 * 64)), gpu_x = cuda::memory_of(x),
                     gpu_slots = cuda::memory_of(slots);
  copy_into(on(Device::kCuda, TensorView(memory.as<void>(), DataType::kF32, {1, 1, 16, 64})),
            {std::span(gpu_slots.as<const std::int64_t>(), 4), Device::kCuda},
            on(Device::kCuda, ConstTensorView(gpu_x.as<void>(), DataType::kF32, {4, 64})));
  synchronize();
  const auto got = memory.values<float>(16 * 64);
  for (std::size_t f = 0; f < 64; ++f) {
    EXPECT_EQ(got[4 * 64 + f], x[f]);
    EXPECT_EQ(got[6 * 64 + f], x[3 * 64 + f]);
    EXPECT_TRUE(got[9 * 64 + f] == x[64 + f] || got[9 * 64 + f] == x[2 * 64 + f]) << got[9 * 64 + f];
    EXPECT_EQ(got[5 * 64 + f], 0.0f);
  }
}

}  // namespace
}  // namespace posenc::cuda_slots_faults_test
