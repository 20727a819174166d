// Plans for packed queries over pages: each step has other lengths, other numbers of queries of each sequence and fewer
// tokens than the plan. The bytes are those of attention, and no step allocates.

#include <gtest/gtest.h>

#include <cstring>
#include <functional>

#include "attention/allocations.h"
#include "attention/oracle.h"
#include "attention/two_threads.h"
#include "backends.h"
#include "message_of.h"
#include "posenc/half.h"
#include "posenc/posenc.h"

namespace posenc::packed_plan_test {
namespace {

using tests::for_each_host_engine;
using tests::message_of;
using tests::random_heads;
using tests::TwoThreads;

constexpr std::int64_t kHeads = 4, kKeyHeads = 2, kFeatures = 16, kPage = 16, kRow = 14, kRoom = kPage * kRow,
                       kSequences = 4, kPages = kSequences * kRow, kTokens = 70;

// The queries of each sequence, and the tokens that it has then.
struct Step {
  std::vector<std::int64_t> packed, lengths;
  std::int64_t tokens() const {
    std::int64_t sum = 0;
    for (const std::int64_t queries : packed) sum += queries;
    return sum;
  }
};
const std::vector<Step>& steps() {
  static const std::vector<Step> all = {{{1, 1, 1, 1}, {4, 130, 224, 1}},   {{0, 1, 1, 5}, {9, 131, 224, 6}},
                                        {{66, 1, 2, 1}, {70, 17, 40, 7}},   {{3, 3, 3, 0}, {73, 20, 43, 7}},
                                        {{0, 0, 70, 0}, {73, 20, 200, 7}},  {{0, 0, 0, 0}, {73, 20, 200, 7}},
                                        {{1, 0, 33, 36}, {74, 20, 201, 43}}};
  return all;
}

// What a step changes in place, and what the options refer to.
struct Numbers {
  std::vector<std::int64_t> packed = std::vector<std::int64_t>(kSequences), lengths = packed;
  std::vector<std::int32_t> table = std::vector<std::int32_t>(kPages);
  std::vector<std::int64_t> ids = std::vector<std::int64_t>(kTokens), grid = std::vector<std::int64_t>(2 * kTokens),
                            key_ids = std::vector<std::int64_t>(kSequences * kRoom);
  std::vector<float> mask = std::vector<float>(kTokens * kRoom), sinks = {0.5F, -1, 2, 0},
                     logs = std::vector<float>(kHeads * kTokens), k_scale = {0.02F, 0.01F}, v_scale = {0.004F};

  Numbers() {
    for (std::size_t i = 0; i < table.size(); ++i) table[i] = static_cast<std::int32_t>(i * 37 % kPages);
    for (std::size_t i = 0; i < mask.size(); ++i) mask[i] = std::sin(static_cast<float>(i));
    for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<std::int64_t>(900 + i * i);
    for (std::size_t i = 0; i < grid.size(); ++i) grid[i] = static_cast<std::int64_t>(i * 7 % 31);
    for (std::size_t i = 0; i < key_ids.size(); ++i) key_ids[i] = static_cast<std::int64_t>(i * 11 % 300);
  }
  void take(const Step& step) {
    std::copy(step.packed.begin(), step.packed.end(), packed.begin());
    std::copy(step.lengths.begin(), step.lengths.end(), lengths.begin());
  }
};

struct Case {
  const char* name;
  std::function<void(AttentionOptions&, Numbers&)> set;
  // The options of a call without a plan, for so many tokens.
  std::function<void(AttentionOptions&, Numbers&, std::int64_t)> cut = [](auto&, auto&, auto) {};
};
const std::vector<Case>& cases() {
  static std::vector<std::int64_t> some_grid;
  static const std::vector<Case> all = {
      {"causal", [](AttentionOptions& o, Numbers&) { o.causal = true; }},
      {"rope, window",
       [](AttentionOptions& o, Numbers&) {
         o.position = prepare(Rope{.dims = kFeatures});
         o.causal = o.keys_are_rotated = true;
         o.window = 20;
       }},
      {"rope by ids, window",
       [](AttentionOptions& o, Numbers& n) {
         o.position = prepare(Rope{.dims = kFeatures, .layout = PairLayout::kInterleaved});
         o.keys_are_rotated = true;
         o.window = 50;
         o.query_positions = Positions{.ids = n.ids};
       },
       [](AttentionOptions& o, Numbers& n, std::int64_t tokens) {
         o.query_positions = Positions{.ids = std::span(n.ids).first(static_cast<std::size_t>(tokens))};
       }},
      {"rope of two axes",
       [](AttentionOptions& o, Numbers& n) {
         o.position = prepare(Rope{.dims = kFeatures, .sections = {4, 4}});
         o.keys_are_rotated = true;
         o.query_positions = Positions{.ids = n.grid, .axes = 2};
       },
       [](AttentionOptions& o, Numbers& n, std::int64_t tokens) {
         some_grid.assign(n.grid.begin(), n.grid.begin() + tokens);
         some_grid.insert(some_grid.end(), n.grid.begin() + kTokens, n.grid.begin() + kTokens + tokens);
         o.query_positions->ids = some_grid;
       }},
      {"alibi by ids of keys",
       [](AttentionOptions& o, Numbers& n) {
         o.position = prepare(Alibi{.heads = kHeads});
         o.query_positions = Positions{.ids = n.ids};
         o.key_positions = Positions{.ids = n.key_ids};
       },
       [](AttentionOptions& o, Numbers& n, std::int64_t tokens) {
         o.query_positions = Positions{.ids = std::span(n.ids).first(static_cast<std::size_t>(tokens))};
       }},
      {"chunks, temperature, sinks, softcap, logsumexp",
       [](AttentionOptions& o, Numbers& n) {
         o.causal = true;
         o.chunk = 16;
         o.temperature = Temperature{.length = 4};
         o.sinks = view(n.sinks.data(), {kHeads});
         o.softcap = 3;
         o.logsumexp = view(n.logs.data(), {kHeads, kTokens});
       },
       [](AttentionOptions& o, Numbers& n, std::int64_t tokens) {
         o.logsumexp = TensorView(n.logs.data(), DataType::kF32, {kHeads, tokens}, {kTokens, 1});
       }},
      {"mask of numbers",
       [](AttentionOptions& o, Numbers& n) {
         o.mask = view(n.mask.data(), {kTokens, kRoom});
       },
       [](AttentionOptions& o, Numbers& n, std::int64_t tokens) {
         o.mask = view(n.mask.data(), {tokens, kRoom});
       }},
  };
  return all;
}
const Case& rope_of_plain_keys() {
  static const Case one = {"rope of plain keys", [](AttentionOptions& o, Numbers&) {
                             o.position = prepare(Rope{.dims = kFeatures});
                             o.causal = true;
                           }};
  return one;
}

// q and out are [tokens, heads, features], the pools [pages, page, heads, features], as engines have them.
template <class Q, class T> struct Engine {
  Numbers numbers;
  AttentionOptions options;
  std::vector<Q> q = random_heads<Q>(1, kTokens, kHeads, kFeatures, 1).values, out = q;
  std::vector<T> k, v;

  explicit Engine(const Case& given) {
    if constexpr (std::is_same_v<T, E4M3>) {
      for (std::vector<T>* pool : {&k, &v}) {
        for (const float x : random_heads<float>(kPages, kPage, kKeyHeads, kFeatures, pool == &k ? 2 : 3).values) {
          pool->push_back(to_e4m3(100 * static_cast<double>(x)));
        }
      }
      options.k_scale = view(numbers.k_scale.data(), {kKeyHeads});
      options.v_scale = view(numbers.v_scale.data(), {1});
    } else {
      k = random_heads<T>(kPages, kPage, kKeyHeads, kFeatures, 2).values;
      v = random_heads<T>(kPages, kPage, kKeyHeads, kFeatures, 3).values;
    }
    options.packed = numbers.packed;
    options.key_lengths = numbers.lengths;
    options.block_table = numbers.table;
    given.set(options, numbers);
  }
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  static ConstTensorView cache(const std::vector<T>& pool) {
    return heads_first(view(pool.data(), {kPages, kPage, kKeyHeads, kFeatures}), Axes::kBshd);
  }
  AttentionPlan plan() const { return plan_attention({rows(q, kTokens), cache(k), cache(v)}, options); }
  template <class Rows> static auto rows(Rows& x, std::int64_t tokens) {
    return heads_first(view(x.data(), {tokens, kHeads, kFeatures}), Axes::kThd);
  }
};

template <class Q, class T> void expect_the_same_bytes(const Case& given, TwoThreads& two) {
  SCOPED_TRACE(testing::Message() << given.name << ", " << sizeof(Q) << " and " << sizeof(T) << " bytes");
  Engine<Q, T> engine(given);
  const AttentionPlan plan = engine.plan();
  std::vector<std::byte> workspace(workspace_bytes(plan, 2));
  for (const Step& step : steps()) {
    engine.numbers.take(step);
    const std::int64_t tokens = step.tokens();
    const auto attend = [&](const auto& call) {
      std::fill(engine.out.begin(), engine.out.end(), numerics::narrow<Q>(7));
      std::fill(engine.numbers.logs.begin(), engine.numbers.logs.end(), 7.0F);
      call();
      return std::pair(engine.out, engine.numbers.logs);
    };
    AttentionOptions cut = engine.options;
    given.cut(cut, engine.numbers, tokens);
    const auto want = attend([&] {
      attention(engine.rows(engine.out, tokens), engine.rows(engine.q, tokens), engine.cache(engine.k),
                engine.cache(engine.v), cut);
    });
    for (const Run& run : {Run{}, Run{.threads = 1, .workspace = workspace},
                           Run{.threads = 2, .workspace = workspace, .pool = two.pool()}}) {
      const auto got = attend([&] {
        attention(plan, engine.rows(engine.out, tokens), engine.rows(engine.q, tokens), engine.cache(engine.k),
                  engine.cache(engine.v), run);
      });
      EXPECT_EQ(std::memcmp(got.first.data(), want.first.data(), want.first.size() * sizeof(Q)), 0) << tokens;
      EXPECT_EQ(got.second, want.second) << tokens;
    }
  }
}

TEST(PackedPlan, GivesTheBytesOfAttention) {
  TwoThreads two;
  for_each_host_engine([&] {
    for (const Case& given : cases()) {
      expect_the_same_bytes<float, float>(given, two);
      expect_the_same_bytes<float, BFloat16>(given, two);
      expect_the_same_bytes<BFloat16, BFloat16>(given, two);
      expect_the_same_bytes<Half, Half>(given, two);
      expect_the_same_bytes<float, E4M3>(given, two);
      expect_the_same_bytes<BFloat16, E4M3>(given, two);
    }
    expect_the_same_bytes<float, float>(rope_of_plain_keys(), two);
    expect_the_same_bytes<double, double>(rope_of_plain_keys(), two);
  });
}

// Every step twice: what the pools of threads keep does not count, and a buffer that is not in the workspace does, because
// steps in between have others.
template <class Q, class T> void expect_no_allocation(const Case& given, const Run& run) {
  SCOPED_TRACE(testing::Message() << given.name << ", " << sizeof(Q) << " and " << sizeof(T) << " bytes, "
                                  << run.threads << " threads");
  Engine<Q, T> engine(given);
  const AttentionPlan plan = engine.plan();
  std::vector<std::byte> workspace(workspace_bytes(plan, run.threads));
  Run own = run;
  own.workspace = workspace;
  const auto attend = [&](const Step& step) {
    engine.numbers.take(step);
    attention(plan, engine.rows(engine.out, step.tokens()), engine.rows(engine.q, step.tokens()),
              engine.cache(engine.k), engine.cache(engine.v), own);
  };
  attend(steps().front());
  for (const Step& step : steps()) {
    const std::int64_t before = tests::allocations;
    attend(step);
    EXPECT_EQ(tests::allocations - before, 0) << "step of " << step.tokens() << " tokens";
  }
}

TEST(PackedPlan, AStepAllocatesNothing) {
  const tests::CountOfThread count;
  TwoThreads two;
  tests::warm_up(two);
  for (const std::string& target : simd_targets()) {
    SCOPED_TRACE(target);
    force_backend("cpu");
    force_simd_target(target);
    for (const Case& given : cases()) {
      expect_no_allocation<float, float>(given, {.threads = 1});
      expect_no_allocation<BFloat16, BFloat16>(given, {.threads = 1});
      expect_no_allocation<Half, E4M3>(given, {.threads = 1});
      expect_no_allocation<float, BFloat16>(given, {.threads = 2, .pool = two.pool()});
    }
    expect_no_allocation<float, BFloat16>(rope_of_plain_keys(), {.threads = 1});
  }
  force_backend("");
  force_simd_target("");
}

// The most queries of one sequence, in blocks, are more than all numbers of queries that are counted one by one.
TEST(PackedPlan, HasRoomForAPromptOfAllTokens) {
  constexpr std::int64_t kLong = 700;
  const auto q = random_heads<float>(1, kHeads, kLong, kFeatures, 1),
             k = random_heads<float>(4, kKeyHeads, 256, kFeatures, 2);
  tests::Heads<float> out(1, kHeads, kLong, kFeatures), want = out;
  std::vector<std::int64_t> packed = {1, kLong - 1}, lengths = {3, 1000};
  const std::vector<std::int32_t> table = {0, 1, 2, 3, 3, 0, 2, 1};
  const AttentionOptions options{.position = prepare(Rope{.dims = kFeatures}),
                                 .causal = true,
                                 .keys_are_rotated = true,
                                 .key_lengths = lengths,
                                 .packed = packed,
                                 .block_table = table};
  const tests::CountOfThread count;
  const AttentionPlan plan = plan_attention({q.view(), k.view(), k.view()}, options);
  std::vector<std::byte> workspace(workspace_bytes(plan, 1));
  for (const auto& step : {std::vector<std::int64_t>{1, kLong - 1}, {kLong, 0}, {400, 300}}) {
    std::copy(step.begin(), step.end(), packed.begin());
    lengths[0] = std::max<std::int64_t>(step[0], 3);
    attention(want.view(), q.view(), k.view(), k.view(), options, {.threads = 1});
    const std::int64_t before = tests::allocations;
    attention(plan, out.view(), q.view(), k.view(), k.view(), {.threads = 1, .workspace = workspace});
    EXPECT_EQ(tests::allocations - before, 0);
    EXPECT_EQ(out.values, want.values);
  }
}

// A window over a longer cache than one split, whose ends move; and the windows of sequences that are far apart.
TEST(PackedPlan, WindowsOfAnyLengthAllocateNothing) {
  constexpr std::int64_t kLong = 8192, kWide = 128;
  const auto k = random_heads<float>(1, 2, kLong, kWide, 2), q = random_heads<float>(2, 8, 1, kWide, 1);
  tests::Heads<float> out(2, 8, 1, kWide), want = out;
  const std::vector<std::int32_t> table = {0, 0};
  const tests::CountOfThread count;
  for (const bool has_chunks : {false, true}) {
    for (const std::int64_t sequences : {1, 2}) {
      SCOPED_TRACE(testing::Message() << sequences << (has_chunks ? " sequences, chunks" : " sequences"));
      std::vector<std::int64_t> lengths(static_cast<std::size_t>(sequences));
      AttentionOptions options{
          .causal = true, .key_lengths = lengths, .block_table = std::span(table).first(lengths.size())};
      (has_chunks ? options.chunk : options.window) = 4096;
      const auto some = [&](const auto& x) { return slice(x, 0, 0, sequences); };
      const AttentionPlan plan = plan_attention({some(q.view()), k.view(), k.view()}, options);
      std::vector<std::byte> workspace(workspace_bytes(plan, 1));
      for (const std::int64_t length : {8192, 7000, 8191, 4097}) {
        lengths[0] = length;
        if (sequences > 1) lengths[1] = 100;
        attention(some(want.view()), some(q.view()), k.view(), k.view(), options, {.threads = 1});
        const std::int64_t before = tests::allocations;
        attention(plan, some(out.view()), some(q.view()), k.view(), k.view(), {.threads = 1, .workspace = workspace});
        EXPECT_EQ(tests::allocations - before, 0) << length;
        EXPECT_EQ(out.values, want.values);
      }
    }
  }
}

TEST(PackedPlan, SaysWhatDoesNotFit) {
  Engine<float, float> engine(cases().front());
  engine.numbers.take(steps().front());
  const AttentionPlan plan = engine.plan();
  const auto said = [&](std::int64_t tokens) {
    std::vector<float> q((kTokens + 1) * kHeads * kFeatures), out(q.size(), 7);
    const std::string text = message_of([&] {
      attention(plan, engine.rows(out, tokens), engine.rows(q, tokens), engine.cache(engine.k),
                engine.cache(engine.v));
    });
    EXPECT_TRUE(text == "accepted" || out == std::vector<float>(out.size(), 7)) << "out was touched";
    return text;
  };
  EXPECT_EQ(said(4), "accepted");
  EXPECT_EQ(said(5), "attention: the packed lengths of queries sum to 4 but there are 5 tokens");
  EXPECT_EQ(said(3), "attention: the packed lengths must sum to the 3 tokens of q, but one is 1 after 3 tokens");
  EXPECT_EQ(said(kTokens + 1),
            "attention: the plan was made for q of type f32 and shape [4, 70, 16], got f32 [4, 71, 16]");
  engine.numbers.take({{1, 2, 1, 0}, {4, 225, 8, 9}});  // the second group, after which another would be right
  EXPECT_EQ(said(4),
            "attention: one of key_lengths is 225 but block_table has 14 pages of 16 tokens for each sequence");
  engine.numbers.take({{1, 2, 1, 0}, {4, 9, 8, 9}});
  engine.numbers.table[2 * kRow] = kPages;
  EXPECT_EQ(said(4), "attention: block_table names page 56 but there are 56");
  engine.numbers.table[2 * kRow] = 0;
  EXPECT_EQ(said(4), "accepted");

  const auto refused = [&](const std::function<void(AttentionOptions&)>& change) {
    AttentionOptions options = engine.options;
    change(options);
    return message_of([&] {
      plan_attention({engine.rows(engine.q, kTokens), engine.cache(engine.k), engine.cache(engine.v)}, options);
    });
  };
  const std::vector<std::int64_t> three = {1, 2, 3};
  const std::vector<float> mask(kRoom * 3);
  EXPECT_EQ(refused([](AttentionOptions&) {}), "accepted");
  EXPECT_EQ(refused([&](AttentionOptions& o) { o.key_lengths = three; }),
            "plan_attention: key_lengths has 3 numbers but must have 4");
  EXPECT_EQ(refused([&](AttentionOptions& o) { o.query_positions = Positions{.ids = three}; }),
            "plan_attention: 3 position ids do not fit 70 tokens and 1 axes");
  EXPECT_EQ(refused([&](AttentionOptions& o) {
              o.mask = view(mask.data(), {3, kRoom});
            }),
            "plan_attention: mask has shape [3, 224] but must broadcast to [1, 4, 70, 224]");
  EXPECT_EQ(refused([&](AttentionOptions& o) { o.query_lengths = three; }),
            "plan_attention: packed queries over a paged cache cannot be combined with query_lengths or packed_keys");
  EXPECT_EQ(refused([&](AttentionOptions& o) { o.position = prepare(Rope{.dims = 18}); }),
            "plan_attention: the form rotates 18 features from feature 0 on, but a head has 16");
}

}  // namespace
}  // namespace posenc::packed_plan_test
