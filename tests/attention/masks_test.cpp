// Which keys a query attends to: lengths, packed sequences, decoding, rows without visible keys, non-finite values;
// and what does not depend on the order of tokens, strides and threads.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <numeric>

#include "attention/oracle.h"
#include "backends.h"
#include "posenc/attention.h"
#include "sanitized.h"

namespace posenc::masks_test {
namespace {

using tests::answer_of;
using tests::budget_of;
using tests::error_of;
using tests::for_each_host_engine;
using tests::Heads;
using tests::Pair;
using tests::Question;
using tests::random_heads;

Bias alibi(std::int64_t heads) { return prepare(Alibi{.heads = heads}); }

double alibi_at(const Bias& bias, std::int64_t h, std::int64_t distance) {
  return -std::get<Slopes>(bias.source).slopes[static_cast<std::size_t>(h)] * static_cast<double>(std::abs(distance));
}

TEST(Attention, SequencesMayEndEarlier) {
  const std::int64_t batch = 3, heads = 2, queries = 20, keys = 150, d = 16;
  const auto q = random_heads<float>(batch, heads, queries, d, 1);
  auto k = random_heads<float>(batch, heads, keys, d, 2), v = random_heads<float>(batch, heads, keys, d, 3);
  const std::vector<std::int64_t> query_lengths = {20, 7, 0}, key_lengths = {150, 65, 12};
  // what lies past the end is never seen, whatever it is
  for (std::int64_t b = 0; b < batch; ++b) {
    for (std::int64_t h = 0; h < heads; ++h) {
      for (std::int64_t j = key_lengths[static_cast<std::size_t>(b)]; j < keys; ++j) {
        k.at(b, h, j, 3) = std::nanf("");
        v.at(b, h, j, 1) = HUGE_VALF;
      }
    }
  }
  const Bias bias = alibi(heads);
  Question question;
  question.scale = 0.25;
  const auto diagonal = [&](const Pair& at) {
    const auto b = static_cast<std::size_t>(at.b);
    return at.i + key_lengths[b] - query_lengths[b];
  };
  question.sees = [&](const Pair& at) {
    return at.i < query_lengths[static_cast<std::size_t>(at.b)] &&
           at.j < key_lengths[static_cast<std::size_t>(at.b)] && at.j <= diagonal(at);
  };
  question.bias = [&](const Pair& at) { return alibi_at(bias, at.h, diagonal(at) - at.j); };
  const tests::Answer answer = answer_of(q, k, v, question);
  for_each_host_engine([&] {
    Heads<float> out(batch, heads, queries, d);
    std::fill(out.values.begin(), out.values.end(), 7.0f);
    attention(out.view(), q.view(), k.view(), v.view(),
              {.position = bias, .causal = true, .query_lengths = query_lengths, .key_lengths = key_lengths});
    EXPECT_LE(error_of(out, answer), budget_of<float>());
  });
}

// Distances follow the positions that are given, wherever lengths put the queries.
TEST(Attention, GivenPositionsCountWhereLengthsAreGiven) {
  const std::int64_t heads = 2, keys = 40, d = 16, first_query = 12, first_key = 6;
  const Bias bias = alibi(heads);
  const auto expect_formula = [&](std::int64_t batch, std::int64_t queries, const AttentionOptions& options,
                                  const std::function<bool(const Pair&)>& sees) {
    const auto q = random_heads<float>(batch, heads, queries, d, 1);
    const auto k = random_heads<float>(batch, heads, keys, d, 2), v = random_heads<float>(batch, heads, keys, d, 3);
    Question question;
    question.scale = 0.25;
    question.sees = sees;
    question.bias = [&](const Pair& at) {
      const std::int64_t from = options.key_positions ? first_key : 0;
      return alibi_at(bias, at.h, first_query + at.i - (from + at.j));
    };
    const tests::Answer answer = answer_of(q, k, v, question);
    for_each_host_engine([&] {
      Heads<float> out(batch, heads, queries, d);
      attention(out.view(), q.view(), k.view(), v.view(), options);
      EXPECT_LE(error_of(out, answer), budget_of<float>());
    });
  };
  AttentionOptions options{.position = bias, .query_positions = Positions{.first = first_query}};
  for (const bool has_both : {false, true}) {
    if (has_both) options.key_positions = Positions{.first = first_key};
    for (const std::int64_t queries : {1, 3, 15}) {
      for (const std::vector<std::int64_t>& lengths :
           {std::vector<std::int64_t>{31}, std::vector<std::int64_t>{31, 17}}) {
        SCOPED_TRACE(queries);
        options.key_lengths = lengths;
        expect_formula(std::ssize(lengths), queries, options,
                       [&](const Pair& at) { return at.j < lengths[static_cast<std::size_t>(at.b)]; });
      }
    }
  }
  options.key_lengths = {};
  const std::vector<std::int64_t> packed = {4, 6}, packed_keys = {30, 10};
  options.packed = packed;
  options.packed_keys = packed_keys;
  expect_formula(1, 10, options, [](const Pair& at) { return (at.i < 4) == (at.j < 30); });
}

TEST(Attention, PackedSequencesDoNotSeeEachOther) {
  const std::int64_t heads = 2, d = 24;
  const std::vector<std::int64_t> queries = {5, 1, 0, 61, 33}, keys = {9, 1, 4, 130, 33};
  const std::int64_t all_queries = 100, all_keys = 177;
  const auto q = random_heads<float>(1, heads, all_queries, d, 1);
  const auto k = random_heads<float>(1, heads, all_keys, d, 2), v = random_heads<float>(1, heads, all_keys, d, 3);
  std::vector<float> weights;
  for (int i = 0; i < 32 * heads; ++i) weights.push_back(static_cast<float>(std::sin(i)));
  const Bias t5 =
      prepare(T5{.heads = heads}, {.weights = view(static_cast<const float*>(weights.data()), {32, heads})});
  const DistanceMap map = buckets_of(T5{.heads = heads});
  for (const Bias& bias : {alibi(heads), t5}) {
    const bool is_alibi = std::holds_alternative<Slopes>(bias.source);
    const auto place = [](const std::vector<std::int64_t>& lengths, std::int64_t at) {
      std::int64_t sequence = 0;
      while (at >= lengths[static_cast<std::size_t>(sequence)]) at -= lengths[static_cast<std::size_t>(sequence++)];
      return std::pair(sequence, at);
    };
    const auto delta = [&](const Pair& at) {
      const auto [sequence, i] = place(queries, at.i);
      const auto s = static_cast<std::size_t>(sequence);
      return place(keys, at.j).second - (i + keys[s] - queries[s]);
    };
    Question question;
    question.scale = 0.3;
    question.sees = [&](const Pair& at) {
      return place(queries, at.i).first == place(keys, at.j).first && std::abs(delta(at)) < 40 && delta(at) <= 0;
    };
    question.bias = [&](const Pair& at) {
      if (is_alibi) return alibi_at(bias, at.h, delta(at));
      const std::int64_t last = map.first + static_cast<std::int64_t>(map.entries.size()) - 1;
      const std::int64_t bucket =
          map.entries[static_cast<std::size_t>(std::clamp(delta(at), map.first, last) - map.first)];
      return static_cast<double>(weights[static_cast<std::size_t>(bucket * heads + at.h)]);
    };
    const tests::Answer answer = answer_of(q, k, v, question);
    for_each_host_engine([&] {
      Heads<float> out(1, heads, all_queries, d);
      attention(
          out.view(), q.view(), k.view(), v.view(),
          {.position = bias, .causal = true, .window = 40, .scale = 0.3, .packed = queries, .packed_keys = keys});
      EXPECT_LE(error_of(out, answer), budget_of<float>());
    });
  }
}

// A cache is read one query at a time: each gives the row that all queries at once give.
TEST(Attention, DecodingGivesTheRowsOfTheWhole) {
  const std::int64_t heads = 4, tokens = 300, d = 32;
  const auto q = random_heads<float>(1, heads, tokens, d, 1);
  const auto k = random_heads<float>(1, 2, tokens, d, 2), v = random_heads<float>(1, 2, tokens, d, 3);
  const Form forms[] = {Nothing{}, alibi(heads), prepare(Rope{.dims = d})};
  for (const Form& form : forms) {
    for_each_host_engine([&] {
      Heads<float> whole(1, heads, tokens, d), step(1, heads, 1, d);
      attention(whole.view(), q.view(), k.view(), v.view(), {.position = form, .causal = true});
      for (const std::int64_t i : {0, 1, 64, 65, 299}) {
        TensorView keys = Heads<float>(k).view(), values = keys;
        keys = {const_cast<float*>(k.values.data()), DataType::kF32, {1, 2, i + 1, d}, keys.strides};
        values = {const_cast<float*>(v.values.data()), DataType::kF32, {1, 2, i + 1, d}, values.strides};
        const ConstTensorView query(q.values.data() + i * d, DataType::kF32, {1, heads, 1, d}, q.view().strides);
        attention(step.view(), query, keys, values, {.position = form, .causal = true});
        for (std::int64_t h = 0; h < heads; ++h) {
          for (std::int64_t f = 0; f < d; ++f) {
            ASSERT_NEAR(step.real(0, h, 0, f), whole.real(0, h, i, f), 2e-6) << i;
          }
        }
      }
    });
  }
}

TEST(Attention, ACacheOfRotatedKeysIsLeftAsItIs) {
  const std::int64_t heads = 2, keys = 90, d = 16;
  const auto q = random_heads<float>(1, heads, 3, d, 1);
  const auto k = random_heads<float>(1, heads, keys, d, 2), v = random_heads<float>(1, heads, keys, d, 3);
  const Rotation rope = prepare(Rope{.dims = 12});
  auto rotated = k;
  rotate(rotated.view(), {.first = 1000}, rope);
  for_each_host_engine([&] {
    Heads<float> a(1, heads, 3, d), b = a;
    const AttentionOptions options{
        .position = rope, .query_positions = Positions{.first = 1087}, .key_positions = Positions{.first = 1000}};
    attention(a.view(), q.view(), k.view(), v.view(), options);
    AttentionOptions with_cache = options;
    with_cache.keys_are_rotated = true;
    attention(b.view(), q.view(), rotated.view(), v.view(), with_cache);
    for (std::size_t i = 0; i < a.values.size(); ++i) ASSERT_NEAR(a.values[i], b.values[i], 1e-6f);
  });
}

// Rotation inside is rotation before: every layout, partial, growing, with ids of three axes, and the softmax factor.
TEST(Attention, RotatesQueriesAndKeysAsRotateDoes) {
  const std::int64_t batch = 2, heads = 4, queries = 70, keys = 131, d = 32;
  const auto q = random_heads<float>(batch, heads, queries, d, 1);
  const auto k = random_heads<float>(batch, 2, keys, d, 2), v = random_heads<float>(batch, 2, keys, d, 3);
  std::vector<std::int64_t> q_ids, k_ids;
  for (std::int64_t i = 0; i < 3 * batch * queries; ++i) q_ids.push_back(i * 7 % 1000);
  for (std::int64_t i = 0; i < 3 * batch * keys; ++i) k_ids.push_back(i * 5 % 1000);
  Rotation three_axes = prepare(Rope{.dims = 24, .sections = {4, 4, 4}});
  Rotation factor = prepare(Rope{.dims = 32});
  factor.softmax_factor = 1.5;
  factor.magnitude = 1.2;
  const Rotation forms[] = {prepare(Rope{.dims = 32}),
                            prepare(Rope{.dims = 16, .layout = PairLayout::kInterleaved}),
                            prepare(Rope{.dims = 32, .layout = PairLayout::kInterleavedToHalves}),
                            prepare(Rope{.dims = 32, .scaling = XposScaling{}}),
                            factor,
                            three_axes};
  for (const Rotation& form : forms) {
    AttentionOptions options{.position = form, .causal = true};
    Positions q_places{.first = keys - queries}, k_places;
    if (form.position_axes == 3) {
      q_places = {.ids = q_ids, .axes = 3};
      k_places = {.ids = k_ids, .axes = 3};
      options.query_positions = q_places;
      options.key_positions = k_places;
    }
    auto rotated_q = q;
    auto rotated_k = k;
    rotate(rotated_q.view(), q_places, form);
    rotate(rotated_k.view(), k_places, for_keys(form));
    Question question;
    question.scale = form.softmax_factor / std::sqrt(32.0);
    question.sees = [&](const Pair& at) { return at.j <= at.i + keys - queries; };
    const tests::Answer answer = answer_of(rotated_q, rotated_k, v, question);
    for_each_host_engine([&] {
      Heads<float> out(batch, heads, queries, d);
      attention(out.view(), q.view(), k.view(), v.view(), options);
      EXPECT_LE(error_of(out, answer), budget_of<float>());
    });
  }
}

// As many queries as keys, whose positions are the same list, an equal list, or one that differs only at the end.
TEST(Attention, QueriesAndKeysAtGivenPlaces) {
  const std::int64_t batch = 2, tokens = 37, d = 16;
  const auto q = random_heads<float>(batch, 2, tokens, d, 1), k = random_heads<float>(batch, 1, tokens, d, 2),
             v = random_heads<float>(batch, 1, tokens, d, 3);
  const Rotation form = prepare(Rope{.dims = d, .sections = {2, 3, 3}});
  std::vector<std::int64_t> ids;
  for (std::int64_t i = 0; i < 3 * batch * tokens; ++i) ids.push_back(i * 7 % 1000);
  const std::vector<std::int64_t> equal = ids;
  std::vector<std::int64_t> other = ids;
  other.back() += 3;
  const auto narrow = [](const std::vector<std::int64_t>& x) {
    return std::vector<std::int32_t>(x.begin(), x.end());
  };
  const std::vector<std::int32_t> narrow_ids = narrow(ids), narrow_equal = narrow(equal),
                                  narrow_other = narrow(other);
  const std::pair<Positions, Positions> given[] = {
      {{.ids = ids, .axes = 3}, {.ids = ids, .axes = 3}},
      {{.ids = ids, .axes = 3}, {.ids = equal, .axes = 3}},
      {{.ids = ids, .axes = 3}, {.ids = other, .axes = 3}},
      {{.ids = ids, .axes = 3}, {.axes = 3, .ids_i32 = narrow_other}},
      {{.axes = 3, .ids_i32 = narrow_ids}, {.axes = 3, .ids_i32 = narrow_equal}},
      {{.axes = 3, .ids_i32 = narrow_ids}, {.axes = 3, .ids_i32 = narrow_other}},
  };
  for (const auto& [q_places, k_places] : given) {
    auto rotated_q = q, rotated_k = k;
    rotate(rotated_q.view(), q_places, form);
    rotate(rotated_k.view(), k_places, form);
    Question question;
    question.scale = 1 / std::sqrt(static_cast<double>(d));
    const tests::Answer answer = answer_of(rotated_q, rotated_k, v, question);
    const AttentionOptions options{.position = form, .query_positions = q_places, .key_positions = k_places};
    for_each_host_engine([&] {
      Heads<float> out(batch, 2, tokens, d);
      attention(out.view(), q.view(), k.view(), v.view(), options);
      EXPECT_LE(error_of(out, answer), budget_of<float>());
    });
  }
}

TEST(Attention, RowsThatSeeNothingAreZero) {
  const auto q = random_heads<float>(1, 1, 40, 8, 1), k = random_heads<float>(1, 1, 30, 8, 2);
  const std::vector<std::int64_t> nobody(30, 0);
  for_each_host_engine([&] {
    Heads<float> out(1, 1, 40, 8);
    std::vector<float> logs(40);
    AttentionOptions options{.causal = true, .logsumexp = view(logs.data(), {1, 1, 40})};
    attention(out.view(), q.view(), k.view(), k.view(), options);  // the first ten queries stand before all keys
    for (std::int64_t i = 0; i < 40; ++i) {
      EXPECT_EQ(out.real(0, 0, i, 0) == 0.0, i < 10) << i;
      EXPECT_EQ(logs[static_cast<std::size_t>(i)] == -HUGE_VALF, i < 10) << i;
    }
    options.key_mask = nobody;
    attention(out.view(), q.view(), k.view(), k.view(), options);
    for (const float x : out.values) EXPECT_EQ(x, 0.0f);
    const Heads<float> none(1, 1, 0, 8);
    std::fill(out.values.begin(), out.values.end(), 3.0f);
    attention(out.view(), q.view(), none.view(), none.view());
    for (const float x : out.values) EXPECT_EQ(x, 0.0f);
  });
}

// The rule for what is not finite: masked is not seen; −inf weighs nothing; +inf and NaN make the query's row NaN;
// a value that is not finite makes its feature so for those who look at it.
TEST(Attention, FollowsItsRuleForInfinitiesAndNaN) {
  const std::int64_t tokens = 150, d = 16;
  const auto good_q = random_heads<float>(1, 1, tokens, d, 1), good_k = random_heads<float>(1, 1, tokens, d, 2);
  const auto good_v = random_heads<float>(1, 1, tokens, d, 3);
  const auto row_is_nan = [](const Heads<float>& out, std::int64_t i) {
    return std::all_of(out.values.begin() + i * 16, out.values.begin() + i * 16 + 16,
                       [](float x) { return std::isnan(x); });
  };
  const auto row_is_finite = [](const Heads<float>& out, std::int64_t i) {
    return std::all_of(out.values.begin() + i * 16, out.values.begin() + i * 16 + 16,
                       [](float x) { return std::isfinite(x); });
  };
  for_each_host_engine([&] {
    Heads<float> out(1, 1, tokens, d), plain = out;
    const AttentionOptions causal{.causal = true};
    attention(plain.view(), good_q.view(), good_k.view(), good_v.view(), causal);
    for (const float bad : {std::nanf(""), HUGE_VALF, -HUGE_VALF}) {
      // a bad value is seen from its place on, and by nobody before
      auto v = good_v;
      v.at(0, 0, 100, 5) = bad;
      attention(out.view(), good_q.view(), good_k.view(), v.view(), causal);
      for (std::int64_t i = 0; i < tokens; ++i) {
        for (std::int64_t f = 0; f < d; ++f) {
          if (i >= 100 && f == 5) {
            EXPECT_FALSE(std::isfinite(out.real(0, 0, i, f)));
          } else {
            EXPECT_NEAR(out.real(0, 0, i, f), plain.real(0, 0, i, f), 1e-6) << i << ' ' << f;
          }
        }
      }
      auto q = good_q;
      q.at(0, 0, 37, 2) = bad;
      attention(out.view(), q.view(), good_k.view(), good_v.view(), causal);
      for (std::int64_t i = 0; i < tokens; ++i) {
        EXPECT_TRUE(i == 37 ? row_is_nan(out, i) : row_is_finite(out, i)) << i << ' ' << bad;
      }
    }
    // scores of −inf: those keys weigh nothing; where all are, the row is zero
    auto q = good_q, k = good_k;
    for (std::int64_t i = 0; i < tokens; ++i) q.at(0, 0, i, 0) = 1.0f;
    for (std::int64_t j = 0; j < 80; ++j) k.at(0, 0, j, 0) = -HUGE_VALF;
    attention(out.view(), q.view(), k.view(), good_v.view(), causal);
    for (std::int64_t i = 0; i < tokens; ++i) {
      EXPECT_TRUE(row_is_finite(out, i)) << i;
      if (i < 80) {
        EXPECT_EQ(out.real(0, 0, i, 3), 0.0);
      }
      if (i == 80) {
        EXPECT_NEAR(out.real(0, 0, i, 3), good_v.real(0, 0, 80, 3), 1e-6);
      }
    }
    k = good_k;
    k.at(0, 0, 100, 0) = HUGE_VALF;
    attention(out.view(), q.view(), k.view(), good_v.view(), causal);
    for (std::int64_t i = 0; i < tokens; ++i) EXPECT_TRUE(i < 100 ? row_is_finite(out, i) : row_is_nan(out, i)) << i;
  });
}

// The same where few queries read a cache, and where padding hides what is not finite.
TEST(Attention, FollowsItsRuleWhenDecoding) {
  const std::int64_t keys = 3000, d = 16;
  const auto q = random_heads<float>(1, 1, 2, d, 1), good_k = random_heads<float>(1, 1, keys, d, 2);
  const auto good_v = random_heads<float>(1, 1, keys, d, 3);
  std::vector<std::int64_t> mask(static_cast<std::size_t>(keys), 1);
  mask[2500] = 0;
  for_each_host_engine([&] {
    Heads<float> out(1, 1, 2, d), plain = out;
    const AttentionOptions options{.causal = true, .key_mask = mask};
    attention(plain.view(), q.view(), good_k.view(), good_v.view(), options);
    for (const float bad : {std::nanf(""), HUGE_VALF, -HUGE_VALF}) {
      auto k = good_k, v = good_v;
      k.at(0, 0, 2500, 3) = bad;  // nobody sees it
      v.at(0, 0, 2500, 3) = bad;
      attention(out.view(), q.view(), k.view(), v.view(), options);
      EXPECT_EQ(out.values, plain.values);
      v.at(0, 0, 2999, 7) = bad;  // the last query sees it
      attention(out.view(), q.view(), k.view(), v.view(), options);
      for (std::int64_t i = 0; i < 2; ++i) {
        for (std::int64_t f = 0; f < d; ++f) {
          EXPECT_EQ(std::isfinite(out.real(0, 0, i, f)), i == 0 || f != 7) << i << ' ' << f;
        }
      }
      k.at(0, 0, 2998, 0) = std::nanf("");
      attention(out.view(), q.view(), k.view(), good_v.view(), options);
      for (const float x : out.values) EXPECT_TRUE(std::isnan(x));
    }
  });
}

// Without position, attention does not know the order of tokens; with it, or with a causal mask alone, it does.
TEST(Attention, IsEquivariantWithoutPositionAlone) {
  const std::int64_t tokens = 100, d = 16;
  const auto x = random_heads<float>(1, 2, tokens, d, 5);
  std::vector<std::int64_t> order(tokens);
  std::iota(order.begin(), order.end(), 0);
  std::mt19937_64 random(9);
  std::shuffle(order.begin(), order.end(), random);
  const auto permuted = [&](const Heads<float>& from) {
    auto to = from;
    for (std::int64_t h = 0; h < 2; ++h) {
      for (std::int64_t t = 0; t < tokens; ++t) {
        for (std::int64_t f = 0; f < d; ++f) {
          to.at(0, h, t, f) = static_cast<float>(from.real(0, h, order[static_cast<std::size_t>(t)], f));
        }
      }
    }
    return to;
  };
  const auto difference = [&](const AttentionOptions& options) {
    Heads<float> out(1, 2, tokens, d), of_permuted = out;
    const auto y = permuted(x);
    attention(out.view(), x.view(), x.view(), x.view(), options);
    attention(of_permuted.view(), y.view(), y.view(), y.view(), options);
    const auto expected = permuted(out);
    double largest = 0;
    for (std::size_t i = 0; i < expected.values.size(); ++i) {
      largest = std::max(largest, std::fabs(static_cast<double>(expected.values[i] - of_permuted.values[i])));
    }
    return largest;
  };
  for_each_host_engine([&] {
    EXPECT_LT(difference({}), 2e-6);
    EXPECT_GT(difference({.causal = true}), 0.1);
    EXPECT_GT(difference({.position = alibi(2)}), 0.1);
    EXPECT_GT(difference({.position = prepare(Rope{.dims = d})}), 0.01);
  });
}

TEST(Attention, AnyStridesAndNumberOfThreadsGiveTheSameBytes) {
  const std::int64_t batch = 2, tokens = is_sample() ? 67 : 210, heads = 4, d = 40;
  const auto q = random_heads<float>(batch, tokens, heads, d, 1);  // [batch, tokens, heads, features]
  const auto k = random_heads<float>(batch, tokens, 2, d, 2), v = random_heads<float>(batch, tokens, 2, d, 3);
  const auto heads_first = [](const Heads<float>& x) {
    Heads<float> y(x.batch, x.tokens, x.heads, x.features);
    for (std::int64_t b = 0; b < x.batch; ++b) {
      for (std::int64_t t = 0; t < x.heads; ++t) {
        for (std::int64_t h = 0; h < x.tokens; ++h) {
          for (std::int64_t f = 0; f < x.features; ++f) y.at(b, h, t, f) = static_cast<float>(x.real(b, t, h, f));
        }
      }
    }
    return y;
  };
  const auto dense_q = heads_first(q), dense_k = heads_first(k), dense_v = heads_first(v);
  const Form forms[] = {Nothing{}, alibi(heads), prepare(Rope{.dims = d})};
  for (const Form& form : forms) {
    for_each_host_engine([&] {
      const AttentionOptions options{.position = form, .causal = true, .window = 5 * tokens / 7};
      Heads<float> first(batch, heads, tokens, d);
      for (const int count : {1, 3, 8}) {
        set_threads(count);
        Heads<float> out(batch, heads, tokens, d), strided(batch, tokens, heads, d);
        attention(out.view(), dense_q.view(), dense_k.view(), dense_v.view(), options);
        attention(swap_axes(strided.view(), 1, 2), swap_axes(q.view(), 1, 2), swap_axes(k.view(), 1, 2),
                  swap_axes(v.view(), 1, 2), options);
        if (count == 1) first = out;
        EXPECT_EQ(std::memcmp(out.values.data(), first.values.data(), 4 * out.values.size()), 0);
        EXPECT_EQ(std::memcmp(heads_first(strided).values.data(), first.values.data(), 4 * out.values.size()), 0);
        // one query and a long cache
        const ConstTensorView last(dense_q.values.data() + (tokens - 1) * d, DataType::kF32, {batch, heads, 1, d},
                                   dense_q.view().strides);
        Heads<float> step(batch, heads, 1, d);
        static std::vector<float> step_first;
        attention(step.view(), last, dense_k.view(), dense_v.view(), options);
        if (count == 1) step_first = step.values;
        EXPECT_EQ(std::memcmp(step.values.data(), step_first.data(), 4 * step_first.size()), 0);
      }
      set_threads(0);
    });
  }
}

TEST(Attention, GivesWeightsAndTheLogOfTheirSum) {
  const auto q = random_heads<float>(1, 2, 20, 8, 1);
  const auto k = random_heads<float>(1, 1, 33, 8, 2), v = random_heads<float>(1, 1, 33, 8, 3);
  const Bias bias = alibi(2);
  Question question;
  question.scale = 1 / std::sqrt(8.0);
  question.sees = [](const Pair& at) { return at.j <= at.i + 13; };
  question.bias = [&](const Pair& at) { return alibi_at(bias, at.h, at.i + 13 - at.j); };
  const tests::Answer answer = answer_of(q, k, v, question);
  for_each_host_engine([&] {
    Heads<float> out(1, 2, 20, 8), weights(1, 2, 20, 33);
    std::vector<float> logs(40), logs_alone(40);
    attention(
        out.view(), q.view(), k.view(), v.view(),
        {.position = bias, .causal = true, .weights = weights.view(), .logsumexp = view(logs.data(), {1, 2, 20})});
    attention(out.view(), q.view(), k.view(), v.view(),
              {.position = bias, .causal = true, .logsumexp = view(logs_alone.data(), {1, 2, 20})});
    for (std::size_t i = 0; i < weights.values.size(); ++i) {
      ASSERT_NEAR(static_cast<double>(weights.values[i]), answer.weights.values[i], 1e-6);
    }
    for (std::size_t i = 0; i < logs.size(); ++i) ASSERT_NEAR(logs[i], logs_alone[i], 2e-6f);
  });
}

struct BadCall {
  const char* message;
  void (*call)();
};
float scratch[4096];
ConstTensorView in(const Extents& shape) { return view(static_cast<const float*>(scratch), shape); }
TensorView result(const Extents& shape) { return view(scratch + 2048, shape); }
const BadCall kBadCalls[] = {
    {"attention: q has 8 heads, which must be a multiple of the 3 of k",
     [] {
       attention(result({1, 8, 2, 4}), in({1, 8, 2, 4}), in({1, 3, 2, 4}), in({1, 3, 2, 4}));
     }},
    {"attention: k has 5 features but q has 4",
     [] {
       attention(result({2, 4}), in({2, 4}), in({2, 5}), in({2, 4}));
     }},
    {"attention: v has 3 tokens but k has 2",
     [] {
       attention(result({2, 4}), in({2, 4}), in({2, 4}), in({3, 4}));
     }},
    {"attention: out has shape [2, 5] but must have [1, 1, 2, 4]",
     [] {
       attention(result({2, 5}), in({2, 4}), in({2, 4}), in({2, 4}));
     }},
    {"attention: out overlaps q",
     [] {
       attention(view(scratch, {2, 4}), in({2, 4}), in({2, 4}), in({2, 4}));
     }},
    {"attention: an addition belongs to the embeddings that q and k are computed from: use add() there",
     [] {
       attention(result({2, 4}), in({2, 4}), in({2, 4}), in({2, 4}), {.position = prepare(Sinusoidal{.width = 4})});
     }},
    {"attention: the form has 8 heads but the tensor has 2",
     [] {
       attention(result({1, 2, 2, 4}), in({1, 2, 2, 4}), in({1, 2, 2, 4}), in({1, 2, 2, 4}),
                 {.position = prepare(Alibi{})});
     }},
    {"attention: window must be 0 or more but is -1",
     [] {
       attention(result({2, 4}), in({2, 4}), in({2, 4}), in({2, 4}), {.window = -1});
     }},
    {"attention: key_lengths must be between 0 and 2 but one is 3",
     [] {
       const std::vector<std::int64_t> lengths = {3};
       attention(result({2, 4}), in({2, 4}), in({2, 4}), in({2, 4}), {.key_lengths = lengths});
     }},
    {"attention: the packed lengths of queries sum to 3 but there are 2 tokens",
     [] {
       const std::vector<std::int64_t> lengths = {1, 2};
       attention(result({2, 4}), in({2, 4}), in({2, 4}), in({2, 4}), {.packed = lengths});
     }},
    {"attention: key_mask has 3 numbers but must have 2",
     [] {
       const std::vector<std::int64_t> mask = {1, 1, 0};
       attention(result({2, 4}), in({2, 4}), in({2, 4}), in({2, 4}), {.key_mask = mask});
     }},
    {"attention: scale must be finite but is inf",
     [] {
       attention(result({2, 4}), in({2, 4}), in({2, 4}), in({2, 4}), {.scale = HUGE_VAL});
     }},
    {"attention: k is f64 but must be f32",
     [] {
       const std::vector<double> k(8);
       attention(result({2, 4}), in({2, 4}), view(k.data(), {2, 4}), in({2, 4}));
     }},
    {"attention_backward: the position has no parameters, so there is no such gradient",
     [] {
       float d[8];
       attention_backward({.parameters = view(d, {8})}, in({2, 4}), {in({2, 4}), in({2, 4}), in({2, 4})});
     }},
};

TEST(Attention, SaysWhatIsWrong) {
  for (const BadCall& bad : kBadCalls) {
    try {
      bad.call();
      ADD_FAILURE() << "accepted; expected: " << bad.message;
    } catch (const Error& error) {
      EXPECT_STREQ(error.what(), bad.message);
    }
  }
}

}  // namespace
}  // namespace posenc::masks_test
