// Tables on every backend and SIMD target against MPFR, and byte for byte against each other.

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "backends.h"
#include "kernels/random_values.h"
#include "numerics/narrow.h"
#include "oracle/mpfr_wave.h"
#include "posenc/posenc.h"
#include "sanitized.h"

namespace posenc::tabulate_test {
namespace {

using tests::for_each_engine;
using tests::same_bytes;

template <class T> constexpr oracle::Precision precision_of() {
  return {numerics::format_of<T>().bits, numerics::format_of<T>().least_exponent};
}

template <class T> std::vector<T> table_of(const Sinusoidal& scheme, std::int64_t rows, const Positions& positions,
                                           Numerics numerics = Numerics::kExact) {
  std::vector<T> table(static_cast<std::size_t>(rows * scheme.width));
  tabulate(view(table.data(), {rows, scheme.width}), positions, prepare(scheme, {.numerics = numerics}));
  return table;
}

// Rows around vector widths, groups and blocks; positions from near to 2^53.
template <class T> void expect_correctly_rounded() {
  std::mt19937_64 random(11);
  struct Case {
    std::int64_t width, rows, first;
  };
  const std::int64_t far = kPositionLimit;
  const Case cases[] = {{2, 1, 0},
                        {6, 33, 0},
                        {64, 200, 0},
                        {66, 65, 2047},
                        {130, 130, 39'000},
                        {512, 64, 131'071 - 32},
                        {258, 97, 1'000'003},
                        {64, 700, (1ll << 31) - 300},
                        {32, 129, far - 129}};
  for_each_engine([&] {
    for (const Case& c : cases) {
      SCOPED_TRACE(testing::Message() << "width " << c.width << " rows " << c.rows << " first " << c.first);
      const auto table = table_of<T>({.width = c.width}, c.rows, {.first = c.first});
      // Every value of the small ones, a sample of the large.
      for (std::size_t i = 0; i < table.size(); i += table.size() < 3000 ? 1 : 1 + random() % 23) {
        const std::int64_t row = static_cast<std::int64_t>(i) / c.width,
                           column = static_cast<std::int64_t>(i) % c.width;
        const double want = oracle::mpfr_wave({10000.0, column / 2 * 2, static_cast<long>(c.width)},
                                              static_cast<std::uint64_t>(c.first + row),
                                              static_cast<unsigned>(column % 2), 1.0, precision_of<T>());
        ASSERT_EQ(numerics::widen(table[i]), want) << "row " << row << " column " << column;
      }
    }
  });
}
TEST(Tabulate, IsCorrectlyRoundedInF32) { expect_correctly_rounded<float>(); }
TEST(Tabulate, IsCorrectlyRoundedInF64) { expect_correctly_rounded<double>(); }
TEST(Tabulate, IsCorrectlyRoundedInF16) { expect_correctly_rounded<Half>(); }
TEST(Tabulate, IsCorrectlyRoundedInBf16) { expect_correctly_rounded<BFloat16>(); }

template <class T> void expect_rounded_once(double ulps) {
  for_each_engine([&] {
    const Sinusoidal scheme{.width = 96, .base = 5e5, .scale = 0.75};
    for (const std::int64_t first : {std::int64_t{0}, std::int64_t{123'456'789}}) {
      const auto table = table_of<T>(scheme, 80, {.first = first});
      double worst = 0;
      for (std::size_t i = 0; i < table.size(); ++i) {
        const auto row = static_cast<std::int64_t>(i) / 96, column = static_cast<std::int64_t>(i) % 96;
        worst =
            std::max(worst, oracle::mpfr_error_in_ulps(numerics::widen(table[i]), {5e5, column / 2 * 2, 96},
                                                       static_cast<std::uint64_t>(first + row),
                                                       static_cast<unsigned>(column % 2), 0.75, precision_of<T>()));
      }
      EXPECT_LE(worst, ulps);
    }
  });
}
TEST(Tabulate, RoundsF16Once) { expect_rounded_once<Half>(0.5); }
TEST(Tabulate, RoundsBf16Once) { expect_rounded_once<BFloat16>(0.5); }
TEST(Tabulate, RoundsF64Once) { expect_rounded_once<double>(0.5); }

// Float32 that is then rounded to 16 bits is wrong now and then; these tables must not be.
TEST(Tabulate, NeverRoundsTwice) {
  for_each_engine([&] {
    const auto bf16 = table_of<BFloat16>({.width = 256}, 4096, {});
    const auto f32 = table_of<float>({.width = 256}, 4096, {});
    std::int64_t twice = 0;
    for (std::size_t i = 0; i < f32.size(); ++i) {
      if (numerics::narrow<BFloat16>(static_cast<double>(f32[i])) == bf16[i]) continue;
      ++twice;
      const auto row = static_cast<std::int64_t>(i) / 256, column = static_cast<std::int64_t>(i) % 256;
      ASSERT_EQ(numerics::widen(bf16[i]),
                oracle::mpfr_wave({10000.0, column / 2 * 2, 256}, static_cast<std::uint64_t>(row),
                                  static_cast<unsigned>(column % 2), 1.0, oracle::kBF16));
    }
    EXPECT_GT(twice, 0) << "the case that this test is about did not come up";
  });
}

// Long enough for every angle of the tables that rows are made from.
template <class T> void expect_long_table_of_the_reference() {
  constexpr std::int64_t kRows = kSanitized ? 4'000 : 40'000;
  const Sinusoidal scheme{.width = 6, .base = 700.0, .scale = -0.9};
  force_backend("reference");
  const auto want = table_of<T>(scheme, kRows, {.first = 77});
  for_each_engine([&] { EXPECT_TRUE(same_bytes(table_of<T>(scheme, kRows, {.first = 77}), want)); });
}
TEST(Tabulate, LongTablesAreThoseOfTheReference) {
  expect_long_table_of_the_reference<float>();
  expect_long_table_of_the_reference<double>();
  expect_long_table_of_the_reference<Half>();
  expect_long_table_of_the_reference<BFloat16>();
}

// One table, made as a whole, by blocks, row by row and from a list: the same bytes, on every engine.
TEST(Tabulate, GivesTheSameBytesHoweverItIsAsked) {
  const Sinusoidal scheme{.width = 70, .base = 10000.0, .layout = WaveLayout::kSinCos};
  const std::int64_t first = 999'950, rows = 300;
  std::vector<std::int64_t> ids;
  for (std::int64_t i = 0; i < rows; ++i) ids.push_back(first + i);
  const auto check = [&]<class T>(T) {
    force_backend("reference");
    const auto want = table_of<T>(scheme, rows, {.first = first});
    for_each_engine([&] {
      for (const int count : {1, 2, 3, 7}) {
        set_threads(count);
        EXPECT_TRUE(same_bytes(table_of<T>(scheme, rows, {.first = first}), want));
        EXPECT_TRUE(same_bytes(table_of<T>(scheme, rows, {.ids = ids}), want));
      }
      set_threads(0);
      std::vector<T> by_row;
      for (std::int64_t i = 0; i < rows; ++i) {
        const auto row = table_of<T>(scheme, 1, {.first = first + i});
        by_row.insert(by_row.end(), row.begin(), row.end());
      }
      EXPECT_TRUE(same_bytes(by_row, want));
    });
  };
  check(float{});
  check(double{});
  check(Half{});
  check(BFloat16{});
}

// Scales at the ends of their range, and widths that leave vectors half empty.
TEST(Tabulate, AgreesWithTheReferenceForEveryScaleAndWidth) {
  for (const double scale :
       {0.0, 1.0, -1.0, 0.3, 32768.0, 1e-30, 1 + 0x1p-24, -2.0, 2 - 0x1p-40, 31.9, 1e-37, 3e-42, 1e-310, 1e-242}) {
    for (const std::int64_t width : {1, 3, 5, 17, 66, 127}) {
      const Sinusoidal scheme{.width = width, .base = 500.0, .scale = scale, .odd = OddWidth::kTrim};
      force_backend("reference");
      const auto want = table_of<float>(scheme, 100, {.first = 0});
      const auto want_f16 = table_of<Half>(scheme, 100, {.first = 5});
      const auto want_bf16 = table_of<BFloat16>(scheme, 100, {.first = 5});
      const auto want_f64 = table_of<double>(scheme, 100, {.first = 0});
      for_each_engine([&] {
        EXPECT_TRUE(same_bytes(table_of<float>(scheme, 100, {.first = 0}), want)) << scale << ' ' << width;
        EXPECT_TRUE(same_bytes(table_of<Half>(scheme, 100, {.first = 5}), want_f16)) << scale << ' ' << width;
        EXPECT_TRUE(same_bytes(table_of<BFloat16>(scheme, 100, {.first = 5}), want_bf16)) << scale << ' ' << width;
        EXPECT_TRUE(same_bytes(table_of<double>(scheme, 100, {.first = 0}), want_f64)) << scale << ' ' << width;
      });
    }
  }
}

// Waves that stand still, or come back to a zero or to a midpoint's neighbourhood again and again.
TEST(Tabulate, AgreesWithTheReferenceWhereSinesVanish) {
  constexpr std::uint64_t kQuarter = std::uint64_t{1} << 62;
  Waves waves;
  for (const std::uint64_t high : {std::uint64_t{0}, kQuarter, 2 * kQuarter, kQuarter / 2, std::uint64_t{1}}) {
    for (const std::uint64_t low : {std::uint64_t{0}, std::uint64_t{1} << 60, ~std::uint64_t{0}}) {
      Wave wave;
      wave.frequency.words = {0, 0, low, high};
      waves.waves.push_back(wave);
      for (unsigned quarter = 0; quarter < 4; ++quarter) {
        waves.columns.push_back(
            {static_cast<std::int32_t>(waves.waves.size() - 1), static_cast<std::uint8_t>(quarter)});
      }
    }
  }
  const auto width = static_cast<std::int64_t>(waves.columns.size());
  for (const double scale : {1.0, -5.0}) {
    waves.scale = scale;
    for (const std::int64_t first : {std::int64_t{0}, std::int64_t{1} << 31, (std::int64_t{1} << 53) - 200}) {
      const auto check = [&]<class T>(T) {
        const auto table = [&] {
          std::vector<T> out(static_cast<std::size_t>(100 * width));
          tabulate(view(out.data(), {100, width}), {.first = first}, Addition{width, waves});
          return out;
        };
        force_backend("reference");
        const auto want = table();
        for_each_engine([&] { EXPECT_TRUE(same_bytes(table(), want)) << scale << ' ' << first; });
      };
      check(float{});
      check(double{});
      check(Half{});
      check(BFloat16{});
    }
  }
}

TEST(Tabulate, TakesPositionsInAnyOrder) {
  const Sinusoidal scheme{.width = 34};
  std::mt19937_64 random(5);
  std::vector<std::int64_t> ids;
  for (int i = 0; i < 150; ++i) ids.push_back(static_cast<std::int64_t>((random() >> 11) >> random() % 50));
  for (int i = 0; i < 60; ++i) ids.push_back(5000 + i);  // a run in the middle
  for (int i = 0; i < 40; ++i) ids.push_back(3);
  force_backend("reference");
  const auto want = table_of<float>(scheme, 250, {.ids = ids});
  for_each_engine([&] { EXPECT_TRUE(same_bytes(table_of<float>(scheme, 250, {.ids = ids}), want)); });
}

// What the engines' float32 angles mean: the angle bit for bit, then the correctly rounded sine of it.
TEST(Tabulate, RepeatsFloat32AnglesBitForBit) {
  for_each_engine([&] {
    for (const Numerics numerics : {Numerics::kHfF32, Numerics::kGgmlF32}) {
      const Sinusoidal scheme{.width = 64, .base = 10000.0};
      const std::vector<std::int64_t> ids = {0, 1, 100, 4095, 131'071, 16'777'217, 1'000'000'007};
      const auto table = table_of<float>(scheme, 7, {.ids = ids}, numerics);
      const Addition form = prepare(scheme, {.numerics = numerics});
      const Float32Angles& angles = std::get<Waves>(form.source).float32_angles;
      for (std::size_t row = 0; row < ids.size(); ++row) {
        auto chain = static_cast<float>(ids[row]);
        for (std::size_t pair = 0; pair < 32; ++pair) {
          chain *= angles.factors[pair];
          const float angle =
              numerics == Numerics::kGgmlF32 ? chain : static_cast<float>(ids[row]) * angles.factors[pair];
          for (unsigned quarter : {0u, 1u}) {
            ASSERT_EQ(static_cast<double>(table[row * 64 + 2 * pair + quarter]),
                      oracle::mpfr_wave_of_radians(static_cast<double>(angle), quarter, 1.0, oracle::kF32));
          }
        }
      }
    }
  });
}

TEST(Tabulate, ReportsARoundingThatCannotBeDecided) {
  // See numerics/wave_test.cpp: a twelfth of a turn and a scale of 1 + 2^-24.
  Waves waves;
  waves.waves.resize(1);
  // 1/12 turn, rounded to 256 bits: 0x1555…55
  waves.waves[0].frequency.words = {0x5555555555555555, 0x5555555555555555, 0x5555555555555555, 0x1555555555555555};
  waves.columns = {{0, 0}};
  waves.scale = 1 + 0x1p-24;
  for_each_engine([&] {
    float out = 0;
    EXPECT_THROW(tabulate(view(&out, {1, 1}), {.first = 1}, Addition{1, waves}), Error);
    try {
      tabulate(view(&out, {1, 1}), {.first = 1}, Addition{1, waves});
    } catch (const Error& error) {
      EXPECT_STREQ(error.what(), "tabulate: the rounding of column 0 at position 1 cannot be decided with 128 bits");
    }
  });
}

}  // namespace
}  // namespace posenc::tabulate_test
