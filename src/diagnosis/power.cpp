#include "diagnosis/power.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <string>

namespace posenc::diagnosis {
namespace {

// Σ over the unmasked keys of each query is subtracted.
void centre_rows(std::vector<double>& values, std::int64_t keys, const std::vector<bool>& skipped) {
  for (std::size_t row = 0; row < values.size(); row += static_cast<std::size_t>(keys)) {
    double sum = 0, count = 0;
    for (std::size_t i = row; i < row + static_cast<std::size_t>(keys); ++i) {
      if (!skipped.empty() && skipped[i]) continue;
      sum += values[i];
      ++count;
    }
    if (count == 0) continue;
    for (std::size_t i = row; i < row + static_cast<std::size_t>(keys); ++i) values[i] -= sum / count;
  }
}

// Values of one size and random signs: the two of a pair are equal, which shows a small turn least.
std::vector<double> random_signs(std::int64_t count, double size) {
  std::mt19937 random(1);
  std::vector<double> values(count);
  for (double& value : values) value = (random() & 1U) != 0 ? size : -size;
  return values;
}

double typical_size(const Probe& probe) {
  double squares = 0, count = 0;
  for (std::size_t i = 0; i < probe.before.size(); ++i) {
    if ((!probe.skipped.empty() && probe.skipped[i]) || !std::isfinite(probe.before[i])) continue;
    squares += probe.before[i] * probe.before[i];
    ++count;
  }
  return count > 0 && squares > 0 ? std::sqrt(squares / count) : 1;
}

// The same comparison of a few other tokens: the last ones of as many as there are, from this position on.
Probe later_tokens(const Probe& probe, std::int64_t first, double size) {
  constexpr std::int64_t kMostTokens = 16;
  Probe later = probe;
  const std::int64_t tokens = probe.shape.back(1), used = std::min(tokens, kMostTokens);
  const Form form = prepare(probe.scheme, {.length = probe.where.length, .weights = probe.where.weights});
  const auto* const rotation = std::get_if<Rotation>(&form);
  const std::int64_t heads = rotation != nullptr ? heads_of(*rotation) : 1;
  later.shape = {heads, used, probe.shape.back(0)};
  later.before = random_signs(count_of(later.shape), size);
  later.skipped.clear();
  later.where.positions.tokens.clear();
  for (std::int64_t axis = 1; axis <= probe.where.axes; ++axis) {
    for (std::int64_t i = tokens - used; i < tokens; ++i) {
      later.where.positions.tokens.push_back(axis * first + i);
    }
  }
  later.where.length = std::max(probe.where.length, probe.where.axes * first + tokens);
  return later;
}

// The last queries of this many keys.
Probe more_keys(const Probe& probe, std::int64_t keys, double size) {
  constexpr std::int64_t kMostQueries = 2;
  Probe more = probe;
  const std::int64_t heads = probe.shape.rank > 2 ? probe.shape.back(2) : 1;
  const std::int64_t queries = std::min(kMostQueries, keys);
  more.shape = {heads, queries, keys};
  more.before = random_signs(count_of(more.shape), size);
  const bool has_skipped = std::find(probe.skipped.begin(), probe.skipped.end(), true) != probe.skipped.end();
  more.skipped.assign(more.before.size(), false);
  more.where.positions = {};
  for (std::int64_t i = 0; i < keys; ++i) more.where.positions.keys.push_back(i);
  for (std::int64_t i = keys - queries; i < keys; ++i) more.where.positions.tokens.push_back(i);
  for (std::size_t i = 0; i < more.before.size() && has_skipped; ++i) {
    const auto key = static_cast<std::int64_t>(i) % keys, query = static_cast<std::int64_t>(i) / keys % queries;
    more.skipped[i] = key > query + keys - queries;
  }
  more.where.length = std::max(probe.where.length, keys);
  return more;
}

// What a scheme makes of a probe, to compare rivals with.
class RivalComparison {
 public:
  explicit RivalComparison(const Probe& probe) : probe_(probe) {
    const Form form = prepare(probe.scheme, {.length = probe.where.length, .weights = probe.where.weights});
    expected_ = expected_of(form, view(probe.before.data(), probe.shape), probe.where.positions, probe.where.axes);
    if (const auto* const rotation = std::get_if<Rotation>(&form); rotation != nullptr && is_plain(*rotation)) {
      allow_float32_angles(*rotation, probe.shape, probe.where.positions, expected_);
    }
  }

  // The largest difference from a rival, in units of what rounding may explain.
  double from(const Rival& rival) const {
    std::vector<double> apart = expected_of(rival, probe_.before, probe_.shape, probe_.where).values;
    for (std::size_t i = 0; i < apart.size(); ++i) apart[i] = is_skipped(i) ? 0 : apart[i] - expected_.values[i];
    if (probe_.is_up_to_query) centre_rows(apart, probe_.shape.back(0), probe_.skipped);
    double largest = 0;
    for (std::size_t i = 0; i < apart.size(); ++i) {
      if (!is_skipped(i)) largest = std::max(largest, std::fabs(apart[i]) / room(i));
    }
    return largest;
  }

 private:
  bool is_skipped(std::size_t i) const { return !probe_.skipped.empty() && probe_.skipped[i]; }
  double room(std::size_t i) const {
    return (probe_.tolerance + probe_.rounding) * expected_.scale[i] + 2 * probe_.floor +
           (expected_.leeway.empty() ? 0 : 2 * expected_.leeway[i]);
  }

  const Probe& probe_;
  Expected expected_;
};

// Whether a probe tells the scheme from every rival. `suspect`: the one that it was not told from last time, which is likely
// to be the one again, and is compared first.
// A turned pair shows the difference least where both features change alike, by 1/√2 of it; random signs are not always
// so unfortunate, so that much more is demanded than of tensors at hand.
bool tells_all(const Probe& probe, std::string& suspect) {
  constexpr double kCertain = 1.4143;
  std::vector<Rival> rivals = rivals_of(probe.scheme, rival_inputs(probe));
  std::stable_partition(rivals.begin(), rivals.end(), [&](const Rival& rival) { return rival.name == suspect; });
  const RivalComparison comparison(probe);
  for (const Rival& rival : rivals) {
    if (rival.is_equivalent || comparison.from(rival) > kCertain) continue;
    suspect = rival.name;
    return false;
  }
  return true;
}

// The smallest number above `from` for which `is_enough`, if that is false below it and true above; nothing up to `most`.
template <class Test>
std::optional<std::int64_t> least_number(std::int64_t from, std::int64_t most, const Test& is_enough) {
  std::int64_t below = from, above = from + 1;
  while (!is_enough(above)) {
    if (above >= most) return std::nullopt;
    below = above;
    above = std::min(most, from + 2 * (above - from));
  }
  while (above - below > 1) {
    const std::int64_t middle = below + (above - below) / 2;
    (is_enough(middle) ? above : below) = middle;
  }
  return above;
}

// Whether a key after its query is compared.
bool has_later_keys(const Probe& probe) {
  const std::int64_t keys = probe.shape.back(0), queries = probe.shape.back(1);
  for (std::size_t i = 0; i < probe.before.size(); ++i) {
    const auto at = static_cast<std::int64_t>(i);
    const bool is_later = probe.where.positions.keys[at % keys] > probe.where.positions.tokens[at / keys % queries];
    if (is_later && (probe.skipped.empty() || !probe.skipped[i])) return true;
  }
  return false;
}

}  // namespace

std::vector<double> differences(const Probe& probe, std::span<const Rival> rivals) {
  const RivalComparison comparison(probe);
  std::vector<double> found;
  for (const Rival& rival : rivals) found.push_back(comparison.from(rival));
  return found;
}

RivalInputs rival_inputs(const Probe& probe) {
  const std::vector<std::int64_t>& ids = probe.where.positions.tokens;
  const auto [least, most] = std::minmax_element(ids.begin(), ids.end());
  RivalInputs inputs{.features = probe.shape.back(0),
                     .tokens = probe.shape.back(1),
                     .least_position = *least,
                     .last_position = *most};
  if (const std::vector<std::int64_t>& keys = probe.where.positions.keys; !keys.empty()) {
    inputs.least_key = *std::min_element(keys.begin(), keys.end());
    inputs.has_later_keys = has_later_keys(probe);
  }
  if (const auto* const learned = std::get_if<Learned>(&probe.scheme)) {
    inputs.rows = probe.where.weights.shape[0] - learned->offset;
  } else if (probe.where.weights.data != nullptr && !is_bias(probe.scheme)) {
    inputs.rows = *most + 1;  // how far such a table reaches is the scheme's affair
  }
  return inputs;
}

std::optional<Enough> enough_tokens(const Probe& probe) {
  constexpr std::int64_t kFurthest = std::int64_t{1} << 24, kMostKeys = 1 << 12;
  const double size = typical_size(probe);
  std::string suspect;
  if (is_bias(probe.scheme)) {
    if (probe.where.axes > 1) return std::nullopt;
    const auto keys = least_number(probe.shape.back(0), kMostKeys, [&](std::int64_t count) {
      return tells_all(more_keys(probe, count, size), suspect);
    });
    if (!keys) return std::nullopt;
    return Enough{*keys, {0}};
  }
  const RivalInputs inputs = rival_inputs(probe);
  const std::int64_t tokens = probe.shape.back(1);
  const std::int64_t most = inputs.rows > 0 ? inputs.rows - tokens - 1 : kFurthest;
  const auto is_enough = [&](std::int64_t first) { return tells_all(later_tokens(probe, first, size), suspect); };
  if (inputs.least_position + 1 > most) return std::nullopt;
  const std::optional<std::int64_t> first = least_number(inputs.least_position, most, is_enough);
  if (!first) return std::nullopt;
  Enough enough{tokens, {}};
  for (std::int64_t axis = 1; axis <= probe.where.axes; ++axis) enough.first_positions.push_back(axis * *first);
  return enough;
}

}  // namespace posenc::diagnosis
