// Continuous batching: queries of several sequences, one after another, over one paged cache. Every sequence gets the
// same result as alone, on every backend and SIMD target; and pages without visible keys need not exist.

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <type_traits>

#include "attention/oracle.h"
#include "backends.h"
#include "posenc/attention.h"
#include "posenc/cache.h"
#include "posenc/error.h"
#include "posenc/schemes/alibi.h"
#include "posenc/schemes/forget_gate.h"
#include "posenc/schemes/rope.h"

namespace posenc::packed_pages_test {
namespace {

using tests::for_each_host_engine;
using tests::random_heads;

constexpr std::int64_t kHeads = 4, kKeyHeads = 2, kFeatures = 16, kPage = 8, kRow = 13, kRoom = kPage * kRow,
                       kPages = 100;

// Two that decode, one that waits, the end of a short prompt, one that decodes with a draft, and a chunk of a long prompt.
struct Batch {
  std::vector<std::int64_t> packed = {1, 1, 0, 4, 4, 40}, lengths = {30, 5, 9, 7, 100, 52};
  std::int64_t sequences = 6, tokens = 50;
  std::vector<std::int32_t> table = std::vector<std::int32_t>(static_cast<std::size_t>(sequences * kRow), -1);

  Batch() {
    for (std::int64_t s = 0; s < sequences; ++s) {
      for (std::int64_t i = 0; i * kPage < lengths[static_cast<std::size_t>(s)]; ++i) {
        table[static_cast<std::size_t>(s * kRow + i)] = static_cast<std::int32_t>((s * kRow + i) * 37 % kPages);
      }
    }
  }
  std::span<const std::int32_t> pages(std::int64_t s) const {
    return std::span(table).subspan(static_cast<std::size_t>(s * kRow), kRow);
  }
};

struct Feature {
  const char* name;
  // Sets the options of the whole, or with a sequence and its first query, of that sequence alone.
  std::function<void(AttentionOptions&, std::int64_t s, std::int64_t first)> set;
};
constexpr std::int64_t kAll = -1;

// What a feature reads: a number for each query and key, and for each sequence and key.
struct Numbers {
  std::vector<float> mask, gates, sinks = {0.5f, -1, 2, 0};
  std::unique_ptr<bool[]> seen{new bool[50 * kRoom]};
  std::vector<std::int64_t> key_mask, ids, grid, key_ids;
  Numbers() {
    for (std::int64_t i = 0; i < 50 * kRoom; ++i) {
      mask.push_back(static_cast<float>(std::sin(static_cast<double>(i))));
      seen[static_cast<std::size_t>(i)] = i % 3 != 1;
    }
    for (std::int64_t i = 0; i < 6 * kHeads * kRoom; ++i)
      gates.push_back(static_cast<float>(-0.01 * static_cast<double>(i % 7)));
    for (std::int64_t i = 0; i < 6 * kRoom; ++i) key_mask.push_back(i % 5 != 2 ? 1 : 0);
    for (std::int64_t i = 0; i < 50; ++i) ids.push_back(1000 + i * i);
    for (std::int64_t i = 0; i < 2 * 50; ++i) grid.push_back(i * 7 % 31);
    for (std::int64_t i = 0; i < 6 * kRoom; ++i) key_ids.push_back(i * 11 % 300);
  }
};

std::vector<Feature> features(const Batch& batch, const Numbers& n) {
  const auto queries = [&batch](std::int64_t s) { return batch.packed[static_cast<std::size_t>(s)]; };
  const auto part = [](const auto& all, std::int64_t first, std::int64_t count) {
    return std::span(all).subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(count));
  };
  static std::vector<std::int64_t> own_grid;  // of one sequence
  return {
      {"none", [](AttentionOptions& o, std::int64_t, std::int64_t) { o.causal = true; }},
      {"not causal", [](AttentionOptions&, std::int64_t, std::int64_t) {}},
      {"rope",
       [](AttentionOptions& o, std::int64_t, std::int64_t) {
         o.position = prepare(Rope{.dims = kFeatures});
         o.causal = o.keys_are_rotated = true;
       }},
      {"rope of plain keys, window",
       [](AttentionOptions& o, std::int64_t, std::int64_t) {
         o.position = prepare(Rope{.dims = kFeatures});
         o.causal = true;
         o.window = 6;
       }},
      {"rope by ids",
       [&n, queries, part](AttentionOptions& o, std::int64_t s, std::int64_t first) {
         o.position = prepare(Rope{.dims = kFeatures});
         o.keys_are_rotated = true;
         o.query_positions = Positions{.ids = s == kAll ? part(n.ids, 0, 50) : part(n.ids, first, queries(s))};
       }},
      {"rope of two axes",
       [&n, queries](AttentionOptions& o, std::int64_t s, std::int64_t first) {
         o.position = prepare(Rope{.dims = kFeatures, .sections = {4, 4}});
         o.keys_are_rotated = true;
         o.query_positions = Positions{.ids = n.grid, .axes = 2};
         if (s == kAll) return;
         own_grid.clear();
         for (const std::int64_t axis : {0, 1}) {
           for (std::int64_t i = 0; i < queries(s); ++i) {
             own_grid.push_back(n.grid[static_cast<std::size_t>(axis * 50 + first + i)]);
           }
         }
         o.query_positions->ids = own_grid;
       }},
      {"alibi by ids of keys",
       [&n, queries, part](AttentionOptions& o, std::int64_t s, std::int64_t first) {
         o.position = prepare(Alibi{.heads = kHeads});
         o.query_positions = Positions{.ids = s == kAll ? part(n.ids, 0, 50) : part(n.ids, first, queries(s))};
         o.key_positions =
             Positions{.ids = s == kAll ? part(n.key_ids, 0, 6 * kRoom) : part(n.key_ids, s * kRoom, kRoom)};
       }},
      {"chunks, temperature, sinks, softcap",
       [&n](AttentionOptions& o, std::int64_t, std::int64_t) {
         o.causal = true;
         o.chunk = 16;
         o.temperature = Temperature{.length = 4};
         o.sinks = view(n.sinks.data(), {kHeads});
         o.softcap = 3;
       }},
      {"mask of numbers",
       [&n, queries](AttentionOptions& o, std::int64_t s, std::int64_t first) {
         o.mask =
             s == kAll ? view(n.mask.data(), {50, kRoom}) : view(n.mask.data() + first * kRoom, {queries(s), kRoom});
       }},
      {"bool mask for each head, one row for all",
       [&n](AttentionOptions& o, std::int64_t, std::int64_t) {
         o.mask = view(static_cast<const bool*>(n.seen.get()), {kHeads, 1, kRoom});
       }},
      {"bool mask of keys", [&n](AttentionOptions& o, std::int64_t,
                                 std::int64_t) { o.mask = view(static_cast<const bool*>(n.seen.get()), {kRoom}); }},
      {"padding",
       [&n, part](AttentionOptions& o, std::int64_t s, std::int64_t) {
         o.key_mask = s == kAll ? part(n.key_mask, 0, 6 * kRoom) : part(n.key_mask, s * kRoom, kRoom);
       }},
      {"gates",
       [&n](AttentionOptions& o, std::int64_t s, std::int64_t) {
         o.position = prepare(ForgetGate{});
         o.causal = true;
         o.log_gates = s == kAll ? view(n.gates.data(), {6, kHeads, kRoom})
                                 : view(n.gates.data() + s * kHeads * kRoom, {1, kHeads, kRoom});
       }},
  };
}

double largest_difference(const std::vector<double>& a, const std::vector<double>& b) {
  double largest = a.size() == b.size() ? 0 : std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < a.size() && i < b.size(); ++i) {
    const double difference = a[i] == b[i] ? 0 : std::fabs(a[i] - b[i]);
    if (!(difference <= largest))
      largest = std::isnan(difference) ? std::numeric_limits<double>::infinity() : difference;
  }
  return largest;
}

template <class T> std::vector<double> widened(const std::vector<T>& x) {
  std::vector<double> wide;
  for (const T value : x) wide.push_back(static_cast<double>(numerics::widen(value)));
  return wide;
}

// q and out are [tokens, heads, features], as engines have them.
template <class Q, class T> void expect_each_as_alone(const Feature& feature, const Batch& batch) {
  SCOPED_TRACE(testing::Message() << feature.name << ", types of " << sizeof(Q) << " and " << sizeof(T) << " bytes");
  const auto q = random_heads<Q>(1, batch.tokens, kHeads, kFeatures, 1).values;
  const auto k = random_heads<T>(kPages, kPage, kKeyHeads, kFeatures, 2).values,
             v = random_heads<T>(kPages, kPage, kKeyHeads, kFeatures, 3).values;
  const auto cache = [](const std::vector<T>& pool) {
    return heads_first(view(pool.data(), {kPages, kPage, kKeyHeads, kFeatures}), Axes::kBshd);
  };
  const auto rows = [](auto* data, std::int64_t first, std::int64_t count) {
    return heads_first(view(data + first * kHeads * kFeatures, {count, kHeads, kFeatures}), Axes::kThd);
  };
  std::vector<Q> got(q.size()), want(q.size());
  using Sum = std::conditional_t<std::is_same_v<T, double>, double, float>;
  std::vector<Sum> logs(static_cast<std::size_t>(kHeads * batch.tokens)), wanted_logs = logs;
  AttentionOptions whole{.key_lengths = batch.lengths, .packed = batch.packed, .block_table = batch.table};
  feature.set(whole, kAll, 0);
  whole.logsumexp = view(logs.data(), {kHeads, batch.tokens});
  attention(rows(got.data(), 0, batch.tokens), rows(q.data(), 0, batch.tokens), cache(k), cache(v), whole);
  std::int64_t first = 0;
  for (std::int64_t s = 0; s < batch.sequences; ++s) {
    const std::int64_t queries = batch.packed[static_cast<std::size_t>(s)];
    const std::vector<std::int64_t> length = {batch.lengths[static_cast<std::size_t>(s)]};
    AttentionOptions alone{.key_lengths = length, .block_table = batch.pages(s)};
    feature.set(alone, s, first);
    alone.logsumexp = slice(view(wanted_logs.data(), {kHeads, batch.tokens}), 1, first, queries);
    attention(rows(want.data(), first, queries), rows(q.data(), first, queries), cache(k), cache(v), alone);
    first += queries;
  }
  EXPECT_EQ(largest_difference(widened(got), widened(want)), 0);
  EXPECT_EQ(largest_difference(widened(logs), widened(wanted_logs)), 0);
}

TEST(PackedPages, EachSequenceIsAsAlone) {
  const Batch batch;
  const Numbers numbers;
  const auto all = features(batch, numbers);
  for_each_host_engine([&] {
    for (const Feature& feature : all) {
      expect_each_as_alone<float, float>(feature, batch);
      expect_each_as_alone<float, BFloat16>(feature, batch);
      expect_each_as_alone<BFloat16, BFloat16>(feature, batch);
    }
    expect_each_as_alone<double, double>(all[2], batch);
    expect_each_as_alone<Half, Half>(all[7], batch);
  });
}

// Weights too, and out with heads last by a word.
TEST(PackedPages, WeightsAreThoseOfEachSequence) {
  const Batch batch;
  const auto q = random_heads<float>(1, batch.tokens, kHeads, kFeatures, 1).values;
  const auto k = random_heads<float>(kPages, kKeyHeads, kPage, kFeatures, 2),
             v = random_heads<float>(kPages, kKeyHeads, kPage, kFeatures, 3);
  std::vector<float> out(q.size()), weights(static_cast<std::size_t>(kHeads * batch.tokens * kRoom));
  attention(heads_first(view(out.data(), {batch.tokens, kHeads, kFeatures}), Axes::kThd),
            heads_first(view(q.data(), {batch.tokens, kHeads, kFeatures}), Axes::kThd), k.view(), v.view(),
            {.causal = true,
             .key_lengths = batch.lengths,
             .packed = batch.packed,
             .block_table = batch.table,
             .weights = view(weights.data(), {kHeads, batch.tokens, kRoom})});
  // the second sequence, token 1, sees 5 keys
  for (std::int64_t h = 0; h < kHeads; ++h) {
    double sum = 0;
    for (std::int64_t j = 0; j < kRoom; ++j) {
      const auto weight = static_cast<double>(weights[static_cast<std::size_t>((h * batch.tokens + 1) * kRoom + j)]);
      EXPECT_EQ(weight > 0, j < 5) << j;
      sum += weight;
    }
    EXPECT_NEAR(sum, 1, 1e-6);
  }
}

// Pages that lie before every window or chunk may be gone: −1, or given to somebody else.
template <class T> void expect_gone_pages_are_not_read(std::int64_t queries, bool has_chunks) {
  SCOPED_TRACE(testing::Message() << queries << " queries, " << sizeof(T) << " bytes"
                                  << (has_chunks ? ", chunks" : ""));
  const std::vector<std::int64_t> lengths = {100};
  const auto q = random_heads<T>(1, kHeads, queries, kFeatures, 1);
  const auto k = random_heads<T>(kPages, kKeyHeads, kPage, kFeatures, 2),
             v = random_heads<T>(kPages, kKeyHeads, kPage, kFeatures, 3);
  std::vector<std::int32_t> table;
  for (std::int32_t i = 0; i < kRow; ++i) table.push_back((i * 37 + 5) % kPages);
  tests::Heads<T> want(1, kHeads, queries, kFeatures), got = want;
  AttentionOptions options{.causal = true, .key_lengths = lengths, .block_table = table};
  (has_chunks ? options.chunk : options.window) = 12;
  attention(want.view(), q.view(), k.view(), v.view(), options);
  // the first query is token 100 − queries, and its chunk begins at a multiple of 12
  const std::int64_t first = 100 - queries,
                     seen = has_chunks ? first / 12 * 12 : std::max<std::int64_t>(first - 11, 0);
  for (std::int64_t i = 0; i < seen / kPage; ++i)
    table[static_cast<std::size_t>(i)] = i % 2 == 0 ? -1 : 2'000'000'000;
  attention(got.view(), q.view(), k.view(), v.view(), options);
  EXPECT_EQ(got.values, want.values);
  table[static_cast<std::size_t>(seen / kPage)] = -1;
  EXPECT_THROW(attention(got.view(), q.view(), k.view(), v.view(), options), Error);
}

TEST(PackedPages, PagesBeforeAWindowMayBeGone) {
  for_each_host_engine([] {
    for (const std::int64_t queries : {1, 3, 40}) {
      for (const bool has_chunks : {false, true}) {
        expect_gone_pages_are_not_read<float>(queries, has_chunks);
        expect_gone_pages_are_not_read<BFloat16>(queries, has_chunks);
      }
    }
  });
}

void expect_refusal(const AttentionOptions& options, const char* message) {
  static float pool[4 * 2 * 8 * 4] = {};
  const std::vector<float> q(5 * 4 * 4, 1.0f);
  std::vector<float> out(q.size(), 7.0f);
  const auto cache = view(static_cast<const float*>(pool), {4, 2, 8, 4});
  try {
    attention(view(out.data(), {4, 5, 4}), view(q.data(), {4, 5, 4}), cache, cache, options);
    ADD_FAILURE() << "accepted; expected: " << message;
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), message);
  }
  EXPECT_EQ(out, std::vector<float>(out.size(), 7.0f)) << "out was touched";
}

TEST(PackedPages, SayWhatIsWrong) {
  const std::vector<std::int64_t> packed = {1, 4}, lengths = {8, 9}, one = {9}, past = {8, 17}, few = {1, 3},
                                  more = {1, 5}, negative = {-1, 6}, ids = {0, 1, 2, 3};
  const std::vector<std::int32_t> table = {0, -1, 1, 2}, odd = {0, 1, 2}, bad = {0, -1, 1, 4};
  const auto with = [&](std::span<const std::int64_t> queries, std::span<const std::int64_t> keys,
                        std::span<const std::int32_t> pages) {
    return AttentionOptions{.key_lengths = keys, .packed = queries, .block_table = pages};
  };
  expect_refusal(with(packed, one, table), "attention: key_lengths has 1 numbers but must have 2");
  expect_refusal(with(packed, lengths, odd),
                 "attention: block_table has 3 entries, not a multiple of the 2 sequences");
  expect_refusal(with(packed, past, table),
                 "attention: one of key_lengths is 17 but block_table has 2 pages of 8 tokens for each sequence");
  expect_refusal(with(packed, lengths, bad), "attention: block_table names page 4 but there are 4");
  expect_refusal(with(few, lengths, table),
                 "attention: the packed lengths of queries sum to 4 but there are 5 tokens");
  expect_refusal(with(more, lengths, table),
                 "attention: the packed lengths must sum to the 5 tokens of q, but one is 5 after 1 tokens");
  expect_refusal(with(negative, lengths, table),
                 "attention: the packed lengths must sum to the 5 tokens of q, but one is -1 after 0 tokens");
  AttentionOptions options = with(packed, lengths, table);
  options.query_positions = Positions{.first = 3};
  expect_refusal(options,
                 "attention: with packed queries over a paged cache, query_positions must be ids, one per token");
  options.query_positions = Positions{.ids = ids};
  expect_refusal(options, "attention: 4 position ids do not fit 5 tokens and 1 axes");
  options = with(packed, lengths, table);
  options.query_lengths = packed;
  expect_refusal(options,
                 "attention: packed queries over a paged cache cannot be combined with query_lengths or packed_keys");
  options = with(packed, lengths, table);
  options.key_mask = ids;
  expect_refusal(options, "attention: key_mask has 4 numbers but must have 32");
  const float mask[4 * 16] = {};
  options.key_mask = {};
  options.mask = view(mask, {4, 16});
  expect_refusal(options, "attention: mask has shape [4, 16] but must broadcast to [1, 4, 5, 16]");
  options.mask = {};
}

}  // namespace
}  // namespace posenc::packed_pages_test
