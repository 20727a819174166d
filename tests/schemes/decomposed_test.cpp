// The values are those of transformers 5.16 (d56c55bf): get_rel_pos and get_decomposed_rel_pos of modeling_sam.py, cut
// out and run once with torch 1.13 in float64.

#include <gtest/gtest.h>

#include "schemes/golden_array.h"
#include "schemes/published.h"

namespace posenc::decomposed_test {
namespace {

using tests::refusal;
using tests::Sequence;
using tests::wavy;

const std::vector<std::int64_t> kGrid = {2, 3};

AttentionOptions options_of(const Bias& form, const std::vector<std::int64_t>& ids) {
  AttentionOptions options{.position = form};
  options.query_positions = options.key_positions = Positions{.ids = ids, .axes = 2};
  return options;
}

TEST(Decomposed, ValuesOfSam) {
  const auto ids = grid_positions(kGrid);
  const std::vector<double> table = wavy((3 + 5) * 4, 0.5), trained = wavy((7 + 3) * 4, 0.5);
  const Sequence x{2, 6, 6, 4};
  const Bias as_trained = prepare(Decomposed{.window = kGrid}, {.weights = view(table.data(), {8, 4})});
  EXPECT_EQ(std::get<DistanceVectors>(as_trained.source).for_queries.table.data, table.data()) << "read in place";
  tests::expect_attention(
      x, options_of(as_trained, ids),
      {-0.0585765218399, 0.206250222703,  0.127709163534,   0.242017102832,   -0.0386326013575, 0.0487308221128,
       0.170880445706,   0.0950231923472, -0.0271544558933, 0.177724293497,   0.136240615855,   0.230357752269,
       0.00122843605769, 0.20054770838,   0.0850194056028,  0.109404184547,   0.00869521308704, 0.246973443912,
       0.229114187065,   0.102684169355,  -0.0111246530784, 0.282629812893,   0.142807018588,   0.0674484513583,
       0.246262344299,   -0.181843541868, -0.0668841067549, 0.282386068845,   0.402600435852,   -0.351827299857,
       0.131554391877,   0.364830393916,  0.143459362009,   -0.0355289265416, -0.314623919897,  0.220508767936,
       0.21442204379,    -0.106809798577, -0.203816984882,  0.231480767422,   0.390448961754,   -0.0955290712382,
       -0.0362074691426, 0.231611177142,  0.00552348698058, -0.201821976298,  -0.318555324558,  0.275696068854},
      1e-11);
  const Bias resized =
      prepare(Decomposed{.window = kGrid, .trained_window = {4, 2}}, {.weights = view(trained.data(), {10, 4})});
  tests::expect_attention(
      x, options_of(resized, ids),
      {-0.0110697460256, 0.200980444785,  0.122347598611,   0.189437301157,    -0.0199657538252,  0.133553640665,
       0.0705264698129,  0.155498322168,  0.0194148029565,  0.201421164207,    0.171707886446,    0.150392899206,
       -0.0264014456998, 0.122334903344,  0.0436065400737,  0.21093953904,     -0.00339720772247, 0.223350695145,
       0.198662194826,   0.142691395893,  -0.0248493275084, 0.200295165367,    0.160565773933,    0.120037621041,
       0.280205897188,   -0.183110757581, -0.0332650603794, 0.274358246641,    0.283589517292,    -0.229021053095,
       -0.028922269407,  0.298446846845,  0.283594495211,   -0.00875023607378, -0.213466253525,   0.188692665525,
       0.250924637577,   -0.13080018821,  -0.154101685252,  0.237718580653,    0.353117299054,    -0.0316189193053,
       -0.104059976745,  0.223543068598,  0.172767119324,   -0.203441249589,   -0.164409478679,   0.270103090551},
      1e-11);
}

// score − scale · q·k, by the formula, on a grid that resizing leaves alone and for heads of their own.
TEST(Decomposed, IsTheFormula) {
  const std::int64_t tall = 4, wide = 3, features = 5, heads = 2, rows = 2 * tall - 1 + 2 * wide - 1;
  const std::vector<double> table = wavy(heads * rows * features, 0.4);
  const Bias form =
      prepare(Decomposed{.window = {tall, wide}}, {.weights = view(table.data(), {heads, rows, features})});
  EXPECT_EQ(position_axes_of(form), 2);
  const std::vector<std::int64_t> extents = {tall, wide};
  const auto ids = grid_positions(extents);
  Sequence x{heads, 12, 12, features};
  for (double& value : x.k) value = 0;  // only the vectors count
  std::vector<double> weights(static_cast<std::size_t>(heads * 144)), out(x.q.size());
  tests::for_each_host_engine([&] {
    AttentionOptions options = options_of(form, ids);
    options.weights = view(weights.data(), {heads, 12, 12});
    attention(view(out.data(), {heads, 12, features}), view(std::as_const(x).q.data(), {heads, 12, features}),
              view(std::as_const(x).k.data(), {heads, 12, features}),
              view(std::as_const(x).v.data(), {heads, 12, features}), options);
    for (std::int64_t h = 0; h < heads; ++h) {
      for (std::int64_t m = 0; m < 12; ++m) {
        std::vector<double> scores;
        double sum = 0;
        for (std::int64_t n = 0; n < 12; ++n) {
          double score = 0;
          for (std::int64_t f = 0; f < features; ++f) {
            const std::int64_t down = m / wide - n / wide + tall - 1,
                               across = 2 * tall - 1 + m % wide - n % wide + wide - 1;
            score += x.q[static_cast<std::size_t>((h * 12 + m) * features + f)] *
                     (table[static_cast<std::size_t>((h * rows + down) * features + f)] +
                      table[static_cast<std::size_t>((h * rows + across) * features + f)]);
          }
          scores.push_back(std::exp(score));
          sum += scores.back();
        }
        for (std::int64_t n = 0; n < 12; ++n) {
          EXPECT_NEAR(weights[static_cast<std::size_t>((h * 12 + m) * 12 + n)],
                      scores[static_cast<std::size_t>(n)] / sum, 1e-13);
        }
      }
    }
  });
}

TEST(Decomposed, GradientByFiniteDifferencesThroughResizing) {
  const Sequence x{2, 6, 6, 4};
  const auto ids = grid_positions(kGrid);
  for (const std::vector<std::int64_t>& trained : {std::vector<std::int64_t>{4, 2}, {2, 7}, {}}) {
    const Decomposed scheme{.window = kGrid, .trained_window = trained};
    const Extents shape = shape_of(trained_table_of(scheme), 4);
    std::vector<double> table = wavy(count_of(shape), 0.5);
    const std::vector<double> d_out = wavy(2 * 6 * 4, 0.8);
    const auto options = [&] {
      return options_of(prepare(scheme, {.weights = view(std::as_const(table).data(), shape)}), ids);
    };
    std::vector<double> d_vectors(8 * 4);
    AttentionGradients gradients;
    gradients.query_vectors = view(d_vectors.data(), {8, 4});
    tests::sequence_backward(x, gradients, d_out, options());
    tests::expect_slopes(
        table, backward(scheme, d_vectors), [&] { return tests::weighted_sum(x, options(), d_out); }, "table");
  }
}

TEST(Decomposed, SaysWhatIsWrong) {
  const std::vector<double> table(64);
  const auto refused = [&](Decomposed scheme, PrepareOptions options) {
    return refusal([&] { prepare(scheme, options); });
  };
  EXPECT_EQ(refused({.window = {}}, {}), "decomposed: number of extents of window must be between 1 and 3 but is 0");
  EXPECT_EQ(refused({.window = {2, 0}}, {}), "decomposed: extents of window must be between 1 and 4096 but is 0");
  EXPECT_EQ(refused({.window = {2, 2}, .trained_window = {3}}, {}),
            "decomposed: trained_window must have as many extents as window, 2, but has 1");
  EXPECT_EQ(refused({.window = {2}, .trained_window = {5000}}, {}),
            "decomposed: extents of trained_window must be between 1 and 4096 but is 5000");
  EXPECT_EQ(refused({.window = {2, 3}}, {}),
            "decomposed: the trained table of 8 rows is missing: pass it as weights");
  EXPECT_EQ(refused({.window = {2, 3}}, {.weights = view(table.data(), {16, 4})}),
            "decomposed: the table must be [8, features] or [heads, 8, features] but is [16, 4]");
  EXPECT_EQ(refusal([&] {
              backward(Decomposed{.window = {2, 3}}, std::vector<double>(9));
            }),
            "decomposed: the gradient must have 8 rows but has 9 numbers");
}

}  // namespace
}  // namespace posenc::decomposed_test
