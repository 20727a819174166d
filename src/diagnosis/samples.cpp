#include "diagnosis/samples.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>

#include "diagnosis/element.h"
#include "diagnosis/line.h"
#include "posenc/error.h"

namespace posenc::diagnosis {
namespace {

constexpr std::int64_t kMostHeads = 16, kFrontTokens = 256, kBackTokens = 64;

// The first tokens and the last ones, in the order of their positions on the first axis.
std::vector<std::int64_t> chosen_tokens(std::int64_t sequence, std::span<const std::int64_t> positions) {
  std::vector<std::int64_t> tokens(sequence);
  std::iota(tokens.begin(), tokens.end(), 0);
  if (!positions.empty()) {
    std::stable_sort(tokens.begin(), tokens.end(),
                     [&](std::int64_t one, std::int64_t other) { return positions[one] < positions[other]; });
  }
  if (sequence > kFrontTokens + kBackTokens) {
    tokens.erase(tokens.begin() + kFrontTokens, tokens.end() - kBackTokens);
  }
  return tokens;
}

void sum_up(Samples& samples) {
  for (std::size_t i = 0; i < samples.after.size(); ++i) {
    const double change = samples.after[i] - samples.before[i];
    samples.energy += samples.after[i] * samples.after[i];
    samples.change += change * change;
  }
}

}  // namespace

double rounding_of(DataType type) {
  const int bits = type == DataType::kF64 ? 52 : type == DataType::kF32 ? 23 : type == DataType::kF16 ? 10 : 7;
  return std::ldexp(kRoundingShare, -bits);
}

void check_tensors(ConstTensorView before, ConstTensorView after, const DiagnosisOptions& options) {
  if (before.shape.rank < 2 || before.shape.rank > Extents::kMax) {
    raise(fmt::format("diagnose: tensors are [..., sequence, features], not {}", to_string(before.shape)));
  }
  if (!(before.shape == after.shape)) {
    raise(fmt::format("diagnose: both tensors must have the same shape, but have {} and {}", to_string(before.shape),
                      to_string(after.shape)));
  }
  for (const DataType type : {before.type, after.type}) {
    if (type == DataType::kI64) raise("diagnose: the tensors must be floating-point, not integers");
    if (type > DataType::kBF16)
      raise(fmt::format("diagnose: the tensors must be f32, f64, f16 or bf16, not {}", name_of(type)));
  }
  if (count_of(before.shape) <= 0) raise("diagnose: the tensors have no elements");
  const std::int64_t sequence = before.shape.back(1);
  if (options.axes < 1 || options.axes > 8) raise(fmt::format("diagnose: {} axes are not 1 to 8", options.axes));
  if (options.positions.empty() && options.axes > 1) raise("diagnose: positions with several axes must be given");
  if (!options.positions.empty() && std::ssize(options.positions) != sequence * options.axes) {
    raise(fmt::format("diagnose: there are {} tokens in a sequence but {} positions", sequence,
                      options.positions.size() / static_cast<std::size_t>(options.axes)));
  }
  for (const std::int64_t position : options.positions) {
    if (position < 0 || position >= kPositionLimit) raise(fmt::format("diagnose: {} is not a position", position));
  }
}

Samples take_samples(ConstTensorView before, ConstTensorView after, const DiagnosisOptions& options) {
  check_tensors(before, after, options);
  const std::int64_t sequence = before.shape.back(1);
  Samples samples;
  samples.features = before.shape.back(0);
  samples.heads = std::min(count_of(before.shape) / (sequence * samples.features), kMostHeads);
  samples.has_known_positions = !options.positions.empty();
  samples.is_one_type = before.type == after.type;
  samples.expected = options.expected == nullptr ? nullptr : std::get_if<Rope>(options.expected);
  samples.rounding = std::max({rounding_of(before.type), rounding_of(after.type), 1e-15});
  const std::size_t count = sequence;
  const std::vector<std::int64_t> tokens =
      chosen_tokens(sequence, samples.has_known_positions ? options.positions.first(count) : options.positions);
  samples.sequence = std::ssize(tokens);
  for (std::size_t axis = 0; axis < static_cast<std::size_t>(options.axes); ++axis) {
    std::vector<std::int64_t> positions;
    for (const std::int64_t token : tokens) {
      const std::size_t at = axis * count + token;
      positions.push_back(samples.has_known_positions ? options.positions[at] : token);
    }
    samples.axes.push_back(axis_of(std::move(positions)));
  }
  const int rank = before.shape.rank;
  for (std::int64_t head = 0; head < samples.heads; ++head) {
    std::int64_t rest = head, at_before = 0, at_after = 0;
    for (int axis = rank - 3; axis >= 0; --axis) {
      const std::int64_t index = rest % before.shape[axis];
      rest /= before.shape[axis];
      at_before += index * before.strides[axis];
      at_after += index * after.strides[axis];
    }
    samples.sequence_of.push_back(
        rank < 3 ? 0
                 : head / std::max<std::int64_t>(
                              1, count_of(before.shape) / (before.shape[0] * sequence * samples.features)));
    for (const std::int64_t token : tokens) {
      for (std::int64_t i = 0; i < samples.features; ++i) {
        const auto from = [&](const ConstTensorView& x, std::int64_t at) {
          return element(x, at + token * x.strides[rank - 2] + i * x.strides[rank - 1]);
        };
        samples.before.push_back(from(before, at_before));
        samples.after.push_back(from(after, at_after));
        if (!std::isfinite(samples.before.back()) || !std::isfinite(samples.after.back())) {
          raise("diagnose: the tensors hold numbers that are not finite");
        }
      }
    }
  }
  sum_up(samples);
  return samples;
}

Samples part_of(const Samples& samples, const Part& part) {
  Samples result;
  result.features = samples.features;
  result.heads = part.end_head - part.first_head;
  result.sequence = part.end_token - part.first_token;
  result.has_known_positions = samples.has_known_positions;
  result.is_one_type = samples.is_one_type;
  result.expected = samples.expected;
  result.rounding = samples.rounding;
  for (const Axis& axis : samples.axes) {
    std::vector<std::int64_t> positions(axis.positions.begin() + part.first_token,
                                        axis.positions.begin() + part.end_token);
    if (!samples.has_known_positions) {
      for (std::int64_t& position : positions) position -= axis.positions[part.first_token];
    }
    result.axes.push_back(axis_of(std::move(positions)));
  }
  for (std::int64_t head = part.first_head; head < part.end_head; ++head) {
    result.sequence_of.push_back(samples.sequence_of[head]);
    const auto first = static_cast<std::ptrdiff_t>(samples.at(head, part.first_token, 0));
    const std::ptrdiff_t count = result.sequence * result.features;
    const auto copy = [&](const std::vector<double>& from, std::vector<double>& to) {
      to.insert(to.end(), from.begin() + first, from.begin() + first + count);
    };
    copy(samples.before, result.before);
    copy(samples.after, result.after);
  }
  sum_up(result);
  return result;
}

PairStatistics statistics_of(const Samples& samples, const Place& place) {
  PairStatistics result;
  const std::size_t size = samples.sequence;
  result.product.resize(size);
  result.before.resize(size);
  result.after.resize(size);
  for (std::int64_t head = 0; head < samples.heads; ++head) {
    for (std::int64_t token = 0; token < samples.sequence; ++token) {
      const std::complex<double> a = samples.read(head, token, place), b = samples.written(head, token, place);
      const std::size_t at = token;
      result.product[at] += std::conj(a) * b;
      result.before[at] += std::norm(a);
      result.after[at] += std::norm(b);
    }
  }
  return result;
}

double Samples::span() const {
  std::int64_t most = 0;
  for (const Axis& axis : axes) most = std::max(most, axis.sorted.back() - axis.sorted.front());
  return static_cast<double>(most);
}

namespace {

constexpr std::int64_t kNear = 32;

// How many tokens are within `span` of the first.
std::size_t tokens_within(const std::vector<std::int64_t>& sorted, std::int64_t span) {
  std::size_t end = 1;
  while (end < sorted.size() && sorted[end] - sorted[0] <= span) ++end;
  return end;
}

// Frequencies that are tried first: k·π/steps for k from −steps to steps.
int steps_of(const Axis& axis) {
  const std::int64_t span = axis.sorted[axis.near - 1] - axis.sorted[0];
  return static_cast<int>(4 * std::max<std::int64_t>(span, 1));
}

// Σ product·e^(−iωp) over the tokens up to `end`.
std::complex<double> correlation(const PairStatistics& pair, const std::vector<std::int64_t>& sorted, std::size_t end,
                                 double frequency) {
  std::complex<double> sum;
  for (std::size_t s = 0; s < end; ++s) {
    sum += pair.product[s] * std::polar(1.0, -frequency * static_cast<double>(sorted[s] - sorted[0]));
  }
  return sum;
}

// One step of least squares on the remaining phases.
double improved(const PairStatistics& pair, const std::vector<std::int64_t>& sorted, std::size_t end,
                double frequency) {
  const double phase = std::arg(correlation(pair, sorted, end, frequency));
  std::vector<WeightedPoint> left;
  for (std::size_t s = 0; s < end; ++s) {
    const double p = static_cast<double>(sorted[s] - sorted[0]);
    const double weight =
        std::norm(pair.product[s]) / std::max(pair.before[s] * pair.after[s], 1e-300) * pair.before[s];
    left.push_back({p, std::arg(pair.product[s] * std::polar(1.0, -frequency * p - phase)), weight});
  }
  return frequency + line_through(left).slope;
}

// A length that grows or shrinks with position, if that halves the unexplained energy: c·e^((g + iω)p).
void fit_growth(const PairStatistics& pair, const std::vector<std::int64_t>& sorted, double rounding, PairFit& fit) {
  constexpr std::size_t kFewest = 8;
  if (sorted.size() < kFewest || fit.unexplained <= 4 * rounding * rounding * fit.energy) return;
  const double phase = std::arg(fit.amplitude);
  std::vector<WeightedPoint> sizes;
  for (std::size_t s = 0; s < sorted.size(); ++s) {
    const auto p = static_cast<double>(sorted[s] - sorted[0]);
    const double along = (pair.product[s] * std::polar(1.0, -fit.frequency * p - phase)).real();
    if (along > 0 && pair.before[s] > 0) sizes.push_back({p, std::log(along / pair.before[s]), along});
  }
  const double growth = line_through(sizes).slope;
  std::complex<double> sum;
  double before = 0;
  for (std::size_t s = 0; s < sorted.size(); ++s) {
    const auto p = static_cast<double>(sorted[s] - sorted[0]);
    sum += pair.product[s] * std::polar(std::exp(growth * p), -fit.frequency * p);
    before += pair.before[s] * std::exp(2 * growth * p);
  }
  if (!(before > 0) || !std::isfinite(before)) return;
  const double unexplained = std::max(0.0, fit.energy - std::norm(sum) / before);
  if (unexplained > 0.5 * fit.unexplained) return;
  fit.growth = growth;
  fit.unexplained = unexplained;
  fit.amplitude = sum / before;
}

// `pair` has its tokens in the order of this axis.
PairFit fit_on_axis(const PairStatistics& pair, const Axis& axis, double rounding) {
  const std::vector<std::int64_t>& sorted = axis.sorted;
  const std::size_t count = sorted.size();
  PairFit fit;
  double largest = -1;
  const int steps = steps_of(axis);
  for (int k = -steps; k <= steps; ++k) {
    const std::complex<double>* const waves = &axis.waves[(k + steps) * axis.near];
    double real = 0, imaginary = 0;
    for (std::size_t s = 0; s < axis.near; ++s) {
      real += pair.product[s].real() * waves[s].real() - pair.product[s].imag() * waves[s].imag();
      imaginary += pair.product[s].real() * waves[s].imag() + pair.product[s].imag() * waves[s].real();
    }
    const double size = real * real + imaginary * imaginary;
    if (size > largest) {
      largest = size;
      fit.frequency = std::numbers::pi * k / steps;
    }
  }
  std::int64_t window = kNear;
  std::size_t end = axis.near;
  for (int pass = 0; pass < 3; ++pass) fit.frequency = improved(pair, sorted, end, fit.frequency);
  while (end < count && window < (std::int64_t{1} << 40)) {
    window *= 4;
    if (const std::size_t next = tokens_within(sorted, window); next > end) {
      end = next;
      for (int pass = 0; pass < 2; ++pass) fit.frequency = improved(pair, sorted, end, fit.frequency);
    }
  }
  const double before = std::accumulate(pair.before.begin(), pair.before.end(), 0.0);
  fit.energy = std::accumulate(pair.after.begin(), pair.after.end(), 0.0);
  const std::complex<double> sum = correlation(pair, sorted, count, fit.frequency);
  if (before > 0) fit.amplitude = sum / before;
  fit.unexplained = std::max(0.0, fit.energy - (before > 0 ? std::norm(sum) / before : 0));
  fit_growth(pair, sorted, rounding, fit);
  return fit;
}

PairStatistics reordered(const PairStatistics& pair, const std::vector<std::size_t>& order) {
  PairStatistics result;
  for (const std::size_t token : order) {
    result.product.push_back(pair.product[token]);
    result.before.push_back(pair.before[token]);
    result.after.push_back(pair.after[token]);
  }
  return result;
}

}  // namespace

Axis axis_of(std::vector<std::int64_t> positions) {
  Axis axis;
  axis.positions = std::move(positions);
  axis.order.resize(axis.positions.size());
  std::iota(axis.order.begin(), axis.order.end(), 0);
  std::stable_sort(axis.order.begin(), axis.order.end(),
                   [&](std::size_t one, std::size_t other) { return axis.positions[one] < axis.positions[other]; });
  for (const std::size_t token : axis.order) axis.sorted.push_back(axis.positions[token]);
  axis.near = tokens_within(axis.sorted, kNear);
  const int steps = steps_of(axis);
  for (int k = -steps; k <= steps; ++k) {
    for (std::size_t s = 0; s < axis.near; ++s) {
      const auto p = static_cast<double>(axis.sorted[s] - axis.sorted[0]);
      axis.waves.push_back(std::polar(1.0, -std::numbers::pi * k / steps * p));
    }
  }
  return axis;
}

PairFit fit_pair(const PairStatistics& pair, const Samples& samples) {
  // the first axis has its tokens in order
  PairFit best = fit_on_axis(pair, samples.axes.front(), samples.rounding);
  const double room = 16 * samples.rounding * samples.rounding * best.energy;
  for (std::size_t axis = 1; axis < samples.axes.size(); ++axis) {
    PairFit fit = fit_on_axis(reordered(pair, samples.axes[axis].order), samples.axes[axis], samples.rounding);
    fit.axis = axis;
    const bool is_rival = fit.unexplained <= 4 * best.unexplained + room;
    const bool is_better = 4 * fit.unexplained + room < best.unexplained;
    fit.is_axis_sure = is_better;
    if (is_better) {
      best = fit;
    } else if (is_rival) {
      best.is_axis_sure = false;
    }
  }
  return best;
}

}  // namespace posenc::diagnosis
