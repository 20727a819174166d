#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <vector>

#include "backends.h"
#include "posenc/posenc.h"

namespace posenc::tests {

/// The numbers that published code was run with: 0.6 · sin(0.7 n² + start).
inline std::vector<double> wavy(std::int64_t count, double start) {
  std::vector<double> values;
  for (std::int64_t n = 0; n < count; ++n) {
    values.push_back(0.6 * std::sin(static_cast<double>(n * n) * 0.7 + start));
  }
  return values;
}

/// Attention of one sequence in double on every backend of the host, [heads, queries, features], must be `want`.
struct Sequence {
  std::int64_t heads, queries, keys, features;
  std::vector<double> q = wavy(heads * queries * features, 0.1), k = wavy(heads * keys * features, 0.2),
                      v = wavy(heads * keys * features, 0.3);
};
inline void expect_attention(const Sequence& x, const AttentionOptions& options, const std::vector<double>& want,
                             double tolerance) {
  ASSERT_EQ(std::ssize(want), x.heads * x.queries * x.features);
  for_each_host_engine([&] {
    std::vector<double> out(want.size());
    attention(view(out.data(), {x.heads, x.queries, x.features}), view(x.q.data(), {x.heads, x.queries, x.features}),
              view(x.k.data(), {x.heads, x.keys, x.features}), view(x.v.data(), {x.heads, x.keys, x.features}),
              options);
    for (std::size_t i = 0; i < out.size(); ++i) EXPECT_NEAR(out[i], want[i], tolerance) << i;
  });
}

/// Σ out · weight of that attention, whose slope by any input is what its gradient must be.
inline double weighted_sum(const Sequence& x, const AttentionOptions& options, const std::vector<double>& d_out) {
  std::vector<double> out(d_out.size());
  attention(view(out.data(), {x.heads, x.queries, x.features}), view(x.q.data(), {x.heads, x.queries, x.features}),
            view(x.k.data(), {x.heads, x.keys, x.features}), view(x.v.data(), {x.heads, x.keys, x.features}),
            options);
  double sum = 0;
  for (std::size_t i = 0; i < out.size(); ++i) sum += out[i] * d_out[i];
  return sum;
}
inline void sequence_backward(const Sequence& x, const AttentionGradients& gradients,
                              const std::vector<double>& d_out, const AttentionOptions& options) {
  const ConstTensorView q = view(x.q.data(), {x.heads, x.queries, x.features}),
                        k = view(x.k.data(), {x.heads, x.keys, x.features}),
                        v = view(x.v.data(), {x.heads, x.keys, x.features});
  attention_backward(gradients, view(d_out.data(), {x.heads, x.queries, x.features}), {q, k, v}, options);
}
/// Each (or every third) of the values by a small step either way.
template <class Sum> void expect_slopes(std::vector<double>& values, const std::vector<double>& gradient,
                                        const Sum& sum, const char* what) {
  ASSERT_EQ(values.size(), gradient.size()) << what;
  for (std::size_t i = 0; i<values.size(); i += values.size()> 24 ? 3 : 1) {
    constexpr double kStep = 1e-5;
    const double start = values[i];
    values[i] = start + kStep;
    const double after = sum();
    values[i] = start - kStep;
    const double before = sum();
    values[i] = start;
    EXPECT_NEAR(gradient[i], (after - before) / (2 * kStep), 1e-8) << what << ' ' << i;
  }
}

}  // namespace posenc::tests
