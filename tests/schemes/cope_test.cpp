// The values are those of x-transformers 2.26.4 (9252ed78): CoPE.forward of x_transformers.py after the scaled and masked
// product of attend.py, cut out and run once with torch in float64.

#include <gtest/gtest.h>

#include "schemes/golden_array.h"
#include "schemes/published.h"

namespace posenc::cope_test {
namespace {

using tests::refusal;
using tests::Sequence;
using tests::wavy;

constexpr std::int64_t kHeads = 2, kTokens = 6, kFeatures = 4, kPositions = 3;

AttentionOptions options_for(const std::vector<double>& table) {
  return {.position = prepare(Cope{.rows = kPositions}, {.weights = view(table.data(), {kPositions, kFeatures})}),
          .causal = true};
}

TEST(Cope, ValuesOfXTransformers) {
  const std::vector<double> table = wavy(kPositions * kFeatures, 0.5);
  tests::expect_attention(
      {kHeads, kTokens, kTokens, kFeatures}, options_for(table),
      {0.177312123997,  0.504882590885,  0.02494839746,    0.186924818108,   -0.192011072969,  -0.0340307478565,
       0.125080456841,  0.0752707050027, 0.154890271744,   0.187189785322,   0.26337616662,    0.0316601305122,
       0.150368066894,  -0.125876847879, 0.0388159030091,  0.145057153143,   0.0220874370947,  0.183282213101,
       0.22852656014,   0.226007603886,  -0.0473045774839, 0.207220150794,   0.118390055386,   0.153945424389,
       0.588668561905,  -0.539699307854, 0.462630858663,   0.597506836254,   0.49321207886,    -0.5665323026,
       0.502021746344,  0.502336997217,  0.467888763253,   -0.0417953808526, -0.0320335451233, 0.197682423268,
       0.409204644983,  -0.23829171659,  0.0430499438123,  0.220703956441,   0.466521122613,   -0.0868065540328,
       0.0366459187301, 0.243085764715,  0.0314733186411,  -0.175374791768,  -0.289911764956,  0.296912458518},
      1e-11);
}

// Gates of 1 count tokens: q·k so large that σ is 1. Then row p is that of the distance p, with the key itself at 1.
TEST(Cope, GatesOfOneCountTokens) {
  const std::int64_t tokens = 5, rows = 4;
  std::vector<double> table;  // row r holds r
  for (std::int64_t r = 0; r < rows; ++r) table.push_back(static_cast<double>(r));
  const std::vector<double> q(5, 1.0), k(5, 60.0), v(5, 1.0);
  AttentionOptions options{.position = prepare(Cope{.rows = rows}, {.weights = view(table.data(), {rows, 1})}),
                           .causal = true};
  tests::for_each_host_engine([&] {
    std::vector<double> out(5), weights(25), sums(5);
    options.weights = view(weights.data(), {tokens, tokens});
    options.logsumexp = view(sums.data(), {tokens});
    attention(view(out.data(), {tokens, 1}), view(q.data(), {tokens, 1}), view(k.data(), {tokens, 1}),
              view(v.data(), {tokens, 1}), options);
    for (std::int64_t m = 0; m < tokens; ++m) {
      for (std::int64_t n = 0; n <= m; ++n) {
        const double added =
            std::log(weights[static_cast<std::size_t>(m * tokens + n)]) + sums[static_cast<std::size_t>(m)] - 60;
        EXPECT_NEAR(added, static_cast<double>(std::min(m - n + 1, rows - 1)), 1e-12) << m << ' ' << n;
      }
    }
  });
}

TEST(Cope, GradientsByFiniteDifferences) {
  Sequence x{kHeads, kTokens, kTokens, kFeatures};
  std::vector<double> table = wavy(kPositions * kFeatures, 0.5);
  const std::vector<double> d_out = wavy(kHeads * kTokens * kFeatures, 0.8);
  std::vector<double> d_table(table.size()), d_q(x.q.size()), d_k(x.k.size());
  const Extents shape{kHeads, kTokens, kFeatures};
  AttentionGradients gradients{.q = view(d_q.data(), shape), .k = view(d_k.data(), shape)};
  gradients.query_vectors = view(d_table.data(), {kPositions, kFeatures});
  tests::sequence_backward(x, gradients, d_out, options_for(table));
  const auto sum = [&] { return tests::weighted_sum(x, options_for(table), d_out); };
  tests::expect_slopes(table, d_table, sum, "table");
  tests::expect_slopes(x.q, d_q, sum, "q");
  tests::expect_slopes(x.k, d_k, sum, "k");
}

TEST(Cope, AnotherTableTakesItsPlace) {
  const std::vector<double> table = wavy(kPositions * kFeatures, 0.5), other = wavy(kPositions * kFeatures, 0.9);
  Bias form = prepare(Cope{.rows = kPositions}, {.weights = view(table.data(), {kPositions, kFeatures})});
  bind(form, view(other.data(), {kPositions, kFeatures}));
  EXPECT_EQ(std::get<CountedGates>(form.source).table.data, other.data());
  EXPECT_EQ(refusal([&] {
              bind(form, view(other.data(), {2, 2}));
            }),
            "bind: weights of shape [2, 2] cannot replace [3, 4]");
}

TEST(Cope, SaysWhatIsWrong) {
  const std::vector<double> table(64);
  const auto refused = [&](Cope scheme, PrepareOptions options) {
    return refusal([&] { prepare(scheme, options); });
  };
  EXPECT_EQ(refused({.rows = 0}, {}), "cope: rows must be between 1 and 1048576 but is 0");
  EXPECT_EQ(refused({.rows = 8}, {}), "cope: the trained table of 8 rows is missing: pass it as weights");
  EXPECT_EQ(refused({.rows = 8}, {.weights = view(table.data(), {16, 4})}),
            "cope: the table must be [8, features] or [heads, 8, features] but is [16, 4]");
  std::vector<double> scores(4);
  const Bias form = prepare(Cope{.rows = 8}, {.weights = view(table.data(), {8, 8})});
  EXPECT_EQ(refusal([&] {
              bias(view(scores.data(), {1, 2, 2}), {}, {}, form);
            }),
            "bias: contextual positions depend on q and k, so only attention can add them");
}

}  // namespace
}  // namespace posenc::cope_test
