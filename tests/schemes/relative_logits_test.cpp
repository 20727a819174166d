// The values are those of transformers 5.16 (d56c55bf): InklingRelativeLogits.forward of modeling_inkling.py and the
// scores of its eager_attention_forward, cut out and run once with torch 1.13 in float64.

#include <gtest/gtest.h>

#include "schemes/golden_array.h"
#include "schemes/published.h"

namespace posenc::relative_logits_test {
namespace {

using tests::refusal;
using tests::Sequence;
using tests::wavy;

constexpr std::int64_t kHeads = 2, kQueries = 3, kKeys = 6, kExtent = 3, kRelative = 5;

// Inkling's relative states are [queries, heads, d_rel], its projection [d_rel, extent].
struct Model {
  std::vector<double> states = wavy(kQueries * kHeads * kRelative, 0.4), projection = wavy(kRelative * kExtent, 0.5);
  AttentionOptions options() const {
    const ConstTensorView table = swap_axes(view(projection.data(), {kRelative, kExtent}), 0, 1);
    AttentionOptions all{
        .position = prepare(RelativeLogits{.extent = kExtent}, {.weights = table}), .causal = true, .scale = 1.0 / 4};
    all.position_queries = swap_axes(view(states.data(), {kQueries, kHeads, kRelative}), 0, 1);
    return all;
  }
};

TEST(RelativeLogits, ValuesOfInkling) {
  const Model model;
  tests::expect_attention(
      {kHeads, kQueries, kKeys, 4}, model.options(),
      {0.19333973625,    0.00559160553824, 0.117261303769,  0.109544600082,  0.0857572690672, 0.0396157425444,
       0.1696060659,     0.185292765586,   -0.018808965159, 0.19369461722,   0.129650913165,  0.0963932793678,
       0.400817370357,   -0.240906028362,  0.0156528615253, 0.209436626538,  0.451674985361,  0.0133956346675,
       -0.0750110848525, 0.184725458743,   0.248539476389,  -0.148024245262, -0.146531301766, 0.230421078251},
      1e-11);
}

// The log scaling of its full layers, with log_scaling_n_floor 2 and alpha 0.1: tau multiplies q and the relative logits.
TEST(RelativeLogits, ATemperatureMultipliesThemToo) {
  const Model model;
  AttentionOptions options = model.options();
  options.temperature = Temperature{.scale = 0.1, .length = 2, .shift = 1, .rule = TemperatureRule::kLog};
  tests::expect_attention(
      {kHeads, kQueries, kKeys, 4}, options,
      {0.197521045658,   0.00881147588972, 0.118783731026,   0.109130330962,  0.0889043183202, 0.0359094689081,
       0.169382779355,   0.183123136907,   -0.0188761920126, 0.197951913288,  0.130130571471,  0.0901270198721,
       0.399877551767,   -0.241333088781,  0.0130139723822,  0.208273240787,  0.452736496956,  0.0228312394971,
       -0.0808310923664, 0.182575910612,   0.246371407196,   -0.147917443179, -0.150976011093, 0.227443411632},
      1e-11);
}

// The form says which distances have a vector: 0 to extent − 1, and none ahead or further behind.
TEST(RelativeLogits, EndsAtItsExtent) {
  const std::vector<float> table(4 * 2);
  const Bias form = prepare(RelativeLogits{.extent = 4}, {.weights = view(table.data(), {4, 2})});
  const auto& source = std::get<DistanceVectors>(form.source);
  for (std::int64_t apart = -9; apart <= 9; ++apart) {  // m − n
    EXPECT_EQ(tests::entry_at(source.for_queries.axes.front(), -apart), apart >= 0 && apart < 4 ? apart : kNoRow);
  }
  EXPECT_TRUE(source.has_own_queries);
  EXPECT_FALSE(source.is_scaled);
}

// The formula in double, with a table of each head's own and everything in sight.
TEST(RelativeLogits, IsTheFormula) {
  const std::int64_t heads = 2, tokens = 9, extent = 4, relative = 3;
  const std::vector<double> table = wavy(heads * extent * relative, 0.9), r = wavy(heads * tokens * relative, 0.2);
  Sequence x{heads, tokens, tokens, 5};
  AttentionOptions options{.position = prepare(RelativeLogits{.extent = extent},
                                               {.weights = view(table.data(), {heads, extent, relative})}),
                           .scale = 0.3};
  options.position_queries = view(r.data(), {heads, tokens, relative});
  std::vector<double> want;
  for (std::int64_t row = 0; row < heads * tokens; ++row) {
    const std::int64_t h = row / tokens, m = row % tokens;
    std::vector<double> weights, sums(5, 0.0);
    double total = 0;
    for (std::int64_t n = 0; n < tokens; ++n) {
      double score = 0;
      for (std::int64_t f = 0; f < 5; ++f) {
        score += 0.3 * x.q[static_cast<std::size_t>(row * 5 + f)] *
                 x.k[static_cast<std::size_t>((h * tokens + n) * 5 + f)];
      }
      for (std::int64_t f = 0; f < relative && m >= n && m - n < extent; ++f) {
        score += r[static_cast<std::size_t>(row * relative + f)] *
                 table[static_cast<std::size_t>((h * extent + m - n) * relative + f)];
      }
      weights.push_back(std::exp(score));
      total += weights.back();
    }
    for (std::int64_t n = 0; n < tokens; ++n) {
      for (std::int64_t f = 0; f < 5; ++f) {
        sums[static_cast<std::size_t>(f)] +=
            weights[static_cast<std::size_t>(n)] / total * x.v[static_cast<std::size_t>((h * tokens + n) * 5 + f)];
      }
    }
    want.insert(want.end(), sums.begin(), sums.end());
  }
  tests::expect_attention(x, options, want, 1e-13);
}

TEST(RelativeLogits, GradientsByFiniteDifferences) {
  const Sequence x{kHeads, kQueries, kKeys, 4};
  Model model;
  const std::vector<double> d_out = wavy(kHeads * kQueries * 4, 0.8);
  std::vector<double> d_table(kExtent * kRelative), d_states(model.states.size());
  AttentionGradients gradients;
  gradients.query_vectors = swap_axes(view(d_table.data(), {kRelative, kExtent}), 0, 1);
  gradients.position_queries = swap_axes(view(d_states.data(), {kQueries, kHeads, kRelative}), 0, 1);
  tests::sequence_backward(x, gradients, d_out, model.options());
  const auto sum = [&] { return tests::weighted_sum(x, model.options(), d_out); };
  tests::expect_slopes(model.projection, d_table, sum, "projection");
  tests::expect_slopes(model.states, d_states, sum, "states");
}

TEST(RelativeLogits, SaysWhatIsWrong) {
  const std::vector<float> table(64);
  const auto refused = [&](RelativeLogits scheme, PrepareOptions options) {
    return refusal([&] { prepare(scheme, options); });
  };
  EXPECT_EQ(refused({.extent = 0}, {}), "relative-logits: extent must be between 1 and 1048576 but is 0");
  EXPECT_EQ(refused({.extent = 8}, {}),
            "relative-logits: the trained table of 8 rows is missing: pass it as weights");
  EXPECT_EQ(refused({.extent = 8}, {.weights = view(table.data(), {16, 4})}),
            "relative-logits: the table must be [8, features] or [heads, 8, features] but is [16, 4]");
}

}  // namespace
}  // namespace posenc::relative_logits_test
