#include <gtest/gtest.h>

#include "schemes/golden_array.h"
#include "schemes/published.h"

namespace posenc::shaw_test {
namespace {

using tests::entry_at;
using tests::refusal;

TEST(Shaw, ClipsAtBothEnds) {
  const std::vector<float> table(6 * 4);
  const Bias form = prepare(Shaw{.left = 3, .right = 2}, {.weights = view(table.data(), {6, 4})});
  EXPECT_EQ(form.heads, 0);
  const auto& source = std::get<DistanceVectors>(form.source);
  for (std::int64_t distance = -6; distance <= 6; ++distance) {
    EXPECT_EQ(entry_at(source.for_queries.axes.front(), distance), std::clamp<std::int64_t>(distance, -3, 2) + 3);
  }
  EXPECT_EQ(source.for_keys.table.data, nullptr);
  EXPECT_EQ(source.softmax_factor, 1.0);
}

// Hugging Face: row = query − key + max − 1 of 2·max − 1.
TEST(Shaw, CountsTheOtherWayAsTransformersDoes) {
  const std::vector<float> table(2 * 7 * 4);
  const Shaw scheme{.left = 3, .right = 3, .order = DistanceOrder::kQueryMinusKey, .with_keys = true};
  const Bias form = prepare(scheme, {.weights = view(table.data(), {2, 7, 4})});
  EXPECT_EQ(form.heads, 2);
  const auto& source = std::get<DistanceVectors>(form.source);
  for (std::int64_t apart = -3; apart <= 3; ++apart) {
    EXPECT_EQ(entry_at(source.for_queries.axes.front(), -apart), apart + 3);
  }
  EXPECT_EQ(source.for_keys.axes, source.for_queries.axes);
  EXPECT_EQ(source.for_keys.table.data, table.data());
}

// transformers 5.16 (d56c55bf): the three functions of VitsAttention in modeling_vits.py that place its vectors for keys
// and values, cut out and run once with torch 1.13 in float64.
TEST(Shaw, ValuesOfVits) {
  const std::vector<double> keys = tests::wavy(5 * 4, 0.5), values = tests::wavy(5 * 4, 0.6);
  const Shaw scheme{.left = 2, .right = 2, .with_values = true, .beyond = BeyondReach::kNone};
  const Bias form =
      prepare(scheme, {.weights = view(keys.data(), {5, 4}), .value_weights = view(values.data(), {5, 4})});
  tests::expect_attention(
      {2, 6, 6, 4}, {.position = form},
      {0.103901096147,   0.384141824184,   0.350478679772,  0.283743498046,   -0.0087294350071, 0.203883618781,
       0.349244006545,   0.248739531678,   0.208655617175,  0.43978480646,    0.429839550113,   0.285725197408,
       0.137584947856,   0.265922325003,   0.29058238853,   0.338877440806,   0.217763437342,   0.375402254426,
       0.316427892495,   0.24275291024,    0.0669529772148, 0.29003765514,    0.268715165163,   0.129087514594,
       0.565173035307,   -0.170779595901,  0.225256364287,  0.44573731974,    0.381310154094,   -0.205784668262,
       0.334439449337,   0.328960493307,   0.448487772631,  0.152008456103,   0.02700008751,    0.394616564668,
       0.432340688594,   0.00504680412656, 0.0632441459832, 0.410334779719,   0.582079041228,   0.17167463385,
       -0.0304664378901, 0.262268740327,   0.348751185926,  -0.0469580474516, 0.0219226576209,  0.232793456245},
      1e-11);
}

// Shaw et al., equations 3 and 4, word for word: out_i = Σ_j α_ij (v_j + a^V_ij), clipped at left and right.
TEST(Shaw, ValuesAreTheFormula) {
  const std::int64_t heads = 2, tokens = 9, features = 4, rows = 5;
  const std::vector<double> keys = tests::wavy(heads * rows * features, 0.5),
                            values = tests::wavy(heads * rows * features, 0.6);
  const Shaw scheme{.left = 1, .right = 3, .with_values = true};
  const Bias form = prepare(scheme, {.weights = view(keys.data(), {heads, rows, features}),
                                     .value_weights = view(values.data(), {heads, rows, features})});
  const tests::Sequence x{heads, tokens, tokens, features};
  std::vector<double> want;
  for (std::int64_t row = 0; row < heads * tokens; ++row) {
    const std::int64_t h = row / tokens, m = row % tokens;
    std::vector<double> weights, sums(static_cast<std::size_t>(features), 0.0);
    double total = 0;
    const auto at = [&](const std::vector<double>& table, std::int64_t n, std::int64_t f) {
      return table[static_cast<std::size_t>((h * rows + std::clamp<std::int64_t>(n - m, -1, 3) + 1) * features + f)];
    };
    for (std::int64_t n = 0; n < tokens; ++n) {
      double score = 0;
      for (std::int64_t f = 0; f < features; ++f) {
        score += 0.5 * x.q[static_cast<std::size_t>(row * features + f)] *
                 (x.k[static_cast<std::size_t>((h * tokens + n) * features + f)] + at(keys, n, f));
      }
      weights.push_back(std::exp(score));
      total += weights.back();
    }
    for (std::int64_t n = 0; n < tokens; ++n) {
      for (std::int64_t f = 0; f < features; ++f) {
        sums[static_cast<std::size_t>(f)] +=
            weights[static_cast<std::size_t>(n)] / total *
            (x.v[static_cast<std::size_t>((h * tokens + n) * features + f)] + at(values, n, f));
      }
    }
    want.insert(want.end(), sums.begin(), sums.end());
  }
  tests::expect_attention(x, {.position = form}, want, 1e-13);
}

TEST(Shaw, GradientsByFiniteDifferences) {
  const tests::Sequence x{2, 5, 7, 3};
  std::vector<double> keys = tests::wavy(4 * 3, 0.5), values = tests::wavy(4 * 3, 0.6);
  const std::vector<double> d_out = tests::wavy(2 * 5 * 3, 0.8);
  for (const BeyondReach beyond : {BeyondReach::kClip, BeyondReach::kNone}) {
    const Shaw scheme{.left = 2, .right = 1, .with_values = true, .beyond = beyond};
    const auto options = [&] {
      return AttentionOptions{.position =
                                  prepare(scheme, {.weights = view(std::as_const(keys).data(), {4, 3}),
                                                   .value_weights = view(std::as_const(values).data(), {4, 3})})};
    };
    std::vector<double> d_keys(12), d_values(12);
    AttentionGradients gradients;
    gradients.query_vectors = view(d_keys.data(), {4, 3});
    gradients.value_vectors = view(d_values.data(), {4, 3});
    tests::sequence_backward(x, gradients, d_out, options());
    const auto sum = [&] { return tests::weighted_sum(x, options(), d_out); };
    tests::expect_slopes(keys, d_keys, sum, "keys");
    tests::expect_slopes(values, d_values, sum, "values");
  }
}

TEST(Shaw, SaysWhatIsWrong) {
  const std::vector<float> table(64);
  EXPECT_EQ(refusal([] { prepare(Shaw{.left = -1}); }), "shaw: left must be between 0 and 1048576 but is -1");
  EXPECT_EQ(refusal([] { prepare(Shaw{}); }), "shaw: the trained table of 129 rows is missing: pass it as weights");
  EXPECT_EQ(refusal([&] {
              prepare(Shaw{.left = 1, .right = 1}, {.weights = view(table.data(), {4, 2})});
            }),
            "shaw: the table must be [3, features] or [heads, 3, features] but is [4, 2]");
  const Shaw with_values{.left = 1, .right = 1, .with_values = true};
  const ConstTensorView shared = view(table.data(), {3, 2}), own = view(table.data(), {2, 3, 2});
  EXPECT_EQ(refusal([&] { prepare(with_values, {.weights = shared}); }),
            "shaw: the trained table for values of 3 rows is missing: pass it as value_weights");
  EXPECT_EQ(refusal([&] { prepare(with_values, {.weights = shared, .value_weights = own}); }),
            "shaw: the two tables must have the same number of heads but have 0 and 2");
}

}  // namespace
}  // namespace posenc::shaw_test
