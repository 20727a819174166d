#pragma once

// What the tests of attention on a GPU share: inputs, forms, and the verdict on a result.

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "numerics/narrow.h"
#include "posenc/cuda.h"
#include "posenc/posenc.h"

namespace posenc::cuda_cases {

// Why the kernel cannot run here; "" where it can.
inline std::string why_not() {
  if (const std::string reason = why_absent("cuda"); !reason.empty()) return "cuda cannot run here: " + reason;
  return cuda::facts().capability == 90 ? "" : "the kernel needs compute capability 9.0";
}

template <class T> std::vector<T> normal_values(std::int64_t count, double size, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal(0, size);
  std::vector<T> values(static_cast<std::size_t>(count));
  for (T& value : values) value = numerics::narrow<T>(normal(random));
  return values;
}
template <class T> std::vector<double> as_doubles(const std::vector<T>& values) {
  std::vector<double> wide;
  for (const T& value : values) wide.push_back(numerics::widen(value));
  return wide;
}

struct GpuCase {
  std::int64_t batch, heads, key_heads, tokens, features;
  double query_size = 1;
  bool tokens_first = false;
};

// Slopes, and a table whose bias is constant from a distance of 128 on, as T5's.
inline Form form_of(const std::string& name, const GpuCase& one) {
  if (name == "slopes") {
    Slopes slopes;
    for (std::int64_t h = 0; h < one.heads; ++h)
      slopes.slopes.push_back(std::exp2(-8.0 * double(h + 1) / double(one.heads)));
    return Bias{one.heads, slopes};
  }
  if (name == "distances") {
    DistanceTable table;
    table.axes.push_back({-128, {}, true});
    for (std::int64_t row = 0; row <= 128; ++row) table.axes[0].entries.push_back(row);
    table.values = as_doubles(normal_values<float>(129 * one.heads, 1, 8));
    return Bias{one.heads, table};
  }
  if (name == "rotation") return prepare(Rope{.dims = one.features});
  return Nothing{};
}

/// Elements of a tensor on the GPU, of that type, seen in the case's order of axes as [batch, heads, tokens, features].
inline Extents shape_of(const GpuCase& one, std::int64_t heads) {
  return one.tokens_first ? Extents{one.batch, one.tokens, heads, one.features}
                          : Extents{one.batch, heads, one.tokens, one.features};
}
inline TensorView ordered(const GpuCase& one, TensorView x) { return one.tokens_first ? swap_axes(x, 1, 2) : x; }
template <class T> TensorView on_gpu(const GpuCase& one, const cuda::Memory& x, const Extents& shape) {
  return ordered(one, on(Device::kCuda, TensorView(x.as<void>(), data_type_of<T>(), shape)));
}

/// |got − want| / |want|, over all elements; infinite where one is not finite.
inline double relative_error(const std::vector<double>& got, const std::vector<double>& want) {
  double off = 0, norm = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (!std::isfinite(got[i])) return HUGE_VAL;
    off += std::pow(got[i] - want[i], 2), norm += std::pow(want[i], 2);
  }
  return norm > 0 ? std::sqrt(off / norm) : off > 0 ? HUGE_VAL : 0;
}

}  // namespace posenc::cuda_cases
