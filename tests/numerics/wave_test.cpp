// Rounded sines against MPFR, at positions up to 2^53 and in every format.

#include "numerics/wave.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "numerics/radians.h"
#include "numerics/real.h"
#include "oracle/mpfr_wave.h"

namespace posenc::numerics::wave_test {
namespace {

struct Config {
  double base;
  int dims;
};
constexpr Config kConfigs[] = {{1e4, 64}, {1e4, 512}, {5e5, 128}, {1e6, 256}, {1.5e5, 64},
                               {1e7, 64}, {100, 32},  {1e30, 32}, {1.0, 4}};
constexpr std::uint64_t kFarPositions[] = {0,       1,         2047,           39'000,
                                           131'071, 1'000'003, (1u << 31) - 1, (std::uint64_t{1} << 53) - 1};

std::vector<Frequency> frequencies_of(const Config& config) {
  std::vector<Frequency> all;
  for (const Real& radians : geometric(config.base, Real(2) / config.dims, config.dims / 2)) {
    all.push_back(frequency_from(radians));
  }
  return all;
}

template <class T> constexpr oracle::Precision precision_of() {
  return {format_of<T>().bits, format_of<T>().least_exponent};
}

// Both levels and every format; `quarter` and `scale` as given.
template <class T>
void expect_rounded(const Angle& angle, unsigned quarter, double scale, const oracle::MpfrFrequency& frequency) {
  T fast{}, slow{};
  ASSERT_TRUE(round_wave(fast, angle, reduce(angle), quarter, scale));
  ASSERT_TRUE(round_wave_by_integers(slow, angle, quarter, scale));
  const double want = oracle::mpfr_wave(frequency, angle.count, quarter, scale, precision_of<T>());
  ASSERT_EQ(widen(fast), want) << "base " << frequency.base << " pair " << frequency.numerator / 2 << " position "
                               << angle.count << " quarter " << quarter << " scale " << scale;
  ASSERT_EQ(widen(slow), want);
  if (angle.count != 0) {
    ASSERT_EQ(std::signbit(widen(fast)), std::signbit(want));
  }
}

TEST(Wave, IsCorrectlyRoundedAtRandomPositions) {
  std::mt19937_64 random(20240607);
  for (const Config& config : kConfigs) {
    const std::vector<Frequency> frequencies = frequencies_of(config);
    for (int sample = 0; sample < 600; ++sample) {
      const auto pair = static_cast<std::size_t>(random() % frequencies.size());
      // Every order of magnitude of positions up to 2^53.
      const std::uint64_t position = (random() >> 11) >> random() % 53;
      const auto quarter = static_cast<unsigned>(random() % 4);
      const double scale = sample % 3 == 0 ? 1.0 : sample % 3 == 1 ? 0.0441941738 : -37.0 * (1 + sample);
      const Angle angle{frequencies[pair], position};
      const oracle::MpfrFrequency frequency{config.base, 2 * static_cast<long>(pair), config.dims};
      expect_rounded<float>(angle, quarter, scale, frequency);
      expect_rounded<Half>(angle, quarter, scale, frequency);
      expect_rounded<BFloat16>(angle, quarter, scale, frequency);
      double f64 = 0;
      ASSERT_TRUE(round_wave(f64, angle, reduce(angle), quarter, scale));
      ASSERT_LE(oracle::mpfr_error_in_ulps(f64, frequency, position, quarter, scale, oracle::kF64), 0.501);
      if (HasFatalFailure()) return;
    }
  }
}

TEST(Wave, IsCorrectlyRoundedAtTheFarPositions) {
  for (const Config& config : kConfigs) {
    const std::vector<Frequency> frequencies = frequencies_of(config);
    for (std::size_t pair = 0; pair < frequencies.size(); pair += 7) {
      for (const std::uint64_t position : kFarPositions) {
        const oracle::MpfrFrequency frequency{config.base, 2 * static_cast<long>(pair), config.dims};
        expect_rounded<float>({frequencies[pair], position}, 0, 1.0, frequency);
        expect_rounded<float>({frequencies[pair], position}, 1, 1.0, frequency);
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST(Wave, KeepsTheErrorBoundOfDoubles) {
  std::mt19937_64 random(7);
  double worst = 0;
  for (const Config& config : kConfigs) {
    const std::vector<Frequency> frequencies = frequencies_of(config);
    for (int sample = 0; sample < 3000; ++sample) {
      const auto pair = static_cast<std::size_t>(random() % frequencies.size());
      const Angle angle{frequencies[pair], (random() >> 11) >> random() % 53};
      const SineCosine got = sine_cosine(reduce(angle));
      const oracle::MpfrFrequency frequency{config.base, 2 * static_cast<long>(pair), config.dims};
      // An absolute error: a format whose last bit is always worth 2^-52 measures it.
      const oracle::Precision absolute{1, -52};
      worst = std::max(worst, oracle::mpfr_error_in_ulps(got.sine, frequency, angle.count, 0, 1.0, absolute));
      worst = std::max(worst, oracle::mpfr_error_in_ulps(got.cosine, frequency, angle.count, 1, 1.0, absolute));
    }
  }
  RecordProperty("worst_in_units_of_2^-52", std::to_string(worst));
  EXPECT_LT(worst, 1.0);
}

TEST(Wave, IsExactOnQuarterTurns) {
  const Angle none{Frequency{}, 123};
  float value = 1;
  ASSERT_TRUE(round_wave(value, none, reduce(none), 0, 1.0));
  EXPECT_EQ(value, 0.0f);
  EXPECT_FALSE(std::signbit(value));
  ASSERT_TRUE(round_wave(value, none, reduce(none), 1, 0.1));
  EXPECT_EQ(value, 0.1f);
  // A tie of f32 goes to even when it is exact …
  ASSERT_TRUE(round_wave(value, none, reduce(none), 1, 1 + 0x1p-24));
  EXPECT_EQ(value, 1.0f);
  // … and down when the cosine is a hair below 1.
  const Angle hair{frequency_from_turns(0x1p-120), 1};
  ASSERT_TRUE(round_wave(value, hair, reduce(hair), 1, 1 + 3 * 0x1p-24));
  EXPECT_EQ(value, 1 + 0x1p-23f);
}

TEST(Wave, SaysSoWhereItCannotDecide) {
  // A twelfth of a turn to 2^-257: its sine is one half to 2^-256, and half of 1 + 2^-24 lies between two floats.
  const Frequency twelfth = frequency_from(two_pi() / 12);
  float value = 77;
  const Angle angle{twelfth, 1};
  EXPECT_FALSE(round_wave(value, angle, reduce(angle), 0, 1 + 0x1p-24));
  EXPECT_EQ(value, 77);
  ASSERT_TRUE(round_wave(value, angle, reduce(angle), 0, 1.0));
  EXPECT_EQ(value, 0.5f);
}

TEST(Radians, OfAnyFloatAreReducedExactly) {
  std::mt19937_64 random(3);
  for (int sample = 0; sample < 20000; ++sample) {
    const auto bits = static_cast<std::uint32_t>(random());
    const float radians = std::bit_cast<float>(bits);
    if (!std::isfinite(radians)) continue;
    const Angle angle = angle_from_radians(radians);
    const auto quarter = static_cast<unsigned>(random() % 4);
    float got = 0;
    ASSERT_TRUE(round_wave(got, angle, reduce(angle), quarter, 1.0));
    ASSERT_EQ(widen(got), oracle::mpfr_wave_of_radians(widen(radians), quarter, 1.0, oracle::kF32)) << radians;
  }
}

TEST(Frequency, EqualsMpfrInEveryBit) {
  for (const Config& config : kConfigs) {
    const std::vector<Frequency> frequencies = frequencies_of(config);
    for (std::size_t pair = 0; pair < frequencies.size(); ++pair) {
      Frequency want;
      oracle::mpfr_turns({config.base, 2 * static_cast<long>(pair), config.dims}, want.words.data());
      ASSERT_EQ(frequencies[pair], want) << "base " << config.base << " pair " << pair;
    }
  }
}

}  // namespace
}  // namespace posenc::numerics::wave_test
