#include "terms/terms.h"

#include <gtest/gtest.h>

#include "posenc/error.h"
#include "terms/all.h"
#include "terms/tiles.h"

namespace posenc::terms_test {
namespace {

constexpr std::int64_t kHeads = 2, kTokens = 6;

DistanceMap map_of(std::int64_t reach, bool open) {
  DistanceMap map{.first = -reach, .entries = {}, .open = open};
  for (std::int64_t distance = -reach; distance <= reach; ++distance) map.entries.push_back(reach + distance);
  return map;
}

Bias slopes() { return {kHeads, Slopes{{0.5, 0.25}}}; }
Bias table(bool open) {
  DistanceTable source;
  source.axes = {map_of(kTokens, open)};
  for (int i = 0; i < (2 * kTokens + 1) * kHeads; ++i) source.values.push_back(0.1 * i);
  return {kHeads, source};
}
Bias ratios() {
  DistanceRatios source;
  for (std::int64_t i = 0; i < kTokens; ++i) source.logs.push_back(0.3 * static_cast<double>(i));
  source.epsilon = 1e-6;
  source.hidden_weights = {0.5, -1.0, 2.0}, source.hidden_biases = {0.1, 1.5, -0.2};
  source.output_weights = {1, 2, 3, -1, 0.5, 0.25}, source.output_biases = {0.1, -0.1};
  return {kHeads, source};
}

// Tokens at positions 0, 1, 2 …, given as positions or by the places of keys.
struct Sequence {
  terms::TokenPlaces places;
  std::vector<terms::KeyRange> key_ranges;
  explicit Sequence(bool by_index) {
    places.by_index = by_index;
    for (std::int64_t i = 0; i < kTokens; ++i) key_ranges.push_back({0, kTokens, i});
  }
  terms::Tokens tokens() const {
    return {.places = places, .key_ranges = key_ranges.data(), .key_range_count = kTokens};
  }
};

TEST(Terms, ReachIsThatOfMapsAndLengths) {
  EXPECT_EQ(terms::reach(slopes()), kPositionLimit);
  EXPECT_EQ(terms::reach(table(true)), kPositionLimit);
  EXPECT_EQ(terms::reach(table(false)), kTokens + 1);
  EXPECT_EQ(terms::reach(ratios()), kTokens);
  EXPECT_EQ(terms::reach({1, GateSums{}}), kPositionLimit);
  EXPECT_TRUE(terms::has_signed_positions(table(false)));
  EXPECT_FALSE(terms::has_signed_positions(ratios()));
}

TEST(Terms, PositionsBeyondTheReachAreErrors) {
  const auto check = [](const Bias& bias, std::int64_t first) {
    TokenPositions queries, keys;
    queries.first = first;
    terms::check_positions("bias", bias, queries, keys, {1, 1, 1});
  };
  EXPECT_NO_THROW(check(table(false), kTokens));
  EXPECT_THROW(check(table(false), kTokens + 1), Error);
  EXPECT_NO_THROW(check(ratios(), kTokens - 1));
  EXPECT_THROW(check(ratios(), kTokens), Error);
  EXPECT_NO_THROW(check(slopes(), 1000));
}

TEST(Terms, OneHeadIsThatHeadOfTheBias) {
  const Sequence sequence(false);
  const terms::Tokens tokens = sequence.tokens();
  for (const Bias& bias : {slopes(), table(true), ratios()}) {
    for (std::int64_t h = 0; h < kHeads; ++h) {
      const Bias one = head_of(bias, h);
      for (std::int64_t at = 0; at < kTokens * kTokens; ++at) {
        const std::int64_t i = at / kTokens, j = at % kTokens;
        EXPECT_EQ(terms::element(one, {tokens, 0, 0, i, j}), terms::element(bias, {tokens, 0, h, i, j}))
            << terms::name_of(bias);
      }
    }
  }
}

TEST(Terms, ElementsOfDistancesAreTheirValues) {
  const Sequence sequence(true);
  const terms::Tokens tokens = sequence.tokens();
  for (const Bias& bias : {slopes(), table(true)}) {
    terms::with_term(bias, [&](const auto& source, auto term) {
      if constexpr (requires { term.value_at(source, 0, 0, 0); }) {
        ASSERT_TRUE(term.is_of_distance(source));
        for (std::int64_t j = 0; j < kTokens; ++j) {
          const terms::Score at{tokens, 0, 1, 2, j};
          EXPECT_EQ(term.element(source, kHeads, at), term.value_at(source, kHeads, 1, j - 2));
          std::vector<double> by_score(2 * kTokens + 1), by_distance = by_score;
          term.add_gradient(source, kHeads, at, 3.0, by_score.data());
          term.add_gradient_at(source, j - 2, 3.0, by_distance.data());
          EXPECT_EQ(by_score, by_distance);
        }
      }
    });
  }
}

TEST(Terms, TilesAreThoseOfTheTermOrElements) {
  const Sequence by_index(true), by_position(false);
  const auto tiles = [](const Bias& bias, const Sequence& sequence) {
    return terms::tiles_of(bias, sequence.tokens(), {1, kHeads, 4});
  };
  EXPECT_TRUE(std::holds_alternative<terms::SlopeTiles>(tiles(slopes(), by_index)));
  EXPECT_TRUE(std::holds_alternative<terms::ElementTiles>(tiles(slopes(), by_position)));
  EXPECT_TRUE(std::holds_alternative<terms::DistanceTiles>(tiles(table(true), by_index)));
  EXPECT_TRUE(std::holds_alternative<terms::ElementTiles>(tiles(table(true), by_position)));
  EXPECT_TRUE(std::holds_alternative<terms::ElementTiles>(tiles(ratios(), by_index)));
  EXPECT_TRUE(std::holds_alternative<terms::NoTiles>(tiles({0, DistanceVectors{}}, by_index)));
}

TEST(Terms, EnginesRejectWhatTheyDoNotName) {
  EXPECT_TRUE((terms::is_one_of<Slopes, DistanceTable>(table(true))));
  EXPECT_FALSE((terms::is_one_of<Slopes, DistanceTable>(ratios())));
  EXPECT_EQ(terms::name_of(ratios()), "distance-ratios");
}

}  // namespace
}  // namespace posenc::terms_test
