// The values are those of flash-linear-attention (bc3b101d): naive_forgetting_attn of fla/ops/forgetting_attn/naive.py, cut
// out and run once with torch 1.13 in float64 (its .float() made .double()).

#include <gtest/gtest.h>

#include "schemes/golden_array.h"
#include "schemes/published.h"

namespace posenc::forget_gate_test {
namespace {

using tests::refusal;
using tests::Sequence;
using tests::wavy;

constexpr std::int64_t kHeads = 2, kTokens = 6, kFeatures = 4;

// ln σ of logits between −2.4 and 2.4, [heads, tokens].
std::vector<double> log_gates() {
  std::vector<double> gates;
  for (const double logit : wavy(kHeads * kTokens, 0.4)) gates.push_back(-std::log1p(std::exp(-4 * logit)));
  return gates;
}
AttentionOptions options_for(const std::vector<double>& gates) {
  AttentionOptions options{.position = prepare(ForgetGate{}), .causal = true};
  options.log_gates = view(gates.data(), {kHeads, kTokens});
  return options;
}

TEST(ForgetGate, ValuesOfFlashLinearAttention) {
  const std::vector<double> gates = log_gates();
  tests::expect_attention(
      {kHeads, kTokens, kTokens, kFeatures}, options_for(gates),
      {0.177312123997,  0.504882590885,  0.02494839746,    0.186924818108,   -0.27506282672,   -0.155219176501,
       0.147597707874,  0.0501624259044, 0.263913978113,   0.165668637722,   0.381072140046,   -0.0294852435308,
       0.246368949024,  -0.172622643084, -0.0402712760047, 0.195238405293,   -0.170134755518,  0.497896229289,
       0.410566713893,  0.525349468246,  -0.357668298038,  0.531666859264,   -0.0546561819742, 0.00373109404204,
       0.588668561905,  -0.539699307854, 0.462630858663,   0.597506836254,   0.440130344267,   -0.581453676822,
       0.523926352282,  0.449414660505,  0.439415468286,   0.00305771375954, -0.0743979677273, 0.141526499052,
       0.367164990109,  -0.15902216145,  -0.0792052131896, 0.12641079432,    0.438745697619,   0.105266436426,
       -0.164665889116, 0.125494568763,  -0.194569673608,  -0.289855422333,  -0.40016946647,   0.343991386701},
      1e-11);
}

// The last tokens alone, beside a cache of keys and gates: what decoding does.
TEST(ForgetGate, ADecodingStepIsTheEndOfThePrompt) {
  const std::vector<double> gates = log_gates();
  const Sequence all{kHeads, kTokens, kTokens, kFeatures};
  const auto attend = [&](std::int64_t queries) {
    std::vector<double> q, out(static_cast<std::size_t>(kHeads * queries * kFeatures));
    for (std::int64_t h = 0; h < kHeads; ++h) {
      const auto end = all.q.begin() + (h + 1) * kTokens * kFeatures;
      q.insert(q.end(), end - queries * kFeatures, end);
    }
    attention(view(out.data(), {kHeads, queries, kFeatures}),
              view(std::as_const(q).data(), {kHeads, queries, kFeatures}),
              view(all.k.data(), {kHeads, kTokens, kFeatures}), view(all.v.data(), {kHeads, kTokens, kFeatures}),
              options_for(gates));
    return out;
  };
  const std::vector<double> prompt = attend(kTokens), step = attend(1);
  for (std::int64_t h = 0; h < kHeads; ++h) {
    for (std::int64_t f = 0; f < kFeatures; ++f) {
      EXPECT_NEAR(step[static_cast<std::size_t>(h * kFeatures + f)],
                  prompt[static_cast<std::size_t>(((h + 1) * kTokens - 1) * kFeatures + f)], 1e-15);
    }
  }
}

// A gate that all tokens share is ALiBi with the slope −ln f.
TEST(ForgetGate, OneGateForAllIsAlibi) {
  const Alibi alibi{.heads = kHeads};
  const Bias slopes = prepare(alibi);
  std::vector<double> gates;
  for (const double slope : std::get<Slopes>(slopes.source).slopes) gates.insert(gates.end(), kTokens, -slope);
  const Sequence x{kHeads, kTokens, kTokens, kFeatures};
  std::vector<double> want(static_cast<std::size_t>(kHeads * kTokens * kFeatures));
  attention(view(want.data(), {kHeads, kTokens, kFeatures}), view(x.q.data(), {kHeads, kTokens, kFeatures}),
            view(x.k.data(), {kHeads, kTokens, kFeatures}), view(x.v.data(), {kHeads, kTokens, kFeatures}),
            {.position = slopes, .causal = true});
  tests::expect_attention(x, options_for(gates), want, 1e-14);
}

TEST(ForgetGate, GradientsByFiniteDifferences) {
  const Sequence x{kHeads, kTokens, kTokens, kFeatures};
  std::vector<double> gates = log_gates();
  const std::vector<double> d_out = wavy(kHeads * kTokens * kFeatures, 0.8);
  std::vector<double> d_gates(gates.size());
  AttentionGradients gradients;
  gradients.log_gates = view(d_gates.data(), {kHeads, kTokens});
  tests::sequence_backward(x, gradients, d_out, options_for(gates));
  tests::expect_slopes(
      gates, d_gates, [&] { return tests::weighted_sum(x, options_for(gates), d_out); }, "gates");
  // nobody sees anything before the first token, so that its gate decides nothing
  EXPECT_NEAR(d_gates.front(), 0, 1e-15);
}

TEST(ForgetGate, OnlyAttentionAddsIt) {
  std::vector<double> scores(4);
  EXPECT_EQ(refusal([&] {
              bias(view(scores.data(), {1, 2, 2}), {}, {}, prepare(ForgetGate{}));
            }),
            "bias: gates are an input of attention, so only attention can add their sums");
  Bias form = prepare(ForgetGate{});
  EXPECT_EQ(refusal([&] { bind(form, view(scores.data(), {2, 2})); }), "bind: the form reads no weights");
}

}  // namespace
}  // namespace posenc::forget_gate_test
