// What schemes declare beside their fields, and what forms return.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <functional>
#include <set>
#include <utility>

#include "posenc/json.h"
#include "posenc/posenc.h"

namespace posenc::needs_test {
namespace {

std::string message_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

TEST(Needs, FormsAreMadeOfNothingElse) {
  for (const std::string_view name : scheme_names()) {
    Scheme scheme = scheme_named(name);
    double drawn = 0;
    draw_trained(scheme, [&] { return drawn = drawn < 0.5 ? drawn + 0.125 : -0.5; });
    const TrainedTable table = trained_table_of(scheme);
    const Extents shape = shape_of(table, 3);
    std::vector<double> numbers(static_cast<std::size_t>(table.axes.empty() ? 0 : count_of(shape)));
    PrepareOptions options;
    if (!table.axes.empty()) options.weights = view(numbers.data(), shape);
    if (table.has_key_weights) options.key_weights = options.weights;
    if (table.has_value_weights) options.value_weights = options.weights;
    if (length_need_of(scheme) != LengthNeed::kNone) options.length = 16;
    const Form form = prepare(scheme, options);
    EXPECT_EQ(std::holds_alternative<Bias>(form), is_bias(scheme)) << name;
    EXPECT_EQ(std::holds_alternative<Rotation>(form), is_rotation(scheme)) << name;
    // and less is not enough
    if (!table.axes.empty()) {
      PrepareOptions without = options;
      without.weights = {};
      const std::string message = message_of([&] { prepare(scheme, without); });
      EXPECT_NE(message.find(table.is_optional ? "accepted" : "missing"), std::string::npos) << name;
    }
    if (options.length > 0) {
      PrepareOptions without = options;
      without.length = 0;
      EXPECT_NE(message_of([&] { prepare(scheme, without); }), "accepted") << name;
    }
    if (table.has_key_weights) {
      PrepareOptions without = options;
      without.key_weights = {};
      EXPECT_NE(message_of([&] { prepare(scheme, without); }), "accepted") << name;
    }
  }
}

TEST(Needs, LengthOfAScalingIsThatOfItsRope) {
  EXPECT_EQ(length_need_of(Rope{}), LengthNeed::kNone);
  EXPECT_EQ(length_need_of(Rope{.scaling = YarnScaling{}}), LengthNeed::kNone);
  EXPECT_EQ(length_need_of(Rope{.scaling = DynamicScaling{}}), LengthNeed::kSequence);
  EXPECT_EQ(length_need_of(Rope{.scaling = LongropeScaling{}}), LengthNeed::kSequence);
  EXPECT_EQ(length_need_of(Kerple{}), LengthNeed::kDistances);
  EXPECT_EQ(length_need_of(Fire{}), LengthNeed::kPositions);
}

TEST(Needs, DrawnNumbersFillWhatIsEmptyAndNothingElse) {
  const auto half = [] { return 0.5; };
  Scheme fire = Fire{};
  EXPECT_TRUE(draw_trained(fire, half));
  EXPECT_FALSE(draw_trained(fire, [] { return -1.0; })) << "it has a network now";
  EXPECT_EQ(std::get<Fire>(fire).output_weights, std::vector<double>(32, 0.5));
  Scheme rope = Rope{.dims = 8, .scaling = LongropeScaling{}};
  EXPECT_TRUE(draw_trained(rope, half));
  EXPECT_EQ(std::get<LongropeScaling>(*std::get<Rope>(rope).scaling).long_factors, std::vector<double>(4, 2.5));
  Scheme plain = Rope{};
  EXPECT_FALSE(draw_trained(plain, half));
  EXPECT_EQ(plain, Scheme(Rope{}));
}

TEST(Needs, ATableSaysItsAxes) {
  EXPECT_EQ(axes_text(trained_table_of(T5{})), "[buckets, heads]");
  EXPECT_EQ(shape_of(trained_table_of(Swin{.heads = 3, .window = {2, 3}})), (Extents{15, 3}));
  EXPECT_EQ(shape_of(trained_table_of(Deberta{.buckets = 0, .max_distance = 7}), 5), (Extents{14, 5}));
  EXPECT_TRUE(has_vectors(trained_table_of(Shaw{})));
  EXPECT_FALSE(has_vectors(trained_table_of(Learned{})));
  EXPECT_TRUE(trained_table_of(Rope{}).axes.empty());
  EXPECT_EQ(axes_text(trained_table_of(RopeMixed{})), "[axes, heads, pairs]");
  EXPECT_TRUE(trained_table_of(Fope{}).is_optional);
  EXPECT_TRUE(trained_table_of(Deberta{.content_to_position = false}).is_optional);
  EXPECT_FALSE(trained_table_of(Deberta{}).is_optional);
  EXPECT_FALSE(trained_table_of(Deberta{.position_to_content = false}).has_key_weights);
  const Shaw hostile{.left = 9223372036854775807, .right = 9223372036854775807};
  EXPECT_GT(shape_of(trained_table_of(hostile), 1)[0], 1 << 20);
}

// Each head of a bias, alone.
TEST(Forms, OneHeadIsThatHead) {
  std::vector<float> weights(32 * 3);
  for (std::size_t i = 0; i < weights.size(); ++i) weights[i] = static_cast<float>(i);
  Fire fire;
  double next = -1;
  for (std::vector<double>* const list : {&fire.hidden_weights, &fire.hidden_biases, &fire.output_biases}) {
    for (int i = 0; i < 3; ++i) list->push_back(next += 0.3);
  }
  for (int i = 0; i < 9; ++i) fire.output_weights.push_back(next -= 0.2);
  const Bias forms[] = {
      prepare(Alibi{.heads = 3}), prepare(T5{.heads = 3}, {.weights = view(weights.data(), {32, 3})}),
      prepare(Kerple{.amplitudes = {1, 2, 3}, .rates = {3, 2, 1}}, {.length = 9}), prepare(fire, {.length = 9})};
  for (const Bias& form : forms) {
    std::vector<double> all(3 * 4 * 9);
    bias(view(all.data(), {3, 4, 9}), {.first = 2}, {}, form);
    std::set<std::vector<double>> different;
    for (std::int64_t head = 0; head < 3; ++head) {
      std::vector<double> one(4 * 9);
      bias(view(one.data(), {1, 4, 9}), {.first = 2}, {}, head_of(form, head));
      const auto first = all.begin() + head * 36;
      EXPECT_EQ(one, std::vector<double>(first, first + 36));
      different.insert(one);
    }
    EXPECT_EQ(different.size(), 3U);
    EXPECT_EQ(message_of([&] { head_of(form, 3); }), "head_of: head 3 of a bias with 3 heads");
    EXPECT_EQ(message_of([&] { head_of(form, -1); }), "head_of: head -1 of a bias with 3 heads");
  }
}

TEST(Forms, SomeHeadsAreThoseOfTheWhole) {
  std::vector<float> weights(32 * 4);
  for (std::size_t i = 0; i < weights.size(); ++i) weights[i] = static_cast<float>(i);
  const Fire fire{.hidden_weights = {0.5, -1},
                  .hidden_biases = {0.1, 1},
                  .output_weights = {1, 2, 3, 4, 5, 6, 7, 8},
                  .output_biases = {4, 3, 2, 1}};
  const Form forms[] = {prepare(Alibi{.heads = 4}),
                        prepare(T5{.heads = 4}, {.weights = view(weights.data(), {32, 4})}),
                        prepare(Kerple{.amplitudes = {1, 2, 3, 4}, .rates = {4, 3, 2, 1}}, {.length = 9}),
                        prepare(fire, {.length = 9})};
  for (const Form& form : forms) {
    std::vector<double> all(4 * 4 * 9), some(2 * 4 * 9);
    bias(view(all.data(), {4, 4, 9}), {.first = 2}, {}, std::get<Bias>(form));
    bias(view(some.data(), {2, 4, 9}), {.first = 2}, {}, std::get<Bias>(slice_heads(form, 1, 2)));
    EXPECT_EQ(some, std::vector<double>(all.begin() + 36, all.begin() + 3 * 36));
    for (const auto& [first, count] : {std::pair{3, 2}, {-1, 1}, {4, 1}, {0, 0}, {0, 5}}) {
      EXPECT_EQ(message_of([&, first = first, count = count] { slice_heads(form, first, count); }),
                fmt::format("slice_heads: heads from {}, {} of them, of a form with 4 heads", first, count));
    }
  }
}

TEST(Forms, SomeHeadsOfRotationsAndTemperatures) {
  for (const Form& form :
       {Form(prepare(RopeMixed{.heads = 4, .dims = 8})), Form(prepare(Fope{.heads = 4, .dims = 8}))}) {
    const Rotation& whole = std::get<Rotation>(form);
    const Rotation some = std::get<Rotation>(slice_heads(form, 2, 2));
    EXPECT_EQ(heads_of(some), 2);
    std::vector<float> x(4 * 3 * 8);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 7) - 3;
    std::vector<float> part(x.begin() + 2 * 24, x.end());
    rotate(view(x.data(), {4, 3, 8}), {.first = 5}, whole);
    rotate(view(part.data(), {2, 3, 8}), {.first = 5}, some);
    EXPECT_EQ(part, std::vector<float>(x.begin() + 2 * 24, x.end()));
    EXPECT_EQ(message_of([&] { slice_heads(form, 3, 2); }),
              "slice_heads: heads from 3, 2 of them, of a form with 4 heads");
  }
  const Form rope = prepare(Rope{.dims = 8});
  EXPECT_EQ(std::get<Rotation>(slice_heads(rope, 7, 2)).frequencies, std::get<Rotation>(rope).frequencies);
  EXPECT_EQ(message_of([&] { slice_heads(rope, -1, 2); }),
            "slice_heads: heads from -1, 2 of them, of a form with any number of heads");
  const Form scales = Nothing{Temperature{.head_scales = {1, 2, 3}}};
  EXPECT_EQ(std::get<Nothing>(slice_heads(scales, 1, 2)).temperature->head_scales, (std::vector<double>{2, 3}));
  EXPECT_EQ(message_of([&] { slice_heads(scales, 2, 2); }),
            "slice_heads: heads from 2, 2 of them, of a form with 3 heads");
}

TEST(Forms, OneHeadOfVectors) {
  std::vector<double> table(2 * 3 * 4);
  for (std::size_t i = 0; i < table.size(); ++i) table[i] = static_cast<double>(i);
  const Shaw scheme{.left = 1, .right = 1};
  const Bias each = prepare(scheme, {.weights = view(table.data(), {2, 3, 4})});
  const auto second = std::get<DistanceVectors>(head_of(each, 1).source).for_queries.table;
  EXPECT_EQ(second.shape, (Extents{1, 3, 4}));
  EXPECT_EQ(static_cast<const double*>(second.data), table.data() + 12);
  const Bias shared = prepare(scheme, {.weights = view(table.data(), {3, 4})});
  EXPECT_EQ(std::get<DistanceVectors>(head_of(shared, 7).source).for_queries.table.data, table.data());
  EXPECT_TRUE(needs_content(shared));
  EXPECT_FALSE(needs_content(prepare(Alibi{})));
}

TEST(Forms, AxesOfEveryKind) {
  const std::vector<float> weights(15 * 4);
  EXPECT_EQ(position_axes_of(Form(Nothing{})), 1);
  EXPECT_EQ(position_axes_of(Form(prepare(Sinusoidal{.width = 12, .axes = 3}))), 3);
  EXPECT_EQ(position_axes_of(Form(prepare(Steps{}))), 1);
  EXPECT_EQ(position_axes_of(Form(prepare(Rope{.dims = 24, .sections = {4, 4, 4}}))), 3);
  EXPECT_EQ(position_axes_of(Form(prepare(Alibi{}))), 1);
  const Form swin = prepare(Swin{.heads = 4, .window = {2, 3}}, {.weights = view(weights.data(), {15, 4})});
  EXPECT_EQ(position_axes_of(swin), 2);
  Rotation ready;
  ready.position_axes = 3;
  ready.source = RotationTable{view(weights.data(), {15, 4}), view(weights.data(), {15, 4})};
  EXPECT_TRUE(has_table(ready));
  EXPECT_EQ(position_axes_of(ready), 1) << "a table is read by one number";
}

TEST(Forms, Frequencies) {
  const std::vector<double> exact = frequencies_of(prepare(Rope{.dims = 4, .base = 100}));
  EXPECT_EQ(exact, (std::vector<double>{1.0, 0.1}));
  const Addition waves = prepare(Sinusoidal{.width = 4, .base = 100}, {.numerics = Numerics::kHfF32});
  ASSERT_NE(waves_of(waves), nullptr);
  const std::vector<double> narrow = frequencies_of(*waves_of(waves));
  ASSERT_EQ(narrow.size(), 2U);
  EXPECT_EQ(narrow[1], static_cast<double>(static_cast<float>(narrow[1]))) << "the float32 factor";
  EXPECT_NE(narrow[1], 0.1);
  EXPECT_NEAR(narrow[1], 0.1, 1e-8);
  EXPECT_EQ(waves_of(prepare(Steps{})), nullptr);
  EXPECT_EQ(waves_of(Form(prepare(Alibi{}))), nullptr);
}

}  // namespace
}  // namespace posenc::needs_test
