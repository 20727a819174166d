// What rotate and rope reject: one clear line each, and nothing is written.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <functional>
#include <limits>

#include "posenc/posenc.h"

namespace posenc::rotate_refusals_test {
namespace {

struct Refusal {
  std::function<void()> act;
  std::string message;
};

void expect_refusals(const std::vector<Refusal>& refusals) {
  for (const Refusal& one : refusals) {
    try {
      one.act();
      ADD_FAILURE() << "accepted, but should say: " << one.message;
    } catch (const Error& error) {
      EXPECT_EQ(error.what(), one.message);
    }
  }
}

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

TEST(RopeRefuses, FieldsOutOfRange) {
  const auto rope = [](const Rope& scheme, const PrepareOptions& options = {}) {
    return [=] { prepare(scheme, options); };
  };
  const auto scaled = [&](const RopeScaling& scaling, const PrepareOptions& options = {}) {
    return rope(Rope{.dims = 8, .scaling = scaling}, options);
  };
  const std::string long_list =
      "rope: long_factors of scaling longrope must have one number for each of 4 pairs but has 3";
  expect_refusals({
      {rope({.dims = 7}), "rope: dims must be even but is 7"},
      {rope({.dims = 0}), "rope: dims must be between 2 and 1048576 but is 0"},
      {rope({.dims = -2}), "rope: dims must be between 2 and 1048576 but is -2"},
      {rope({.dims = 2097152}), "rope: dims must be between 2 and 1048576 but is 2097152"},
      {rope({.base = kNan}), "rope: base must be above 1 and at most 1e36 but is nan"},
      {rope({.base = 1.0}), "rope: base must be above 1 and at most 1e36 but is 1"},
      {rope({.base = -10000.0}), "rope: base must be above 1 and at most 1e36 but is -10000"},
      {rope({.sign = 0}), "rope: sign must be 1 or -1 but is 0"},
      {rope({.first_dim = -9000000}), "rope: first_dim must be between -1048576 and 1048576 but is -9000000"},
      {rope({.sections = {16, 24, 23}}), "rope: sections must sum to 64 pairs (dims/2) but sum to 63"},
      {rope({.sections = {65, -1}}), "rope: a section must be between 0 and 64 but is 65"},
      {rope({.sections = {8, 8, 8, 8, 8, 8, 8, 4, 4}}),
       "rope: the number of sections must be between 1 and 8 but is 9"},
      {rope({.sections = {40, 24}, .section_order = SectionOrder::kEvenOdd}),
       "rope: sections must be equal for section_order even-odd but are 40 and 24"},
      {rope({.sections = {32, 32}, .section_order = SectionOrder::kEvenOdd}, {.numerics = Numerics::kGgmlF32}),
       "rope: ggml-f32 multiplies from pair to pair, which section_order even-odd does not allow"},
      {scaled(LinearScaling{.factor = 0}), "rope: factor of scaling linear must be above 0 and finite but is 0"},
      {scaled(LinearScaling{.factor = kNan}), "rope: factor of scaling linear must be above 0 and finite but is nan"},
      {scaled(NtkScaling{.factor = -1}), "rope: factor of scaling ntk must be above 0 and finite but is -1"},
      {scaled(NtkFixedScaling{.factor = 0}), "rope: factor of scaling ntk-fixed must be above 0 and finite but is 0"},
      {scaled(AlphaScaling{.alpha = 0}), "rope: alpha of scaling alpha must be above 0 and finite but is 0"},
      {rope({.dims = 2, .scaling = NtkScaling{.factor = 2}}),
       "rope: scaling ntk needs more than one pair, but dims is 2"},
      {scaled(DynamicScaling{.factor = 2}),
       "rope: scaling dynamic depends on the length of the sequence, which is not given"},
      {scaled(DynamicScaling{.factor = 2, .original_length = 0}, {.length = 5}),
       "rope: original_length of scaling dynamic must be between 1 and 2^53 but is 0"},
      {scaled(YarnScaling{.factor = 0}), "rope: factor of scaling yarn must be above 0 and finite but is 0"},
      {scaled(YarnScaling{.beta_fast = 1, .beta_slow = 32}),
       "rope: beta_fast of scaling yarn must not be below beta_slow, but they are 1 and 32"},
      {scaled(YarnScaling{.attention_factor = 0.0}),
       "rope: attention_factor of scaling yarn must be above 0 and finite but is 0"},
      {scaled(YarnScaling{.mscale = kNan}), "rope: mscale of scaling yarn must be a finite number but is nan"},
      {scaled(LongropeScaling{.short_factors = {1, 1, 1, 1}, .long_factors = {1, 1, 1}}, {.length = 9}), long_list},
      {scaled(LongropeScaling{.short_factors = {1, 1, 1, 0}, .long_factors = {1, 1, 1, 1}}, {.length = 9}),
       "rope: short_factors of scaling longrope must be above 0 and finite but is 0"},
      {scaled(LongropeScaling{.short_factors = {1, 1, 1, 1}, .long_factors = {1, 1, 1, 1}}),
       "rope: scaling longrope depends on the length of the sequence, which is not given"},
      {scaled(Llama3Scaling{.low_freq_factor = 8, .high_freq_factor = 4}),
       "rope: low_freq_factor of scaling llama3 must be at most high_freq_factor, but they are 8 and 4"},
      {scaled(ProportionalScaling{.proportion = 1.5}),
       "rope: proportion of scaling proportional must be between 0 and 1 but is 1.5"},
      {scaled(XposScaling{.scale_base = 0}), "rope: scale_base of scaling xpos must be above 0 and finite but is 0"},
      {scaled(XposScaling{.centre = -1}),
       "rope: centre of scaling xpos must be between 0 and 9007199254740991 but is -1"},
  });
}

TEST(RotateRefuses, WhatDoesNotFit) {
  std::vector<float> x(2 * 4 * 8), more(64), before;
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i);
  before = x;
  const Rotation form = prepare(Rope{.dims = 8});
  const TensorView tensor = view(x.data(), {2, 4, 8});
  const auto rotating = [&](const Positions& positions, const Rotation& by) {
    return [=] { rotate(tensor, positions, by); };
  };
  const auto with = [&](const std::function<void(Rotation&)>& change) {
    Rotation changed = form;
    change(changed);
    return changed;
  };
  const std::vector<std::int64_t> three = {0, 1, 2}, far = {0, 1, 2, std::int64_t{1} << 53};
  const auto table = [&](const Extents& cosines, const Extents& sines) {
    return Rotation{.source = RotationTable{view(more.data(), cosines), view(more.data(), sines)}};
  };
  expect_refusals({
      {rotating({}, prepare(Rope{.dims = 10})), "rotate: x has 8 features, but the form rotates 10 from feature 0"},
      {rotating({}, prepare(Rope{.dims = 8, .first_dim = 1})),
       "rotate: x has 8 features, but the form rotates 8 from feature 1"},
      {rotating({}, prepare(Rope{.dims = 8, .first_dim = -6})),
       "rotate: x has 8 features, but the form rotates 8 from feature -6"},
      {rotating({}, prepare(Rope{.dims = 8, .first_dim = -9})),
       "rotate: x has 8 features, but the form rotates 8 from feature -9"},
      {rotating({.first = -kPositionLimit}, form),
       "rotate: position -9007199254740992 is outside -2^53 + 1 to 2^53 - 1"},
      {rotating({.first = (std::int64_t{1} << 53) - 3}, form),
       "rotate: position 9007199254740992 is outside -2^53 + 1 to 2^53 - 1"},
      {rotating({.ids = far}, form), "rotate: position 9007199254740992 is outside -2^53 + 1 to 2^53 - 1"},
      {rotating({.ids = three}, form), "rotate: 3 position ids do not fit 1 sequences of 4 tokens and 1 axes"},
      {rotating({.ids = three, .axes = 3}, form), "rotate: the form has 1 position axes but the positions have 3"},
      {rotating({}, Rotation{}), "rotate: the form has no frequencies"},
      {rotating({}, with([](Rotation& r) { r.sign = 2; })), "rotate: the form's sign must be 1 or -1 but is 2"},
      {rotating({}, with([](Rotation& r) { r.magnitude = kNan; })),
       "rotate: the form's magnitude must be between -32768 and 32768 but is nan"},
      {rotating({}, with([](Rotation& r) { r.blocks = 3; })),
       "rotate: the form's 4 pairs do not divide into 3 blocks"},
      {rotating({}, with([](Rotation& r) {
                  std::get<PairWaves>(r.source).axes = {0, 0};
                })),
       "rotate: the form has 4 pairs but 2 axes"},
      {rotating({}, with([](Rotation& r) {
                  std::get<PairWaves>(r.source).axes = {0, 0, 1, 0};
                })),
       "rotate: a pair has axis 1 of 1"},
      {rotating({}, with([](Rotation& r) { r.precision.table = DataType::kI64; })),
       "rotate: a rotation cannot be done in i64"},
      {rotating({}, with([](Rotation& r) { r.precision.table = DataType::kE4M3; })),
       "rotate: a rotation cannot be done in e4m3"},
      {rotating({}, with([](Rotation& r) { r.precision.arithmetic = DataType::kQ8_0; })),
       "rotate: a rotation cannot be done in q8_0"},
      {rotating({}, with([](Rotation& r) { std::get<PairWaves>(r.source).float32_angles.factors = {1.0f}; })),
       "rotate: the form has 4 pairs but 1 float32 factors"},
      {rotating({.first = 100'000}, prepare(Rope{.dims = 8, .scaling = XposScaling{}})),
       "rotate: position 100000 is too far from the centre 0: growth allows a distance of 32695"},
      {rotating({}, table({4, 4}, {4, 2})),
       "rotate: the table of cosines has shape [4, 4] but that of sines has [4, 2]"},
      {rotating({}, table({3, 4}, {3, 4})),
       "rotate: position 3 is past the table: 3 rows with offset 0 end at position 2"},
      {rotating({}, table({2, 4, 4}, {2, 4, 4})),
       "rotate: the table has shape [2, 4, 4], but there are 1 sequences of 4 tokens"},
      {rotating({}, table({16}, {16})),
       "rotate: the table of cosines must have 2 axes, rows and pairs, or 3, batch, sequence and pairs, but has 1"},
      {rotating({}, table({4, 5}, {4, 5})), "rotate: x has 8 features, but the form rotates 10 from feature 0"},
      {[&] { rotate(view(x.data(), {8}), {}, form); },
       "rotate: x must have 2 to 4 axes, batch, heads, sequence, features, but has 1"},
      {[&] {
         rotate(view(x.data(), {2, 4, 8}), view(more.data(), {2, 8, 4}), {}, form);
       },
       "rotate: out has shape [2, 4, 8] but x has [2, 8, 4]"},
      {[&] {
         rotate(view(x.data(), {1, 8}), view(x.data() + 1, {1, 8}), {}, form);
       },
       "rotate: out must either be x or not overlap it"},
      {[&] {  // columns 0 to 7 of 10, and columns 2 to 9
         rotate(TensorView(x.data(), DataType::kF32, {3, 8}, {10, 1}),
                TensorView(x.data() + 2, DataType::kF32, {3, 8}, {10, 1}), {}, form);
       },
       "rotate: out must either be x or not overlap it"},
      {[&] {
         rotate(TensorView(x.data(), DataType::kF32, {4, 8}, {4, 1}), {}, form);
       },
       "rotate: x is not writable: with shape [4, 8] and strides [4, 1], two elements share an address"},
      {[&] {  // 2·3 = 3·2
         rotate(TensorView(x.data(), DataType::kF32, {3, 8}, {3, 2}), {}, form);
       },
       "rotate: x is not writable: with shape [3, 8] and strides [3, 2], two elements share an address"},
      {[&] {
         rotate(TensorView(x.data(), DataType::kF32, {4, 8}, {0, 1}), {}, form);
       },
       "rotate: x cannot be written: axis 0 has stride 0"},
      {[&] {
         rotate(QueryKey<TensorView>{tensor, view(more.data(), {1, 2, 8})}, {}, form);
       },
       "rotate: q has 1 sequences of 4 tokens but k has 1 of 2"},
      {[&] { rerotate(tensor, {}, form, prepare(Rope{.dims = 6})); },
       "rerotate: the two rotate different features: 4 pairs from 0 in 1 blocks, and 3 from 0 in 1"},
      {[&] {
         static_cast<void>(inverse(table({4, 4}, {4, 4})));
       },
       "inverse: a rotation by a table need not have an inverse"},
      {[&] { static_cast<void>(inverse(with([](Rotation& r) { r.magnitude = 0; }))); },
       "inverse: a magnitude of 0 cannot be undone"},
      {[&] {
         tabulate(tensor, tensor, {}, table({4, 4}, {4, 4}));
       },
       "tabulate: the form is a table already"},
  });
  EXPECT_EQ(x, before);
}

// Rows of out stand between rows of x: every other column, columns beside each other, one of them from the end, and rows of
// two lengths.
TEST(Rotate, TakesPartsOfOneArray) {
  const Rotation form = prepare(Rope{.dims = 8});
  const auto expect_taken = [&](std::int64_t out_first, std::int64_t x_first, const Extents& out_strides,
                                const Extents& x_strides) {
    std::vector<float> array, alone(24), wanted(24);
    for (int i = 0; i < 64; ++i) array.push_back(static_cast<float>(i % 7) - 3.0f);
    const std::vector<float> before = array;
    for (std::int64_t i = 0; i < 24; ++i) {
      alone[static_cast<std::size_t>(i)] =
          array[static_cast<std::size_t>(x_first + i / 8 * x_strides[0] + i % 8 * x_strides[1])];
    }
    rotate(view(wanted.data(), {3, 8}), view(alone.data(), {3, 8}), {.first = 3}, form);
    rotate(TensorView(array.data() + out_first, DataType::kF32, {3, 8}, out_strides),
           TensorView(array.data() + x_first, DataType::kF32, {3, 8}, x_strides), {.first = 3}, form);
    std::vector<float> after = before;
    for (std::int64_t i = 0; i < 24; ++i) {
      after[static_cast<std::size_t>(out_first + i / 8 * out_strides[0] + i % 8 * out_strides[1])] =
          wanted[static_cast<std::size_t>(i)];
    }
    EXPECT_EQ(array, after);
  };
  expect_taken(0, 8, {16, 1}, {16, 1});
  expect_taken(8, 0, {16, 1}, {16, 1});
  expect_taken(0, 1, {16, 2}, {16, 2});
  expect_taken(40, 0, {-16, 1}, {16, 1});
  expect_taken(0, 1, {16, 2}, {18, 2});
}

TEST(Rotate, AnEmptyTensorIsNothingToDo) {
  std::vector<float> x(64, 0.5F);
  EXPECT_NO_THROW(rotate(view(x.data(), {0, 4, 0, 8}), {.first = 3}, prepare(Rope{.dims = 8})));
  EXPECT_NO_THROW(rotate(view(x.data(), {2, 0, 3, 8}), {.first = 3}, prepare(Rope{.dims = 8})));
  EXPECT_EQ(x, std::vector<float>(64, 0.5F));
}

// [tokens, heads, features] is rotated along its tokens, as [heads, tokens, features] is.
TEST(RotateAxes, AreSaidByAWord) {
  const Rotation form = prepare(Rope{.dims = 4});
  std::vector<float> heads_first_x, tokens_first_x;
  const auto value = [](int h, int t, int f) { return static_cast<float>(h * 100 + t * 10 + f + 1); };
  for (int h = 0; h < 2; ++h) {
    for (int t = 0; t < 3; ++t) {
      for (int f = 0; f < 4; ++f) heads_first_x.push_back(value(h, t, f));
    }
  }
  for (int t = 0; t < 3; ++t) {
    for (int h = 0; h < 2; ++h) {
      for (int f = 0; f < 4; ++f) tokens_first_x.push_back(value(h, t, f));
    }
  }
  std::vector<float> both = tokens_first_x, keys = tokens_first_x, back = tokens_first_x;
  rotate(view(heads_first_x.data(), {2, 3, 4}), {.first = 5}, form);
  rotate(view(tokens_first_x.data(), {3, 2, 4}), Axes::kThd, {.first = 5}, form);
  rotate({view(both.data(), {1, 3, 2, 4}), view(keys.data(), {1, 3, 2, 4})}, Axes::kBshd, {.first = 5}, form);
  for (std::size_t h = 0; h < 2; ++h) {
    for (std::size_t t = 0; t < 3; ++t) {
      for (std::size_t f = 0; f < 4; ++f) {
        const std::size_t at = (t * 2 + h) * 4 + f;
        EXPECT_EQ(tokens_first_x[at], heads_first_x[(h * 3 + t) * 4 + f]);
        EXPECT_EQ(both[at], tokens_first_x[at]);
        EXPECT_EQ(keys[at], tokens_first_x[at]);
      }
    }
  }
  rotate_backward(view(tokens_first_x.data(), {3, 2, 4}), Axes::kShd, {.first = 5}, form);
  for (std::size_t i = 0; i < back.size(); ++i) EXPECT_NEAR(tokens_first_x[i], back[i], 1e-4f);
  try {
    rotate(view(back.data(), {3, 2, 4}), Axes::kBshd, {.first = 5}, form);
    ADD_FAILURE() << "accepted";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "axes bshd need a tensor of 4 axes, but shape [3, 2, 4] has 3");
  }
}

// Threads of one call: the same bytes, and the setting of the process stays.
TEST(RotateAxes, ThreadsOfACallAreItsOwn) {
  const Rotation form = prepare(Rope{.dims = 8});
  std::vector<float> one(64 * 1024, 0.5f), three = one;
  set_threads(2);
  rotate(view(one.data(), {8192, 8}), {.first = 0}, form, {.threads = 1});
  rotate(view(three.data(), {8192, 8}), {.first = 0}, form, {.threads = 3});
  EXPECT_EQ(one, three);
  EXPECT_EQ(threads(), 2);
  set_threads(0);
  EXPECT_THROW(rotate(view(one.data(), {8192, 8}), {.first = 0}, form, {.threads = -1}), Error);
}

}  // namespace
}  // namespace posenc::rotate_refusals_test
