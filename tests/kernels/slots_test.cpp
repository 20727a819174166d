// Keys and values in a cache: written to their slots, and moved to other positions.

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <utility>
#include <vector>

#include "backends.h"
#include "kernels/random_values.h"
#include "message_of.h"
#include "numerics/narrow.h"
#include "posenc/apply.h"
#include "posenc/attention.h"
#include "posenc/cache.h"
#include "posenc/error.h"
#include "posenc/schemes/alibi.h"
#include "posenc/schemes/rope.h"
#include "posenc/schemes/sinusoidal.h"

namespace posenc::slots_test {
namespace {

using tests::for_each_engine;
using tests::message_of;
using tests::some_values;

constexpr std::int64_t kBatch = 2, kHeads = 3, kTokens = 5, kFeatures = 16, kPages = 4, kPage = 4;

// Every key lies in its slot with the bytes that rotate gives it, and nothing else was written.
template <class From, class To> void expect_keys_in_their_slots(const Rotation& form, const Positions& positions) {
  const auto k = some_values<From>(kBatch * kHeads * kTokens * kFeatures, 1);
  const Extents shape = {kBatch, kHeads, kTokens, kFeatures};
  const std::vector<std::int64_t> slots = {3, 4, 5, -1, 15, 12, 0, 1, 8, 7};
  std::vector<To> want(k.size());
  rotate(view(want.data(), shape), view(k.data(), shape), positions, for_keys(form));
  const To untouched = numerics::narrow<To>(7.0);
  // [pages, page, heads, features] in memory
  std::vector<To> pool(static_cast<std::size_t>(kPages * kPage * kHeads * kFeatures), untouched), expected = pool;
  for (std::int64_t i = 0; i < kBatch * kTokens; ++i) {
    const std::int64_t slot = slots[static_cast<std::size_t>(i)], b = i / kTokens, t = i % kTokens;
    for (std::int64_t h = 0; h < kHeads && slot >= 0; ++h) {
      for (std::int64_t f = 0; f < kFeatures; ++f) {
        expected[static_cast<std::size_t>((slot * kHeads + h) * kFeatures + f)] =
            want[static_cast<std::size_t>(((b * kHeads + h) * kTokens + t) * kFeatures + f)];
      }
    }
  }
  const TensorView cache = swap_axes(view(pool.data(), {kPages, kPage, kHeads, kFeatures}), 1, 2);
  rotate_into(cache, slots, view(k.data(), shape), positions, form);
  EXPECT_EQ(pool, expected);
}

TEST(Slots, KeysAreRotatedIntoThem) {
  const std::vector<std::int64_t> shared = {9, 2, 70, 4, 5}, own = {9, 2, 70, 4, 5, 100, 3, 0, 1, 2},
                                  grid = {0, 1, 2, 3, 4, 5, 4, 3, 2, 1};
  const Rotation rope = prepare(Rope{.dims = kFeatures}), xpos = prepare(Rope{.dims = 8, .scaling = XposScaling{}}),
                 mrope = prepare(Rope{.dims = kFeatures, .sections = {4, 4}});
  for_each_engine([&] {
    expect_keys_in_their_slots<float, float>(rope, {.first = 11});
    expect_keys_in_their_slots<float, BFloat16>(rope, {.ids = shared});
    expect_keys_in_their_slots<Half, Half>(xpos, {.ids = own});
    expect_keys_in_their_slots<float, float>(mrope, {.ids = grid, .axes = 2});
    expect_keys_in_their_slots<double, double>(mrope, {.first = 3});
  });
}

// From any type to any other: the key rounded once, whether heads are read in place, converted or of a partial rotation, and
// however long the runs of consecutive slots are.
template <class From, class To> void expect_rounded_once(const Rotation& form, std::int64_t features) {
  constexpr std::int64_t kLong = 37,
                         kSize = 16;  // more tokens than a block has at a time, pages that it does not fill
  const auto k = some_values<From>(kHeads * kLong * features, 5);
  const Extents shape = {kHeads, kLong, features};
  std::vector<double> wide, turned(k.size());
  for (const From x : k) wide.push_back(numerics::widen(x));
  Rotation in_f32 = form;
  in_f32.precision.arithmetic = DataType::kF32;
  in_f32.precision.table = DataType::kF32;
  rotate(view(turned.data(), shape), view(wide.data(), shape), {.first = 90'000}, in_f32);
  std::vector<std::int64_t> slots;
  for (std::int64_t t = 0; t < kLong; ++t) slots.push_back(t < 20 ? t + 9 : 99 - t);
  for (const bool heads_outside : {true, false}) {
    std::vector<To> pool(static_cast<std::size_t>(7 * kSize * kHeads * features));
    std::vector<From> given(k.size());
    const TensorView to = heads_outside ? view(pool.data(), {7, kHeads, kSize, features})
                                        : swap_axes(view(pool.data(), {7, kSize, kHeads, features}), 1, 2);
    const TensorView x =
        heads_outside ? view(given.data(), shape) : swap_axes(view(given.data(), {kLong, kHeads, features}), 0, 1);
    const auto element = [](const TensorView& tensor, std::int64_t a, std::int64_t b, std::int64_t c,
                            std::int64_t d) {
      const Extents& s = tensor.strides;
      return s.rank == 4 ? a * s[0] + b * s[1] + c * s[2] + d * s[3] : b * s[0] + c * s[1] + d * s[2];
    };
    for (std::int64_t h = 0; h < kHeads; ++h) {
      for (std::int64_t t = 0; t < kLong; ++t) {
        for (std::int64_t f = 0; f < features; ++f) {
          given[static_cast<std::size_t>(element(x, 0, h, t, f))] =
              k[static_cast<std::size_t>((h * kLong + t) * features + f)];
        }
      }
    }
    rotate_into(to, slots, x, {.first = 90'000}, form);
    for (std::int64_t h = 0; h < kHeads; ++h) {
      for (std::int64_t t = 0; t < kLong; ++t) {
        const std::int64_t slot = slots[static_cast<std::size_t>(t)];
        for (std::int64_t f = 0; f < features; ++f) {
          const double want = turned[static_cast<std::size_t>((h * kLong + t) * features + f)];
          const To got = pool[static_cast<std::size_t>(element(to, slot / kSize, h, slot % kSize, f))];
          ASSERT_EQ(got, numerics::narrow<To>(want)) << "head " << h << ", token " << t << ", feature " << f;
        }
      }
    }
  }
}
template <class From> void expect_rounded_once_to_any(const Rotation& form, std::int64_t features) {
  expect_rounded_once<From, float>(form, features);
  expect_rounded_once<From, Half>(form, features);
  expect_rounded_once<From, BFloat16>(form, features);
}

TEST(Slots, KeysAreRoundedOnceToAnyType) {
  const Rotation halves = prepare(Rope{.dims = 24}),
                 alternating = prepare(Rope{.dims = 80, .layout = PairLayout::kInterleaved});
  for_each_engine([&] {
    for (const auto& [form, features] : {std::pair{&halves, std::int64_t{37}}, {&alternating, 80}}) {
      expect_rounded_once_to_any<float>(*form, features);
      expect_rounded_once_to_any<Half>(*form, features);
      expect_rounded_once_to_any<BFloat16>(*form, features);
    }
  });
}

// Values of any bits, in rows of any length: rounded once, and a NaN stays one.
template <class From, class To> void expect_copies_rounded_once() {
  constexpr std::int64_t kMost = 150;
  std::vector<From> x(kMost);
  for (std::size_t i = 0; i < x.size(); ++i) {
    if constexpr (sizeof(From) == 2) {
      x[i].bits = static_cast<std::uint16_t>(i * 40503U + 977);
    } else {
      x[i] = std::bit_cast<float>(static_cast<std::uint32_t>(i * 2654435761U + 12345));
    }
  }
  if constexpr (sizeof(From) ==
                4) {  // ties, the largest that round to a finite number, subnormal and special numbers
    const float special[] = {
        1.00390625f, 1.01171875f, 1.00048828125f, 65519.99f, 65520.0f, 3.3961775e38f, 3.39617753e38f, 2.98023224e-8f,
        1e-40f,      -0.0f,       INFINITY,       -INFINITY, NAN};
    std::copy(std::begin(special), std::end(special), x.begin() + 3);
  }
  for (const std::int64_t features : {1, 7, 16, 33, 64, 128, 150}) {
    std::vector<To> pool(static_cast<std::size_t>(features));
    copy_into(view(pool.data(), {1, 1, 1, features}), std::vector<std::int64_t>{0}, view(x.data(), {1, features}));
    for (std::size_t f = 0; f < pool.size(); ++f) {
      const double given = numerics::widen(x[f]);
      if (std::isnan(given)) {
        EXPECT_TRUE(std::isnan(numerics::widen(pool[f]))) << f;
      } else {
        using Bytes = std::array<std::byte, sizeof(To)>;
        EXPECT_EQ(std::bit_cast<Bytes>(pool[f]), std::bit_cast<Bytes>(numerics::narrow<To>(given)))
            << f << ": " << given;
      }
    }
  }
}

TEST(Slots, ValuesAreRoundedOnceToAnyType) {
  for_each_engine([] {
    expect_copies_rounded_once<float, Half>();
    expect_copies_rounded_once<float, BFloat16>();
    expect_copies_rounded_once<Half, float>();
    expect_copies_rounded_once<Half, BFloat16>();
    expect_copies_rounded_once<BFloat16, float>();
    expect_copies_rounded_once<BFloat16, Half>();
  });
}

TEST(Slots, ValuesAreCopiedIntoThem) {
  const auto v = some_values<float>(kHeads * 2 * kFeatures, 1);
  std::vector<Half> pool(static_cast<std::size_t>(kPages * kHeads * kPage * kFeatures));
  const std::vector<std::int64_t> slots = {6, 1};
  copy_into(view(pool.data(), {kPages, kHeads, kPage, kFeatures}), slots, view(v.data(), {kHeads, 2, kFeatures}));
  for (std::int64_t h = 0; h < kHeads; ++h) {
    for (std::int64_t f = 0; f < kFeatures; ++f) {
      const auto at = [&](std::int64_t page, std::int64_t offset) {
        return pool[static_cast<std::size_t>(((page * kHeads + h) * kPage + offset) * kFeatures + f)];
      };
      const auto from = [&](std::int64_t t) {
        return numerics::narrow<Half>(static_cast<double>(v[static_cast<std::size_t>((h * 2 + t) * kFeatures + f)]));
      };
      EXPECT_EQ(at(1, 2), from(0));
      EXPECT_EQ(at(0, 1), from(1));
      EXPECT_EQ(at(3, 3), Half{});
    }
  }
}

// Text: consecutive positions for a rotation of several axes are the same on all of them.
TEST(Slots, TextHasOnePositionOnAllAxes) {
  const Rotation mrope = prepare(Rope{.dims = 16, .sections = {2, 3, 3}});
  const std::vector<std::int64_t> ids = {7, 8, 9, 7, 8, 9, 7, 8, 9};
  for_each_engine([&] {
    auto one = some_values<float>(3 * 16, 4), other = one;
    rotate(view(one.data(), {3, 16}), {.first = 7}, mrope);
    rotate(view(other.data(), {3, 16}), {.ids = ids, .axes = 3}, mrope);
    EXPECT_EQ(one, other);
  });
}

// Ids of 32 bits are read as they are: the same bytes as those of 64.
TEST(Slots, IdsMayBeNarrow) {
  const std::vector<std::int64_t> wide = {9, 2, 70, 4, 100, 3, 0, 1}, grid = {0, 1, 2, 3, 5, 4, 3, 2};
  const std::vector<std::int32_t> narrow(wide.begin(), wide.end()), narrow_grid(grid.begin(), grid.end());
  const Rotation rope = prepare(Rope{.dims = 8}), mrope = prepare(Rope{.dims = 8, .sections = {2, 2}});
  const Addition waves = prepare(Sinusoidal{.width = 8});
  const Bias slopes = prepare(Alibi{.heads = 3});
  for_each_engine([&] {
    if (backend() == "cuda") return;
    const Extents shape = {2, 3, 4, 8};
    const auto x = some_values<float>(count_of(shape), 6);
    auto one = x, other = x;
    rotate(view(one.data(), shape), {.ids = wide}, rope);
    rotate(view(other.data(), shape), {.ids_i32 = narrow}, rope);
    EXPECT_EQ(one, other);
    rotate(view(one.data(), shape), {.ids = grid, .axes = 2}, mrope);
    rotate(view(other.data(), shape), {.axes = 2, .ids_i32 = narrow_grid}, mrope);
    EXPECT_EQ(one, other);
    add(view(one.data(), {2, 4, 8}), {.ids = wide}, waves);
    add(view(other.data(), {2, 4, 8}), {.ids_i32 = narrow}, waves);
    EXPECT_EQ(one, other);
    std::vector<float> biases(2 * 3 * 4 * 4), narrow_biases(biases.size());
    bias(view(biases.data(), {2, 3, 4, 4}), {.ids = wide}, {.first = 0}, slopes);
    bias(view(narrow_biases.data(), {2, 3, 4, 4}), {.ids_i32 = narrow}, {.first = 0}, slopes);
    EXPECT_EQ(biases, narrow_biases);
    std::vector<float> out(x.size()), narrow_out(x.size());
    attention(view(out.data(), shape), view(x.data(), shape), view(x.data(), shape), view(x.data(), shape),
              {.position = rope, .query_positions = Positions{.ids = wide}, .key_positions = Positions{.ids = wide}});
    attention(view(narrow_out.data(), shape), view(x.data(), shape), view(x.data(), shape), view(x.data(), shape),
              {.position = rope,
               .query_positions = Positions{.ids_i32 = narrow},
               .key_positions = Positions{.ids_i32 = narrow}});
    EXPECT_EQ(out, narrow_out);
  });
}

struct ShiftCase {
  std::string_view name;
  Rope rope;
};

// Every scaling there is, with a factor that changes it.
template <std::size_t I = 0> void add_scalings(std::vector<ShiftCase>& cases) {
  if constexpr (I < std::variant_size_v<RopeScaling>) {
    using Scaling = std::variant_alternative_t<I, RopeScaling>;
    Scaling scaling;
    Scaling::fields([&](std::string_view field, auto member, std::string_view) {
      if constexpr (std::is_same_v<decltype(member), double Scaling::*>) {
        if (field == "factor" || field == "alpha") scaling.*member = 6;
      }
    });
    Rope rope{.dims = 16, .scaling = scaling};
    int drawn = 0;
    rope.draw_trained([&] { return std::sin(++drawn); });
    cases.push_back({Scaling::name, rope});
    add_scalings<I + 1>(cases);
  }
}

// A shifted key is the key of the other position: by one rotation, within the rounding of two.
TEST(Slots, ShiftedKeysAreThoseOfTheOtherPosition) {
  std::vector<ShiftCase> cases = {
      {"plain", {.dims = 16}},
      {"interleaved, partial", {.dims = 8, .layout = PairLayout::kInterleaved, .first_dim = 4}},
      {"written elsewhere than read", {.dims = 16, .layout = PairLayout::kInterleavedToHalves}},
      {"and back", {.dims = 8, .layout = PairLayout::kHalvesToInterleaved, .first_dim = -8}},
      {"yarn", {.dims = 16, .scaling = YarnScaling{.factor = 16, .original_length = 64}}},
      {"llama3", {.dims = 16, .base = 500000, .scaling = Llama3Scaling{.factor = 8}}},
      {"clockwise", {.dims = 16, .sign = -1}},
      {"growth", {.dims = 16, .scaling = XposScaling{}}},
      {"sections", {.dims = 16, .sections = {2, 3, 3}}},
      {"blocks", {.dims = 16, .sections = {4, 4}, .section_order = SectionOrder::kBlocks}},
  };
  add_scalings(cases);
  for (const ShiftCase& one : cases) {
    SCOPED_TRACE(one.name);
    const Rotation form = prepare(one.rope, {.length = 5000});
    for (const std::int64_t by : {1, -5, 300}) {
      for_each_engine([&] {
        const auto k = some_values<double>(2 * 4 * 16, 5);
        const Extents shape = {2, 4, 16};
        std::vector<double> moved(k.size()), want(k.size());
        rotate(view(moved.data(), shape), view(k.data(), shape), {.first = 10}, for_keys(form));
        rotate(view(want.data(), shape), view(k.data(), shape), {.first = 10 + by}, for_keys(form));
        shift(view(moved.data(), shape), by, form);
        for (std::size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(moved[i], want[i], 1e-13) << by << ' ' << i;
        std::vector<float> narrow(want.begin(), want.end());
        shift(view(narrow.data(), shape), -by, form);
        rotate(view(want.data(), shape), view(k.data(), shape), {.first = 10}, for_keys(form));
        for (std::size_t i = 0; i < want.size(); ++i) {
          EXPECT_NEAR(static_cast<double>(narrow[i]), want[i], 4e-7 * (1 + std::fabs(want[i])));
        }
      });
    }
  }
}

// How far keys of 16 bits are from those of their position after many shifts, over the largest of them. Steps that would
// leave them behind are refused.
template <class T> double error_after(std::int64_t steps, std::int64_t by) {
  const Rotation form = prepare(Rope{.dims = 64});
  const Extents shape = {16, 64};
  const auto k = some_values<double>(16 * 64, 5);
  std::vector<double> want(k.size());
  std::vector<T> keys;
  rotate(view(want.data(), shape), view(k.data(), shape), {.first = 4096}, form);
  for (const double x : want) keys.push_back(numerics::narrow<T>(x));
  for (std::int64_t i = 0; i < steps; ++i) shift(view(keys.data(), shape), by, form);
  rotate(view(want.data(), shape), view(k.data(), shape), {.first = 4096 + steps * by}, form);
  double error = 0, size = 0;
  for (std::size_t i = 0; i < want.size(); ++i) {
    error = std::max(error, std::fabs(numerics::widen(keys[i]) - want[i]));
    size = std::max(size, std::fabs(want[i]));
  }
  return error / size;
}

TEST(Slots, ShiftsOfNarrowKeysDoNotDecay) {
  EXPECT_LT(error_after<BFloat16>(16, -64), 17 * 0x1p-9);  // half an ulp each, and one of the keys themselves
  EXPECT_LT(error_after<Half>(16, -64), 17 * 0x1p-12);
  EXPECT_LT(error_after<float>(1024, -1), 1e-4);
  for (const std::int64_t by : {-63, -1, 1, 63}) {
    const std::string wanted =
        "keys decay if shifted by " + std::to_string(by) +
        " again and again; shift by at least 64 at once, keep keys in f32, or shift none and let "
        "the positions of new tokens go on";
    EXPECT_EQ(message_of([&] { error_after<BFloat16>(1, by); }), "shift: bf16 " + wanted);
    EXPECT_EQ(message_of([&] { error_after<Half>(1, by); }), "shift: f16 " + wanted);
    EXPECT_EQ(message_of([&] { error_after<float>(1, by); }), "accepted");
  }
  EXPECT_EQ(message_of([&] { error_after<BFloat16>(3, 0); }), "accepted");
}

// The keys of one sequence move, those of others stay: as shift moves a tensor of its own.
TEST(Slots, KeysOfSomeSlotsAreShifted) {
  const std::vector<std::int64_t> slots = {3, 4, 5, -1, 15, 12, 0, 1, 7};
  for (const PairLayout layout : {PairLayout::kHalves, PairLayout::kInterleaved}) {
    const Rotation form =
        prepare(Rope{.dims = 8, .layout = layout, .scaling = YarnScaling{.factor = 16, .original_length = 64}});
    for_each_engine([&] {
      auto pool = some_values<float>(kPages * kPage * kHeads * kFeatures, 8), want = pool;
      const auto cache = [](std::vector<float>& x) {
        return heads_first(view(x.data(), {kPages, kPage, kHeads, kFeatures}), Axes::kBshd);
      };
      for (const std::int64_t slot : slots) {
        if (slot >= 0) shift(slice(slice(cache(want), 0, slot / kPage, 1), 2, slot % kPage, 1), -3, form);
      }
      shift(cache(pool), slots, -3, form);
      EXPECT_EQ(pool, want);
    });
  }
}

// As if everything were read before anything is written, whichever way they overlap.
TEST(Slots, TokensAreCopiedBetweenThem) {
  const std::vector<std::int64_t> from = {4, 5, 6, 7, 8, -1, 2, 3, 3}, to = {2, 3, 4, 5, 6, 9, -1, 0, 15};
  for_each_engine([&] {
    const auto before = some_values<Half>(kPages * kPage * kHeads * kFeatures, 8);
    for (const bool heads_last : {false, true}) {
      auto pool = before, want = before;
      const TensorView cache = heads_last ? swap_axes(view(pool.data(), {kPages, kPage, kHeads, kFeatures}), 1, 2)
                                          : view(pool.data(), {kPages, kHeads, kPage, kFeatures});
      for (std::size_t i = 0; i < to.size(); ++i) {
        if (to[i] < 0 || from[i] < 0) continue;
        for (std::int64_t at = 0; at < kHeads * kFeatures; ++at) {
          const std::int64_t h = at / kFeatures, f = at % kFeatures;
          const auto index = [&](std::int64_t slot) {
            return static_cast<std::size_t>(slot / kPage * cache.strides[0] + h * cache.strides[1] +
                                            slot % kPage * cache.strides[2] + f);
          };
          want[index(to[i])] = before[index(from[i])];
        }
      }
      copy_slots(cache, to, from);
      EXPECT_EQ(pool, want);
    }
  });
}

TEST(Slots, FollowFromPages) {
  const std::vector<std::int32_t> pages = {5, 2, -1, 7};
  EXPECT_EQ(slots_of(pages, 4, 2, 5), (std::vector<std::int64_t>{22, 23, 8, 9, 10}));
  EXPECT_EQ(slots_of(pages, 4, 12, 4), (std::vector<std::int64_t>{28, 29, 30, 31}));
  EXPECT_EQ(slots_of(pages, 4, 16, 0), (std::vector<std::int64_t>{}));
}

// A context that is full drops its oldest tokens but the first few, as llama.cpp's context shift does: the others close the
// gap, and attention over the cache is attention over the tokens that are left.
TEST(Slots, AContextIsShifted) {
  constexpr std::int64_t kKept = 3, kDropped = 5, kAll = 14, kLeft = kAll - kDropped;
  const std::vector<std::int32_t> pages = {2, 0, 3, 1};
  const Rotation rope = prepare(Rope{.dims = kFeatures});
  for_each_engine([&] {
    if (backend() == "cuda") return;
    const auto k = some_values<float>(kHeads * kAll * kFeatures, 1),
               v = some_values<float>(kHeads * kAll * kFeatures, 2), q = some_values<float>(kHeads * kFeatures, 3);
    std::vector<float> k_pool(kPages * kHeads * kPage * kFeatures), v_pool = k_pool;
    const TensorView k_cache = view(k_pool.data(), {kPages, kHeads, kPage, kFeatures}),
                     v_cache = view(v_pool.data(), {kPages, kHeads, kPage, kFeatures});
    const auto all = slots_of(pages, kPage, 0, kAll);
    rotate_into(k_cache, all, view(k.data(), {kHeads, kAll, kFeatures}), {}, rope);
    copy_into(v_cache, all, view(v.data(), {kHeads, kAll, kFeatures}));

    const auto from = slots_of(pages, kPage, kKept + kDropped, kLeft - kKept),
               to = slots_of(pages, kPage, kKept, kLeft - kKept);
    copy_slots(k_cache, to, from);
    copy_slots(v_cache, to, from);
    shift(k_cache, to, -kDropped, rope);

    const std::vector<std::int64_t> lengths = {kLeft};
    std::vector<float> got(q.size()), want(q.size()), k_left, v_left;
    const Extents one = {1, kHeads, 1, kFeatures};
    attention(
        view(got.data(), one), view(q.data(), one), k_cache, v_cache,
        {.position = rope, .causal = true, .keys_are_rotated = true, .key_lengths = lengths, .block_table = pages});
    for (std::int64_t at = 0; at < kHeads * kAll * kFeatures; ++at) {
      const std::int64_t t = at / kFeatures % kAll;
      if (t >= kKept && t < kKept + kDropped) continue;
      k_left.push_back(k[static_cast<std::size_t>(at)]);
      v_left.push_back(v[static_cast<std::size_t>(at)]);
    }
    attention(view(want.data(), one), view(q.data(), one), view(k_left.data(), {1, kHeads, kLeft, kFeatures}),
              view(v_left.data(), {1, kHeads, kLeft, kFeatures}), {.position = rope, .causal = true});
    for (std::size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(got[i], want[i], 2e-6f);
  });
}

TEST(Slots, SayWhatIsWrong) {
  std::vector<float> pool(4 * 2 * 4 * 8, 1.0f);
  const std::vector<float> before = pool, k(2 * 3 * 8, 0.5f);
  const TensorView cache = view(pool.data(), {4, 2, 4, 8});
  const auto in = [&](const Extents& shape) { return view(k.data(), shape); };
  const auto stored = [&](std::vector<std::int64_t> slots, const Extents& shape) {
    return message_of([&] { rotate_into(cache, slots, in(shape), {.first = 0}, prepare(Rope{.dims = 8})); });
  };
  EXPECT_EQ(stored({0, 1}, {2, 3, 8}), "rotate_into: got 2 slots for 1 sequences of 3 tokens; each token needs one");
  EXPECT_EQ(stored({0, 1, 16}, {2, 3, 8}), "rotate_into: slot 16 is past the end of the cache, which has 16 slots");
  EXPECT_EQ(stored({0, 5, 0}, {2, 3, 8}), "rotate_into: slot 0 occurs twice");
  EXPECT_EQ(stored({0, 1, 2}, {1, 3, 8}),
            "rotate_into: the cache has 2 heads of 8 features but the tensor has 1 of 8");
  EXPECT_EQ(message_of([&] {
              copy_into(view(pool.data(), {4, 8}), {}, in({1, 8}));
            }),
            "copy_into: the cache must have 4 axes, pages, heads, page size, features, but has 2");
  EXPECT_EQ(message_of([&] {
              const std::vector<std::int64_t> slots = {0, 1, 2};
              rotate_into(cache, slots, in({2, 3, 8}), {.first = -4}, prepare(Rope{.dims = 8}));
            }),
            "rotate_into: position -4 is outside 0 to 2^53 - 1");
  EXPECT_EQ(
      message_of([&] {  // the last of three parts
        const std::vector<std::int64_t> slots = {0, 5, 10}, ids = {0, 1, 100'000};
        rotate_into(cache, slots, in({2, 3, 8}), {.ids = ids}, prepare(Rope{.dims = 8, .scaling = XposScaling{}}));
      }),
      "rotate_into: position 100000 is too far from the centre 0: growth allows a distance of 32695");
  EXPECT_EQ(message_of([&] { shift(cache, 1, prepare(Rope{.dims = 8}, {.numerics = Numerics::kHfF32})); }),
            "shift: float32 angles do not shift by a constant; use rerotate");
  EXPECT_EQ(message_of([&] {
              const std::vector<std::int64_t> slots = {0, 1, 2}, ids = {0, 1, 2};
              const std::vector<std::int32_t> narrow = {0, 1, -2};
              rotate_into(cache, slots, in({2, 3, 8}), {.ids = ids, .ids_i32 = narrow}, prepare(Rope{.dims = 8}));
            }),
            "rotate_into: positions have both ids and ids_i32; give only one of them");
  EXPECT_EQ(message_of([&] {
              const std::vector<std::int64_t> slots = {0, 1, 2};
              const std::vector<std::int32_t> narrow = {0, 1, -2};
              rotate_into(cache, slots, in({2, 3, 8}), {.ids_i32 = narrow}, prepare(Rope{.dims = 8}));
            }),
            "rotate_into: position -2 is outside 0 to 2^53 - 1");
  EXPECT_EQ(message_of([&] { shift(cache, kPositionLimit, prepare(Rope{.dims = 8})); }),
            "shift: by must be between -2^53 and 2^53 but is 9007199254740992");
  const std::vector<std::int64_t> twice = {1, 1}, past = {1, 16}, two = {2, 3}, one = {4};
  const Rotation rope = prepare(Rope{.dims = 8});
  EXPECT_EQ(message_of([&] { shift(cache, twice, 1, rope); }), "shift: slot 1 occurs twice");
  EXPECT_EQ(message_of([&] { shift(cache, past, 1, rope); }),
            "shift: slot 16 is past the end of the cache, which has 16 slots");
  EXPECT_EQ(message_of([&] { shift(cache, two, 1, prepare(Rope{.dims = 16})); }),
            "shift: x has 8 features, but the form rotates 16 from feature 0");
  EXPECT_EQ(message_of([&] { copy_slots(cache, twice, two); }), "copy_slots: slot 1 occurs twice");
  EXPECT_EQ(message_of([&] { copy_slots(cache, two, past); }),
            "copy_slots: slot 16 is past the end of the cache, which has 16 slots");
  EXPECT_EQ(message_of([&] { copy_slots(cache, two, one); }), "copy_slots: `to` has 2 slots but `from` has 1");
  EXPECT_EQ(message_of([&] { copy_into(cache, two, slice(slice(cache, 0, 1, 1), 2, 0, 2)); }),
            "copy_into: the cache overlaps x; copy_slots copies within a cache");
  const std::vector<std::int32_t> pages = {5, -1};
  EXPECT_EQ(message_of([&] { slots_of(pages, 4, 3, 2); }),
            "slots_of: token 4 is in page -1; pages must be 0 or more");
  EXPECT_EQ(message_of([&] { slots_of(pages, 4, 3, 6); }),
            "slots_of: 6 tokens from token 3 on do not fit into 2 pages of 4 tokens");
  EXPECT_EQ(
      message_of([&] { slots_of(pages, 4, INT64_MAX, INT64_MAX); }),
      "slots_of: 9223372036854775807 tokens from token 9223372036854775807 on do not fit into 2 pages of 4 tokens");
  EXPECT_EQ(message_of([&] { slots_of(pages, 0, 0, 1); }), "slots_of: page_size must be 1 or more but is 0");
  EXPECT_EQ(message_of([&] { slots_of(pages, 4, -1, 1); }),
            "slots_of: first and count must be 0 or more but are -1 and 1");
  EXPECT_EQ(pool, before);
}

}  // namespace
}  // namespace posenc::slots_test
