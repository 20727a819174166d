// The values are those of transformers 5.16 (d56c55bf): create_coords_table_and_index of modeling_swinv2.py and the
// network below, with float64 in place of float32, run once with torch 1.13.

#include <gtest/gtest.h>

#include <cmath>

#include "backends.h"
#include "posenc/posenc.h"
#include "schemes/golden_array.h"

namespace posenc::log_cpb_test {
namespace {

using tests::refusal;

LogCpb network(std::vector<std::int64_t> trained = {}) {
  LogCpb scheme{.heads = 3, .window = {3, 4}, .trained_window = std::move(trained)};
  for (int i = 0; i < 4; ++i) {
    for (int j = 0; j < 2; ++j) scheme.hidden_weights.push_back(((3 * i + 5 * j) % 7 - 3) / 4.0);
    scheme.hidden_biases.push_back((2 * i % 5 - 2) / 8.0);
  }
  for (int h = 0; h < 3; ++h) {
    for (int i = 0; i < 4; ++i) scheme.output_weights.push_back(((4 * h + 3 * i) % 9 - 4) / 2.0);
  }
  return scheme;
}

struct Value {
  std::size_t head, query, key;
  double bias;
};

TEST(LogCpb, ValuesOfTransformers) {
  struct Case {
    std::vector<std::int64_t> trained;
    std::vector<Value> values;
  };
  const std::vector<Case> cases = {
      {{},
       {{0, 0, 0, 8.994824014},
        {1, 0, 11, 11.013821675},
        {2, 11, 0, 10.524134628},
        {0, 5, 6, 5.134374775},
        {1, 2, 9, 8.0},
        {2, 7, 1, 10.057534302},
        {0, 3, 8, 1.681894275},
        {1, 10, 4, 2.735915936}}},
      {{12, 6},
       {{0, 0, 0, 8.994824014},
        {1, 0, 11, 10.454382256},
        {2, 11, 0, 9.550538326},
        {0, 5, 6, 6.348067384},
        {1, 2, 9, 7.754005589},
        {2, 7, 1, 9.229493253},
        {0, 3, 8, 4.772134007},
        {1, 10, 4, 4.528468549}}},
  };
  const std::vector<std::int64_t> extents = {3, 4};
  const auto ids = grid_positions(extents);
  for (const Case& one : cases) {
    const Bias form = prepare(network(one.trained));
    tests::for_each_engine([&] {
      std::vector<double> out(3 * 12 * 12);
      bias(view(out.data(), {3, 12, 12}), {.ids = ids, .axes = 2}, {.ids = ids, .axes = 2}, form);
      for (const Value& value : one.values) {
        EXPECT_NEAR(out[(value.head * 12 + value.query) * 12 + value.key], value.bias, 1e-8)
            << value.head << " " << value.query << " " << value.key;
      }
    });
  }
}

// Each parameter of the network by a small step, through bias and bias_backward.
TEST(LogCpb, GradientByFiniteDifferences) {
  const std::vector<std::int64_t> extents = {3, 4};
  const auto ids = grid_positions(extents);
  const Positions at{.ids = ids, .axes = 2};
  std::vector<double> d_out(3 * 12 * 12);
  for (std::size_t i = 0; i < d_out.size(); ++i) d_out[i] = std::sin(static_cast<double>(i) + 0.5);
  const auto loss = [&](const LogCpb& scheme) {
    std::vector<double> out(d_out.size());
    bias(view(out.data(), {3, 12, 12}), at, at, prepare(scheme));
    double sum = 0;
    for (std::size_t i = 0; i < out.size(); ++i) sum += out[i] * d_out[i];
    return sum;
  };
  LogCpb scheme = network({12, 6});
  for (double& one : scheme.hidden_biases) one += 0.03;  // no unit is at its kink, where there is no derivative
  std::vector<double> d_table(5 * 7 * 3);
  bias_backward(view(d_table.data(), {35, 3}), view(d_out.data(), {3, 12, 12}), {at, at}, prepare(scheme));
  const LogCpbGradient gradient = backward(scheme, d_table);
  const auto expect = [&](std::vector<double> LogCpb::*field, const std::vector<double>& expected) {
    ASSERT_EQ((scheme.*field).size(), expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i) {
      LogCpb up = scheme, down = scheme;
      (up.*field)[i] += 1e-5;
      (down.*field)[i] -= 1e-5;
      EXPECT_NEAR((loss(up) - loss(down)) / 2e-5, expected[i], 1e-6) << i;
    }
  };
  expect(&LogCpb::hidden_weights, gradient.hidden_weights);
  expect(&LogCpb::hidden_biases, gradient.hidden_biases);
  expect(&LogCpb::output_weights, gradient.output_weights);
}

// A window that was enlarged asks the network for offsets of the trained one, and a few past it.
TEST(LogCpb, ALargerWindowKeepsTheOffsetsOfTheTrainedOne) {
  LogCpb small = network(), large = network({3, 4});
  large.window = {5, 6};
  const auto far = [](const LogCpb& scheme, std::int64_t row, std::int64_t column) {
    const std::vector<std::int64_t> query = {row, column}, key = {0, 0};
    std::vector<double> out(3);
    bias(view(out.data(), {3, 1, 1}), {.ids = query, .axes = 2}, {.ids = key, .axes = 2}, prepare(scheme));
    return out;
  };
  EXPECT_EQ(far(small, 2, 3), far(large, 2, 3));
  EXPECT_NE(far(large, 4, 5), far(large, 2, 3));
}

TEST(LogCpb, SaysWhatIsWrong) {
  const auto message = [](const LogCpb& scheme) { return refusal([&] { prepare(scheme); }); };
  LogCpb scheme = network();
  EXPECT_EQ(message(scheme), "accepted");
  EXPECT_EQ(message({}), "log-cpb: the trained network is missing (hidden_weights, hidden_biases, output_weights)");
  scheme.heads = 0;
  EXPECT_EQ(message(scheme), "log-cpb: heads must be between 1 and 65536 but is 0");
  scheme.heads = 2;
  EXPECT_EQ(message(scheme), "log-cpb: output_weights must be heads times hidden units, 8, but are 12");
  scheme = network();
  scheme.window = {3};
  EXPECT_EQ(message(scheme), "log-cpb: hidden_weights must be hidden units times axes, 4, but are 8");
  scheme.window = {3, 0};
  EXPECT_EQ(message(scheme), "log-cpb: extents of window must be between 1 and 256 but is 0");
  scheme = network({1, 4});
  EXPECT_EQ(message(scheme), "log-cpb: extents of trained_window must be between 2 and 65536 but is 1");
  scheme = network({4});
  EXPECT_EQ(message(scheme), "log-cpb: trained_window must have as many extents as window, 2, but has 1");
  const std::vector<double> wrong(5);
  EXPECT_EQ(refusal([&] { backward(network(), wrong); }),
            "log-cpb: the gradient must have 105 numbers, one for each offset and head, but has 5");
}

}  // namespace
}  // namespace posenc::log_cpb_test
