// Caches of q8_0: what is written to their slots, and what is refused. The formula is that of ggml's quantize_row_q8_0_ref,
// written out here with the C library's rounding.

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "backends.h"
#include "kernels/random_values.h"
#include "message_of.h"
#include "posenc/apply.h"
#include "posenc/attention.h"
#include "posenc/cache.h"
#include "posenc/half.h"
#include "posenc/schemes/alibi.h"
#include "posenc/schemes/rope.h"
#include "posenc/schemes/sinusoidal.h"

namespace posenc::q8_test {
namespace {

using tests::for_each_host_engine;
using tests::message_of;
using tests::some_values;

constexpr std::int64_t kHeads = 3, kTokens = 5, kFeatures = 96, kPages = 2, kPage = 4, kBlocks = kFeatures / 32;
const std::vector<std::int64_t> kSlots = {3, 4, -1, 7, 0};

// Of 32 finite numbers.
template <class T> Q8Block block_of(const T* from) {
  float x[32], largest = 0;
  for (int i = 0; i < 32; ++i) {
    x[i] = static_cast<float>(to_double(from[i]));
    largest = std::max(largest, std::fabs(x[i]));
  }
  const float d = largest / 127, by = d == 0 ? 0 : 1 / d;
  Q8Block block{to_half(static_cast<double>(d)), {}};
  for (int i = 0; i < 32; ++i) block.values[i] = static_cast<std::int8_t>(std::round(x[i] * by));
  return block;
}
double element(const Q8Block& block, std::int64_t i) { return to_double(block.scale) * block.values[i]; }

std::vector<Q8Block> empty_pool() {
  const Q8Block mark{{0x5555}, {1, 2, 3}};
  return std::vector<Q8Block>(static_cast<std::size_t>(kPages * kHeads * kPage * kBlocks), mark);
}
// [pages, page, heads, features] in memory, as engines have it.
TensorView pool_view(std::vector<Q8Block>& pool) {
  return swap_axes(view(pool.data(), {kPages, kPage, kHeads, kFeatures}), 1, 2);
}

// What a pool holds when these tokens, [heads, tokens, features], went to their slots.
template <class T> std::vector<Q8Block> expected_pool(const std::vector<T>& x) {
  std::vector<Q8Block> pool = empty_pool();
  for (std::int64_t t = 0; t < kTokens; ++t) {
    const std::int64_t slot = kSlots[static_cast<std::size_t>(t)];
    for (std::int64_t at = 0; slot >= 0 && at < kHeads * kBlocks; ++at) {
      const std::int64_t h = at / kBlocks, block = at % kBlocks;
      pool[static_cast<std::size_t>((slot * kHeads + h) * kBlocks + block)] =
          block_of(x.data() + (h * kTokens + t) * kFeatures + block * 32);
    }
  }
  return pool;
}

TEST(Q8Cache, ABlockIsThatOfGgml) {
  EXPECT_EQ(sizeof(Q8Block), 34U);
  EXPECT_EQ(size_of(DataType::kQ8_0), 34);
  EXPECT_EQ(elements_of_block(DataType::kQ8_0), 32);
  EXPECT_EQ(name_of(DataType::kQ8_0), "q8_0");
  EXPECT_EQ(data_type_from("q8_0"), DataType::kQ8_0);
  // d is 1, so halves are halves: they go away from 0
  std::vector<float> x = {127, 0.5F, 1.5F, 2.5F, -0.5F, -1.5F, -126.5F, 0.49999997F, 63.499996F};
  x.resize(32);
  x[31] = -127;
  std::vector<Q8Block> block(1);
  for_each_host_engine([&] {
    block[0] = {};
    copy_into(view(block.data(), {1, 1, 1, 32}), std::vector<std::int64_t>{0}, view(x.data(), {1, 1, 32}));
    unsigned char bytes[34];
    std::memcpy(bytes, block.data(), 34);
    const unsigned char want[34] = {0x00, 0x3C, 127,  1, 2, 3,
                                    0xFF, 0xFE, 0x81, 0, 63};  // 1.0 in f16, then the values
    for (int i = 0; i < 33; ++i) EXPECT_EQ(bytes[i], want[i]) << i;
    EXPECT_EQ(bytes[33], 0x81);
  });
}

template <class T> void expect_copied() {
  const auto x = some_values<T>(kHeads * kTokens * kFeatures, 3);
  std::vector<Q8Block> pool = empty_pool();
  copy_into(pool_view(pool), kSlots, view(x.data(), {kHeads, kTokens, kFeatures}));
  EXPECT_EQ(pool, expected_pool(x));
  pool = empty_pool();  // tokens before heads
  std::vector<T> turned(x.size());
  for (std::int64_t at = 0; at < kHeads * kTokens; ++at) {
    std::copy_n(x.data() + at * kFeatures, kFeatures,
                turned.data() + (at % kTokens * kHeads + at / kTokens) * kFeatures);
  }
  copy_into(pool_view(pool), kSlots, heads_first(view(turned.data(), {kTokens, kHeads, kFeatures}), Axes::kThd));
  EXPECT_EQ(pool, expected_pool(x));
}

TEST(Q8Cache, ValuesAreWrittenAsGgmlDoes) {
  for_each_host_engine([] {
    expect_copied<float>();
    expect_copied<double>();
    expect_copied<Half>();
    expect_copied<BFloat16>();
  });
}

TEST(Q8Cache, KeysAreRotatedFirst) {
  for (const PairLayout layout : {PairLayout::kHalves, PairLayout::kInterleaved}) {
    const Rotation form = prepare(Rope{.dims = 64, .layout = layout});
    const auto k = some_values<BFloat16>(kHeads * kTokens * kFeatures, 4);
    const Extents shape = {kHeads, kTokens, kFeatures};
    const std::vector<float> weight(kFeatures, 1.5F);
    for_each_host_engine([&] {
      std::vector<float> rotated(k.size());
      rotate(view(rotated.data(), shape), view(k.data(), shape), {.first = 7}, form);
      std::vector<Q8Block> pool = empty_pool();
      rotate_into(pool_view(pool), kSlots, view(k.data(), shape), {.first = 7}, form);
      EXPECT_EQ(pool, expected_pool(rotated));

      std::vector<Q8Block> k_pool = empty_pool(), v_pool = empty_pool();
      const KeyValueCache cache{pool_view(k_pool), pool_view(v_pool)};
      append(cache, kSlots, {.k = view(k.data(), shape), .v = view(k.data(), shape)}, {.first = 7}, form);
      EXPECT_EQ(k_pool, pool);
      EXPECT_EQ(v_pool, expected_pool(k));

      // with a norm: as the norm alone in f32, and then rotated into the cache
      std::vector<float> normed(k.size()), values(k.size());
      append({view(normed.data(), {1, kHeads, kTokens, kFeatures}),
              view(values.data(), {1, kHeads, kTokens, kFeatures})},
             std::vector<std::int64_t>{0, 1, 2, 3, 4},
             {.k = view(k.data(), shape), .v = view(k.data(), shape), .k_norm = view(weight.data(), {kFeatures})});
      std::vector<Q8Block> wanted = empty_pool();
      rotate_into(pool_view(wanted), kSlots, view(normed.data(), shape), {.first = 7}, form);
      append(cache, kSlots,
             {.k = view(k.data(), shape), .v = view(k.data(), shape), .k_norm = view(weight.data(), {kFeatures})},
             {.first = 7}, form);
      EXPECT_EQ(k_pool, wanted);
    });
  }
}

// Against numbers of any size: within the bound of cache.h.
TEST(Q8Cache, ElementsAreWithinTheirBound) {
  for_each_host_engine([] {
    for (int power = -40; power <= 22; ++power) {
      std::vector<double> x = some_values<double>(64 * 32, static_cast<std::uint64_t>(power + 100));
      for (double& value : x) value *= std::ldexp(1.0, power);
      std::vector<Q8Block> got(64);
      copy_into(view(got.data(), {1, 1, 64, 32}), std::vector<std::int64_t>(1, 0), view(x.data(), {1, 1, 32}));
      std::vector<std::int64_t> slots;
      for (std::int64_t t = 0; t < 64; ++t) slots.push_back(t);
      copy_into(view(got.data(), {1, 1, 64, 32}), slots, view(x.data(), {1, 64, 32}));
      for (std::size_t block = 0; block < 64; ++block) {
        double largest = 0;
        for (std::size_t i = 0; i < 32; ++i) largest = std::max(largest, std::fabs(x[block * 32 + i]));
        for (std::size_t i = 0; i < 32; ++i) {
          ASSERT_NEAR(element(got[block], static_cast<std::int64_t>(i)), x[block * 32 + i], largest / 225 + 0x1p-18)
              << power;
        }
      }
    }
  });
}

// A block that has an element which is not finite has none that is a number; tiny ones are 0, as ggml's are, and large ones
// infinite.
TEST(Q8Cache, ExtremesAreTheirBlocksAlone) {
  const float infinity = std::numeric_limits<float>::infinity();
  for_each_host_engine([&] {
    for (const float odd : {infinity, -infinity, std::nanf("")}) {
      for (const std::size_t at : {32U, 47U, 63U}) {
        std::vector<float> x(96, 2.0F);
        x[at] = odd;
        std::vector<Q8Block> got(3);
        copy_into(view(got.data(), {1, 1, 1, 96}), std::vector<std::int64_t>{0}, view(x.data(), {1, 1, 96}));
        EXPECT_EQ(got[0], block_of(x.data()));
        EXPECT_EQ(got[2], block_of(x.data()));
        EXPECT_TRUE(std::isnan(element(got[1], 0)) && std::isnan(element(got[1], 31)));
      }
    }
    std::vector<float> x(96, 1e-45F);
    std::fill_n(x.begin() + 32, 32, 9e6F);
    std::fill_n(x.begin() + 64, 32, -3e38F);
    std::vector<Q8Block> got(3);
    copy_into(view(got.data(), {1, 1, 1, 96}), std::vector<std::int64_t>{0}, view(x.data(), {1, 1, 96}));
    EXPECT_EQ(element(got[0], 5), 0);
    EXPECT_EQ(element(got[1], 5), static_cast<double>(infinity));
    EXPECT_EQ(element(got[2], 5), static_cast<double>(-infinity));
  });
}

TEST(Q8Cache, TokensAreMovedAsTheyAre) {
  for_each_host_engine([] {
    std::vector<Q8Block> pool = empty_pool();
    for (std::size_t i = 0; i < pool.size(); ++i) pool[i].values[31] = static_cast<std::int8_t>(i);
    std::vector<Q8Block> want = pool;
    const std::vector<std::int64_t> to = {0, 6, 3, -1}, from = {6, 1, -1, 2};
    for (std::size_t i = 0; i < 2; ++i) {
      std::copy_n(pool.begin() + from[i] * kHeads * kBlocks, kHeads * kBlocks,
                  want.begin() + to[i] * kHeads * kBlocks);
    }
    copy_slots(pool_view(pool), to, from);
    EXPECT_EQ(pool, want);
  });
}

TEST(Q8Cache, SlicesAreWholeBlocks) {
  std::vector<Q8Block> pool = empty_pool();
  const TensorView all = pool_view(pool);
  const auto blocks_to = [&](const TensorView& part) { return static_cast<const Q8Block*>(part.data) - pool.data(); };
  EXPECT_EQ(blocks_to(slice(all, 0, 1, 1)), kPage * kHeads * kBlocks);
  EXPECT_EQ(blocks_to(slice(all, 2, 3, 1)), 3 * kHeads * kBlocks);
  EXPECT_EQ(blocks_to(slice(all, 3, 64, 32)), 2);
  EXPECT_EQ(message_of([&] { slice(all, 3, 16, 32); }),
            "slice: q8_0 has blocks of 32 elements; 32 from entry 16 of axis 3 on are not whole blocks");
  EXPECT_EQ(message_of([&] { slice(all, 3, 32, 40); }),
            "slice: q8_0 has blocks of 32 elements; 40 from entry 32 of axis 3 on are not whole blocks");
}

TEST(Q8Cache, ShapesThatAreNotBlocksAreRefused) {
  std::vector<Q8Block> pool = empty_pool();
  const std::vector<Q8Block> before = pool;
  const auto x = some_values<float>(kHeads * kTokens * kFeatures, 3);
  const auto said = [&](const CacheView& cache, std::int64_t features = kFeatures) {
    return message_of([&] { copy_into(cache, kSlots, view(x.data(), {kHeads, kTokens, features})); });
  };
  const std::string wanted =
      "copy_into: the cache of q8_0 must consist of blocks of 32 elements of a contiguous last axis, but has ";
  EXPECT_EQ(said(view(pool.data(), {kPages, kHeads, kPage, 40}), 40),
            wanted + "shape [2, 3, 4, 40] and strides [480, 160, 40, 1]");
  EXPECT_EQ(said(swap_axes(pool_view(pool), 2, 3)), wanted + "shape [2, 3, 96, 4] and strides [1152, 96, 1, 288]");
  TensorView odd = pool_view(pool);
  odd.data = static_cast<std::byte*>(odd.data) + 1;
  EXPECT_EQ(said(odd), "copy_into: the cache of q8_0 must be at an even address");
  EXPECT_EQ(said({pool_view(pool), view(x.data(), {1})}),
            "copy_into: the scale is for a cache of e4m3, but it has elements of q8_0");
  TensorView twice = pool_view(pool);
  twice.strides[2] = 32;
  EXPECT_NE(said(twice).find("two elements share an address"), std::string::npos);
  EXPECT_NE(said(on(Device::kCuda, pool_view(pool))), "accepted");
  EXPECT_EQ(pool, before);
}

// All verbs that take tensors, but those that write caches and attention.
TEST(Q8Cache, OtherVerbsRefuseIt) {
  std::vector<Q8Block> pool = empty_pool();
  const std::vector<Q8Block> before = pool;
  const TensorView cache = pool_view(pool), rows = view(pool.data(), {kHeads, kTokens, kFeatures});
  std::vector<float> x(static_cast<std::size_t>(kHeads * kTokens * kFeatures)), logs(kHeads * kTokens);
  const TensorView numbers = view(x.data(), {kHeads, kTokens, kFeatures});
  const Rotation rope = prepare(Rope{.dims = kFeatures});
  const Addition waves = prepare(Sinusoidal{.width = kFeatures});
  const std::string is_none = " must be f32, f64, f16 or bf16 but is q8_0";
  EXPECT_EQ(message_of([&] { rotate(rows, {}, rope); }), "rotate: x" + is_none);
  EXPECT_EQ(message_of([&] { rotate(rows, numbers, {}, rope); }), "rotate: out" + is_none);
  EXPECT_EQ(message_of([&] { rotate(numbers, rows, {}, rope); }), "rotate: x" + is_none);
  EXPECT_EQ(message_of([&] { rotate_backward(rows, {}, rope); }), "rotate_backward: x" + is_none);
  EXPECT_EQ(message_of([&] { rerotate(rows, {}, rope, rope); }), "rerotate: x" + is_none);
  EXPECT_EQ(message_of([&] { add(rows, {}, waves); }), "add: x" + is_none);
  EXPECT_EQ(message_of([&] { tabulate(rows, {}, waves); }), "tabulate: out" + is_none);
  EXPECT_EQ(message_of([&] {
              bias(view(pool.data(), {4, 8, 32}), {}, {}, prepare(Alibi{.heads = 4}));
            }).substr(0, 6),
            "bias: ");
  EXPECT_EQ(message_of([&] {
              merge(rows, view(logs.data(), {kHeads, kTokens}), rows, view(logs.data(), {kHeads, kTokens}));
            }),
            "merge: out" + is_none);
  EXPECT_EQ(message_of([&] {
              copy_into(view(x.data(), {1, kHeads, kTokens, kFeatures}), kSlots, rows);
            }),
            "copy_into: x" + is_none);
  const std::string shifted =
      "shift: keys of q8_0 would be rounded to 8 bits again by each shift; keep keys that are to be shifted in f32, f16 or "
      "bf16, or write them to q8_0 again, rotated for their new positions";
  EXPECT_EQ(message_of([&] { shift(cache, kSlots, 100, rope); }), shifted);
  EXPECT_EQ(message_of([&] { shift(cache, 100, rope); }), shifted);
  EXPECT_EQ(pool, before);
}

}  // namespace
}  // namespace posenc::q8_test
