#include "diagnosis/comparison.h"

#include <algorithm>
#include <cmath>

#include "diagnosis/element.h"
#include "posenc/error.h"

namespace posenc::diagnosis {
namespace {

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

}  // namespace

Comparison::Comparison(const Tensors& two, const Form& form, const CheckPositions& positions,
                       const CheckOptions& options)
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

CheckResult Comparison::compare(const Expected& expected) const {
  CheckResult result{.agreement = Agreement::kAgrees, .tolerance = tolerance_};
  std::int64_t compared = 0;
  for (std::size_t i = 0; i < expected.values.size(); ++i) {
    const Extents index = index_of(static_cast<std::int64_t>(i), after_.shape);
    const double got = element(after_, offset_of(index, after_.strides));
    if (is_skipped(index, expected.before[i], got)) {
      ++result.masked;
      continue;
    }
    ++compared;
    const double difference = std::fabs(got - expected.values[i]);
    result.largest_change = std::max(result.largest_change, std::fabs(expected.values[i] - expected.before[i]));
    if (!(difference <= result.largest_difference)) result.largest_difference = difference;
    if (difference <= room_of(expected, i) || result.first) continue;
    result.first = {{index.value.begin(), index.value.begin() + index.rank}, expected.values[i], got};
  }
  if (compared == 0) raise("check: every score is masked, so there is nothing to compare");
  if (result.first) result.agreement = Agreement::kDiffers;
  return result;
}

Expected Comparison::shifted_to_queries(const Expected& expected) const {
  Expected shifted = expected;
  const std::int64_t keys = after_.shape.back(0);
  for (std::int64_t row = 0; row < std::ssize(expected.values) / keys; ++row) {
    double sum = 0, count = 0, bias_sum = 0;
    const auto each = [&](const auto& act) {
      for (std::int64_t key = 0; key < keys; ++key) {
        const std::size_t i = row * keys + key;
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

std::vector<bool> Comparison::skipped(const std::vector<double>& before) const {
  std::vector<bool> result;
  if (!is_bias_) return result;
  for (std::size_t i = 0; i < before.size(); ++i) {
    const Extents index = index_of(static_cast<std::int64_t>(i), after_.shape);
    result.push_back(is_skipped(index, before[i], element(after_, offset_of(index, after_.strides))));
  }
  return result;
}

std::vector<bool> Comparison::misses(const Expected& expected) const {
  std::vector<bool> result;
  for (std::size_t i = 0; i < expected.values.size(); ++i) {
    const Extents index = index_of(static_cast<std::int64_t>(i), after_.shape);
    const double got = element(after_, offset_of(index, after_.strides));
    result.push_back(!is_skipped(index, expected.before[i], got) &&
                     !(std::fabs(got - expected.values[i]) <= room_of(expected, i)));
  }
  return result;
}

double Comparison::room_of(const Expected& expected, std::size_t i) const {
  return tolerance_ * expected.scale[i] + floor_ + (expected.leeway.empty() ? 0 : expected.leeway[i]);
}

// A key after its query, on the only axis that biases with a mask have.
bool Comparison::is_ahead(const Extents& index) const {
  const std::size_t query = index.back(1), key = index.back(0);
  return options_.axes == 1 && positions_.keys[key] > positions_.tokens[query];
}

bool Comparison::is_skipped(const Extents& index, double before, double got) const {
  if (!is_bias_) return false;
  if (options_.is_causal && is_ahead(index)) return true;
  const bool was_masked = is_mask(before, before_type_);
  return is_mask(got, after_.type) && (was_masked || is_ahead(index));
}

}  // namespace posenc::diagnosis
