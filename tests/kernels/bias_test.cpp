// bias on every backend and SIMD target: against plain sums, byte for byte between backends, in every type, with
// every kind of strides, positions and source; and its gradients.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "backends.h"
#include "kernels/case_tensor.h"
#include "kernels/random_values.h"
#include "posenc/posenc.h"

namespace posenc::bias_test {
namespace {

using tests::for_each_engine;
using tests::make_case;
using tests::same_bytes;
using tests::Strides;

constexpr std::int64_t kHeads = 3, kQueries = 21, kKeys = 35;

// Tables that forms look at; they must outlive them.
struct Tables {
  std::vector<float> buckets = std::vector<float>(32 * kHeads);
  std::vector<BFloat16> window = std::vector<BFloat16>(41 * 39 * kHeads);
  Tables() {
    for (std::size_t i = 0; i < buckets.size(); ++i) buckets[i] = std::sin(static_cast<float>(i));
    for (std::size_t i = 0; i < window.size(); ++i) window[i] = numerics::narrow<BFloat16>(std::cos(double(i)));
  }
};
const Tables& tables() {
  static const Tables made;
  return made;
}

Fire network() {
  Fire scheme{.threshold = 12};
  scheme.hidden_weights = {1.0, -2.0, 0.5, 3.0};
  scheme.hidden_biases = {0.1, 1.3, -0.2, 0.0};
  for (int i = 0; i < 4 * kHeads; ++i) scheme.output_weights.push_back(std::sin(i + 0.5));
  scheme.output_biases = {0.05, -0.4, 0.0};
  return scheme;
}

std::vector<Bias> forms_of_one_axis() {
  const ConstTensorView buckets = view(tables().buckets.data(), {32, kHeads});
  return {prepare(Alibi{.heads = kHeads}),
          prepare(T5{.heads = kHeads}, {.weights = buckets}),
          prepare(T5{.heads = kHeads, .bidirectional = false}, {.weights = buckets}),
          prepare(Kerple{.amplitudes = {1, 0.5, 0.1}, .rates = {0.1, 1, 3}}, {.length = 400}),
          prepare(Sandwich{.heads = kHeads, .dims = 8}, {.length = 400}),
          prepare(network(), {.length = 400})};
}

// [batch, heads, queries, keys] with strides of every kind.
template <class T> struct Scores {
  std::vector<T> storage;
  TensorView view;
};
enum class Kind { kDense, kPadded, kHeadsLast };
template <class T> Scores<T> make_scores(std::int64_t batch, Kind kind) {
  Scores<T> scores;
  const std::int64_t row = kind == Kind::kPadded ? kKeys + 5 : kKeys;
  Extents strides = {kHeads * kQueries * row, kQueries * row, row, 1};
  if (kind == Kind::kHeadsLast) strides = {kQueries * kKeys * kHeads, 1, kKeys * kHeads, kHeads};
  scores.storage.resize(static_cast<std::size_t>(batch * kHeads * kQueries * row));
  scores.view = {scores.storage.data(), data_type_of<T>(), {batch, kHeads, kQueries, kKeys}, strides};
  return scores;
}

struct Where {
  Positions queries, keys;
};

template <class T> void expect_reference_bytes(const Bias& form, const Where& where, std::int64_t batch) {
  for (const Kind kind : {Kind::kDense, Kind::kPadded, Kind::kHeadsLast}) {
    force_backend("reference");
    auto want = make_scores<T>(batch, kind);
    bias(want.view, where.queries, where.keys, form);
    for_each_engine([&] {
      for (const int count : {1, 5}) {
        set_threads(count);
        auto got = make_scores<T>(batch, kind);
        bias(got.view, where.queries, where.keys, form);
        EXPECT_TRUE(same_bytes(got.storage, want.storage));
      }
      set_threads(0);
    });
  }
}

TEST(Bias, AgreesWithTheReferenceForEverySource) {
  const std::int64_t batch = 2;
  std::vector<std::int64_t> queries, keys, each_queries, each_keys;
  for (std::int64_t i = 0; i < kQueries; ++i) queries.push_back(i * 29 % 190);
  for (std::int64_t i = 0; i < kKeys; ++i) keys.push_back(i * 13 % 190);
  for (std::int64_t i = 0; i < batch * kQueries; ++i) each_queries.push_back(i * 31 % 200);
  for (std::int64_t i = 0; i < batch * kKeys; ++i) each_keys.push_back(i * 17 % 200);
  const Where places[] = {{{}, {}},
                          {{.first = 300}, {.first = 290}},
                          {{.ids = queries}, {.ids = keys}},
                          {{.ids = each_queries}, {.ids = each_keys}},
                          {{.first = 14}, {.ids = each_keys}}};
  for (const Bias& form : forms_of_one_axis()) {
    for (const Where& where : places) {
      expect_reference_bytes<float>(form, where, batch);
      expect_reference_bytes<double>(form, where, batch);
      expect_reference_bytes<Half>(form, where, batch);
      expect_reference_bytes<BFloat16>(form, where, batch);
    }
  }
}

TEST(Bias, AgreesWithTheReferenceInAWindow) {
  std::vector<std::int64_t> queries, keys;  // [axes, tokens]
  for (std::int64_t i = 0; i < 2 * kQueries; ++i) queries.push_back(i * 5 % 20);
  for (std::int64_t i = 0; i < 2 * kKeys; ++i) keys.push_back(i * 7 % 20);
  const Bias form = prepare(Swin{.heads = kHeads, .window = {21, 20}},
                            {.weights = view(tables().window.data(), {41 * 39, kHeads})});
  const Where where{{.ids = queries, .axes = 2}, {.ids = keys, .axes = 2}};
  expect_reference_bytes<float>(form, where, 1);
  expect_reference_bytes<BFloat16>(form, where, 1);
}

TEST(Bias, IsTheSlopeTimesTheDistance) {
  const Bias form = prepare(Alibi{.heads = 4, .scale = 0.3});
  const auto& slopes = std::get<Slopes>(form.source).slopes;
  for_each_engine([&] {
    std::vector<float> out(4 * 6 * 9);
    // far out, where float32 positions would no longer be exact
    bias(view(out.data(), {4, 6, 9}), {.first = kPositionLimit - 7}, {.first = kPositionLimit - 10}, form);
    for (std::size_t at = 0; at < out.size(); ++at) {
      const std::size_t h = at / 54, i = at / 9 % 6, j = at % 9;
      const double distance = std::fabs(static_cast<double>(j) - 3.0 - static_cast<double>(i));
      ASSERT_EQ(out[at], static_cast<float>(-slopes[h] * distance)) << at;
      ASSERT_FALSE(out[at] == 0 && std::signbit(out[at])) << "-0 at distance 0";
    }
  });
}

// What is the same at every distance shifts with the tokens.
TEST(Bias, DependsOnDistanceAlone) {
  for (const Bias& form : forms_of_one_axis()) {
    if (std::holds_alternative<DistanceRatios>(form.source)) continue;
    auto here = make_scores<float>(1, Kind::kDense), there = make_scores<float>(1, Kind::kDense);
    bias(here.view, {.first = 5}, {.first = 0}, form);
    bias(there.view, {.first = 1'000'005}, {.first = 1'000'000}, form);
    EXPECT_EQ(here.storage, there.storage);
  }
}

// ⟨dp, backward(g)⟩ = ⟨derivative along dp, g⟩: the bias is linear in slopes and tables.
TEST(BiasBackward, IsTheAdjointForSlopesAndTables) {
  const std::int64_t batch = 2;
  std::vector<std::int64_t> ids;
  for (std::int64_t i = 0; i < batch * kKeys; ++i) ids.push_back(i * 17 % 60);
  const Positions queries{.first = 9}, keys{.ids = ids};
  const auto gradient = make_case<double>(batch * kHeads, kQueries, kKeys, Strides::kDense, 3);
  const ConstTensorView d_out = view(gradient.storage.data(), {batch, kHeads, kQueries, kKeys});
  for_each_engine([&] {
    const auto expect_adjoint = [&](const Bias& direction, const std::vector<double>& flat, const Extents& shape) {
      std::vector<double> out(gradient.storage.size()), found(flat.size());
      bias(view(out.data(), {batch, kHeads, kQueries, kKeys}), queries, keys, direction);
      bias_backward(view(found.data(), shape), d_out, {queries, keys}, direction);
      double left = 0, right = 0, size = 0;
      for (std::size_t i = 0; i < out.size(); ++i) {
        left += out[i] * gradient.storage[i];
        size += std::fabs(out[i] * gradient.storage[i]);
      }
      for (std::size_t i = 0; i < flat.size(); ++i) right += flat[i] * found[i];
      EXPECT_NEAR(left, right, 1e-13 * size);
    };
    const std::vector<double> slopes = {0.3, -1.0, 2.5};
    expect_adjoint({kHeads, Slopes{slopes}}, slopes, {kHeads});
    const auto table = make_case<double>(1, 32, kHeads, Strides::kDense, 4).storage;
    expect_adjoint(prepare(T5{.heads = kHeads}, {.weights = view(table.data(), {32, kHeads})}), table, {32, kHeads});
  });
}

TEST(BiasBackward, AgreesWithTheReferenceForEverySource) {
  const std::int64_t batch = 2;
  const auto gradient = make_case<float>(batch * kHeads, kQueries, kKeys, Strides::kDense, 6);
  const ConstTensorView d_out = view(gradient.storage.data(), {batch, kHeads, kQueries, kKeys});
  for (const Bias& form : forms_of_one_axis()) {
    Extents shape = {kHeads};
    if (const auto* table = std::get_if<DistanceTable>(&form.source)) shape = table_of(*table, kHeads).shape;
    if (std::holds_alternative<DistanceRatios>(form.source)) shape = {4 + 4 + 4 * kHeads + kHeads};
    std::vector<float> want(static_cast<std::size_t>(count_of(shape)), 0.5f);
    force_backend("reference");
    bias_backward(view(want.data(), shape), d_out, {{.first = 7}, {}}, form);
    for_each_engine([&] {
      for (const int count : {1, 5}) {
        set_threads(count);
        std::vector<float> got(want.size(), 0.5f);
        bias_backward(view(got.data(), shape), d_out, {{.first = 7}, {}}, form);
        EXPECT_TRUE(same_bytes(got, want));
      }
      set_threads(0);
    });
  }
}

// In order, in double, added to what is there and rounded once.
TEST(BiasBackward, SumsBuckets) {
  const Bias form = prepare(T5{.heads = kHeads}, {.weights = view(tables().buckets.data(), {32, kHeads})});
  const DistanceMap map = buckets_of({.heads = kHeads});
  const auto gradient = make_case<float>(kHeads, kQueries, kKeys, Strides::kPaddedRows, 6);
  std::vector<double> want(32 * kHeads);
  auto source = gradient;
  for (std::int64_t h = 0; h < kHeads; ++h) {
    for (std::int64_t i = 0; i < kQueries; ++i) {
      for (std::int64_t j = 0; j < kKeys; ++j) {
        const auto last = static_cast<std::int64_t>(map.entries.size()) - 1;
        const std::int64_t at = std::clamp<std::int64_t>(j - i - map.first, 0, last);
        want[static_cast<std::size_t>(map.entries[static_cast<std::size_t>(at)] * kHeads + h)] +=
            static_cast<double>(source.at(h, i, j));
      }
    }
  }
  for_each_engine([&] {
    std::vector<float> got(32 * kHeads, 0.25f);
    bias_backward(view(got.data(), {32, kHeads}), gradient.const_view(), {{}, {}}, form);
    for (std::size_t i = 0; i < got.size(); ++i) ASSERT_EQ(got[i], static_cast<float>(0.25 + want[i]));
  });
}

struct BadCall {
  const char* message;
  void (*call)();
};
float scratch[512];
const float* const weights = scratch;
const BadCall kBadCalls[] = {
    {"bias: out must have 3 or 4 axes, batch, heads, queries, keys, but has 2",
     [] {
       bias(view(scratch, {4, 4}), {}, {}, prepare(Alibi{}));
     }},
    {"bias: the form has 8 heads but the tensor has 4",
     [] {
       bias(view(scratch, {4, 4, 4}), {}, {}, prepare(Alibi{}));
     }},
    {"bias: out has no data",
     [] {
       bias(view(static_cast<float*>(nullptr), {8, 4, 4}), {}, {}, prepare(Alibi{}));
     }},
    {"bias: out must be f32, f64, f16 or bf16 but is i64",
     [] {
       std::int64_t out[8];
       bias(view(out, {8, 1, 1}), {}, {}, prepare(Alibi{}));
     }},
    {"bias: out cannot be written: axis 1 has stride 0",
     [] {
       TensorView out = view(scratch, {8, 4, 4});
       out.strides[1] = 0;
       bias(out, {}, {}, prepare(Alibi{}));
     }},
    {"bias: queries: position -9007199254740992 is outside -2^53 + 1 to 2^53 - 1",
     [] {
       bias(view(scratch, {8, 4, 4}), {.first = -kPositionLimit}, {}, prepare(Alibi{}));
     }},
    {"bias: keys: position 9007199254740992 is outside -2^53 + 1 to 2^53 - 1",
     [] {
       bias(view(scratch, {8, 4, 4}), {}, {.first = kPositionLimit - 3}, prepare(Alibi{}));
     }},
    {"bias: keys: 3 position ids do not fit 1 sequences of 4 tokens and 1 axes",
     [] {
       const std::vector<std::int64_t> ids = {1, 2, 3};
       bias(view(scratch, {8, 4, 4}), {}, {.ids = ids}, prepare(Alibi{}));
     }},
    {"bias: queries: the form has 2 position axes but the positions have 1",
     [] {
       bias(view(scratch, {1, 4, 4}), {}, {}, prepare(Swin{.heads = 1}, {.weights = view(weights, {169, 1})}));
     }},
    {"bias: vectors by distance are dotted with q and k, so only attention can add them",
     [] {
       bias(view(scratch, {1, 4, 4}), {}, {},
            prepare(Shaw{.left = 1, .right = 1}, {.weights = view(weights, {3, 4})}));
     }},
    {"bias: the form must have 2 slopes but has 1",
     [] {
       bias(view(scratch, {2, 4, 4}), {}, {}, {2, Slopes{{1.0}}});
     }},
    {"bias: the form has an empty map of distances",
     [] {
       DistanceTable source;
       source.axes.resize(1);
       source.values = {1.0};
       bias(view(scratch, {1, 4, 4}), {}, {}, {1, source});
     }},
    {"bias: the form must have 1 to 255 axes but has 0",
     [] {
       bias(view(scratch, {1, 4, 4}), {}, {}, {1, DistanceTable{}});
     }},
    {"bias: the form names rows 0 to 5 of a table with 2",
     [] {
       DistanceTable source;
       source.axes = {{0, {0, 5}}};
       source.values = {1.0, 2.0};
       bias(view(scratch, {1, 4, 4}), {}, {}, {1, source});
     }},
    {"bias: the form has 2 heads but its table has 3",
     [] {
       DistanceTable source;
       source.axes = {{0, {0}}};
       source.weights = view(weights, {4, 3});
       bias(view(scratch, {2, 4, 4}), {}, {}, {2, source});
     }},
    {"bias: the form must have 2 hidden biases but has 1",
     [] {
       DistanceRatios source;
       source.hidden_weights = {1, 2};
       source.hidden_biases = {1};
       bias(view(scratch, {1, 4, 4}), {}, {}, {1, source});
     }},
    {"bias_backward: d_parameters must be [8] but is [7]",
     [] {
       bias_backward(view(scratch, {7}), view(weights, {8, 4, 4}), {{}, {}}, prepare(Alibi{}));
     }},
    {"bias_backward: d_out must have 3 or 4 axes, batch, heads, queries, keys, but has 1",
     [] {
       bias_backward(view(scratch, {8}), view(weights, {8}), {{}, {}}, prepare(Alibi{}));
     }},
};

TEST(Bias, SaysWhatIsWrong) {
  for (const BadCall& bad : kBadCalls) {
    try {
      bad.call();
      ADD_FAILURE() << "accepted; expected: " << bad.message;
    } catch (const Error& error) {
      EXPECT_STREQ(error.what(), bad.message);
    }
  }
}

TEST(Bias, LeavesEmptyTensorsAlone) {
  for_each_engine([&] {
    const std::vector<float> before(std::begin(scratch), std::end(scratch));
    EXPECT_NO_THROW(bias(view(scratch, {8, 0, 4}), {}, {}, prepare(Alibi{})));
    EXPECT_NO_THROW(bias(view(scratch, {0, 8, 4, 4}), {}, {}, prepare(Alibi{})));
    EXPECT_NO_THROW(bias(view(scratch, {8, 4, 0}), {}, {}, prepare(Alibi{})));
    EXPECT_EQ(std::vector<float>(std::begin(scratch), std::end(scratch)), before);
  });
}

}  // namespace
}  // namespace posenc::bias_test
