#pragma once

#include <cmath>
#include <cstdint>
#include <functional>
#include <random>
#include <vector>

#include "numerics/narrow.h"
#include "posenc/posenc.h"

namespace posenc::tests {

/// Dense [batch, heads, tokens, features].
template <class T> struct Heads {
  std::int64_t batch = 1, heads = 1, tokens = 0, features = 0;
  std::vector<T> values;

  Heads() = default;
  Heads(std::int64_t b, std::int64_t h, std::int64_t t, std::int64_t f)
      : batch(b), heads(h), tokens(t), features(f), values(static_cast<std::size_t>(b * h * t * f)) {}
  std::size_t index(std::int64_t b, std::int64_t h, std::int64_t t, std::int64_t f) const {
    return static_cast<std::size_t>(((b * heads + h) * tokens + t) * features + f);
  }
  T& at(std::int64_t b, std::int64_t h, std::int64_t t, std::int64_t f) { return values[index(b, h, t, f)]; }
  double real(std::int64_t b, std::int64_t h, std::int64_t t, std::int64_t f) const {
    return numerics::widen(values[index(b, h, t, f)]);
  }
  TensorView view() { return posenc::view(values.data(), {batch, heads, tokens, features}); }
  ConstTensorView view() const { return posenc::view(values.data(), {batch, heads, tokens, features}); }
};

/// Values in [−1, 1), the same for the same seed.
template <class T>
Heads<T> random_heads(std::int64_t b, std::int64_t h, std::int64_t t, std::int64_t f, std::uint64_t seed) {
  Heads<T> x(b, h, t, f);
  std::mt19937_64 random(seed);
  for (T& value : x.values) value = numerics::narrow<T>(static_cast<double>(random() >> 11) * 0x1p-52 - 1.0);
  return x;
}

/// One query, one key: whether it is seen, and what is added to its score. Indices as they stand in the tensors.
struct Pair {
  std::int64_t b, h, i, j;
};
struct Question {
  double scale = 1.0;
  std::function<bool(const Pair&)> sees = [](const Pair&) { return true; };
  std::function<double(const Pair&)> bias = [](const Pair&) { return 0.0; };
  double softcap = 0;
  std::function<double(std::int64_t)> sink = {};  // of a head; none: no sinks
  std::function<double(std::int64_t, std::int64_t)> factor = [](std::int64_t, std::int64_t) { return 1.0; };  // b, i
};

/// What attention should give, by the formula and in double, and for each element Σ weight · |v|, by which errors are
/// measured.
struct Answer {
  Heads<double> out, size, weights;
};
template <class Q, class K>
Answer answer_of(const Heads<Q>& q, const Heads<K>& k, const Heads<K>& v, const Question& question) {
  Answer answer{{q.batch, q.heads, q.tokens, v.features},
                {q.batch, q.heads, q.tokens, v.features},
                {q.batch, q.heads, q.tokens, k.tokens}};
  const std::int64_t group = q.heads / k.heads;
  for (std::int64_t b = 0; b < q.batch; ++b) {
    for (std::int64_t h = 0; h < q.heads; ++h) {
      for (std::int64_t i = 0; i < q.tokens; ++i) {
        double sum = question.sink ? std::exp(question.sink(h)) : 0.0;
        for (std::int64_t j = 0; j < k.tokens; ++j) {
          if (!question.sees({b, h, i, j})) continue;
          double score = 0;
          for (std::int64_t f = 0; f < q.features; ++f) score += q.real(b, h, i, f) * k.real(b, h / group, j, f);
          score *= question.scale * question.factor(b, i);
          if (question.softcap > 0) score = question.softcap * std::tanh(score / question.softcap);
          // no score of these tests is large: the largest need not be taken away first
          const double weight = std::exp(score + question.bias({b, h, i, j}));
          answer.weights.at(b, h, i, j) = weight;
          sum += weight;
        }
        for (std::int64_t j = 0; j < k.tokens && sum > 0; ++j) {
          double& weight = answer.weights.at(b, h, i, j);
          weight /= sum;
          for (std::int64_t f = 0; f < v.features && weight > 0; ++f) {
            answer.out.at(b, h, i, f) += weight * v.real(b, h / group, j, f);
            answer.size.at(b, h, i, f) += weight * std::fabs(v.real(b, h / group, j, f));
          }
        }
      }
    }
  }
  return answer;
}

/// The largest error over Σ weight · |v|; infinite where a result is no number or a row of zeros is not zero.
template <class T> double error_of(const Heads<T>& got, const Answer& answer) {
  double worst = 0;
  for (std::size_t at = 0; at < got.values.size(); ++at) {
    const double error = std::fabs(numerics::widen(got.values[at]) - answer.out.values[at]);
    if (error == 0) continue;
    const double relative = error / answer.size.values[at];
    if (!(relative <= worst)) worst = relative;
    if (relative != relative) return HUGE_VAL;
  }
  return worst;
}

/// Half a unit in the last place of T, beside the f32 budget that every type has.
template <class T> constexpr double budget_of() {
  constexpr double kSums = std::is_same_v<T, double> ? 1e-14 : 2e-6;
  return kSums + std::ldexp(1.0, -numerics::format_of<T>().bits) * (sizeof(T) == 2 ? 1.0 : 0.0);
}

}  // namespace posenc::tests
