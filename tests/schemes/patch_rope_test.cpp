// The values are those of transformers 5.16 (d56c55bf), modeling_dinov3_vit.py: get_patches_center_coordinates and the
// angles of DINOv3ViTRopePositionEmbedding, with float64 in place of float32, run once with torch 1.13; a head of 16.

#include <gtest/gtest.h>

#include <cmath>

#include "backends.h"
#include "oracle/mpfr_wave.h"
#include "posenc/posenc.h"
#include "schemes/golden_array.h"

namespace posenc::patch_rope_test {
namespace {

using tests::for_each_host_engine;
using tests::refusal;

TEST(PatchRope, ValuesOfTransformers) {
  struct Value {
    std::size_t patch;
    double cosines[8], sines[8];
  };
  const Value values[] = {
      {0,
       {-0.5, 0.24370533829584501, 0.91354545764260087, 0.99123983834473295, 0.30901699437494723,
        -0.018736699262801457, 0.87630668004386358, 0.98739348315051001},
       {0.86602540378443882, -0.9698493223620398, -0.40673664307580026, -0.13207415673896089, 0.95105651629515364,
        -0.99982445264193021, -0.48175367410171532, -0.15828489957005884}},
      {1,
       {-0.5, 0.24370533829584501, 0.91354545764260087, 0.99123983834473295, -0.80901699437494734,
        0.70045103352668359, 0.96858316112863108, 0.99684338869014677},
       {0.86602540378443882, -0.9698493223620398, -0.40673664307580026, -0.13207415673896089, -0.58778525229247325,
        -0.7137004621207701, -0.24868988716485479, -0.079393062825066918}},
      {7, {1, 1, 1, 1, 1, 1, 1, 1}, {0, 0, 0, 0, 0, 0, 0, 0}},
  };
  const std::vector<std::int64_t> grid = {3, 5};
  const std::vector<std::int64_t> ids = centred_positions(grid);
  const Rotation form = prepare(PatchRope{.dims = 16, .patches = grid});
  for_each_host_engine([&] {
    std::vector<double> cosines(15 * 8), sines(15 * 8);
    tabulate(view(cosines.data(), {15, 8}), view(sines.data(), {15, 8}), {.ids = ids, .axes = 2}, form);
    for (const Value& value : values) {
      for (std::size_t i = 0; i < 8; ++i) {
        EXPECT_NEAR(cosines[value.patch * 8 + i], value.cosines[i], 2e-15) << value.patch << " " << i;
        EXPECT_NEAR(sines[value.patch * 8 + i], value.sines[i], 2e-15) << value.patch << " " << i;
      }
    }
  });
}

// 2π · p/N · base^(−j/s) by MPFR: float32 is correctly rounded, whole turns and all.
TEST(PatchRope, ExactToTheLastBit) {
  const std::vector<std::int64_t> grid = {14, 37};
  const std::vector<std::int64_t> ids = centred_positions(grid);
  const Rotation form = prepare(PatchRope{.dims = 12, .base = 100, .patches = grid});
  const std::int64_t cells = 14 * 37;
  for_each_host_engine([&] {
    std::vector<float> cosines(static_cast<std::size_t>(cells * 6)), sines(cosines.size());
    tabulate(view(cosines.data(), {cells, 6}), view(sines.data(), {cells, 6}), {.ids = ids, .axes = 2}, form);
    for (std::int64_t cell = 0; cell < cells; cell += 13) {
      for (std::int64_t i = 0; i < 6; ++i) {
        const std::int64_t axis = i / 3, p = ids[static_cast<std::size_t>(axis * cells + cell)];
        const auto at = static_cast<std::size_t>(cell * 6 + i);
        const auto exact = [&](unsigned quarter) {
          return oracle::mpfr_wave_at_fraction({100.0, static_cast<long>(i % 3), 3}, true, p,
                                               grid[static_cast<std::size_t>(axis)], quarter, oracle::kF32);
        };
        EXPECT_EQ(static_cast<double>(cosines[at]), exact(1)) << cell << " " << i;
        EXPECT_EQ(static_cast<double>(sines[at]), exact(0)) << cell << " " << i;
      }
    }
  });
}

// An image twice as large has the same angles at the corners' limit: coordinates, not patches, count. Here: the middle of
// four small patches lies where a large patch's centre is.
TEST(PatchRope, ResolutionDoesNotMatter) {
  const Rotation coarse = prepare(PatchRope{.dims = 8, .patches = {3, 3}}),
                 fine = prepare(PatchRope{.dims = 8, .patches = {9, 9}});
  const std::vector<std::int64_t> corner = {-2, 2}, same = {-6, 6};
  std::vector<double> cosines(4), sines(4), fine_cosines(4), fine_sines(4);
  tabulate(view(cosines.data(), {1, 4}), view(sines.data(), {1, 4}), {.ids = corner, .axes = 2}, coarse);
  tabulate(view(fine_cosines.data(), {1, 4}), view(fine_sines.data(), {1, 4}), {.ids = same, .axes = 2}, fine);
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_NEAR(cosines[i], fine_cosines[i], 1e-15);
    EXPECT_NEAR(sines[i], fine_sines[i], 1e-15);
  }
}

// A step of x in each direction changes y·R(x) by that direction of rotate_backward(y).
TEST(PatchRope, GradientByFiniteDifferences) {
  const std::vector<std::int64_t> grid = {2, 3}, ids = centred_positions(grid);
  const Rotation form = prepare(PatchRope{.dims = 8, .patches = grid});
  for_each_host_engine([&] {
    std::vector<double> x(6 * 8), y(6 * 8);
    for (std::size_t i = 0; i < x.size(); ++i) {
      x[i] = std::sin(static_cast<double>(i) + 1);
      y[i] = std::cos(3 * static_cast<double>(i));
    }
    const auto score = [&](std::vector<double> at) {
      rotate(view(at.data(), {6, 8}), {.ids = ids, .axes = 2}, form);
      double sum = 0;
      for (std::size_t i = 0; i < at.size(); ++i) sum += at[i] * y[i];
      return sum;
    };
    std::vector<double> gradient = y;
    rotate_backward(view(gradient.data(), {6, 8}), {.ids = ids, .axes = 2}, form);
    for (std::size_t i = 0; i < x.size(); ++i) {
      std::vector<double> up = x, down = x;
      up[i] += 1e-3;
      down[i] -= 1e-3;
      EXPECT_NEAR((score(up) - score(down)) / 2e-3, gradient[i], 1e-9) << i;
    }
  });
}

TEST(PatchRope, Refusals) {
  EXPECT_EQ(refusal([] { prepare(PatchRope{.dims = 18}); }),
            "patch-rope: dims must be a multiple of 4 for 2 axes but is 18");
  EXPECT_EQ(refusal([] { prepare(PatchRope{.patches = {}}); }),
            "patch-rope: number of extents of patches must be between 1 and 3 but is 0");
  EXPECT_EQ(refusal([] {
              prepare(PatchRope{.patches = {0, 3}});
            }),
            "patch-rope: extents of patches must be between 1 and 1048576 but is 0");
  EXPECT_EQ(refusal([] { prepare(PatchRope{.base = 1}); }),
            "patch-rope: base must be above 1 and at most 1e36 but is 1");
  EXPECT_EQ(refusal([] { prepare(PatchRope{}, {.numerics = Numerics::kHfF32}); }),
            "patch-rope: hf-f32 is not available: coordinates are fractions");
}

}  // namespace
}  // namespace posenc::patch_rope_test
