// row(p + k) = M_k · row(p): whether a shift by k is one matrix for all positions.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "posenc/error.h"
#include "properties/least_squares.h"
#include "properties/rows.h"
#include "properties/trial.h"

namespace posenc {
namespace {

using namespace properties;

constexpr std::int64_t kMostShiftRows = 512;
constexpr std::size_t kMostTargets = 64;  // fitted columns, if rows are wider

// The same positions, shifted by the same amount on every axis.
Sample moved(Sample sample, std::int64_t by) {
  for (std::int64_t& id : sample.ids) id += by;
  return sample;
}

// The cosine and sine of the angle by which a shift rotates a pair, from the row of position k.
struct Turn {
  double cosine = 1, sine = 0;
};
std::vector<Turn> turns_of(const Form& form, const std::vector<WavePair>& pairs, std::int64_t by) {
  const double amplitude = signed_amplitude(form, pairs);
  const Sample here = sample_at({by}, position_axes_of(form));
  const std::vector<double> row = rows_at<double>(form, here.positions(), 1);
  std::vector<Turn> turns;
  for (const WavePair& pair : pairs) {
    turns.push_back(amplitude != 0 ? Turn{row[pair.cosine] / amplitude, row[pair.sine] / amplitude} : Turn{});
  }
  return turns;
}

// sin(a + b) = sin a cos b + cos a sin b,  cos(a + b) = cos a cos b − sin a sin b
void build_from_pairs(ShiftMap& map, const Form& form, const std::vector<WavePair>& pairs,
                      const ShiftOptions& options) {
  const std::size_t width = width_of(form);
  const double amplitude = amplitude_of(form, options.length);
  const std::vector<Turn> turns = turns_of(form, pairs, map.by);
  if (map.width <= options.widest) {
    map.matrix.assign(width * width, 0.0);
    for (std::size_t i = 0; i < pairs.size(); ++i) {
      const std::size_t s = pairs[i].sine, c = pairs[i].cosine;
      map.matrix[s * width + s] = map.matrix[c * width + c] = turns[i].cosine;
      map.matrix[s * width + c] = turns[i].sine;
      map.matrix[c * width + s] = -turns[i].sine;
    }
  }
  const Sample from = sample_of(options.length - map.by, position_axes_of(form), kMostShiftRows);
  const std::vector<double> before = rows_at<double>(form, from.positions(), from.count);
  const std::vector<double> after = rows_at<double>(form, moved(from, map.by).positions(), from.count);
  for (std::size_t row = 0; row < from.count; ++row) {
    const double* const x = &before[row * width];
    const double* const y = &after[row * width];
    for (std::size_t i = 0; i < pairs.size(); ++i) {
      const double sine = x[pairs[i].sine], cosine = x[pairs[i].cosine];
      const double new_sine = sine * turns[i].cosine + cosine * turns[i].sine;
      const double new_cosine = cosine * turns[i].cosine - sine * turns[i].sine;
      map.residual = larger(map.residual, std::fabs(y[pairs[i].sine] - new_sine));
      map.residual = larger(map.residual, std::fabs(y[pairs[i].cosine] - new_cosine));
    }
  }
  map.rank = map.width;
  map.rows = static_cast<std::int64_t>(from.count);
  // In units of 2u·A: y is within 0.501; the two values of x are each within 0.501, with factors that add up to at
  // most √2; the rotation's cosine and sine are each within 1.002 after their division; two products and a sum add
  // 0.5 each, of at most √2. The total is 4.1.
  map.bound = 10 * kUnit * amplitude;
}

// Transposes `rows`; takes at most `most` columns.
std::vector<double> by_columns(const std::vector<double>& rows, std::size_t count, std::size_t width,
                               std::size_t most) {
  const std::size_t taken = std::min(width, most);
  std::vector<double> columns;
  for (std::size_t i = 0; i < taken; ++i) {
    const std::size_t column = i * width / taken;
    for (std::size_t row = 0; row < count; ++row) columns.push_back(rows[row * width + column]);
  }
  return columns;
}

void fit(ShiftMap& map, const Form& form, const ShiftOptions& options) {
  const std::size_t width = width_of(form);
  const std::int64_t most = std::max<std::int64_t>(kMostShiftRows, 2 * map.width + 64);
  const Sample from = sample_of(options.length - map.by, position_axes_of(form), most);
  const std::vector<double> before = rows_at<double>(form, from.positions(), from.count);
  const std::vector<double> after = rows_at<double>(form, moved(from, map.by).positions(), from.count);
  const bool wants_matrix = map.width <= options.widest;
  LeastSquares solved =
      solve_least_squares(by_columns(before, from.count, width, width),
                          by_columns(after, from.count, width, wants_matrix ? width : kMostTargets), from.count);
  double largest = 0;
  for (const double value : after) largest = larger(largest, std::fabs(value));
  map.is_fitted = true;
  map.rank = static_cast<std::int64_t>(solved.rank);
  map.rows = static_cast<std::int64_t>(from.count);
  map.residual = solved.residual;
  map.bound = 2 * kUnit * static_cast<double>(from.count * std::max<std::size_t>(solved.rank, 1)) * largest;
  if (wants_matrix) map.matrix = std::move(solved.solution);
}

}  // namespace

ShiftMap shift_matrix(const Form& form, std::int64_t by, const ShiftOptions& options) {
  if (!has_rows(form)) raise("shift_matrix: the form has no rows");
  if (by < 0 || by >= options.length || options.length > reach_of(form)) {
    raise(fmt::format("shift_matrix: a shift of {} within {} positions; the form supports {}", by, options.length,
                      reach_of(form)));
  }
  ShiftMap map;
  map.by = by;
  map.width = static_cast<std::int64_t>(width_of(form));
  const std::vector<WavePair> pairs = wave_pairs_of(form);
  pairs.empty() ? fit(map, form, options) : build_from_pairs(map, form, pairs, options);
  return map;
}

namespace properties {

Finding linear_shift(const Trial& trial) {
  if (!has_rows(trial.form)) {
    return does_not_apply(Property::kLinearShift, trial, "It has no position vectors.");
  }
  if (trial.length < 4)
    return does_not_apply(Property::kLinearShift, trial, "It supports fewer than four positions.");
  ShiftMap worst;
  std::int64_t measured = 0;
  double most = -1;
  for (const std::int64_t by : {1, 10, 100}) {
    if (by >= trial.length / 2) break;
    const ShiftMap map = shift_matrix(trial.form, by, {.length = trial.length, .widest = 0});
    if (map.is_fitted && map.rows < 2 * map.rank) {
      return does_not_apply(Property::kLinearShift, trial,
                            fmt::format("Its {} rows have rank {}: too few to test, since some matrix always fits.",
                                        map.rows, map.rank));
    }
    measured += map.rows;
    if (map.residual / map.bound <= most) continue;
    most = map.residual / map.bound;
    worst = map;
  }
  Finding finding = decided(Property::kLinearShift, trial, worst.residual, worst.bound, BoundSense::kAtMost);
  finding.samples = measured;
  finding.details = {{"shift", static_cast<double>(worst.by)},
                     {"fitted", worst.is_fitted ? 1.0 : 0.0},
                     {"rank", static_cast<double>(worst.rank)}};
  const std::string_view way = worst.is_fitted ? "the best-fitting matrix" : "one rotation per pair";
  if (finding.outcome == Outcome::kHolds) {
    finding.meaning =
        fmt::format("Moving by k is {}, the same at every position (residual {:.2g}).", way, worst.residual);
  } else {
    finding.meaning = fmt::format("No single matrix moves every position by {}: {} leaves a residual of {:.2g}.",
                                  worst.by, way, worst.residual);
  }
  return finding;
}

}  // namespace properties
}  // namespace posenc
