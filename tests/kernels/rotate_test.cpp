// rotate on every backend and SIMD target: against MPFR's sines and plain products, byte for byte between backends,
// in every type, layout and direction, with every kind of strides, positions and source.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <random>

#include "backends.h"
#include "kernels/random_values.h"
#include "numerics/narrow.h"
#include "oracle/mpfr_wave.h"
#include "posenc/posenc.h"
#include "sanitized.h"

namespace posenc::rotate_test {
namespace {

using tests::for_each_engine;
using tests::random_values;

constexpr PairLayout kLayouts[] = {PairLayout::kHalves, PairLayout::kInterleaved, PairLayout::kInterleavedToHalves,
                                   PairLayout::kHalvesToInterleaved};
constexpr std::int64_t kFarPositions[] = {0,         1,          2047,          39'000,          131'071,
                                          1'000'003, 2147483647, 9007199254000, 9007199254740991};

// The oracle knows layouts by their pictures: [a a b b] and [a b a b].
std::size_t place(bool halves, std::int64_t pair, int second, std::int64_t pairs) {
  return static_cast<std::size_t>(halves ? pair + second * pairs : 2 * pair + second);
}

template <class T> void expect_rotation_of_mpfr() {
  constexpr bool kWide = std::is_same_v<T, double>;
  using W = std::conditional_t<kWide, double, float>;
  const std::int64_t dims = 38, features = 45, first = 3, pairs = dims / 2;
  const auto tokens = std::ssize(kFarPositions);
  const auto x = random_values<T>(tokens * features);
  for (const PairLayout layout : kLayouts) {
    for (const int sign : {1, -1}) {
      const Rotation form = prepare(Rope{.dims = dims, .layout = layout, .sign = sign, .first_dim = first});
      const bool from_halves = layout == PairLayout::kHalves || layout == PairLayout::kHalvesToInterleaved;
      const bool to_halves = layout == PairLayout::kHalves || layout == PairLayout::kInterleavedToHalves;
      auto want = x;
      for (std::int64_t t = 0; t < tokens; ++t) {
        for (std::int64_t i = 0; i < pairs; ++i) {
          const auto wave = [&](unsigned quarter) {
            return static_cast<W>(oracle::mpfr_wave({10000.0, 2 * static_cast<long>(i), static_cast<long>(dims)},
                                                    static_cast<std::uint64_t>(kFarPositions[t]), quarter, 1.0,
                                                    kWide ? oracle::kF64 : oracle::kF32));
          };
          const W c = wave(1), s = static_cast<W>(sign) * wave(0);
          const T* from = x.data() + t * features + first;
          T* to = want.data() + t * features + first;
          const W a = static_cast<W>(numerics::widen(from[place(from_halves, i, 0, pairs)]));
          const W b = static_cast<W>(numerics::widen(from[place(from_halves, i, 1, pairs)]));
          const W ac = a * c, bs = b * s, bc = b * c, as = a * s;
          to[place(to_halves, i, 0, pairs)] = numerics::narrow<T>(static_cast<double>(ac - bs));
          to[place(to_halves, i, 1, pairs)] = numerics::narrow<T>(static_cast<double>(bc + as));
        }
      }
      for_each_engine([&] {
        auto got = x;
        rotate(view(got.data(), {tokens, features}), {.ids = kFarPositions}, form);
        EXPECT_EQ(got, want) << choice_name(layout) << ' ' << sign;
        auto out = random_values<T>(tokens * features, 2);
        rotate(view(out.data(), {tokens, features}), view(x.data(), {tokens, features}), {.ids = kFarPositions},
               form);
        EXPECT_EQ(out, want) << choice_name(layout) << ' ' << sign << " to an output";
      });
    }
  }
}
TEST(Rotate, F32IsProductsAndSumsInF32) { expect_rotation_of_mpfr<float>(); }
TEST(Rotate, F64IsProductsAndSumsInF64) { expect_rotation_of_mpfr<double>(); }
TEST(Rotate, F16IsDoneInF32AndRoundedOnce) { expect_rotation_of_mpfr<Half>(); }
TEST(Rotate, Bf16IsDoneInF32AndRoundedOnce) { expect_rotation_of_mpfr<BFloat16>(); }

// --- every engine writes what the reference writes --------------------------------------------------------------

struct FormCase {
  const char* name;
  Rotation form;
  Positions positions;
};

// Tables and ids that the cases below refer to.
struct CaseData {
  static constexpr std::int64_t kBatch = 2, kSequence = 75, kMostPairs = 36;
  std::vector<std::int64_t> shared, own, three_axes;
  std::vector<float> cosines = random_values<float>(kBatch * kSequence * kMostPairs, 5);
  std::vector<float> sines = random_values<float>(kBatch * kSequence * kMostPairs, 6);
  std::vector<Half> narrow_cosines = random_values<Half>(200 * kMostPairs, 7),
                    narrow_sines = random_values<Half>(200 * kMostPairs, 8);
  CaseData() {
    std::mt19937_64 random(3);
    for (std::int64_t t = 0; t < kSequence; ++t) shared.push_back(static_cast<std::int64_t>(random() % 150));
    for (std::int64_t t = 0; t < kBatch * kSequence; ++t) own.push_back(static_cast<std::int64_t>(random() >> 12));
    for (std::int64_t t = 0; t < 3 * kBatch * kSequence; ++t)
      three_axes.push_back(static_cast<std::int64_t>(random() >> 30));
  }
  std::vector<FormCase> cases(std::int64_t dims) const {
    const std::int64_t pairs = dims / 2;
    const auto form = [&](Rope rope, const PrepareOptions& options = {}) {
      rope.dims = dims;
      return prepare(rope, options);
    };
    Rotation by_position, by_token;
    by_position.source =
        RotationTable{view(narrow_cosines.data(), {200, pairs}), view(narrow_sines.data(), {200, pairs})};
    by_token.source = RotationTable{view(cosines.data(), {kBatch, kSequence, pairs}),
                                    view(sines.data(), {kBatch, kSequence, pairs})};
    Rotation backwards = by_token;
    backwards.sign = -1;
    backwards.precision.table = DataType::kBF16;
    std::vector<FormCase> all = {
        {"plain", form({}), {.first = 131'000}},
        {"shared ids", form({}), {.ids = shared}},
        {"own ids", form({.base = 5e5}), {.ids = own}},
        {"magnitude", form({.scaling = YarnScaling{.factor = 4}}), {.first = 70'000}},
        {"clockwise", form({.sign = -1}), {.first = 12}},
        {"hf-f32", form({.scaling = YarnScaling{.factor = 4}}, {.numerics = Numerics::kHfF32}), {.first = 70'000}},
        {"ggml-f32",
         form({.scaling = YarnScaling{.factor = 4}}, {.numerics = Numerics::kGgmlF32}),
         {.first = 70'000}},
        {"growth", form({.scaling = XposScaling{.centre = 100}}), {.first = 64}},
        {"bf16 table", form({}, {.precision = {.table = DataType::kBF16}}), {.first = 1000}},
        {"bf16 arithmetic", form({}, {.precision = {DataType::kBF16, DataType::kBF16}}), {.first = 1000}},
        {"f64 arithmetic", form({}, {.precision = {.arithmetic = DataType::kF64}}), {.first = 1000}},
        {"f32 arithmetic", form({}, {.precision = {.arithmetic = DataType::kF32}}), {.first = 1000}},
        {"table by position", by_position, {.ids = shared}},
        {"table by token", by_token, {}},
        {"table backwards", backwards, {}},
    };
    if (pairs % 2 == 0) {
      const std::vector<std::int64_t> halves = {pairs / 2, pairs / 2};
      all.push_back({"blocks",
                     form({.sections = halves, .section_order = SectionOrder::kBlocks}),
                     {.ids = std::span(own).first(2 * kSequence), .axes = 2}});
    }
    if (pairs >= 3) {
      const std::vector<std::int64_t> sections = {pairs - 2, 1, 1};
      all.push_back({"sections", form({.sections = sections}), {.ids = three_axes, .axes = 3}});
    }
    return all;
  }
};

enum class Order { kHeadsFirst, kTokensFirst, kFeaturesApart };

// [batch, heads, sequence, features] over storage in another order.
template <class T> TensorView in_order(std::vector<T>& x, const Extents& shape, Order order) {
  const std::int64_t b = shape[0], h = shape[1], s = shape[2], d = shape[3];
  if (order == Order::kHeadsFirst) return view(x.data(), shape);
  if (order == Order::kTokensFirst) return swap_axes(view(x.data(), {b, s, h, d}), 1, 2);
  return swap_axes(view(x.data(), {b, h, d, s}), 2, 3);
}

// Fewer where every access is checked, and slow.
const std::vector<std::int64_t> kSomeDims = is_sample()  ? std::vector<std::int64_t>{34}
                                            : kSanitized ? std::vector<std::int64_t>{6, 72}
                                                         : std::vector<std::int64_t>{2, 6, 8, 34, 72};

// Values of at most 4 in products of e^0.4 at most: a few units in the last place of the larger product.
template <class T> void expect_near(const std::vector<T>& got, const std::vector<T>& want) {
  constexpr double kError = std::is_same_v<T, double> ? 0x1p-48 : std::is_same_v<T, Half> ? 0x1p-8 : 0x1p-21;
  ASSERT_EQ(got.size(), want.size());
  for (std::size_t i = 0; i < want.size(); ++i) {
    ASSERT_NEAR(numerics::widen(got[i]), numerics::widen(want[i]), kError) << i;
  }
}

template <class T, class Out> void expect_bytes_of_the_reference(Order order) {
  const CaseData data;
  for (const std::int64_t dims : kSomeDims) {
    for (const FormCase& one : data.cases(dims)) {
      for (const PairLayout layout : kLayouts) {
        SCOPED_TRACE(fmt::format("{} {} {}", one.name, dims, choice_name(layout)));
        Rotation form = one.form;
        form.layout = layout;
        form.first_dim = -dims;
        const Extents q_shape = {data.kBatch, 3, data.kSequence, dims + 5},
                      k_shape = {data.kBatch, 1, data.kSequence, dims};
        const auto q = random_values<T>(count_of(q_shape), 9), k = random_values<T>(count_of(k_shape), 10);
        const auto run = [&](bool in_place) {
          std::vector<Out> out_q(q.size()), out_k(k.size());
          auto q_in = q, k_in = k;
          const QueryKey<TensorView> x{in_order(q_in, q_shape, order), in_order(k_in, k_shape, order)};
          if constexpr (std::is_same_v<T, Out>) {
            if (in_place) {
              rotate(x, one.positions, form);
              return std::pair(q_in, k_in);
            }
          }
          rotate({in_order(out_q, q_shape, order), in_order(out_k, k_shape, order)}, {x.q, x.k}, one.positions, form);
          return std::pair(out_q, out_k);
        };
        force_backend("reference");
        const auto want = run(false);
        for_each_engine([&] {
          // e^x is the host's: on a GPU, growth keeps to the promised error, and only f32 and less keep to the bytes.
          if (backend() == "cuda" && has_growth(form) && sizeof(T) == sizeof(double)) {
            expect_near(run(false).first, want.first);
            expect_near(run(std::is_same_v<T, Out>).second, want.second);
            return;
          }
          EXPECT_EQ(run(false), want);
          EXPECT_EQ(run(std::is_same_v<T, Out>), want) << "in place";
          set_threads(3);
          EXPECT_EQ(run(false), want) << "three threads";
          set_threads(0);
        });
      }
    }
  }
}
TEST(Rotate, F32AgreesWithTheReference) {
  expect_bytes_of_the_reference<float, float>(Order::kHeadsFirst);
  expect_bytes_of_the_reference<float, float>(Order::kTokensFirst);
}
TEST(Rotate, F64AgreesWithTheReference) { expect_bytes_of_the_reference<double, double>(Order::kTokensFirst); }
TEST(Rotate, F16AgreesWithTheReference) { expect_bytes_of_the_reference<Half, Half>(Order::kTokensFirst); }
TEST(Rotate, Bf16AgreesWithTheReference) { expect_bytes_of_the_reference<BFloat16, BFloat16>(Order::kHeadsFirst); }
TEST(Rotate, FeaturesApartAgreeWithTheReference) {
  expect_bytes_of_the_reference<float, float>(Order::kFeaturesApart);
}
TEST(Rotate, OutputsOfAnotherTypeAgreeWithTheReference) {
  expect_bytes_of_the_reference<BFloat16, float>(Order::kTokensFirst);
  expect_bytes_of_the_reference<double, Half>(Order::kHeadsFirst);
}

// Every value of 16 bits, those that round halfway and those that are not finite among them, in many heads and in
// one.
template <class T> void expect_every_value_as_in_the_reference(float cosine, float sine, std::int64_t features = 64) {
  const std::int64_t tokens = 16, heads = 4096 / features;
  const std::vector<float> cosines(static_cast<std::size_t>(tokens * features / 2), cosine),
      sines(cosines.size(), sine);
  std::vector<T> x(static_cast<std::size_t>(tokens * heads * features));
  ASSERT_EQ(x.size(), 65536u);
  for (std::size_t i = 0; i < x.size(); ++i) x[i].bits = static_cast<std::uint16_t>(i * 40503 + i / 64);
  for (const PairLayout layout : kLayouts) {
    Rotation form{.source = RotationTable{view(cosines.data(), {tokens, features / 2}),
                                          view(sines.data(), {tokens, features / 2})}};
    form.layout = layout;
    const auto rotated = [&](std::int64_t together) {
      auto y = x;
      rotate(swap_axes(view(y.data(), {heads / together, tokens, together, features}), 1, 2), {}, form);
      return y;
    };
    for (const std::int64_t together : {std::int64_t{1}, std::int64_t{4}, heads}) {
      force_backend("reference");
      const auto want = rotated(together);
      for_each_engine([&] {
        const auto got = rotated(together);
        for (std::size_t i = 0; i < got.size(); ++i) {
          const double a = numerics::widen(got[i]), b = numerics::widen(want[i]);
          ASSERT_TRUE(got[i] == want[i] || (std::isnan(a) && std::isnan(b))) << i << ' ' << a << ' ' << b;
        }
      });
    }
  }
}
TEST(Rotate, EveryBf16RoundsToEvenAndKeepsWhatIsNotFinite) {
  expect_every_value_as_in_the_reference<BFloat16>(1.0f + 0x1p-8f, 0.0f);
  expect_every_value_as_in_the_reference<BFloat16>(0.75f, -0.5f);
  expect_every_value_as_in_the_reference<BFloat16>(0.75f, -0.5f, 256);
}
TEST(Rotate, EveryF16RoundsToEvenAndKeepsWhatIsNotFinite) {
  expect_every_value_as_in_the_reference<Half>(1.0f + 0x1p-11f, 0.0f);
  expect_every_value_as_in_the_reference<Half>(0.75f, -0.5f);
  expect_every_value_as_in_the_reference<Half>(0.75f, -0.5f, 256);
}

// Tensors that no cache holds are prefetched, and so is memory that is only written.
template <class T> void expect_large_ones_alike_in_place() {
  constexpr std::int64_t kTokens = 1030, kHeads = 16, kFeatures = 128;
  const Extents shape = {1, kTokens, kHeads, kFeatures};
  const auto x = random_values<T>(count_of(shape));
  ASSERT_GT(x.size() * sizeof(T), std::size_t{4} << 20);
  for (const PairLayout layout : kLayouts) {
    const Rotation form = prepare(Rope{.dims = kFeatures, .layout = layout});
    auto in_place = x, apart = std::vector<T>(x.size());
    rotate(swap_axes(view(in_place.data(), shape), 1, 2), {}, form);
    rotate(swap_axes(view(apart.data(), shape), 1, 2), swap_axes(view(x.data(), shape), 1, 2), {}, form);
    EXPECT_TRUE(in_place == apart);
  }
}
TEST(Rotate, LargeTensorsAreRotatedAlikeInPlaceAndApart) {
  expect_large_ones_alike_in_place<float>();
  expect_large_ones_alike_in_place<Half>();
  expect_large_ones_alike_in_place<BFloat16>();
}

// One of all ones would become 0 if rounding to bf16 carried into its sign. Queries of float32 share the table.
TEST(Rotate, ANanOfATableStaysOneWhateverItsBits) {
  constexpr std::int64_t kPairs = 64, kHeads = 3;
  std::vector<float> cosines(kPairs, 0.5f), sines(kPairs, 0.25f);
  for (std::size_t i = 0; i < cosines.size(); ++i) {
    if (i % 3 == 1) cosines[i] = std::bit_cast<float>(i % 2 == 0 ? 0xFFFFFFFFu : 0x7FFFFFFFu);
    if (i % 5 == 2) sines[i] = std::bit_cast<float>(0x7FFF8001u);
  }
  const RotationTable table{view(cosines.data(), {1, kPairs}), view(sines.data(), {1, kPairs})};
  for (const PairLayout layout : kLayouts) {
    const Rotation form{.layout = layout, .source = table};
    for_each_engine([&] {
      std::vector<float> q(kHeads * 2 * kPairs, 1.0f);
      std::vector<BFloat16> k(q.size(), numerics::narrow<BFloat16>(1.0));
      const Extents shape = {1, kHeads, 1, 2 * kPairs};
      rotate({.q = view(q.data(), shape), .k = view(k.data(), shape)}, {}, form);
      for (std::size_t i = 0; i < k.size(); ++i) {
        const std::size_t feature = i % (2 * kPairs);
        const bool alternates = layout == PairLayout::kInterleaved || layout == PairLayout::kHalvesToInterleaved;
        const std::size_t pair = alternates ? feature / 2 : feature % kPairs;
        ASSERT_EQ(std::isnan(numerics::widen(k[i])), pair % 3 == 1 || pair % 5 == 2) << feature;
      }
    });
  }
}

// --- the tests of others
// --------------------------------------------------------------------------------------------

// llama.cpp's own test: by p0 and then by p2 − p0 is by p2.
TEST(Rotate, TwiceIsOnceByTheSum) {
  const std::int64_t dims = 128, heads = 4, tokens = 5, p0 = 37, p2 = 1000;
  for_each_engine([&] {
    for (const PairLayout layout : {PairLayout::kHalves, PairLayout::kInterleaved}) {
      const Rotation form = prepare(Rope{.dims = dims, .layout = layout});
      const Extents shape = {heads, tokens, dims};
      auto twice = random_values<float>(count_of(shape)), once = twice;
      rotate(view(twice.data(), shape), {.first = p0}, form);
      const std::vector<std::int64_t> rest(tokens, p2 - p0);
      rotate(view(twice.data(), shape), {.ids = rest}, form);
      rotate(view(once.data(), shape), {.first = p2}, form);
      for (std::size_t i = 0; i < once.size(); ++i) ASSERT_NEAR(twice[i], once[i], 1e-6f) << i;
    }
  });
}

// --- properties
// -----------------------------------------------------------------------------------------------------

TEST(Rotate, KeepsTheNormAtAnyPosition) {
  const std::int64_t dims = 64, tokens = std::ssize(kFarPositions);
  const Rotation form = prepare(Rope{.dims = dims});
  const auto x = random_values<float>(tokens * dims);
  for_each_engine([&] {
    auto y = x;
    rotate(view(y.data(), {tokens, dims}), {.ids = kFarPositions}, form);
    for (std::int64_t t = 0; t < tokens; ++t) {
      double before = 0, after = 0;
      for (std::int64_t i = t * dims; i < (t + 1) * dims; ++i) {
        before += std::pow(static_cast<double>(x[static_cast<std::size_t>(i)]), 2);
        after += std::pow(static_cast<double>(y[static_cast<std::size_t>(i)]), 2);
      }
      EXPECT_NEAR(after / before, 1.0, 2e-7) << kFarPositions[t];
    }
  });
}

// ⟨R_m q, R_n k⟩ at distance 5, relative to |q||k|: the same at position 10⁷ as at 0.
TEST(Rotate, ScoresDependOnDistanceAlone) {
  const std::int64_t dims = 128;
  const Rotation form = prepare(Rope{.dims = dims});
  const auto q = random_values<double>(dims, 1), k = random_values<double>(dims, 2);
  double size = 0;
  for (std::size_t i = 0; i < q.size(); ++i) size += q[i] * q[i];
  for_each_engine([&] {
    const auto score = [&](std::int64_t m) {
      std::vector<float> rotated_q(q.begin(), q.end()), rotated_k(k.begin(), k.end());
      rotate(view(rotated_q.data(), {1, dims}), {.first = m + 5}, form);
      rotate(view(rotated_k.data(), {1, dims}), {.first = m}, form);
      double sum = 0;
      for (std::size_t i = 0; i < q.size(); ++i)
        sum += static_cast<double>(rotated_q[i]) * static_cast<double>(rotated_k[i]);
      return sum / size;
    };
    const double near = score(0);
    for (const std::int64_t m : {std::int64_t{1000}, std::int64_t{10'000'000}, (std::int64_t{1} << 53) - 6}) {
      EXPECT_NEAR(score(m), near, 2e-8) << m;
    }
  });
}

TEST(Rotate, BackwardIsTheAdjointAndKeepsTheMagnitude) {
  const std::int64_t dims = 16, tokens = 9;
  for_each_engine([&] {
    for (const PairLayout layout : kLayouts) {
      const Rotation form = prepare(Rope{.dims = dims, .layout = layout, .scaling = YarnScaling{.factor = 8}});
      ASSERT_GT(form.magnitude, 1.2);
      const auto x = random_values<double>(tokens * dims, 1), y = random_values<double>(tokens * dims, 2);
      auto rx = x, ry = y;
      rotate(view(rx.data(), {tokens, dims}), {.first = 7}, form);
      rotate_backward(view(ry.data(), {tokens, dims}), {.first = 7}, form);
      double forward = 0, backward = 0;
      for (std::size_t i = 0; i < x.size(); ++i) forward += rx[i] * y[i], backward += x[i] * ry[i];
      EXPECT_NEAR(forward, backward, 1e-12) << choice_name(layout);
      // The gradient of ⟨R x, y⟩ by x, by finite differences.
      const double step = 1e-3;
      for (std::size_t i = 0; i < x.size(); i += 5) {
        auto high = x, low = x;
        high[i] += step, low[i] -= step;
        rotate(view(high.data(), {tokens, dims}), {.first = 7}, form);
        rotate(view(low.data(), {tokens, dims}), {.first = 7}, form);
        double slope = 0;
        for (std::size_t j = 0; j < x.size(); ++j) slope += (high[j] - low[j]) * y[j];
        EXPECT_NEAR(slope / (2 * step), ry[i], 1e-10) << i;
      }
    }
  });
}

TEST(Rotate, InverseUndoesIt) {
  const std::int64_t dims = 24, tokens = 6;
  for_each_engine([&] {
    for (const PairLayout layout : kLayouts) {
      for (const RopeScaling& scaling :
           {RopeScaling(YarnScaling{.factor = 8}), RopeScaling(XposScaling{.centre = 3})}) {
        const Rotation form = prepare(Rope{.dims = dims, .layout = layout, .scaling = scaling});
        const auto x = random_values<double>(tokens * dims);
        auto y = x;
        rotate(view(y.data(), {tokens, dims}), {.first = 100}, form);
        rotate(view(y.data(), {tokens, dims}), {.first = 100}, inverse(form));
        for (std::size_t i = 0; i < x.size(); ++i) ASSERT_NEAR(y[i], x[i], 1e-14) << i;
      }
    }
  });
}

// Keys cached under one set of frequencies become those of another, wherever they stand.
TEST(Rotate, RerotateIsWhatTheOtherFormWouldHaveMade) {
  const std::int64_t dims = 32, tokens = std::ssize(kFarPositions);
  const auto x = random_values<double>(tokens * dims);
  const Rope rope{.dims = dims, .layout = PairLayout::kInterleavedToHalves};
  for (const Numerics numerics : {Numerics::kExact, Numerics::kHfF32}) {
    Rope longer = rope;
    longer.sign = -1;
    longer.scaling = DynamicScaling{.factor = 2};
    const Rotation from = prepare(rope, {.numerics = numerics}),
                   to = prepare(longer, {.length = 8192, .numerics = numerics});
    for_each_engine([&] {
      auto got = x, want = x;
      rotate(view(got.data(), {tokens, dims}), {.ids = kFarPositions}, from);
      rotate(view(want.data(), {tokens, dims}), {.ids = kFarPositions}, to);
      if (numerics == Numerics::kExact) {
        rerotate(view(got.data(), {tokens, dims}), {.ids = kFarPositions}, from, to);
      } else {
        EXPECT_THROW(between(from, to), Error);
        rerotate(view(got.data(), {tokens, dims}), {.ids = kFarPositions}, from, to);
      }
      for (std::size_t i = 0; i < x.size(); ++i) ASSERT_NEAR(got[i], want[i], 1e-14) << i;
    });
  }
}

// xPos: scores fade with distance and depend on it alone, for queries and keys rotated together.
TEST(Rotate, GrowthOfQueriesAndKeysCancelsButForTheDistance) {
  const std::int64_t dims = 64;
  const Rotation form = prepare(Rope{.dims = dims, .scaling = XposScaling{.scale_base = 512, .centre = 1000}});
  const auto q = random_values<double>(dims, 1), k = random_values<double>(dims, 2);
  for_each_engine([&] {
    const auto score = [&](std::int64_t m, std::int64_t n) {
      auto rotated_q = q, rotated_k = k;
      rotate(view(rotated_q.data(), {1, dims}), {.first = m}, form);
      rotate(view(rotated_k.data(), {1, dims}), {.first = n}, for_keys(form));
      double sum = 0;
      for (std::size_t i = 0; i < q.size(); ++i) sum += rotated_q[i] * rotated_k[i];
      return sum;
    };
    EXPECT_NEAR(score(100, 40), score(1100, 1040), 1e-10);
    auto both_q = q, both_k = k;
    rotate(QueryKey<TensorView>{view(both_q.data(), {1, dims}), view(both_k.data(), {1, dims})}, {.first = 1600},
           form);
    auto alone = k;
    rotate(view(alone.data(), {1, dims}), {.first = 1600}, for_keys(form));
    EXPECT_EQ(both_k, alone);
  });
}

}  // namespace
}  // namespace posenc::rotate_test
