// Query temperatures. The factors of the models are those of transformers 5.16 (d56c55bf), run once with torch 1.13 in
// float64: get_llama_4_attn_scale of modeling_ministral3.py, and the lines of Llama4TextAttention and InklingAttention
// that make attn_scales and tau. SSMax is Nakanishi's formula, s ln n, n = p + 1.

#include <gtest/gtest.h>

#include <cmath>

#include "attention/oracle.h"
#include "backends.h"
#include "posenc/posenc.h"
#include "schemes/golden_array.h"

namespace posenc::temperature_test {
namespace {

using tests::Answer;
using tests::answer_of;
using tests::for_each_host_engine;
using tests::Heads;
using tests::Pair;
using tests::Question;
using tests::random_heads;
using tests::refusal;

TEST(Temperature, FactorsOfTheModels) {
  const std::int64_t positions[] = {0, 1, 8190, 8191, 8192, 16383, 16384, 131071, 1048575, 4503599627370495};
  const double llama4[] = {1,
                           1,
                           1,
                           1.0693147180559945,
                           1.0693147180559945,
                           1.109861228866811,
                           1.109861228866811,
                           1.2833213344056216,
                           1.4859812404361672,
                           3.7032740041839691};
  const double ministral[] = {
      1, 1, 1, 1, 1, 1, 1.0693147180559945, 1.2079441541679836, 1.4158883083359672, 3.6339592861277925};
  const double inkling[] = {1,
                            1,
                            1,
                            1,
                            1.0000122062862526,
                            1.0693147180559945,
                            1.0693208213853627,
                            1.2772588722239782,
                            1.4852030263919618,
                            3.703274004183787};
  const auto of = [](const QueryTemperature& scheme) { return *prepare(scheme).temperature; };
  for (std::size_t i = 0; i < std::size(positions); ++i) {
    EXPECT_NEAR(factor_at(of({}), positions[i]), llama4[i], 1e-15);
    EXPECT_NEAR(factor_at(of({.floor = 16384, .start = 0}), positions[i]), ministral[i], 1e-15);
    EXPECT_NEAR(factor_at(of({.rule = TemperatureRule::kLog}), positions[i]), inkling[i], 1e-15);
  }
  const Temperature ssmax = of({.rule = TemperatureRule::kTokens, .head_scales = {0.43, 2}});
  EXPECT_EQ(factor_at(ssmax, 0, 1), 0);
  EXPECT_NEAR(factor_at(ssmax, 1023, 0), 0.43 * std::log(1024.0), 1e-15);
  EXPECT_NEAR(factor_at(ssmax, 1023, 1), 2 * std::log(1024.0), 1e-14);
}

TEST(Temperature, SaysItsFormula) {
  EXPECT_EQ(to_string(*prepare(QueryTemperature{}).temperature), "1 + 0.1 ln(1 + floor((p + 1) / 8192))");
  EXPECT_EQ(to_string(*prepare(QueryTemperature{.rule = TemperatureRule::kLog}).temperature),
            "1 + 0.1 ln(max(1, (p + 1) / 8192))");
  EXPECT_EQ(to_string(*prepare(QueryTemperature{.rule = TemperatureRule::kTokens, .head_scales = {1}}).temperature),
            "scale_h ln(p + 1)");
}

// The rules as they are written in the papers, not as the library computes them.
double formula(const QueryTemperature& scheme, std::int64_t head, std::int64_t position) {
  const double n = static_cast<double>(position + scheme.start), floor = static_cast<double>(scheme.floor);
  const double scale = scheme.head_scales.empty() ? scheme.scale : scheme.head_scales[static_cast<std::size_t>(head)];
  if (scheme.rule == TemperatureRule::kTokens) return scale * std::log(n);
  if (scheme.rule == TemperatureRule::kLog) return n > floor ? 1 + scale * (std::log(n) - std::log(floor)) : 1;
  return 1 + scale * std::log(1 + std::floor(n / floor));
}

const QueryTemperature kSchemes[] = {{.scale = 0.7, .floor = 5},
                                     {.rule = TemperatureRule::kLog, .scale = 0.6, .floor = 7},
                                     {.rule = TemperatureRule::kTokens, .head_scales = {0.3, 0.9, -0.2, 0.5}},
                                     {.scale = 0.7, .floor = 5, .start = 0, .head_scales = {0.1, 0.4, 0.9, 1.6}}};

// As the form itself, and as an option beside rope and ALiBi; a decoding step, a few queries, a block.
TEST(Temperature, BesideEveryForm) {
  const std::int64_t batch = 2, heads = 4, keys = 70, features = 16;
  for (const std::int64_t queries : {std::int64_t{1}, std::int64_t{5}, std::int64_t{70}}) {
    const auto q = random_heads<float>(batch, heads, queries, features, 1);
    const auto k = random_heads<float>(batch, 2, keys, features, 2);
    const auto v = random_heads<float>(batch, 2, keys, features, 3);
    const std::int64_t ahead = keys - queries;
    for (const QueryTemperature& scheme : kSchemes) {
      const Form form = prepare(scheme);
      const Temperature temperature = *std::get<Nothing>(form).temperature;
      // an oracle of attention for q that is scaled, and for ALiBi's slopes
      Heads<double> scaled(batch, heads, queries, features), wide_k(batch, 2, keys, features), wide_v = wide_k;
      for (std::int64_t b = 0; b < batch; ++b) {
        for (std::int64_t h = 0; h < heads; ++h) {
          for (std::int64_t i = 0; i < queries; ++i) {
            for (std::int64_t f = 0; f < features; ++f) {
              scaled.at(b, h, i, f) = q.real(b, h, i, f) * formula(scheme, h, i + ahead);
            }
          }
        }
      }
      for (std::size_t i = 0; i < k.values.size(); ++i) {
        wide_k.values[i] = static_cast<double>(k.values[i]);
        wide_v.values[i] = static_cast<double>(v.values[i]);
      }
      Question question;
      question.scale = 1 / std::sqrt(static_cast<double>(features));
      question.sees = [=](const Pair& at) { return at.j <= at.i + ahead; };
      const Answer plain = answer_of(scaled, wide_k, wide_v, question);
      const Bias slopes = prepare(Alibi{.heads = heads});
      question.bias = [&](const Pair& at) {
        return -std::get<Slopes>(slopes.source).slopes[static_cast<std::size_t>(at.h)] *
               std::fabs(static_cast<double>(at.i + ahead - at.j));
      };
      const Answer biased = answer_of(scaled, wide_k, wide_v, question);
      const Rotation rope = prepare(Rope{.dims = features});
      for_each_host_engine([&] {
        SCOPED_TRACE(testing::Message() << queries << " queries, " << to_string(temperature));
        const auto expect_like = [&](const Answer& answer, const AttentionOptions& options) {
          Heads<float> out(batch, heads, queries, features);
          attention(out.view(), q.view(), k.view(), v.view(), options);
          for (std::size_t i = 0; i < out.values.size(); ++i) {
            ASSERT_NEAR(static_cast<double>(out.values[i]), answer.out.values[i], 4e-6 * answer.size.values[i]);
          }
        };
        expect_like(plain, {.position = form, .causal = true});
        expect_like(plain, {.causal = true, .temperature = temperature});
        expect_like(biased, {.position = slopes, .causal = true, .temperature = temperature});
        // rope: the scaled q without the option
        Heads<float> with(batch, heads, queries, features);
        Heads<double> without(batch, heads, queries, features);
        attention(with.view(), q.view(), k.view(), v.view(),
                  {.position = rope, .causal = true, .temperature = temperature});
        attention(without.view(), std::as_const(scaled).view(), std::as_const(wide_k).view(),
                  std::as_const(wide_v).view(), {.position = rope, .causal = true});
        for (std::size_t i = 0; i < with.values.size(); ++i) {
          ASSERT_NEAR(static_cast<double>(with.values[i]), without.values[i], 4e-6 * plain.size.values[i]);
        }
      });
    }
  }
}

TEST(Temperature, GradientsByFiniteDifferences) {
  const std::int64_t heads = 4, tokens = 9, features = 6;
  auto q = random_heads<double>(1, heads, tokens, features, 4);
  const auto k = random_heads<double>(1, heads, tokens, features, 5),
             v = random_heads<double>(1, heads, tokens, features, 6),
             d_out = random_heads<double>(1, heads, tokens, features, 7);
  for (const Form& diagonal : {Form(Nothing{}), Form(prepare(Rope{.dims = features}))}) {
    for (QueryTemperature scheme : kSchemes) {
      const auto options = [&] {
        AttentionOptions all{.position = diagonal, .causal = true, .temperature = prepare(scheme).temperature};
        if (!std::holds_alternative<Nothing>(diagonal)) return all;
        all.position = prepare(scheme);
        all.temperature.reset();
        return all;
      };
      const auto value = [&] {
        Heads<double> out(1, heads, tokens, features);
        attention(out.view(), std::as_const(q).view(), k.view(), v.view(), options());
        double sum = 0;
        for (std::size_t i = 0; i < out.values.size(); ++i) sum += out.values[i] * d_out.values[i];
        return sum;
      };
      const auto slope = [&](double& at) {
        const double step = 1e-5, before = at;
        at = before + step;
        const double more = value();
        at = before - step;
        const double less = value();
        at = before;
        return (more - less) / (2 * step);
      };
      for_each_host_engine([&] {
        SCOPED_TRACE(to_string(*prepare(scheme).temperature));
        Heads<double> d_q(1, heads, tokens, features);
        attention_backward({.q = d_q.view()}, d_out.view(), {std::as_const(q).view(), k.view(), v.view()}, options());
        for (const std::size_t i : {std::size_t{0}, std::size_t{17}, std::size_t{101}, std::size_t{215}}) {
          EXPECT_NEAR(d_q.values[i], slope(q.values[i]), 1e-8) << i;
        }
        std::vector<double> d_scales(scheme.head_scales.empty() ? 1 : 4);
        temperature_backward(view(d_scales.data(), {std::ssize(d_scales)}),
                             {std::as_const(q).view(), std::as_const(d_q).view()}, {}, *prepare(scheme).temperature);
        for (std::size_t h = 0; h < d_scales.size(); ++h) {
          double& scale = scheme.head_scales.empty() ? scheme.scale : scheme.head_scales[h];
          EXPECT_NEAR(d_scales[h], slope(scale), 1e-8) << h;
        }
      });
    }
  }
}

TEST(Temperature, Refusals) {
  EXPECT_EQ(refusal([] { prepare(QueryTemperature{.floor = 0}); }),
            "temperature: floor must be between 1 and 9007199254740992 but is 0");
  EXPECT_EQ(refusal([] { prepare(QueryTemperature{.rule = TemperatureRule::kTokens, .start = 0}); }),
            "temperature: start must be between 1 and 9007199254740992 but is 0");
  EXPECT_EQ(refusal([] { prepare(QueryTemperature{.head_scales = {std::nan("")}}); }),
            "temperature: head_scales must be a finite number but is nan");
  const auto q = random_heads<float>(1, 2, 3, 4, 1);
  Heads<float> out(1, 2, 3, 4);
  const auto attend = [&](const AttentionOptions& options) {
    return refusal([&] { attention(out.view(), q.view(), q.view(), q.view(), options); });
  };
  EXPECT_EQ(attend({.position = prepare(QueryTemperature{}), .temperature = Temperature{}}),
            "attention: the form is a temperature itself, so the options cannot have another");
  EXPECT_EQ(attend({.position = prepare(QueryTemperature{.head_scales = {1, 2, 3}})}),
            "attention: the temperature has 3 scales but q has 2 heads");
  EXPECT_EQ(attend({.position = prepare(Rope{.dims = 4}),
                    .temperature = Temperature{},
                    .query_positions = Positions{.first = -1}}),
            "attention: position -1 is outside 0 to 2^53 - 1");
  std::vector<float> d_scales(2);
  EXPECT_EQ(refusal([&] {
              temperature_backward(view(d_scales.data(), {2}), {q.view(), q.view()}, {}, Temperature{});
            }),
            "temperature_backward: d_scales must be [1] but is [2]");
}

}  // namespace
}  // namespace posenc::temperature_test
