// Attention over a cache of q8_0: the formula over what its bytes mean.

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "attention/allocations.h"
#include "attention/oracle.h"
#include "backends.h"
#include "message_of.h"
#include "posenc/attention.h"
#include "posenc/cache.h"
#include "posenc/half.h"
#include "posenc/schemes/alibi.h"
#include "posenc/schemes/cope.h"
#include "posenc/schemes/rope.h"

namespace posenc::q8_attention_test {
namespace {

using tests::answer_of;
using tests::for_each_host_engine;
using tests::Heads;
using tests::message_of;
using tests::Pair;
using tests::Question;
using tests::random_heads;

constexpr std::int64_t kKeyHeads = 2, kBlock = Q8Block::kElements;

// A cache [1, heads, keys, features], and the numbers that it means.
struct Cache {
  std::vector<Q8Block> blocks;
  Heads<double> means;
  Cache(std::int64_t keys, std::int64_t features, std::uint64_t seed)
      : blocks(static_cast<std::size_t>(kKeyHeads * keys * features / kBlock)), means(1, kKeyHeads, keys, features) {
    std::mt19937_64 random(seed);
    for (std::size_t at = 0; at < blocks.size(); ++at) {
      Q8Block& block = blocks[at];
      block.scale = to_half(static_cast<double>(1 + random() % 1000) * 1e-5);
      for (std::int64_t i = 0; i < kBlock; ++i) {
        block.values[i] = static_cast<std::int8_t>(random() % 256);
        means.values[at * kBlock + static_cast<std::size_t>(i)] = to_double(block.scale) * block.values[i];
      }
    }
  }
  ConstTensorView view() const { return posenc::view(blocks.data(), {1, kKeyHeads, means.tokens, means.features}); }
  const Q8Block* row(std::int64_t h, std::int64_t t) const {
    return blocks.data() + (h * means.tokens + t) * means.features / kBlock;
  }
};

struct Shape {
  std::int64_t queries, group, keys, features, value_features;
};
// One query, groups that share a load, blocks of queries; keys that end within a vector, a step, a split.
constexpr Shape kShapes[] = {{1, 1, 2500, 64, 64}, {1, 3, 97, 128, 32},   {1, 4, 150, 64, 64},  {1, 8, 131, 64, 96},
                             {3, 4, 97, 32, 64},   {1, 17, 96, 64, 64},   {2, 16, 70, 64, 160}, {1, 2, 1100, 64, 64},
                             {1, 6, 67, 96, 64},   {1, 15, 2100, 32, 96}, {33, 2, 140, 64, 64}, {70, 1, 70, 32, 32},
                             {1, 2, 5, 96, 32}};

template <class T>
void expect_formula(const Shape& shape, const AttentionOptions& options, const Question& question) {
  SCOPED_TRACE(testing::Message() << shape.queries << " queries, " << shape.group << " heads a key head, "
                                  << shape.keys << " keys of " << shape.features);
  const auto q = random_heads<T>(1, kKeyHeads * shape.group, shape.queries, shape.features, 1);
  const Cache k(shape.keys, shape.features, 2), v(shape.keys, shape.value_features, 3);
  const auto answer = answer_of(q, k.means, v.means, question);
  const double rounding = sizeof(T) == 4 ? 0 : std::is_same_v<T, Half> ? 0x1p-11 : 0x1p-8;
  for_each_host_engine([&] {
    Heads<T> got(1, q.heads, q.tokens, shape.value_features);
    attention(got.view(), q.view(), k.view(), v.view(), options);
    for (std::size_t i = 0; i < got.values.size(); ++i) {
      const double want = answer.out.values[i], bound = 2e-6 * answer.size.values[i] + rounding * std::fabs(want);
      ASSERT_NEAR(to_double(got.values[i]), want, bound) << "element " << i;
    }
  });
}

Question plain(const Shape& shape) {
  Question question;
  question.scale = 1 / std::sqrt(static_cast<double>(shape.features));
  return question;
}

TEST(Q8Attention, IsTheFormula) {
  for (const Shape& shape : kShapes) {
    expect_formula<float>(shape, {}, plain(shape));
    expect_formula<BFloat16>(shape, {}, plain(shape));
    expect_formula<Half>(shape, {}, plain(shape));
  }
}

TEST(Q8Attention, WithEverythingElse) {
  std::vector<float> sinks;
  for (int h = 0; h < 64; ++h) sinks.push_back(0.1F * static_cast<float>(h));
  for (const Shape& shape : kShapes) {
    const std::int64_t past = shape.keys - shape.queries, heads = kKeyHeads * shape.group;
    Question question = plain(shape);
    const Bias bias = prepare(Alibi{.heads = heads});
    const std::vector<double> slopes = std::get<Slopes>(bias.source).slopes;
    question.sees = [=](const Pair& at) { return at.j <= at.i + past && at.i + past - at.j < 90; };
    question.bias = [=](const Pair& at) {
      return -slopes[static_cast<std::size_t>(at.h)] * static_cast<double>(at.i + past - at.j);
    };
    question.softcap = 2.5;
    question.sink = [&](std::int64_t h) { return static_cast<double>(sinks[static_cast<std::size_t>(h)]); };
    expect_formula<float>(
        shape, {.position = bias, .causal = true, .window = 90, .softcap = 2.5, .sinks = view(sinks.data(), {heads})},
        question);
    Question warm = plain(shape);
    const Temperature temperature{.scale = 0.1, .length = 16};
    warm.factor = [=](std::int64_t, std::int64_t i) { return factor_at(temperature, i + past); };
    expect_formula<BFloat16>(shape, {.temperature = temperature}, warm);
  }
}

// Weights are computed as the reference does.
TEST(Q8Attention, ShowsItsWeights) {
  const Cache k(7, 64, 2), v(7, 32, 3);
  const auto q = random_heads<float>(1, 4, 2, 64, 1);
  Question question;
  question.scale = 0.125;
  const auto answer = answer_of(q, k.means, v.means, question);
  for_each_host_engine([&] {
    Heads<float> got(1, 4, 2, 32), weights(1, 4, 2, 7);
    attention(got.view(), q.view(), k.view(), v.view(), {.weights = weights.view()});
    for (std::size_t i = 0; i < weights.values.size(); ++i) {
      EXPECT_NEAR(static_cast<double>(weights.values[i]), answer.weights.values[i], 1e-6);
    }
    for (std::size_t i = 0; i < got.values.size(); ++i) {
      EXPECT_NEAR(static_cast<double>(got.values[i]), answer.out.values[i], 2e-6 * answer.size.values[i]);
    }
  });
}

// A cache in pages, with heads inside a page or outside; what no query attends to is of no number.
struct Pages {
  std::vector<Q8Block> pool;
  ConstTensorView view;
  Pages(const Cache& from, const std::vector<std::int32_t>& table, std::int64_t page, std::int64_t keys,
        bool has_heads_inside)
      : pool(from.blocks.size(), Q8Block{{0x7E00}, {}}) {
    const std::int64_t features = from.means.features, row = features / kBlock, pages = from.means.tokens / page;
    for (std::int64_t t = 0; t < keys; ++t) {
      const std::int64_t at = table[static_cast<std::size_t>(t / page)], place = t % page;
      for (std::int64_t h = 0; h < kKeyHeads; ++h) {
        const std::int64_t to =
            has_heads_inside ? (at * page + place) * kKeyHeads + h : (at * kKeyHeads + h) * page + place;
        std::copy_n(from.row(h, t), row, pool.data() + to * row);
      }
    }
    view = has_heads_inside
               ? ConstTensorView(swap_axes(posenc::view(pool.data(), {pages, page, kKeyHeads, features}), 1, 2))
               : posenc::view(pool.data(), {pages, kKeyHeads, page, features});
  }
};

TEST(Q8Attention, ReadsPages) {
  constexpr std::int64_t kKeys = 160, kPage = 16, kD = 64;
  const Cache k(kKeys, kD, 2), v(kKeys, 96, 3);
  const std::vector<std::int64_t> lengths = {kKeys - 3};
  std::vector<std::int32_t> table;
  for (int page = 0; page < kKeys / kPage; ++page) table.push_back((page * 3 + 1) % 10);
  for (const std::int64_t queries : {1, 5, 40}) {
    const auto q = random_heads<float>(1, 8, queries, kD, 1);
    const AttentionOptions options{.causal = true, .key_lengths = lengths};
    for_each_host_engine([&] {
      Heads<float> want(1, 8, queries, 96), got = want;
      attention(want.view(), q.view(), k.view(), v.view(), options);
      for (const bool has_heads_inside : {false, true}) {
        const Pages keys(k, table, kPage, lengths[0], has_heads_inside),
            values(v, table, kPage, lengths[0], has_heads_inside);
        AttentionOptions paged = options;
        paged.block_table = table;
        attention(got.view(), q.view(), keys.view, values.view, paged);
        EXPECT_EQ(got.values, want.values) << queries << " queries";
      }
    });
  }
}

// MLA: values are the first features of the keys.
TEST(Q8Attention, ValuesMayBeASliceOfTheKeys) {
  const Cache k(130, 96, 2);
  const auto q = random_heads<float>(1, 8, 1, 96, 1);
  Heads<double> latent(1, kKeyHeads, 130, 64);
  for (std::int64_t h = 0; h < kKeyHeads; ++h) {
    for (std::int64_t t = 0; t < 130; ++t) {
      for (std::int64_t f = 0; f < 64; ++f) latent.at(0, h, t, f) = k.means.real(0, h, t, f);
    }
  }
  Question question;
  question.scale = 0.1;
  const auto answer = answer_of(q, k.means, latent, question);
  for_each_host_engine([&] {
    Heads<float> got(1, 8, 1, 64);
    attention(got.view(), q.view(), k.view(), slice(k.view(), 3, 0, 64), {.scale = 0.1});
    for (std::size_t i = 0; i < got.values.size(); ++i) {
      EXPECT_NEAR(static_cast<double>(got.values[i]), answer.out.values[i], 2e-6 * answer.size.values[i]);
    }
  });
}

// One key: the result is its value, whichever of the 256 bytes that is, with scales of every exponent; infinities and NaN too.
TEST(Q8Attention, ReadsEveryByteAndScale) {
  std::vector<Q8Block> v(256 * 8), k(1);
  for (unsigned i = 0; i < 256 * 8; ++i) {
    v[i].scale.bits = static_cast<std::uint16_t>(i / 8 * 257);
    for (unsigned j = 0; j < 32; ++j) v[i].values[j] = static_cast<std::int8_t>(i % 8 * 32 + j);
  }
  const std::int64_t features = std::ssize(v) * kBlock;
  for (const std::int64_t rows : {1, 40}) {
    const auto q = random_heads<float>(1, 1, rows, 32, 1);
    for_each_host_engine([&] {
      Heads<float> got(1, 1, rows, features);
      attention(got.view(), q.view(), view(static_cast<const Q8Block*>(k.data()), {1, 1, 1, 32}),
                view(static_cast<const Q8Block*>(v.data()), {1, 1, 1, features}));
      std::int64_t wrong = 0;
      for (std::size_t i = 0; i < got.values.size(); ++i) {
        const std::size_t at = i % static_cast<std::size_t>(features);
        const double want = to_double(v[at / 32].scale) * v[at / 32].values[at % 32];
        const auto value = static_cast<double>(got.values[i]);
        if (std::isnan(want) ? !std::isnan(value) : value != want) ++wrong;
      }
      EXPECT_EQ(wrong, 0) << rows << " rows";
    });
  }
}

// Written by rotate_into and read through pages: within what the stated error of the cache makes of the formula.
TEST(Q8Attention, AWrittenCacheIsWithinItsBound) {
  constexpr std::int64_t kKeys = 200, kD = 64, kPage = 50;
  const auto k = random_heads<float>(1, kKeyHeads, kKeys, kD, 2), v = random_heads<float>(1, kKeyHeads, kKeys, kD, 3),
             q = random_heads<float>(1, 4, 1, kD, 4);
  std::vector<Q8Block> k_pool(static_cast<std::size_t>(kKeyHeads * kKeys * kD / kBlock)), v_pool = k_pool;
  const auto cache = [](std::vector<Q8Block>& pool) {
    return swap_axes(view(pool.data(), {kKeys / kPage, kPage, kKeyHeads, kD}), 1, 2);
  };
  const std::vector<std::int32_t> table = {2, 0, 3, 1};
  const std::vector<std::int64_t> slots = slots_of(table, kPage, 0, kKeys), lengths = {kKeys};
  const Rotation rope = prepare(Rope{.dims = kD});
  rotate_into(cache(k_pool), slots, k.view(), {.first = 0}, rope);
  copy_into(cache(v_pool), slots, v.view());
  const AttentionOptions options{
      .position = rope, .causal = true, .keys_are_rotated = true, .key_lengths = lengths, .block_table = table};
  Heads<float> want(1, 4, 1, kD), got = want;
  attention(want.view(), q.view(), k.view(), v.view(), {.position = rope, .causal = true});
  for_each_host_engine([&] {
    attention(got.view(), q.view(), cache(k_pool), cache(v_pool), options);
    // |k| < √2 after rotation, |q| too: a score is off by up to √64 · |q| · e, a weight by e^(2 · that) − 1
    const double e = std::sqrt(2.0) / 225 + 0x1p-18, score = std::sqrt(2.0) * 8 * e,
                 bound = std::expm1(2 * score) + e;
    for (std::size_t i = 0; i < got.values.size(); ++i) {
      EXPECT_NEAR(static_cast<double>(got.values[i]), static_cast<double>(want.values[i]), bound);
    }
  });
}

TEST(Q8Attention, PlansAllocateNothing) {
  const Cache k(2400, 64, 2), v(2400, 64, 3);
  const auto q = random_heads<BFloat16>(1, 8, 4, 64, 1);
  std::vector<std::int64_t> lengths = {2400};
  const tests::CountOfThread count;
  const AttentionOptions options{.causal = true, .key_lengths = lengths};
  for_each_host_engine([&] {
    for (const std::int64_t queries : {1, 4}) {
      const auto some = [&](const auto& x) { return slice(x, 2, 0, queries); };
      Heads<BFloat16> want(1, 8, 4, 64), got = want;
      const AttentionPlan plan = plan_attention({some(q.view()), k.view(), v.view()}, options);
      std::vector<std::byte> memory(workspace_bytes(plan, 1));
      for (const std::int64_t length : {2400, 2047, 4}) {
        lengths[0] = length;
        attention(some(want.view()), some(q.view()), k.view(), v.view(), options, {.threads = 1});
        const std::int64_t before = tests::allocations;
        attention(plan, some(got.view()), some(q.view()), k.view(), v.view(), {.threads = 1, .workspace = memory});
        if (backend() == "cpu") {
          EXPECT_EQ(tests::allocations - before, 0);
        }
        EXPECT_EQ(got.values, want.values);
      }
    }
  });
}

// A decoding step reads blocks where they are: it takes little more than for a cache of f32, which is not widened either. One of
// e4m3 is, if four rows share its keys.
TEST(Q8Attention, NoRowsAreWidened) {
  constexpr std::int64_t kKeys = 300, kD = 128;
  const Cache blocks(kKeys, kD, 2);
  const Heads<float> numbers(1, kKeyHeads, kKeys, kD);
  const std::vector<E4M3> bytes(numbers.values.size());
  const ConstTensorView e4m3 = view(bytes.data(), {1, kKeyHeads, kKeys, kD});
  for_each_host_engine([&] {
    if (backend() != "cpu") return;
    for (const std::int64_t group : {1, 2, 3, 4, 8, 16}) {
      const Heads<float> q(1, kKeyHeads * group, 1, kD);
      const auto bytes_for = [&](const ConstTensorView& cache) {
        return workspace_bytes(plan_attention({q.view(), cache, cache}, {}), 1);
      };
      // a step of keys in f32 would take as much; vectors of NEON need a little for each row of queries
      const std::size_t widened = 64 * kD * sizeof(float);
      EXPECT_LT(bytes_for(blocks.view()), bytes_for(numbers.view()) + widened / 2) << group;
      if (group >= 4) {
        EXPECT_GE(bytes_for(e4m3), bytes_for(blocks.view()) + widened) << group;
      }
    }
  });
}

TEST(Q8Attention, RefusesWhatDoesNotFit) {
  const auto q = random_heads<float>(1, 2, 1, 64, 1);
  const auto wide = random_heads<double>(1, 2, 1, 64, 1);
  const Cache k(5, 64, 2);
  Heads<float> out(1, 2, 1, 64), other(1, 2, 5, 64);
  Heads<double> wide_out(1, 2, 1, 64);
  const auto said = [&](const AttentionOptions& options) {
    return message_of([&] { attention(out.view(), q.view(), k.view(), k.view(), options); });
  };
  const float scale[] = {1};
  EXPECT_EQ(said({}), "accepted");
  EXPECT_EQ(said({.position = prepare(Rope{.dims = 64})}),
            "attention: keys of q8_0 are rotated before they are written (rotate_into): set keys_are_rotated");
  EXPECT_EQ(said({.position = prepare(Rope{.dims = 64}), .keys_are_rotated = true}), "accepted");
  EXPECT_EQ(said({.k_scale = view(scale, {1})}),
            "attention: k_scale is for a cache of e4m3, but it has elements of q8_0");
  const auto vectors = random_heads<float>(1, 1, 64, 64, 5);
  EXPECT_EQ(said({.position = prepare(Cope{}, {.weights = view(vectors.values.data(), {64, 64})})}),
            "attention: the term counted-gates reads queries and keys, which q8_0 does not support");
  EXPECT_EQ(message_of([&] { attention(wide_out.view(), wide.view(), k.view(), k.view()); }),
            "attention: k is q8_0 but must be f64");
  EXPECT_EQ(message_of([&] { attention(out.view(), q.view(), k.view(), other.view()); }),
            "attention: v is f32 but must be q8_0");
  std::vector<Q8Block> blocks(2 * 2);
  EXPECT_EQ(message_of([&] {
              attention(out.view(), view(blocks.data(), {1, 2, 1, 64}), k.view(), k.view());
            }),
            "attention: q must be f32, f64, f16 or bf16 but is q8_0");
  EXPECT_EQ(message_of([&] {
              attention(view(blocks.data(), {1, 2, 1, 64}), q.view(), k.view(), k.view());
            }),
            "attention: out must be f32, f64, f16 or bf16 but is q8_0");
  Heads<float> dq(1, 2, 1, 64);
  EXPECT_EQ(message_of([&] {
              attention_backward({.q = dq.view()}, out.view(), {q.view(), k.view(), k.view()});
            }),
            "attention_backward: a cache of q8_0 has no gradients");
  const auto on_gpu = [](const ConstTensorView& x) { return on(Device::kCuda, x); };
  EXPECT_NE(message_of([&] {
              attention(on(Device::kCuda, out.view()), on_gpu(q.view()), on_gpu(k.view()), on_gpu(k.view()));
            }),
            "accepted");
}

}  // namespace
}  // namespace posenc::q8_attention_test
