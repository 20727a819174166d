// Attention over a cache of e4m3: the formula over what its bytes and scales mean.

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "attention/oracle.h"
#include "backends.h"
#include "message_of.h"
#include "posenc/attention.h"
#include "posenc/half.h"
#include "posenc/schemes/alibi.h"
#include "posenc/schemes/rope.h"

namespace posenc::e4m3_attention_test {
namespace {

using tests::answer_of;
using tests::for_each_host_engine;
using tests::for_each_host_engine_of;
using tests::has_matrix_unit;
using tests::Heads;
using tests::message_of;
using tests::Pair;
using tests::Question;
using tests::random_heads;

constexpr std::int64_t kKeyHeads = 2;
constexpr float kScales[2][kKeyHeads] = {{0.004F, 0.0021F}, {0.0031F, 0.006F}};  // of keys and of values

// A cache, and the numbers that it means.
struct Cache {
  Heads<E4M3> bytes;
  Heads<double> means;
  Cache(std::int64_t keys, std::int64_t features, const float* scales, bool is_one_scale, std::uint64_t seed)
      : bytes(1, kKeyHeads, keys, features), means(1, kKeyHeads, keys, features) {
    const Heads<float> x = random_heads<float>(1, kKeyHeads, keys, features, seed);
    for (std::int64_t h = 0; h < kKeyHeads; ++h) {
      const auto scale = static_cast<double>(scales[is_one_scale ? 0 : h]);
      for (std::int64_t t = 0; t < keys; ++t) {
        for (std::int64_t f = 0; f < features; ++f) {
          bytes.at(0, h, t, f) = to_e4m3(x.real(0, h, t, f) / scale);
          means.at(0, h, t, f) = to_double(bytes.at(0, h, t, f)) * scale;
        }
      }
    }
  }
};

struct Shape {
  std::int64_t queries, group, keys, features;
};
// One query, groups that share a load, blocks of queries; keys that end within a vector, a step, a split.
constexpr Shape kShapes[] = {{1, 1, 2500, 64}, {1, 3, 97, 128}, {1, 4, 150, 64},  {1, 8, 131, 64}, {3, 4, 97, 40},
                             {1, 17, 96, 64},  {2, 16, 70, 64}, {33, 2, 140, 64}, {70, 1, 70, 24}, {1, 2, 5, 7}};

template <class T>
void expect_formula(const Shape& shape, bool is_one_scale, AttentionOptions options, const Question& question) {
  SCOPED_TRACE(testing::Message() << shape.queries << " queries, " << shape.group << " heads a key head, "
                                  << shape.keys << " keys of " << shape.features);
  const auto q = random_heads<T>(1, kKeyHeads * shape.group, shape.queries, shape.features, 1);
  const Cache k(shape.keys, shape.features, kScales[0], is_one_scale, 2),
      v(shape.keys, shape.features, kScales[1], is_one_scale, 3);
  options.k_scale = view(kScales[0], {is_one_scale ? 1 : kKeyHeads});
  options.v_scale = view(kScales[1], {is_one_scale ? 1 : kKeyHeads});
  const auto answer = answer_of(q, k.means, v.means, question);
  const double rounding = sizeof(T) == 4 ? 0 : std::is_same_v<T, Half> ? 0x1p-11 : 0x1p-8;
  for_each_host_engine_of<T>([&] {
    // a matrix unit's, where the result is of 16 bits: weights are sums of two bf16
    const double weights = rounding > 0 && has_matrix_unit() ? 0x1p-15 : 0;
    Heads<T> got(1, q.heads, q.tokens, shape.features);
    attention(got.view(), q.view(), k.bytes.view(), v.bytes.view(), options);
    for (std::size_t i = 0; i < got.values.size(); ++i) {
      const double want = answer.out.values[i],
                   bound = (2e-6 + weights) * answer.size.values[i] + rounding * std::fabs(want);
      ASSERT_NEAR(to_double(got.values[i]), want, bound) << "element " << i;
    }
  });
}

Question plain(const Shape& shape) {
  Question question;
  question.scale = 1 / std::sqrt(static_cast<double>(shape.features));
  return question;
}

TEST(E4M3Attention, IsTheFormula) {
  for (const Shape& shape : kShapes) {
    for (const bool is_one_scale : {false, true}) {
      expect_formula<float>(shape, is_one_scale, {}, plain(shape));
      expect_formula<BFloat16>(shape, is_one_scale, {}, plain(shape));
      expect_formula<Half>(shape, is_one_scale, {}, plain(shape));
    }
  }
}

TEST(E4M3Attention, WithEverythingElse) {
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
        shape, false,
        {.position = bias, .causal = true, .window = 90, .softcap = 2.5, .sinks = view(sinks.data(), {heads})},
        question);
    Question warm = plain(shape);
    const Temperature temperature{.scale = 0.1, .length = 16};
    warm.factor = [=](std::int64_t, std::int64_t i) { return factor_at(temperature, i + past); };
    expect_formula<BFloat16>(shape, false, {.temperature = temperature}, warm);
  }
}

// The same bytes from a cache in pages, with heads inside a page or outside.
TEST(E4M3Attention, ReadsPages) {
  constexpr std::int64_t kKeys = 160, kPage = 16, kD = 64;
  for (const std::int64_t queries : {1, 5, 40}) {
    const auto q = random_heads<float>(1, 8, queries, kD, 1);
    const Cache k(kKeys, kD, kScales[0], false, 2), v(kKeys, kD, kScales[1], false, 3);
    const std::vector<std::int64_t> lengths = {kKeys - 3};
    std::vector<std::int32_t> table;
    for (int page = 0; page < kKeys / kPage; ++page) table.push_back((page * 3 + 1) % 10);
    AttentionOptions options{.causal = true,
                             .key_lengths = lengths,
                             .k_scale = view(kScales[0], {kKeyHeads}),
                             .v_scale = view(kScales[1], {kKeyHeads})};
    for_each_host_engine([&] {
      Heads<float> want(1, 8, queries, kD), got = want;
      attention(want.view(), q.view(), k.bytes.view(), v.bytes.view(), options);
      for (const bool are_heads_inside : {false, true}) {
        std::vector<E4M3> pools[2];
        ConstTensorView views[2];
        for (int which : {0, 1}) {
          const Heads<E4M3>& from = which == 0 ? k.bytes : v.bytes;
          std::vector<E4M3>& pool = pools[which];
          pool.resize(from.values.size(), E4M3{0x7F});
          for (std::int64_t t = 0; t < lengths[0]; ++t) {
            const std::int64_t page = table[static_cast<std::size_t>(t / kPage)], place = t % kPage;
            for (std::int64_t h = 0; h < kKeyHeads; ++h) {
              const std::int64_t row =
                  are_heads_inside ? (page * kPage + place) * kKeyHeads + h : (page * kKeyHeads + h) * kPage + place;
              std::memcpy(pool.data() + row * kD, from.values.data() + from.index(0, h, t, 0), kD);
            }
          }
          views[which] =
              are_heads_inside
                  ? ConstTensorView(swap_axes(view(pool.data(), {kKeys / kPage, kPage, kKeyHeads, kD}), 1, 2))
                  : view(pool.data(), {kKeys / kPage, kKeyHeads, kPage, kD});
        }
        AttentionOptions paged = options;
        paged.block_table = table;
        attention(got.view(), q.view(), views[0], views[1], paged);
        EXPECT_EQ(got.values, want.values) << queries << " queries";
      }
    });
  }
}

// One key: the result is its value, whichever of the 256 bytes that is; NaN too. As is its score.
TEST(E4M3Attention, ReadsEveryByte) {
  Heads<E4M3> v(1, 1, 1, 256), k(1, 1, 1, 8);
  for (std::size_t i = 0; i < 256; ++i) v.values[i].bits = static_cast<std::uint8_t>(i);
  const float scale[] = {0.25F};
  for (const std::int64_t rows : {1, 4, 8, 40}) {
    const auto q = random_heads<float>(1, 1, rows, 8, 1);
    for_each_host_engine([&] {
      Heads<float> got(1, 1, rows, 256);
      attention(got.view(), q.view(), k.view(), v.view(), {.v_scale = view(scale, {1})});
      for (std::size_t i = 0; i < got.values.size(); ++i) {
        const double want = 0.25 * to_double(v.values[i % 256]);
        ASSERT_TRUE(std::isnan(want) ? std::isnan(got.values[i]) : static_cast<double>(got.values[i]) == want) << i;
      }
    });
  }
  for (unsigned byte = 0; byte < 256; ++byte) {
    for (E4M3& x : k.values) x.bits = static_cast<std::uint8_t>(byte);
    const std::vector<float> q(8 * 40, 0.125F);
    for_each_host_engine([&] {
      for (const std::int64_t rows : {1, 4, 40}) {
        Heads<float> got(1, 1, rows, 256);
        std::vector<float> logsumexp(static_cast<std::size_t>(rows));
        attention(got.view(), view(q.data(), {1, 1, rows, 8}), k.view(), v.view(),
                  {.scale = 1.0, .logsumexp = view(logsumexp.data(), {1, 1, rows})});
        const double want = to_double(k.values[0]);
        for (const float one : logsumexp) {
          ASSERT_TRUE(std::isnan(want) ? std::isnan(one)
                                       : std::fabs(static_cast<double>(one) - want) <= 2e-6 * std::fabs(want))
              << byte;
        }
      }
    });
  }
}

TEST(E4M3Attention, PlansAllocateNothingMore) {
  const auto q = random_heads<BFloat16>(1, 8, 1, 64, 1);
  const Cache k(300, 64, kScales[0], false, 2), v(300, 64, kScales[1], false, 3);
  const AttentionOptions options{.k_scale = view(kScales[0], {kKeyHeads}), .v_scale = view(kScales[1], {kKeyHeads})};
  for_each_host_engine([&] {
    Heads<BFloat16> want(1, 8, 1, 64), got = want;
    attention(want.view(), q.view(), k.bytes.view(), v.bytes.view(), options);
    const AttentionPlan plan = plan_attention({q.view(), k.bytes.view(), v.bytes.view()}, options);
    std::vector<std::byte> memory(workspace_bytes(plan, 1));
    attention(plan, got.view(), q.view(), k.bytes.view(), v.bytes.view(), {.threads = 1, .workspace = memory});
    EXPECT_EQ(got.values, want.values);
  });
}

TEST(E4M3Attention, RefusesWhatDoesNotFit) {
  const auto q = random_heads<float>(1, 2, 1, 8, 1);
  const auto wide = random_heads<double>(1, 2, 1, 8, 1);
  const Cache k(5, 8, kScales[0], false, 2);
  Heads<float> out(1, 2, 1, 8);
  Heads<double> wide_out(1, 2, 1, 8);
  const auto said = [&](const AttentionOptions& options) {
    return message_of([&] { attention(out.view(), q.view(), k.bytes.view(), k.bytes.view(), options); });
  };
  EXPECT_EQ(said({}), "accepted");
  EXPECT_EQ(said({.position = prepare(Rope{.dims = 8})}),
            "attention: keys of e4m3 are rotated before they are written (rotate_into): set keys_are_rotated");
  EXPECT_EQ(said({.position = prepare(Rope{.dims = 8}), .keys_are_rotated = true}), "accepted");
  EXPECT_EQ(said({.k_scale = view(kScales[0], {1}), .v_scale = q.view()}).substr(0, 32),
            "attention: v_scale must have 1 a");
  EXPECT_EQ(message_of([&] { attention(wide_out.view(), wide.view(), k.bytes.view(), k.bytes.view()); }),
            "attention: k is e4m3 but must be f64");
  EXPECT_EQ(
      message_of([&] { attention(out.view(), q.view(), q.view(), q.view(), {.k_scale = view(kScales[0], {1})}); }),
      "attention: k_scale is for a cache of e4m3, but it has elements of f32");
  Heads<float> dq(1, 2, 1, 8);
  EXPECT_EQ(message_of([&] {
              attention_backward({.q = dq.view()}, out.view(), {q.view(), k.bytes.view(), k.bytes.view()});
            }),
            "attention_backward: a cache of e4m3 has no gradients");
}

}  // namespace
}  // namespace posenc::e4m3_attention_test
