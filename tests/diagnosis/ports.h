#pragma once

#include <cmath>
#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "posenc/analysis.h"
#include "posenc/half.h"
#include "posenc/posenc.h"

// Ports of a rotation, right and wrong, in each type: pairs are turned by plain loops with the standard library's sine,
// each result rounded once. Only frequencies and magnitudes come from the library.
namespace posenc::tests {

struct Typed {
  DataType type = DataType::kF32;
  Extents shape;
  std::vector<double> values;  // exact in the type
  std::vector<float> f32 = {};
  std::vector<Half> f16 = {};
  std::vector<BFloat16> bf16 = {};

  ConstTensorView view() const {
    if (type == DataType::kF16) return posenc::view(f16.data(), shape);
    if (type == DataType::kBF16) return posenc::view(bf16.data(), shape);
    return posenc::view(f32.data(), shape);
  }
};

inline double rounded_to(double value, DataType type) {
  if (type == DataType::kF16) return to_double(to_half(value));
  if (type == DataType::kBF16) return to_double(to_bfloat16(value));
  return static_cast<double>(static_cast<float>(value));
}

inline Typed typed(const std::vector<double>& values, const Extents& shape, DataType type) {
  Typed result{.type = type, .shape = shape, .values = {}};
  for (const double value : values) {
    result.values.push_back(rounded_to(value, type));
    if (type == DataType::kF16) result.f16.push_back(to_half(value));
    if (type == DataType::kBF16) result.bf16.push_back(to_bfloat16(value));
    if (type == DataType::kF32) result.f32.push_back(static_cast<float>(value));
  }
  return result;
}

inline Typed queries(const Extents& shape, DataType type, unsigned seed = 3) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal;
  std::vector<double> values(static_cast<std::size_t>(count_of(shape)));
  for (double& value : values) value = normal(random);
  return typed(values, shape, type);
}

/// A port: the scheme it has, and what it does wrong besides.
struct Port {
  Rope rope;
  std::function<double(std::int64_t, double)> position = [](std::int64_t, double p) { return p; };  // head, position
  std::function<double(double)> angle = [](double phi) { return phi; };
  std::function<double(double)> frequency = [](double omega) { return omega; };
  bool is_swapped = false, lacks_minus = false, has_other_cosines = false;
  int times = 1;
};

/// What it makes of [heads, tokens, features]. `positions`: [axes, tokens].
inline Typed ported(const Port& port, const Typed& before, const std::vector<std::int64_t>& positions,
                    std::int64_t length) {
  const Rope& rope = port.rope;
  const Rotation form = prepare(rope, {.length = length});
  const std::int64_t heads = before.shape.back(2), tokens = before.shape.back(1), features = before.shape.back(0);
  const std::int64_t pairs = rope.dims / 2;
  const std::int64_t first = rope.first_dim < 0 ? features + rope.first_dim : rope.first_dim;
  const PairPlacement places = placement_of(rope.layout, pairs);
  std::vector<double> y = before.values;
  for (int time = 0; time < port.times; ++time) {
    const std::vector<double> x = y;
    for (std::int64_t row = 0; row < heads * tokens; ++row) {
      const auto phi = [&](std::int64_t pair) {
        const std::size_t axis = axis_of(form, static_cast<std::size_t>(pair));
        const std::int64_t p =
            positions[axis * static_cast<std::size_t>(tokens) + static_cast<std::size_t>(row % tokens)];
        const double omega = port.frequency(radians_of(form.frequencies[static_cast<std::size_t>(pair)]));
        return port.angle(port.position(row / tokens, static_cast<double>(p)) * omega) *
               static_cast<double>(rope.sign);
      };
      for (std::int64_t pair = 0; pair < pairs; ++pair) {
        const auto at = [&](std::int64_t feature) {
          return static_cast<std::size_t>(row * features + first + feature);
        };
        const std::int64_t a = pair * places.read.step, b = a + places.read.apart;
        const std::int64_t to_a = pair * places.write.step, to_b = to_a + places.write.apart;
        const auto which = [&](std::int64_t feature) {
          return !port.has_other_cosines ? pair : places.write.step == 1 ? feature / 2 : feature % pairs;
        };
        double c = std::cos(phi(which(to_a))), s = std::sin(phi(which(to_a)));
        double c2 = std::cos(phi(which(to_b))), s2 = std::sin(phi(which(to_b)));
        if (port.is_swapped) {
          std::swap(c, s);
          std::swap(c2, s2);
        }
        y[at(to_a)] = form.magnitude * (port.lacks_minus ? x[at(a)] * c + x[at(b)] * s : x[at(a)] * c - x[at(b)] * s);
        y[at(to_b)] = form.magnitude * (x[at(b)] * c2 + x[at(a)] * s2);
      }
    }
  }
  return typed(y, before.shape, before.type);
}

inline std::vector<std::int64_t> counted_from(std::int64_t first, std::int64_t count) {
  std::vector<std::int64_t> ids;
  for (std::int64_t i = 0; i < count; ++i) ids.push_back(first + i);
  return ids;
}

inline std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

}  // namespace posenc::tests
