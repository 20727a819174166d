// The gradients of attention: in f64 against finite differences for every input and parameter, then every backend,
// SIMD target and type against those in f64.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>

#include "attention/gradients.h"
#include "backends.h"
#include "posenc/attention.h"
#include "posenc/schemes/forget_gate.h"

namespace posenc::backward_test {
namespace {

using tests::as;
using tests::expect_slopes;
using tests::for_each_host_engine;
using tests::Heads;
using tests::random_heads;

struct Shape {
  std::int64_t batch, heads, key_heads, queries, keys, features, value_features;
};

// The parameters of a position, and the form that they make.
struct Parameters {
  std::vector<double> values, query_vectors, key_vectors;
};
struct Position {
  const char* name;
  std::function<Parameters(const Shape&)> start;
  std::function<Form(const Shape&, const Parameters&)> form;
};

std::vector<double> some_values(std::int64_t count, double size) {
  std::vector<double> values;
  for (std::int64_t i = 0; i < count; ++i) values.push_back(size * std::sin(static_cast<double>(i * i) * 0.7 + 0.3));
  return values;
}

const Position kPositions[] = {
    {"none", [](const Shape&) { return Parameters{}; }, [](const Shape&, const Parameters&) { return Nothing{}; }},
    {"rope", [](const Shape&) { return Parameters{}; },
     [](const Shape& s, const Parameters&) {
       Rotation form = prepare(Rope{.dims = s.features / 2 * 2});
       form.magnitude = 1.3;
       form.softmax_factor = 0.8;
       return form;
     }},
    {"rope, written elsewhere than read", [](const Shape&) { return Parameters{}; },
     [](const Shape& s, const Parameters&) {
       return prepare(Rope{.dims = s.features / 2 * 2, .layout = PairLayout::kInterleavedToHalves});
     }},
    {"slopes",
     [](const Shape& s) {
       return Parameters{some_values(s.heads, 0.1), {}, {}};
     },
     [](const Shape& s, const Parameters& p) {
       return Bias{s.heads, Slopes{p.values}};
     }},
    {"table",
     [](const Shape& s) {
       return Parameters{some_values(32 * s.heads, 1.0), {}, {}};
     },
     [](const Shape& s, const Parameters& p) {
       return prepare(T5{.heads = s.heads, .max_distance = 40}, {.weights = view(p.values.data(), {32, s.heads})});
     }},
    {"map",
     [](const Shape& s) {
       return Parameters{some_values(6 + 3 * s.heads + s.heads, 1.0), {}, {}};
     },
     [](const Shape& s, const Parameters& p) {
       DistanceRatios ratios;
       for (std::int64_t i = 0; i < s.keys + s.queries; ++i) {
         ratios.logs.push_back(std::log1p(0.1 * static_cast<double>(i)));
       }
       ratios.least = 0.5;
       const double* at = p.values.data();
       ratios.hidden_weights.assign(at, at + 3);
       ratios.hidden_biases.assign(at + 3, at + 6);
       ratios.output_weights.assign(at + 6, at + 6 + 3 * s.heads);
       ratios.output_biases.assign(at + 6 + 3 * s.heads, at + 6 + 4 * s.heads);
       return Bias{s.heads, ratios};
     }},
    {"vectors",
     [](const Shape& s) {
       return Parameters{{}, some_values(7 * s.features, 1.0), some_values(s.heads * 3 * s.features, 0.8)};
     },
     [](const Shape& s, const Parameters& p) {
       DistanceVectors vectors;
       vectors.for_queries.axes = {{.first = -3, .entries = {0, 1, 2, 3, 4, 5, 6}}};
       vectors.for_queries.table = view(p.query_vectors.data(), {7, s.features});
       vectors.for_keys.axes = {{.first = -1, .entries = {2, 0, 1}}};
       vectors.for_keys.table = view(p.key_vectors.data(), {s.heads, 3, s.features});
       return Bias{s.heads, vectors};
     }},
};

struct Options {
  bool causal;
  std::int64_t window;
  // what models have beside position
  double softcap = 0;
  bool has_sinks = false, has_mask = false, has_temperature = false;
  std::int64_t chunk = 0;
};

// Numbers that are added, and every seventh pair hidden.
std::vector<float> mask_of(const Shape& shape) {
  std::vector<float> mask;
  for (std::int64_t i = 0; i < shape.heads * shape.queries * shape.keys; ++i) {
    mask.push_back(i % 7 == 3 ? -HUGE_VALF : static_cast<float>(std::sin(static_cast<double>(i))));
  }
  return mask;
}

struct Case {
  Shape shape;
  const Position& position;
  Parameters parameters = position.start(shape);
  Heads<double> q = random_heads<double>(shape.batch, shape.heads, shape.queries, shape.features, 1);
  Heads<double> k = random_heads<double>(shape.batch, shape.key_heads, shape.keys, shape.features, 2);
  Heads<double> v = random_heads<double>(shape.batch, shape.key_heads, shape.keys, shape.value_features, 3);
  Heads<double> d_out = random_heads<double>(shape.batch, shape.heads, shape.queries, shape.value_features, 4);
  Options options;
  std::vector<double> sinks = some_values(shape.heads, 1.0);
  std::vector<float> mask = mask_of(shape);

  AttentionOptions attention_options() const {
    AttentionOptions all{.position = position.form(shape, parameters),
                         .causal = options.causal,
                         .window = options.window,
                         .chunk = options.chunk,
                         .softcap = options.softcap};
    if (options.has_sinks) all.sinks = view(sinks.data(), {shape.heads});
    if (options.has_mask) all.mask = view(mask.data(), {shape.heads, shape.queries, shape.keys});
    if (options.has_temperature) all.temperature = Temperature{.scale = 0.7, .length = 3};
    return all;
  }
  double value() const { return tests::value_of(q, k, v, d_out, attention_options()); }
};

template <class T> struct Gradients {
  Heads<T> q, k, v;
  Parameters parameters;
  std::vector<double> sinks;

  explicit Gradients(const Case& c)
      : q(c.shape.batch, c.shape.heads, c.shape.queries, c.shape.features),
        k(c.shape.batch, c.shape.key_heads, c.shape.keys, c.shape.features),
        v(c.shape.batch, c.shape.key_heads, c.shape.keys, c.shape.value_features),
        parameters(c.parameters),
        sinks(c.options.has_sinks ? c.sinks.size() : 0, 0.0) {
    for (auto* list : {&parameters.values, &parameters.query_vectors, &parameters.key_vectors}) {
      std::fill(list->begin(), list->end(), 0.0);
    }
  }
  AttentionGradients views(const Case& c) {
    AttentionGradients all{.q = q.view(), .k = k.view(), .v = v.view()};
    const std::int64_t heads = c.shape.heads, count = static_cast<std::int64_t>(parameters.values.size());
    if (count == heads) all.parameters = view(parameters.values.data(), {heads});
    if (count == 32 * heads) all.parameters = view(parameters.values.data(), {32, heads});
    if (count == 6 + 4 * heads) all.parameters = view(parameters.values.data(), {count});
    if (!parameters.query_vectors.empty()) {
      all.query_vectors = view(parameters.query_vectors.data(), {7, c.shape.features});
      all.key_vectors = view(parameters.key_vectors.data(), {heads, 3, c.shape.features});
    }
    if (!sinks.empty()) all.sinks = view(sinks.data(), {heads});
    return all;
  }
};

template <class T> Gradients<T> gradients_of(const Case& c) {
  Gradients<T> made(c);
  const auto q = as<T>(c.q), k = as<T>(c.k), v = as<T>(c.v), d_out = as<T>(c.d_out);
  attention_backward(made.views(c), d_out.view(), {q.view(), k.view(), v.view()}, c.attention_options());
  return made;
}

TEST(AttentionBackward, IsTheSlopeOfAttentionInF64) {
  const Shape shape = {2, 4, 2, 5, 9, 6, 3};
  for (const Position& position : kPositions) {
    for (const Options& options :
         {Options{false, 0}, Options{true, 0}, Options{true, 4}, Options{.causal = true, .window = 0, .softcap = 0.8},
          Options{.causal = true,
          .window = 0,
          .softcap = 0.8,
          .has_sinks = true,
          .has_mask = true,
          .has_temperature = true,
          .chunk = 4}}) {
      SCOPED_TRACE(position.name);
      Case c{.shape = shape, .position = position, .options = options};
      for (const std::string_view backend_name : backends()) {
        force_backend(backend_name);
        const Gradients<double> found = gradients_of<double>(c);
        expect_slopes(c, c.q.values, found.q.values, "q");
        expect_slopes(c, c.k.values, found.k.values, "k");
        expect_slopes(c, c.v.values, found.v.values, "v");
        expect_slopes(c, c.parameters.values, found.parameters.values, "parameter");
        expect_slopes(c, c.parameters.query_vectors, found.parameters.query_vectors, "vectors for queries");
        expect_slopes(c, c.parameters.key_vectors, found.parameters.key_vectors, "vectors for keys");
        if (options.has_sinks) expect_slopes(c, c.sinks, found.sinks, "sinks");
      }
      force_backend("");
    }
  }
}

// Relative to the largest of its kind: sums of products cancel.
template <class List> double largest_of(const List& list) {
  double largest = 0;
  for (const auto x : list) largest = std::max(largest, std::fabs(numerics::widen(x)));
  return largest;
}
template <class List>
void expect_near(const List& got, const std::vector<double>& want, double budget, const char* what) {
  const double size = largest_of(want);
  for (std::size_t i = 0; i < want.size(); ++i) {
    ASSERT_NEAR(numerics::widen(got[i]), want[i], budget * size) << what << ' ' << i;
  }
}

template <class T>
void expect_right(const Shape& shape, const Position& position, const Options& options, double budget) {
  SCOPED_TRACE(testing::Message() << position.name << ", " << shape.queries << " queries, " << shape.keys << " keys");
  Case c{.shape = shape, .position = position, .options = options};
  for (auto* x : {&c.q, &c.k, &c.v, &c.d_out}) {
    for (double& value : x->values) value = numerics::widen(numerics::narrow<T>(value));
  }
  force_backend("reference");
  const Gradients<double> want = gradients_of<double>(c);
  for_each_host_engine([&] {
    const Gradients<T> got = gradients_of<T>(c);
    expect_near(got.q.values, want.q.values, budget, "q");
    expect_near(got.k.values, want.k.values, budget, "k");
    expect_near(got.v.values, want.v.values, budget, "v");
    // sums over all pairs, which cancel
    expect_near(got.parameters.values, want.parameters.values, 5 * budget, "parameter");
    expect_near(got.parameters.query_vectors, want.parameters.query_vectors, budget, "vectors for queries");
    expect_near(got.parameters.key_vectors, want.parameters.key_vectors, budget, "vectors for keys");
    expect_near(got.sinks, want.sinks, 5 * budget, "sinks");
  });
}

constexpr Options kAllFeatures = {.causal = true,
                                  .window = 0,
                                  .softcap = 0.8,
                                  .has_sinks = true,
                                  .has_mask = true,
                                  .has_temperature = true,
                                  .chunk = 60};

TEST(AttentionBackward, AgreesWithF64OnEveryEngine) {
  constexpr Shape kShapes[] = {{1, 1, 1, 1, 1, 4, 4},
                               {2, 4, 2, 13, 13, 16, 8},
                               {1, 2, 1, 65, 130, 20, 12},
                               {1, 1, 1, 193, 200, 8, 8},
                               {1, 2, 2, 70, 50, 33, 9}};
  for (const Shape& shape : kShapes) {
    for (const Position& position : kPositions) {
      expect_right<float>(shape, position, {true, 0}, 4e-6);
      expect_right<float>(shape, position, {false, 30}, 4e-6);
      expect_right<float>(shape, position, kAllFeatures, 8e-6);
    }
  }
  for (const Position& position : kPositions) {
    expect_right<Half>(kShapes[1], position, {true, 0}, 1e-3);
    expect_right<BFloat16>(kShapes[1], position, {false, 0}, 8e-3);
    expect_right<BFloat16>(kShapes[1], position, kAllFeatures, 8e-3);
  }
}

// Tensors of 16 bits may have gradients of 32: they are those of 16 before their rounding.
template <class T> void expect_f32_gradients() {
  const Shape shape = {2, 4, 2, 13, 21, 16, 8};
  for (const Position& position : kPositions) {
    SCOPED_TRACE(position.name);
    Case c{.shape = shape, .position = position, .options = {true, 0, 0, false, false, true}};
    const auto q = as<T>(c.q), k = as<T>(c.k), v = as<T>(c.v), d_out = as<T>(c.d_out);
    for_each_host_engine([&] {
      const Gradients<T> narrow = gradients_of<T>(c);
      Gradients<float> wide(c);
      attention_backward(wide.views(c), d_out.view(), {q.view(), k.view(), v.view()}, c.attention_options());
      // rounded once, from where f32's gradient was rounded too: at a tie of the 16 bits either neighbour is right
      const auto expect_rounded = [](const Heads<T>& got, const Heads<float>& from, const char* what) {
        for (std::size_t i = 0; i < got.values.size(); ++i) {
          const auto exact = static_cast<double>(from.values[i]);
          const double nearest = std::fabs(numerics::widen(numerics::narrow<T>(exact)) - exact);
          ASSERT_LE(std::fabs(numerics::widen(got.values[i]) - exact), nearest + 0x1p-24 * std::fabs(exact))
              << what << ' ' << i;
        }
      };
      expect_rounded(narrow.q, wide.q, "q");
      expect_rounded(narrow.k, wide.k, "k");
      expect_rounded(narrow.v, wide.v, "v");
    });
  }
}

TEST(AttentionBackward, GivesF32GradientsForNarrowTensors) {
  expect_f32_gradients<BFloat16>();
  expect_f32_gradients<Half>();
}

// Masks of bools and ids of 32 bits are read as they are: the bytes of those of numbers and of 64 bits.
TEST(AttentionBackward, BoolMasksAndNarrowIdsGiveTheSameBytes) {
  const Shape shape = {2, 4, 2, 13, 21, 16, 8};
  const std::int64_t pairs = shape.queries * shape.keys;
  std::vector<float> numbers(static_cast<std::size_t>(pairs));
  const auto bools = std::make_unique<bool[]>(numbers.size());
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    bools[i] = i % 5 != 2;
    numbers[i] = bools[i] ? 0.0f : -HUGE_VALF;
  }
  std::vector<std::int64_t> q_ids, k_ids;
  for (std::int64_t i = 0; i < shape.queries; ++i) q_ids.push_back(i * 7 % 30);
  for (std::int64_t i = 0; i < shape.keys; ++i) k_ids.push_back(i * 5 % 40);
  const std::vector<std::int32_t> narrow_q(q_ids.begin(), q_ids.end()), narrow_k(k_ids.begin(), k_ids.end());
  for (const Position& position : {kPositions[1], kPositions[3], kPositions[4]}) {
    SCOPED_TRACE(position.name);
    const Case c{.shape = shape, .position = position, .options = {false, 0}};
    const auto q = as<float>(c.q), k = as<float>(c.k), v = as<float>(c.v), d_out = as<float>(c.d_out);
    for_each_host_engine([&] {
      const auto gradients_with = [&](const AttentionOptions& options) {
        Gradients<float> made(c);
        attention_backward(made.views(c), d_out.view(), {q.view(), k.view(), v.view()}, options);
        return made;
      };
      AttentionOptions options = c.attention_options();
      options.mask = view(numbers.data(), {shape.queries, shape.keys});
      options.query_positions = Positions{.ids = q_ids};
      options.key_positions = Positions{.ids = k_ids};
      const Gradients<float> want = gradients_with(options);
      options.mask = view(static_cast<const bool*>(bools.get()), {shape.queries, shape.keys});
      options.query_positions = Positions{.ids_i32 = narrow_q};
      options.key_positions = Positions{.ids_i32 = narrow_k};
      const Gradients<float> got = gradients_with(options);
      EXPECT_EQ(got.q.values, want.q.values);
      EXPECT_EQ(got.k.values, want.k.values);
      EXPECT_EQ(got.v.values, want.v.values);
      EXPECT_EQ(got.parameters.values, want.parameters.values);
    });
  }
}

TEST(AttentionBackward, TakesWhatForwardKeptAndAddsToParameters) {
  const Shape shape = {1, 2, 1, 40, 70, 16, 16};
  const Position& position = kPositions[4];
  Case c{.shape = shape, .position = position, .options = {true, 0}};
  const auto q = as<float>(c.q), k = as<float>(c.k), v = as<float>(c.v), d_out = as<float>(c.d_out);
  for_each_host_engine([&] {
    const Gradients<float> alone = gradients_of<float>(c);
    Heads<float> out(1, 2, 40, 16);
    std::vector<float> logs(80);
    AttentionOptions options = c.attention_options();
    options.logsumexp = view(logs.data(), {1, 2, 40});
    attention(out.view(), q.view(), k.view(), v.view(), options);
    Gradients<float> kept(c);
    const AttentionInputs inputs{q.view(), k.view(), v.view(), out.view(),
                                 view(static_cast<const float*>(logs.data()), {1, 2, 40})};
    attention_backward(kept.views(c), d_out.view(), inputs, c.attention_options());
    EXPECT_EQ(kept.q.values, alone.q.values);
    EXPECT_EQ(kept.parameters.values, alone.parameters.values);
    attention_backward(kept.views(c), d_out.view(), inputs, c.attention_options());
    EXPECT_EQ(kept.k.values, alone.k.values);  // written
    for (std::size_t i = 0; i < kept.parameters.values.size(); ++i) {
      EXPECT_DOUBLE_EQ(kept.parameters.values[i], 2 * alone.parameters.values[i]);  // added to
    }
  });
}

// Half of the keys, with the out and logsumexp of all of them: their share of the whole gradient, or a refusal.
template <class T> std::string refusal_of_half(const Position& position, double softcap, bool is_whole) {
  const Shape shape = {1, 2, 1, 5, 12, 8, 8};
  Case c{.shape = shape, .position = position, .options = {.causal = false, .window = 0, .softcap = softcap}};
  const auto q = as<T>(c.q), k = as<T>(c.k), v = as<T>(c.v), d_out = as<T>(c.d_out);
  using Sums = std::conditional_t<std::is_same_v<T, double>, double, float>;
  Heads<T> out(1, 2, 5, 8);
  std::vector<Sums> logs(10);
  AttentionOptions options = c.attention_options();
  options.logsumexp = view(logs.data(), {1, 2, 5});
  attention(out.view(), q.view(), k.view(), v.view(), options);
  options.logsumexp = {};
  const ConstTensorView sums = view(std::as_const(logs).data(), {1, 2, 5});
  const std::int64_t keys = is_whole ? 12 : 6;
  options.query_positions = Positions{.first = 7};  // as for all keys
  options.key_positions = Positions{.first = 0};
  Gradients<T> whole(c), made(c);
  AttentionGradients to = made.views(c);
  to.k = slice(to.k, 2, 0, keys), to.v = slice(to.v, 2, 0, keys);
  try {
    attention_backward(to, d_out.view(),
                       {q.view(), slice(k.view(), 2, 0, keys), slice(v.view(), 2, 0, keys), out.view(), sums},
                       options);
  } catch (const Error& error) {
    return error.what();
  }
  attention_backward(whole.views(c), d_out.view(), {q.view(), k.view(), v.view()}, options);
  for (std::int64_t i = 0; i < keys * 8; ++i) {
    EXPECT_NEAR(numerics::widen(made.k.values[static_cast<std::size_t>(i)]),
                numerics::widen(whole.k.values[static_cast<std::size_t>(i)]), 2e-6);
  }
  return "";
}
TEST(AttentionBackward, RefusesTheSumsOfMoreKeysWhereItComputesItsOwn) {
  const std::string refused =
      "attention_backward: logsumexp is not that of these keys, which the backend cpu supports in f32, f16 and bf16 without "
      "vectors by distance, contextual positions, and gradients of a bias with a softcap";
  const auto named = [](std::string_view name) -> const Position& {
    return *std::find_if(std::begin(kPositions), std::end(kPositions),
                         [&](const Position& p) { return p.name == name; });
  };
  const bool has_cpu = backend() == "cpu";
  for (const Position& position : {named("none"), named("slopes")}) {
    EXPECT_EQ(refusal_of_half<float>(position, 0, false), has_cpu ? "" : refused);
    EXPECT_EQ(refusal_of_half<float>(position, 0, true), "");
    EXPECT_EQ(refusal_of_half<double>(position, 0, false), refused);
    EXPECT_EQ(refusal_of_half<double>(position, 0, true), "");
  }
  EXPECT_EQ(refusal_of_half<float>(named("slopes"), 0.8, false), refused);
  EXPECT_EQ(refusal_of_half<float>(named("slopes"), 0.8, true), "");
  EXPECT_EQ(refusal_of_half<float>(named("vectors"), 0, false), refused);
  EXPECT_EQ(refusal_of_half<float>(named("vectors"), 0, true), "");
  force_backend("reference");
  EXPECT_EQ(refusal_of_half<float>(named("none"), 0, false), refused);
  EXPECT_EQ(refusal_of_half<float>(named("none"), 0, true), "");
  force_backend("");
}

TEST(AttentionBackward, DoesNotDependOnTheNumberOfThreads) {
  const Shape shape = {2, 4, 2, 210, 250, 16, 16};
  for (const Position& position : {kPositions[1], kPositions[3], kPositions[4]}) {
    Case c{.shape = shape, .position = position, .options = {true, 0}};
    set_threads(1);
    const Gradients<float> one = gradients_of<float>(c);
    set_threads(5);
    const Gradients<float> five = gradients_of<float>(c);
    set_threads(0);
    EXPECT_EQ(one.q.values, five.q.values);
    EXPECT_EQ(one.k.values, five.k.values);
    EXPECT_EQ(one.v.values, five.v.values);
    EXPECT_EQ(one.parameters.values, five.parameters.values);
  }
}

// What lies past the lengths has no part in it: neither keys and values, nor angles of positions that nobody has.
TEST(AttentionBackward, ReadsNoKeysPastTheLengths) {
  const std::int64_t batch = 2, heads = 2, tokens = 70, features = 16;
  const std::vector<std::int64_t> lengths = {41, 9};
  const auto gradients_with = [&](float past) {
    Heads<float> q = random_heads<float>(batch, heads, tokens, features, 1);
    Heads<float> k = random_heads<float>(batch, heads, tokens, features, 2);
    Heads<float> v = random_heads<float>(batch, heads, tokens, features, 3);
    Heads<float> d_out = random_heads<float>(batch, heads, tokens, features, 4);
    for (std::int64_t b = 0; b < batch; ++b) {
      for (std::int64_t h = 0; h < heads; ++h) {
        for (std::int64_t t = lengths[static_cast<std::size_t>(b)]; t < tokens; ++t) {
          for (std::int64_t f = 0; f < features; ++f) {
            k.at(b, h, t, f) = v.at(b, h, t, f) = past;
            d_out.at(b, h, t, f) = 0;
          }
        }
      }
    }
    AttentionOptions options;
    options.position = prepare(Rope{.dims = features});
    options.query_lengths = options.key_lengths = lengths;
    Heads<float> d_q = q, d_k = k, d_v = v;
    // memory that the call is given next holds what would show
    { const std::vector<float> junk(100'000, past); }
    attention_backward({d_q.view(), d_k.view(), d_v.view()}, std::as_const(d_out).view(),
                       {std::as_const(q).view(), std::as_const(k).view(), std::as_const(v).view()}, options);
    std::vector<float> all = d_q.values;
    all.insert(all.end(), d_k.values.begin(), d_k.values.end());
    all.insert(all.end(), d_v.values.begin(), d_v.values.end());
    return all;
  };
  for_each_host_engine(
      [&] { EXPECT_EQ(gradients_with(0.0f), gradients_with(std::numeric_limits<float>::quiet_NaN())); });
}

// Padding of a batch has no gradient: the others are those of the keys alone.
TEST(AttentionBackward, IsZeroPastTheLengths) {
  constexpr std::int64_t kQueries = 6, kHeads = 4, kKeyHeads = 2, kFeatures = 8, kRoom = 70;
  const auto q = random_heads<float>(1, kHeads, kQueries, kFeatures, 1),
             k = random_heads<float>(1, kKeyHeads, kRoom, kFeatures, 2),
             v = random_heads<float>(1, kKeyHeads, kRoom, kFeatures, 3),
             d_out = random_heads<float>(1, kHeads, kQueries, kFeatures, 4);
  for_each_host_engine([&] {
    for (const std::int64_t length : {0, 1, 5, 33, 69}) {
      SCOPED_TRACE(length);
      const std::vector<std::int64_t> lengths = {length};
      auto dk = k, dv = v;
      attention_backward({.k = dk.view(), .v = dv.view()}, d_out.view(), {q.view(), k.view(), v.view()},
                         {.key_lengths = lengths});
      const Extents shape = {1, kKeyHeads, length, kFeatures};
      std::vector<float> dk_alone(static_cast<std::size_t>(kKeyHeads * length * kFeatures)), dv_alone = dk_alone;
      attention_backward({.k = view(dk_alone.data(), shape), .v = view(dv_alone.data(), shape)}, d_out.view(),
                         {q.view(), slice(k.view(), 2, 0, length), slice(v.view(), 2, 0, length)}, {});
      const auto padded = [&](const std::vector<float>& alone) {
        std::vector<float> all;
        for (std::int64_t h = 0; h < kKeyHeads; ++h) {
          const auto from = alone.begin() + h * length * kFeatures;
          all.insert(all.end(), from, from + length * kFeatures);
          all.resize(static_cast<std::size_t>((h + 1) * kRoom * kFeatures), 0.0f);
        }
        return all;
      };
      EXPECT_EQ(dk.values, padded(dk_alone));
      EXPECT_EQ(dv.values, padded(dv_alone));
    }
  });
}

// Heads last by the same word as forward.
TEST(AttentionBackward, AxesAreSaidByAWord) {
  constexpr std::int64_t kTokens = 7, kKeys = 9, kHeads = 4, kKeyHeads = 2, kFeatures = 8;
  const auto q = random_heads<float>(2, kTokens, kHeads, kFeatures, 1),
             k = random_heads<float>(2, kKeys, kKeyHeads, kFeatures, 2),
             v = random_heads<float>(2, kKeys, kKeyHeads, kFeatures, 3),
             d_out = random_heads<float>(2, kTokens, kHeads, kFeatures, 4);  // tokens are where heads usually are
  const std::vector<float> gates(2 * kKeys * kHeads, -0.1f);
  const auto run = [&](bool by_word) {
    auto dq = q, dk = k, dv = v;
    std::vector<float> d_gates(gates.size());
    const auto placed = [&](auto x) { return by_word ? x : swap_axes(x, 1, 2); };
    ConstTensorView g = view(gates.data(), {2, kKeys, kHeads});
    TensorView dg = view(d_gates.data(), {2, kKeys, kHeads});
    AttentionOptions options{.position = prepare(ForgetGate{}), .causal = true};
    if (by_word) options.axes = Axes::kBshd;
    options.log_gates = by_word ? g : swap_axes(g, 1, 2);
    attention_backward({.q = placed(dq.view()),
                        .k = placed(dk.view()),
                        .v = placed(dv.view()),
                        .log_gates = by_word ? dg : swap_axes(dg, 1, 2)},
                       placed(d_out.view()), {placed(q.view()), placed(k.view()), placed(v.view())}, options);
    std::vector<float> all = dq.values;
    for (const auto* more : {&dk.values, &dv.values, &d_gates}) all.insert(all.end(), more->begin(), more->end());
    return all;
  };
  EXPECT_EQ(run(true), run(false));
}

// One product made q, k and v, [tokens, heads and twice key heads, features], and wants one gradient back.
TEST(AttentionBackward, TakesPartsOfOneTensor) {
  constexpr std::int64_t kTokens = 7, kHeads = 4, kKeyHeads = 2, kRows = kHeads + 2 * kKeyHeads, kFeatures = 8;
  const auto together = random_heads<float>(1, kTokens, kRows, kFeatures, 1),
             d_out = random_heads<float>(1, kTokens, kHeads, kFeatures, 2);
  const auto part = [](const auto& whole, std::int64_t first, std::int64_t count) {
    return slice(whole, 2, first, count);  // heads are where tokens usually are
  };
  const AttentionOptions options{.position = prepare(Rope{.dims = kFeatures}), .axes = Axes::kBshd, .causal = true};
  const AttentionInputs inputs{part(together.view(), 0, kHeads), part(together.view(), kHeads, kKeyHeads),
                               part(together.view(), kHeads + kKeyHeads, kKeyHeads)};
  for_each_host_engine([&] {
    auto dq = random_heads<float>(1, kTokens, kHeads, kFeatures, 3),
         dk = random_heads<float>(1, kTokens, kKeyHeads, kFeatures, 4), dv = dk, all = together;
    attention_backward({.q = dq.view(), .k = dk.view(), .v = dv.view()}, d_out.view(), inputs, options);
    attention_backward({.q = part(all.view(), 0, kHeads),
                        .k = part(all.view(), kHeads, kKeyHeads),
                        .v = part(all.view(), kHeads + kKeyHeads, kKeyHeads)},
                       d_out.view(), inputs, options);
    std::vector<float> wanted;
    for (std::int64_t t = 0; t < kTokens; ++t) {
      for (const auto* one : {&dq, &dk, &dv}) {
        const std::int64_t count = std::ssize(one->values) / kTokens;
        wanted.insert(wanted.end(), one->values.begin() + t * count, one->values.begin() + (t + 1) * count);
      }
    }
    EXPECT_EQ(all.values, wanted);
    try {
      attention_backward({.q = part(all.view(), 0, kHeads), .k = part(all.view(), kHeads - 1, kKeyHeads)},
                         d_out.view(), inputs, options);
      ADD_FAILURE() << "accepted";
    } catch (const Error& error) {
      EXPECT_STREQ(error.what(), "attention_backward: the gradient of q overlaps the gradient of k");
    }
    EXPECT_EQ(all.values, wanted);
  });
}

}  // namespace
}  // namespace posenc::backward_test
