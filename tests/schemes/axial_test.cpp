// Axial RoPE with unequal axes: sections of the order "restarting". The values are those of diffusers 58eb52c0,
// get_1d_rotary_pos_embed of models/embeddings.py in float64, run once with torch 1.13 for each axis and put side by
// side as FluxPosEmbed, HunyuanVideoRotaryPosEmbed and WanRotaryPosEmbed do.

#include <gtest/gtest.h>

#include <cmath>

#include "backends.h"
#include "posenc/posenc.h"
#include "schemes/golden_array.h"

namespace posenc::axial_test {
namespace {

using tests::refusal;

Rope axial(std::vector<std::int64_t> sections, double base) {
  return {.dims = 128,
          .base = base,
          .layout = PairLayout::kInterleaved,
          .sections = std::move(sections),
          .section_order = SectionOrder::kRestarting};
}

// (cos, sin) of each pair of two tokens: pairs (1, 0) rotated.
std::vector<float> turned(const Rope& rope, const std::vector<std::int64_t>& ids) {
  std::vector<float> x(2 * 128);
  for (std::size_t i = 0; i < x.size(); i += 2) x[i] = 1;
  rotate(view(x.data(), {1, 2, 128}), {.ids = ids, .axes = 3}, prepare(rope));
  return x;
}

struct Value {
  std::size_t token, pair;
  double cosine, sine;
};

TEST(AxialRope, ValuesOfDiffusers) {
  struct Case {
    Rope rope;
    std::vector<std::int64_t> ids;
    std::vector<Value> values;
  };
  const std::vector<Case> cases = {
      // FLUX: (16, 56, 56), base 10000
      {axial({8, 28, 28}, 10000),
       {0, 3, 17, 40, 5, 63},
       {{0, 7, 1.0, 0.0},
        {0, 8, -0.2751634, -0.9613975},
        {0, 35, 0.9999972, 0.0023621},
        {0, 36, 0.2836622, -0.9589243},
        {0, 63, 0.9999998, 0.0006947},
        {1, 0, -0.9899925, 0.14112},
        {1, 7, 0.9999995, 0.0009487},
        {1, 9, -0.8712304, -0.4908744},
        {1, 44, -0.1774249, -0.9841343},
        {1, 63, 0.9999617, 0.0087537}}},
      // HunyuanVideo: (16, 56, 56), base 256
      {axial({8, 28, 28}, 256),
       {2, 9, 1, 30, 44, 7},
       {{0, 1, 0.5403023, 0.841471},
        {0, 8, 0.5403023, 0.841471},
        {0, 43, 0.0044257, -0.9999902},
        {1, 7, 0.9975291, 0.0702546},
        {1, 21, -0.6555074, 0.7551888},
        {1, 63, 0.9994445, 0.0333262}}},
      // Wan: 128 features as 44 + 42 + 42, base 10000
      {axial({22, 21, 21}, 10000),
       {1, 20, 7, 33, 12, 51},
       {{0, 21, 1.0, 0.000152},
        {0, 22, 0.7539023, 0.6569866},
        {0, 42, 0.9999994, 0.0010854},
        {0, 43, 0.843854, -0.5365729},
        {1, 8, 0.7633983, 0.645928},
        {1, 23, -0.7597237, 0.650246},
        {1, 44, 0.094302, 0.9955437},
        {1, 63, 0.9999687, 0.0079075}}},
  };
  tests::for_each_engine([&] {
    for (const Case& one : cases) {
      const std::vector<float> x = turned(one.rope, one.ids);
      for (const Value& value : one.values) {
        const std::size_t at = value.token * 128 + 2 * value.pair;
        EXPECT_NEAR(x[at], value.cosine, 1.2e-7) << value.token << " " << value.pair;
        EXPECT_NEAR(x[at + 1], value.sine, 1.2e-7) << value.token << " " << value.pair;
      }
    }
  });
}

// The formula itself, every pair: axis a has s_a pairs, pair j of them rotates by p_a · base^(−2j / (2 s_a)).
TEST(AxialRope, EveryPairIsTheFormula) {
  const Rope rope = axial({5, 0, 59}, 500);
  const std::vector<std::int64_t> ids = {3, 90, 8, 9, 1, 57};
  const std::vector<float> x = turned(rope, ids);
  for (std::size_t token = 0; token < 2; ++token) {
    for (std::size_t pair = 0; pair < 64; ++pair) {
      const bool is_first = pair < 5;
      const double j = static_cast<double>(is_first ? pair : pair - 5), size = is_first ? 5 : 59;
      const double angle = static_cast<double>(ids[(is_first ? 0 : 4) + token]) * std::pow(500.0, -j / size);
      EXPECT_NEAR(x[token * 128 + 2 * pair], std::cos(angle), 1e-7) << token << " " << pair;
      EXPECT_NEAR(x[token * 128 + 2 * pair + 1], std::sin(angle), 1e-7) << token << " " << pair;
    }
  }
}

// The gradient is the adjoint: a step of x in each direction changes y·R(x) by that direction of rotate_backward(y).
TEST(AxialRope, GradientByFiniteDifferences) {
  const Rotation form = prepare(axial({8, 28, 28}, 256));
  const std::vector<std::int64_t> ids = {2, 9, 1, 30, 44, 7};
  tests::for_each_engine([&] {
    std::vector<double> x(256), y(256);
    for (std::size_t i = 0; i < 256; ++i) {
      x[i] = std::sin(static_cast<double>(i) + 1);
      y[i] = std::cos(3 * static_cast<double>(i));
    }
    const auto score = [&](std::vector<double> at) {
      rotate(view(at.data(), {1, 2, 128}), {.ids = ids, .axes = 3}, form);
      double sum = 0;
      for (std::size_t i = 0; i < 256; ++i) sum += at[i] * y[i];
      return sum;
    };
    std::vector<double> gradient = y;
    rotate_backward(view(gradient.data(), {1, 2, 128}), {.ids = ids, .axes = 3}, form);
    for (const std::size_t i : {0UL, 15UL, 16UL, 71UL, 72UL, 127UL, 128UL, 200UL, 255UL}) {
      std::vector<double> up = x, down = x;
      up[i] += 1e-3;
      down[i] -= 1e-3;
      EXPECT_NEAR((score(up) - score(down)) / 2e-3, gradient[i], 1e-9) << i;
    }
  });
}

TEST(AxialRope, SaysWhatIsWrong) {
  Rope rope = axial({8, 28, 28}, 10000);
  EXPECT_EQ(refusal([&] { prepare(rope); }), "accepted");
  EXPECT_EQ(refusal([&] { prepare(rope, {.numerics = Numerics::kGgmlF32}); }),
            "rope: ggml-f32 restarts after equal numbers of pairs, but sections are 8 and 28");
  rope.section_order = SectionOrder::kBlocks;
  EXPECT_EQ(refusal([&] { prepare(rope); }),
            "rope: sections must be equal for section_order blocks but are 8 and 28");
}

}  // namespace
}  // namespace posenc::axial_test
