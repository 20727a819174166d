// The values are those of transformers 5.16 (d56c55bf): relative_positional_encoding and rel_attn_core of
// modeling_xlnet.py, and the sinusoids and _rel_shift of modeling_parakeet.py, cut out and run once with torch 1.13 in
// float64. XLNet's angles are float32 there whatever the type, hence its tolerance.

#include <gtest/gtest.h>

#include "schemes/golden_array.h"
#include "schemes/published.h"

namespace posenc::transformer_xl_test {
namespace {

using tests::refusal;
using tests::Sequence;
using tests::wavy;

// XLNet's q, k and v are [tokens, heads, features].
std::vector<double> heads_first_of(const std::vector<double>& x, std::int64_t heads, std::int64_t features) {
  const std::int64_t tokens = std::ssize(x) / heads / features;
  std::vector<double> y;
  for (std::int64_t h = 0; h < heads; ++h) {
    for (std::int64_t t = 0; t < tokens; ++t) {
      for (std::int64_t f = 0; f < features; ++f)
        y.push_back(x[static_cast<std::size_t>((t * heads + h) * features + f)]);
    }
  }
  return y;
}

TEST(TransformerXl, ValuesOfXlnet) {
  Sequence x{2, 3, 5, 4};
  for (std::vector<double>* const part : {&x.q, &x.k, &x.v}) *part = heads_first_of(*part, 2, 4);
  const std::vector<double> r = wavy(6 * 2 * 4, 0.5);  // [width, heads, features]
  const ConstTensorView w(r.data(), DataType::kF64, {2, 4, 6}, {4, 1, 8});
  TransformerXl scheme{.heads = 2, .width = 6, .content_bias = wavy(8, 0.6), .position_bias = wavy(8, 0.7)};
  tests::expect_attention(
      x, {.position = prepare(scheme, {.length = 5, .weights = w})},
      {0.256238413657,  0.350420760354,  0.221999693575,   0.20104596589,   0.264725930954,    0.25200901872,
       0.297500409303,  0.275417979202,  0.205408544057,   0.27258545681,   0.27482588198,     0.332604326403,
       -0.113024395615, -0.309352022455, 0.0142868803905,  0.130040564616,  0.0422057823655,   -0.280747108345,
       0.0194570703349, 0.169477601873,  -0.0647751915149, -0.175226068268, -0.00772545251107, 0.115922177663},
      1e-7);
  scheme.clamp = 2;
  tests::expect_attention(
      x, {.position = prepare(scheme, {.weights = w})},
      {0.256238413657,  0.350420760354,  0.221999693575,   0.20104596589,   0.258855935749,   0.268989936357,
       0.279198048858,  0.269475503414,  0.222948783083,   0.300387502648,  0.261841105745,   0.287208390103,
       -0.113024395615, -0.309352022455, 0.0142868803905,  0.130040564616,  0.00939811840089, -0.294597658445,
       0.0307871814768, 0.158206432404,  -0.0926709249633, -0.201014416276, 0.00393728208687, 0.108815673444},
      1e-7);
}

TEST(TransformerXl, ValuesOfParakeet) {
  const std::vector<double> w = wavy(2 * 4 * 6, 0.5);
  const TransformerXl scheme{.heads = 2,
                             .width = 6,
                             .layout = WaveLayout::kInterleaved,
                             .content_bias = wavy(8, 0.6),
                             .position_bias = wavy(8, 0.7)};
  tests::expect_attention(
      {2, 5, 5, 4}, {.position = prepare(scheme, {.length = 5, .weights = view(w.data(), {2, 4, 6})})},
      {0.0466613665416, 0.266115514299,  0.206811590558,  0.271138067931,   0.0223465695159,   0.0817949932713,
       0.172913324552,  0.207210405924,  0.121480117207,  0.153158159598,   0.225893249813,    0.142865632617,
       0.144763148817,  0.0162764859392, 0.103199939874,  0.246619940405,   0.0961083453363,   0.190795028004,
       0.233226319773,  0.279573092431,  0.182165851033,  -0.0213514104231, 0.021475156727,    0.150234427468,
       0.33385122047,   -0.243099306133, 0.103066262239,  0.224286255303,   0.289306534805,    -0.209185842191,
       0.092192564279,  0.215823228604,  0.242265702256,  -0.0491437282954, -0.00476430592688, 0.149392214453,
       0.256212661069,  -0.130290700762, 0.0806787647824, 0.203728912717},
      1e-11);
}

// The formula, term by term, at lengths and distances that the values above do not have.
TEST(TransformerXl, IsTheFormula) {
  const std::int64_t heads = 3, length = 300, features = 5, width = 8;
  const std::vector<double> w = wavy(heads * features * width, 0.9), u = wavy(heads * features, 0.2),
                            v = wavy(heads * features, 1.2);
  for (const WaveLayout layout : {WaveLayout::kSinCos, WaveLayout::kCosSin, WaveLayout::kInterleaved}) {
    const TransformerXl scheme{
        .heads = heads, .width = width, .base = 500.0, .layout = layout, .content_bias = u, .position_bias = v};
    const Bias form = prepare(scheme, {.length = length, .weights = view(w.data(), {heads, features, width})});
    const auto& source = std::get<DistanceVectors>(form.source);
    EXPECT_EQ(source.query_offsets, v);
    EXPECT_EQ(source.for_keys.values, u);
    for (std::int64_t apart = 1 - length; apart < length; ++apart) {
      const std::int64_t row = tests::entry_at(source.for_queries.axes.front(), -apart);  // δ is n − m
      for (std::int64_t at = 0; at < heads * features; ++at) {
        double sum = 0;
        for (std::int64_t i = 0; i < width / 2; ++i) {
          const double angle = static_cast<double>(apart) *
                               std::pow(500.0, -2.0 * static_cast<double>(i) / static_cast<double>(width));
          const std::int64_t half = width / 2;
          const std::int64_t sine = layout == WaveLayout::kInterleaved ? 2 * i
                                    : layout == WaveLayout::kSinCos    ? i
                                                                       : half + i;
          const std::int64_t cosine = layout == WaveLayout::kInterleaved ? 2 * i + 1
                                      : layout == WaveLayout::kSinCos    ? half + i
                                                                         : i;
          sum += std::sin(angle) * w[static_cast<std::size_t>(at * width + sine)] +
                 std::cos(angle) * w[static_cast<std::size_t>(at * width + cosine)];
        }
        const std::int64_t rows = 2 * length - 1, h = at / features, f = at % features;
        ASSERT_NEAR(source.for_queries.values[static_cast<std::size_t>((h * rows + row) * features + f)], sum, 1e-12)
            << apart;
      }
    }
  }
}

TEST(TransformerXl, GradientsByFiniteDifferences) {
  const Sequence x{2, 4, 6, 3};
  std::vector<double> w = wavy(2 * 3 * 4, 0.5);
  TransformerXl scheme{.heads = 2, .width = 4, .content_bias = wavy(6, 0.6), .position_bias = wavy(6, 0.7)};
  const std::vector<double> d_out = wavy(2 * 4 * 3, 0.8);
  const PrepareOptions prepare_options{.length = 6, .weights = view(w.data(), {2, 3, 4})};
  const auto options = [&] { return AttentionOptions{.position = prepare(scheme, prepare_options), .causal = true}; };
  const auto sum = [&] { return tests::weighted_sum(x, options(), d_out); };
  std::vector<double> d_vectors(2 * 11 * 3), d_u(6), d_v(6);
  AttentionGradients gradients;
  gradients.query_vectors = view(d_vectors.data(), {2, 11, 3});
  gradients.key_vectors = view(d_u.data(), {2, 1, 3});
  gradients.query_offsets = view(d_v.data(), {2, 3});
  tests::sequence_backward(x, gradients, d_out, options());
  tests::expect_slopes(scheme.content_bias, d_u, sum, "u");
  tests::expect_slopes(scheme.position_bias, d_v, sum, "v");
  tests::expect_slopes(w, backward(scheme, prepare_options, d_vectors), sum, "W");
}

TEST(TransformerXl, SaysWhatIsWrong) {
  const std::vector<double> w(2 * 3 * 4);
  const PrepareOptions prepare_options{.length = 6, .weights = view(w.data(), {2, 3, 4})};
  const TransformerXl good{.heads = 2, .width = 4};
  const auto refused = [&](TransformerXl scheme, PrepareOptions at) { return refusal([&] { prepare(scheme, at); }); };
  EXPECT_EQ(refused({.heads = 2, .width = 5}, prepare_options), "transformer-xl: width must be even but is 5");
  EXPECT_EQ(refused({.heads = 2, .width = 4, .base = 0.5}, prepare_options),
            "transformer-xl: base must be between 1 and 1e36 but is 0.5");
  EXPECT_EQ(refused({.heads = 2, .width = 4, .clamp = -1}, prepare_options),
            "transformer-xl: clamp must be between 0 and 1048576 but is -1");
  EXPECT_EQ(
      refused(good, {.weights = prepare_options.weights}),
      "transformer-xl: the length is missing; its values are made for distances below it (PrepareOptions::length)");
  EXPECT_EQ(refused(good, {.length = 6}),
            "transformer-xl: the trained projection [2, features, 4] is missing: pass it as weights");
  EXPECT_EQ(refused({.heads = 3, .width = 4}, prepare_options),
            "transformer-xl: the projection must be [3, features, 4] but is [2, 3, 4]");
  EXPECT_EQ(refused({.heads = 2, .width = 4, .content_bias = {1.0}}, prepare_options),
            "transformer-xl: content_bias must have heads times features, 6, numbers, or none, but has 1");
  EXPECT_EQ(refused({.heads = 2, .width = 4, .position_bias = {0, 0, 0, 0, 0, HUGE_VAL}}, prepare_options),
            "transformer-xl: position_bias must be a finite number but is inf");
  const std::vector<std::int64_t> integers(24);
  EXPECT_EQ(refused(good, {.length = 6, .weights = view(integers.data(), {2, 3, 4})}),
            "transformer-xl: the table must be floating-point but is i64");
  const std::vector<E4M3> bytes(24);
  EXPECT_EQ(refused(good, {.length = 6, .weights = view(bytes.data(), {2, 3, 4})}),
            "transformer-xl: the table must be floating-point but is e4m3");
  EXPECT_EQ(refusal([&] { backward(good, prepare_options, std::vector<double>(5)); }),
            "transformer-xl: the gradient must have 66 numbers, heads times distances times features, but has 5");
  Bias form = prepare(good, prepare_options);
  EXPECT_EQ(refusal([&] { posenc::bind(form, prepare_options.weights); }),
            "bind: the form's vectors were computed from the weights: prepare it again");
}

}  // namespace
}  // namespace posenc::transformer_xl_test
