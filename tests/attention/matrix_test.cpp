// Attention of 16-bit tensors on every backend and SIMD target, with the processor's matrix unit and without: blocks
// of queries and keys across every tile boundary, the stated error, and non-finite values.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "attention/oracle.h"
#include "backends.h"
#include "posenc/attention.h"
#include "posenc/schemes/alibi.h"
#include "posenc/schemes/rope.h"

namespace posenc::matrix_test {
namespace {

using tests::Answer;
using tests::answer_of;
using tests::for_each_host_engine_of;
using tests::Heads;
using tests::Pair;
using tests::Question;
using tests::random_heads;

struct Shape {
  std::int64_t heads, key_heads, queries, keys, features, value_features;
};
// more rows than decoding takes; a matrix unit's blocks have 384 queries, 128 keys, 4 to 32 features a step
constexpr Shape kShapes[] = {{1, 1, 40, 40, 64, 64},   {2, 1, 33, 131, 20, 12}, {1, 1, 70, 70, 3, 5},
                             {1, 1, 49, 260, 128, 40}, {4, 2, 97, 97, 32, 8},   {1, 1, 400, 529, 8, 16},
                             {4, 2, 400, 400, 16, 8}};

// few rows over a cache, at the edges of steps of 64 keys and of chunks of 2048
constexpr Shape kDecodingShapes[] = {{1, 1, 1, 1, 64, 64},     {2, 1, 1, 77, 64, 64},   {4, 1, 1, 200, 128, 64},
                                     {5, 1, 1, 131, 64, 128},  {1, 1, 3, 2120, 64, 64}, {8, 2, 2, 70, 72, 40},
                                     {40, 1, 1, 133, 64, 64},  {36, 1, 1, 70, 24, 20},  {8, 2, 1, 79, 64, 96},
                                     {21, 1, 1, 2120, 32, 64}, {12, 1, 3, 160, 96, 160}};

enum class Kind { kNone, kSlopes, kRotation, kPartialRotation, kRoundedRotation };
constexpr Kind kKinds[] = {Kind::kNone, Kind::kSlopes, Kind::kRotation, Kind::kPartialRotation,
                           Kind::kRoundedRotation};
enum class Mask { kAll, kCausal, kWindow, kPadding };

template <class T> Heads<double> widened(const Heads<T>& x) {
  Heads<double> y(x.batch, x.heads, x.tokens, x.features);
  for (std::size_t i = 0; i < y.values.size(); ++i) y.values[i] = numerics::widen(x.values[i]);
  return y;
}

// What exceeds the rounding of the result, over Σ weight · |v|.
template <class T> double excess_of(const Heads<T>& got, const Answer& answer) {
  double worst = 0;
  const double half_ulp = std::ldexp(1.0, -numerics::format_of<T>().bits);
  for (std::size_t at = 0; at < got.values.size(); ++at) {
    const double exact = answer.out.values[at], error = std::fabs(numerics::widen(got.values[at]) - exact);
    if (error == 0) continue;
    const double excess = (error - half_ulp * std::fabs(exact)) / answer.size.values[at];
    if (!(excess <= worst)) worst = excess;
    if (excess != excess) return HUGE_VAL;
  }
  return worst;
}

// The stated bound, beyond half an ulp of the result: f32's, 2^-15 of the weights, and 2^-15 · scale · Σ |q · k| where q and k
// are not bf16.
template <class T>
double bound_of(const Heads<double>& q, const Heads<double>& k, const Question& question, bool is_rotated) {
  double most = 0;  // of scale · Σ |q · k|, by Cauchy and Schwarz
  const auto largest = [](const Heads<double>& x) {
    double norm = 0;
    for (std::int64_t h = 0; h < x.heads; ++h) {
      for (std::int64_t t = 0; t < x.tokens; ++t) {
        double sum = 0;
        for (std::int64_t f = 0; f < x.features; ++f) sum += x.real(0, h, t, f) * x.real(0, h, t, f);
        norm = std::max(norm, sum);
      }
    }
    return std::sqrt(norm);
  };
  if (is_rotated || std::is_same_v<T, Half>) most = question.scale * largest(q) * largest(k);
  return 2e-6 + 0x1p-15 + 2 * 0x1p-15 * most;  // a weight moves by as much as its score, and so does the sum
}

double worst_excess = 0;

template <class T> void expect_right(const Shape& shape, Kind kind, Mask mask) {
  SCOPED_TRACE(testing::Message() << "queries " << shape.queries << " keys " << shape.keys << " features "
                                  << shape.features << " form " << static_cast<int>(kind) << " mask "
                                  << static_cast<int>(mask));
  const auto q = random_heads<T>(1, shape.heads, shape.queries, shape.features, 1);
  const auto k = random_heads<T>(1, shape.key_heads, shape.keys, shape.features, 2);
  const auto v = random_heads<T>(1, shape.key_heads, shape.keys, shape.value_features, 3);
  auto exact_q = widened(q), exact_k = widened(k);
  const std::int64_t ahead = shape.keys - shape.queries;
  AttentionOptions options;
  Question question;
  question.scale = 1 / std::sqrt(static_cast<double>(shape.features));
  if (kind == Kind::kSlopes) {
    const Bias bias = prepare(Alibi{.heads = shape.heads});
    const std::vector<double> slopes = std::get<Slopes>(bias.source).slopes;
    options.position = bias;
    question.bias = [=](const Pair& at) {
      return -slopes[static_cast<std::size_t>(at.h)] * static_cast<double>(std::abs(at.j - at.i - ahead));
    };
  } else if (kind == Kind::kRotation || kind == Kind::kPartialRotation) {
    const std::int64_t dims = kind == Kind::kRotation ? shape.features / 2 * 2 : shape.features / 4 * 2 + 2;
    Rotation rotation = prepare(Rope{.dims = std::min(dims, shape.features / 2 * 2)});
    if (kind == Kind::kPartialRotation) rotation.first_dim = -2 * pairs_of(rotation);  // the last features
    options.position = rotation;
    rotate(exact_q.view(), {.first = ahead}, rotation);
    rotate(exact_k.view(), {}, rotation);
  } else if (kind == Kind::kRoundedRotation) {
    const Rotation rotation = prepare(Rope{.dims = shape.features / 2 * 2});
    options.position = rotation;
    options.rounds_rotated = true;
    auto rounded_q = q, rounded_k = k;
    rotate(rounded_q.view(), {.first = ahead}, rotation);
    rotate(rounded_k.view(), {}, rotation);
    exact_q = widened(rounded_q);
    exact_k = widened(rounded_k);
  }
  std::vector<std::int64_t> padding(static_cast<std::size_t>(shape.keys), 1);
  for (std::size_t i = 0; i < padding.size(); i += 3) padding[i] = 0;
  options.causal = mask == Mask::kCausal || mask == Mask::kWindow;
  options.window = mask == Mask::kWindow ? 45 : 0;
  if (mask == Mask::kPadding) options.key_mask = padding;
  question.sees = [&](const Pair& at) {
    const std::int64_t delta = at.j - at.i - ahead;
    if (options.causal && delta > 0) return false;
    if (options.window > 0 && delta <= -options.window) return false;
    return mask != Mask::kPadding || padding[static_cast<std::size_t>(at.j)] != 0;
  };
  const Answer answer = answer_of(exact_q, exact_k, widened(v), question);
  const bool is_rotated = kind == Kind::kRotation || kind == Kind::kPartialRotation;
  const double bound = bound_of<T>(exact_q, exact_k, question, is_rotated);
  for_each_host_engine_of<T>([&] {
    Heads<T> out(1, shape.heads, shape.queries, shape.value_features);
    // of one thread, whose blocks of queries and heads meet keys that are packed already
    attention(out.view(), q.view(), k.view(), v.view(), options, {.threads = shape.queries > 100 ? 1 : 0});
    const double excess = excess_of(out, answer);
    worst_excess = std::max(worst_excess, excess);
    EXPECT_LE(excess, bound);
  });
}

TEST(AttentionOf16Bits, IsTheFormulaWithinItsBound) {
  for (const Shape& shape : kShapes) {
    for (const Kind kind : kKinds) {
      for (const Mask mask : {Mask::kAll, Mask::kCausal, Mask::kWindow, Mask::kPadding}) {
        if (shape.queries > 100 && mask != Mask::kCausal && mask != Mask::kWindow) continue;
        expect_right<BFloat16>(shape, kind, mask);
        expect_right<Half>(shape, kind, mask);
      }
    }
  }
  printf("worst error beyond the result's rounding: %.3g of Σ weight·|v|\n", worst_excess);
}

TEST(AttentionOf16Bits, DecodingIsTheFormulaWithinItsBound) {
  for (const Shape& shape : kDecodingShapes) {
    for (const Kind kind : kKinds) {
      for (const Mask mask : {Mask::kAll, Mask::kCausal, Mask::kWindow, Mask::kPadding}) {
        expect_right<BFloat16>(shape, kind, mask);
        expect_right<Half>(shape, kind, mask);
      }
    }
  }
}

// Keys whose scores are far above those before them, or far below: the row maximum is renewed in the middle, for some queries
// of a panel and not for others. With slopes as well, which a processor may add while it makes weights.
template <class T>
void expect_right_where_scores_grow(std::int64_t first_large, std::int64_t last_large, bool has_slopes) {
  SCOPED_TRACE(testing::Message() << "large from " << first_large << " to " << last_large
                                  << (has_slopes ? ", slopes" : ""));
  const std::int64_t queries = 100, keys = 700, d = 64;
  auto q = random_heads<T>(1, 1, queries, d, 1), k = random_heads<T>(1, 1, keys, d, 2);
  const auto v = random_heads<T>(1, 1, keys, d, 3);
  for (std::int64_t i = 0; i < queries; i += 3) {
    for (std::int64_t f = 0; f < d; ++f) q.at(0, 0, i, f) = numerics::narrow<T>(q.real(0, 0, i, f) / 64);
  }
  for (std::int64_t j = first_large; j < last_large; ++j) {
    for (std::int64_t f = 0; f < d; ++f) k.at(0, 0, j, f) = numerics::narrow<T>(8 * k.real(0, 0, j, f));
  }
  Question question;
  question.scale = 0.125;
  AttentionOptions options{.scale = 0.125};
  if (has_slopes) {
    const Bias bias = prepare(Alibi{.heads = 1});
    const double slope = std::get<Slopes>(bias.source).slopes.front();
    options.position = bias;
    question.bias = [=](const Pair& at) {
      return -slope * static_cast<double>(std::abs(at.j - at.i - (keys - queries)));
    };
  }
  const Answer answer = answer_of(widened(q), widened(k), widened(v), question);
  for_each_host_engine_of<T>([&] {
    Heads<T> out(1, 1, queries, d);
    attention(out.view(), q.view(), k.view(), v.view(), options);
    // scores of up to 40 have more to lose than those of 16, for which f32's bound holds
    EXPECT_LE(excess_of(out, answer), 4 * bound_of<T>(widened(q), widened(k), question, false));
  });
}
TEST(AttentionOf16Bits, ScoresMayGrowFromBlockToBlock) {
  for (const auto& [first, last] :
       {std::pair<std::int64_t, std::int64_t>{300, 301}, {0, 100}, {256, 700}, {640, 700}}) {
    for (const bool has_slopes : {false, true}) {
      expect_right_where_scores_grow<BFloat16>(first, last, has_slopes);
      expect_right_where_scores_grow<Half>(first, last, has_slopes);
    }
  }
}

// A matrix unit may take numbers below 2^-126 for 0; the caller's own arithmetic does not change by that.
TEST(AttentionOf16Bits, LeavesTheModesOfArithmeticAlone) {
  const auto x = random_heads<BFloat16>(1, 1, 100, 32, 1);
  for_each_host_engine_of<BFloat16>([&] {
    Heads<BFloat16> out(1, 1, 100, 32);
    attention(out.view(), x.view(), x.view(), x.view(), {});
    volatile float tiny = 0x1p-126f;
    EXPECT_EQ(tiny / 4, 0x1p-128f);
    Heads<BFloat16> step(1, 20, 1, 32);  // of decoding, by a unit that several heads fill
    attention(step.view(), random_heads<BFloat16>(1, 20, 1, 32, 2).view(), x.view(), x.view(), {});
    EXPECT_EQ(tiny / 4, 0x1p-128f);
  });
}

// A key that is infinitely far has no weight, and an infinite value is one, for a step of decoding whose numbers may be sums of
// two: infinity times the smaller of them must not become NaN.
TEST(AttentionOf16Bits, DecodingTakesInfinities) {
  const std::int64_t heads = 20, keys = 150, d = 64, far = 70, large = 90;
  auto q = random_heads<Half>(1, heads, 1, d, 1);
  const auto k = random_heads<Half>(1, 1, keys, d, 2), v = random_heads<Half>(1, 1, keys, d, 3);
  for (std::int64_t h = 0; h < heads; ++h) q.at(0, h, 0, 0) = numerics::narrow<Half>(h % 2 == 0 ? 1.0 : 1.001);
  auto far_k = k, large_v = v;
  far_k.at(0, 0, far, 0) = numerics::narrow<Half>(-HUGE_VAL);
  large_v.at(0, 0, large, 3) = numerics::narrow<Half>(HUGE_VAL);
  std::vector<std::int64_t> padding(keys, 1);
  padding[far] = 0;
  for_each_host_engine_of<Half>([&] {
    Heads<Half> without(1, heads, 1, d), plain = without, got = without;
    attention(without.view(), q.view(), k.view(), v.view(), {.key_mask = padding});
    attention(got.view(), q.view(), far_k.view(), v.view(), {});
    EXPECT_TRUE(got.values == without.values);
    attention(plain.view(), q.view(), k.view(), v.view(), {});
    attention(got.view(), q.view(), k.view(), large_v.view(), {});
    for (std::int64_t h = 0; h < heads; ++h) {
      EXPECT_EQ(got.real(0, h, 0, 3), HUGE_VAL);
      EXPECT_EQ(got.real(0, h, 0, 4), plain.real(0, h, 0, 4));
    }
  });
}

// Rounded or not is not the same: each is the formula of its own q and k.
TEST(AttentionOf16Bits, RoundsRotatedQueriesAndKeysWhereAsked) {
  const std::int64_t keys = 300, d = 64;
  for (const std::int64_t queries : {1, 7, 70}) {  // a step of decoding, a few, a block
    const auto q = random_heads<BFloat16>(1, 2, queries, d, 1), k = random_heads<BFloat16>(1, 1, keys, d, 2);
    const auto v = random_heads<BFloat16>(1, 1, keys, d, 3);
    const Rotation rotation = prepare(Rope{.dims = d});
    auto rotated_q = q, rotated_k = k;
    rotate(rotated_q.view(), {.first = keys - queries}, rotation);
    rotate(rotated_k.view(), {}, rotation);
    for_each_host_engine_of<BFloat16>([&] {
      std::vector<float> inside(static_cast<std::size_t>(2 * queries)), before = inside, whole = inside;
      Heads<BFloat16> out(1, 2, queries, d);
      const auto logs = [&](std::vector<float>& to) { return view(to.data(), {1, 2, queries}); };
      attention(out.view(), q.view(), k.view(), v.view(),
                {.position = rotation, .scale = 1.0, .rounds_rotated = true, .logsumexp = logs(inside)});
      attention(out.view(), rotated_q.view(), rotated_k.view(), v.view(), {.scale = 1.0, .logsumexp = logs(before)});
      attention(out.view(), q.view(), k.view(), v.view(),
                {.position = rotation, .scale = 1.0, .logsumexp = logs(whole)});
      double rounding = 0;
      for (std::size_t i = 0; i < inside.size(); ++i) {
        EXPECT_NEAR(inside[i], before[i], 2e-5) << i;
        rounding = std::max(rounding, std::fabs(static_cast<double>(inside[i] - whole[i])));
      }
      EXPECT_GT(rounding, 1e-3);
    });
  }
}

// Rounded as rotate rounds: the same bytes as attention of q and k that were rotated before, over blocks of queries that meet
// the same keys, heads that share them, features that are not rotated, both layouts, a window and a paged cache.
template <class T> void expect_same_as_rotated_before(const Rotation& rotation, std::int64_t window, bool has_pages,
                                                      std::int64_t d = 32) {
  const std::int64_t batch = 2, heads = 4, key_heads = 2, queries = 450, page = 90;
  SCOPED_TRACE(testing::Message() << "features " << d << " window " << window << " pages " << has_pages);
  const auto q = random_heads<T>(batch, heads, queries, d, 1);
  const auto k = random_heads<T>(batch, key_heads, queries, d, 2),
             v = random_heads<T>(batch, key_heads, queries, d, 3);
  auto rotated_q = q, rotated_k = k;
  rotate(rotated_q.view(), {}, rotation);
  rotate(rotated_k.view(), {}, rotation);
  // page p of sequence b is page 2 · p + b of the pool
  const auto paged = [&](Heads<T> x) {
    Heads<T> pool(batch * queries / page, key_heads, page, d);
    for (std::int64_t b = 0; b < batch; ++b) {
      for (std::int64_t h = 0; h < key_heads; ++h) {
        for (std::int64_t t = 0; t < queries; ++t) {
          for (std::int64_t f = 0; f < d; ++f) pool.at(t / page * batch + b, h, t % page, f) = x.at(b, h, t, f);
        }
      }
    }
    return pool;
  };
  std::vector<std::int32_t> table;
  for (std::int32_t b = 0; b < batch; ++b) {
    for (std::int32_t p = 0; p < queries / page; ++p) table.push_back(p * static_cast<std::int32_t>(batch) + b);
  }
  const std::vector<std::int64_t> lengths(batch, queries);
  for_each_host_engine_of<T>([&] {
    Heads<T> inside(batch, heads, queries, d), before = inside;
    AttentionOptions options{.causal = true, .window = window};
    attention(before.view(), rotated_q.view(), rotated_k.view(), v.view(), options, {.threads = 2});
    options.position = rotation;
    options.rounds_rotated = true;
    if (has_pages) {
      options.key_lengths = lengths;
      options.block_table = table;
      attention(inside.view(), q.view(), paged(k).view(), paged(v).view(), options, {.threads = 1});
    } else {
      attention(inside.view(), q.view(), k.view(), v.view(), options, {.threads = 1});
    }
    EXPECT_TRUE(inside.values == before.values);
  });
}
TEST(AttentionOf16Bits, RoundedInsideIsRotatedBefore) {
  const Rotation whole = prepare(Rope{.dims = 32});
  Rotation last = prepare(Rope{.dims = 16, .layout = PairLayout::kInterleaved});
  last.first_dim = -16;
  for (const Rotation& rotation : {whole, last}) {
    for (const std::int64_t window : {0, 77}) {
      expect_same_as_rotated_before<BFloat16>(rotation, window, false);
      expect_same_as_rotated_before<BFloat16>(rotation, window, true);
    }
  }
  expect_same_as_rotated_before<Half>(last, 0, false);
}
// The same where whole vectors are rotated, or some beside others that are not.
TEST(AttentionOf16Bits, VectorsRoundedInsideAreRotatedBefore) {
  for (const PairLayout layout : {PairLayout::kHalves, PairLayout::kInterleaved}) {
    for (const auto& [d, first] : {std::pair<std::int64_t, std::int64_t>{64, 0}, {128, 0}, {160, 32}, {96, 16}}) {
      Rotation rotation = prepare(Rope{.dims = d / 64 * 64, .layout = layout});
      rotation.first_dim = first;
      expect_same_as_rotated_before<BFloat16>(rotation, 77, false, d);
    }
    Rotation blocks = prepare(Rope{.dims = 128, .layout = layout});
    blocks.blocks = 2;
    expect_same_as_rotated_before<BFloat16>(blocks, 0, true, 192);
  }
  // one layout is read and another written
  expect_same_as_rotated_before<BFloat16>(prepare(Rope{.dims = 64, .layout = PairLayout::kInterleavedToHalves}), 0,
                                          false, 64);
}

// What a cache of f16 gives has f32's error, whatever the size of the queries: they are two numbers of f16 then.
TEST(AttentionOf16Bits, ACacheOfF16HasF32sError) {
  for (const double size : {1.0, 0x1p-20, 0x1p40}) {
    for (const Shape& shape : kDecodingShapes) {
      SCOPED_TRACE(testing::Message() << "size " << size << " heads " << shape.heads << " keys " << shape.keys);
      auto q = random_heads<float>(1, shape.heads, shape.queries, shape.features, 1);
      const auto k = random_heads<Half>(1, shape.key_heads, shape.keys, shape.features, 2);
      const auto v = random_heads<Half>(1, shape.key_heads, shape.keys, shape.value_features, 3);
      const auto exact_q = widened(q);
      for (float& x : q.values) x *= static_cast<float>(size);
      Question question;
      question.scale = 1 / std::sqrt(static_cast<double>(shape.features));
      const Answer answer = answer_of(exact_q, widened(k), widened(v), question);
      for_each_host_engine_of<Half>([&] {
        Heads<float> out(1, shape.heads, shape.queries, shape.value_features);
        attention(out.view(), q.view(), k.view(), v.view(), {.scale = question.scale / size});
        EXPECT_LE(excess_of(out, answer), 2e-6);
      });
    }
  }
}

// A query that is no number spoils its own row alone.
TEST(AttentionOf16Bits, ANaNStaysInItsQuery) {
  const std::int64_t keys = 100, d = 64;
  const auto k = random_heads<Half>(1, 1, keys, d, 2), v = random_heads<Half>(1, 1, keys, d, 3);
  for (const std::int64_t heads : {3, 5}) {
    auto q = random_heads<float>(1, heads, 1, d, 1);
    for_each_host_engine_of<Half>([&] {
      Heads<float> whole(1, heads, 1, d), out(1, heads, 1, d);
      attention(whole.view(), q.view(), k.view(), v.view());
      auto broken = q;
      broken.values[7] = std::nanf("");
      attention(out.view(), broken.view(), k.view(), v.view());
      for (std::size_t i = 0; i < out.values.size(); ++i) {
        if (i < static_cast<std::size_t>(d)) {
          EXPECT_NE(out.values[i], out.values[i]);
        } else {
          EXPECT_NEAR(out.values[i], whole.values[i], 2e-6);
        }
      }
    });
  }
}

// The sum over keys is f32's whatever the type of weights, and the scores behind it: no rounding of theirs shows.
TEST(AttentionOf16Bits, TheLogOfTheSumIsThatOfF32) {
  const std::int64_t tokens = 200, d = 64;
  const auto q = random_heads<BFloat16>(1, 1, tokens, d, 1), k = random_heads<BFloat16>(1, 1, tokens, d, 2);
  Question question;
  question.scale = 0.5;
  question.sees = [](const Pair& at) { return at.j <= at.i; };
  for_each_host_engine_of<BFloat16>([&] {
    Heads<BFloat16> out(1, 1, tokens, d);
    std::vector<float> logs(static_cast<std::size_t>(tokens));
    attention(out.view(), q.view(), k.view(), k.view(),
              {.causal = true, .scale = 0.5, .logsumexp = view(logs.data(), {1, 1, tokens})});
    for (std::int64_t i = 0; i < tokens; ++i) {
      double sum = 0;
      for (std::int64_t j = 0; j <= i; ++j) {
        double score = 0;
        for (std::int64_t f = 0; f < d; ++f) score += q.real(0, 0, i, f) * k.real(0, 0, j, f);
        sum += std::exp(0.5 * score);
      }
      EXPECT_NEAR(static_cast<double>(logs[static_cast<std::size_t>(i)]), std::log(sum), 1e-5) << i;
    }
  });
}

// One key that is seen: its value comes back, to the bit.
TEST(AttentionOf16Bits, OneKeyGivesItsValue) {
  const auto x = random_heads<BFloat16>(1, 1, 50, 32, 1), v = random_heads<BFloat16>(1, 1, 50, 32, 3);
  for_each_host_engine_of<BFloat16>([&] {
    Heads<BFloat16> out(1, 1, 50, 32);
    attention(out.view(), x.view(), x.view(), v.view(), {.causal = true, .window = 1});
    for (std::size_t i = 0; i < out.values.size(); ++i) {
      EXPECT_EQ(numerics::widen(out.values[i]), numerics::widen(v.values[i])) << i;
    }
  });
}

// The rule for what is not finite, as masks_test has it for f32: a bad value is seen from its place on and by nobody before,
// wherever it lies in a tile; a bad query spoils its own row; scores of −inf weigh nothing.
template <class T> void expect_the_rule_for_what_is_not_finite() {
  const std::int64_t tokens = 150, d = 16;
  const auto good_q = random_heads<T>(1, 1, tokens, d, 1), good_k = random_heads<T>(1, 1, tokens, d, 2);
  const auto good_v = random_heads<T>(1, 1, tokens, d, 3);
  const auto number = [](double x) { return numerics::narrow<T>(x); };
  for_each_host_engine_of<T>([&] {
    Heads<T> out(1, 1, tokens, d), plain = out;
    for (const std::int64_t window : {0, 50}) {
      const AttentionOptions options{.causal = true, .window = window};
      const auto sees = [&](std::int64_t i, std::int64_t j) { return j <= i && (window == 0 || j > i - window); };
      attention(plain.view(), good_q.view(), good_k.view(), good_v.view(), options);
      const auto expect_plain_but = [&](const auto& is_bad) {
        for (std::int64_t i = 0; i < tokens; ++i) {
          for (std::int64_t f = 0; f < d; ++f) {
            if (is_bad(i, f)) {
              EXPECT_FALSE(std::isfinite(out.real(0, 0, i, f))) << i << ' ' << f;
            } else {
              EXPECT_NEAR(out.real(0, 0, i, f), plain.real(0, 0, i, f), 8e-3) << i << ' ' << f;
            }
          }
        }
      };
      for (const double bad : {std::nan(""), HUGE_VAL, -HUGE_VAL}) {
        for (const std::int64_t at : {0, 3, 100, 129}) {
          auto v = good_v;
          v.at(0, 0, at, 5) = number(bad);
          attention(out.view(), good_q.view(), good_k.view(), v.view(), options);
          expect_plain_but([&](std::int64_t i, std::int64_t f) { return sees(i, at) && f == 5; });
        }
        auto q = good_q;
        q.at(0, 0, 37, 2) = number(bad);
        attention(out.view(), q.view(), good_k.view(), good_v.view(), options);
        expect_plain_but([&](std::int64_t i, std::int64_t) { return i == 37; });
      }
      auto k = good_k;
      k.at(0, 0, 101, 4) = number(std::nan(""));
      attention(out.view(), good_q.view(), k.view(), good_v.view(), options);
      expect_plain_but([&](std::int64_t i, std::int64_t) { return sees(i, 101); });
    }
    auto q = good_q, k = good_k;
    for (std::int64_t i = 0; i < tokens; ++i) q.at(0, 0, i, 0) = number(1.0);
    for (std::int64_t j = 0; j < 80; ++j) k.at(0, 0, j, 0) = number(-HUGE_VAL);
    attention(out.view(), q.view(), k.view(), good_v.view(), {.causal = true});
    for (std::int64_t i = 0; i < tokens; ++i) {
      EXPECT_TRUE(std::isfinite(out.real(0, 0, i, 3))) << i;
      if (i < 80) {
        EXPECT_EQ(out.real(0, 0, i, 3), 0.0);
      }
      if (i == 80) {
        EXPECT_EQ(out.real(0, 0, i, 3), good_v.real(0, 0, 80, 3));
      }
    }
  });
}
TEST(AttentionOf16Bits, FollowsTheRuleForWhatIsNotFinite) {
  expect_the_rule_for_what_is_not_finite<BFloat16>();
  expect_the_rule_for_what_is_not_finite<Half>();
}

// A key that is no number spoils the heads that read it alone: not those of the next key head, which come after.
template <class T> void expect_a_bad_key_stays_in_its_head() {
  const std::int64_t heads = 4, tokens = 300, d = 32;
  const auto q = random_heads<T>(1, heads, tokens, d, 1);
  const auto k = random_heads<T>(1, 2, tokens, d, 2), v = random_heads<T>(1, 2, tokens, d, 3);
  for (const std::int64_t bad_head : {0, 1}) {
    auto bad = k;
    bad.at(0, bad_head, 200, 3) = numerics::narrow<T>(std::nan(""));
    for_each_host_engine_of<T>([&] {
      Heads<T> expected(1, heads, tokens, d), out = expected;
      attention(expected.view(), q.view(), k.view(), v.view(), {.causal = true});
      attention(out.view(), q.view(), bad.view(), v.view(), {.causal = true});
      for (std::int64_t h = 0; h < heads; ++h) {
        for (std::int64_t i = 0; i < tokens; ++i) {
          if (h / 2 == bad_head && i >= 200) {
            EXPECT_NE(out.real(0, h, i, 5), out.real(0, h, i, 5)) << h << ' ' << i;
          } else {
            EXPECT_NEAR(out.real(0, h, i, 5), expected.real(0, h, i, 5), 8e-3) << h << ' ' << i;
          }
        }
      }
    });
  }
}
TEST(AttentionOf16Bits, ABadKeyStaysInItsHead) {
  expect_a_bad_key_stays_in_its_head<BFloat16>();
  expect_a_bad_key_stays_in_its_head<Half>();
}

// Strides, pages and threads change no byte.
TEST(AttentionOf16Bits, StridesPagesAndThreadsGiveTheSameBytes) {
  const std::int64_t heads = 2, tokens = 300, d = 24, page = 16, pages = 19;
  const auto q = random_heads<BFloat16>(1, heads, tokens, d, 1);
  const auto k = random_heads<BFloat16>(1, heads, tokens, d, 2), v = random_heads<BFloat16>(1, heads, tokens, d, 3);
  Heads<BFloat16> k_pool(pages, page, heads, d), v_pool = k_pool, wide(1, heads, tokens, 2 * d);
  std::vector<std::int32_t> table;
  for (std::int64_t p = 0; p < pages; ++p) table.push_back(static_cast<std::int32_t>((p * 7) % pages));
  for (std::int64_t h = 0; h < heads; ++h) {
    for (std::int64_t t = 0; t < tokens; ++t) {
      for (std::int64_t f = 0; f < d; ++f) {
        const std::int64_t to = table[static_cast<std::size_t>(t / page)];
        k_pool.at(to, t % page, h, f) = k.values[k.index(0, h, t, f)];
        v_pool.at(to, t % page, h, f) = v.values[v.index(0, h, t, f)];
        wide.at(0, h, t, 2 * f) = k.values[k.index(0, h, t, f)];
      }
    }
  }
  const std::vector<std::int64_t> lengths = {tokens};
  for_each_host_engine_of<BFloat16>([&] {
    Heads<BFloat16> expected(1, heads, tokens, d), got = expected;
    const auto bytes_are_equal = [&] {
      return std::equal(got.values.begin(), got.values.end(), expected.values.begin(),
                        [](BFloat16 a, BFloat16 b) { return numerics::widen(a) == numerics::widen(b); });
    };
    attention(expected.view(), q.view(), k.view(), v.view(), {.causal = true});
    ConstTensorView strided = wide.view();
    strided.shape = k.view().shape;
    strided.strides[3] = 2;
    attention(got.view(), q.view(), strided, v.view(), {.causal = true});
    EXPECT_TRUE(bytes_are_equal());
    attention(got.view(), q.view(), swap_axes(k_pool.view(), 1, 2), swap_axes(v_pool.view(), 1, 2),
              {.causal = true, .key_lengths = lengths, .block_table = table});
    EXPECT_TRUE(bytes_are_equal());
    for (const int count : {1, 3}) {
      attention(got.view(), q.view(), k.view(), v.view(), {.causal = true}, {.threads = count});
      EXPECT_TRUE(bytes_are_equal()) << count;
    }
  });
}

// One to three rows over several chunks of 2048 keys, whose keys are read before their values: the formula, whatever the
// threads, the pages and the workspace, with a window that begins inside a chunk, a cache with room past its length, and
// values there and before the window that are no numbers.
template <class T> void expect_right_over_many_chunks(std::int64_t queries, std::int64_t window) {
  const std::int64_t heads = 4, room = 3 * 2048 + 96, length = 3 * 2048 + 77, d = 64, page = 32, pages = room / page;
  SCOPED_TRACE(testing::Message() << "queries " << queries << " window " << window);
  const auto q = random_heads<T>(1, heads, queries, d, 1);
  const auto k = random_heads<T>(1, heads, room, d, 2), v = random_heads<T>(1, heads, room, d, 3);
  Question question;
  question.scale = 0.125;
  question.sees = [&](const Pair& at) {
    const std::int64_t delta = at.j - at.i - (length - queries);
    return delta <= 0 && (window == 0 || delta > -window);
  };
  const Answer answer = answer_of(widened(q), widened(k), widened(v), question);
  auto hostile_k = k, hostile_v = v;
  for (std::int64_t j = 0; j < room; ++j) {
    bool is_seen = false;
    for (std::int64_t i = 0; i < queries; ++i) is_seen = is_seen || question.sees({0, 0, i, j});
    if (is_seen) continue;
    for (std::int64_t at = 0; at < heads * d; ++at) {
      hostile_k.at(0, at / d, j, at % d) = hostile_v.at(0, at / d, j, at % d) = numerics::narrow<T>(std::nan(""));
    }
  }
  Heads<T> k_pool(pages, heads, page, d), v_pool = k_pool;
  std::vector<std::int32_t> table;
  for (std::int64_t p = 0; p < pages; ++p) table.push_back(static_cast<std::int32_t>((p * 7 + 1) % pages));
  for (std::int64_t at = 0; at < heads * room * d; ++at) {
    const std::int64_t h = at / d / room, t = at / d % room, f = at % d,
                       to = table[static_cast<std::size_t>(t / page)];
    k_pool.at(to, h, t % page, f) = hostile_k.at(0, h, t, f);
    v_pool.at(to, h, t % page, f) = hostile_v.at(0, h, t, f);
  }
  const std::vector<std::int64_t> lengths = {length};
  const AttentionOptions options{.causal = true, .window = window, .scale = 0.125, .key_lengths = lengths};
  AttentionOptions paged = options;
  paged.block_table = table;
  for_each_host_engine_of<T>([&] {
    Heads<T> expected(1, heads, queries, d), out = expected;
    attention(expected.view(), q.view(), hostile_k.view(), hostile_v.view(), options, {.threads = 1});
    EXPECT_LE(excess_of(expected, answer), 2e-6 + (sizeof(T) == 2 ? 0x1p-17 : 0.0));
    const auto expect_the_same = [&] {
      for (std::size_t i = 0; i < out.values.size(); ++i) {
        EXPECT_EQ(numerics::widen(out.values[i]), numerics::widen(expected.values[i])) << i;
      }
    };
    for (const int count : {2, 3}) {  // stretches of two chunks and of one, in place of four
      attention(out.view(), q.view(), hostile_k.view(), hostile_v.view(), options, {.threads = count});
      expect_the_same();
    }
    attention(out.view(), q.view(), k_pool.view(), v_pool.view(), paged);
    expect_the_same();
    const AttentionPlan plan = plan_attention({q.view(), hostile_k.view(), hostile_v.view()}, options);
    std::vector<std::byte> workspace(workspace_bytes(plan, 2));
    attention(plan, out.view(), q.view(), hostile_k.view(), hostile_v.view(), {.threads = 2, .workspace = workspace});
    expect_the_same();
  });
}
TEST(AttentionOf16Bits, ManyChunksAreTheFormulaWhateverTheThreads) {
  for (const std::int64_t queries : {1, 3}) {
    for (const std::int64_t window : {0, 4001}) {
      expect_right_over_many_chunks<float>(queries, window);
      expect_right_over_many_chunks<BFloat16>(queries, window);
      expect_right_over_many_chunks<Half>(queries, window);
    }
  }
}

}  // namespace
}  // namespace posenc::matrix_test
