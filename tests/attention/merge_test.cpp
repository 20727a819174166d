// Merging partial attentions, against sums over the keys in double that share no code with it: the stated error for all
// types, attention in two and five parts, rows with no key, NaN, and misuse.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "attention/oracle.h"
#include "backends.h"
#include "posenc/posenc.h"
#include "schemes/golden_array.h"

namespace posenc::merge_test {
namespace {

using tests::Heads;
using tests::random_heads;
using tests::refusal;

// Half the distance between numbers of T near x.
template <class T> double half_ulp(double x) {
  const numerics::Format format = numerics::format_of<T>();
  const int exponent = x == 0 ? format.least_exponent : std::ilogb(x) - format.bits + 1;
  return std::ldexp(0.5, std::max(exponent, format.least_exponent));
}

// --- one row: the stated error, in the types of out, other and both logsumexps ---------------------------------------

using Precise = long double;

template <class Out, class Other, class Log, class OtherLog> void expect_error_of_rows() {
  constexpr std::int64_t kRows = 400, kFeatures = 3;
  std::mt19937_64 random(29);
  const auto draw = [&](double from, double to) {
    return from + (to - from) * static_cast<double>(random() >> 11) * 0x1p-53;
  };
  std::vector<Out> out(kRows * kFeatures);
  std::vector<Other> other(kRows * kFeatures);
  std::vector<Log> logs(kRows);
  std::vector<OtherLog> other_logs(kRows);
  for (Out& x : out) x = numerics::narrow<Out>(draw(-2, 2));
  for (Other& x : other) x = numerics::narrow<Other>(draw(-2, 2));
  for (std::size_t row = 0; row < kRows; ++row) {
    const double apart[] = {1, 10, 100, 1000};  // e^-1000 is 0
    logs[row] = static_cast<Log>(draw(-40, 40));
    other_logs[row] = static_cast<OtherLog>(static_cast<double>(logs[row]) + draw(-1, 1) * apart[row % 4]);
  }
  const std::vector<Out> out_before = out;
  const std::vector<Log> logs_before = logs;
  merge(view(out.data(), {kRows, kFeatures}), view(logs.data(), {kRows}),
        view(std::as_const(other).data(), {kRows, kFeatures}), view(std::as_const(other_logs).data(), {kRows}));
  for (std::size_t row = 0; row < kRows; ++row) {
    const auto a = static_cast<Precise>(logs_before[row]), b = static_cast<Precise>(other_logs[row]);
    const Precise share = 1 / (1 + std::exp(b - a));
    const Precise log = std::max(a, b) + std::log1p(std::exp(-std::fabs(a - b)));
    const auto log_error = static_cast<double>(std::fabs(static_cast<Precise>(logs[row]) - log));
    EXPECT_LE(log_error,
              half_ulp<Log>(static_cast<double>(log)) + 0x1p-51 * std::max(1.0, std::fabs(static_cast<double>(log))));
    for (std::size_t f = row * kFeatures; f < (row + 1) * kFeatures; ++f) {
      const double one = numerics::widen(out_before[f]), two = numerics::widen(other[f]);
      // 1 − share would lose what a small share of the other has
      const Precise wanted =
          share * static_cast<Precise>(one) + 1 / (1 + std::exp(a - b)) * static_cast<Precise>(two);
      const auto error = static_cast<double>(std::fabs(static_cast<Precise>(numerics::widen(out[f])) - wanted));
      EXPECT_LE(error,
                half_ulp<Out>(static_cast<double>(wanted)) + 0x1p-50 * std::max(std::fabs(one), std::fabs(two)));
    }
  }
}

template <class Out, class Other> void expect_error_of_all_logs() {
  expect_error_of_rows<Out, Other, float, float>();
  expect_error_of_rows<Out, Other, float, double>();
  expect_error_of_rows<Out, Other, double, float>();
  expect_error_of_rows<Out, Other, double, double>();
}

TEST(Merge, HasTheStatedErrorInAllTypes) {
  expect_error_of_all_logs<float, float>();
  expect_error_of_all_logs<double, double>();
  expect_error_of_all_logs<Half, Half>();
  expect_error_of_all_logs<BFloat16, BFloat16>();
  expect_error_of_all_logs<float, BFloat16>();
  expect_error_of_all_logs<double, float>();
  expect_error_of_all_logs<Half, float>();
}

// --- attention in parts ---------------------------------------------------------------------------------------------

// Attention over keys 0 … keys − 1, in double; query i sees keys 0 … i + ahead.
struct Reference {
  Heads<double> out, logsumexp;
};
template <class T> Reference reference_of(const Heads<T>& q, const Heads<T>& k, const Heads<T>& v, std::int64_t first,
                                          std::int64_t last, std::int64_t ahead) {
  Reference made{{q.batch, q.heads, q.tokens, v.features}, {q.batch, q.heads, q.tokens, 1}};
  const double scale = 1 / std::sqrt(static_cast<double>(q.features));
  for (std::int64_t b = 0; b < q.batch; ++b) {
    for (std::int64_t h = 0; h < q.heads; ++h) {
      for (std::int64_t i = 0; i < q.tokens; ++i) {
        double sum = 0;
        const std::int64_t g = h * k.heads / q.heads;
        for (std::int64_t j = first; j < std::min(last, i + ahead + 1); ++j) {
          double score = 0;
          for (std::int64_t f = 0; f < q.features; ++f) score += q.real(b, h, i, f) * k.real(b, g, j, f);
          const double weight = std::exp(scale * score);
          sum += weight;
          for (std::int64_t f = 0; f < v.features; ++f) made.out.at(b, h, i, f) += weight * v.real(b, g, j, f);
        }
        for (std::int64_t f = 0; f < v.features && sum > 0; ++f) made.out.at(b, h, i, f) /= sum;
        made.logsumexp.at(b, h, i, 0) = std::log(sum);
      }
    }
  }
  return made;
}

template <class T> using Sum = std::conditional_t<std::is_same_v<T, double>, double, float>;

template <class T> struct Part {
  Heads<T> out;
  Heads<Sum<T>> logsumexp;
  Reference reference;

  TensorView logs() { return view(logsumexp.values.data(), {logsumexp.batch, logsumexp.heads, logsumexp.tokens}); }
  /// The largest error of a row, and the error of its logsumexp.
  double error(std::size_t row) const {
    double largest = 0;
    for (std::size_t f = row * features(); f < (row + 1) * features(); ++f) {
      const double error = std::fabs(numerics::widen(out.values[f]) - reference.out.values[f]);
      largest = error <= largest ? largest : error;
    }
    return largest;
  }
  double log_error(std::size_t row) const {
    const auto log = static_cast<double>(logsumexp.values[row]);
    const double wanted = reference.logsumexp.values[row];
    return log == wanted ? 0 : std::fabs(log - wanted);  // both may be −inf
  }
  double size(std::size_t row) const {
    double largest = 0;
    for (std::size_t f = row * features(); f < (row + 1) * features(); ++f)
      largest = std::max(largest, std::fabs(numerics::widen(out.values[f])));
    return largest;
  }
  std::size_t features() const { return static_cast<std::size_t>(out.features); }
};

template <class T> void expect_parts_give_the_whole(const std::vector<std::int64_t>& ends) {
  constexpr std::int64_t kQueries = 37, kKeys = 45, kAhead = kKeys - kQueries;
  const auto q = random_heads<T>(2, 4, kQueries, 32, 1), k = random_heads<T>(2, 2, kKeys, 32, 2),
             v = random_heads<T>(2, 2, kKeys, 24, 3);
  const auto attend = [&](std::int64_t first, std::int64_t last) {
    Part<T> part{{2, 4, kQueries, 24}, {2, 4, kQueries, 1}, reference_of(q, k, v, first, last, kAhead)};
    std::vector<char> seen(static_cast<std::size_t>(kQueries * (last - first)));
    for (std::int64_t i = 0; i < kQueries; ++i) {
      for (std::int64_t j = first; j < last; ++j)
        seen[static_cast<std::size_t>(i * (last - first) + j - first)] = j <= i + kAhead ? 1 : 0;
    }
    AttentionOptions options;
    options.mask = ConstTensorView(seen.data(), DataType::kBool, {kQueries, last - first});
    options.logsumexp = part.logs();
    attention(part.out.view(), q.view(), slice(k.view(), 2, first, last - first),
              slice(v.view(), 2, first, last - first), options);
    return part;
  };
  Part<T> whole = attend(0, ends.front());
  for (std::size_t i = 1; i < ends.size(); ++i) {
    Part<T> part = attend(ends[i - 1], ends[i]);
    const Part<T> before = whole;
    merge(whole.out.view(), whole.logs(), std::as_const(part).out.view(), part.logs());
    whole.reference = reference_of(q, k, v, 0, ends[i], kAhead);
    for (std::size_t row = 0; row < whole.logsumexp.values.size(); ++row) {
      const double size = std::max(before.size(row), part.size(row));
      const double log_error = std::max(before.log_error(row), part.log_error(row));
      EXPECT_LE(whole.error(row),
                std::max(before.error(row), part.error(row)) + half_ulp<T>(size) + (0x1p-50 + log_error) * size)
          << "row " << row << " of part " << i;
      const auto log = static_cast<double>(whole.logsumexp.values[row]);
      EXPECT_LE(whole.log_error(row), log_error + half_ulp<Sum<T>>(log) + 1e-14) << "row " << row;
    }
  }
  // |v| ≤ 1: attention's own error, and once more for each part
  const double parts = static_cast<double>(ends.size());
  const double each = std::is_same_v<T, double> ? 1e-14 : sizeof(T) == 2 ? 0x1p-14 + half_ulp<T>(1) : 2e-6;
  for (std::size_t row = 0; row < whole.logsumexp.values.size(); ++row)
    EXPECT_LE(whole.error(row), each * (parts + 1));
}

TEST(Merge, TwoAndFivePartsGiveTheWhole) {
  tests::for_each_host_engine([&] {
    for (const std::vector<std::int64_t>& ends :
         {std::vector<std::int64_t>{20, 45}, std::vector<std::int64_t>{1, 7, 8, 30, 45}}) {
      expect_parts_give_the_whole<float>(ends);
      expect_parts_give_the_whole<double>(ends);
      expect_parts_give_the_whole<Half>(ends);
      expect_parts_give_the_whole<BFloat16>(ends);
    }
  });
}

// --- rows with no key, NaN ------------------------------------------------------------------------------------------

struct Row {
  std::vector<float> out;
  float logsumexp;
};
Row merged(Row a, const Row& b) {
  const auto features = std::ssize(a.out);
  merge(view(a.out.data(), {1, features}), view(&a.logsumexp, {1}), view(b.out.data(), {1, features}),
        view(&b.logsumexp, {1}));
  return a;
}
constexpr float kNoKey = -std::numeric_limits<float>::infinity(), kNanF = std::numeric_limits<float>::quiet_NaN();

TEST(Merge, ARowWithNoKeyIsNotRead) {
  const Row some{{0.1f, -3, 1e-45f}, 0.7f}, none{{kNanF, 5, HUGE_VALF}, kNoKey};
  for (const Row& row : {merged(some, none), merged(none, some)}) {
    EXPECT_EQ(std::memcmp(row.out.data(), some.out.data(), 3 * sizeof(float)), 0);
    EXPECT_EQ(row.logsumexp, some.logsumexp);
  }
  const Row neither = merged(none, none);
  EXPECT_EQ(neither.out, (std::vector<float>{0, 0, 0}));
  EXPECT_EQ(neither.logsumexp, kNoKey);
}

TEST(Merge, NanPropagates) {
  const Row some{{1, 2}, 0.5f};
  for (const float log : {kNanF, HUGE_VALF}) {
    for (const Row& partner : {some, Row{{3, 4}, kNoKey}, Row{{3, 4}, HUGE_VALF}}) {
      for (const Row& row : {merged({{3, 4}, log}, partner), merged(partner, {{3, 4}, log})}) {
        EXPECT_TRUE(std::isnan(row.out[0]) && std::isnan(row.out[1]) && std::isnan(row.logsumexp)) << log;
      }
    }
  }
  for (const Row& row : {merged(some, {{kNanF, 4}, 0.5f}), merged({{kNanF, 4}, 0.5f}, some)}) {
    EXPECT_TRUE(std::isnan(row.out[0]));
    EXPECT_EQ(row.out[1], 3);
    EXPECT_NEAR(row.logsumexp, 0.5 + std::log(2), 1e-6);
  }
}

// --- strides, threads, sides ----------------------------------------------------------------------------------------

TEST(Merge, DependsNeitherOnStridesNorThreadsNorSides) {
  constexpr std::int64_t kTokens = 300;
  auto one = random_heads<float>(2, 3, kTokens, 64, 1), two = random_heads<float>(2, 3, kTokens, 64, 2);
  auto log = random_heads<float>(2, 3, kTokens, 1, 3), other_log = random_heads<float>(2, 3, kTokens, 1, 4);
  const auto logs_of = [](auto& x) { return view(x.values.data(), {2, 3, kTokens}); };
  auto wanted = one, wanted_log = log;
  merge(wanted.view(), logs_of(wanted_log), std::as_const(two).view(), logs_of(other_log), {.threads = 1});
  auto again = one, again_log = log;
  merge(again.view(), logs_of(again_log), std::as_const(two).view(), logs_of(other_log), {.threads = 3});
  EXPECT_EQ(again.values, wanted.values);
  EXPECT_EQ(again_log.values, wanted_log.values);
  auto exchanged = two, exchanged_log = other_log;
  merge(exchanged.view(), logs_of(exchanged_log), std::as_const(one).view(), logs_of(log));
  EXPECT_EQ(exchanged.values, wanted.values);
  EXPECT_EQ(exchanged_log.values, wanted_log.values);
  // the first sequence with its axes of heads and tokens exchanged in memory, without a batch axis, in reverse
  std::vector<float> shd(3 * kTokens * 64);
  TensorView placed = heads_first(view(shd.data(), {kTokens, 3, 64}), Axes::kShd);
  for (std::int64_t h = 0; h < 3; ++h) {
    for (std::int64_t t = 0; t < kTokens; ++t) std::copy_n(&one.at(0, h, t, 0), 64, shd.data() + (t * 3 + h) * 64);
  }
  auto placed_log = log;
  merge(placed, view(placed_log.values.data(), {3, kTokens}), view(two.values.data(), {3, kTokens, 64}),
        view(other_log.values.data(), {3, kTokens}));
  for (std::int64_t h = 0; h < 3; ++h) {
    for (std::int64_t t = 0; t < kTokens; ++t)
      EXPECT_EQ(std::memcmp(&wanted.at(0, h, t, 0), shd.data() + (t * 3 + h) * 64, 256), 0);
  }
}

// --- misuse ---------------------------------------------------------------------------------------------------------

TEST(Merge, RefusesWhatDoesNotFit) {
  std::vector<float> out(24, 1), other(24, 2), log(6, 0), other_log(6, 0);
  const TensorView o = view(out.data(), {2, 3, 4}), l = view(log.data(), {2, 3});
  const ConstTensorView p = view(other.data(), {2, 3, 4}), m = view(other_log.data(), {2, 3});
  EXPECT_EQ(refusal([&] {
              merge(o, l, view(other.data(), {3, 2, 4}), m);
            }),
            "merge: other has shape [3, 2, 4] but must have [2, 3, 4]");
  EXPECT_EQ(refusal([&] {
              merge(o, view(log.data(), {3, 2}), p, m);
            }),
            "merge: logsumexp has shape [3, 2] but must have [2, 3]");
  EXPECT_EQ(refusal([&] { merge(o, l, p, view(other_log.data(), {5})); }),
            "merge: other_logsumexp has shape [5] but must have [2, 3]");
  EXPECT_EQ(refusal([&] {
              merge(o, TensorView(log.data(), DataType::kF16, {2, 3}), p, m);
            }),
            "merge: logsumexp must be f32 or f64 but is f16");
  EXPECT_EQ(refusal([&] {
              merge(o, view(log.data(), {1, 1, 2, 3}), p, m);
            }),
            "merge: logsumexp has shape [1, 1, 2, 3] but must have [2, 3]");
  EXPECT_EQ(refusal([&] {
              merge(o, l, ConstTensorView(other.data(), DataType::kI64, {2, 3, 4}), m);
            }),
            "merge: other must be f32, f64, f16 or bf16 but is i64");
  EXPECT_EQ(refusal([&] { merge(o, l, o, m); }), "merge: out overlaps other");
  EXPECT_EQ(refusal([&] { merge(o, l, p, l); }), "merge: logsumexp overlaps other_logsumexp");
  EXPECT_EQ(refusal([&] { merge(o, view(out.data(), {2, 3}), p, m); }), "merge: out overlaps logsumexp");
  EXPECT_EQ(refusal([&] {
              merge(TensorView(out.data(), DataType::kF32, {2, 3, 4}, {0, 4, 1}), l, p, m);
            }),
            "merge: out cannot be written: axis 0 has stride 0");
  EXPECT_EQ(refusal([&] { merge(o, l, on(Device::kCuda, p), m); }),
            "merge: other must be on the host but is on cuda");
  EXPECT_EQ(out, std::vector<float>(24, 1));
  EXPECT_EQ(log, std::vector<float>(6, 0));
  merge(view(out.data(), {2, 0, 4}), view(log.data(), {2, 0}), view(other.data(), {2, 0, 4}),
        view(other_log.data(), {2, 0}));  // nothing to do
  EXPECT_EQ(out, std::vector<float>(24, 1));
}

}  // namespace
}  // namespace posenc::merge_test
