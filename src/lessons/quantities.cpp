#include "lessons/quantities.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <variant>

#include "posenc/apply.h"
#include "posenc/attention.h"
#include "posenc/error.h"

namespace posenc::lessons {
namespace {

double wave_of(double angle, std::uint8_t quarter) {
  Waves waves;
  waves.waves.push_back({frequency_from_radians(angle), 0});
  waves.columns.push_back({0, quarter});
  return row_at({1, waves}, 1).front();
}

// "dog", "bites", "man": any three vectors whose sequence is not a palindrome would do.
constexpr std::int64_t kTokens = 3, kFeatures = 4;
constexpr double kSentence[kTokens][kFeatures] = {{0.9, 0.1, 0.4, 0.2}, {0.2, 0.8, 0.1, 0.5}, {0.6, 0.3, 0.9, 0.7}};

std::vector<double> sentence(bool reversed) {
  std::vector<double> x;
  for (std::int64_t i = 0; i < kTokens; ++i) {
    const auto& row = kSentence[reversed ? kTokens - 1 - i : i];
    x.insert(x.end(), std::begin(row), std::end(row));
  }
  return x;
}

std::vector<double> attended(std::vector<double> x, const Scheme& scheme, bool causal) {
  AttentionOptions options;
  options.causal = causal;
  Form form = prepare(scheme, {.length = kTokens});
  const Extents shape = {kTokens, kFeatures};
  if (const auto* addition = std::get_if<Addition>(&form)) {
    add(view(x.data(), shape), {}, *addition);
  } else {
    options.position = std::move(form);
  }
  std::vector<double> out(x.size());
  const ConstTensorView tokens = view(x.data(), shape);
  attention(view(out.data(), shape), tokens, tokens, tokens, options);
  return out;
}

template <class T> std::vector<T> waves_at(const Scheme& scheme, std::int64_t position, Numerics numerics) {
  const Form form = prepare(scheme, {.numerics = numerics});
  if (const auto* addition = std::get_if<Addition>(&form)) {
    std::vector<T> row(addition->width);
    tabulate(view(row.data(), {1, addition->width}), {.first = position}, *addition);
    return row;
  }
  const auto* rotation = std::get_if<Rotation>(&form);
  if (rotation == nullptr) raise(fmt::format("float32_error: {} has no angles", name_of(scheme)));
  const std::int64_t pairs = pairs_of(*rotation);
  std::vector<T> both(2 * pairs);
  tabulate(view(both.data(), {1, pairs}), view(both.data() + pairs, {1, pairs}), {.first = position}, *rotation);
  return both;
}

double largest_gap(const std::vector<double>& one, const std::vector<double>& other) {
  double largest = 0;
  for (std::size_t i = 0; i < one.size(); ++i) largest = std::max(largest, std::fabs(one[i] - other[i]));
  return largest;
}

}  // namespace

double sine_of(double angle) { return wave_of(angle, 0); }
double cosine_of(double angle) { return wave_of(angle, 1); }

std::vector<double> row_at(const Addition& form, std::int64_t position) {
  std::vector<double> row(form.width);
  tabulate(view(row.data(), {1, form.width}), {.first = position}, form);
  return row;
}

double sinusoid_at(const Sinusoidal& scheme, std::int64_t position, std::int64_t column) {
  const std::vector<double> row = row_at(prepare(scheme), position);
  if (column < 0 || column >= scheme.width) {
    raise(fmt::format("pe: column {} is not one of {}", column, scheme.width));
  }
  return row[column];
}

double dot_product_at(const Sinusoidal& scheme, std::int64_t distance) {
  const Addition form = prepare(scheme);
  const std::vector<double> one = row_at(form, 0), other = row_at(form, distance);
  double sum = 0;
  for (std::size_t i = 0; i < one.size(); ++i) sum += one[i] * other[i];
  return sum;
}

double frequency_at(const Rotation& form, std::int64_t pair) {
  if (pair < 0 || pair >= pairs_of(form)) {
    raise(fmt::format("frequency: pair {} is not one of {}", pair, pairs_of(form)));
  }
  return radians_of(form.frequencies[pair]);
}

double frequency_at(std::int64_t dims, std::int64_t pair, double base) {
  return frequency_at(prepare(Rope{.dims = dims, .base = base}), pair);
}

Pair turned(const Rope& scheme, std::int64_t pair, std::int64_t position, Pair value) {
  const Rotation form = prepare(scheme);
  if (pair < 0 || pair >= pairs_of(form)) raise(fmt::format("turn: pair {} is not one of {}", pair, pairs_of(form)));
  const PairPlacement places = placement_of(scheme.layout, pairs_of(form));
  std::vector<double> x(scheme.dims);
  x[pair * places.read.step] = value.a;
  x[pair * places.read.step + places.read.apart] = value.b;
  rotate(view(x.data(), {1, scheme.dims}), {.first = position}, form);
  return {x[pair * places.write.step], x[pair * places.write.step + places.write.apart]};
}

double bias_at(const Bias& form, std::int64_t head, std::int64_t query, std::int64_t key) {
  if (head < 0 || head >= form.heads) raise(fmt::format("bias: head {} is not one of {}", head, form.heads));
  std::vector<double> values(form.heads);
  bias(view(values.data(), {form.heads, 1, 1}), {.first = query}, {.first = key}, form);
  return values[head];
}

std::int64_t entry_at(const DistanceMap& map, std::int64_t distance) {
  const auto last = static_cast<std::int64_t>(map.entries.size()) - 1;
  return map.entries[std::clamp<std::int64_t>(distance - map.first, 0, last)];
}

double softmax_weight(std::span<const double> scores, std::size_t which) {
  if (which >= scores.size()) raise(fmt::format("weight: key {} is not one of {}", which, scores.size()));
  // One query with one feature, whose products with the keys are the scores.
  const double query = 1.0;
  const std::vector<double> values(scores.size(), 1.0);
  const auto keys = static_cast<std::int64_t>(scores.size());
  double out = 0;
  std::vector<double> weights(scores.size());
  AttentionOptions options;
  options.scale = 1.0;
  options.weights = view(weights.data(), {1, 1, 1, keys});
  attention(view(&out, {1, 1, 1, 1}), view(&query, {1, 1, 1, 1}), view(scores.data(), {1, 1, keys, 1}),
            view(values.data(), {1, 1, keys, 1}), options);
  return weights[which];
}

double reversal_gap(const Scheme& scheme, bool causal) {
  std::vector<double> expected = attended(sentence(false), scheme, causal);
  for (std::int64_t i = 0; i < kTokens / 2; ++i) {
    const auto row = [&](std::int64_t at) { return expected.begin() + at * kFeatures; };
    std::swap_ranges(row(i), row(i + 1), row(kTokens - 1 - i));
  }
  return largest_gap(attended(sentence(true), scheme, causal), expected);
}

double float32_error(const Scheme& scheme, std::int64_t position) {
  return largest_gap(waves_at<double>(scheme, position, Numerics::kHfF32),
                     waves_at<double>(scheme, position, Numerics::kExact));
}

}  // namespace posenc::lessons
