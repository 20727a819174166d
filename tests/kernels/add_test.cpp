// x + position on every backend and SIMD target: against plain sums of MPFR's values, byte for byte between
// backends, in every type, with every kind of strides, positions and source.

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "backends.h"
#include "kernels/case_tensor.h"
#include "oracle/mpfr_wave.h"
#include "posenc/posenc.h"

namespace posenc::add_test {
namespace {

using tests::CaseTensor;
using tests::for_each_engine;
using tests::make_case;
using tests::Strides;

constexpr Strides kStrides[] = {Strides::kDense, Strides::kPaddedRows, Strides::kSequenceFirst,
                                Strides::kColumnsApart};

template <class T> void expect_sums() {
  const std::int64_t batch = 3, sequence = 70, width = 38, first = 131'000;
  const Addition form = prepare(Sinusoidal{.width = width});
  for (const Strides kind : kStrides) {
    const auto original = make_case<T>(batch, sequence, width, kind, 1);
    for_each_engine([&] {
      auto in_place = original;
      add(in_place.view(), {.first = first}, form);
      auto out = make_case<T>(batch, sequence, width, Strides::kDense, 2);
      add(out.view(), original.const_view(), {.first = first}, form);
      auto x = original;
      for (std::int64_t b = 0; b < batch; ++b) {
        for (std::int64_t t = 0; t < sequence; ++t) {
          for (std::int64_t c = 0; c < width; ++c) {
            const bool f64 = std::is_same_v<T, double>;
            const double p = oracle::mpfr_wave({10000.0, c / 2 * 2, static_cast<long>(width)},
                                               static_cast<std::uint64_t>(first + t), static_cast<unsigned>(c % 2),
                                               1.0, f64 ? oracle::kF64 : oracle::kF32);
            const double term = numerics::widen(x.at(b, t, c));
            const double sum = f64 ? term + p : static_cast<double>(static_cast<float>(term) + static_cast<float>(p));
            ASSERT_EQ(in_place.at(b, t, c), numerics::narrow<T>(sum)) << b << ' ' << t << ' ' << c;
            ASSERT_EQ(out.at(b, t, c), numerics::narrow<T>(sum)) << b << ' ' << t << ' ' << c;
          }
        }
      }
    });
  }
}
TEST(Add, F32IsTheSumInF32) { expect_sums<float>(); }
TEST(Add, F64IsTheSumInF64) { expect_sums<double>(); }
TEST(Add, F16IsTheSumInF32RoundedOnce) { expect_sums<Half>(); }
TEST(Add, Bf16IsTheSumInF32RoundedOnce) { expect_sums<BFloat16>(); }

// Every source and way to give positions: all engines write the bytes that the reference writes.
TEST(Add, AgreesWithTheReferenceForEverySource) {
  const std::int64_t batch = 4, sequence = 67, width = 21;
  std::vector<double> weights(200 * width);
  for (std::size_t i = 0; i < weights.size(); ++i) weights[i] = 1.0 / static_cast<double>(i + 3);
  std::vector<float> narrow_weights(weights.begin(), weights.end());
  std::vector<std::int64_t> shared, each;
  for (std::int64_t i = 0; i < sequence; ++i) shared.push_back(i * 29 % 190);
  for (std::int64_t i = 0; i < batch * sequence; ++i) each.push_back(i * 13 % 190);
  const Form forms[] = {
      prepare(Sinusoidal{.width = width, .odd = OddWidth::kTrim}),
      prepare(Sinusoidal{.width = width, .odd = OddWidth::kZero}),
      prepare(Steps{.width = width}),
      prepare(Shift{.width = width, .seed = 9}),
      prepare(Learned{.rows = 200, .width = width, .offset = 2}, {.weights = view(weights.data(), {200, width})}),
      prepare(Learned{.rows = 200, .width = width}, {.weights = view(narrow_weights.data(), {200, width})})};
  const Positions positions[] = {{.first = 40}, {.ids = shared}, {.ids = each}};
  for (const Form& form : forms) {
    for (const Positions& where : positions) {
      const auto original = make_case<BFloat16>(batch, sequence, width, Strides::kPaddedRows, 4);
      const auto original_f32 = make_case<float>(batch, sequence, width, Strides::kDense, 5);
      force_backend("reference");
      auto want = original;
      auto want_f32 = original_f32;
      add(want.view(), where, std::get<Addition>(form));
      add(want_f32.view(), where, std::get<Addition>(form));
      for_each_engine([&] {
        for (const int count : {1, 5}) {
          set_threads(count);
          auto got = original;
          auto got_f32 = original_f32;
          add(got.view(), where, std::get<Addition>(form));
          add(got_f32.view(), where, std::get<Addition>(form));
          EXPECT_EQ(got.storage, want.storage);
          EXPECT_EQ(std::memcmp(got_f32.storage.data(), want_f32.storage.data(), 4 * want_f32.storage.size()), 0);
        }
        set_threads(0);
      });
    }
  }
}

// Infinities and NaN pass through addition as IEEE 754 says, in whole vectors and in what is left over.
template <class T> void expect_special_values() {
  const double inf = HUGE_VAL;
  const double specials[] = {inf, -inf, std::nan(""), -std::nan(""), 65504.0, 1e-7, 0.0, -0.0};
  const Addition zero = prepare(Steps{.width = 37, .step = 0.0});
  for_each_engine([&] {
    std::vector<T> x;
    for (std::size_t i = 0; i < 37; ++i) x.push_back(numerics::narrow<T>(specials[i % 8]));
    add(view(x.data(), {1, 37}), {}, zero);
    for (std::size_t i = 0; i < 37; ++i) {
      const double want = numerics::widen(numerics::narrow<T>(specials[i % 8]));
      const double got = numerics::widen(x[i]);
      EXPECT_TRUE(std::isnan(want) ? std::isnan(got) : got == want) << i << ": " << got << " for " << want;
    }
  });
}
TEST(Add, KeepsSpecialValues) {
  expect_special_values<float>();
  expect_special_values<double>();
  expect_special_values<Half>();
  expect_special_values<BFloat16>();
}

TEST(Add, WorksOnMoreAxesThanThree) {
  const Addition form = prepare(Steps{.width = 2, .step = 1.0});
  for_each_engine([&] {
    std::vector<float> x(2 * 3 * 4 * 2, 0.0f);
    add(view(x.data(), {2, 3, 4, 2}), {.first = 10}, form);
    for (std::size_t i = 0; i < x.size(); ++i) EXPECT_EQ(x[i], static_cast<float>(10 + i / 2 % 4));
  });
}

TEST(Add, GridsTakeOneIdForEachAxis) {
  const Addition form = prepare(Sinusoidal{.width = 8, .layout = WaveLayout::kSinCos, .axes = 2});
  const std::vector<std::int64_t> extents = {2, 3};
  const auto ids = grid_positions(extents);
  for_each_engine([&] {
    std::vector<float> x(6 * 8, 0.0f);
    add(view(x.data(), {6, 8}), {.ids = ids, .axes = 2}, form);
    for (std::size_t cell = 0; cell < 6; ++cell) {
      EXPECT_EQ(x[cell * 8], static_cast<float>(std::sin(static_cast<double>(cell / 3))));
      EXPECT_EQ(x[cell * 8 + 4], static_cast<float>(std::sin(static_cast<double>(cell % 3))));
    }
  });
}

TEST(AddBackward, SumsRepeatedPositionsInOrder) {
  const std::int64_t batch = 5, sequence = 40, width = 19, rows = 16;
  const auto gradient = make_case<float>(batch, sequence, width, Strides::kPaddedRows, 8);
  std::vector<std::int64_t> ids;
  for (std::int64_t i = 0; i < batch * sequence; ++i) ids.push_back(i * 7 % 13);
  std::vector<double> want(rows * width, 0.0);
  auto source = gradient;
  for (std::int64_t b = 0; b < batch; ++b) {
    for (std::int64_t t = 0; t < sequence; ++t) {
      for (std::int64_t c = 0; c < width; ++c) {
        want[static_cast<std::size_t>((ids[static_cast<std::size_t>(b * sequence + t)] + 2) * width + c)] +=
            static_cast<double>(source.at(b, t, c));
      }
    }
  }
  for_each_engine([&] {
    for (const int count : {1, 4}) {
      set_threads(count);
      std::vector<float> table(rows * width, 0.5f);
      add_backward(view(table.data(), {rows, width}), gradient.const_view(), {.ids = ids}, 2);
      for (std::size_t i = 0; i < table.size(); ++i) ASSERT_EQ(table[i], static_cast<float>(0.5 + want[i]));
    }
    set_threads(0);
  });
}

// The adjoint: ⟨add's derivative along dT, g⟩ = ⟨dT, add_backward(g)⟩.
TEST(AddBackward, IsTheAdjointOfAddInF64) {
  const std::int64_t sequence = 30, width = 6, rows = 12;
  const auto gradient = make_case<double>(2, sequence, width, Strides::kDense, 1);
  const auto direction = make_case<double>(1, rows, width, Strides::kDense, 2);
  std::vector<std::int64_t> ids;
  for (std::int64_t i = 0; i < sequence; ++i) ids.push_back(i * 5 % 11);
  for_each_engine([&] {
    std::vector<double> moved(2 * sequence * width, 0.0), table(rows * width, 0.0);
    const auto learned = prepare(Learned{.rows = rows, .width = width, .offset = 1},
                                 {.weights = view(direction.storage.data(), {rows, width})});
    add(view(moved.data(), {2, sequence, width}), {.ids = ids}, learned);
    add_backward(view(table.data(), {rows, width}), gradient.const_view(), {.ids = ids}, 1);
    double left = 0, right = 0;
    for (std::size_t i = 0; i < moved.size(); ++i) left += moved[i] * gradient.storage[i];
    for (std::size_t i = 0; i < table.size(); ++i) right += table[i] * direction.storage[i];
    EXPECT_NEAR(left, right, 1e-12);
  });
}

struct BadCall {
  const char* message;
  void (*call)();
};
float scratch[64];
const BadCall kBadCalls[] = {
    {"add: position -9007199254740992 is outside -2^53 + 1 to 2^53 - 1",
     [] {
       add(view(scratch, {1, 4}), {.first = -kPositionLimit}, prepare(Steps{.width = 4}));
     }},
    {"add: position 9007199254740992 is outside -2^53 + 1 to 2^53 - 1",
     [] {
       add(view(scratch, {2, 4}), {.first = kPositionLimit - 1}, prepare(Steps{.width = 4}));
     }},
    {"add: position 4 is past the table: 6 rows with offset 2 end at position 3",
     [] {
       const auto form =
           prepare(Learned{.rows = 6, .width = 2, .offset = 2}, {.weights = view(scratch + 32, {6, 2})});
       add(view(scratch, {5, 2}), {}, form);
     }},
    {"add: the form has width 4 but the tensor has 5",
     [] {
       add(view(scratch, {1, 5}), {}, prepare(Steps{.width = 4}));
     }},
    {"add: x must have 2 to 8 axes, the last two sequence and width, but has 1",
     [] { add(view(scratch, {4}), {}, prepare(Steps{.width = 4})); }},
    {"add: x has an impossible shape [4294967296, 4294967296, 4]",
     [] {
       add(view(scratch, {1ll << 32, 1ll << 32, 4}), {}, prepare(Steps{.width = 4}));
     }},
    {"add: x has no data",
     [] {
       add(view(static_cast<float*>(nullptr), {1, 4}), {}, prepare(Steps{.width = 4}));
     }},
    {"add: 3 position ids do not fit 2 sequences of 4 tokens and 1 axes",
     [] {
       const std::vector<std::int64_t> ids = {1, 2, 3};
       add(view(scratch, {2, 4, 4}), {.ids = ids}, prepare(Steps{.width = 4}));
     }},
    {"add: the form has 2 position axes but the positions have 1",
     [] {
       add(view(scratch, {2, 4}), {}, prepare(Sinusoidal{.width = 4, .axes = 2}));
     }},
    {"add: out must either be x or not overlap it",
     [] {
       add(view(scratch, {2, 4}), view(static_cast<const float*>(scratch) + 4, {2, 4}), {},
           prepare(Steps{.width = 4}));
     }},
    {"add: x cannot be written: axis 0 has stride 0",
     [] {
       TensorView x = view(scratch, {2, 4});
       x.strides[0] = 0;
       add(x, {}, prepare(Steps{.width = 4}));
     }},
    {"add: out has shape [2, 4] but x has [1, 4]",
     [] {
       add(view(scratch, {2, 4}), view(static_cast<const float*>(scratch) + 32, {1, 4}), {},
           prepare(Steps{.width = 4}));
     }},
    {"tabulate: out must be f32, f64, f16 or bf16 but is i64",
     [] {
       std::int64_t out[4];
       tabulate(view(out, {1, 4}), {}, prepare(Steps{.width = 4}));
     }},
    {"add_backward: position 7 is past the table: 8 rows with offset 1 end at position 6",
     [] {
       add_backward(view(scratch, {8, 2}), view(static_cast<const float*>(scratch) + 32, {1, 2}), {.first = 7}, 1);
     }},
};

TEST(Add, SaysWhatIsWrong) {
  for (const BadCall& bad : kBadCalls) {
    try {
      bad.call();
      ADD_FAILURE() << "accepted; expected: " << bad.message;
    } catch (const Error& error) {
      EXPECT_STREQ(error.what(), bad.message);
      EXPECT_EQ(last_error(), bad.message);
    }
  }
}

TEST(Add, LeavesEmptyTensorsAlone) {
  for_each_engine([&] {
    const std::vector<float> before(std::begin(scratch), std::end(scratch));
    EXPECT_NO_THROW(add(view(scratch, {0, 4}), {}, prepare(Steps{.width = 4})));
    EXPECT_NO_THROW(add(view(scratch, {1ll << 40, 0, 4}), {}, prepare(Steps{.width = 4})));
    EXPECT_EQ(std::vector<float>(std::begin(scratch), std::end(scratch)), before);
  });
}

}  // namespace
}  // namespace posenc::add_test
