#include "posenc/schemes/log_cpb.h"

#include <algorithm>
#include <cstdlib>

#include "numerics/logarithm.h"
#include "schemes/check.h"
#include "schemes/distance_table.h"

namespace posenc {
namespace {

std::size_t hidden_units(const LogCpb& s) { return s.hidden_biases.size(); }

void check_network(std::string_view field, const std::vector<double>& values, std::size_t count,
                   std::string_view rule) {
  if (values.size() != count) {
    raise(fmt::format("log-cpb: {} must be {}, {}, but are {}", field, rule, count, values.size()));
  }
  for (const double value : values) schemes::check_finite(LogCpb::name, field, value);
}

void check(const LogCpb& s) {
  schemes::check_between(LogCpb::name, "heads", s.heads, 1, schemes::kHeadLimit);
  const auto axes = static_cast<std::int64_t>(s.window.size());
  schemes::check_between(LogCpb::name, "number of extents of window", axes, 1, 3);
  for (const std::int64_t extent : s.window) {
    schemes::check_between(LogCpb::name, "extents of window", extent, 1, 256);
  }
  if (!s.trained_window.empty() && s.trained_window.size() != s.window.size()) {
    raise(fmt::format("log-cpb: trained_window must have as many extents as window, {}, but has {}", s.window.size(),
                      s.trained_window.size()));
  }
  for (const std::int64_t extent : s.trained_window) {
    schemes::check_between(LogCpb::name, "extents of trained_window", extent, 2, 65536);
  }
  if (s.hidden_biases.empty()) {
    raise("log-cpb: the trained network is missing (hidden_weights, hidden_biases, output_weights)");
  }
  check_network("hidden_weights", s.hidden_weights, hidden_units(s) * s.window.size(), "hidden units times axes");
  check_network("hidden_biases", s.hidden_biases, hidden_units(s), "");
  check_network("output_weights", s.output_weights, s.heads * hidden_units(s), "heads times hidden units");
  std::int64_t numbers = s.heads;
  for (const std::int64_t extent : s.window) numbers *= 2 * extent - 1;
  schemes::check_between(LogCpb::name, "heads times offsets of the window", numbers, 1, std::int64_t{1} << 22);
}

// x of one axis. A window of one patch has one offset, 0.
double log_spaced(const LogCpb& s, std::size_t axis, std::int64_t offset) {
  if (offset == 0) return 0;
  const std::int64_t trained = s.trained_window.empty() ? s.window[axis] : s.trained_window[axis];
  const double far = 8.0 * static_cast<double>(std::abs(offset)) / static_cast<double>(trained - 1);
  const double size = numerics::log_of({1 + far, 0.0}).high / (3 * numerics::log_of({2.0, 0.0}).high);
  return offset < 0 ? -size : size;
}

// Past 600 it is 0 or 1 to the last significant bit.
double sigmoid(double z) { return 1 / (1 + numerics::exp_of({std::clamp(-z, -600.0, 600.0), 0.0}).high); }

// The network at one row of the table: the offset's coordinates, the hidden units and the sum of each head.
struct Evaluation {
  std::vector<double> x, hidden, sums;
};

Evaluation evaluate(const LogCpb& s, std::int64_t row) {
  Evaluation at;
  at.x.resize(s.window.size());
  for (std::size_t axis = s.window.size(); axis-- > 0;) {
    const std::int64_t offsets = 2 * s.window[axis] - 1;
    at.x[axis] = log_spaced(s, axis, row % offsets - (s.window[axis] - 1));
    row /= offsets;
  }
  for (std::size_t j = 0; j < hidden_units(s); ++j) {
    double sum = s.hidden_biases[j];
    for (std::size_t axis = 0; axis < at.x.size(); ++axis)
      sum += s.hidden_weights[j * at.x.size() + axis] * at.x[axis];
    at.hidden.push_back(std::max(0.0, sum));
  }
  for (std::size_t h = 0; h < static_cast<std::size_t>(s.heads); ++h) {
    double sum = 0;
    for (std::size_t j = 0; j < hidden_units(s); ++j) sum += s.output_weights[h * hidden_units(s) + j] * at.hidden[j];
    at.sums.push_back(sum);
  }
  return at;
}

std::int64_t row_count(const LogCpb& s) {
  std::int64_t rows = 1;
  for (const std::int64_t extent : s.window) rows *= 2 * extent - 1;
  return rows;
}

constexpr double kMostBias = 16.0;

}  // namespace

Bias prepare(const LogCpb& s, const PrepareOptions&) {
  check(s);
  DistanceTable source;
  source.axes.resize(s.window.size());
  std::int64_t stride = 1;
  for (std::size_t axis = s.window.size(); axis-- > 0;) {
    source.axes[axis] = schemes::map_of_extent(s.window[axis], 0, stride);
    stride *= 2 * s.window[axis] - 1;
  }
  for (std::int64_t row = 0; row < row_count(s); ++row) {
    for (const double sum : evaluate(s, row).sums) source.values.push_back(kMostBias * sigmoid(sum));
  }
  return {s.heads, std::move(source)};
}

LogCpbGradient backward(const LogCpb& s, std::span<const double> d_table) {
  check(s);
  const std::size_t heads = s.heads, units = hidden_units(s), axes = s.window.size();
  const std::size_t rows = row_count(s);
  if (d_table.size() != rows * heads) {
    raise(fmt::format("log-cpb: the gradient must have {} numbers, one for each offset and head, but has {}",
                      rows * heads, d_table.size()));
  }
  LogCpbGradient gradient{std::vector<double>(units * axes), std::vector<double>(units),
                          std::vector<double>(heads * units)};
  for (std::size_t row = 0; row < rows; ++row) {
    const Evaluation at = evaluate(s, static_cast<std::int64_t>(row));
    std::vector<double> d_hidden(units);
    for (std::size_t h = 0; h < heads; ++h) {
      const double share = sigmoid(at.sums[h]);
      const double d_sum = d_table[row * heads + h] * kMostBias * share * (1 - share);
      for (std::size_t j = 0; j < units; ++j) {
        gradient.output_weights[h * units + j] += d_sum * at.hidden[j];
        d_hidden[j] += d_sum * s.output_weights[h * units + j];
      }
    }
    for (std::size_t j = 0; j < units; ++j) {
      if (at.hidden[j] <= 0) continue;
      gradient.hidden_biases[j] += d_hidden[j];
      for (std::size_t axis = 0; axis < axes; ++axis) {
        gradient.hidden_weights[j * axes + axis] += d_hidden[j] * at.x[axis];
      }
    }
  }
  return gradient;
}

}  // namespace posenc
