#include "posenc/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "diagnosis/advice.h"
#include "diagnosis/element.h"
#include "diagnosis/expected.h"
#include "posenc/error.h"

namespace posenc {
namespace {

using namespace diagnosis;

constexpr std::array<std::string_view, 4> kAgreementNames = {"agrees", "agrees-up-to-query", "differs",
                                                             "inconclusive"};

// Below this, an element of the type cannot be distinguished from 0: twice half of the smallest positive number.
double smallest(DataType type) {
  switch (type) {
    case DataType::kF64:
      return 5e-324;
    case DataType::kF16:
      return 6e-8;
    case DataType::kBF16:
      return 1e-40;
    default:
      return 1.5e-45;
  }
}

struct Tensors {
  ConstTensorView before, after;
};

class Comparison {
 public:
  Comparison(const Tensors& two, const Form& form, const CheckPositions& positions, const CheckOptions& options)
      : after_(two.after),
        before_type_(two.before.type),
        options_(options),
        positions_(positions),
        is_bias_(std::holds_alternative<Bias>(form)) {
    tolerance_ = options.tolerance > 0
                     ? options.tolerance
                     : std::max(default_tolerance(two.before.type), default_tolerance(two.after.type));
    floor_ = std::max(smallest(two.before.type), smallest(two.after.type));
  }

  CheckResult compare(const Expected& expected) const {
    CheckResult result{.agreement = Agreement::kAgrees, .tolerance = tolerance_};
    bool has_power = false;
    std::int64_t compared = 0;
    for (std::size_t i = 0; i < expected.values.size(); ++i) {
      const Extents index = index_of(static_cast<std::int64_t>(i), after_.shape);
      const double got = element(after_, offset_of(index, after_.strides));
      if (is_skipped(index, expected.before[i], got)) {
        ++result.masked;
        continue;
      }
      ++compared;
      const double difference = std::fabs(got - expected.values[i]), room = room_of(expected, i);
      const double change = std::fabs(expected.values[i] - expected.before[i]);
      result.largest_change = std::max(result.largest_change, change);
      has_power = has_power || change > room;
      if (!(difference <= result.largest_difference)) result.largest_difference = difference;
      if (difference <= room || result.first) continue;
      result.first = {{index.value.begin(), index.value.begin() + index.rank}, expected.values[i], got};
    }
    if (compared == 0) raise("check: every score is masked, so there is nothing to compare");
    if (result.first) {
      result.agreement = Agreement::kDiffers;
    } else if (!has_power && result.largest_change > 0) {
      // an unchanged tensor would pass as well
      result.agreement = Agreement::kInconclusive;
    }
    return result;
  }

  // The expected scores with a constant added for each query, the one that fits its keys best.
  Expected shifted_to_queries(const Expected& expected) const {
    Expected shifted = expected;
    const std::int64_t keys = after_.shape.back(0);
    for (std::int64_t row = 0; row < std::ssize(expected.values) / keys; ++row) {
      double sum = 0, count = 0, bias_sum = 0;
      const auto each = [&](const auto& act) {
        for (std::int64_t key = 0; key < keys; ++key) {
          const auto i = static_cast<std::size_t>(row * keys + key);
          const Extents index = index_of(static_cast<std::int64_t>(i), after_.shape);
          const double got = element(after_, offset_of(index, after_.strides));
          if (!is_skipped(index, expected.before[i], got)) act(i, got);
        }
      };
      each([&](std::size_t i, double got) {
        sum += got - expected.values[i];
        bias_sum += expected.values[i] - expected.before[i];
        ++count;
      });
      each([&](std::size_t i, double) {
        shifted.values[i] += sum / count;
        shifted.scale[i] = std::max(shifted.scale[i], std::fabs(sum / count));
        // a bias that is constant for each query has no effect
        shifted.before[i] += sum / count + bias_sum / count;
      });
    }
    return shifted;
  }

 private:
  double room_of(const Expected& expected, std::size_t i) const {
    return tolerance_ * expected.scale[i] + floor_ + (expected.leeway.empty() ? 0 : expected.leeway[i]);
  }

  // A key after its query, on the only axis that biases with a mask have.
  bool is_ahead(const Extents& index) const {
    const auto query = static_cast<std::size_t>(index.back(1)), key = static_cast<std::size_t>(index.back(0));
    return options_.axes == 1 && positions_.keys[key] > positions_.tokens[query];
  }
  bool is_skipped(const Extents& index, double before, double got) const {
    if (!is_bias_) return false;
    if (options_.is_causal && is_ahead(index)) return true;
    const bool was_masked = is_mask(before, before_type_);
    return is_mask(got, after_.type) && (was_masked || is_ahead(index));
  }

  ConstTensorView after_;
  DataType before_type_;
  CheckOptions options_;
  const CheckPositions& positions_;
  bool is_bias_ = false;
  double tolerance_ = 0, floor_ = 0;
};

void check_arguments(const Scheme& scheme, const Tensors& two, const CheckOptions& options) {
  const Extents& shape = two.before.shape;
  if (!(shape == two.after.shape)) {
    raise(fmt::format("check: both tensors must have the same shape, but have {} and {}", to_string(shape),
                      to_string(two.after.shape)));
  }
  if (shape.rank < 2 || shape.rank > 4 || count_of(shape) <= 0) {
    raise(fmt::format("check: {} tensors have 2 to 4 axes and no empty one, not {}", name_of(scheme),
                      to_string(shape)));
  }
  for (const DataType type : {two.before.type, two.after.type}) {
    if (type == DataType::kI64) raise("check: the tensors must be floating-point, not integers");
  }
  if (!(options.tolerance >= 0) || !std::isfinite(options.tolerance)) {
    raise(fmt::format("check: the tolerance must be at least 0 but is {}", options.tolerance));
  }
  if (options.axes < 1 || options.axes > 8) raise(fmt::format("check: {} axes are not 1 to 8", options.axes));
  if (options.positions.empty() && options.axes > 1) raise("check: positions with several axes must be given");
}

void check_bias(const Scheme& scheme, const Bias& form, const Extents& shape) {
  if (needs_content(form)) {
    raise(fmt::format("check: {} needs queries and keys, not scores: compare the output of attention instead",
                      name_of(scheme)));
  }
  const std::int64_t heads = shape.rank == 2 ? 1 : shape.back(2);
  if (form.heads != heads) {
    raise(
        fmt::format("check: {} has {} heads, but the scores {} have {}: biases are compared on scores [heads, "
                    "queries, keys]",
                    name_of(scheme), form.heads, to_string(shape), heads));
  }
}

}  // namespace

std::string_view name_of(Agreement agreement) noexcept {
  return kAgreementNames[static_cast<std::size_t>(agreement)];
}

double default_tolerance(DataType type) noexcept {
  switch (type) {
    case DataType::kF64:
      return 1e-12;
    case DataType::kF32:
      return 2e-6;
    case DataType::kF16:
      return 2e-3;
    default:
      return 1.6e-2;
  }
}

CheckResult check(const Scheme& scheme, ConstTensorView before, ConstTensorView after, const CheckOptions& options) {
  const Tensors two{before, after};
  check_arguments(scheme, two, options);
  const Extents& shape = before.shape;
  // long enough for every position; what depends on the length is prepared for the actual sequence
  const auto largest = [](std::span<const std::int64_t> ids, std::int64_t least) {
    return ids.empty() ? least : std::max(least, *std::max_element(ids.begin(), ids.end()));
  };
  const std::int64_t counted = std::max(shape.back(1), options.keys.empty() ? shape.back(1) : shape.back(0));
  std::int64_t length =
      options.positions.empty() ? options.first_position + counted : largest(options.positions, 0) + 1;
  const bool is_bias = std::holds_alternative<Bias>(prepare(scheme, {.length = length, .weights = options.weights}));
  if (is_bias) {
    length = std::max({length, largest(options.keys, 0) + 1, options.first_position + shape.back(0)});
  }
  CheckResult best;
  CheckPositions positions;
  for (const Numerics numerics : {Numerics::kExact, Numerics::kHfF32, Numerics::kGgmlF32}) {
    if (numerics != Numerics::kExact && is_exact_alone(scheme)) break;
    const Form form = prepare(scheme, {.length = length, .numerics = numerics, .weights = options.weights});
    if (const auto* const one = std::get_if<Bias>(&form)) check_bias(scheme, *one, shape);
    positions = check_positions(form, name_of(scheme), shape, options);
    Expected expected = expected_of(form, before, positions, options.axes);
    const auto* const rotation = std::get_if<Rotation>(&form);
    if (rotation != nullptr && numerics != Numerics::kExact) {
      allow_float32_angles(*rotation, shape, positions, expected);
    }
    const Comparison comparison(two, form, positions, options);
    CheckResult one = comparison.compare(expected);
    one.numerics = numerics;
    if (one.agreement == Agreement::kDiffers && is_bias) {
      CheckResult shifted = comparison.compare(comparison.shifted_to_queries(expected));
      if (shifted.agreement == Agreement::kAgrees && shifted.largest_change > 0) {
        shifted.agreement = Agreement::kUpToQuery;
        shifted.numerics = numerics;
        one = shifted;
      }
    }
    const bool is_better = one.agreement != Agreement::kDiffers && best.agreement == Agreement::kDiffers;
    if (numerics == Numerics::kExact || is_better) best = std::move(one);
    if (best.agreement != Agreement::kDiffers) return best;
  }
  // if it differs: what was applied instead
  bool is_finite = true;
  for (std::int64_t i = 0; i < count_of(shape); ++i) {
    const double value = element(after, offset_of(index_of(i, shape), after.strides));
    is_finite = is_finite && (std::isfinite(value) || (is_bias && is_mask(value, after.type)));
  }
  if (!is_finite) {
    best.advice.emplace_back("The result holds numbers that are not finite.");
    return best;
  }
  best.diagnosis = diagnose(before, after, {.positions = positions.tokens, .axes = options.axes});
  best.advice = advice_on(scheme, best.diagnosis);
  if (is_bias && !options.is_causal) {
    CheckOptions causal = options;
    causal.is_causal = true;
    causal.tolerance = best.tolerance;
    const Form form = prepare(scheme, {.length = length, .weights = options.weights});
    const Comparison comparison(two, form, positions, causal);
    const Expected expected = expected_of(form, before, positions, options.axes);
    const bool agrees = comparison.compare(expected).agreement == Agreement::kAgrees ||
                        comparison.compare(comparison.shifted_to_queries(expected)).agreement == Agreement::kAgrees;
    if (agrees) {
      best.advice.emplace_back("Keys at or before their query agree: use --causal if a mask removes the later ones.");
    }
  }
  return best;
}

}  // namespace posenc
