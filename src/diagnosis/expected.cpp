#include "diagnosis/expected.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "diagnosis/element.h"
#include "posenc/apply.h"
#include "posenc/error.h"

namespace posenc::diagnosis {
namespace {

std::vector<std::int64_t> counted(std::int64_t first, std::int64_t count, int axes) {
  std::vector<std::int64_t> ids(count * axes);
  for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = first + static_cast<std::int64_t>(i) % count;
  return ids;
}

void check_count(std::string_view what, std::span<const std::int64_t> ids, std::int64_t count, int axes) {
  if (std::ssize(ids) != count * axes) {
    raise(fmt::format("check: there are {} {} but {} positions", count, what, std::ssize(ids) / axes));
  }
}

// Where the two features of a pair are written.
struct Features {
  std::int64_t a = 0, b = 0;
};
Features features_of(const Rotation& form, std::int64_t pair, std::int64_t features) {
  const std::int64_t in_block = pairs_of(form) / form.blocks;
  const PairPlaces places = placement_of(form.layout, in_block).write;
  const std::int64_t first = (form.first_dim < 0 ? features + form.first_dim : form.first_dim) +
                             pair / in_block * 2 * in_block + pair % in_block * places.step;
  return {first, first + places.apart};
}

}  // namespace

CheckPositions check_positions(const Form& form, std::string_view scheme, const Extents& shape,
                               const CheckOptions& options) {
  if (options.axes != position_axes_of(form) && !std::holds_alternative<Nothing>(form)) {
    raise(fmt::format("check: {} needs positions of {} axes, but these have {}", scheme, position_axes_of(form),
                      options.axes));
  }
  CheckPositions result;
  const bool is_bias = std::holds_alternative<Bias>(form);
  const std::int64_t tokens = shape.back(1), keys = shape.back(0);
  if (!is_bias && (!options.keys.empty() || options.is_causal)) {
    raise(fmt::format("check: {} is not a bias, so it takes no keys", scheme));
  }
  if (!options.positions.empty()) {
    check_count(is_bias ? "queries" : "tokens", options.positions, tokens, options.axes);
    result.tokens.assign(options.positions.begin(), options.positions.end());
  } else {
    if (is_bias && tokens > keys) {
      raise(fmt::format("check: {} queries but {} keys: positions must be given", tokens, keys));
    }
    const std::int64_t first = options.first_position + (is_bias ? keys - tokens : 0);
    result.tokens = counted(first, tokens, options.axes);
  }
  if (!is_bias) return result;
  if (!options.keys.empty()) {
    check_count("keys", options.keys, keys, options.axes);
    result.keys.assign(options.keys.begin(), options.keys.end());
  } else {
    result.keys = keys == tokens ? result.tokens : counted(options.first_position, keys, options.axes);
  }
  return result;
}

bool is_mask(double score, DataType type) noexcept {
  const double lowest = type == DataType::kF16 ? -32752 : -1e8;
  return score <= lowest;
}

Expected expected_of(const Form& form, ConstTensorView before, const CheckPositions& positions, int axes) {
  const Extents& shape = before.shape;
  Expected expected;
  const std::int64_t count = count_of(shape), features = shape.back(0);
  const bool is_bias = std::holds_alternative<Bias>(form);
  for (std::int64_t i = 0; i < count; ++i) {
    const double value = element(before, offset_of(index_of(i, shape), before.strides));
    if (!std::isfinite(value) && !(is_bias && is_mask(value, before.type))) {
      raise("check: the tensor before holds numbers that are not finite");
    }
    expected.before.push_back(value);
  }
  expected.values = expected.before;
  expected.scale.resize(expected.before.size());
  std::vector<double> added(expected.values.size());
  if (const auto* const addition = std::get_if<Addition>(&form)) {
    add(view(added.data(), shape), {.ids = positions.tokens, .axes = axes}, *addition);
  } else if (const auto* const form_of_bias = std::get_if<Bias>(&form)) {
    Extents scores = shape;
    if (scores.rank == 2) scores = {1, shape[0], shape[1]};
    bias(view(added.data(), scores), {.ids = positions.tokens, .axes = axes}, {.ids = positions.keys, .axes = axes},
         *form_of_bias);
  } else if (const auto* const rotation = std::get_if<Rotation>(&form)) {
    rotate(view(expected.values.data(), shape), {.ids = positions.tokens, .axes = axes}, *rotation);
  }
  for (std::size_t i = 0; i < added.size(); ++i) {
    expected.values[i] += added[i];
    expected.scale[i] = std::max({std::fabs(expected.before[i]), std::fabs(added[i]), std::fabs(expected.values[i])});
  }
  const auto* const rotation = std::get_if<Rotation>(&form);
  if (rotation == nullptr) return expected;
  for (std::int64_t row = 0; row < count / features; ++row) {
    for (std::int64_t pair = 0; pair < pairs_of(*rotation); ++pair) {
      const Features two = features_of(*rotation, pair, features);
      const std::size_t a = row * features + two.a, b = row * features + two.b;
      expected.scale[a] = expected.scale[b] = std::hypot(expected.values[a], expected.values[b]);
    }
  }
  return expected;
}

void allow_float32_angles(const Rotation& form, const Extents& shape, const CheckPositions& positions,
                          Expected& expected) {
  expected.leeway.assign(expected.values.size(), 0.0);
  const std::int64_t features = shape.back(0), tokens = shape.back(1);
  for (std::int64_t row = 0; row < std::ssize(expected.values) / features; ++row) {
    for (std::int64_t pair = 0; pair < pairs_of(form); ++pair) {
      const std::size_t axis = axis_of(form, pair);
      const std::int64_t position = positions.tokens[axis * tokens + row % tokens];
      const double angle =
          std::fabs(radians_of(form.frequencies[pair])) * kAngleLeeway * std::fabs(static_cast<double>(position));
      const Features two = features_of(form, pair, features);
      for (const std::int64_t feature : {two.a, two.b}) {
        const std::size_t at = row * features + feature;
        expected.leeway[at] = angle * expected.scale[at];
      }
    }
  }
}

}  // namespace posenc::diagnosis
