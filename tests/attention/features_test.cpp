// What models have in attention beside position: softcap, sinks, chunks, temperature, masks, caches of another type
// and paged caches, on every backend and SIMD target against the formula in double, on every code path: one query, a
// few, and blocks of them.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <random>

#include "attention/oracle.h"
#include "backends.h"
#include "posenc/attention.h"
#include "posenc/schemes/alibi.h"
#include "posenc/schemes/rope.h"

namespace posenc::features_test {
namespace {

using tests::Answer;
using tests::answer_of;
using tests::budget_of;
using tests::error_of;
using tests::for_each_host_engine;
using tests::for_each_host_engine_of;
using tests::Heads;
using tests::Pair;
using tests::Question;
using tests::random_heads;

struct Shape {
  std::int64_t batch, heads, key_heads, queries, keys, features;
};
// a decoding step, few queries that share key heads, more than decoding takes, and tiles with rows past every edge
constexpr Shape kShapes[] = {{2, 4, 1, 1, 150, 32},
                             {1, 8, 2, 3, 131, 20},
                             {1, 2, 2, 16, 70, 64},
                             {1, 2, 1, 50, 129, 16},
                             {1, 1, 1, 200, 260, 9}};

// A feature sets an option, and says in the question what it means.
struct Setting {
  AttentionOptions options;
  Question question;
  std::vector<float> sinks, mask;
  std::vector<bool> seen;
  std::unique_ptr<bool[]> bools;
};
struct Feature {
  const char* name;
  std::function<void(Setting&, const Shape&)> set;
};

double some_value(std::int64_t i) { return std::sin(static_cast<double>(i * i) * 0.7 + 0.3); }

void set_mask(Setting& made, const Shape& shape, bool is_bool) {
  const std::int64_t count = shape.batch * shape.queries * shape.keys;
  std::mt19937_64 random(7);
  made.bools = std::make_unique<bool[]>(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) {
    const bool is_seen = random() % 3 != 0;
    made.seen.push_back(is_seen);
    made.bools[static_cast<std::size_t>(i)] = is_seen;
    made.mask.push_back(is_seen ? static_cast<float>(some_value(i)) : -HUGE_VALF);
  }
  const auto index = [=](const Pair& at) {
    return static_cast<std::size_t>((at.b * shape.queries + at.i) * shape.keys + at.j);
  };
  made.question.sees = [&made, index, before = made.question.sees](const Pair& at) {
    return before(at) && made.seen[index(at)];
  };
  const Extents all = {shape.batch, 1, shape.queries, shape.keys};
  if (is_bool) {
    made.options.mask = view(static_cast<const bool*>(made.bools.get()), all);
    return;
  }
  made.options.mask = view(static_cast<const float*>(made.mask.data()), all);
  made.question.bias = [&made, index, before = made.question.bias](const Pair& at) {
    return before(at) + static_cast<double>(made.mask[index(at)]);
  };
}

void set_causal(Setting& made, const Shape& shape) {
  made.options.causal = true;
  const std::int64_t ahead = shape.keys - shape.queries;
  made.question.sees = [=, before = made.question.sees](const Pair& at) {
    return before(at) && at.j <= at.i + ahead;
  };
}

void set_chunk(Setting& made, const Shape& shape) {
  made.options.chunk = 48;
  const std::int64_t ahead = shape.keys - shape.queries;
  made.question.sees = [=, before = made.question.sees](const Pair& at) {
    return before(at) && at.j / 48 == (at.i + ahead) / 48;
  };
}

void set_sinks(Setting& made, const Shape& shape) {
  for (std::int64_t h = 0; h < shape.heads; ++h) made.sinks.push_back(static_cast<float>(2 * some_value(h)));
  made.options.sinks = view(static_cast<const float*>(made.sinks.data()), {shape.heads});
  made.question.sink = [&made](std::int64_t h) {
    return static_cast<double>(made.sinks[static_cast<std::size_t>(h)]);
  };
}

void set_temperature(Setting& made, const Shape& shape) {
  made.options.temperature = Temperature{.scale = 0.4, .length = 20, .shift = 1};
  const std::int64_t ahead = shape.keys - shape.queries;
  made.question.factor = [=](std::int64_t, std::int64_t i) {
    return 1 + 0.4 * std::log(1 + std::floor(static_cast<double>(i + ahead + 1) / 20.0));
  };
}

void set_softcap(Setting& made, const Shape&) { made.options.softcap = made.question.softcap = 0.7; }

void set_slopes(Setting& made, const Shape& shape) {
  const Bias bias = prepare(Alibi{.heads = shape.heads});
  const std::vector<double> slopes = std::get<Slopes>(bias.source).slopes;
  const std::int64_t ahead = shape.keys - shape.queries;
  made.options.position = bias;
  made.question.bias = [=, before = made.question.bias](const Pair& at) {
    return before(at) - slopes[static_cast<std::size_t>(at.h)] * static_cast<double>(std::abs(at.j - at.i - ahead));
  };
}

const Feature kFeatures[] = {
    {"softcap", set_softcap},
    {"sinks", set_sinks},
    {"chunk", set_chunk},
    {"causal chunk",
     [](Setting& made, const Shape& shape) {
       set_causal(made, shape);
       set_chunk(made, shape);
     }},
    {"temperature", set_temperature},
    {"bool mask", [](Setting& made, const Shape& shape) { set_mask(made, shape, true); }},
    {"mask of numbers", [](Setting& made, const Shape& shape) { set_mask(made, shape, false); }},
    {"all, with slopes",
     [](Setting& made, const Shape& shape) {
       set_slopes(made, shape);
       set_causal(made, shape);
       set_softcap(made, shape);
       set_sinks(made, shape);
       set_temperature(made, shape);
       set_mask(made, shape, false);
       set_chunk(made, shape);
     }},
};

template <class Q, class K> void expect_right(const Shape& shape, const Feature& feature) {
  SCOPED_TRACE(testing::Message() << feature.name << ", " << shape.queries << " queries, " << shape.keys << " keys");
  const auto q = random_heads<Q>(shape.batch, shape.heads, shape.queries, shape.features, 1);
  const auto k = random_heads<K>(shape.batch, shape.key_heads, shape.keys, shape.features, 2);
  const auto v = random_heads<K>(shape.batch, shape.key_heads, shape.keys, shape.features, 3);
  Setting made;
  made.question.scale = 1 / std::sqrt(static_cast<double>(shape.features));
  feature.set(made, shape);
  const Answer answer = answer_of(q, k, v, made.question);
  for_each_host_engine_of<K>([&] {
    Heads<Q> out(shape.batch, shape.heads, shape.queries, shape.features);
    attention(out.view(), q.view(), k.view(), v.view(), made.options);
    EXPECT_LE(error_of(out, answer), budget_of<Q>());
  });
}

TEST(AttentionFeatures, AreTheFormulaOnEveryRoad) {
  for (const Shape& shape : kShapes) {
    for (const Feature& feature : kFeatures) expect_right<float, float>(shape, feature);
  }
  for (const Feature& feature : kFeatures) {
    expect_right<double, double>(kShapes[1], feature);
    for (const Shape& shape : {kShapes[0], kShapes[2], kShapes[3]}) {
      expect_right<Half, Half>(shape, feature);
      expect_right<BFloat16, BFloat16>(shape, feature);
    }
  }
}

// q in f32 beside a cache of 16 bits: the result has f32's error, not the cache's.
TEST(AttentionFeatures, QueriesOfF32MeetANarrowCache) {
  for (const Shape& shape : kShapes) {
    expect_right<float, Half>(shape, kFeatures[0]);
    expect_right<float, BFloat16>(shape, kFeatures[7]);
  }
}

// The log of the sum has the sink in it, and with it the weights: they sum to less than 1.
TEST(AttentionFeatures, SinksTakeTheirShare) {
  const auto q = random_heads<float>(1, 2, 5, 8, 1);
  const auto k = random_heads<float>(1, 2, 9, 8, 2), v = random_heads<float>(1, 2, 9, 8, 3);
  const std::vector<float> sinks = {0.5f, -HUGE_VALF};
  for_each_host_engine([&] {
    Heads<float> out(1, 2, 5, 8), weights(1, 2, 5, 9);
    std::vector<float> logs(10), plain(10);
    attention(out.view(), q.view(), k.view(), v.view(), {.logsumexp = view(plain.data(), {1, 2, 5})});
    attention(
        out.view(), q.view(), k.view(), v.view(),
        {.sinks = view(sinks.data(), {2}), .weights = weights.view(), .logsumexp = view(logs.data(), {1, 2, 5})});
    for (std::size_t i = 0; i < 10; ++i) {
      const double want =
          i < 5 ? std::log(std::exp(static_cast<double>(plain[i])) + std::exp(0.5)) : static_cast<double>(plain[i]);
      EXPECT_NEAR(static_cast<double>(logs[i]), want, 2e-6);
      double sum = 0;
      for (std::size_t j = 0; j < 9; ++j) sum += static_cast<double>(weights.values[9 * i + j]);
      EXPECT_NEAR(sum, i < 5 ? std::exp(static_cast<double>(plain[i]) - want) : 1.0, 2e-6);
    }
    // and where a query sees no key, all of it
    const std::vector<std::int64_t> none = {0};
    attention(out.view(), q.view(), k.view(), v.view(),
              {.sinks = view(sinks.data(), {2}), .key_lengths = none, .logsumexp = view(logs.data(), {1, 2, 5})});
    EXPECT_EQ(out.values, std::vector<float>(80, 0.0f));
    EXPECT_EQ(logs[0], 0.5f);
    EXPECT_EQ(logs[9], -HUGE_VALF);
  });
}

// What a mask hides is not seen, whatever it holds, in k and in v.
TEST(AttentionFeatures, HiddenKeysMayHoldAnything) {
  for (const std::int64_t queries : {1, 9, 60}) {
    const std::int64_t keys = 140;
    const auto q = random_heads<float>(1, 2, queries, 16, 1);
    auto k = random_heads<float>(1, 1, keys, 16, 2), v = random_heads<float>(1, 1, keys, 16, 3);
    const auto is_seen = std::make_unique<bool[]>(static_cast<std::size_t>(queries * keys));
    for (std::int64_t i = 0; i < queries; ++i) {
      for (std::int64_t j = 0; j < keys; ++j) {
        // key 3 and 77 are hidden from all but the last query
        is_seen[static_cast<std::size_t>(i * keys + j)] = (j != 3 && j != 77) || (queries > 1 && i == queries - 1);
      }
    }
    Question question;
    question.scale = 0.25;
    question.sees = [](const Pair& at) { return at.j != 3 && at.j != 77; };
    const Answer answer = answer_of(q, k, v, question);
    for (std::int64_t f = 0; f < 16; ++f) {
      k.at(0, 0, 3, f) = std::numeric_limits<float>::quiet_NaN();
      v.at(0, 0, 77, f) = std::numeric_limits<float>::infinity();
    }
    for_each_host_engine([&] {
      Heads<float> out(1, 2, queries, 16);
      attention(out.view(), q.view(), k.view(), v.view(),
                {.mask = view(static_cast<const bool*>(is_seen.get()), {queries, keys})});
      for (std::int64_t h = 0; h < 2; ++h) {
        for (std::int64_t i = 0; i < queries; ++i) {
          for (std::int64_t f = 0; f < 16; ++f) {
            const double got = out.real(0, h, i, f);
            if (queries > 1 && i == queries - 1) {
              EXPECT_TRUE(std::isnan(got));
            } else {
              ASSERT_NEAR(got, answer.out.real(0, h, i, f), 2e-6) << i;
            }
          }
        }
      }
    });
  }
}

// A paged cache gives the bytes that the same keys give when they lie one after another.
template <class T, class Q = T>
void expect_pages_change_nothing(std::int64_t queries, std::int64_t page, const Form& position) {
  SCOPED_TRACE(testing::Message() << queries << " queries, pages of " << page);
  const std::int64_t batch = 3, heads = 4, key_heads = 2, d = 16, capacity = 160, per_sequence = capacity / page,
                     pages = batch * per_sequence + 2;
  const std::vector<std::int64_t> lengths = {160, 37, 101}, query_lengths(3, queries);
  const auto q = random_heads<Q>(batch, heads, queries, d, 1);
  const auto k = random_heads<T>(batch, key_heads, capacity, d, 2),
             v = random_heads<T>(batch, key_heads, capacity, d, 3);
  // [pages, page, key heads, features], shuffled; pages that no sequence owns hold NaN
  std::vector<std::int32_t> table;
  for (std::int64_t i = 0; i < batch * per_sequence; ++i) table.push_back(static_cast<std::int32_t>(i + 1));
  std::shuffle(table.begin(), table.end(), std::mt19937_64(5));
  const T nothing = numerics::narrow<T>(std::numeric_limits<double>::quiet_NaN());
  std::vector<T> k_pool(static_cast<std::size_t>(pages * page * key_heads * d), nothing), v_pool = k_pool;
  for (std::int64_t b = 0; b < batch; ++b) {
    for (std::int64_t t = 0; t < lengths[static_cast<std::size_t>(b)]; ++t) {
      const std::int64_t at = table[static_cast<std::size_t>(b * per_sequence + t / page)] * page + t % page;
      for (std::int64_t h = 0; h < key_heads; ++h) {
        for (std::int64_t f = 0; f < d; ++f) {
          const auto to = static_cast<std::size_t>((at * key_heads + h) * d + f);
          k_pool[to] = k.values[k.index(b, h, t, f)];
          v_pool[to] = v.values[v.index(b, h, t, f)];
        }
      }
    }
  }
  // entries past a length are not read
  for (std::int64_t i = (37 + page - 1) / page; i < per_sequence; ++i) {
    table[static_cast<std::size_t>(per_sequence + i)] = -1;
  }
  const auto pool_view = [&](const std::vector<T>& pool) {
    return swap_axes(view(pool.data(), {pages, page, key_heads, d}), 1, 2);
  };
  AttentionOptions options{
      .position = position, .causal = true, .query_lengths = query_lengths, .key_lengths = lengths};
  for_each_host_engine([&] {
    Heads<Q> want(batch, heads, queries, d), got = want;
    options.block_table = {};
    attention(want.view(), q.view(), k.view(), v.view(), options);
    options.block_table = table;
    attention(got.view(), q.view(), pool_view(k_pool), pool_view(v_pool), options);
    EXPECT_EQ(got.values, want.values);
  });
}

TEST(AttentionFeatures, PagesChangeNothing) {
  const Form forms[] = {Nothing{}, prepare(Rope{.dims = 16}), prepare(Alibi{.heads = 4})};
  for (const Form& form : forms) {
    for (const std::int64_t queries : {1, 5, 37}) {
      for (const std::int64_t page : {16, 10}) {
        expect_pages_change_nothing<float>(queries, page, form);
        expect_pages_change_nothing<BFloat16>(queries, page, form);
      }
    }
    expect_pages_change_nothing<double>(2, 16, form);
    expect_pages_change_nothing<BFloat16, float>(2, 10, form);
    expect_pages_change_nothing<Half, float>(1, 16, form);
    expect_pages_change_nothing<Half>(2, 16, form);
  }
}

// [batch, tokens, heads, features] in memory, by one word; threads of the call.
TEST(AttentionFeatures, AxesAreSaidByAWord) {
  const auto q = random_heads<float>(2, 7, 3, 8, 1), k = random_heads<float>(2, 9, 3, 8, 2),
             v = random_heads<float>(2, 9, 3, 8, 3);  // tokens stand where heads do
  Heads<float> want(2, 7, 3, 8), got = want;
  const auto swapped = [](auto x) { return swap_axes(x, 1, 2); };
  attention(swapped(want.view()), swapped(q.view()), swapped(k.view()), swapped(v.view()), {.causal = true});
  attention(got.view(), q.view(), k.view(), v.view(), {.axes = Axes::kBshd, .causal = true}, {.threads = 2});
  EXPECT_EQ(got.values, want.values);
}

float scratch[4096];
ConstTensorView in(const Extents& shape) { return view(static_cast<const float*>(scratch), shape); }
TensorView result(const Extents& shape) { return view(scratch + 2048, shape); }

void expect_refusal(const AttentionOptions& options, const char* message) {
  try {
    attention(result({2, 2, 3, 4}), in({2, 2, 3, 4}), in({2, 2, 3, 4}), in({2, 2, 3, 4}), options);
    ADD_FAILURE() << "accepted; expected: " << message;
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), message);
  }
}

TEST(AttentionFeatures, SayWhatIsWrong) {
  const std::vector<std::int64_t> lengths = {3, 3};
  const std::vector<std::int32_t> odd = {0, 1, 0}, past = {0, 2}, fine = {0, 1};
  const std::vector<std::int64_t> integers(12, 1);
  expect_refusal({.softcap = -1}, "attention: softcap must be 0 or more and finite but is -1");
  expect_refusal({.chunk = -2}, "attention: chunk must be 0 or more but is -2");
  expect_refusal({.sinks = in({3})}, "attention: there are 3 sinks but q has 2 heads");
  expect_refusal({.temperature = Temperature{.length = 0}},
                 "attention: a temperature needs a length of 1 or more and a shift of 0 or more, but has 0 and 0");
  expect_refusal({.mask = in({3, 2})}, "attention: mask has shape [3, 2] but must broadcast to [2, 2, 3, 3]");
  expect_refusal({.mask = view(integers.data(), {3, 3})},
                 "attention: mask must be bool or floating-point but is i64");
  expect_refusal({.mask = ConstTensorView(result({3, 3}))}, "attention: out overlaps mask");
  expect_refusal({.key_lengths = lengths, .block_table = odd},
                 "attention: block_table has 3 entries, not a multiple of the 2 sequences");
  expect_refusal({.block_table = fine}, "attention: block_table needs key_lengths");
  expect_refusal({.key_lengths = lengths, .block_table = past},
                 "attention: block_table names page 2 but there are 2");
}

}  // namespace
}  // namespace posenc::features_test
