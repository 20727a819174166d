// Masks of every type and stride, for decoding and for blocks of queries, with groups of heads: the formula, and no trace of
// what they hide.

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "attention/oracle.h"
#include "backends.h"
#include "numerics/elements.h"
#include "posenc/attention.h"

namespace posenc::mask_types_test {
namespace {

using tests::answer_of;
using tests::budget_of;
using tests::error_of;
using tests::for_each_host_engine;
using tests::Heads;
using tests::Pair;
using tests::Question;
using tests::random_heads;

struct MaskShape {
  std::int64_t queries, group, keys;
};
// One query, a few of them, groups that share a load, blocks of queries; keys that end within a word, a vector, a step.
constexpr MaskShape kMaskShapes[] = {{1, 1, 1100}, {1, 4, 150}, {1, 8, 131}, {3, 4, 97},
                                     {1, 17, 96},  {2, 16, 70}, {33, 2, 140}};
constexpr std::int64_t kKeyHeads = 2, kFeatures = 64;

// A mask of some type, in some strides, of [queries, keys] or [keys].
struct TypedMask {
  DataType type = DataType::kBool;
  std::int64_t key_step = 1;
  bool is_of_keys = false;
  std::vector<std::byte> bytes = {};
  std::vector<double> added = {};  // [queries, keys]

  void fill(const MaskShape& shape, std::uint64_t seed) {
    const std::int64_t rows = is_of_keys ? 1 : shape.queries;
    const Heads<float> random = random_heads<float>(1, 1, shape.queries, shape.keys, seed);
    bytes.assign(static_cast<std::size_t>(rows * shape.keys * key_step * size_of(type)), std::byte{1});
    added.resize(static_cast<std::size_t>(shape.queries * shape.keys));
    for (std::int64_t i = 0; i < shape.queries; ++i) {
      for (std::int64_t j = 0; j < shape.keys; ++j) {
        const double x = random.real(0, 0, is_of_keys ? 0 : i, j);
        const std::int64_t at = ((is_of_keys ? 0 : i) * shape.keys + j) * key_step;
        const bool is_hidden = x > 0.6 || (j >= 32 && j < 64 && x > -0.9);
        double& to = added[static_cast<std::size_t>(i * shape.keys + j)];
        to = is_hidden ? -std::numeric_limits<double>::infinity() : 0.0;
        if (type == DataType::kBool) {
          bytes[static_cast<std::size_t>(at)] = std::byte{is_hidden ? std::uint8_t{0} : std::uint8_t{1}};
          continue;
        }
        numerics::with_type(type, [&](auto kind) {
          using T = decltype(kind);
          const T value = numerics::narrow<T>(is_hidden ? to : x);
          std::memcpy(bytes.data() + at * static_cast<std::int64_t>(sizeof(T)), &value, sizeof value);
          to = numerics::widen(value);
        });
      }
    }
  }
  ConstTensorView view(const MaskShape& shape) const {
    if (is_of_keys) return {bytes.data(), type, {shape.keys}, {key_step}};
    return {bytes.data(), type, {shape.queries, shape.keys}, {shape.keys * key_step, key_step}};
  }
};

template <class T> void expect_formula(const MaskShape& shape, const TypedMask& mask, bool has_padding) {
  const auto q = random_heads<T>(1, kKeyHeads * shape.group, shape.queries, kFeatures, 1);
  const auto k = random_heads<T>(1, kKeyHeads, shape.keys, kFeatures, 2),
             v = random_heads<T>(1, kKeyHeads, shape.keys, kFeatures, 3);
  std::vector<std::int64_t> padding;
  for (std::int64_t j = 0; j < shape.keys; ++j) padding.push_back(j % 11 == 5 || (j > 64 && j < 80) ? 0 : 1);
  Question question;
  question.scale = 0.125;
  const auto is_seen = [&](std::int64_t i, std::int64_t j) {
    return mask.added[static_cast<std::size_t>(i * shape.keys + j)] != -std::numeric_limits<double>::infinity() &&
           (!has_padding || padding[static_cast<std::size_t>(j)] != 0);
  };
  question.sees = [&](const Pair& at) { return is_seen(at.i, at.j); };
  question.bias = [&](const Pair& at) { return mask.added[static_cast<std::size_t>(at.i * shape.keys + at.j)]; };
  const tests::Answer answer = answer_of(q, k, v, question);
  AttentionOptions options{.mask = mask.view(shape)};
  if (has_padding) options.key_mask = padding;
  Heads<T> out(1, q.heads, shape.queries, kFeatures), poisoned = out;
  attention(out.view(), q.view(), k.view(), v.view(), options);
  EXPECT_LE(error_of(out, answer), budget_of<T>());
  // a value that no query attends to, and one that some do
  auto bad = v;
  std::optional<std::int64_t> hidden, half_hidden;
  for (std::int64_t j = 0; j < shape.keys; ++j) {
    std::int64_t seen = 0;
    for (std::int64_t i = 0; i < shape.queries; ++i) seen += is_seen(i, j) ? 1 : 0;
    if (seen == 0) hidden = j;
    if (seen > 0 && seen < shape.queries) half_hidden = j;
  }
  if (hidden) bad.at(0, 1, *hidden, 9) = numerics::narrow<T>(std::nan(""));
  if (half_hidden) bad.at(0, 0, *half_hidden, 3) = numerics::narrow<T>(HUGE_VAL);
  attention(poisoned.view(), q.view(), k.view(), bad.view(), options);
  const bool is_decoding = shape.queries < 16 && backend() == "cpu";
  for (std::int64_t h = 0; h < q.heads; ++h) {
    for (std::int64_t i = 0; i < shape.queries; ++i) {
      for (std::int64_t f = 0; f < kFeatures; ++f) {
        const double x = poisoned.real(0, h, i, f), want = out.real(0, h, i, f);
        if (half_hidden && h < shape.group && f == 3 && is_seen(i, *half_hidden)) {
          EXPECT_FALSE(std::isfinite(x)) << h << ' ' << i;
        } else if (is_decoding) {
          EXPECT_EQ(x, want) << h << ' ' << i << ' ' << f;
        } else {
          EXPECT_NEAR(x, want, 0.01) << h << ' ' << i << ' ' << f;
        }
      }
    }
  }
}

TEST(MaskTypes, AreTheFormula) {
  for_each_host_engine([] {
    std::uint64_t seed = 10;
    for (const MaskShape& shape : kMaskShapes) {
      for (TypedMask mask : {TypedMask{}, TypedMask{.key_step = 3}, TypedMask{.is_of_keys = true},
                             TypedMask{.type = DataType::kF32}, TypedMask{.type = DataType::kF32, .is_of_keys = true},
                             TypedMask{.type = DataType::kF16}, TypedMask{.type = DataType::kBF16, .key_step = 2},
                             TypedMask{.type = DataType::kBF16}, TypedMask{.type = DataType::kF64}}) {
        mask.fill(shape, ++seed);
        SCOPED_TRACE(std::to_string(shape.queries) + " queries, group of " + std::to_string(shape.group) +
                     ", mask of " + std::string(name_of(mask.type)));
        expect_formula<float>(shape, mask, seed % 2 == 0);
        if (seed % 3 == 0) expect_formula<BFloat16>(shape, mask, seed % 2 == 0);
        if (seed % 3 == 1) expect_formula<Half>(shape, mask, seed % 2 == 0);
      }
    }
  });
}

// Groups of any size, whose rows are taken eight, four or one at a time; and steps that end anywhere.
TEST(MaskTypes, GroupsAreTheFormula) {
  for_each_host_engine([] {
    for (const std::int64_t group : {7, 8, 9, 12, 16, 24, 32, 40}) {
      for (const std::int64_t keys : {31, 64, 203}) {
        const MaskShape shape{1, group, keys};
        TypedMask none{.type = DataType::kF32};
        none.fill(shape, 5);
        SCOPED_TRACE(std::to_string(group) + " heads, " + std::to_string(keys) + " keys");
        expect_formula<float>(shape, none, false);
        expect_formula<BFloat16>(shape, none, false);
        expect_formula<Half>(shape, none, false);
      }
    }
  });
}

}  // namespace
}  // namespace posenc::mask_types_test
