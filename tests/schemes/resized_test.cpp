// The values are those of torch.nn.functional.interpolate (torch 1.13, float64), which the models of transformers 5.16
// (d56c55bf) call, and for corners those of its vision_utils.py (get_vision_interpolation_indices_and_weights, as
// modeling_qwen3_vl.py calls it, with float64 in place of float32); run once.

#include <gtest/gtest.h>

#include <cmath>

#include "backends.h"
#include "posenc/posenc.h"
#include "schemes/golden_array.h"

namespace posenc::resized_test {
namespace {

using tests::refusal;

// Row i of the trained table after the prefix, feature j.
double trained_value(std::int64_t i, std::int64_t j) {
  const auto at = static_cast<double>(i);
  return std::sin(0.7 * (at * 2 + static_cast<double>(j)) + 0.1 * at * at);
}

std::vector<double> table_of(const Resized& scheme) {
  std::vector<double> table;
  for (std::int64_t row = 0; row < scheme.prefix; ++row)
    table.insert(table.end(), {10.0 + static_cast<double>(row), -1});
  for (std::int64_t i = 0; i < scheme.trained_grid[0] * scheme.trained_grid[1]; ++i) {
    for (std::int64_t j = 0; j < 2; ++j) table.push_back(trained_value(i, j));
  }
  return table;
}

std::vector<double> resized(const Resized& scheme) {
  const std::vector<double> table = table_of(scheme);
  const Addition form = prepare(scheme, {.weights = view(table.data(), {std::ssize(table) / 2, 2})});
  const std::int64_t rows = scheme.prefix + scheme.new_grid[0] * scheme.new_grid[1];
  std::vector<double> out(static_cast<std::size_t>(rows * 2));
  tabulate(view(out.data(), {rows, 2}), {}, form);
  return out;
}

struct Case {
  const char* name;
  Resized scheme;
  std::vector<double> first, last;  // rows from the first on, and to the last
};

TEST(Resized, ValuesOfTorch) {
  const std::vector<Case> cases = {
      {"bicubic (ViT, DINOv2, SigLIP)",
       {.trained_grid = {3, 4}, .new_grid = {5, 3}, .width = 2},
       {0.1120023537718, 0.689269622574454, 0.755883349753542, 0.104126881386883, -0.959715916112555,
        -0.600924625230681, 0.456492712100137, 0.790523840948747},
       {0.111434877749744, 0.179827256111481, 0.417037975718908, -0.0429818609553332}},
      {"bilinear (DPT)",
       {.trained_grid = {3, 4}, .new_grid = {5, 3}, .width = 2, .filter = ResizeFilter::kBilinear},
       {0.166249164434009, 0.671597473334674, 0.469560421588237, 0.0603651223178083, -0.781241259177707,
        -0.501796176042127},
       {0.0277871812477463, 0.0689770687222151, 0.431770299378144, -0.00800561469190428}},
      {"bicubic, antialias, finer (DINOv2 with registers)",
       {.trained_grid = {4, 4}, .new_grid = {6, 7}, .width = 2, .antialias = true},
       {-0.141083261273096, 0.598125618163417, 0.327976117724911, 0.770504597257528, 1.05099450883601,
        0.945422936050347},
       {0.0283018872197008, 0.499546909622667, -0.672260620646292, 0.172684953805311}},
      {"bicubic, antialias, coarser",
       {.trained_grid = {7, 6}, .new_grid = {3, 2}, .width = 2, .antialias = true},
       {0.0790770271186185, 0.152939753603835, 0.0212708496796032, -0.063583000301151, -0.125093691814095,
        -0.0867678241322031},
       {0.0612882850575392, -0.0671921241045915, -0.179577458636753, -0.132186898546364}},
      {"bilinear, antialias, coarser (SigLIP 2)",
       {.trained_grid = {7, 6}, .new_grid = {3, 2}, .width = 2, .filter = ResizeFilter::kBilinear, .antialias = true},
       {0.103365919756338, 0.118472357740545, -0.0292152753394001, -0.0753610731159442},
       {0.0647623590855173, -0.0393195665818088, -0.1690162742285, -0.136743311515069}},
      {"bilinear, antialias, mixed",
       {.trained_grid = {3, 4}, .new_grid = {5, 3}, .width = 2, .filter = ResizeFilter::kBilinear, .antialias = true},
       {0.299248495981216, 0.693501302212261, 0.469560421588237, 0.0603651223178083},
       {0.0277871812477463, 0.068977068722215, 0.217794513556581, -0.0738224629129166}},
      {"bicubic, corners",
       {.trained_grid = {3, 4}, .new_grid = {5, 3}, .width = 2, .corners = true},
       {0, 0.644217687237691, 0.644398127104257, 0.0548446288939036},
       {0.0563976964438574, 0.123914313861603, 0.699240031655098, 0.0742654455843613}},
      {"bilinear, corners (Qwen3-VL)",
       {.trained_grid = {5, 5}, .new_grid = {4, 6}, .width = 2, .filter = ResizeFilter::kBilinear, .corners = true},
       {0, 0.644217687237691, 0.797995989283244, 0.77564066050321, 0.363973508585074, -0.0892611339825483},
       {-0.237510827082316, -0.805663696596133, -0.0936755000911281, -0.713031896386296}},
  };
  for (const Case& one : cases) {
    SCOPED_TRACE(one.name);
    tests::for_each_engine([&] {
      const std::vector<double> out = resized(one.scheme);
      for (std::size_t i = 0; i < one.first.size(); ++i) EXPECT_NEAR(out[i], one.first[i], 1e-13) << i;
      for (std::size_t i = 0; i < one.last.size(); ++i) {
        EXPECT_NEAR(out[out.size() - one.last.size() + i], one.last[i], 1e-13) << i;
      }
    });
  }
}

// A grid that stays as it is gives the trained table, bit for bit, and a prefix is never resized.
TEST(Resized, SameGridAndPrefix) {
  for (const ResizeFilter filter : {ResizeFilter::kBicubic, ResizeFilter::kBilinear}) {
    for (const bool corners : {false, true}) {
      const Resized same{
          .trained_grid = {3, 4}, .new_grid = {3, 4}, .width = 2, .filter = filter, .corners = corners, .prefix = 2};
      EXPECT_EQ(resized(same), table_of(same));
    }
  }
  const std::vector<double> out = resized({.trained_grid = {3, 4}, .new_grid = {5, 3}, .width = 2, .prefix = 2});
  EXPECT_EQ(out[0], 10);
  EXPECT_EQ(out[2], 11);
  EXPECT_NEAR(out[4], 0.1120023537718, 1e-13);
}

// Tables of 16 bits are widened, made in double and rounded to f32 once.
TEST(Resized, TypesOfTheTable) {
  const Resized scheme{.trained_grid = {3, 4}, .new_grid = {5, 3}, .width = 2};
  std::vector<float> table;
  for (const double value : table_of(scheme)) table.push_back(static_cast<float>(value));
  const Addition form = prepare(scheme, {.weights = view(table.data(), {12, 2})});
  const ConstTensorView made = std::get<Rows>(form.source).table;
  EXPECT_EQ(made.type, DataType::kF32);
  EXPECT_EQ(made.shape, (Extents{15, 2}));
  tests::for_each_engine([&] {
    std::vector<float> x(30, 1.0f);
    add(view(x.data(), {15, 2}), {}, form);
    EXPECT_NEAR(x[0], 1.1120023537718, 2e-7);
    EXPECT_NEAR(x[29], 1 - 0.0429818609553332, 2e-7);
  });
  // the form owns what it made: copies outlive it
  std::optional<Addition> first = prepare(scheme, {.weights = view(table.data(), {12, 2})});
  const Addition copy = *first;
  first.reset();
  float row[2];
  tabulate(view(row, {1, 2}), {.first = 14}, copy);
  EXPECT_NEAR(row[1], -0.0429818609553332, 1e-7);
}

// From the gradient of added vectors to the trained table, element by element; it is linear, so a step of any size will do.
TEST(Resized, GradientByFiniteDifferences) {
  for (const bool antialias : {false, true}) {
    const Resized scheme{.trained_grid = {4, 3}, .new_grid = {2, 5}, .width = 2, .antialias = antialias, .prefix = 1};
    std::vector<double> table = table_of(scheme), d_out(22);
    for (std::size_t i = 0; i < d_out.size(); ++i) d_out[i] = std::sin(static_cast<double>(i) + 0.5);
    const std::vector<std::int64_t> ids = {10, 9, 8, 7, 6, 5, 4, 3, 2, 0, 0};  // 0 twice, 1 never
    std::vector<double> d_rows(22);
    add_backward(view(d_rows.data(), {11, 2}), view(std::as_const(d_out).data(), {11, 2}), {.ids = ids});
    const std::vector<double> gradient = backward(scheme, d_rows);
    ASSERT_EQ(gradient.size(), table.size());
    const auto value = [&] {
      const Addition form = prepare(scheme, {.weights = view(std::as_const(table).data(), {13, 2})});
      std::vector<double> x(22);
      add(view(x.data(), {11, 2}), {.ids = ids}, form);
      double sum = 0;
      for (std::size_t i = 0; i < x.size(); ++i) sum += x[i] * d_out[i];
      return sum;
    };
    for (std::size_t i = 0; i < table.size(); ++i) {
      const double before = table[i];
      table[i] = before + 0.5;
      const double more = value();
      table[i] = before - 0.5;
      const double less = value();
      table[i] = before;
      EXPECT_NEAR(gradient[i], more - less, 1e-13) << i;
    }
  }
}

TEST(Resized, Refusals) {
  EXPECT_EQ(refusal([] { prepare(Resized{.trained_grid = {3}}); }),
            "resized: trained_grid must be 2 extents, rows and columns, but has 1");
  EXPECT_EQ(refusal([] {
              prepare(Resized{.new_grid = {3, 0}});
            }),
            "resized: new_grid must be between 1 and 4096 but is 0");
  EXPECT_EQ(refusal([] { prepare(Resized{.corners = true, .antialias = true}); }),
            "resized: corners and antialias cannot be combined");
  EXPECT_EQ(refusal([] {
              prepare(Resized{.new_grid = {4096, 4096}});
            }),
            "resized: 4096 by 4096 cells of 512 features are more than 268435456 numbers");
  EXPECT_EQ(refusal([] { prepare(Resized{.width = 2}); }),
            "resized: the trained table [196, 2] is missing: pass it as weights");
  EXPECT_EQ(refusal([] { backward(Resized{.width = 2}, std::vector<double>(3)); }),
            "resized: the gradient must have 512 numbers, rows by width, but has 3");
  std::vector<float> table(392);
  Addition form = prepare(Resized{.width = 2}, {.weights = view(table.data(), {196, 2})});
  EXPECT_EQ(refusal([&] {
              posenc::bind(form, view(table.data(), {196, 2}));
            }),
            "bind: the form's table was made from the weights; prepare the scheme again");
  std::vector<float> x(2);
  EXPECT_EQ(refusal([&] {
              add(view(x.data(), {1, 2}), {.first = 256}, form);
            }),
            "add: position 256 is past the table: 256 rows with offset 0 end at position 255");
}

}  // namespace
}  // namespace posenc::resized_test
