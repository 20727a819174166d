// Attention on every backend and SIMD target against the formula in double: every form of bias, mask, shape and type,
// with sizes around the edges of tiles.

#include "posenc/attention.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "attention/oracle.h"
#include "backends.h"
#include "sanitized.h"

namespace posenc::attention_test {
namespace {

using tests::answer_of;
using tests::budget_of;
using tests::error_of;
using tests::for_each_host_engine_of;
using tests::Heads;
using tests::Pair;
using tests::Question;
using tests::random_heads;

struct Shape {
  std::int64_t batch, heads, key_heads, queries, keys, features, value_features;
};
// Tiles are of at most 192 queries and 128 keys, in steps of 1 to 96 and of 8; rows left over at every edge.
constexpr Shape kShapes[] = {
    {1, 1, 1, 1, 1, 8, 8},      {1, 2, 1, 3, 3, 5, 7},      {2, 4, 2, 13, 13, 16, 16},  {1, 2, 2, 1, 70, 64, 64},
    {1, 3, 1, 2, 130, 20, 12},  {1, 2, 2, 63, 64, 32, 32},  {1, 1, 1, 65, 129, 64, 40}, {1, 2, 1, 97, 97, 24, 24},
    {1, 1, 1, 193, 260, 16, 8}, {1, 1, 1, 257, 255, 33, 9}, {1, 4, 1, 5, 31, 128, 128},
};

enum class Kind { kNone, kSlopes, kTable, kGrid, kQueryVectors, kVectors, kRatios };
constexpr Kind kKinds[] = {Kind::kNone,         Kind::kSlopes,  Kind::kTable, Kind::kGrid,
                           Kind::kQueryVectors, Kind::kVectors, Kind::kRatios};

double some_value(std::int64_t i) { return std::sin(static_cast<double>(i * i) * 0.7 + 0.3); }

// Forms as the schemes make them, and what they mean, written down a second time.
struct Position {
  std::vector<float> weights, query_vectors, key_vectors;
  std::vector<std::int64_t> query_ids, key_ids;
  AttentionOptions options;
  Question question;
};

std::int64_t clipped(std::int64_t x, std::int64_t low, std::int64_t high) {
  return x < low ? low : x > high ? high : x;
}

void set_position(Position& made, Kind kind, const Shape& shape, const Heads<double>& q, const Heads<double>& k) {
  const std::int64_t heads = shape.heads, ahead = shape.keys - shape.queries;
  made.question.scale = 1 / std::sqrt(static_cast<double>(shape.features));
  const double scale = made.question.scale;
  if (kind == Kind::kSlopes) {
    Slopes slopes;
    for (std::int64_t h = 0; h < heads; ++h) slopes.slopes.push_back(std::ldexp(1.0, -static_cast<int>(h) - 1));
    made.question.bias = [=](const Pair& at) {
      return -slopes.slopes[static_cast<std::size_t>(at.h)] * static_cast<double>(std::abs(at.j - at.i - ahead));
    };
    made.options.position = Bias{heads, slopes};
  } else if (kind == Kind::kTable) {
    // 30 rows: distances −20 … 8, a tail of their own past the left end, and the last one again past the right
    DistanceTable table;
    DistanceMap map{.first = -21, .entries = {}};
    for (std::int64_t row = 0; row < 30; ++row) map.entries.push_back(row);
    for (std::int64_t i = 0; i < 30 * heads; ++i) made.weights.push_back(static_cast<float>(some_value(i)));
    table.axes = {map};
    table.weights = view(static_cast<const float*>(made.weights.data()), {30, heads});
    made.question.bias = [=, &made](const Pair& at) {
      const std::int64_t row = clipped(at.j - at.i - ahead, -21, 8) + 21;
      return static_cast<double>(made.weights[static_cast<std::size_t>(row * heads + at.h)]);
    };
    made.options.position = Bias{heads, table};
  } else if (kind == Kind::kGrid) {
    // a grid 7 wide, with ids for rows and columns
    DistanceTable table;
    const std::int64_t tall = (shape.keys + shape.queries) / 7 + 1;
    DistanceMap rows{.first = -tall, .entries = {}, .open = false},
        columns{.first = -6, .entries = {}, .open = false};
    for (std::int64_t i = 0; i <= 2 * tall; ++i) rows.entries.push_back(13 * i);
    for (std::int64_t i = 0; i < 13; ++i) columns.entries.push_back(i);
    const std::int64_t count = 13 * (2 * tall + 1);
    for (std::int64_t i = 0; i < count * heads; ++i) table.values.push_back(some_value(i));
    table.axes = {rows, columns};
    made.question.bias = [=](const Pair& at) {
      const std::int64_t row = at.j / 7 - at.i / 7 + tall, column = at.j % 7 - at.i % 7 + 6;
      return table.values[static_cast<std::size_t>((13 * row + column) * heads + at.h)];
    };
    for (const std::int64_t divide : {1, 0}) {
      for (std::int64_t i = 0; i < shape.queries; ++i) made.query_ids.push_back(divide != 0 ? i / 7 : i % 7);
      for (std::int64_t j = 0; j < shape.keys; ++j) made.key_ids.push_back(divide != 0 ? j / 7 : j % 7);
    }
    made.options.query_positions = Positions{.ids = made.query_ids, .axes = 2};
    made.options.key_positions = Positions{.ids = made.key_ids, .axes = 2};
    made.options.position = Bias{heads, table};
  } else if (kind == Kind::kQueryVectors || kind == Kind::kVectors) {
    // Shaw: clipped at 4 either way, one table for all heads; DeBERTa: keys meet vectors too, of each head its own
    DistanceVectors vectors;
    const bool both = kind == Kind::kVectors;
    const std::int64_t d = shape.features;
    vectors.for_queries.axes = {{.first = -4, .entries = {0, 1, 2, 3, 4, 5, 6, 7, 8}}};
    for (std::int64_t i = 0; i < 9 * d; ++i) made.query_vectors.push_back(static_cast<float>(some_value(i)));
    vectors.for_queries.table = view(static_cast<const float*>(made.query_vectors.data()), {9, d});
    if (both) {
      vectors.softmax_factor = 0.5;
      made.question.scale *= 0.5;
      vectors.for_keys.axes = {{.first = -1, .entries = {2, 1, 0}}};
      for (std::int64_t i = 0; i < heads * 3 * d; ++i) {
        made.key_vectors.push_back(static_cast<float>(some_value(i + 7)));
      }
      vectors.for_keys.table = view(static_cast<const float*>(made.key_vectors.data()), {heads, 3, d});
    }
    const std::int64_t group = shape.heads / shape.key_heads;
    made.question.bias = [=, &made, &q, &k](const Pair& at) {
      const std::int64_t delta = at.j - at.i - ahead;
      double sum = 0;
      for (std::int64_t f = 0; f < d; ++f) {
        const std::int64_t a = (clipped(delta, -4, 4) + 4) * d + f;
        sum += q.real(at.b, at.h, at.i, f) * static_cast<double>(made.query_vectors[static_cast<std::size_t>(a)]);
        if (!both) continue;
        const std::int64_t b = (at.h * 3 + 1 - clipped(delta, -1, 1)) * d + f;
        sum +=
            k.real(at.b, at.h / group, at.j, f) * static_cast<double>(made.key_vectors[static_cast<std::size_t>(b)]);
      }
      return (both ? 0.5 * scale : scale) * sum;
    };
    made.options.position = Bias{both ? heads : 0, vectors};
  } else if (kind == Kind::kRatios) {
    DistanceRatios ratios;
    for (std::int64_t i = 0; i < shape.keys + shape.queries; ++i)
      ratios.logs.push_back(std::log1p(0.1 * static_cast<double>(i)));
    ratios.least = 0.4;
    ratios.epsilon = 1e-6;
    ratios.hidden_weights = {1.0, -0.5, 2.0};
    ratios.hidden_biases = {0.1, 0.4, -1.0};
    for (std::int64_t i = 0; i < 3 * heads; ++i) ratios.output_weights.push_back(some_value(i));
    for (std::int64_t h = 0; h < heads; ++h) ratios.output_biases.push_back(some_value(h + 50));
    made.question.bias = [=](const Pair& at) {
      const std::int64_t m = at.i + (ahead > 0 ? ahead : 0), n = at.j + (ahead < 0 ? -ahead : 0);
      const double own = ratios.logs[static_cast<std::size_t>(m)];
      const double x = ratios.logs[static_cast<std::size_t>(std::abs(n - m))] / ((own > 0.4 ? own : 0.4) + 1e-6);
      double sum = ratios.output_biases[static_cast<std::size_t>(at.h)];
      for (std::size_t u = 0; u < 3; ++u) {
        const double hidden = ratios.hidden_weights[u] * x + ratios.hidden_biases[u];
        sum += hidden > 0 ? ratios.output_weights[static_cast<std::size_t>(at.h) * 3 + u] * hidden : 0.0;
      }
      return sum;
    };
    made.options.position = Bias{heads, ratios};
  }
}

enum class Mask { kAll, kCausal, kWindow, kCausalWindow, kPadding };
constexpr Mask kMasks[] = {Mask::kAll, Mask::kCausal, Mask::kWindow, Mask::kCausalWindow, Mask::kPadding};

void set_mask(Position& made, std::vector<std::int64_t>& padding, Mask mask, const Shape& shape) {
  const std::int64_t ahead = shape.keys - shape.queries;
  made.options.causal = mask == Mask::kCausal || mask == Mask::kCausalWindow;
  made.options.window = mask == Mask::kWindow ? 9 : mask == Mask::kCausalWindow ? 70 : 0;
  if (mask == Mask::kPadding) {
    padding.assign(static_cast<std::size_t>(shape.batch * shape.keys), 1);
    for (std::size_t i = 0; i < padding.size(); i += 3) padding[i] = 0;
    made.options.key_mask = padding;
  }
  const bool causal = made.options.causal;
  const std::int64_t window = made.options.window, keys = shape.keys;
  made.question.sees = [=, &padding](const Pair& at) {
    const std::int64_t delta = at.j - at.i - ahead;
    if (causal && delta > 0) return false;
    if (window > 0 && std::abs(delta) >= window) return false;
    return mask != Mask::kPadding || padding[static_cast<std::size_t>(at.b * keys + at.j)] != 0;
  };
}

template <class To, class From> Heads<To> converted(const Heads<From>& x) {
  Heads<To> y(x.batch, x.heads, x.tokens, x.features);
  for (std::size_t i = 0; i < y.values.size(); ++i) y.values[i] = numerics::narrow<To>(numerics::widen(x.values[i]));
  return y;
}

double worst = 0;

template <class T> void expect_right(const Shape& shape, Kind kind, Mask mask) {
  SCOPED_TRACE(testing::Message() << "queries " << shape.queries << " keys " << shape.keys << " features "
                                  << shape.features << " form " << static_cast<int>(kind) << " mask "
                                  << static_cast<int>(mask));
  const auto q = random_heads<T>(shape.batch, shape.heads, shape.queries, shape.features, 1);
  const auto k = random_heads<T>(shape.batch, shape.key_heads, shape.keys, shape.features, 2);
  const auto v = random_heads<T>(shape.batch, shape.key_heads, shape.keys, shape.value_features, 3);
  const auto exact_q = converted<double>(q), exact_k = converted<double>(k);
  Position made;
  std::vector<std::int64_t> padding;
  set_position(made, kind, shape, exact_q, exact_k);
  set_mask(made, padding, mask, shape);
  const tests::Answer answer = answer_of(q, k, v, made.question);
  for_each_host_engine_of<T>([&] {
    Heads<T> out(shape.batch, shape.heads, shape.queries, shape.value_features);
    attention(out.view(), q.view(), k.view(), v.view(), made.options);
    const double error = error_of(out, answer);
    if (std::is_same_v<T, float> && error > worst) worst = error;
    EXPECT_LE(error, budget_of<T>());
  });
}

TEST(Attention, IsTheFormulaForEveryFormMaskAndShape) {
  int cases = 0;
  for (const Shape& shape : kShapes) {
    for (const Kind kind : kKinds) {
      for (const Mask mask : kMasks) {
        if (is_sample() && ++cases % 5 != 0) continue;  // of every kind some
        expect_right<float>(shape, kind, mask);
      }
    }
  }
  RecordProperty("worst_error", std::to_string(worst));
  printf("worst error of f32: %.3g of Σ weight·|v|\n", worst);
}

TEST(Attention, IsTheFormulaInEveryType) {
  for (const Shape& shape : {kShapes[2], kShapes[3], kShapes[6]}) {
    for (const Kind kind : kKinds) {
      expect_right<double>(shape, kind, Mask::kCausal);
      expect_right<Half>(shape, kind, Mask::kCausal);
      expect_right<BFloat16>(shape, kind, Mask::kPadding);
    }
  }
}

}  // namespace
}  // namespace posenc::attention_test
