// Vectors by distance in every form that schemes use (several axes, distances without a vector, separate queries,
// offsets, vectors added to values): on every backend and SIMD target against the formula in double, implemented
// again here, and their gradients against finite differences.

#include <gtest/gtest.h>

#include <functional>

#include "attention/gradients.h"
#include "backends.h"
#include "posenc/attention.h"
#include "sanitized.h"

namespace posenc::vectors_test {
namespace {

using tests::as;
using tests::expect_slopes;
using tests::for_each_host_engine;
using tests::Heads;
using tests::random_heads;
using tests::some_values;

struct Shape {
  std::int64_t batch, heads, key_heads, queries, keys, features, value_features;
};

enum class Kind { kGrid, kOwnQueries, kOffsets, kValues };
constexpr Kind kKinds[] = {Kind::kGrid, Kind::kOwnQueries, Kind::kOffsets, Kind::kValues};
constexpr std::int64_t kWide = 5, kTall = 60, kExtent = 6, kReach = 7, kOwnFeatures = 3;

struct Options {
  bool causal = false;
  std::int64_t window = 0;
  double softcap = 0;
  bool has_temperature = false;
};

// A form's tables, what they meet, and the form: as schemes make them.
struct Case {
  Kind kind;
  Shape shape;
  Options asked = {};
  Heads<double> q = random_heads<double>(shape.batch, shape.heads, shape.queries, shape.features, 1);
  Heads<double> k = random_heads<double>(shape.batch, shape.key_heads, shape.keys, shape.features, 2);
  Heads<double> v = random_heads<double>(shape.batch, shape.key_heads, shape.keys, shape.value_features, 3);
  Heads<double> d_out = random_heads<double>(shape.batch, shape.heads, shape.queries, shape.value_features, 4);
  Heads<double> own =
      random_heads<double>(shape.batch, shape.heads, shape.queries, kind == Kind::kOwnQueries ? kOwnFeatures : 0, 5);
  std::vector<double> for_queries, for_keys, for_values, offsets;
  std::vector<std::int64_t> query_ids, key_ids;

  Case(Kind a_kind, const Shape& a_shape, const Options& a_asked) : kind(a_kind), shape(a_shape), asked(a_asked) {
    const std::int64_t d = shape.features, heads = shape.heads;
    if (kind == Kind::kGrid) {
      for_queries = some_values((2 * kTall - 1 + 2 * kWide - 1) * d, 0.3);
      for (const bool down : {true, false}) {
        for (std::int64_t i = 0; i < shape.queries; ++i) query_ids.push_back(down ? i / kWide : i % kWide);
        for (std::int64_t j = 0; j < shape.keys; ++j) key_ids.push_back(down ? j / kWide : j % kWide);
      }
    } else if (kind == Kind::kOwnQueries) {
      for_queries = some_values(kExtent * kOwnFeatures, 0.4);
    } else if (kind == Kind::kOffsets) {
      for_queries = some_values(heads * (2 * kReach + 1) * d, 0.5);
      for_keys = some_values(heads * d, 0.6);
      offsets = some_values(heads * d, 0.7);
    } else {
      for_queries = some_values(9 * d, 0.8);
      for_values = some_values(heads * 5 * shape.value_features, 0.9);
    }
  }
  Case(const Case&) = delete;
  Case& operator=(const Case&) = delete;

  std::int64_t ahead() const { return shape.keys - shape.queries; }
  double scale() const { return 1 / std::sqrt(static_cast<double>(shape.features)); }
  bool is_scaled() const { return kind == Kind::kOffsets || kind == Kind::kValues; }

  // Rows of A, B and C for n − m, by the papers' formulas.
  std::vector<std::int64_t> query_rows(std::int64_t i, std::int64_t j) const {
    const std::int64_t apart = j - i - ahead();  // n − m
    if (kind == Kind::kGrid) {
      return {i / kWide - j / kWide + kTall - 1, 2 * kTall - 1 + i % kWide - j % kWide + kWide - 1};
    }
    if (kind == Kind::kOwnQueries) {
      return apart <= 0 && -apart < kExtent ? std::vector{-apart} : std::vector<std::int64_t>{};
    }
    const std::int64_t most = kind == Kind::kOffsets ? kReach : 4;
    return {std::clamp(apart, -most, most) + most};
  }
  std::vector<std::int64_t> value_rows(std::int64_t i, std::int64_t j) const {
    const std::int64_t apart = j - i - ahead();
    return kind == Kind::kValues && std::abs(apart) <= 2 ? std::vector{apart + 2} : std::vector<std::int64_t>{};
  }
  bool sees(std::int64_t i, std::int64_t j) const {
    const std::int64_t apart = j - i - ahead();
    return !(asked.causal && apart > 0) && !(asked.window > 0 && std::abs(apart) >= asked.window);
  }

  Form form() const {
    DistanceVectors source;
    const std::int64_t d = shape.features, heads = shape.heads;
    const auto identity = [](std::int64_t first, std::int64_t count) {
      DistanceMap map{.first = first, .entries = {}};
      for (std::int64_t row = 0; row < count; ++row) map.entries.push_back(row);
      return map;
    };
    source.is_scaled = is_scaled();
    if (kind == Kind::kGrid) {
      DistanceMap rows{.first = 1 - kTall, .entries = {}, .open = false},
          columns{.first = 1 - kWide, .entries = {}, .open = false};
      for (std::int64_t row = 2 * kTall - 2; row >= 0; --row) rows.entries.push_back(row);
      for (std::int64_t row = 2 * kWide - 2; row >= 0; --row) columns.entries.push_back(2 * kTall - 1 + row);
      source.for_queries.axes = {rows, columns};
      source.for_queries.table = view(for_queries.data(), {2 * kTall - 1 + 2 * kWide - 1, d});
      return Bias{0, source};
    }
    if (kind == Kind::kOwnQueries) {
      source.for_queries.axes = {{.first = -kExtent, .entries = {kNoRow, 5, 4, 3, 2, 1, 0, kNoRow}}};
      source.for_queries.table = view(for_queries.data(), {kExtent, kOwnFeatures});
      source.has_own_queries = true;
      return Bias{0, source};
    }
    if (kind == Kind::kOffsets) {
      source.for_queries.axes = {identity(-kReach, 2 * kReach + 1)};
      source.for_queries.values = for_queries;  // as a scheme that computes its table
      source.for_queries.shape = {heads, 2 * kReach + 1, d};
      source.for_keys.axes = {{.first = 0, .entries = {0}}};
      source.for_keys.values = for_keys;
      source.for_keys.shape = {heads, 1, d};
      source.query_offsets = offsets;
      return Bias{heads, source};
    }
    source.for_queries.axes = {identity(-4, 9)};
    source.for_queries.table = view(for_queries.data(), {9, d});
    source.for_values.axes = {{.first = -3, .entries = {kNoRow, 0, 1, 2, 3, 4, kNoRow}}};
    source.for_values.table = view(for_values.data(), {heads, 5, shape.value_features});
    return Bias{heads, source};
  }

  template <class T> AttentionOptions options(const Heads<T>& own_queries) const {
    AttentionOptions all{
        .position = form(), .causal = asked.causal, .window = asked.window, .softcap = asked.softcap};
    if (kind == Kind::kGrid) {
      all.query_positions = Positions{.ids = query_ids, .axes = 2};
      all.key_positions = Positions{.ids = key_ids, .axes = 2};
    }
    if (kind == Kind::kOwnQueries) all.position_queries = own_queries.view();
    if (asked.has_temperature) all.temperature = Temperature{.scale = 0.7, .length = 3};
    return all;
  }
  double factor(std::int64_t i) const {
    if (!asked.has_temperature) return 1;
    const std::int64_t position = kind == Kind::kGrid ? i / kWide : i + std::max<std::int64_t>(ahead(), 0);
    return 1 + 0.7 * std::log1p(static_cast<double>(position / 3));
  }

  double score(std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j) const {
    const std::int64_t g = h / (shape.heads / shape.key_heads), d = shape.features;
    double sum = 0, vectors = 0;
    for (std::int64_t f = 0; f < d; ++f) sum += factor(i) * q.real(b, h, i, f) * k.real(b, g, j, f);
    const bool is_own = kind == Kind::kOwnQueries;
    const std::int64_t width = is_own ? kOwnFeatures : d;
    for (const std::int64_t row : query_rows(i, j)) {
      for (std::int64_t f = 0; f < width; ++f) {
        const std::int64_t of_head = kind == Kind::kOffsets ? h * (2 * kReach + 1) : 0;
        double x = factor(i) * (is_own ? own.real(b, h, i, f) : q.real(b, h, i, f));
        if (!offsets.empty()) x += offsets[static_cast<std::size_t>(h * d + f)];
        vectors += x * for_queries[static_cast<std::size_t>((of_head + row) * width + f)];
      }
    }
    for (std::int64_t f = 0; f < d && !for_keys.empty(); ++f) {
      vectors += k.real(b, g, j, f) * for_keys[static_cast<std::size_t>(h * d + f)];
    }
    const double all = scale() * sum + (is_scaled() ? scale() : 1.0) * vectors;
    return asked.softcap > 0 ? asked.softcap * std::tanh(all / asked.softcap) : all;
  }

  // The formula, and Σ weight · (|v| + |vector|), by which errors are measured.
  void expect(Heads<double>& out, Heads<double>& size) const {
    out = size = Heads<double>(shape.batch, shape.heads, shape.queries, shape.value_features);
    const std::int64_t group = shape.heads / shape.key_heads;
    for (std::int64_t b = 0; b < shape.batch; ++b) {
      for (std::int64_t h = 0; h < shape.heads; ++h) {
        for (std::int64_t i = 0; i < shape.queries; ++i) {
          std::vector<double> weights(static_cast<std::size_t>(shape.keys), 0.0);
          double sum = 0;
          for (std::int64_t j = 0; j < shape.keys; ++j) {
            if (sees(i, j)) sum += weights[static_cast<std::size_t>(j)] = std::exp(score(b, h, i, j));
          }
          for (std::int64_t j = 0; j < shape.keys && sum > 0; ++j) {
            const double weight = weights[static_cast<std::size_t>(j)] / sum;
            for (std::int64_t f = 0; f < shape.value_features; ++f) {
              double value = v.real(b, h / group, j, f), large = std::fabs(value);
              for (const std::int64_t row : value_rows(i, j)) {
                const double added = for_values[static_cast<std::size_t>((h * 5 + row) * shape.value_features + f)];
                value += added;
                large += std::fabs(added);
              }
              out.at(b, h, i, f) += weight * value;
              size.at(b, h, i, f) += weight * large;
            }
          }
        }
      }
    }
  }

  double value() const { return tests::value_of(q, k, v, d_out, options(own)); }
};

template <class T> void expect_right(const Shape& shape, Kind kind, const Options& asked) {
  SCOPED_TRACE(testing::Message() << "kind " << static_cast<int>(kind) << ", " << shape.queries << " queries, "
                                  << shape.keys << " keys" << (asked.causal ? ", causal" : ""));
  Case c(kind, shape, asked);
  for (auto* x : {&c.q, &c.k, &c.v, &c.own}) {
    for (double& value : x->values) value = numerics::widen(numerics::narrow<T>(value));
  }
  Heads<double> want, size;
  c.expect(want, size);
  const auto q = as<T>(c.q), k = as<T>(c.k), v = as<T>(c.v), own = as<T>(c.own);
  for_each_host_engine([&] {
    Heads<T> out(shape.batch, shape.heads, shape.queries, shape.value_features);
    attention(out.view(), q.view(), k.view(), v.view(), c.options(own));
    EXPECT_LE(tests::error_of(out, {want, size, {}}), tests::budget_of<T>());
  });
}

constexpr Options kPlain = {}, kCausal = {.causal = true}, kWindow = {.causal = true, .window = 9},
                  kAll = {.causal = true, .window = 0, .softcap = 3.0, .has_temperature = true};

TEST(DistanceVectors, AreTheFormulaForEveryKindMaskAndShape) {
  // blocks of 192 queries and 128 keys, and rows past their edges
  constexpr Shape kShapes[] = {{1, 1, 1, 1, 1, 8, 8},      {2, 4, 2, 13, 13, 16, 16}, {1, 2, 1, 1, 70, 8, 5},
                               {1, 2, 1, 65, 130, 20, 12}, {1, 1, 1, 193, 260, 8, 9}, {1, 2, 2, 70, 50, 33, 7}};
  int cases = 0;
  for (const Shape& shape : kShapes) {
    for (const Kind kind : kKinds) {
      for (const Options& asked : {kPlain, kCausal, kWindow, kAll}) {
        if (is_sample() && ++cases % 5 != 0) continue;
        expect_right<float>(shape, kind, asked);
      }
    }
  }
  for (const Kind kind : kKinds) {
    expect_right<double>(kShapes[1], kind, kAll);
    expect_right<Half>(kShapes[1], kind, kCausal);
    expect_right<BFloat16>(kShapes[1], kind, kPlain);
  }
}

// Every gradient that the form has.
template <class T> struct Gradients {
  Heads<T> q, k, v, own;
  std::vector<double> for_queries, for_keys, for_values, offsets;
  explicit Gradients(const Case& c)
      : q(as<T>(c.q)),
        k(as<T>(c.k)),
        v(as<T>(c.v)),
        own(as<T>(c.own)),
        for_queries(c.for_queries.size(), 0.0),
        for_keys(c.for_keys.size(), 0.0),
        for_values(c.for_values.size(), 0.0),
        offsets(c.offsets.size(), 0.0) {
    const Bias form = std::get<Bias>(c.form());
    const auto& source = std::get<DistanceVectors>(form.source);
    const auto like = [](std::vector<double>& to, const VectorsByDistance& vectors) {
      return to.empty() ? TensorView{} : view(to.data(), table_of(vectors).shape);
    };
    AttentionGradients all{.q = q.view(), .k = k.view(), .v = v.view()};
    all.query_vectors = like(for_queries, source.for_queries);
    all.key_vectors = like(for_keys, source.for_keys);
    all.value_vectors = like(for_values, source.for_values);
    if (!offsets.empty()) all.query_offsets = view(offsets.data(), {c.shape.heads, c.shape.features});
    if (!own.values.empty()) all.position_queries = own.view();
    const auto given_q = as<T>(c.q), given_k = as<T>(c.k), given_v = as<T>(c.v), d_out = as<T>(c.d_out),
               given_own = as<T>(c.own);
    attention_backward(all, d_out.view(), {given_q.view(), given_k.view(), given_v.view()}, c.options(given_own));
  }
};

TEST(DistanceVectors, GradientsAreTheSlopes) {
  for (const Kind kind : kKinds) {
    for (const Options& asked : {kPlain, kWindow, kAll}) {
      SCOPED_TRACE(testing::Message() << "kind " << static_cast<int>(kind));
      Case c(kind, {2, 4, 2, 5, 9, 6, 3}, asked);
      for (const std::string_view backend_name : backends()) {
        if (backend_name == "cuda") continue;
        force_backend(backend_name);
        const Gradients<double> found(c);
        expect_slopes(c, c.q.values, found.q.values, "q");
        expect_slopes(c, c.k.values, found.k.values, "k");
        expect_slopes(c, c.v.values, found.v.values, "v");
        expect_slopes(c, c.own.values, found.own.values, "queries of their own");
        expect_slopes(c, c.for_queries, found.for_queries, "vectors for queries");
        expect_slopes(c, c.for_keys, found.for_keys, "vectors for keys");
        expect_slopes(c, c.for_values, found.for_values, "vectors for values");
        expect_slopes(c, c.offsets, found.offsets, "offsets");
      }
      force_backend("");
    }
  }
}

TEST(DistanceVectors, GradientsAgreeOnEveryEngine) {
  const auto expect_near = [](const auto& got, const std::vector<double>& want, const char* what) {
    double largest = 0;
    for (const double x : want) largest = std::max(largest, std::fabs(x));
    for (std::size_t i = 0; i < want.size(); ++i) {
      ASSERT_NEAR(numerics::widen(got[i]), want[i], 1e-5 * largest) << what << ' ' << i;
    }
  };
  for (const Kind kind : kKinds) {
    for (const Shape& shape : {Shape{2, 4, 2, 13, 13, 16, 8}, Shape{1, 2, 1, 65, 130, 20, 12}}) {
      SCOPED_TRACE(testing::Message() << "kind " << static_cast<int>(kind));
      Case c(kind, shape, kAll);
      for (auto* x : {&c.q, &c.k, &c.v, &c.own, &c.d_out}) {
        for (double& value : x->values) value = static_cast<double>(static_cast<float>(value));
      }
      force_backend("reference");
      const Gradients<double> want(c);
      for_each_host_engine([&] {
        const Gradients<float> got(c);
        expect_near(got.q.values, want.q.values, "q");
        expect_near(got.k.values, want.k.values, "k");
        expect_near(got.v.values, want.v.values, "v");
        expect_near(got.own.values, want.own.values, "queries of their own");
        expect_near(got.for_queries, want.for_queries, "vectors for queries");
        expect_near(got.for_keys, want.for_keys, "vectors for keys");
        expect_near(got.for_values, want.for_values, "vectors for values");
        expect_near(got.offsets, want.offsets, "offsets");
      });
    }
  }
}

std::string message_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

TEST(DistanceVectors, SayWhatDoesNotFit) {
  const Case c(Kind::kOwnQueries, {1, 2, 2, 3, 3, 4, 4}, kPlain);
  Heads<double> out(1, 2, 3, 4);
  const auto attend = [&](const AttentionOptions& options) {
    return message_of([&] { attention(out.view(), c.q.view(), c.k.view(), c.v.view(), options); });
  };
  AttentionOptions options = c.options(c.own);
  EXPECT_EQ(attend(options), "accepted");
  options.position_queries = {};
  EXPECT_EQ(attend(options), "attention: the form needs position_queries, which are missing");
  options.position_queries = c.q.view();
  EXPECT_EQ(attend(options), "attention: position_queries has shape [1, 2, 3, 4] but must have [1, 2, 3, 3]");
  options.position = Nothing{};
  EXPECT_EQ(attend(options), "attention: position_queries are given, but the form does not use them");
  const Case values(Kind::kValues, {1, 2, 2, 3, 3, 4, 5}, kPlain);
  EXPECT_EQ(attend(values.options(values.own)), "attention: the form's vectors have 5 features but v has 4");
  Case offsets(Kind::kOffsets, {1, 2, 2, 3, 3, 4, 4}, kPlain);
  offsets.offsets.pop_back();
  EXPECT_EQ(attend(offsets.options(offsets.own)), "attention: the form must have 8 offsets of queries but has 7");
  const Case grid(Kind::kGrid, {1, 2, 2, 3, 3, 4, 4}, kPlain);
  options = grid.options(grid.own);
  const std::vector<std::int64_t> far = {0, 1, kTall, 0, 0, 0};
  options.query_positions = Positions{.ids = far, .axes = 2};
  EXPECT_EQ(attend(options), "attention: key offset -60 is outside -59 to 59, which the form was prepared for");
  AttentionGradients gradients;
  std::vector<double> wrong(8);
  gradients.query_offsets = view(wrong.data(), {2, 4});
  EXPECT_EQ(message_of([&] {
              attention_backward(gradients, c.d_out.view(), {c.q.view(), c.k.view(), c.v.view()}, c.options(c.own));
            }),
            "attention_backward: the position has no offsets of queries, so there is no such gradient");
}

// What a plan reads at each call may change between calls, and heads may come last.
TEST(DistanceVectors, PlansAndOtherOrdersOfAxes) {
  Case c(Kind::kOwnQueries, {1, 2, 1, 4, 9, 8, 8}, kCausal);
  const auto q = as<float>(c.q), k = as<float>(c.k), v = as<float>(c.v);
  Heads<float> own = as<float>(c.own), want(1, 2, 4, 8), got(1, 2, 4, 8);
  const AttentionPlan plan = plan_attention({q.view(), k.view(), v.view()}, c.options(own));
  for (float& value : own.values) value *= -0.5f;
  attention(want.view(), q.view(), k.view(), v.view(), c.options(own));
  std::vector<std::byte> workspace(workspace_bytes(plan, 1));
  attention(plan, got.view(), q.view(), k.view(), v.view(), {.threads = 1, .workspace = workspace});
  EXPECT_EQ(got.values, want.values);
  AttentionOptions last = c.options(own);
  last.axes = Axes::kBshd;
  const auto turned = [](const Heads<float>& x) {
    Heads<float> y(x.batch, x.tokens, x.heads, x.features);
    for (std::int64_t h = 0; h < x.heads; ++h) {
      for (std::int64_t t = 0; t < x.tokens; ++t) {
        for (std::int64_t f = 0; f < x.features; ++f) y.at(0, t, h, f) = x.values[x.index(0, h, t, f)];
      }
    }
    return y;
  };
  const auto turned_q = turned(q), turned_k = turned(k), turned_v = turned(v), turned_own = turned(own);
  last.position_queries = turned_own.view();
  Heads<float> turned_out(1, 4, 2, 8);
  attention(turned_out.view(), turned_q.view(), turned_k.view(), turned_v.view(), last);
  EXPECT_EQ(turned_out.values, turned(want).values);
}

TEST(DistanceVectors, OneHeadIsThatHead) {
  const Case c(Kind::kOffsets, {1, 3, 3, 6, 6, 4, 4}, kPlain);
  Heads<double> all(1, 3, 6, 4);
  attention(all.view(), c.q.view(), c.k.view(), c.v.view(), c.options(c.own));
  for (std::int64_t h = 0; h < 3; ++h) {
    const auto of_head = [&](const Heads<double>& x) { return view(x.values.data() + x.index(0, h, 0, 0), {6, 4}); };
    std::vector<double> one(24);
    attention(view(one.data(), {6, 4}), of_head(c.q), of_head(c.k), of_head(c.v),
              {.position = head_of(std::get<Bias>(c.form()), h)});
    const auto first = all.values.begin() + static_cast<std::ptrdiff_t>(all.index(0, h, 0, 0));
    EXPECT_EQ(one, std::vector<double>(first, first + 24));
  }
}

}  // namespace
}  // namespace posenc::vectors_test
