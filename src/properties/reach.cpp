// The greatest length that a form supports, and whether the values of a position depend on anything else.

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "posenc/apply.h"
#include "properties/rows.h"
#include "properties/scores.h"
#include "properties/trial.h"
#include "schemes/check.h"
#include "terms/terms.h"

namespace posenc {
namespace {

std::int64_t reach_of(const Rotation& rotation) noexcept {
  if (has_table(rotation)) return table_of(rotation).cosines.shape[0];
  const Growth& growth = pair_waves_of(rotation).growth;
  const double range = range_of(growth);
  if (!(range < 0x1p53)) return kPositionLimit;
  return std::clamp<std::int64_t>(growth.centre + static_cast<std::int64_t>(range) + 1, 0, kPositionLimit);
}

}  // namespace

std::int64_t reach_of(const Form& form) noexcept {
  if (const auto* const bias = std::get_if<Bias>(&form)) return terms::reach(*bias);
  if (const auto* const rotation = std::get_if<Rotation>(&form)) return reach_of(*rotation);
  if (const auto* const addition = std::get_if<Addition>(&form)) {
    if (const auto* const rows = std::get_if<Rows>(&addition->source)) return rows->table.shape[0] - rows->offset;
  }
  return kPositionLimit;
}

namespace properties {
namespace {

constexpr std::int64_t kRowsToCompare = 64, kPositionsToScore = 12;

struct Differences {
  std::int64_t by_place = 0;   // start, order, batch
  std::int64_t by_length = 0;  // prepared for another length
  std::int64_t compared = 0;   // values, in all comparisons
};

// Bytes, not values: −0 is not 0, and a NaN may equal itself.
std::uint32_t bytes_of(float value) { return std::bit_cast<std::uint32_t>(value); }
std::uint64_t bytes_of(double value) { return std::bit_cast<std::uint64_t>(value); }

template <class T> std::int64_t bytes_that_differ(const T* a, const T* b, std::size_t count) {
  std::int64_t differ = 0;
  for (std::size_t i = 0; i < count; ++i) differ += bytes_of(a[i]) == bytes_of(b[i]) ? 0 : 1;
  return differ;
}

void compare(const std::vector<float>& once, const std::vector<float>& again, std::int64_t& count,
             Differences& differences) {
  count += bytes_that_differ(once.data(), again.data(), once.size());
  differences.compared += static_cast<std::int64_t>(once.size());
}

// The sample in another order: position i of the result is position order[i] of the sample.
Sample reordered(const Sample& sample, const std::vector<std::size_t>& order) {
  Sample other = sample;
  for (int axis = 0; axis < sample.axes; ++axis) {
    for (std::size_t i = 0; i < order.size(); ++i) {
      other.ids[axis * sample.count + i] = sample.at(axis, order[i]);
    }
  }
  return other;
}

std::vector<float> rows_back_in_order(const std::vector<float>& rows, const std::vector<std::size_t>& order,
                                      std::size_t width) {
  std::vector<float> back(order.size() * width);
  for (std::size_t i = 0; i < order.size(); ++i) {
    std::copy_n(rows.begin() + static_cast<std::ptrdiff_t>(i * width), width,
                back.begin() + static_cast<std::ptrdiff_t>(order[i] * width));
  }
  return back;
}

// Lengths that the same sequence may have now or later.
std::vector<std::int64_t> other_lengths(const Trial& trial) {
  if (std::holds_alternative<Bias>(trial.form)) return {trial.length, 2 * trial.length};
  return {1, trial.length, std::int64_t{1} << 40};
}

Differences compare_rows(const Trial& trial) {
  const Form& form = trial.form;
  const std::size_t width = width_of(form);
  const Sample sample = sample_of(trial.length, position_axes_of(form), kRowsToCompare);
  const std::size_t count = sample.count;
  const std::vector<float> once = rows_at<float>(form, sample.positions(), count);
  Differences found;

  std::vector<std::size_t> order(count);
  for (std::size_t i = 0; i < count; ++i) order[i] = count - 1 - i;
  const Sample reversed = reordered(sample, order);
  compare(once, rows_back_in_order(rows_at<float>(form, reversed.positions(), count), order, width), found.by_place,
          found);

  // a batch of two sequences, one of them reversed: ids are [axes, batch, sequence]
  Positions both;
  both.axes = sample.axes;
  std::vector<std::int64_t> ids;
  for (int axis = 0; axis < sample.axes; ++axis) {
    for (std::size_t i = 0; i < count; ++i) ids.push_back(sample.at(axis, i));
    for (std::size_t i = 0; i < count; ++i) ids.push_back(reversed.at(axis, i));
  }
  both.ids = ids;
  const std::vector<float> batch = rows_at<float>(form, both, count, 2);
  const auto middle = batch.begin() + static_cast<std::ptrdiff_t>(count * width);
  compare(once, {batch.begin(), middle}, found.by_place, found);
  compare(once, rows_back_in_order({middle, batch.end()}, order, width), found.by_place, found);

  // alone, each as the first of its sequence
  std::vector<float> alone;
  for (std::size_t i = 0; i < count; ++i) {
    std::vector<std::int64_t> id;
    for (int axis = 0; axis < sample.axes; ++axis) id.push_back(sample.at(axis, i));
    const std::vector<float> row = rows_at<float>(form, {.first = 0, .ids = id, .axes = sample.axes}, 1);
    alone.insert(alone.end(), row.begin(), row.end());
  }
  compare(once, alone, found.by_place, found);

  for (const std::int64_t length : other_lengths(trial)) {
    compare(once, rows_at<float>(form_for(trial, length), sample.positions(), count), found.by_length, found);
  }
  return found;
}

Differences compare_scores(const Trial& trial) {
  const Sample sample = sample_of(trial.length, position_axes_of(trial.form), kPositionsToScore);
  const QueryAndKey content = random_query_and_key(head_features_of(trial.form), trial.options.seed);
  std::vector<ScorePair> pairs = all_pairs(sample);
  const std::vector<double> once = scores_of(trial.form, sample, pairs, content);
  const std::size_t heads = heads_of(trial.form);
  Differences found;
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    const std::vector<double> alone = scores_of(trial.form, sample, {pairs[i]}, content);
    found.by_place += bytes_that_differ(&once[i * heads], alone.data(), heads);
  }
  found.compared += static_cast<std::int64_t>(once.size());
  for (const std::int64_t length : other_lengths(trial)) {
    const std::vector<double> again = scores_of(form_for(trial, length), sample, pairs, content);
    found.by_length += bytes_that_differ(once.data(), again.data(), once.size());
    found.compared += static_cast<std::int64_t>(once.size());
  }
  return found;
}

}  // namespace

Finding same_bytes(const Trial& trial) {
  if (trial.length < 1) return does_not_apply(Property::kConsistent, trial, "It supports no position.");
  if (reads_tokens_between(trial.form)) {
    return does_not_apply(Property::kConsistent, trial, "It reads the tokens between key and query, not positions.");
  }
  const Differences found = has_rows(trial.form) ? compare_rows(trial) : compare_scores(trial);
  const std::int64_t differ = found.by_place + found.by_length;
  Finding finding = decided(Property::kConsistent, trial, static_cast<double>(differ), 0, BoundSense::kAtMost);
  finding.samples = found.compared;
  finding.details = {{"differ_by_place", static_cast<double>(found.by_place)},
                     {"differ_by_length", static_cast<double>(found.by_length)}};
  if (finding.outcome == Outcome::kHolds) {
    finding.meaning =
        fmt::format("{} values are bit-identical in every order, alone or in a batch, and at every sequence length.",
                    found.compared);
  } else if (found.by_place == 0) {
    finding.meaning = fmt::format("{} of {} values change with the sequence length: cached keys become invalid.",
                                  differ, found.compared);
  } else {
    finding.meaning =
        fmt::format("{} of {} values depend on the other positions in the sequence.", differ, found.compared);
  }
  return finding;
}

Finding any_length(const Trial& trial) {
  const std::int64_t now = reach_of(trial.form);
  // A form that is prepared for a length covers less if it is prepared for a shorter one.
  const std::int64_t shorter = now == kPositionLimit || !trial.scheme
                                   ? now
                                   : reach_of(form_for(trial, std::max<std::int64_t>(trial.length / 2, 1)));
  const bool follows = shorter != now;
  Finding finding = decided(Property::kAnyLength, trial, static_cast<double>(now),
                            static_cast<double>(follows ? now : kPositionLimit), BoundSense::kAtLeast);
  finding.details = {{"follows_length", follows ? 1.0 : 0.0}};
  if (follows) {
    finding.meaning = fmt::format(
        "Prepared for {} positions, it supports {}. It has no fixed end: prepare it again for longer sequences, up "
        "to {}.",
        trial.length, now, schemes::kDistanceLimit);
  } else if (now == kPositionLimit) {
    finding.meaning = "Defined at every position below 2^53. Whether a model works there is a separate question.";
  } else {
    finding.meaning = fmt::format("Supports {} positions; position {} is rejected.", now, now);
  }
  return finding;
}

}  // namespace properties
}  // namespace posenc
