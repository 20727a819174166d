// Windows and chunks by position, where the tokens are not in the order of their positions, and spans whose tokens attend
// to each other: against the formula on every engine, and gradients against those of a mask.

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>

#include "attention/oracle.h"
#include "backends.h"
#include "posenc/attention.h"

namespace posenc::sights_test {
namespace {

using tests::answer_of;
using tests::budget_of;
using tests::error_of;
using tests::for_each_host_engine;
using tests::for_each_host_engine_of;
using tests::Heads;
using tests::Pair;
using tests::Question;
using tests::random_heads;

using Ids = std::vector<std::int64_t>;

// A mask [queries, keys] from a rule.
struct Mask {
  std::unique_ptr<bool[]> seen;
  Extents shape;
  template <class Sees> Mask(std::int64_t batch, std::int64_t queries, std::int64_t keys, const Sees& sees)
      : seen(new bool[static_cast<std::size_t>(batch * queries * keys)]), shape{batch, 1, queries, keys} {
    bool* to = seen.get();
    for (std::int64_t b = 0; b < batch; ++b) {
      for (std::int64_t i = 0; i < queries; ++i) {
        for (std::int64_t j = 0; j < keys; ++j) *to++ = sees(Pair{b, 0, i, j});
      }
    }
  }
  ConstTensorView view() const { return posenc::view(static_cast<const bool*>(seen.get()), shape); }
};

// A tree of drafted tokens after `past` others: each node has a parent before it, or none, and its depth.
struct Tree {
  std::int64_t past;
  Ids parents;
  Ids ids() const {
    Ids all;
    for (const std::int64_t parent : parents) {
      all.push_back(parent < 0 ? past : all[static_cast<std::size_t>(parent)] + 1);
    }
    return all;
  }
  std::int64_t nodes() const { return std::ssize(parents); }
  bool is_ancestor(std::int64_t node, std::int64_t other) const {
    while (node > other) node = parents[static_cast<std::size_t>(node)];
    return node == other;
  }
  bool sees(std::int64_t i, std::int64_t j) const { return j < past || is_ancestor(i, j - past); }
};
// Depth first, so that depths go up and down.
Tree tree_of(std::int64_t past, std::int64_t nodes, std::uint64_t seed) {
  Tree tree{past, {-1}};
  std::mt19937_64 random(seed);
  for (std::int64_t node = 1; node < nodes; ++node) {
    tree.parents.push_back(random() % 3 == 0 ? static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(node))
                                             : node - 1);
  }
  return tree;
}

// As docs/guide/engines.md has it: depths as query_positions, the tree in the mask, and the layer's window.
template <class T> void expect_tree(const Tree& tree, std::int64_t window, bool is_causal) {
  SCOPED_TRACE(testing::Message() << tree.past << " tokens, " << tree.nodes() << " nodes, window " << window);
  const std::int64_t heads = 4, key_heads = 2, d = 16, keys = tree.past + tree.nodes();
  const auto q = random_heads<T>(1, heads, tree.nodes(), d, 1);
  const auto k = random_heads<T>(1, key_heads, keys, d, 2), v = random_heads<T>(1, key_heads, keys, d, 3);
  const Ids ids = tree.ids();
  const auto position = [&](std::int64_t j) {
    return j < tree.past ? j : ids[static_cast<std::size_t>(j - tree.past)];
  };
  Question question;
  question.scale = 0.25;
  question.sees = [&](const Pair& at) {
    return tree.sees(at.i, at.j) && std::abs(ids[static_cast<std::size_t>(at.i)] - position(at.j)) < window;
  };
  const tests::Answer answer = answer_of(q, k, v, question);
  const Mask mask(1, tree.nodes(), keys, [&](const Pair& at) { return tree.sees(at.i, at.j); });
  for_each_host_engine_of<T>([&] {
    Heads<T> out(1, heads, tree.nodes(), d);
    attention(out.view(), q.view(), k.view(), v.view(),
              {.causal = is_causal, .window = window, .mask = mask.view(), .query_positions = Positions{.ids = ids}});
    EXPECT_LE(error_of(out, answer), budget_of<T>() + (sizeof(T) == 2 ? 0x1p-15 : 0.0));
  });
}

TEST(AttentionSights, ADraftTreeHasItsWindowByPosition) {
  for (const bool is_causal : {false, true}) {
    for (const std::int64_t window : {1, 3, 12, 40}) {
      expect_tree<float>(tree_of(50, 7, 1), window, is_causal);
      expect_tree<float>(tree_of(90, 60, 2), window, is_causal);
      expect_tree<BFloat16>(tree_of(90, 60, 2), window, is_causal);
    }
    expect_tree<double>(tree_of(33, 20, 3), 5, is_causal);
    expect_tree<Half>(tree_of(50, 7, 4), 12, is_causal);
    expect_tree<float>(tree_of(300, 250, 5), 30, is_causal);
  }
}

// The repro of the report: five cached tokens, a root and two leaves of equal depth.
TEST(AttentionSights, TheSecondLeafSeesAsFarAsTheFirst) {
  const std::int64_t keys = 8;
  const Tree tree{5, {-1, 0, 0}};
  const Ids ids = tree.ids();
  const std::vector<float> q(3, 0.0f), k(static_cast<std::size_t>(keys), 0.0f);
  std::vector<float> v, out(3);
  for (std::int64_t j = 0; j < keys; ++j) v.push_back(static_cast<float>(j));
  const Mask mask(1, 3, keys, [&](const Pair& at) { return tree.sees(at.i, at.j); });
  for_each_host_engine([&] {
    attention(view(out.data(), {3, 1}), view(q.data(), {3, 1}), view(k.data(), {keys, 1}), view(v.data(), {keys, 1}),
              {.causal = true, .window = 4, .mask = mask.view(), .query_positions = Positions{.ids = ids}});
    EXPECT_FLOAT_EQ(out[0], (2 + 3 + 4 + 5) / 4.0f);
    EXPECT_FLOAT_EQ(out[1], (3 + 4 + 5 + 6) / 4.0f);
    EXPECT_FLOAT_EQ(out[2], (3 + 4 + 5 + 7) / 4.0f);
  });
}

// Positions of both, in no order, which differ from sequence to sequence.
TEST(AttentionSights, WindowsAndChunksGoByGivenPositions) {
  const std::int64_t batch = 2, heads = 2, d = 8, keys = 170;
  std::mt19937_64 random(6);
  const Bias alibi = prepare(Alibi{.heads = heads});  // negative positions are for biases and rotations
  const std::vector<double>& slopes = std::get<Slopes>(alibi.source).slopes;
  for (const std::int64_t queries : {2, 9, 130}) {
    Ids q_ids, k_ids;
    for (std::int64_t i = 0; i < batch * queries; ++i) q_ids.push_back(static_cast<std::int64_t>(random() % 90) - 30);
    for (std::int64_t i = 0; i < batch * keys; ++i) k_ids.push_back(static_cast<std::int64_t>(random() % 90) - 30);
    const std::vector<std::int32_t> narrow(k_ids.begin(), k_ids.end());
    const auto q = random_heads<float>(batch, heads, queries, d, 1);
    const auto k = random_heads<float>(batch, 1, keys, d, 2), v = random_heads<float>(batch, 1, keys, d, 3);
    for (const auto& [window, chunk] : {std::pair<std::int64_t, std::int64_t>{7, 0}, {0, 16}, {25, 16}}) {
      SCOPED_TRACE(testing::Message() << queries << " queries, window " << window << ", chunk " << chunk);
      Question question;
      question.scale = 0.5;
      question.sees = [&, window = window, chunk = chunk](const Pair& at) {
        const std::int64_t a = q_ids[static_cast<std::size_t>(at.b * queries + at.i)],
                           c = k_ids[static_cast<std::size_t>(at.b * keys + at.j)];
        if (window > 0 && std::abs(a - c) >= window) return false;
        return chunk == 0 || (a + 16 * chunk) / chunk == (c + 16 * chunk) / chunk;
      };
      question.bias = [&](const Pair& at) {
        const std::int64_t distance = q_ids[static_cast<std::size_t>(at.b * queries + at.i)] -
                                      k_ids[static_cast<std::size_t>(at.b * keys + at.j)];
        return -slopes[static_cast<std::size_t>(at.h)] * static_cast<double>(std::abs(distance));
      };
      const tests::Answer answer = answer_of(q, k, v, question);
      AttentionOptions options{.position = alibi, .window = window, .chunk = chunk, .scale = 0.5};
      options.query_positions = Positions{.ids = q_ids};
      for (const bool is_narrow : {false, true}) {
        options.key_positions = is_narrow ? Positions{.ids_i32 = narrow} : Positions{.ids = k_ids};
        for_each_host_engine([&] {
          Heads<float> out(batch, heads, queries, d);
          attention(out.view(), q.view(), k.view(), v.view(), options);
          EXPECT_LE(error_of(out, answer), budget_of<float>());
        });
      }
    }
  }
}

// Of keys whose positions alone are given, the last are the queries' own tokens; two starts say how far apart they are.
TEST(AttentionSights, OnePositionOfATokenIsTheOthersToo) {
  const std::int64_t keys = 60, queries = 10, d = 8;
  const auto q = random_heads<float>(1, 1, queries, d, 1);
  const auto k = random_heads<float>(1, 1, keys, d, 2), v = random_heads<float>(1, 1, keys, d, 3);
  Ids ids;
  for (std::int64_t j = 0; j < keys; ++j) ids.push_back(j * 2);
  const auto expect = [&](const AttentionOptions& options, const std::function<bool(const Pair&)>& sees) {
    Question question;
    question.scale = 1;
    question.sees = sees;
    const tests::Answer answer = answer_of(q, k, v, question);
    for_each_host_engine([&] {
      Heads<float> out(1, 1, queries, d);
      attention(out.view(), q.view(), k.view(), v.view(), options);
      EXPECT_LE(error_of(out, answer), budget_of<float>());
    });
  };
  expect({.window = 9, .scale = 1.0, .key_positions = Positions{.ids = ids}},
         [&](const Pair& at) { return std::abs(2 * (at.i + keys - queries - at.j)) < 9; });
  expect(
      {.window = 9, .scale = 1.0, .query_positions = Positions{.first = 20}, .key_positions = Positions{.first = 5}},
      [&](const Pair& at) { return std::abs(20 + at.i - 5 - at.j) < 9; });
}

// Consecutive positions are those of tokens: the same bytes as without, also of a cache that has lost its first tokens.
TEST(AttentionSights, ConsecutivePositionsChangeNothing) {
  const std::int64_t heads = 2, keys = 200, d = 16;
  const auto k = random_heads<float>(2, heads, keys, d, 2), v = random_heads<float>(2, heads, keys, d, 3);
  const Ids lengths = {200, 77};
  for (const std::int64_t queries : {1, 3, 40}) {
    const auto q = random_heads<float>(2, heads, queries, d, 1);
    for (const std::int64_t dropped : {0, 1000}) {
      Ids ids;
      for (const std::int64_t length : lengths) {
        for (std::int64_t i = 0; i < queries; ++i) ids.push_back(dropped + length - queries + i);
      }
      for_each_host_engine([&] {
        Heads<float> want(2, heads, queries, d), got = want;
        AttentionOptions options{.causal = true, .window = 50, .key_lengths = lengths};
        attention(want.view(), q.view(), k.view(), v.view(), options);
        options.query_positions = Positions{.ids = ids};
        attention(got.view(), q.view(), k.view(), v.view(), options);
        EXPECT_EQ(got.values, want.values);
      });
    }
  }
}

// Packed queries over pages: two sequences with trees of different sizes.
TEST(AttentionSights, PackedTreesOverPagesAreAsAlone) {
  const std::int64_t heads = 2, d = 8, page = 16, row = 6, window = 9, room = page * row;
  const Tree trees[] = {tree_of(40, 9, 1), tree_of(70, 20, 2)};
  const std::vector<std::int32_t> table = {3, 1, 7, 9, 11, 0, 2, 4, 5, 6, 8, 10};
  const auto k = random_heads<float>(12, heads, page, d, 2), v = random_heads<float>(12, heads, page, d, 3);
  const Ids packed = {9, 20}, lengths = {49, 90};
  const auto q = random_heads<float>(1, heads, 29, d, 1);
  Ids ids = trees[0].ids();
  for (const std::int64_t id : trees[1].ids()) ids.push_back(id);
  const Mask mask(1, 29, room, [&](const Pair& at) {
    return at.i < 9 ? at.j < 49 && trees[0].sees(at.i, at.j) : at.j < 90 && trees[1].sees(at.i - 9, at.j);
  });
  for_each_host_engine([&] {
    Heads<float> together(1, heads, 29, d), alone = together;
    AttentionOptions options{.causal = true, .window = window, .mask = mask.view()};
    options.query_positions = Positions{.ids = ids};
    options.key_lengths = lengths;
    options.packed = packed;
    options.block_table = table;
    attention(together.view(), q.view(), k.view(), v.view(), options);
    for (const std::int64_t s : {0, 1}) {
      const std::int64_t first = s == 0 ? 0 : 9, nodes = packed[static_cast<std::size_t>(s)];
      AttentionOptions own{.causal = true, .window = window, .mask = slice(mask.view(), 2, first, nodes)};
      own.query_positions =
          Positions{.ids = std::span(ids).subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(nodes))};
      own.key_lengths = std::span(lengths).subspan(static_cast<std::size_t>(s), 1);
      own.block_table = std::span(table).subspan(static_cast<std::size_t>(s * row), static_cast<std::size_t>(row));
      attention(slice(alone.view(), 2, first, nodes), slice(q.view(), 2, first, nodes), k.view(), v.view(), own);
    }
    EXPECT_EQ(together.values, alone.values);
  });
}

// A plan reads the ids at each call, and allocates for no tree what it has not counted.
TEST(AttentionSights, APlanReadsThePositionsOfEachCall) {
  const std::int64_t heads = 2, d = 8, keys = 64, nodes = 6;
  const auto q = random_heads<float>(1, heads, nodes, d, 1);
  const auto k = random_heads<float>(1, heads, keys, d, 2), v = random_heads<float>(1, heads, keys, d, 3);
  Ids ids(static_cast<std::size_t>(nodes));
  const AttentionOptions options{.causal = true, .window = 5, .query_positions = Positions{.ids = ids}};
  const AttentionPlan plan = plan_attention({q.view(), k.view(), v.view()}, options);
  std::vector<std::byte> workspace(workspace_bytes(plan, 1));
  for (const std::uint64_t seed : {1, 2, 3}) {
    const Ids next = tree_of(keys - nodes, nodes, seed).ids();
    std::copy(next.begin(), next.end(), ids.begin());
    Heads<float> want(1, heads, nodes, d), got = want;
    attention(want.view(), q.view(), k.view(), v.view(), options);
    attention(plan, got.view(), q.view(), k.view(), v.view(), {.threads = 1, .workspace = workspace});
    EXPECT_EQ(got.values, want.values);
  }
}

// Gradients of q, k and v, and of slopes, are those of the mask that says the same.
template <class T> void expect_gradients_of_mask(const AttentionOptions& options, const Mask& mask,
                                                 std::int64_t queries, std::int64_t keys) {
  const std::int64_t heads = 2, d = 8, batch = mask.shape[0];
  const auto q = random_heads<T>(batch, heads, queries, d, 1), d_out = random_heads<T>(batch, heads, queries, d, 4);
  const auto k = random_heads<T>(batch, 1, keys, d, 2), v = random_heads<T>(batch, 1, keys, d, 3);
  const AttentionOptions by_mask{.position = options.position,
                                 .mask = mask.view(),
                                 .query_positions = options.query_positions,
                                 .key_positions = options.key_positions};
  for_each_host_engine([&] {
    std::vector<Heads<T>> found[2];
    std::vector<double> slopes[2];
    for (const int at : {0, 1}) {
      Heads<T> d_q = q, d_k = k, d_v = v;
      slopes[at].assign(static_cast<std::size_t>(heads), 0.0);
      attention_backward(
          {.q = d_q.view(), .k = d_k.view(), .v = d_v.view(), .parameters = view(slopes[at].data(), {heads})},
          d_out.view(), {q.view(), k.view(), v.view()}, at == 0 ? options : by_mask);
      found[at] = {d_q, d_k, d_v};
    }
    for (std::size_t which = 0; which < 3; ++which) {
      for (std::size_t i = 0; i < found[0][which].values.size(); ++i) {
        ASSERT_NEAR(found[0][which].values[i], found[1][which].values[i], 3e-6) << which << ' ' << i;
      }
    }
    for (std::size_t h = 0; h < 2; ++h) EXPECT_NEAR(slopes[0][h], slopes[1][h], 1e-4);
  });
}

TEST(AttentionSights, GradientsGoByPositionToo) {
  const Bias alibi = prepare(Alibi{.heads = 2});
  for (const std::int64_t queries : {5, 140}) {
    const Tree tree = tree_of(60, queries, 7);
    const Ids ids = tree.ids();
    const std::int64_t keys = 60 + queries;
    const auto position = [&](std::int64_t j) { return j < 60 ? j : ids[static_cast<std::size_t>(j - 60)]; };
    const Mask mask(1, queries, keys, [&](const Pair& at) {
      return at.j <= at.i + 60 && std::abs(ids[static_cast<std::size_t>(at.i)] - position(at.j)) < 6;
    });
    const AttentionOptions options{
        .position = alibi, .causal = true, .window = 6, .query_positions = Positions{.ids = ids}};
    expect_gradients_of_mask<float>(options, mask, queries, keys);
    expect_gradients_of_mask<double>(options, mask, queries, keys);
  }
}

// Pictures in a text, as Gemma 3 reads them: causal, or in a window, or in the same picture (transformers v5,
// models/gemma3/modeling_gemma3.py, token_type_ids_mask_function; masking_utils.py, or_masks over the causal window).
struct Pictures {
  std::int64_t tokens;
  Ids spans;
  explicit Pictures(std::int64_t a_tokens) : tokens(a_tokens), spans(static_cast<std::size_t>(a_tokens)) {
    const auto put = [&](std::int64_t first, std::int64_t count, std::int64_t number) {
      std::fill_n(spans.begin() + first, count, number);
    };
    put(0, 5, 1);
    put(20, 30, 2);
    put(50, 9, 3);  // directly behind another
    put(tokens - 7, 7, 1);
  }
  bool is_same(std::int64_t i, std::int64_t j) const {
    const std::int64_t own = spans[static_cast<std::size_t>(i)];
    for (std::int64_t t = std::min(i, j); t <= std::max(i, j); ++t) {
      if (spans[static_cast<std::size_t>(t)] != own) return false;
    }
    return own != 0;
  }
};

TEST(AttentionSights, SpansAttendToEachOther) {
  const std::int64_t heads = 4, d = 16, tokens = 150;
  const Pictures pictures(tokens);
  const auto k = random_heads<float>(1, 2, tokens, d, 2), v = random_heads<float>(1, 2, tokens, d, 3);
  for (const std::int64_t queries : {1, 7, 110, 150}) {
    const auto q = random_heads<float>(1, heads, queries, d, 1);
    for (const std::int64_t window : {0, 4, 40}) {
      for (const std::int64_t chunk : {0, 16}) {
        SCOPED_TRACE(testing::Message() << queries << " queries, window " << window << ", chunk " << chunk);
        Question question;
        question.scale = 0.25;
        question.sees = [&, window = window, chunk = chunk](const Pair& at) {
          const std::int64_t i = at.i + tokens - queries;
          if (pictures.is_same(i, at.j)) return true;
          return at.j <= i && (window == 0 || i - at.j < window) && (chunk == 0 || i / chunk == at.j / chunk);
        };
        const tests::Answer answer = answer_of(q, k, v, question);
        for_each_host_engine([&] {
          Heads<float> out(1, heads, queries, d);
          attention(out.view(), q.view(), k.view(), v.view(),
                    {.causal = true, .window = window, .chunk = chunk, .spans = pictures.spans});
          EXPECT_LE(error_of(out, answer), budget_of<float>());
        });
      }
    }
  }
}

// Not past a length, not into another packed sequence, and each sequence of a batch has its own.
TEST(AttentionSights, SpansEndWithTheirSequence) {
  const std::int64_t heads = 2, d = 8, tokens = 40;
  const auto q = random_heads<float>(2, heads, tokens, d, 1), k = random_heads<float>(2, heads, tokens, d, 2),
             v = random_heads<float>(2, heads, tokens, d, 3);
  Ids spans(static_cast<std::size_t>(2 * tokens), 0);
  std::fill(spans.begin() + 10, spans.begin() + 40, 1);
  std::fill(spans.begin() + 60, spans.begin() + 65, 1);
  const Ids lengths = {25, 40}, packed = {15, 25};
  const auto expect = [&](const AttentionOptions& options, std::int64_t batch,
                          const std::function<bool(const Pair&)>& sees) {
    const auto few_q = random_heads<float>(batch, heads, tokens, d, 1);
    Question question;
    question.scale = 1 / std::sqrt(static_cast<double>(d));
    question.sees = sees;
    Heads<float> few_k = k, few_v = v;
    few_k.batch = few_v.batch = batch;
    few_k.values.resize(few_q.values.size());
    few_v.values.resize(few_q.values.size());
    const tests::Answer answer = answer_of(few_q, few_k, few_v, question);
    for_each_host_engine([&] {
      Heads<float> out(batch, heads, tokens, d);
      attention(out.view(), few_q.view(), few_k.view(), few_v.view(), options);
      EXPECT_LE(error_of(out, answer), budget_of<float>());
    });
  };
  const auto is_same = [&](std::int64_t b, std::int64_t i, std::int64_t j) {
    const auto in_span = [&](std::int64_t t) { return b == 0 ? t >= 10 : t >= 20 && t < 25; };
    return in_span(i) && in_span(j);
  };
  AttentionOptions options{.causal = true, .spans = spans};
  options.query_lengths = options.key_lengths = lengths;
  expect(options, 2, [&](const Pair& at) {
    const std::int64_t length = lengths[static_cast<std::size_t>(at.b)];
    return at.i < length && at.j < length && (at.j <= at.i || is_same(at.b, at.i, at.j));
  });
  AttentionOptions one{.causal = true, .packed = packed, .spans = std::span(spans).first(40)};
  expect(one, 1,
         [&](const Pair& at) { return (at.i < 15) == (at.j < 15) && (at.j <= at.i || is_same(0, at.i, at.j)); });
}

TEST(AttentionSights, GradientsOfSpans) {
  const std::int64_t tokens = 90;
  const Pictures pictures(tokens);
  const Mask mask(1, tokens, tokens,
                  [&](const Pair& at) { return (at.j <= at.i && at.i - at.j < 12) || pictures.is_same(at.i, at.j); });
  const AttentionOptions options{
      .position = prepare(Alibi{.heads = 2}), .causal = true, .window = 12, .spans = pictures.spans};
  expect_gradients_of_mask<float>(options, mask, tokens, tokens);
  expect_gradients_of_mask<double>(options, mask, tokens, tokens);
}

// The same bytes as each sequence alone, over pages and with a plan.
TEST(AttentionSights, SpansOverPages) {
  const std::int64_t heads = 2, d = 8, page = 4, row = 5;
  const std::vector<std::int32_t> table = {3, 1, 7, 9, 0, 2, 4, 5, 6, 8};
  const auto k = random_heads<float>(10, heads, page, d, 2), v = random_heads<float>(10, heads, page, d, 3);
  const Ids packed = {9, 20}, lengths = {17, 20};
  const auto q = random_heads<float>(1, heads, 29, d, 1);
  Ids spans(40, 0);
  std::fill(spans.begin() + 9, spans.begin() + 14, 1);
  std::fill(spans.begin() + 22, spans.begin() + 33, 1);
  for_each_host_engine([&] {
    Heads<float> together(1, heads, 29, d), alone = together;
    const AttentionOptions options{
        .causal = true, .key_lengths = lengths, .packed = packed, .spans = spans, .block_table = table};
    attention(together.view(), q.view(), k.view(), v.view(), options);
    for (const std::size_t s : {0, 1}) {
      const std::int64_t first = s == 0 ? 0 : 9, count = packed[s];
      AttentionOptions own{.causal = true};
      own.key_lengths = std::span(lengths).subspan(s, 1);
      own.block_table = std::span(table).subspan(s * row, row);
      own.spans = std::span(spans).subspan(s * 20, 20);
      const auto part = [&](auto x) { return slice(x, 2, first, count); };
      const AttentionPlan plan = plan_attention({part(q.view()), k.view(), v.view()}, own);
      attention(plan, part(alone.view()), part(q.view()), k.view(), v.view());
    }
    EXPECT_EQ(together.values, alone.values);
  });
}

TEST(AttentionSights, SayWhatIsWrong) {
  const Heads<float> q = random_heads<float>(1, 1, 4, 8, 1), k = random_heads<float>(1, 1, 6, 8, 2);
  const auto expect_refusal = [&](const AttentionOptions& options, const char* message) {
    Heads<float> out(1, 1, 4, 8);
    try {
      attention(out.view(), q.view(), k.view(), k.view(), options);
      ADD_FAILURE() << "accepted; expected: " << message;
    } catch (const Error& error) {
      EXPECT_STREQ(error.what(), message);
    }
  };
  const Ids three(12, 1), few = {1, 1}, tree = {2, 5, 3, 9}, spans = {0, 0, 1, 1, 1, 0};
  expect_refusal({.chunk = 2, .query_positions = Positions{.ids = three, .axes = 3}},
                 "attention: chunk needs positions of one axis, not ids of 3");
  expect_refusal({.spans = few}, "attention: spans has 2 numbers but must have 6");
  expect_refusal({.window = 3, .query_positions = Positions{.ids = few}},
                 "attention: 2 position ids do not fit 1 sequences of 4 tokens and 1 axes");
  expect_refusal({.window = 3, .query_positions = Positions{.ids = tree}, .spans = spans},
                 "attention: spans need positions in the order of the tokens if there is a window or chunk");
}

}  // namespace
}  // namespace posenc::sights_test
