// Negative and fractional positions: sines and cosines against MPFR at 500 bits on every backend and SIMD target of
// the host, correctly rounded; gradients; attention; errors. The values of diffusers are those of
// get_timestep_embedding (diffusers 0.40, 58eb52c0, models/embeddings.py), run once with torch 1.13 and float64 in
// place of float32.

#include <gtest/gtest.h>

#include <cmath>

#include "backends.h"
#include "numerics/narrow.h"
#include "oracle/mpfr_wave.h"
#include "posenc/posenc.h"
#include "schemes/golden_array.h"

namespace posenc::fractions_test {
namespace {

using oracle::mpfr_wave_at_fraction;
using tests::for_each_host_engine;
using tests::refusal;

constexpr std::int64_t kLast = kPositionLimit - 1;

template <class T> oracle::Precision precision_of();
template <> oracle::Precision precision_of<float>() { return oracle::kF32; }
template <> oracle::Precision precision_of<double>() { return oracle::kF64; }
template <> oracle::Precision precision_of<Half>() { return oracle::kF16; }
template <> oracle::Precision precision_of<BFloat16>() { return oracle::kBF16; }

// f64 may be off by an ulp where 128 bits do not decide; no other type may.
template <class T> void expect_rounded(T got, double exact) {
  const double value = numerics::widen(got);
  if constexpr (std::is_same_v<T, double>) {
    EXPECT_NEAR(value, exact, std::fabs(exact) * 0x1p-52);
  } else {
    EXPECT_EQ(value, exact);
  }
}

// Sines and cosines of a sinusoidal table, at `first` … or at ids.
template <class T> void expect_waves(const Positions& positions, std::int64_t tokens, std::int64_t denominator) {
  constexpr std::int64_t width = 6;
  const Addition form = prepare(Sinusoidal{.width = width}, {.denominators = {denominator}});
  std::vector<T> out(static_cast<std::size_t>(tokens * width));
  tabulate(view(out.data(), {tokens, width}), positions, form);
  for (std::int64_t t = 0; t < tokens; ++t) {
    const std::int64_t p = positions.ids.empty() ? positions.first + t : positions.ids[static_cast<std::size_t>(t)];
    for (std::int64_t c = 0; c < width; ++c) {
      SCOPED_TRACE(testing::Message() << p << "/" << denominator << ", column " << c);
      const double exact = mpfr_wave_at_fraction({10000.0, c / 2 * 2, width}, false, p, denominator,
                                                 static_cast<unsigned>(c % 2), precision_of<T>());
      expect_rounded(out[static_cast<std::size_t>(t * width + c)], exact);
    }
  }
}

TEST(Fractions, WavesAreCorrectlyRounded) {
  const std::vector<std::int64_t> ids = {-kLast, -1000003, -17, -3, -1, 0, 1, 2, 39001, 131071, kLast - 1, kLast};
  for_each_host_engine([&] {
    for (const std::int64_t denominator :
         {std::int64_t{1}, std::int64_t{3}, std::int64_t{1024}, (std::int64_t{1} << 62) - 1}) {
      expect_waves<float>({.ids = ids}, std::ssize(ids), denominator);
      expect_waves<double>({.ids = ids}, std::ssize(ids), denominator);
      expect_waves<Half>({.ids = ids}, std::ssize(ids), denominator);
      expect_waves<BFloat16>({.ids = ids}, std::ssize(ids), denominator);
    }
  });
}

// Runs of consecutive positions have a road of their own, from 32 rows on; it does not take negative ones.
TEST(Fractions, RunsAcrossZero) {
  for_each_host_engine([&] {
    for (const std::int64_t first : {std::int64_t{-40}, std::int64_t{-100}, -kLast}) {
      expect_waves<float>({.first = first}, 80, 7);
      expect_waves<double>({.first = first}, 80, 7);
      expect_waves<BFloat16>({.first = first}, 80, 7);
    }
  });
}

TEST(Fractions, ValuesOfDiffusers) {
  const std::vector<double> times = {0.25, -0.375, 999.5, 17.8125};
  const Fractions fractions = fractions_of(times);
  EXPECT_EQ(fractions.denominator, 16);
  EXPECT_EQ(fractions.numerators, (std::vector<std::int64_t>{4, -6, 15992, 285}));
  const double expected[4][8] = {
      {0.96891242171064473, 0.99968751627570263, 0.99999687500162759, 0.99999996875000019, 0.24740395925452294,
       0.024997395914712325, 0.0024999973958341457, 0.00024999999739583318},
      {0.93050762191231429, 0.99929695739359869, 0.99999296875823973, 0.99999992968750084, -0.36627252908604757,
       -0.037491211555460258, -0.0037499912109436777, -0.00037499999121093738},
      {0.88996123960508777, 0.83593346415092373, -0.84178113492488005, 0.54072297380522671, 0.45603617400440466,
       -0.54883079679682356, -0.53981897047490002, 0.8412007284823475},
      {0.50875704542001565, -0.20890358479810867, 0.98417764362937254, 0.99984136161640857, -0.86091013975646502,
       0.97793624140763868, 0.17718455288239932, 0.017811558074635442}};
  const Addition form =
      prepare(Sinusoidal{.width = 8, .layout = WaveLayout::kCosSin}, {.denominators = {fractions.denominator}});
  for_each_host_engine([&] {
    double out[4][8];
    tabulate(view(&out[0][0], {4, 8}), {.ids = fractions.numerators}, form);
    for (int t = 0; t < 4; ++t) {
      for (int c = 0; c < 8; ++c) EXPECT_NEAR(out[t][c], expected[t][c], 1e-13) << t << " " << c;
    }
  });
}

// SAM 3 (transformers 5.16, d56c55bf, modeling_sam3.py): Sam3ViTRotaryEmbedding with a head of 16, 4 x 4 patches and a scale of
// 1/3, run once with torch 2.11 and float64 in place of float32 in its text (its positions are float32 still).
TEST(Fractions, ValuesOfSam3) {
  struct Value {
    std::int64_t patch;
    double cosines[8], sines[8];
  };
  const Value values[] = {
      {1,
       {0.944956943064, 0.99944449585, 0.999994444449, 0.999999944444, 1, 1, 1, 1},
       {0.327194706183, 0.0333271618296, 0.00333332725984, 0.000333333337095, 0, 0, 0, 0}},
      {6,
       {0.785887248491, 0.997778600569, 0.999977777859, 0.999999777778, 0.944956943064, 0.99944449585, 0.999994444449,
        0.999999944444},
       {0.618369818684, 0.0666172969058, 0.00666661748274, 0.000666666637152, 0.327194706183, 0.0333271618296,
        0.00333332725984, 0.000333333337095}},
      {15,
       {0.540302305868, 0.995004165278, 0.999950000417, 0.9999995, 0.540302305868, 0.995004165278, 0.999950000417,
        0.9999995},
       {0.841470984808, 0.0998334166468, 0.00999983333417, 0.000999999833333, 0.841470984808, 0.0998334166468,
        0.00999983333417, 0.000999999833333}},
  };
  const Rope rope{
      .dims = 16, .layout = PairLayout::kInterleaved, .sections = {4, 4}, .section_order = SectionOrder::kRestarting};
  Rope stretched = rope;  // as inspect has it
  stretched.scaling = LinearScaling{.factor = 3};
  for (const Rotation& form : {prepare(rope, {.denominators = {3}}), prepare(stretched)}) {
    for (const Value& value : values) {
      const std::vector<std::int64_t> ids = {value.patch % 4, value.patch / 4};
      double cosines[8], sines[8];
      tabulate(view(cosines, {1, 8}), view(sines, {1, 8}), {.ids = ids, .axes = 2}, form);
      for (int i = 0; i < 8; ++i) {
        EXPECT_NEAR(cosines[i], value.cosines[i], 2e-8) << value.patch << ' ' << i;
        EXPECT_NEAR(sines[i], value.sines[i], 2e-8) << value.patch << ' ' << i;
      }
    }
  }
}

// The same: a third of a position on both axes.
TEST(Fractions, RotationOfAnInterpolatedGrid) {
  const Rope rope{
      .dims = 16, .layout = PairLayout::kInterleaved, .sections = {4, 4}, .section_order = SectionOrder::kRestarting};
  const std::vector<std::int64_t> extents = {4, 5};
  const std::vector<std::int64_t> ids = grid_positions(extents);
  const Rotation form = prepare(rope, {.denominators = {3}});
  for_each_host_engine([&] {
    std::vector<float> cosines(20 * 8), sines(20 * 8), x(20 * 16, 0.0f);
    tabulate(view(cosines.data(), {20, 8}), view(sines.data(), {20, 8}), {.ids = ids, .axes = 2}, form);
    for (std::size_t i = 0; i < x.size(); i += 2) x[i] = 1.0f;  // rotating (1, 0) gives (cosine, sine)
    rotate(view(x.data(), {20, 16}), {.ids = ids, .axes = 2}, form);
    for (std::size_t t = 0; t < 20; ++t) {
      for (std::size_t i = 0; i < 8; ++i) {
        const std::int64_t p = ids[i / 4 * 20 + t];
        for (const unsigned quarter : {0u, 1u}) {
          const double exact =
              mpfr_wave_at_fraction({10000.0, static_cast<long>(2 * (i % 4)), 8}, false, p, 3, quarter, oracle::kF32);
          EXPECT_EQ(static_cast<double>((quarter == 1 ? cosines : sines)[t * 8 + i]), exact);
          EXPECT_EQ(static_cast<double>(x[t * 16 + 2 * i + (1 - quarter)]), exact);
        }
      }
    }
  });
}

// The gradient is the adjoint: ⟨R x, y⟩ = ⟨x, Rᵀ y⟩; and by a small step in one element.
TEST(Fractions, GradientOfARotation) {
  const Rotation form = prepare(Rope{.dims = 8}, {.denominators = {5}});
  const std::vector<std::int64_t> ids = {-7, -1, 0, 13};
  for_each_host_engine([&] {
    std::vector<double> x(32), d_out(32);
    for (std::size_t i = 0; i < 32; ++i)
      x[i] = std::sin(1.0 + static_cast<double>(i)), d_out[i] = std::cos(0.3 * static_cast<double>(i));
    const auto value = [&](std::vector<double> at) {
      rotate(view(at.data(), {4, 8}), {.ids = ids}, form);
      double sum = 0;
      for (std::size_t i = 0; i < 32; ++i) sum += at[i] * d_out[i];
      return sum;
    };
    std::vector<double> gradient = d_out;
    rotate_backward(view(gradient.data(), {4, 8}), {.ids = ids}, form);
    for (std::size_t i = 0; i < 32; ++i) {
      std::vector<double> more = x, less = x;
      more[i] += 0.5;  // it is linear: any step will do
      less[i] -= 0.5;
      EXPECT_NEAR(gradient[i], value(more) - value(less), 1e-14);
    }
  });
}

// Scores depend only on the distance, also across zero, with rope and with ALiBi.
TEST(Fractions, AttentionDependsOnDistanceAlone) {
  for (const Form& form : {Form(prepare(Rope{.dims = 8})), Form(prepare(Alibi{.heads = 1}))}) {
    for_each_host_engine([&] {
      std::vector<double> q(5 * 8), k(5 * 8), v(5 * 8);
      for (std::size_t i = 0; i < q.size(); ++i) {
        q[i] = std::sin(static_cast<double>(i)), k[i] = std::cos(2.0 * static_cast<double>(i)),
        v[i] = std::sin(3.0 + static_cast<double>(i));
      }
      const auto at = [&](std::int64_t first) {
        std::vector<double> out(q.size());
        attention(view(out.data(), {1, 5, 8}), view(q.data(), {1, 5, 8}), view(k.data(), {1, 5, 8}),
                  view(v.data(), {1, 5, 8}),
                  {.position = form,
                   .query_positions = Positions{.first = first},
                   .key_positions = Positions{.first = first}});
        return out;
      };
      const std::vector<double> here = at(0), before = at(-3);
      for (std::size_t i = 0; i < here.size(); ++i) EXPECT_NEAR(here[i], before[i], 1e-14);
    });
  }
}

TEST(Fractions, WhatTakesWholePositionsSaysSo) {
  EXPECT_EQ(refusal([] { prepare(Scheme(Alibi{}), {.denominators = {2}}); }),
            "alibi: positions must be whole: this scheme takes no denominators");
  EXPECT_EQ(refusal([] { prepare(Rope{}, {.denominators = {0}}); }),
            "rope: a denominator of positions must be between 1 and 4611686018427387903 but is 0");
  EXPECT_EQ(refusal([] {
              prepare(Rope{}, {.denominators = {2, 3}});
            }),
            "rope: there must be 1 denominator or one for each of 1 axes but there are 2");
  EXPECT_EQ(refusal([] { prepare(Rope{}, {.numerics = Numerics::kHfF32, .denominators = {2}}); }),
            "rope: hf-f32 takes whole positions, not fractions");
  EXPECT_EQ(refusal([] { prepare(Rope{.scaling = XposScaling{}}, {.denominators = {2}}); }),
            "rope: xpos counts from a whole position, so positions cannot be fractions");
  std::vector<float> table(8), x(4);
  const Addition rows = prepare(Learned{.rows = 4, .width = 2}, {.weights = view(table.data(), {4, 2})});
  EXPECT_EQ(refusal([&] {
              add(view(x.data(), {2, 2}), {.first = -1}, rows);
            }),
            "add: position -1 is outside 0 to 2^53 - 1");
  const Rotation rope = prepare(Rope{.dims = 2});
  EXPECT_EQ(refusal([&] {
              rotate(view(x.data(), {2, 2}), {.first = -kPositionLimit}, rope);
            }),
            "rotate: position -9007199254740992 is outside -2^53 + 1 to 2^53 - 1");
}

TEST(Fractions, OfNumbers) {
  EXPECT_EQ(fractions_of(std::vector<double>{3, -5}).denominator, 1);
  EXPECT_EQ(fractions_of({}).denominator, 1);
  const Fractions fine = fractions_of(std::vector<double>{0.1, 0});
  EXPECT_EQ(std::ldexp(0.1, 55), static_cast<double>(fine.numerators[0]));
  EXPECT_EQ(fine.denominator, std::int64_t{1} << 55);
  EXPECT_NE(refusal([] { fractions_of(std::vector<double>{0.1, 1e6}); }), "");
  EXPECT_NE(refusal([] { fractions_of(std::vector<double>{1e-30}); }), "");
  EXPECT_NE(refusal([] { fractions_of(std::vector<double>{std::nan("")}); }), "");
}

TEST(Fractions, CentredGrids) {
  const std::vector<std::int64_t> extents = {2, 3};
  EXPECT_EQ(centred_positions(extents), (std::vector<std::int64_t>{-1, -1, -1, 1, 1, 1, -2, 0, 2, -2, 0, 2}));
  EXPECT_TRUE(centred_positions({}).empty());
}

}  // namespace
}  // namespace posenc::fractions_test
