// The values are those of TsinghuaC3I/Fourier-Position-Embedding (bd94b20d), olmo/model.py: RotaryEmbedding and
// FourierEmbedding, cut out and run once with torch 2.11 and float64 in place of float32; two heads of 8 features, a trained
// length of 512, positions 4 to 8.

#include "posenc/schemes/fope.h"

#include <gtest/gtest.h>

#include <cmath>

#include "numerics/narrow.h"
#include "schemes/golden_array.h"
#include "schemes/published.h"

namespace posenc::fope_test {
namespace {

using tests::for_each_host_engine;
using tests::refusal;
using tests::Sequence;
using tests::wavy;

constexpr Fope kSmall{.heads = 2, .dims = 8};

// sin_coef, then cos_coef.
std::vector<double> coefficients(std::int64_t count) {
  std::vector<double> both = wavy(count, 0.5);
  const std::vector<double> cosines = wavy(count, 0.6);
  both.insert(both.end(), cosines.begin(), cosines.end());
  return both;
}

void expect_rotated(const Rotation& form, const std::vector<double>& want) {
  for_each_host_engine([&] {
    std::vector<double> x = wavy(2 * 5 * 8, 0.1);
    rotate(view(x.data(), {2, 5, 8}), {.first = 4}, form);
    for (std::size_t i = 0; i < x.size(); ++i) EXPECT_NEAR(x[i], want[i], 1e-11) << i;
  });
}

TEST(Fope, ValuesOfThePublishedCode) {
  std::vector<double> weights = coefficients(2 * 2 * 2);  // frequencies 1 and 0.1 alone finish a turn within 512
  const Extents shape{2, 2, 2, 2};
  EXPECT_EQ(shape_of(kSmall.trained_table()), shape);
  expect_rotated(
      prepare(kSmall, {.weights = view(weights.data(), shape)}),
      {-0.167434358057,  -0.200278234298,   0.0436615954061,  -0.0241916341188, 0.19234649959,    -0.0993199656781,
       0.243437599651,   0.164050679939,    0.0511961147975,  -0.126538443569,  0.980950019115,   -0.284519552034,
       -0.161390058747,  -0.292379414086,   0.018951026675,   0.312119094485,   -0.0654654171257, 0.485984031513,
       0.618196727862,   0.778962623587,    -0.0387446161586, 0.4094255568,     0.159744456312,   0.415255067037,
       0.0173783051587,  -0.00969066090935, -0.0574208587854, 0.309232554238,   0.134717915446,   -0.674120185584,
       1.11604763212,    0.883671176262,    -0.12976157989,   0.177674591787,   -0.182442054799,  -0.0862882109018,
       0.0207682252282,  0.368330246957,    -0.948906876931,  0.152008628574,   0.636164182954,   0.162628654706,
       0.448725086245,   -0.364711417152,   -0.0714171403241, 0.131507949398,   -0.750359440378,  0.441251488848,
       -0.473156668191,  0.059555801695,    0.263976939426,   -0.681251289713,  -0.214883304385,  0.0308100797023,
       -0.540927772965,  -0.482312239896,   -0.130819689916,  0.0487269861542,  -1.17249344249,   -1.09392256236,
       0.0870511233943,  0.133604205589,    0.0180098025129,  0.03790148267,    0.0337440616666,  0.368532270326,
       0.853929806824,   0.860296856755,    -0.0615505364857, 0.112623621679,   0.258530151263,   0.00664911980495,
       -0.0768718220518, -0.0677312031113,  0.851792122605,   -1.10473432426,   0.0333376816224,  0.336865944103,
       -0.217459743095,  -0.00679571162181});
  Fope wide = kSmall;
  wide.spectrum = 16;
  weights = coefficients(2 * 4 * 2);
  const Extents wide_shape{2, 2, 4, 2};
  EXPECT_EQ(shape_of(wide.trained_table()), wide_shape);
  expect_rotated(
      prepare(wide, {.weights = view(weights.data(), wide_shape)}),
      {-0.271830598988, -0.555997763237,  0.0436615954061,  -0.0241916341188, 0.135059981354,  0.339961260561,
       0.243437599651,  0.164050679939,   0.163897456244,   -0.297811264393,  0.980950019115,  -0.284519552034,
       -0.235337383361, 0.126651969665,   0.018951026675,   0.312119094485,   -0.159280038901, 0.0217761137882,
       0.618196727862,  0.778962623587,   -0.063372683739,  -0.135496697369,  0.159744456312,  0.415255067037,
       0.267785681417,  0.298656786916,   -0.0574208587854, 0.309232554238,   0.119547128259,  0.0288100862656,
       1.11604763212,   0.883671176262,   0.0565472121856,  -0.383656521071,  -0.182442054799, -0.0862882109018,
       0.0449330188901, 0.292914237325,   -0.948906876931,  0.152008628574,   0.121579231314,  -0.281569689027,
       0.448725086245,  -0.364711417152,  0.166367265959,   -0.279881624192,  -0.750359440378, 0.441251488848,
       -0.291805621268, -0.10282769266,   0.263976939426,   -0.681251289713,  0.0837663377639, -0.0348708983588,
       -0.540927772965, -0.482312239896,  0.0127992272575,  -0.150518878165,  -1.17249344249,  -1.09392256236,
       0.373032850634,  -0.157040623681,  0.0180098025129,  0.03790148267,    -0.455656154486, -0.435183666365,
       0.853929806824,  0.860296856755,   0.626125607452,   0.216578896727,   0.258530151263,  0.00664911980495,
       0.153401407343,  -0.248181480453,  0.851792122605,   -1.10473432426,   -0.219580193752, -0.165708800372,
       -0.217459743095, -0.00679571162181});
  // fourier_init eye
  expect_rotated(
      prepare(wide),
      {-0.472355774903, 0.618135699376,   0.0436615954061,  -0.0241916341188, 0.328820650828,  -0.356755221986,
       0.243437599651,  0.164050679939,   0.342711436971,   0.369930415755,   0.980950019115,  -0.284519552034,
       -0.395558285606, -0.365912394344,  0.018951026675,   0.312119094485,   -0.211018402164, 0.211510622297,
       0.618196727862,  0.778962623587,   -0.237222117309,  0.724808236929,   0.159744456312,  0.415255067037,
       0.114073449144,  0.00992355739107, -0.0574208587854, 0.309232554238,   0.712156235553,  -0.751996231445,
       1.11604763212,   0.883671176262,   -0.395547012521,  0.444839096493,   -0.182442054799, -0.0862882109018,
       0.292655630761,  0.27492878979,    -0.948906876931,  0.152008628574,   -0.823431342154, 0.689931664107,
       0.448725086245,  -0.364711417152,  -0.0757049387802, -0.148371507585,  -0.750359440378, 0.441251488848,
       0.410806838029,  0.0423101778039,  0.263976939426,   -0.681251289713,  0.717811405202,  -0.137409997495,
       -0.540927772965, -0.482312239896,  0.445805045111,   0.0821687773789,  -1.17249344249,  -1.09392256236,
       0.192987554854,  -0.240012106153,  0.0180098025129,  0.03790148267,    0.0303813327467, -0.609937919307,
       0.853929806824,  0.860296856755,   0.720579224615,   -0.186857393818,  0.258530151263,  0.00664911980495,
       0.0724631976498, -0.255862134832,  0.851792122605,   -1.10473432426,   -0.203256527471, -0.563680220653,
       -0.217459743095, -0.00679571162181});
}

// C and S by their sums in long double, pair by pair, at positions far beyond the trained length; the others are 1.
TEST(Fope, IsTheFormula) {
  const Fope scheme{.heads = 3, .dims = 16, .base = 500, .length = 64, .spectrum = 24};
  std::vector<double> waves;
  for (int i = 0; i < 12; ++i) {
    const double w = std::pow(500.0, -i / 12.0);
    if (w >= 2 * 3.14159265358979323846 / 64) waves.push_back(w);
  }
  const auto count = std::ssize(waves), mixed = std::min<std::int64_t>(count, 4);
  const std::vector<double> weights = coefficients(3 * count * mixed);
  const Rotation form = prepare(scheme, {.weights = view(weights.data(), {2, 3, count, mixed})});
  const std::vector<std::int64_t> ids = {0, 1, 17, 63, 64, 5000, -9};
  for_each_host_engine([&] {
    for (std::int64_t head = 0; head < 3; ++head) {
      std::vector<double> cosines(7 * 8), sines(7 * 8);
      tabulate(view(cosines.data(), {7, 8}), view(sines.data(), {7, 8}), {.ids = ids}, head_of(form, head));
      for (std::int64_t t = 0; t < 7; ++t) {
        for (std::int64_t j = 0; j < 8; ++j) {
          double cosine = j < mixed ? 0 : 1, sine = cosine;
          for (std::int64_t i = 0; i < count && j < mixed; ++i) {
            const auto at = static_cast<std::size_t>((head * count + i) * mixed + j);
            const double angle =
                static_cast<double>(ids[static_cast<std::size_t>(t)]) * waves[static_cast<std::size_t>(i)];
            sine += weights[at] * std::sin(angle);
            cosine += weights[at + static_cast<std::size_t>(3 * count * mixed)] * std::cos(angle);
          }
          EXPECT_NEAR(cosines[static_cast<std::size_t>(t * 8 + j)], cosine, 1e-12) << head << ' ' << t << ' ' << j;
          EXPECT_NEAR(sines[static_cast<std::size_t>(t * 8 + j)], sine, 1e-12) << head << ' ' << t << ' ' << j;
        }
      }
    }
  });
}

// Long runs of positions have a road of their own; every type, on every backend the same bytes.
template <class T> void expect_same_everywhere(PairLayout layout) {
  constexpr std::int64_t heads = 3, tokens = 150, features = 40;
  const Fope scheme{.heads = heads, .dims = 32, .layout = layout};
  const Extents shape = shape_of(scheme.trained_table());
  const std::vector<double> weights = wavy(count_of(shape), 0.5);
  const Rotation form = prepare(scheme, {.weights = view(weights.data(), shape)});
  std::vector<T> x, first;
  for (std::int64_t i = 0; i < heads * tokens * features; ++i) {
    x.push_back(numerics::narrow<T>(std::sin(static_cast<double>(i * i % 977))));
  }
  for_each_host_engine([&] {
    std::vector<T> whole = x, alone = x;
    rotate(view(whole.data(), {heads, tokens, features}), {.first = 1000}, form);
    for (std::int64_t h = 0; h < heads; ++h) {
      rotate(view(alone.data() + h * tokens * features, {tokens, features}), {.first = 1000}, head_of(form, h));
    }
    EXPECT_TRUE(whole == alone);
    if (first.empty()) first = whole;
    EXPECT_TRUE(first == whole);
  });
}

TEST(Fope, HeadsAloneAndTogether) {
  for (const PairLayout layout : {PairLayout::kHalves, PairLayout::kInterleaved}) {
    expect_same_everywhere<float>(layout);
    expect_same_everywhere<double>(layout);
    expect_same_everywhere<Half>(layout);
    expect_same_everywhere<BFloat16>(layout);
  }
}

// Attention is that of q and k that were rotated before.
TEST(Fope, InsideAttention) {
  const std::vector<double> weights = coefficients(2 * 2 * 2);
  const Rotation form = prepare(kSmall, {.weights = view(weights.data(), {2, 2, 2, 2})});
  const Sequence x{2, 5, 5, 8};
  Sequence rotated = x;
  rotate({view(rotated.q.data(), {2, 5, 8}), view(rotated.k.data(), {2, 5, 8})}, {}, form);
  std::vector<double> want(x.q.size());
  attention(view(want.data(), {2, 5, 8}), view(rotated.q.data(), {2, 5, 8}), view(rotated.k.data(), {2, 5, 8}),
            view(x.v.data(), {2, 5, 8}), {.causal = true});
  tests::expect_attention(x, {.position = form, .causal = true}, want, 1e-14);
}

TEST(Fope, GradientsByFiniteDifferences) {
  const std::vector<double> weights = coefficients(2 * 2 * 2), d_out = wavy(2 * 5 * 8, 0.8);
  const AttentionOptions options{.position = prepare(kSmall, {.weights = view(weights.data(), {2, 2, 2, 2})}),
                                 .causal = true};
  Sequence x{2, 5, 5, 8};
  const auto sum = [&] { return tests::weighted_sum(x, options, d_out); };
  for_each_host_engine([&] {
    std::vector<double> dq(x.q.size()), dk(x.k.size()), dv(x.v.size());
    const Extents shape{2, 5, 8};
    tests::sequence_backward(
        x, {.q = view(dq.data(), shape), .k = view(dk.data(), shape), .v = view(dv.data(), shape)}, d_out, options);
    tests::expect_slopes(x.q, dq, sum, "q");
    tests::expect_slopes(x.k, dk, sum, "k");
    tests::expect_slopes(x.v, dv, sum, "v");
  });
}

TEST(Fope, SaysWhatIsWrong) {
  EXPECT_EQ(refusal([] { prepare(Fope{.dims = 6}); }), "fope: dims must be a multiple of 4 but is 6");
  EXPECT_EQ(refusal([] { prepare(Fope{.heads = 0}); }), "fope: heads must be between 1 and 65536 but is 0");
  EXPECT_EQ(refusal([] { prepare(Fope{.length = 0}); }),
            "fope: length must be between 1 and 9007199254740992 but is 0");
  EXPECT_EQ(refusal([] { prepare(Fope{.spectrum = 7}); }), "fope: spectrum must be even but is 7");
  EXPECT_EQ(refusal([] { prepare(Fope{.base = 1}); }), "fope: base must be above 1 and at most 1e36 but is 1");
  EXPECT_EQ(refusal([] { prepare(Fope{}, {.numerics = Numerics::kGgmlF32}); }),
            "fope: ggml-f32 is not available: waves are mixed in double");
  EXPECT_EQ(refusal([] { prepare(Fope{.heads = 65536, .dims = 128, .base = 2}); }),
            "fope: 65536 heads, 64 waves and 32 pairs have more than 2^24 coefficients");
  const std::vector<double> weights(16, std::nan(""));
  EXPECT_EQ(refusal([&] {
              prepare(kSmall, {.weights = view(weights.data(), {2, 2, 2, 2})});
            }),
            "fope: a coefficient must be a finite number but is nan");
  EXPECT_EQ(refusal([&] { prepare(kSmall, {.weights = view(weights.data(), {16})}); }),
            "fope: the table must be [2, 2, 2, 2] but is [16]");
  const Rotation form = prepare(kSmall);
  EXPECT_EQ(refusal([&] { inverse(form); }), "inverse: a mixture of waves need not have an inverse");
  EXPECT_EQ(refusal([&] { between(form, form); }), "rerotate: a mixture of waves has no angles");
  std::vector<float> x(16);
  Rotation broken = form;
  std::get<Mixture>(broken.source).cosines.pop_back();
  EXPECT_EQ(refusal([&] {
              rotate(view(x.data(), {2, 1, 8}), {}, broken);
            }),
            "rotate: the form's mixture must have 8 weights for 2 heads and 2 waves, on one axis");
  EXPECT_EQ(
      refusal([&] {
        frequencies_backward(view(x.data(), {2}), {view(x.data(), {2, 1, 8}), view(x.data(), {2, 1, 8})}, {}, form);
      }),
      "frequencies_backward: a table, a mixture, growth and float32 angles have no such gradient");
  // no frequency finishes a turn: every pair stands still
  const Rotation still = prepare(Fope{.heads = 2, .dims = 8, .length = 2});
  EXPECT_TRUE(still.frequencies.empty());
  std::fill(x.begin(), x.end(), 1.0f);
  rotate(view(x.data(), {2, 1, 8}), {.first = 77}, still);
  EXPECT_EQ(x, (std::vector<float>{0, 0, 0, 0, 2, 2, 2, 2, 0, 0, 0, 0, 2, 2, 2, 2}));
}

}  // namespace
}  // namespace posenc::fope_test
