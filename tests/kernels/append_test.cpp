// A step of a decoder on the host: the bytes of rotate, rotate_into and copy_into; norms against sums in double.

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "backends.h"
#include "kernels/random_values.h"
#include "message_of.h"
#include "numerics/narrow.h"
#include "posenc/apply.h"
#include "posenc/cache.h"
#include "posenc/error.h"
#include "posenc/schemes/rope.h"

namespace posenc::append_test {
namespace {

using tests::for_each_engine;
using tests::message_of;
using tests::some_values;

constexpr std::int64_t kBatch = 2, kHeads = 4, kKeyHeads = 2, kTokens = 5, kFeatures = 16, kValues = 8, kPages = 4,
                       kPage = 4;
const std::vector<std::int64_t> kSlots = {3, 4, 5, -1, 15, 12, 0, 1, 8, 7};

// q, k and v as slices of one product, [batch, sequence, heads + 2 · key heads, features], with values of fewer features.
template <class T> struct Product {
  std::vector<T> memory = some_values<T>(kBatch * kTokens * (kHeads + 2 * kKeyHeads) * kFeatures, 1);
  TensorView slice_of(std::int64_t first, std::int64_t heads, std::int64_t features) {
    const TensorView all = view(memory.data(), {kBatch, kTokens, kHeads + 2 * kKeyHeads, kFeatures});
    return slice(swap_axes(slice(all, 2, first, heads), 1, 2), 3, 0, features);
  }
  TensorView q() { return slice_of(0, kHeads, kFeatures); }
  TensorView k() { return slice_of(kHeads, kKeyHeads, kFeatures); }
  TensorView v() { return slice_of(kHeads + kKeyHeads, kKeyHeads, kValues); }
};
template <class T> struct Pools {
  std::vector<T> k = std::vector<T>(kPages * kPage * kKeyHeads * kFeatures, numerics::narrow<T>(7.0)),
                 v = std::vector<T>(kPages * kPage * kKeyHeads * kValues, numerics::narrow<T>(7.0));
  KeyValueCache views() {
    return {swap_axes(view(k.data(), {kPages, kPage, kKeyHeads, kFeatures}), 1, 2),
            view(v.data(), {kPages, kKeyHeads, kPage, kValues})};
  }
};

template <class T, class Cache>
void expect_the_bytes_of_three_calls(const Rotation& form, const Positions& positions) {
  Product<T> given;
  Pools<Cache> want;
  std::vector<T> want_q(kBatch * kHeads * kTokens * kFeatures), got_q = want_q;
  const Extents q_shape = {kBatch, kHeads, kTokens, kFeatures};
  rotate(view(want_q.data(), q_shape), given.q(), positions, form);
  rotate_into(want.views().k, kSlots, given.k(), positions, form);
  copy_into(want.views().v, kSlots, given.v());

  Pools<Cache> got;
  append(got.views(), kSlots, {.q = given.q(), .k = given.k(), .v = given.v(), .q_out = view(got_q.data(), q_shape)},
         positions, form);
  EXPECT_EQ(got_q, want_q);
  EXPECT_EQ(got.k, want.k);
  EXPECT_EQ(got.v, want.v);

  const std::vector<std::int32_t> narrow(kSlots.begin(), kSlots.end());
  Pools<Cache> without_queries;
  append(without_queries.views(), narrow, {.k = given.k(), .v = given.v()}, positions, form);
  EXPECT_EQ(without_queries.k, want.k);

  Product<T> in_place, other = in_place;
  rotate(other.q(), positions, form);
  append(got.views(), kSlots, {.q = in_place.q(), .k = in_place.k(), .v = in_place.v(), .q_out = in_place.q()},
         positions, form);
  EXPECT_EQ(in_place.memory, other.memory);
  EXPECT_EQ(got.k, want.k);
}

TEST(Append, HasTheBytesOfThreeCalls) {
  const std::vector<std::int64_t> own = {9, 2, 70, 4, 5, 100, 3, 0, 1, 2}, grid = {0, 1, 2, 3, 4, 5, 4, 3, 2, 1};
  const Rotation rope = prepare(Rope{.dims = kFeatures}), xpos = prepare(Rope{.dims = 8, .scaling = XposScaling{}}),
                 mrope = prepare(Rope{.dims = kFeatures, .sections = {4, 4}}),
                 tail = prepare(Rope{.dims = 8, .layout = PairLayout::kInterleaved, .first_dim = 4});
  for_each_engine([&] {
    expect_the_bytes_of_three_calls<float, float>(rope, {.first = 11});
    expect_the_bytes_of_three_calls<float, BFloat16>(rope, {.ids = own});
    expect_the_bytes_of_three_calls<Half, Half>(xpos, {.ids = own});
    expect_the_bytes_of_three_calls<float, float>(mrope, {.ids = grid, .axes = 2});
    expect_the_bytes_of_three_calls<double, double>(mrope, {.first = 3});
    expect_the_bytes_of_three_calls<BFloat16, BFloat16>(tail, {.first = 3});
  });
}

TEST(Append, CopiesWithoutARotation) {
  Product<float> given;
  Pools<Half> want, got;
  std::vector<float> want_q(kBatch * kHeads * kTokens * kFeatures), got_q = want_q;
  const Extents q_shape = {kBatch, kHeads, kTokens, kFeatures};
  for (std::int64_t i = 0; i < count_of(q_shape); ++i) {
    const std::int64_t b = i / (kHeads * kTokens * kFeatures), h = i / (kTokens * kFeatures) % kHeads,
                       t = i / kFeatures % kTokens, f = i % kFeatures;
    want_q[static_cast<std::size_t>(i)] =
        given.memory[static_cast<std::size_t>(((b * kTokens + t) * (kHeads + 2 * kKeyHeads) + h) * kFeatures + f)];
  }
  copy_into(want.views().k, kSlots, given.k());
  copy_into(want.views().v, kSlots, given.v());
  append(got.views(), kSlots, {.q = given.q(), .k = given.k(), .v = given.v(), .q_out = view(got_q.data(), q_shape)});
  EXPECT_EQ(got_q, want_q);
  EXPECT_EQ(got.k, want.k);
  EXPECT_EQ(got.v, want.v);
}

// x / √(mean(x²) + epsilon) · (weight + offset) in double, then rotated in double.
std::vector<double> normalised(const TensorView& x, const std::vector<float>& weight, double epsilon, double offset) {
  const std::int64_t heads = x.shape[1], all = heads * kFeatures;
  const bool over_heads = std::ssize(weight) == all;
  std::vector<double> made(static_cast<std::size_t>(count_of(x.shape)));
  const auto at = [&](std::int64_t b, std::int64_t h, std::int64_t t, std::int64_t f) {
    return static_cast<double>(
        static_cast<const float*>(x.data)[b * x.strides[0] + h * x.strides[1] + t * x.strides[2] + f * x.strides[3]]);
  };
  for (std::int64_t i = 0; i < std::ssize(made); ++i) {
    const std::int64_t b = i / (heads * kTokens * kFeatures), h = i / (kTokens * kFeatures) % heads,
                       t = i / kFeatures % kTokens, f = i % kFeatures;
    double sum = 0;
    for (std::int64_t j = 0; j < (over_heads ? all : kFeatures); ++j) {
      sum += std::pow(at(b, over_heads ? j / kFeatures : h, t, j % kFeatures), 2);
    }
    const double mean = sum / static_cast<double>(over_heads ? all : kFeatures);
    made[static_cast<std::size_t>(i)] =
        at(b, h, t, f) / std::sqrt(mean + epsilon) *
        (static_cast<double>(weight[static_cast<std::size_t>(over_heads ? h * kFeatures + f : f)]) + offset);
  }
  return made;
}

TEST(Append, NormalisesBeforeItRotates) {
  const Rotation rope = prepare(Rope{.dims = 8, .first_dim = 4});
  const Extents q_shape = {kBatch, kHeads, kTokens, kFeatures}, k_shape = {kBatch, kKeyHeads, kTokens, kFeatures};
  for (const bool over_heads : {false, true}) {
    const auto q_weight = some_values<float>(over_heads ? kHeads * kFeatures : kFeatures, 3),
               k_weight = some_values<float>(over_heads ? kKeyHeads * kFeatures : kFeatures, 4);
    const auto weight_of = [&](const std::vector<float>& weight, std::int64_t heads) {
      return over_heads ? view(weight.data(), {heads, kFeatures}) : view(weight.data(), {kFeatures});
    };
    Product<float> given;
    auto want_q = normalised(given.q(), q_weight, 1e-3, 1), want_k = normalised(given.k(), k_weight, 1e-3, 1);
    rotate(view(want_q.data(), q_shape), {.first = 20}, rope);
    rotate(view(want_k.data(), k_shape), {.first = 20}, rope);
    for_each_engine([&] {
      Product<float> own = given;
      Pools<float> got;
      append(got.views(), kSlots,
             {.q = own.q(),
              .k = own.k(),
              .v = own.v(),
              .q_out = own.q(),
              .q_norm = weight_of(q_weight, kHeads),
              .k_norm = weight_of(k_weight, kKeyHeads),
              .norm_epsilon = 1e-3,
              .norm_offset = 1},
             {.first = 20}, rope);
      const TensorView q = own.q();
      for (std::int64_t i = 0; i < count_of(q_shape); ++i) {
        const std::int64_t b = i / (kHeads * kTokens * kFeatures), h = i / (kTokens * kFeatures) % kHeads,
                           t = i / kFeatures % kTokens, f = i % kFeatures;
        const float found = static_cast<const float*>(
            q.data)[b * q.strides[0] + h * q.strides[1] + t * q.strides[2] + f * q.strides[3]];
        EXPECT_NEAR(static_cast<double>(found), want_q[static_cast<std::size_t>(i)], 2e-6) << i;
      }
      for (std::size_t token = 0; token < kSlots.size(); ++token) {
        if (kSlots[token] < 0) continue;
        for (std::int64_t n = 0; n < kKeyHeads * kFeatures; ++n) {
          const auto b = static_cast<std::int64_t>(token) / kTokens, t = static_cast<std::int64_t>(token) % kTokens;
          const std::int64_t from = ((b * kKeyHeads + n / kFeatures) * kTokens + t) * kFeatures + n % kFeatures;
          EXPECT_NEAR(static_cast<double>(got.k[static_cast<std::size_t>(kSlots[token] * kKeyHeads * kFeatures + n)]),
                      want_k[static_cast<std::size_t>(from)], 2e-6)
              << token << ' ' << n;
        }
      }
    });
  }
}

TEST(Append, SaysWhatIsWrong) {
  Product<float> given;
  Pools<float> pools;
  const auto before = given.memory, k_before = pools.k, v_before = pools.v;
  const Rotation rope = prepare(Rope{.dims = kFeatures});
  const auto weight = some_values<float>(2 * kFeatures, 3);
  const NewTokens good{.q = given.q(), .k = given.k(), .v = given.v(), .q_out = given.q()};
  const auto appended = [&](NewTokens tokens, const Slots& slots = kSlots, const Positions& positions = {}) {
    return message_of([&] { append(pools.views(), slots, tokens, positions, rope); });
  };
  NewTokens bad = good;
  bad.v = given.k();
  EXPECT_EQ(appended(bad), "append: the cache has 2 heads of 8 features but the tensor has 2 of 16");
  bad = good, bad.q = bad.q_out = slice(given.q(), 2, 0, 4);
  EXPECT_EQ(appended(bad), "append: q has 2 sequences of 4 tokens but k has 2 of 5");
  bad = good, bad.v = slice(given.v(), 0, 0, 1);
  EXPECT_EQ(appended(bad), "append: v has 1 sequences of 5 tokens but k has 2 of 5");
  bad = good, bad.q_out = {};
  EXPECT_NE(appended(bad), "accepted");
  bad = good, bad.q_out = slice(given.q(), 1, 0, 3);
  EXPECT_EQ(appended(bad), "append: out has shape [2, 3, 5, 16] but x has [2, 4, 5, 16]");
  bad = good, bad.q = bad.q_out = given.slice_of(1, kHeads, kFeatures);
  EXPECT_EQ(appended(bad), "append: q_out overlaps k");
  bad = good, bad.k_norm = view(weight.data(), {8});
  EXPECT_EQ(appended(bad), "append: k_norm has shape [8] but must be [16] for each head, or [2, 16] for all");
  bad = good, bad.q_norm = view(weight.data(), {16}), bad.norm_epsilon = -1;
  EXPECT_EQ(appended(bad), "append: norm_epsilon must be 0 or more, and norm_offset finite, but they are -1 and 0");
  EXPECT_EQ(appended(good, kSlots, {.first = -1}), "append: position -1 is outside 0 to 2^53 - 1");
  const std::vector<std::int64_t> few = {0}, twice = {3, 4, 5, -1, 15, 12, 0, 1, 8, 3},
                                  past = {3, 4, 5, -1, 16, 12, 0, 1, 8, 7};
  EXPECT_EQ(appended(good, few), "append: got 1 slots for 2 sequences of 5 tokens; each token needs one");
  EXPECT_EQ(appended(good, twice), "append: slot 3 occurs twice");
  EXPECT_EQ(appended(good, past), "append: slot 16 is past the end of the cache, which has 16 slots");
  EXPECT_EQ(appended(good, {kSlots, Device::kCuda}), "append: the slots are on cuda but the cache is on host");
  bad = good, bad.k = on(Device::kCuda, given.k());
  EXPECT_EQ(appended(bad), "append: one tensor is on host but another is on cuda");
  EXPECT_EQ(message_of([&] {
              append({pools.views().k, pools.views().k}, kSlots, good, {}, rope);
            }),
            "append: the cache has 2 heads of 16 features but the tensor has 2 of 8");
  bad = good, bad.v = given.slice_of(kHeads + kKeyHeads, kKeyHeads, kFeatures);
  EXPECT_EQ(message_of([&] {
              append({pools.views().k, pools.views().k}, kSlots, bad, {}, rope);
            }),
            "append: the cache of keys overlaps the cache of values");
  EXPECT_EQ(message_of([&] { append(pools.views(), kSlots, good, {}, prepare(Rope{.dims = 32})); }),
            "append: q has 16 features, but the form rotates 32 from feature 0");
  Slots both = kSlots;
  const std::vector<std::int32_t> narrow(kSlots.begin(), kSlots.end());
  both.ids_i32 = narrow;
  EXPECT_NE(appended(good, both), "accepted");
  EXPECT_EQ(given.memory, before);
  EXPECT_EQ(pools.k, k_before);
  EXPECT_EQ(pools.v, v_before);
}

// What a GPU would get, for a machine without one: slots on another device, and lists on two.
TEST(Append, SlotsOnAnotherDeviceAreRefused) {
  Pools<float> pools;
  const auto k_before = pools.k;
  const std::vector<std::int64_t> two = {0, 1};
  const Slots there(two, Device::kCuda);
  const TensorView cache = pools.views().k.tensor;
  EXPECT_EQ(message_of([&] { copy_slots(cache, there, two); }), "copy_slots: `to` is on cuda but `from` is on host");
  EXPECT_EQ(message_of([&] { copy_slots(cache, there, there); }),
            "copy_slots: the slots are on cuda but the cache is on host");
  EXPECT_EQ(message_of([&] { shift(cache, there, 1, prepare(Rope{.dims = 8})); }),
            "shift: the slots are on cuda but the cache is on host");
  EXPECT_EQ(pools.k, k_before);
}

}  // namespace
}  // namespace posenc::append_test
