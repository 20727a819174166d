#include <gtest/gtest.h>

#include <cmath>

#include "backends.h"
#include "posenc/posenc.h"
#include "schemes/golden_array.h"

namespace posenc::fire_test {
namespace {

using tests::refusal;

Fire example() {
  Fire scheme{.c = 0.2, .threshold = 7.5};
  scheme.hidden_weights = {1.0, -2.0, 0.5};
  scheme.hidden_biases = {0.1, 1.3, -0.2};
  scheme.output_weights = {0.3, -0.7, 1.1, 2.0, 0.25, -1.5};
  scheme.output_biases = {0.05, -0.4};
  return scheme;
}

// The paper's listing, in plain double.
TEST(Fire, IsTheNetworkOfTheRatio) {
  const Fire s = example();
  tests::for_each_engine([&] {
    std::vector<double> out(2 * 20 * 20);
    bias(view(out.data(), {2, 20, 20}), {}, {}, prepare(s, {.length = 20}));
    for (std::size_t h = 0; h < 2; ++h) {
      for (int m = 0; m < 20; ++m) {
        for (int n = 0; n < 20; ++n) {
          const double ratio = std::log(std::abs(s.c * (m - n)) + 1) /
                               (std::log(s.c * std::max<double>(m, s.threshold) + 1) + s.epsilon);
          double want = s.output_biases[h];
          for (std::size_t u = 0; u < 3; ++u) {
            want += s.output_weights[h * 3 + u] * std::max(0.0, s.hidden_weights[u] * ratio + s.hidden_biases[u]);
          }
          ASSERT_NEAR(out[(h * 20 + static_cast<std::size_t>(m)) * 20 + static_cast<std::size_t>(n)], want, 1e-14);
        }
      }
    }
  });
}

TEST(Fire, GradientsOfTheNetwork) {
  const Fire scheme = example();
  std::vector<double> slope(2 * 11 * 15);
  for (std::size_t i = 0; i < slope.size(); ++i) slope[i] = std::cos(static_cast<double>(3 * i));
  const auto loss = [&](const Fire& s) {
    std::vector<double> out(slope.size());
    bias(view(out.data(), {2, 11, 15}), {.first = 4}, {}, prepare(s, {.length = 16}));
    double sum = 0;
    for (std::size_t i = 0; i < out.size(); ++i) sum += out[i] * slope[i];
    return sum;
  };
  tests::for_each_engine([&] {
    std::vector<double> gradient(3 + 3 + 6 + 2);
    bias_backward(view(gradient.data(), {14}), view(slope.data(), {2, 11, 15}), {{.first = 4}, {}},
                  prepare(scheme, {.length = 16}));
    std::size_t at = 0;
    for (const auto list :
         {&Fire::hidden_weights, &Fire::hidden_biases, &Fire::output_weights, &Fire::output_biases}) {
      for (std::size_t i = 0; i < (scheme.*list).size(); ++i, ++at) {
        Fire less = scheme, more = scheme;
        (less.*list)[i] -= 1e-6, (more.*list)[i] += 1e-6;
        EXPECT_NEAR(gradient[at], (loss(more) - loss(less)) / 2e-6, 1e-7) << at;
      }
    }
  });
}

TEST(Fire, SaysWhatIsWrong) {
  const auto message = [](auto change, std::int64_t length = 16) {
    return refusal([&] {
      Fire scheme = example();
      change(scheme);
      prepare(scheme, {.length = length});
    });
  };
  EXPECT_EQ(refusal([] { prepare(Fire{}, {.length = 4}); }),
            "fire: the trained network is missing (hidden_weights, hidden_biases, output_weights, output_biases)");
  EXPECT_EQ(message([](Fire&) {}, 0),
            "fire: the length is missing; its values are made for distances below it (PrepareOptions::length)");
  EXPECT_EQ(message([](Fire& s) { s.c = 0; }), "fire: c must not be 0");
  EXPECT_EQ(message([](Fire& s) { s.threshold = std::nan(""); }),
            "fire: threshold must be above 0 and finite but is nan");
  EXPECT_EQ(message([](Fire& s) { s.epsilon = -1; }), "fire: epsilon must be at least 0 and finite but is -1");
  EXPECT_EQ(message([](Fire& s) { s.hidden_biases.pop_back(); }),
            "fire: hidden_biases must be as many as hidden_weights, 3, but are 2");
  EXPECT_EQ(message([](Fire& s) { s.output_weights.pop_back(); }),
            "fire: output_weights must be heads times hidden units, 6, but are 5");
  EXPECT_EQ(message([](Fire& s) { s.output_weights[1] = std::nan(""); }),
            "fire: output_weights must be a finite number but is nan");
  EXPECT_EQ(refusal([] {
              std::vector<float> out(2 * 17);
              bias(view(out.data(), {2, 1, 17}), {}, {}, prepare(example(), {.length = 16}));
            }),
            "bias: position 16 is past the length that the form was prepared for, 16");
}

}  // namespace
}  // namespace posenc::fire_test
