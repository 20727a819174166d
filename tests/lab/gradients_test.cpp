// The gradient of every parameter, for every scheme that can be trained, against finite differences in double.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "lab/network.h"
#include "lab/philox.h"

namespace posenc::gradients_test {
namespace {

using namespace lab;

struct Case {
  std::string scheme;
  bool causal = true;
  bool random = false;
};

Shape shape_of(const Case& given) {
  Shape shape;
  shape.layers = 2;
  shape.heads = 2;
  shape.width = 8;
  shape.vocabulary = 7;
  shape.context = 6;
  shape.longest = 12;
  shape.causal = given.causal;
  shape.scheme = given.scheme;
  shape.random_positions = given.random ? 20 : 0;
  return shape;
}

// Three sequences; those of an encoder end at different places.
Batch batch_of(const Shape& shape) {
  Batch batch;
  batch.count = 3;
  batch.length = 6;
  Stream random(5, Purpose::kTraining, 0, 0);
  for (int i = 0; i < 18; ++i) {
    batch.tokens.push_back(static_cast<std::int32_t>(random.below(shape.vocabulary)));
    batch.targets.push_back(i % 5 == 2 ? -1 : static_cast<std::int32_t>(random.below(shape.vocabulary)));
  }
  if (!shape.causal) {
    batch.lengths = {6, 4, 5};
    for (const int i : {10, 11, 17}) batch.targets[static_cast<std::size_t>(i)] = -1;
  }
  if (shape.random_positions > 0) {
    for (int i = 0; i < 18; ++i) batch.positions.push_back(i % 6 * 3 + i / 6);
  }
  return batch;
}

double loss_of(const Network<double>& network, const Batch& batch) {
  const Position position = prepare_position(network.shape, network.layout, network.parameters.data(), batch.length);
  Activations<double> activations;
  forward(network, position, batch, activations);
  return losses_of(batch, activations, network.shape.vocabulary) / static_cast<double>(batch.target_count());
}

class Gradients : public testing::TestWithParam<Case> {};

// Larger first values than training has, so that no part of the model is almost linear.
Network<double> network_of(const Shape& shape) {
  Network<double> network{shape, layout_of(shape), {}};
  network.parameters = initial_parameters<double>(network.layout, 3);
  for (const Slice& slice : network.layout.slices) {
    Stream random(12, Purpose::kInitial, slice.stream, 1);
    for (std::int64_t i = 0; i < slice.count; ++i) {
      network.parameters[static_cast<std::size_t>(slice.offset + i)] += 0.3 * random.normal();
    }
  }
  return network;
}

// Central differences, extrapolated (Richardson): the error is O(h⁴), about 1e-11 at h = 1e-3 for losses of order 1, and
// rounding adds 1e-16 / h. FIRE has corners (max(0, ·)); none is within h of the points here, or the test would say so.
TEST_P(Gradients, EqualFiniteDifferences) {
  const Shape shape = shape_of(GetParam());
  Network<double> network = network_of(shape);
  const Batch batch = batch_of(shape);
  std::vector<double> gradients(network.parameters.size(), 0.0);
  const Position position = prepare_position(shape, network.layout, network.parameters.data(), batch.length);
  Activations<double> activations;
  forward(network, position, batch, activations);
  const auto targets = static_cast<double>(batch.target_count());
  const double loss = backward(network, position, batch, 1 / targets, activations, gradients.data()) / targets;
  EXPECT_NEAR(loss, loss_of(network, batch), 1e-14);

  double largest_of_position = 0;
  for (const Slice& slice : network.layout.slices) {
    // all of what a scheme trains, and a sample of the rest
    const std::int64_t stride = slice.is_position ? 1 : std::max<std::int64_t>(1, slice.count / 5);
    for (std::int64_t i = slice.offset; i < slice.offset + slice.count; i += stride) {
      double& value = network.parameters[static_cast<std::size_t>(i)];
      const double kept = value;
      const auto slope = [&](double h) {
        value = kept + h;
        const double above = loss_of(network, batch);
        value = kept - h;
        const double below = loss_of(network, batch);
        value = kept;
        return (above - below) / (2 * h);
      };
      const double expected = (4 * slope(5e-4) - slope(1e-3)) / 3;
      const double got = gradients[static_cast<std::size_t>(i)];
      EXPECT_NEAR(got, expected, 2e-9) << slice.name << " at " << i - slice.offset;
      if (slice.is_position) largest_of_position = std::max(largest_of_position, std::abs(expected));
    }
  }
  const bool trains =
      shape.scheme == "learned" || shape.scheme == "t5" || shape.scheme == "kerple" || shape.scheme == "fire";
  if (trains) {
    EXPECT_GT(largest_of_position, 1e-4);  // else nothing was compared
  }
}

std::string name_of_case(const testing::TestParamInfo<Case>& info) {
  return info.param.scheme + (info.param.causal ? "" : "_encoder") + (info.param.random ? "_random" : "");
}

INSTANTIATE_TEST_SUITE_P(Decoder, Gradients,
                         testing::Values(Case{"none"}, Case{"sinusoidal"}, Case{"learned"}, Case{"rope"},
                                         Case{"xpos"}, Case{"alibi"}, Case{"t5"}, Case{"kerple"}, Case{"fire"}),
                         name_of_case);
INSTANTIATE_TEST_SUITE_P(Encoder, Gradients,
                         testing::Values(Case{"none", false}, Case{"learned", false}, Case{"rope", false},
                                         Case{"t5", false}, Case{"kerple", false}),
                         name_of_case);
INSTANTIATE_TEST_SUITE_P(RandomPositions, Gradients,
                         testing::Values(Case{"sinusoidal", true, true}, Case{"learned", true, true},
                                         Case{"rope", true, true}, Case{"alibi", true, true}, Case{"t5", true, true}),
                         name_of_case);

// The same pass in float32: within the rounding of some hundred operations on numbers of order 1.
TEST(GradientsInFloat, EqualThoseInDouble) {
  for (const std::string_view scheme : trainable_schemes()) {
    const Shape shape = shape_of({std::string(scheme)});
    const Network<double> exact = network_of(shape);
    const Network<float> rounded{shape, exact.layout, {exact.parameters.begin(), exact.parameters.end()}};
    const Batch batch = batch_of(shape);
    const auto gradients_of = [&]<class T>(const Network<T>& network) {
      std::vector<T> gradients(network.parameters.size(), T{0});
      const Position position = prepare_position(shape, network.layout, network.parameters.data(), batch.length);
      Activations<T> activations;
      forward(network, position, batch, activations);
      backward(network, position, batch, 1.0, activations, gradients.data());
      return gradients;
    };
    const std::vector<double> expected = gradients_of(exact);
    const std::vector<float> got = gradients_of(rounded);
    double apart = 0, size = 0;
    for (std::size_t i = 0; i < got.size(); ++i) {
      apart += std::pow(static_cast<double>(got[i]) - expected[i], 2);
      size += std::pow(expected[i], 2);
    }
    EXPECT_LT(std::sqrt(apart / size), 3e-6) << scheme;
    EXPECT_GT(size, 0);
  }
}

// A model without positions whose attention sees everything cannot tell order: permuted tokens give permuted logits.
TEST(Encoder, WithoutPositionIsPermutationEquivariant) {
  for (const bool has_position : {false, true}) {
    const Shape shape = shape_of({has_position ? "rope" : "none", false});
    const Network<double> network = network_of(shape);
    Batch batch;
    batch.count = 1;
    batch.length = 4;
    batch.tokens = {1, 2, 3, 4};
    Batch other = batch;
    other.tokens = {4, 2, 3, 1};
    const Position position = prepare_position(shape, network.layout, network.parameters.data(), 4);
    Activations<double> first, second;
    forward(network, position, batch, first);
    forward(network, position, other, second);
    double apart = 0;
    for (std::size_t j = 0; j < 7; ++j) apart = std::max(apart, std::abs(first.logits[j] - second.logits[21 + j]));
    if (has_position) {
      EXPECT_GT(apart, 1e-3);
    } else {
      EXPECT_LT(apart, 1e-13);
    }
  }
}

// The known answers of the authors' own test (Random123, kat_vectors).
TEST(Philox, HasTheAuthorsNumbers) {
  using Words = std::array<std::uint32_t, 4>;
  EXPECT_EQ(philox({0, 0, 0, 0}, {0, 0}), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  const std::uint32_t all = 0xffffffff;
  EXPECT_EQ(philox({all, all, all, all}, {all, all}), (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

}  // namespace
}  // namespace posenc::gradients_test
