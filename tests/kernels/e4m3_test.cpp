// Caches of e4m3: what is written to their slots, and what is refused.

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "backends.h"
#include "kernels/random_values.h"
#include "message_of.h"
#include "numerics/narrow.h"
#include "posenc/apply.h"
#include "posenc/cache.h"
#include "posenc/half.h"
#include "posenc/schemes/rope.h"

namespace posenc::e4m3_test {
namespace {

using tests::for_each_engine;
using tests::for_each_host_engine;
using tests::message_of;
using tests::some_values;

constexpr std::int64_t kHeads = 3, kTokens = 5, kFeatures = 40, kPages = 2, kPage = 4;
constexpr float kScales[kHeads] = {0.5F, 0.013F, 3.0F};
const std::vector<std::int64_t> kSlots = {3, 4, -1, 7, 0};

// x / scale, by the formula.
template <class T> E4M3 divided(T x, float scale) {
  if constexpr (std::is_same_v<T, double>) return to_e4m3(x / static_cast<double>(scale));
  return to_e4m3(static_cast<double>(static_cast<float>(to_double(x)) / scale));
}

std::vector<E4M3> empty_pool() {
  return std::vector<E4M3>(static_cast<std::size_t>(kPages * kHeads * kPage * kFeatures), E4M3{0x55});
}
// [pages, heads, page, features]
TensorView pool_view(std::vector<E4M3>& pool) { return view(pool.data(), {kPages, kHeads, kPage, kFeatures}); }

// What a pool holds when these tokens, [heads, tokens, features], went to their slots.
template <class T> std::vector<E4M3> expected_pool(const std::vector<T>& x, const float* scales) {
  std::vector<E4M3> pool = empty_pool();
  for (std::int64_t t = 0; t < kTokens; ++t) {
    const std::int64_t slot = kSlots[static_cast<std::size_t>(t)];
    for (std::int64_t h = 0; slot >= 0 && h < kHeads; ++h) {
      for (std::int64_t f = 0; f < kFeatures; ++f) {
        pool[static_cast<std::size_t>(((slot / kPage * kHeads + h) * kPage + slot % kPage) * kFeatures + f)] =
            divided(x[static_cast<std::size_t>((h * kTokens + t) * kFeatures + f)], scales[h]);
      }
    }
  }
  return pool;
}

template <class T> void expect_copied() {
  const auto x = some_values<T>(kHeads * kTokens * kFeatures, 3);
  std::vector<E4M3> pool = empty_pool();
  copy_into({pool_view(pool), view(kScales, {kHeads})}, kSlots, view(x.data(), {kHeads, kTokens, kFeatures}));
  EXPECT_EQ(pool, expected_pool(x, kScales));
  const float ones[kHeads] = {1, 1, 1};
  pool = empty_pool();
  copy_into(pool_view(pool), kSlots, view(x.data(), {kHeads, kTokens, kFeatures}));
  EXPECT_EQ(pool, expected_pool(x, ones));
}

TEST(E4M3Cache, ValuesAreDividedAndRounded) {
  for_each_host_engine([] {
    expect_copied<float>();
    expect_copied<double>();
    expect_copied<Half>();
    expect_copied<BFloat16>();
  });
}

TEST(E4M3Cache, KeysAreRotatedFirst) {
  for (const PairLayout layout : {PairLayout::kHalves, PairLayout::kInterleaved}) {
    const Rotation form = prepare(Rope{.dims = 32, .layout = layout});
    const auto k = some_values<BFloat16>(kHeads * kTokens * kFeatures, 4);
    const Extents shape = {kHeads, kTokens, kFeatures};
    for_each_host_engine([&] {
      std::vector<float> rotated(k.size());
      rotate(view(rotated.data(), shape), view(k.data(), shape), {.first = 7}, form);
      std::vector<E4M3> pool = empty_pool();
      rotate_into({pool_view(pool), view(kScales, {kHeads})}, kSlots, view(k.data(), shape), {.first = 7}, form);
      EXPECT_EQ(pool, expected_pool(rotated, kScales));

      std::vector<E4M3> k_pool = empty_pool(), v_pool = empty_pool();
      append({{pool_view(k_pool), view(kScales, {kHeads})}, {pool_view(v_pool), view(kScales + 1, {1})}}, kSlots,
             {.k = view(k.data(), shape), .v = view(k.data(), shape)}, {.first = 7}, form);
      EXPECT_EQ(k_pool, pool);
      const float second[kHeads] = {kScales[1], kScales[1], kScales[1]};
      EXPECT_EQ(v_pool, expected_pool(k, second));
    });
  }
}

// Every f16, and f32 around every point where the rounding changes.
TEST(E4M3Cache, EveryRoundingIsThatOfTheFormula) {
  std::vector<Half> halves;
  for (unsigned bits = 0; bits < 0x10000U; ++bits) halves.push_back({static_cast<std::uint16_t>(bits)});
  std::vector<float> floats = {std::numeric_limits<float>::infinity(), std::nanf(""), 1e-45F, 3e38F};
  for (unsigned bits = 0; bits < 0x7FU; ++bits) {
    const auto at = static_cast<float>((to_double(E4M3{static_cast<std::uint8_t>(bits)}) +
                                        to_double(E4M3{static_cast<std::uint8_t>(bits + (bits < 0x7E ? 1 : 0))})) /
                                       2);
    for (const float x : {at, std::nextafter(at, 0.0F), std::nextafter(at, 1e9F)}) {
      floats.push_back(x);
      floats.push_back(-x);
    }
  }
  const auto check = [](const auto& x) {
    const auto n = std::ssize(x);
    std::vector<E4M3> got(x.size());
    copy_into(view(got.data(), {1, 1, 1, n}), std::vector<std::int64_t>{0}, view(x.data(), {1, 1, n}));
    for (std::size_t i = 0; i < x.size(); ++i) {
      const bool is_nan = std::isnan(to_double(x[i]));
      ASSERT_EQ(got[i].bits & (is_nan ? 0x7F : 0xFF), divided(x[i], 1.0F).bits & (is_nan ? 0x7F : 0xFF))
          << to_double(x[i]);
    }
  };
  for_each_host_engine([&] {
    check(halves);
    check(floats);
  });
}

TEST(E4M3Cache, TokensAreMovedAsTheyAre) {
  for_each_host_engine([] {
    std::vector<E4M3> pool(16);
    for (std::size_t i = 0; i < pool.size(); ++i) pool[i].bits = static_cast<std::uint8_t>(0x70 + i);
    copy_slots(view(pool.data(), {2, 1, 2, 4}), std::vector<std::int64_t>{0, 3}, std::vector<std::int64_t>{3, 1});
    for (std::size_t f = 0; f < 4; ++f) {
      EXPECT_EQ(pool[f].bits, 0x7C + f);
      EXPECT_EQ(pool[12 + f].bits, 0x74 + f);
    }
  });
}

TEST(E4M3Cache, RefusesWhatDoesNotFit) {
  std::vector<E4M3> pool = empty_pool();
  const std::vector<E4M3> before = pool;
  const auto x = some_values<float>(kHeads * kTokens * kFeatures, 3);
  const ConstTensorView tokens = view(x.data(), {kHeads, kTokens, kFeatures});
  const auto said = [&](const ConstTensorView& scale) {
    return message_of([&] { copy_into({pool_view(pool), scale}, kSlots, tokens); });
  };
  const float bad[] = {1, -2, 1}, none[] = {0}, infinite[] = {std::numeric_limits<float>::infinity()};
  const double wide[] = {1};
  EXPECT_EQ(said(view(bad, {3})), "copy_into: the scale must be positive and finite but is -2 for head 1");
  EXPECT_EQ(said(view(none, {1})), "copy_into: the scale must be positive and finite but is 0 for head 0");
  EXPECT_EQ(said(view(infinite, {1})), "copy_into: the scale must be positive and finite but is inf for head 0");
  EXPECT_EQ(said(view(bad, {2})),
            "copy_into: the scale has 2 numbers but must have 1, or 1 for each of the 3 heads of the cache");
  EXPECT_EQ(said(view(wide, {1})), "copy_into: the scale must be f32 on the host");
  std::vector<float> f32_pool(pool.size());
  const TensorView f32_view = view(f32_pool.data(), {kPages, kHeads, kPage, kFeatures});
  EXPECT_EQ(message_of([&] {
              copy_into({f32_view, view(kScales, {1})}, kSlots, tokens);
            }),
            "copy_into: the scale is for a cache of e4m3, but it has elements of f32");
  EXPECT_EQ(message_of([&] { copy_into(f32_view, kSlots, pool_view(pool)); }),
            "copy_into: x must be f32, f64, f16 or bf16 but is e4m3");
  EXPECT_EQ(
      message_of([&] { shift(pool_view(pool), kSlots, 100, prepare(Rope{.dims = kFeatures})); }),
      "shift: keys of e4m3 would be rounded to 8 bits again by each shift; keep keys that are to be shifted in f32, f16 or "
      "bf16, or write them to e4m3 again, rotated for their new positions");
  EXPECT_EQ(message_of([&] {
              copy_into(on(Device::kCuda, pool_view(pool)), kSlots, on(Device::kCuda, tokens));
            }).substr(0, 11),
            "copy_into: ");
  EXPECT_EQ(pool, before);
}

}  // namespace
}  // namespace posenc::e4m3_test
