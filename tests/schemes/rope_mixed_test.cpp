// The values are those of naver-ai/rope-vit (ce85c2e5), models/vit_rope.py: init_random_2d_freqs (with turns of 0 and 1/8 in
// place of random ones), compute_mixed_cis and apply_rotary_emb, cut out and run once with torch 2.11 and float64 in place
// of float32; two heads of 8 features, a grid 3 wide and 2 high.

#include "posenc/schemes/rope_mixed.h"

#include <gtest/gtest.h>

#include <cmath>

#include "numerics/narrow.h"
#include "oracle/mpfr_wave.h"
#include "schemes/golden_array.h"
#include "schemes/published.h"

namespace posenc::rope_mixed_test {
namespace {

using tests::for_each_host_engine;
using tests::refusal;
using tests::Sequence;
using tests::wavy;

constexpr RopeMixed kSmall{.heads = 2, .dims = 8};

// x, then y, of the tokens of a grid in row-major order.
std::vector<std::int64_t> column_first(std::int64_t columns, std::int64_t rows) {
  std::vector<std::int64_t> ids;
  for (std::int64_t i = 0; i < columns * rows; ++i) ids.push_back(i % columns);
  for (std::int64_t i = 0; i < columns * rows; ++i) ids.push_back(i / columns);
  return ids;
}

TEST(RopeMixed, ValuesOfRopeVit) {
  const std::vector<double> rotated_q = {
      0.0599000499881,  0.43041365454,    0.143549597528,  0.0699295229103, -0.572411549941,  -0.569306698751,
      0.0998880021223,  0.094121157029,   0.414611645383,  0.278277961385,  0.416470567079,   0.276935418079,
      0.168351990826,   -0.51669531262,   -0.547167797382, 0.144783754275,  -0.432040504883,  0.415666025537,
      -0.367042036494,  0.610833232646,   -0.191522829703, 0.524183732784,  -0.0884784837008, -0.278903165843,
      0.724712156472,   -0.0946952987757, 0.282475134472,  0.745744786956,  0.707331957027,   -0.22645674632,
      0.635405765953,   0.151695484446,   -0.162945507389, 0.592551964734,  -0.367560908756,  -0.431238185938,
      0.367490057525,   0.0534266495945,  -0.391135852984, 0.0898675209854, -0.288855613938,  0.777777630949,
      -0.0514650803915, -0.14683923877,   -0.370337277084, -0.596879309987, -0.705019379478,  0.157456824302,
      -0.5717964156,    -0.0287471878274, -0.13847541677,  -0.581781764804, 0.597548601134,   -0.140873197413,
      -0.402452356196,  0.0994695249084,  0.305814476065,  -0.225900232562, -0.749574881485,  -0.223921294154,
      0.371363913989,   -0.133713455552,  0.670332479274,  0.474589589587,  -0.162027524887,  -0.751337386283,
      0.685111708937,   -0.167070546275,  0.267958158399,  0.514329693738,  -0.406715188258,  -0.324632958587,
      0.0426352211804,  -0.618400229667,  0.12054177738,   -0.628441585985, -0.102681670483,  -0.187042301575,
      -0.727109333065,  0.241876425317,   0.10760699583,   -0.128569332194, 0.281054189077,   -0.324465219588,
      0.397977035225,   -0.206168465512,  -0.220639984176, 0.555119475236,  -0.493905170087,  0.343612817558,
      -0.209552149209,  -0.365225780781,  0.0241823355695, -0.32474970328,  0.264333077701,   0.137620407964};
  const std::vector<double> out = {
      0.351053609999,   0.322397657852,  0.106530978318,   0.209764330555,  -0.134153022788,   -0.315013792791,
      -0.11714175429,   0.202785755441,  0.381483050308,   0.280643461156,  0.13602006634,     0.199540825427,
      -0.0709962477544, -0.333059428923, -0.118374638448,  0.225759651145,  0.282216125434,    0.346172590525,
      0.13467319094,    0.255537183446,  -0.139459285427,  -0.20357361081,  -0.114940709612,   0.165040992363,
      0.39009228311,    0.137328518289,  0.220294908044,   0.280198334489,  0.0179497614627,   -0.352496302248,
      0.0233997596905,  0.231417823342,  0.351524217673,   0.34256066805,   0.0626622838977,   0.191610721397,
      -0.106383029881,  -0.279556742692, -0.159042489231,  0.193063921242,  0.360736987092,    0.371589932736,
      0.055735224489,   0.179298630822,  -0.160317933446,  -0.305713284657, -0.188084474647,   0.211243604109,
      -0.133238028336,  -0.226044848815, 0.12636065947,    -0.292986022591, 0.321174082076,    -0.169928869258,
      -0.0474390779385, 0.22236289205,   -0.0783956472123, -0.170250115137, 0.0459386004597,   -0.322531396647,
      0.323000658736,   -0.206159309985, 0.0569648194765,  0.287180517518,  -0.0509904467509,  -0.296662007489,
      0.207907562816,   -0.189907726106, 0.336043756494,   -0.130110655953, -0.090544840493,   0.145564441315,
      -0.1055549377,    -0.268008919123, 0.176758652996,   -0.278344240153, 0.295967236341,    -0.167502735188,
      -0.082048790132,  0.229190606456,  -0.092052547408,  -0.226009079456, 0.143584833166,    -0.281404793903,
      0.318541919822,   -0.172572465685, -0.0327671753555, 0.244081923475,  -0.135642197272,   -0.196724127401,
      0.0992574766798,  -0.312129535072, 0.309368281473,   -0.193514522522, -0.00145279951111, 0.238432476631};
  const std::vector<double> frequencies = wavy(16, 0.5);
  const std::vector<std::int64_t> ids = column_first(3, 2);
  const Positions grid{.ids = ids, .axes = 2};
  const Rotation form = prepare(kSmall, {.weights = view(frequencies.data(), {2, 2, 4})});
  Sequence x{2, 6, 6, 8};
  tests::expect_attention(x, {.position = form, .query_positions = grid, .key_positions = grid}, out, 1e-11);
  for_each_host_engine([&] {
    std::vector<double> q = x.q;
    rotate(view(q.data(), {2, 6, 8}), grid, form);
    for (std::size_t i = 0; i < q.size(); ++i) EXPECT_NEAR(q[i], rotated_q[i], 1e-11) << i;
  });
}

TEST(RopeMixed, FrequenciesBeforeTraining) {
  const std::vector<double> want = {// [2, heads, pairs]
                                    1,
                                    0.1,
                                    6.12323399574e-17,
                                    6.12323399574e-18,
                                    0.707106781187,
                                    0.0707106781187,
                                    -0.707106781187,
                                    -0.0707106781187,
                                    0,
                                    0,
                                    1,
                                    0.1,
                                    0.707106781187,
                                    0.0707106781187,
                                    0.707106781187,
                                    0.0707106781187};
  const Rotation form = prepare(RopeMixed{.heads = 2, .dims = 8, .directions = {0, 0.125}});
  const std::vector<double> got = frequencies_of(form);  // [heads, pairs, 2]
  ASSERT_EQ(got.size(), want.size());
  for (std::size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], want[i % 2 * 8 + i / 2], 1e-12) << i;
  EXPECT_EQ(frequencies_of(prepare(RopeMixed{.heads = 8, .dims = 8}))[8 * 1],
            frequencies_of(prepare(RopeMixed{.heads = 1, .dims = 8, .directions = {0.125}}))[0]);
}

// Σ position · frequency by MPFR: correctly rounded, far out and at negative positions too.
TEST(RopeMixed, ExactToTheLastBit) {
  const std::vector<double> frequencies = {0.75, -1.5, 3.25, 0.001, -0.6, 1e-9, 2.5, 0.1,
                                           -0.3, 1.25, 0.5,  -2,    0.07, 0.9,  -1,  3};
  const Rotation form = prepare(kSmall, {.weights = view(frequencies.data(), {2, 2, 4})});
  const std::int64_t last = kPositionLimit - 1;
  const std::vector<std::int64_t> ids = {0, 1,  -3, 1000003, last,  -last, 77,  //
                                         0, -2, 5,  -39001,  -last, last,  131071};
  constexpr std::int64_t tokens = 7;
  for_each_host_engine([&] {
    for (std::int64_t head = 0; head < 2; ++head) {
      const Rotation one = head_of(form, head);
      std::vector<float> cosines(tokens * 4), sines(tokens * 4);
      std::vector<double> wide_cosines(tokens * 4), wide_sines(tokens * 4);
      const Positions positions{.ids = ids, .axes = 2};
      tabulate(view(cosines.data(), {tokens, 4}), view(sines.data(), {tokens, 4}), positions, one);
      tabulate(view(wide_cosines.data(), {tokens, 4}), view(wide_sines.data(), {tokens, 4}), positions, one);
      for (std::int64_t i = 0; i < tokens * 4; ++i) {
        const auto at = static_cast<std::size_t>(i), token = static_cast<std::size_t>(i / 4);
        const auto pair = static_cast<std::size_t>(head * 4 + i % 4);
        const std::vector<double> radians = {frequencies[pair], frequencies[8 + pair]};
        const std::vector<std::int64_t> where = {ids[token], ids[token + tokens]};
        const auto exact = [&](unsigned quarter, auto precision) {
          return oracle::mpfr_wave_of_sum(radians, where, quarter, precision);
        };
        EXPECT_EQ(static_cast<double>(cosines[at]), exact(1, oracle::kF32)) << head << " " << i;
        EXPECT_EQ(static_cast<double>(sines[at]), exact(0, oracle::kF32)) << head << " " << i;
        EXPECT_EQ(wide_cosines[at], exact(1, oracle::kF64)) << head << " " << i;
        EXPECT_EQ(wide_sines[at], exact(0, oracle::kF64)) << head << " " << i;
      }
    }
  });
}

// Every head by itself, and all of them at once, in every type and order of axes, on every backend: the same bytes.
template <class T> void expect_heads_alone(PairLayout layout) {
  constexpr std::int64_t heads = 5, tokens = 40, features = 40, dims = 36;
  const Rotation form = prepare(RopeMixed{.heads = heads, .dims = dims, .layout = layout});
  const std::vector<std::int64_t> ids = column_first(8, 5);
  const Positions grid{.ids = ids, .axes = 2};
  std::vector<T> x;
  for (std::int64_t i = 0; i < 2 * heads * tokens * features; ++i) {
    x.push_back(numerics::narrow<T>(std::sin(static_cast<double>(i * i % 977))));
  }
  std::vector<T> first;
  for_each_host_engine([&] {
    std::vector<T> whole = x, alone = x, inside(x.size());
    rotate(view(whole.data(), {2, heads, tokens, features}), grid, form);
    for (std::int64_t h = 0; h < heads; ++h) {
      const TensorView one(alone.data() + h * tokens * features, data_type_of<T>(), {2, 1, tokens, features},
                           {heads * tokens * features, tokens * features, features, 1});
      rotate(one, grid, head_of(form, h));
    }
    EXPECT_TRUE(whole == alone);
    const TensorView by_token = swap_axes(view(inside.data(), {2, tokens, heads, features}), 1, 2);
    rotate(by_token, view(static_cast<const T*>(x.data()), {2, heads, tokens, features}), grid, form);
    for (std::int64_t i = 0; i < std::ssize(x); ++i) {
      const std::int64_t f = i % features, h = i / features % heads, t = i / features / heads % tokens,
                         b = i / features / heads / tokens;
      ASSERT_TRUE(inside[static_cast<std::size_t>(i)] ==
                  whole[static_cast<std::size_t>(((b * heads + h) * tokens + t) * features + f)]);
    }
    if (first.empty()) first = whole;
    EXPECT_TRUE(first == whole);
    rotate_backward(view(whole.data(), {2, heads, tokens, features}), grid, form);  // a rotation: back where it was
    for (std::size_t i = 0; i < x.size(); ++i) {
      ASSERT_NEAR(numerics::widen(whole[i]), numerics::widen(x[i]), sizeof(T) == 2 ? 2e-2 : 1e-6);
    }
  });
}

TEST(RopeMixed, HeadsAloneAndTogether) {
  for (const PairLayout layout : {PairLayout::kInterleaved, PairLayout::kHalves, PairLayout::kInterleavedToHalves}) {
    expect_heads_alone<float>(layout);
    expect_heads_alone<double>(layout);
    expect_heads_alone<Half>(layout);
    expect_heads_alone<BFloat16>(layout);
  }
}

// q and k by attention_backward, frequencies by frequencies_backward on top of it; keys of the same tokens.
TEST(RopeMixed, GradientsByFiniteDifferences) {
  std::vector<double> frequencies = wavy(16, 0.5);
  const std::vector<std::int64_t> ids = column_first(3, 2);
  const Positions grid{.ids = ids, .axes = 2};
  Sequence x{2, 6, 6, 8};
  const std::vector<double> d_out = wavy(2 * 6 * 8, 0.8);
  const auto options = [&] {
    return AttentionOptions{.position = prepare(kSmall, {.weights = view(frequencies.data(), {2, 2, 4})}),
                            .query_positions = grid,
                            .key_positions = grid};
  };
  const auto sum = [&] { return tests::weighted_sum(x, options(), d_out); };
  for_each_host_engine([&] {
    std::vector<double> dq(x.q.size()), dk(x.k.size()), dv(x.v.size()), d_frequencies(16);
    const Extents shape{2, 6, 8};
    tests::sequence_backward(
        x, {.q = view(dq.data(), shape), .k = view(dk.data(), shape), .v = view(dv.data(), shape)}, d_out, options());
    // [heads, pairs, axes] of the form, [axes, heads, pairs] in memory
    const TensorView gradient(d_frequencies.data(), DataType::kF64, {2, 4, 2}, {4, 1, 8});
    const Rotation form = std::get<Rotation>(options().position);
    frequencies_backward(gradient, {view(x.q.data(), shape), view(dq.data(), shape)}, grid, form);
    frequencies_backward(gradient, {view(x.k.data(), shape), view(dk.data(), shape)}, grid, form);
    tests::expect_slopes(x.q, dq, sum, "q");
    tests::expect_slopes(x.k, dk, sum, "k");
    tests::expect_slopes(x.v, dv, sum, "v");
    tests::expect_slopes(frequencies, d_frequencies, sum, "frequencies");
  });
}

// Of plain rope as well: one frequency for all heads, on the axis of its pair.
TEST(RopeMixed, FrequenciesOfRope) {
  Rotation form;
  std::vector<double> frequencies = {0.3, -0.7};
  form.source = PairWaves{.axes = {0, 1}};
  form.position_axes = 2;
  const std::vector<std::int64_t> ids = {3, -1, 4, 2, 0, 5};
  std::vector<double> x = wavy(2 * 3 * 4, 0.4);
  const std::vector<double> d_out = wavy(2 * 3 * 4, 0.9);
  const auto prepared = [&] {
    form.frequencies = {frequency_from_radians(frequencies[0]), frequency_from_radians(frequencies[1])};
    return form;
  };
  const auto sum = [&] {
    std::vector<double> y = x;
    rotate(view(y.data(), {2, 3, 4}), {.ids = ids, .axes = 2}, prepared());
    double total = 0;
    for (std::size_t i = 0; i < y.size(); ++i) total += y[i] * d_out[i];
    return total;
  };
  std::vector<double> d_x = d_out, gradient(2);
  rotate_backward(view(d_x.data(), {2, 3, 4}), {.ids = ids, .axes = 2}, prepared());
  frequencies_backward(view(gradient.data(), {2}), {view(x.data(), {2, 3, 4}), view(d_x.data(), {2, 3, 4})},
                       {.ids = ids, .axes = 2}, prepared());
  tests::expect_slopes(frequencies, gradient, sum, "frequencies");
}

// Directions of a head: at 0 the pairs are those of axial rope, at a quarter they change places.
TEST(RopeMixed, WithoutDirectionsItIsAxial) {
  const std::vector<std::int64_t> ids = column_first(4, 4);
  const Rotation mixed = prepare(RopeMixed{.heads = 1, .dims = 16, .directions = {0}});
  const Rotation axial = prepare(Rope{.dims = 16,
                                      .base = 100,
                                      .layout = PairLayout::kInterleaved,
                                      .sections = {4, 4},
                                      .section_order = SectionOrder::kRestarting});
  std::vector<float> one(16 * 16, 0.5f), other = one;
  rotate(view(one.data(), {16, 16}), {.ids = ids, .axes = 2}, mixed);
  rotate(view(other.data(), {16, 16}), {.ids = ids, .axes = 2}, axial);
  EXPECT_EQ(one, other);
}

TEST(RopeMixed, FractionsOfAPosition) {
  const std::vector<double> frequencies = wavy(16, 0.5);
  const Rotation whole = prepare(kSmall, {.weights = view(frequencies.data(), {2, 2, 4})});
  const Rotation thirds = prepare(kSmall, {.weights = view(frequencies.data(), {2, 2, 4}), .denominators = {3, 5}});
  const std::vector<std::int64_t> ids = {2, -7}, finer = {6, -35};
  std::vector<double> one = wavy(16, 0.1), other = one;
  rotate(view(one.data(), {2, 1, 8}), {.ids = ids, .axes = 2}, whole);
  rotate(view(other.data(), {2, 1, 8}), {.ids = finer, .axes = 2}, thirds);
  for (std::size_t i = 0; i < one.size(); ++i) EXPECT_NEAR(one[i], other[i], 1e-15);
}

TEST(RopeMixed, SaysWhatIsWrong) {
  EXPECT_EQ(refusal([] { prepare(RopeMixed{.dims = 6}); }), "rope-mixed: dims must be a multiple of 4 but is 6");
  EXPECT_EQ(refusal([] { prepare(RopeMixed{.heads = 0}); }),
            "rope-mixed: heads must be between 1 and 65536 but is 0");
  EXPECT_EQ(refusal([] { prepare(RopeMixed{.heads = 65536, .dims = 512}); }),
            "rope-mixed: 65536 heads of 512 dims have more than 2^24 frequencies");
  EXPECT_EQ(refusal([] { prepare(RopeMixed{.base = 1}); }),
            "rope-mixed: base must be above 1 and at most 1e36 but is 1");
  EXPECT_EQ(refusal([] { prepare(RopeMixed{.heads = 2, .directions = {0}}); }),
            "rope-mixed: directions must be 2, one for each head, but are 1");
  EXPECT_EQ(refusal([] { prepare(RopeMixed{.heads = 1, .directions = {2}}); }),
            "rope-mixed: a direction must be from -1 to 1 turns but is 2");
  EXPECT_EQ(refusal([] { prepare(RopeMixed{}, {.numerics = Numerics::kHfF32}); }),
            "rope-mixed: hf-f32 is not available: two angles are added");
  const std::vector<double> nan(16, std::nan(""));
  EXPECT_EQ(refusal([&] {
              prepare(kSmall, {.weights = view(nan.data(), {2, 2, 4})});
            }),
            "rope-mixed: a frequency must be at most 2^100 but is nan");
  EXPECT_EQ(refusal([&] {
              prepare(kSmall, {.weights = view(nan.data(), {2, 4, 2})});
            }),
            "rope-mixed: the table must be [2, 2, 4] but is [2, 4, 2]");
  const Rotation form = prepare(kSmall);
  std::vector<float> x(3 * 8), gradient(16);
  const std::vector<std::int64_t> ids = {0, 0};
  EXPECT_EQ(refusal([&] {
              rotate(view(x.data(), {3, 1, 8}), {.ids = ids, .axes = 2}, form);
            }),
            "rotate: x has 3 heads, but the form has a separate rotation for each of 2");
  EXPECT_EQ(refusal([&] {
              tabulate(view(x.data(), {1, 4}), view(x.data() + 4, {1, 4}), {.ids = ids, .axes = 2}, form);
            }),
            "tabulate: the form has a separate rotation for each of 2 heads; select one with head_of");
  EXPECT_EQ(refusal([&] { head_of(form, 2); }), "head_of: head 2 of a rotation of 2");
  EXPECT_EQ(refusal([&] {
              shift(view(x.data(), {2, 1, 8}), 3, form);
            }),
            "shift: rotations that differ from head to head, summed axes and mixtures are not supported");
  EXPECT_EQ(refusal([&] {
              frequencies_backward(view(gradient.data(), {16}),
                                   {view(x.data(), {2, 1, 8}), view(x.data(), {2, 1, 8})}, {.ids = ids, .axes = 2},
                                   form);
            }),
            "frequencies_backward: d_frequencies must be [2, 4, 2] but is [16]");
  Rotation broken = form;
  broken.frequencies.pop_back();
  EXPECT_EQ(refusal([&] {
              rotate(view(x.data(), {2, 1, 8}), {.ids = ids, .axes = 2}, broken);
            }),
            "rotate: the form's 15 frequencies do not divide among 2 heads and 2 axes");
}

}  // namespace
}  // namespace posenc::rope_mixed_test
