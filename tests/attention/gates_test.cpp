// Sums of forget gates and contextual positions inside attention: on every backend and SIMD target against the
// formulas in double, implemented again here, and their gradients against finite differences.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <utility>

#include "attention/gradients.h"
#include "backends.h"
#include "posenc/attention.h"
#include "sanitized.h"

namespace posenc::gates_test {
namespace {

using tests::as;
using tests::expect_slopes;
using tests::for_each_host_engine;
using tests::for_each_host_engine_of;
using tests::Heads;
using tests::random_heads;
using tests::some_values;

struct Shape {
  std::int64_t batch, heads, key_heads, queries, keys, features, value_features;
};
struct Options {
  bool causal = true;
  std::int64_t window = 0;
  double softcap = 0;
  bool has_sinks = false, has_mask = false;
  double first_gate = -0.5;  // of the first token: how far all sums are from 0
};
enum class Kind { kSums, kCounts };

constexpr std::int64_t kRows = 9;

// Part of an array, in strides of its own.
template <class T> ConstTensorView strided(const T* data, const Extents& shape, const Extents& strides) {
  return {data, data_type_of<T>(), shape, strides};
}
template <class T> TensorView strided(T* data, const Extents& shape, const Extents& strides) {
  return {data, data_type_of<T>(), shape, strides};
}

struct Case {
  Kind kind;
  Shape shape;
  Options asked;
  Heads<double> q = random_heads<double>(shape.batch, shape.heads, shape.queries, shape.features, 1);
  Heads<double> k = random_heads<double>(shape.batch, shape.key_heads, shape.keys, shape.features, 2);
  Heads<double> v = random_heads<double>(shape.batch, shape.key_heads, shape.keys, shape.value_features, 3);
  Heads<double> d_out = random_heads<double>(shape.batch, shape.heads, shape.queries, shape.value_features, 4);
  std::vector<double> gates, table, sinks, mask;

  Case(Kind a_kind, const Shape& a_shape, const Options& an_asked) : kind(a_kind), shape(a_shape), asked(an_asked) {
    if (kind == Kind::kCounts) table = some_values(shape.heads * kRows * shape.features, 0.4);
    for (std::int64_t row = 0; row < shape.batch * shape.heads * shape.keys && kind == Kind::kSums; ++row) {
      // ln σ of a logit: most tokens keep nearly all, every seventh forgets
      const double logit = row % 7 == 3 ? -2.0 : 2.0 + std::sin(static_cast<double>(row));
      gates.push_back(row % shape.keys == 0 ? asked.first_gate : -std::log1p(std::exp(-logit)));
    }
    if (asked.has_sinks) sinks = some_values(shape.heads, 0.9);
    for (std::int64_t at = 0; asked.has_mask && at < shape.queries * shape.keys; ++at) {
      mask.push_back(at % 5 == 2 ? -std::numeric_limits<double>::infinity()
                                 : 0.3 * std::cos(static_cast<double>(at)));
    }
  }
  Case(const Case&) = delete;
  Case& operator=(const Case&) = delete;

  std::int64_t ahead() const { return shape.keys - shape.queries; }
  double scale() const { return 1 / std::sqrt(static_cast<double>(shape.features)); }
  bool sees(std::int64_t i, std::int64_t j) const {
    const std::int64_t apart = i + ahead() - j;
    if (asked.has_mask && std::isinf(mask[static_cast<std::size_t>(i * shape.keys + j)])) return false;
    return !(asked.causal && apart < 0) && !(asked.window > 0 && std::abs(apart) >= asked.window);
  }

  AttentionOptions options() const {
    AttentionOptions all{.causal = asked.causal, .window = asked.window, .softcap = asked.softcap};
    if (kind == Kind::kSums) {
      all.position = Bias{0, GateSums{}};
      all.log_gates = view(gates.data(), {shape.batch, shape.heads, shape.keys});
    } else {
      all.position = Bias{shape.heads, CountedGates{view(table.data(), {shape.heads, kRows, shape.features})}};
    }
    if (asked.has_sinks) all.sinks = view(sinks.data(), {shape.heads});
    if (asked.has_mask) all.mask = view(mask.data(), {shape.queries, shape.keys});
    return all;
  }

  // The score without position, of a key that is seen.
  double plain(std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j) const {
    double sum = 0;
    for (std::int64_t f = 0; f < shape.features; ++f) {
      sum += q.real(b, h, i, f) * k.real(b, h / (shape.heads / shape.key_heads), j, f);
    }
    sum *= scale();
    if (asked.softcap > 0) sum = asked.softcap * std::tanh(sum / asked.softcap);
    return asked.has_mask ? sum + mask[static_cast<std::size_t>(i * shape.keys + j)] : sum;
  }
  double met(std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t row) const {
    double sum = 0;
    for (std::int64_t f = 0; f < shape.features; ++f) {
      sum += q.real(b, h, i, f) * table[static_cast<std::size_t>((h * kRows + row) * shape.features + f)];
    }
    return sum;
  }
  double added(std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j) const {
    if (kind == Kind::kSums) {  // the gates between, one by one
      double sum = 0;
      const std::int64_t own = i + ahead(), from = std::min(own, j) + 1, to = std::max(own, j);
      for (std::int64_t t = from; t <= to; ++t) {
        sum += gates[static_cast<std::size_t>((b * shape.heads + h) * shape.keys + t)];
      }
      return j <= own ? sum : -sum;
    }
    double count = 0;
    for (std::int64_t t = j; t < shape.keys; ++t) {
      if (sees(i, t)) count += 1 / (1 + std::exp(-plain(b, h, i, t)));
    }
    count = std::min(count, static_cast<double>(kRows - 1));
    const auto below = static_cast<std::int64_t>(std::floor(count)),
               above = static_cast<std::int64_t>(std::ceil(count));
    const double part = count - std::floor(count);
    return (1 - part) * met(b, h, i, below) + part * met(b, h, i, above);
  }
  // The largest difference of two neighbours, by which an error of a count becomes one of a score.
  double steepest() const {
    double most = 0;
    for (std::int64_t row = 0; row < shape.batch * shape.heads * shape.queries && kind == Kind::kCounts; ++row) {
      const std::int64_t b = row / shape.queries / shape.heads, h = row / shape.queries % shape.heads;
      for (std::int64_t r = 0; r + 1 < kRows; ++r) {
        most = std::max(most, std::fabs(met(b, h, row % shape.queries, r + 1) - met(b, h, row % shape.queries, r)));
      }
    }
    return most;
  }

  // The error of scores is stated for a bias below 16 (attention.h). With a causal mask, a larger one is that of a key which
  // weighs nothing; without, keys after the query gain what keys before it lose.
  double excess() const {
    double sum = 0;
    for (std::int64_t t = 0; t < shape.keys && !asked.causal && kind == Kind::kSums; ++t) {
      sum -= gates[static_cast<std::size_t>(t)];
    }
    return std::max(1.0, sum / 16);
  }

  tests::Answer expected() const {
    const Heads<double> like(shape.batch, shape.heads, shape.queries, shape.value_features);
    tests::Answer answer{like, like, {}};
    const std::int64_t group = shape.heads / shape.key_heads;
    for (std::int64_t row = 0; row < shape.batch * shape.heads * shape.queries; ++row) {
      const std::int64_t b = row / shape.queries / shape.heads, h = row / shape.queries % shape.heads,
                         i = row % shape.queries;
      std::vector<double> weights(static_cast<std::size_t>(shape.keys), 0.0);
      double sum = asked.has_sinks ? std::exp(sinks[static_cast<std::size_t>(h)]) : 0.0;
      for (std::int64_t j = 0; j < shape.keys; ++j) {
        if (!sees(i, j)) continue;
        sum += weights[static_cast<std::size_t>(j)] = std::exp(plain(b, h, i, j) + added(b, h, i, j));
      }
      for (std::int64_t j = 0; j < shape.keys && sum > 0; ++j) {
        const double weight = weights[static_cast<std::size_t>(j)] / sum;
        for (std::int64_t f = 0; f < shape.value_features && weight > 0; ++f) {
          const double value = v.real(b, h / group, j, f);
          answer.out.at(b, h, i, f) += weight * value;
          answer.size.at(b, h, i, f) += weight * std::fabs(value);
        }
      }
    }
    return answer;
  }

  double value() const { return tests::value_of(q, k, v, d_out, options()); }
};

template <class T> void round_inputs(Case& c) {
  for (auto* x : {&c.q, &c.k, &c.v, &c.d_out}) {
    for (double& value : x->values) value = numerics::widen(numerics::narrow<T>(value));
  }
}

template <class T> void expect_right(Kind kind, const Shape& shape, const Options& asked) {
  SCOPED_TRACE(testing::Message() << (kind == Kind::kSums ? "sums, " : "counts, ") << shape.queries << " queries, "
                                  << shape.keys << " keys" << (asked.causal ? ", causal" : "") << ", window "
                                  << asked.window << (asked.has_mask ? ", mask" : ""));
  Case c(kind, shape, asked);
  round_inputs<T>(c);
  const tests::Answer want = c.expected();
  const auto q = as<T>(c.q), k = as<T>(c.k), v = as<T>(c.v);
  // a gate is within 2^-22, and each that is counted adds to the error of a count
  const double of_counts = std::is_same_v<T, double> ? 0.0 : 0x1p-21 * static_cast<double>(shape.keys) * c.steepest();
  for_each_host_engine_of<T>([&] {
    Heads<T> out(shape.batch, shape.heads, shape.queries, shape.value_features);
    attention(out.view(), q.view(), k.view(), v.view(), c.options());
    // where 16 bits are multiplied as such, weights have 2^-15 (attention.h)
    const double native = sizeof(T) == 2 ? 0x1p-14 : 0.0;
    EXPECT_LE(tests::error_of(out, want), c.excess() * tests::budget_of<T>() + native + of_counts);
  });
}

constexpr Options kCausal = {}, kOpen = {.causal = false}, kWindow = {.window = 9},
                  kAll = {.softcap = 3.0, .has_sinks = true, .has_mask = true};
constexpr Kind kKinds[] = {Kind::kSums, Kind::kCounts};

TEST(Gates, AreTheFormulaForEveryMaskAndShape) {
  // blocks of 192 queries and 128 keys, and rows past their edges; one query and a cache
  constexpr Shape kShapes[] = {{1, 1, 1, 1, 1, 8, 8},
                               {2, 4, 2, 13, 13, 16, 16},
                               {1, 2, 1, 1, 70, 8, 5},
                               {1, 2, 1, 65, 130, 20, 12},
                               {1, 1, 1, 193, 260, 8, 9}};
  int cases = 0;
  for (const Shape& shape : kShapes) {
    for (const Kind kind : kKinds) {
      for (const Options& asked : {kCausal, kOpen, kWindow, kAll}) {
        if (is_sample() && ++cases % 5 != 0) continue;
        expect_right<float>(kind, shape, asked);
      }
    }
  }
  for (const Kind kind : kKinds) {
    expect_right<double>(kind, kShapes[1], kAll);
    expect_right<Half>(kind, kShapes[1], kCausal);
    expect_right<BFloat16>(kind, kShapes[1], kCausal);
    expect_right<BFloat16>(kind, kShapes[3], kWindow);
  }
}

// Sums of a hundred thousand: an f32 sum would be off by 0.004 in every score.
TEST(Gates, FarSumsKeepThePrecisionOfNearOnes) {
  for (const std::int64_t queries : {1, 40, 129}) {
    expect_right<float>(Kind::kSums, {1, 2, 1, queries, 130, 8, 8}, {.window = 100, .first_gate = -1e5});
  }
}

template <class T> struct Gradients {
  Heads<T> q, k, v;
  std::vector<double> gates, table;
  explicit Gradients(const Case& c)
      : q(as<T>(c.q)), k(as<T>(c.k)), v(as<T>(c.v)), gates(c.gates.size(), 7.0), table(c.table.size(), 0.0) {
    AttentionGradients all{.q = q.view(), .k = k.view(), .v = v.view()};
    if (!gates.empty()) all.log_gates = view(gates.data(), {c.shape.batch, c.shape.heads, c.shape.keys});
    if (!table.empty()) all.query_vectors = view(table.data(), {c.shape.heads, kRows, c.shape.features});
    const auto given_q = as<T>(c.q), given_k = as<T>(c.k), given_v = as<T>(c.v), d_out = as<T>(c.d_out);
    attention_backward(all, d_out.view(), {given_q.view(), given_k.view(), given_v.view()}, c.options());
  }
};

TEST(Gates, GradientsAreTheSlopes) {
  constexpr tests::Steps kSteps = {1e-6, 5};
  for (const Kind kind : kKinds) {
    for (const Options& asked : {kCausal, kOpen, kWindow, kAll}) {
      SCOPED_TRACE(testing::Message() << "kind " << static_cast<int>(kind));
      Case c(kind, {2, 4, 2, 5, 9, 6, 3}, asked);
      for (const std::string_view backend_name : backends()) {
        if (backend_name == "cuda") continue;
        force_backend(backend_name);
        const Gradients<double> found(c);
        expect_slopes(c, c.q.values, found.q.values, "q", kSteps);
        expect_slopes(c, c.k.values, found.k.values, "k", kSteps);
        expect_slopes(c, c.v.values, found.v.values, "v", kSteps);
        expect_slopes(c, c.gates, found.gates, "gates", kSteps);
        expect_slopes(c, c.table, found.table, "table", kSteps);
      }
      force_backend("");
    }
  }
}

TEST(Gates, GradientsAgreeOnEveryEngine) {
  const auto expect_near = [](const auto& got, const std::vector<double>& want, const char* what) {
    double largest = 0;
    for (const double x : want) largest = std::max(largest, std::fabs(x));
    for (std::size_t i = 0; i < want.size(); ++i) {
      ASSERT_NEAR(numerics::widen(got[i]), want[i], 1e-5 * largest) << what << ' ' << i;
    }
  };
  for (const Kind kind : kKinds) {
    for (const Shape& shape : {Shape{2, 4, 2, 13, 13, 16, 8}, Shape{1, 2, 1, 200, 260, 20, 12}}) {
      for (const Options& asked : {kCausal, kOpen, kWindow, kAll}) {
        SCOPED_TRACE(testing::Message() << "kind " << static_cast<int>(kind) << ", " << shape.queries << " queries");
        if (shape.queries > 100 && (kind == Kind::kCounts || is_sample()))
          continue;  // gradients of counts: the reference
        Case c(kind, shape, asked);
        round_inputs<float>(c);
        force_backend("reference");
        const Gradients<double> want(c);
        for_each_host_engine([&] {
          const Gradients<float> got(c);
          expect_near(got.q.values, want.q.values, "q");
          expect_near(got.k.values, want.k.values, "k");
          expect_near(got.v.values, want.v.values, "v");
          expect_near(got.gates, want.gates, "gates");
          expect_near(got.table, want.table, "table");
        });
      }
    }
  }
}

// A sequence of its own is the same as one that is packed among others, or whose cache has room for more.
TEST(Gates, SequencesDoNotSeeEachOthersGates) {
  for (const Kind kind : kKinds) {
    Case c(kind, {1, 2, 1, 20, 20, 8, 8}, kCausal);
    const auto q = as<float>(c.q), k = as<float>(c.k), v = as<float>(c.v);
    const std::vector<std::int64_t> lengths = {7, 13};
    for_each_host_engine([&] {
      Heads<float> packed(1, 2, 20, 8), alone(1, 2, 20, 8);
      AttentionOptions options = c.options();
      options.packed = lengths;
      attention(packed.view(), q.view(), k.view(), v.view(), options);
      for (std::int64_t first = 0, at = 0; at < 2; first += lengths[static_cast<std::size_t>(at++)]) {
        const std::int64_t count = lengths[static_cast<std::size_t>(at)];
        const auto part = [&](auto&& x, std::int64_t heads) {
          return strided(x.values.data() + first * 8, {1, heads, count, 8}, {0, 20 * 8, 8, 1});
        };
        AttentionOptions own = c.options();
        if (kind == Kind::kSums)
          own.log_gates = strided(std::as_const(c.gates).data() + first, {1, 2, count}, {0, 20, 1});
        attention(part(alone, 2), part(q, 2), part(k, 1), part(v, 1), own);
      }
      for (std::size_t i = 0; i < packed.values.size(); ++i) EXPECT_NEAR(packed.values[i], alone.values[i], 4e-6f);
    });
  }
}

TEST(Gates, PastTheLengthOfACacheIsNotRead) {
  for (const Kind kind : kKinds) {
    Case c(kind, {1, 2, 1, 1, 40, 8, 8}, kCausal);
    auto q = as<float>(c.q), k = as<float>(c.k), v = as<float>(c.v);
    const std::vector<std::int64_t> length = {25};
    Heads<float> want(1, 2, 1, 8);
    const auto first = [&](const Heads<float>& x) { return strided(x.values.data(), {1, 1, 25, 8}, {0, 0, 8, 1}); };
    AttentionOptions own = c.options();
    if (kind == Kind::kSums) own.log_gates = strided(std::as_const(c.gates).data(), {1, 2, 25}, {0, 40, 1});
    attention(want.view(), q.view(), first(k), first(v), own);
    for (std::int64_t h = 0; h < 2 && kind == Kind::kSums; ++h) {
      std::fill_n(c.gates.begin() + h * 40 + 25, 15, std::numeric_limits<double>::quiet_NaN());
    }
    std::fill(k.values.begin() + 25 * 8, k.values.end(), std::numeric_limits<float>::quiet_NaN());
    AttentionOptions cached = c.options();
    cached.key_lengths = length;
    const AttentionPlan plan = plan_attention({q.view(), k.view(), v.view()}, cached);
    std::vector<std::byte> workspace(workspace_bytes(plan, 1));
    Heads<float> got(1, 2, 1, 8);
    attention(plan, got.view(), q.view(), k.view(), v.view(), {.threads = 1, .workspace = workspace});
    for (std::size_t i = 0; i < got.values.size(); ++i) EXPECT_NEAR(got.values[i], want.values[i], 2e-6f);
  }
}

TEST(Gates, HeadsMayComeLast) {
  Case c(Kind::kSums, {2, 4, 4, 6, 6, 8, 8}, kCausal);
  Heads<double> want(2, 4, 6, 8), got(2, 6, 4, 8);
  attention(want.view(), c.q.view(), c.k.view(), c.v.view(), c.options());
  const auto turned = [](const Heads<double>& x) {
    Heads<double> y(x.batch, x.tokens, x.heads, x.features);
    for (std::size_t at = 0; at < x.values.size(); ++at) {
      const auto i = static_cast<std::int64_t>(at);
      const std::int64_t f = i % x.features, t = i / x.features % x.tokens, h = i / x.features / x.tokens % x.heads;
      y.at(i / x.features / x.tokens / x.heads, t, h, f) = x.values[at];
    }
    return y;
  };
  Heads<double> gates(2, 4, 6, 1);
  gates.values = c.gates;
  const Heads<double> q = turned(c.q), k = turned(c.k), v = turned(c.v), turned_gates = turned(gates);
  AttentionOptions options = c.options();
  options.axes = Axes::kBshd;
  options.log_gates = view(turned_gates.values.data(), {2, 6, 4});
  attention(got.view(), q.view(), k.view(), v.view(), options);
  EXPECT_EQ(got.values, turned(want).values);
}

std::string message_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

TEST(Gates, SayWhatDoesNotFit) {
  Case c(Kind::kSums, {1, 2, 2, 3, 3, 4, 4}, kCausal);
  Heads<double> out(1, 2, 3, 4);
  const auto attend = [&](const AttentionOptions& options) {
    return message_of([&] { attention(out.view(), c.q.view(), c.k.view(), c.v.view(), options); });
  };
  AttentionOptions options = c.options();
  EXPECT_EQ(attend(options), "accepted");
  options.log_gates = {};
  EXPECT_EQ(attend(options), "attention: the form needs log_gates, which are missing");
  options.log_gates = view(c.gates.data(), {2, 2});
  EXPECT_EQ(attend(options), "attention: log_gates has shape [2, 2] but must have [1, 2, 3]");
  options.log_gates = c.options().log_gates;
  options.position = Nothing{};
  EXPECT_EQ(attend(options), "attention: log_gates are given, but the form does not use them");
  c.gates[4] = -std::numeric_limits<double>::infinity();
  EXPECT_EQ(attend(c.options()),
            "attention: log_gates must be finite and sum to at most 1e30, but at token 1 of head 1 they do not");
  const Case counts(Kind::kCounts, {1, 2, 2, 3, 3, 5, 4}, kCausal);
  EXPECT_EQ(attend(counts.options()), "attention: the form's vectors have 5 features but q has 4");
  Case longer(Kind::kSums, {1, 1, 1, 3, 2, 4, 4}, kOpen);
  EXPECT_EQ(message_of([&] {
              attention(view(out.values.data(), {1, 1, 3, 4}), longer.q.view(), longer.k.view(), longer.v.view(),
                        longer.options());
            }),
            "attention: query 0 has no gate: the queries are the last of 2 tokens");
  std::vector<double> d_gates(6);
  AttentionGradients gradients;
  gradients.log_gates = view(d_gates.data(), {1, 2, 3});
  EXPECT_EQ(message_of([&] {
              attention_backward(gradients, c.d_out.view(), {c.q.view(), c.k.view(), c.v.view()}, {});
            }),
            "attention_backward: the position has no log_gates, so there is no such gradient");
}

}  // namespace
}  // namespace posenc::gates_test
