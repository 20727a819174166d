#include "lab/layers.h"

#include <cmath>

#include "lab/exponential.h"
#include "lab/products.h"

namespace posenc::lab {
namespace {

constexpr double kRootTwoOverPi = 0.7978845608028654;
constexpr double kCubic = 0.044715;

// σ(2u) with u = √(2/π) (x + 0.044715 x³), so that x·σ(2u) ≈ x·Φ(x).
template <class T> T gate(T x) {
  return T{1} / (T{1} + exponential(static_cast<T>(-2 * kRootTwoOverPi) * (x + static_cast<T>(kCubic) * x * x * x)));
}

// Sums in eight parts, so that the loop vectorises. The order is fixed, so results are reproducible.
template <class Term> double sum_of(std::int64_t count, const Term& term) {
  constexpr std::int64_t kSumParts = 8;
  double parts[kSumParts] = {};
  std::int64_t i = 0;
  for (; i + kSumParts <= count; i += kSumParts) {
    for (std::int64_t part = 0; part < kSumParts; ++part) parts[part] += term(i + part);
  }
  for (; i < count; ++i) parts[0] += term(i);
  return ((parts[0] + parts[4]) + (parts[2] + parts[6])) + ((parts[1] + parts[5]) + (parts[3] + parts[7]));
}

}  // namespace

template <class T>
void normalise(TokenRows<T> out, TokenRows<const T> x, const T* weight, const T* bias, T* means, T* inverses) {
  const std::int64_t width = x.width;
  for (std::int64_t i = 0; i < x.count; ++i) {
    const T* const from = x.data + i * width;
    T* const to = out.data + i * width;
    const double sum = sum_of(width, [&](std::int64_t j) { return static_cast<double>(from[j]); });
    const double mean = sum / static_cast<double>(width);
    const double squares = sum_of(width, [&](std::int64_t j) {
      const double apart = static_cast<double>(from[j]) - mean;
      return apart * apart;
    });
    const double inverse = 1 / std::sqrt(squares / static_cast<double>(width) + 1e-5);
    means[i] = static_cast<T>(mean);
    inverses[i] = static_cast<T>(inverse);
    for (std::int64_t j = 0; j < width; ++j) to[j] = (from[j] - means[i]) * inverses[i] * weight[j] + bias[j];
  }
}

template <class T> void normalise_backward(TokenRows<T> d_x_added, T* d_weight, T* d_bias, TokenRows<const T> d_out,
                                           TokenRows<const T> x, const T* weight, const T* means, const T* inverses) {
  const std::int64_t width = x.width;
  for (std::int64_t i = 0; i < x.count; ++i) {
    const T* const from = x.data + i * width;
    const T* const d = d_out.data + i * width;
    T* const to = d_x_added.data + i * width;
    const T middle = means[i], inverse = inverses[i];
    const double sum = sum_of(width, [&](std::int64_t j) { return static_cast<double>(d[j] * weight[j]); });
    const double moment = sum_of(width, [&](std::int64_t j) {
      return static_cast<double>(d[j] * weight[j] * ((from[j] - middle) * inverse));
    });
    for (std::int64_t j = 0; j < width; ++j) {
      d_weight[j] += d[j] * ((from[j] - middle) * inverse);
      d_bias[j] += d[j];
    }
    const T mean = static_cast<T>(sum / static_cast<double>(width));
    const T slope = static_cast<T>(moment / static_cast<double>(width));
    for (std::int64_t j = 0; j < width; ++j) {
      to[j] += (d[j] * weight[j] - mean - (from[j] - middle) * inverse * slope) * inverse;
    }
  }
}

template <class T> void project(TokenRows<T> out, TokenRows<const T> x, const T* weight, const T* bias, bool adds) {
  for (std::int64_t i = 0; i < out.count; ++i) {
    T* const row = out.data + i * out.width;
    for (std::int64_t j = 0; j < out.width; ++j) row[j] = adds ? row[j] + bias[j] : bias[j];
  }
  multiply(Matrix<T>{out.data, out.width}, Matrix<const T>{x.data, x.width}, Matrix<const T>{weight, out.width},
           out.count, out.width, x.width, true);
}

template <class T> void project_backward(TokenRows<T> d_x, T* d_weight, T* d_bias, TokenRows<const T> d_out,
                                         TokenRows<const T> x, const T* weight) {
  multiply(Matrix<T>{d_weight, d_out.width}, Matrix<const T>{x.data, x.width, true},
           Matrix<const T>{d_out.data, d_out.width}, x.width, d_out.width, x.count, true);
  for (std::int64_t i = 0; i < d_out.count; ++i) {
    const T* const row = d_out.data + i * d_out.width;
    for (std::int64_t j = 0; j < d_out.width; ++j) d_bias[j] += row[j];
  }
  multiply(Matrix<T>{d_x.data, d_x.width}, Matrix<const T>{d_out.data, d_out.width},
           Matrix<const T>{weight, d_out.width, true}, x.count, x.width, d_out.width);
}

template <class T> void gelu(T* out, T* gates, const T* x, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    gates[i] = gate(x[i]);
    out[i] = x[i] * gates[i];
  }
}

template <class T> void gelu_backward(T* d, const T* x, const T* gates, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    const T s = gates[i];
    const T inner = static_cast<T>(2 * kRootTwoOverPi) * (T{1} + static_cast<T>(3 * kCubic) * x[i] * x[i]);
    d[i] *= s + x[i] * s * (T{1} - s) * inner;
  }
}

template <class T> void look_up(TokenRows<T> out, const T* table, std::span<const std::int32_t> ids) {
  for (std::int64_t i = 0; i < out.count; ++i) {
    const T* const from = table + ids[i] * out.width;
    for (std::int64_t j = 0; j < out.width; ++j) out.data[i * out.width + j] = from[j];
  }
}

template <class T> void look_up_backward(T* d_table, TokenRows<const T> d_out, std::span<const std::int32_t> ids) {
  for (std::int64_t i = 0; i < d_out.count; ++i) {
    T* const to = d_table + ids[i] * d_out.width;
    for (std::int64_t j = 0; j < d_out.width; ++j) to[j] += d_out.data[i * d_out.width + j];
  }
}

template <class T> void cross_entropy(TokenRows<T> logits, std::span<const std::int32_t> targets, double scale,
                                      std::span<RowLoss> losses) {
  for (std::int64_t i = 0; i < logits.count; ++i) {
    const std::int32_t target = targets[i];
    RowLoss& loss = losses[i];
    T* const row = logits.data + i * logits.width;
    loss = {};
    if (target < 0) {
      for (std::int64_t j = 0; j < logits.width; ++j) row[j] = 0;
      continue;
    }
    T greatest = row[0];
    for (std::int64_t j = 1; j < logits.width; ++j) greatest = greatest < row[j] ? row[j] : greatest;
    // A tie counts as wrong, so that a constant answer never scores by chance.
    for (std::int64_t j = 0; j < logits.width; ++j) {
      if (j != target && !(row[j] < row[target])) loss.is_greatest = false;
    }
    const double own = static_cast<double>(row[target] - greatest);
    double sum = 0;
    for (std::int64_t j = 0; j < logits.width; ++j) {
      row[j] = exponential(row[j] - greatest);
      sum += static_cast<double>(row[j]);
    }
    loss.nll = std::log(sum) - own;
    const T factor = static_cast<T>(scale / sum);
    for (std::int64_t j = 0; j < logits.width; ++j) row[j] *= factor;
    row[target] -= static_cast<T>(scale);
  }
}

#define POSENC_LAB_LAYERS(T)                                                                                  \
  template void normalise<T>(TokenRows<T>, TokenRows<const T>, const T*, const T*, T*, T*);                   \
  template void normalise_backward<T>(TokenRows<T>, T*, T*, TokenRows<const T>, TokenRows<const T>, const T*, \
                                      const T*, const T*);                                                    \
  template void project<T>(TokenRows<T>, TokenRows<const T>, const T*, const T*, bool);                       \
  template void project_backward<T>(TokenRows<T>, T*, T*, TokenRows<const T>, TokenRows<const T>, const T*);  \
  template void gelu<T>(T*, T*, const T*, std::int64_t);                                                      \
  template void gelu_backward<T>(T*, const T*, const T*, std::int64_t);                                       \
  template void look_up<T>(TokenRows<T>, const T*, std::span<const std::int32_t>);                            \
  template void look_up_backward<T>(T*, TokenRows<const T>, std::span<const std::int32_t>);                   \
  template void cross_entropy<T>(TokenRows<T>, std::span<const std::int32_t>, double, std::span<RowLoss>);
POSENC_LAB_LAYERS(float)
POSENC_LAB_LAYERS(double)
#undef POSENC_LAB_LAYERS

}  // namespace posenc::lab
