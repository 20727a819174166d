// Att(PX) and P·Att(X): equal without position, different with it; the numbers are those of a plain attention.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "posenc/analysis.h"
#include "posenc/posenc.h"

namespace posenc::equivariance_test {
namespace {

// SplitMix64 as its authors wrote it, so that the same tokens and projections are drawn here.
struct Draws {
  std::uint64_t state;
  std::uint64_t next() {
    std::uint64_t z = (state += 0x9E3779B97F4A7C15ULL);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
    return z ^ (z >> 31);
  }
  double uniform() { return std::ldexp(static_cast<double>(next() >> 11), -52) - 1; }
};

using Matrix = std::vector<std::vector<double>>;

Matrix times(const Matrix& a, const Matrix& b) {
  Matrix c(a.size(), std::vector<double>(b[0].size()));
  for (std::size_t i = 0; i < a.size(); ++i) {
    for (std::size_t j = 0; j < b[0].size(); ++j) {
      for (std::size_t k = 0; k < b.size(); ++k) c[i][j] += a[i][k] * b[k][j];
    }
  }
  return c;
}

// softmax(q kᵀ / √d − slope |m − n|) v
Matrix plain_attention(const Matrix& x, const Matrix& wq, const Matrix& wk, const Matrix& wv, double slope,
                       bool causal) {
  const Matrix q = times(x, wq), k = times(x, wk), v = times(x, wv);
  Matrix out(x.size(), std::vector<double>(v[0].size()));
  for (std::size_t m = 0; m < x.size(); ++m) {
    std::vector<double> weights;
    for (std::size_t n = 0; n < x.size(); ++n) {
      const double dot = std::inner_product(q[m].begin(), q[m].end(), k[n].begin(), 0.0);
      const double away = std::fabs(static_cast<double>(m) - static_cast<double>(n));
      weights.push_back(causal && n > m ? 0
                                        : std::exp(dot / std::sqrt(static_cast<double>(q[m].size())) - slope * away));
    }
    const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
    for (std::size_t n = 0; n < x.size(); ++n) {
      for (std::size_t j = 0; j < v[n].size(); ++j) out[m][j] += weights[n] / sum * v[n][j];
    }
  }
  return out;
}

double plain_difference(double slope, bool causal, std::uint64_t seed) {
  constexpr std::size_t kTokens = 16, kWidth = 32, kFeatures = 16;
  Draws draws{seed};
  Matrix projections[3];
  for (Matrix& weights : projections) {
    weights.assign(kWidth, std::vector<double>(kFeatures));
    for (auto& row : weights) {
      for (double& value : row) value = std::sqrt(3.0 / kWidth) * draws.uniform();
    }
  }
  Matrix x(kTokens, std::vector<double>(kWidth));
  for (auto& row : x) {
    for (double& value : row) value = draws.uniform();
  }
  const auto attend = [&](const Matrix& tokens) {
    return plain_attention(tokens, projections[0], projections[1], projections[2], slope, causal);
  };
  const Matrix once = attend(x);
  double most = 0;
  for (int permutation = 0; permutation < 8; ++permutation) {
    std::vector<std::size_t> order(kTokens);
    std::iota(order.begin(), order.end(), std::size_t{0});
    for (std::size_t i = kTokens - 1; i > 0; --i) std::swap(order[i], order[draws.next() % (i + 1)]);
    Matrix moved;
    for (const std::size_t from : order) moved.push_back(x[from]);
    const Matrix again = attend(moved);
    for (std::size_t i = 0; i < kTokens; ++i) {
      for (std::size_t j = 0; j < kFeatures; ++j) most = std::max(most, std::fabs(again[i][j] - once[order[i]][j]));
    }
  }
  return most;
}

TEST(Equivariance, NumbersAreThoseOfAPlainAttention) {
  for (const std::int64_t seed : {1, 2, 77}) {
    const auto plain_seed = static_cast<std::uint64_t>(seed);
    const Form slopes = Bias{1, Slopes{{0.25}}};
    EXPECT_NEAR(equivariance(slopes, {.seed = seed}).difference, plain_difference(0.25, false, plain_seed), 1e-5);
    EXPECT_NEAR(equivariance(Nothing{}, {.causal = true, .seed = seed}).difference,
                plain_difference(0, true, plain_seed), 1e-5);
    EXPECT_LT(plain_difference(0, false, plain_seed), 1e-14);
  }
}

TEST(Equivariance, HoldsWithoutPositionAndIsBrokenByAMask) {
  for (std::int64_t seed = 1; seed <= 20; ++seed) {
    const Equivariance without = equivariance(Nothing{}, {.seed = seed});
    EXPECT_LE(without.difference, without.bound);
    EXPECT_LT(without.bound, 2e-5);
    const Equivariance masked = equivariance(Nothing{}, {.causal = true, .seed = seed});
    EXPECT_GT(masked.difference, 1000 * masked.bound);
  }
}

TEST(Equivariance, AVectorThatIsTheSameEverywhereIsNoPosition) {
  const std::vector<double> table(64 * 8, 0.5);
  const Form same = Addition{8, Rows{view(table.data(), {64, 8}), 0}};
  const Equivariance found = equivariance(same);
  EXPECT_LE(found.difference, found.bound);
  EXPECT_EQ(measure(Property::kSeesOrder, make_trial(same)).outcome, Outcome::kFails);
}

// The other verdict under a mask: where every token sees itself alone, a causal mask tells no order either.
TEST(Equivariance, TokensThatSeeThemselvesAloneHaveNoOrder) {
  const Trial trial = make_trial(Alibi{.heads = 2, .max_bias = 1, .scale = 1e6});
  EXPECT_EQ(measure(Property::kSeesOrderCausal, trial).outcome, Outcome::kFails);
  EXPECT_EQ(measure(Property::kSeesOrder, trial).outcome, Outcome::kFails);
}

TEST(Equivariance, EverySchemeBreaksIt) {
  for (const Scheme& scheme : schemes_to_prove()) {
    const Trial trial = make_trial(scheme);
    const Finding found = measure(Property::kSeesOrder, trial);
    // a temperature scales queries alike below its floor, and says nothing of order
    if (std::holds_alternative<None>(scheme) || std::holds_alternative<QueryTemperature>(scheme)) {
      EXPECT_EQ(found.outcome, Outcome::kFails);
      EXPECT_EQ(found.claim, Claim::kFails);
    } else {
      EXPECT_EQ(found.outcome, Outcome::kHolds) << name_of(scheme);
      EXPECT_GT(found.measured, 10 * found.bound) << name_of(scheme);
    }
    EXPECT_EQ(measure(Property::kSeesOrderCausal, trial).outcome, Outcome::kHolds) << name_of(scheme);
  }
}

TEST(Equivariance, RefusesWhatMakesNoSense) {
  EXPECT_THROW(equivariance(Nothing{}, {.tokens = 1}), Error);
  EXPECT_THROW(equivariance(Nothing{}, {.permutations = 0}), Error);
}

}  // namespace
}  // namespace posenc::equivariance_test
