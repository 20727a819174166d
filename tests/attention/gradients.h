#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "attention/oracle.h"

namespace posenc::tests {

template <class T> Heads<T> as(const Heads<double>& x) {
  Heads<T> y(x.batch, x.heads, x.tokens, x.features);
  for (std::size_t i = 0; i < y.values.size(); ++i) y.values[i] = numerics::narrow<T>(x.values[i]);
  return y;
}

/// Values between −0.6 and 0.6 without a pattern.
inline std::vector<double> some_values(std::int64_t count, double start) {
  std::vector<double> values;
  for (std::int64_t i = 0; i < count; ++i) {
    values.push_back(0.6 * std::sin(static_cast<double>(i * i) * 0.7 + start));
  }
  return values;
}

/// A number whose gradient with respect to the result of attention is d_out.
inline double value_of(const Heads<double>& q, const Heads<double>& k, const Heads<double>& v,
                       const Heads<double>& d_out, const AttentionOptions& options) {
  Heads<double> out(d_out.batch, d_out.heads, d_out.tokens, d_out.features);
  attention(out.view(), q.view(), k.view(), v.view(), options);
  double sum = 0;
  for (std::size_t i = 0; i < out.values.size(); ++i) sum += out.values[i] * d_out.values[i];
  return sum;
}

/// Where differences of c.value() are taken: how far apart, and at how many of many inputs.
struct Steps {
  double size = 1e-5;
  std::size_t skip = 7;
};

/// Whether the gradient is the slope of c.value(), which depends on `inputs`.
template <class Case> void expect_slopes(Case& c, std::vector<double>& inputs, const std::vector<double>& gradient,
                                         const char* what, const Steps& steps = {}) {
  for (std::size_t i = 0; i<inputs.size(); i += inputs.size()> 60 ? steps.skip : 1) {
    const double start = inputs[i];
    inputs[i] = start + steps.size;
    const double after = c.value();
    inputs[i] = start - steps.size;
    const double before = c.value();
    inputs[i] = start;
    EXPECT_NEAR(gradient[i], (after - before) / (2 * steps.size), 1e-8) << what << ' ' << i;
  }
}

}  // namespace posenc::tests
