// Properties of the rows of a form: of each row, and of pairs of rows.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "posenc/apply.h"
#include "posenc/random.h"
#include "properties/rows.h"
#include "properties/trial.h"

namespace posenc::properties {
namespace {

constexpr std::int64_t kMostRows = 2048;
constexpr std::string_view kNoRows = "It has no position vectors.";

std::string no_rows(const Trial& trial) {
  return trial.length < 2 && has_rows(trial.form) ? "It supports fewer than two positions." : std::string(kNoRows);
}

struct Nearest {
  double squares = std::numeric_limits<double>::infinity();
  std::size_t one = 0, other = 0;
};

// Compares every pair, and abandons a sum once it exceeds the best so far. Differences of f32 and their squares are
// exact in double, so the sum is 0 only if two rows are equal.
Nearest nearest_pair(const std::vector<float>& rows, std::size_t count, std::size_t width) {
  constexpr std::size_t kBetweenLooks = 8;
  Nearest nearest;
  for (std::size_t m = 0; m < count; ++m) {
    for (std::size_t n = m + 1; n < count; ++n) {
      const float* const a = &rows[m * width];
      const float* const b = &rows[n * width];
      double squares = 0;
      for (std::size_t j = 0; j < width; ++j) {
        const double apart = static_cast<double>(a[j]) - static_cast<double>(b[j]);
        squares += apart * apart;
        if (j % kBetweenLooks == 0 && squares >= nearest.squares) break;
      }
      if (squares < nearest.squares) nearest = {squares, m, n};
    }
  }
  return nearest;
}

// Positions 0, 1, 3, 7 … within the form's reach, and the last.
Sample far_sample(const Form& form) {
  std::vector<std::int64_t> positions;
  const std::int64_t reach = reach_of(form);
  for (std::int64_t power = 1; power <= reach && power > 0; power *= 2) positions.push_back(power - 1);
  positions.push_back(reach - 1);
  return sample_at(positions, position_axes_of(form));
}

struct Largest {
  double value = 0;
  std::int64_t position = 0;
};

void look_for_largest(const Form& form, const Sample& sample, Largest& largest) {
  const std::size_t width = width_of(form);
  const std::vector<double> rows = rows_at<double>(form, sample.positions(), sample.count);
  for (std::size_t i = 0; i < sample.count; ++i) {
    for (std::size_t j = 0; j < width; ++j) {
      const double value = std::fabs(rows[i * width + j]);
      if (!(value <= largest.value)) largest = {value, sample.at(0, i)};
    }
  }
}

double norm_of(const double* values, std::size_t count) {
  double squares = 0;
  for (std::size_t i = 0; i < count; ++i) squares += values[i] * values[i];
  return std::sqrt(squares);
}

// row(p + 1) − row(p) for consecutive positions from 0.
struct Steps {
  std::size_t count = 0, width = 0;
  std::vector<double> values;  // [count, width]
  double largest_value = 0;    // of the rows
  const double* at(std::size_t i) const { return &values[i * width]; }
};

Steps steps_of(const Trial& trial) {
  Steps steps;
  const std::size_t count = std::min(trial.length, kMostRows);
  steps.count = count - 1;
  steps.width = width_of(trial.form);
  std::vector<std::int64_t> positions(count);
  for (std::size_t i = 0; i < count; ++i) positions[i] = static_cast<std::int64_t>(i);
  const std::vector<double> rows =
      rows_at<double>(trial.form, sample_at(positions, position_axes_of(trial.form)).positions(), count);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    steps.largest_value = larger(steps.largest_value, std::fabs(rows[i]));
    if (i + steps.width < rows.size()) steps.values.push_back(rows[i + steps.width] - rows[i]);
  }
  return steps;
}

// The share of a bf16 token's features that do not change from one position to the next.
double share_lost_in_bf16(const Addition& form, const std::vector<double>& token, int axes) {
  constexpr std::size_t kPositions = 16;
  const auto width = static_cast<std::int64_t>(token.size());
  const Addition constant{width, Lines{token, std::vector<double>(token.size())}};
  std::vector<BFloat16> x(kPositions * token.size());
  const TensorView tokens = view(x.data(), {static_cast<std::int64_t>(kPositions), width});
  tabulate(tokens, {}, constant);
  std::vector<std::int64_t> positions(kPositions);
  for (std::size_t i = 0; i < kPositions; ++i) positions[i] = static_cast<std::int64_t>(i);
  const Sample sample = sample_at(positions, axes);
  add(tokens, sample.positions(), form);
  std::size_t same = 0;
  for (std::size_t i = token.size(); i < x.size(); ++i) same += x[i] == x[i - token.size()] ? 1 : 0;
  return static_cast<double>(same) / static_cast<double>(x.size() - token.size());
}

}  // namespace

Finding unique_rows(const Trial& trial) {
  if (!has_rows(trial.form) || trial.length < 2) return does_not_apply(Property::kUnique, trial, no_rows(trial));
  const Sample sample = sample_of(trial.length, position_axes_of(trial.form), kMostRows);
  const std::vector<float> rows = rows_at<float>(trial.form, sample.positions(), sample.count);
  const Nearest nearest = nearest_pair(rows, sample.count, width_of(trial.form));
  // NaN rows have no distance.
  const bool all_numbers = std::none_of(rows.begin(), rows.end(), [](float value) { return std::isnan(value); });
  const double distance = all_numbers ? std::sqrt(nearest.squares) : std::numeric_limits<double>::quiet_NaN();
  Finding finding = decided(Property::kUnique, trial, distance, 0, BoundSense::kAbove);
  finding.samples = static_cast<std::int64_t>(sample.count);
  const std::int64_t one = sample.at(0, nearest.one), other = sample.at(0, nearest.other);
  finding.details = {{"position", static_cast<double>(one)}, {"other_position", static_cast<double>(other)}};
  finding.meaning =
      finding.outcome == Outcome::kHolds
          ? fmt::format("No two of {} rows are equal; the closest, at positions {} and {}, are {:.3g} apart.",
                        sample.count, one, other, distance)
          : fmt::format("Positions {} and {} have the same row and cannot be distinguished.", one, other);
  return finding;
}

Finding bounded_values(const Trial& trial) {
  if (!has_rows(trial.form) || trial.length < 1) return does_not_apply(Property::kBounded, trial, no_rows(trial));
  const double amplitude = amplitude_of(trial.form, trial.length);
  const Sample near = sample_of(trial.length, position_axes_of(trial.form), kMostRows), far = far_sample(trial.form);
  Largest largest;
  look_for_largest(trial.form, near, largest);
  look_for_largest(trial.form, far, largest);
  if (const auto* const rotation = std::get_if<Rotation>(&trial.form)) {
    look_for_largest(for_keys(*rotation), far, largest);
  }
  Finding finding = decided(Property::kBounded, trial, largest.value, amplitude, BoundSense::kAtMost);
  finding.samples = static_cast<std::int64_t>(near.count + far.count);
  finding.details = {{"position", static_cast<double>(largest.position)},
                     {"furthest_position", static_cast<double>(reach_of(trial.form) - 1)}};
  finding.meaning = finding.outcome == Outcome::kHolds
                        ? fmt::format("No value exceeds {:.4g} up to position {}: it cannot dominate a token.",
                                      amplitude, reach_of(trial.form) - 1)
                        : fmt::format(
                              "At position {} a value is {:.3g}, above the bound {:.3g}: far enough out, it "
                              "dominates every token.",
                              largest.position, largest.value, amplitude);
  return finding;
}

Finding resolvable_steps(const Trial& trial) {
  const auto* const addition = std::get_if<Addition>(&trial.form);
  if (addition == nullptr) {
    return does_not_apply(Property::kResolvable, trial, "It is not added to tokens.");
  }
  if (trial.length < 2) return does_not_apply(Property::kResolvable, trial, no_rows(trial));
  const Steps steps = steps_of(trial);
  Random random(static_cast<std::uint64_t>(trial.options.seed));
  std::vector<double> token(steps.width);
  for (double& value : token) value = random.uniform();
  double squares = 0;
  for (std::size_t i = 0; i < steps.count; ++i) {
    const double norm = norm_of(steps.at(i), steps.width);
    squares += norm * norm;
  }
  const double step = std::sqrt(squares / static_cast<double>(steps.count)),
               size = norm_of(token.data(), token.size());
  Finding finding = decided(Property::kResolvable, trial, step / size, 0x1p-9, BoundSense::kAtLeast);
  finding.samples = static_cast<std::int64_t>(steps.count);
  const double lost = trial.length < 16 ? std::numeric_limits<double>::quiet_NaN()
                                        : share_lost_in_bf16(*addition, token, position_axes_of(trial.form));
  finding.details = {{"step", step}, {"token", size}, {"share_lost_in_bf16", lost}};
  finding.meaning =
      fmt::format("One position changes a token by {:.2g} of its norm: {}", step / size,
                  finding.outcome == Outcome::kHolds ? "resolvable in bf16" : "lost in the rounding of bf16");
  finding.meaning +=
      std::isnan(lost) ? "." : fmt::format("; {:.0f}% of its features do not change in bf16.", 100 * lost);
  return finding;
}

Finding varied_steps(const Trial& trial) {
  if (!std::holds_alternative<Addition>(trial.form)) {
    return does_not_apply(Property::kVaried, trial, "It adds no vectors.");
  }
  if (trial.length < 3) return does_not_apply(Property::kVaried, trial, "It supports fewer than three positions.");
  const Steps steps = steps_of(trial);
  double furthest = 0, longest = 0;
  std::vector<double> apart(steps.width);
  for (std::size_t i = 0; i < steps.count; ++i) {
    for (std::size_t j = 0; j < steps.width; ++j) apart[j] = steps.at(i)[j] - steps.at(0)[j];
    furthest = larger(furthest, norm_of(apart.data(), steps.width));
    longest = larger(longest, norm_of(steps.at(i), steps.width));
  }
  // Each value of a row has two roundings, and the difference of two steps has four rows.
  const double rounding = 8 * kUnit * steps.largest_value * std::sqrt(static_cast<double>(steps.width));
  const double share = longest > 0 ? furthest / longest : 0;
  Finding finding =
      decided(Property::kVaried, trial, share, longest > 0 ? rounding / longest : 0, BoundSense::kAbove);
  finding.samples = static_cast<std::int64_t>(steps.count);
  finding.details = {{"longest_step", longest}};
  finding.meaning = finding.outcome == Outcome::kHolds
                        ? fmt::format(
                              "The differences between adjacent rows vary by up to {:.2g} of their norm: they depend "
                              "on the position.",
                              share)
                        : fmt::format(
                              "All {} differences between adjacent rows are the same vector: distances 5 and 50 "
                              "differ only by a factor.",
                              steps.count);
  return finding;
}

Finding smooth_rows(const Trial& trial) {
  if (!has_rows(trial.form) || trial.length < 3) return does_not_apply(Property::kSmooth, trial, no_rows(trial));
  const Steps steps = steps_of(trial);
  double adjacent = 0;
  for (std::size_t i = 0; i < steps.count; ++i) adjacent = larger(adjacent, norm_of(steps.at(i), steps.width));
  // The RMS distance of two rows is √2 times the RMS distance of a row from the mean.
  const Sample sample = sample_of(trial.length, position_axes_of(trial.form), kMostRows);
  const std::vector<double> rows = rows_at<double>(trial.form, sample.positions(), sample.count);
  const auto count = static_cast<double>(sample.count);
  double squares = 0;
  for (std::size_t j = 0; j < steps.width; ++j) {
    double mean = 0;
    for (std::size_t i = 0; i < sample.count; ++i) mean += rows[i * steps.width + j] / count;
    for (std::size_t i = 0; i < sample.count; ++i) {
      const double away = rows[i * steps.width + j] - mean;
      squares += away * away / count;
    }
  }
  const double typical = std::sqrt(2 * squares);
  Finding finding = decided(Property::kSmooth, trial, typical > 0 ? adjacent / typical : 0, 1, BoundSense::kAtMost);
  finding.samples = static_cast<std::int64_t>(steps.count);
  finding.details = {{"adjacent_distance", adjacent}, {"rms_distance", typical}};
  finding.meaning =
      finding.outcome == Outcome::kHolds
          ? fmt::format("Adjacent rows are at most {:.3g} apart; the distance of two arbitrary rows is {:.3g} (RMS).",
                        adjacent, typical)
          : fmt::format("Adjacent rows are up to {:.3g} apart, no closer than any two rows ({:.3g}).", adjacent,
                        typical);
  return finding;
}

}  // namespace posenc::properties
