#include "diagnosis/score_bias.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numbers>

#include "diagnosis/element.h"
#include "diagnosis/expected.h"
#include "diagnosis/samples.h"

namespace posenc::diagnosis {
namespace {

constexpr std::int64_t kMostTokens = 160, kMostBatch = 4, kMostScoreHeads = 64;

// One score that is not masked.
struct Point {
  std::int64_t row = 0;       // of the same query, head and sequence
  std::int64_t distance = 0;  // key − query
  double change = 0;
};

struct Scores {
  std::int64_t heads = 0;
  std::vector<std::vector<Point>> points;  // of each head
  double noise = 0;                        // variance of one change due to rounding
  double energy = 0;                       // of all changes
  std::int64_t count = 0;
};

std::optional<Scores> scores_of(ConstTensorView before, ConstTensorView after, const DiagnosisOptions& options) {
  const Extents& shape = before.shape;
  if (shape.rank < 3 || shape.rank > 4 || options.axes > 1) return std::nullopt;
  const std::int64_t queries = shape.back(1), keys = shape.back(0);
  if (keys < 4 || queries > keys) return std::nullopt;
  Scores scores;
  scores.heads = shape.back(2);
  if (scores.heads > kMostScoreHeads) return std::nullopt;
  scores.points.resize(scores.heads);
  const double rounding = std::max(rounding_of(before.type), rounding_of(after.type));
  double squares = 0;
  const std::int64_t batch = std::min(count_of(shape) / (scores.heads * queries * keys), kMostBatch);
  for (std::int64_t b = 0; b < batch; ++b) {
    for (std::int64_t head = 0; head < scores.heads; ++head) {
      for (std::int64_t query = std::max<std::int64_t>(0, queries - kMostTokens); query < queries; ++query) {
        const bool is_known = !options.positions.empty();
        const std::int64_t position = is_known ? options.positions[query] : query + keys - queries;
        for (std::int64_t key = std::max<std::int64_t>(0, keys - kMostTokens); key < keys; ++key) {
          Extents index = shape;
          if (shape.rank == 4) index[0] = b;
          index[shape.rank - 3] = head;
          index[shape.rank - 2] = query;
          index[shape.rank - 1] = key;
          const double x = element(before, offset_of(index, before.strides));
          const double y = element(after, offset_of(index, after.strides));
          if (is_mask(x, before.type) || is_mask(y, after.type)) continue;
          if (!std::isfinite(x) || !std::isfinite(y)) return std::nullopt;
          const bool is_square = is_known && queries == keys;
          const std::int64_t place = is_square ? options.positions[key] : key;
          scores.points[head].push_back({b * queries + query, place - position, y - x});
          scores.energy += (y - x) * (y - x);
          squares += x * x + y * y;
          ++scores.count;
        }
      }
    }
  }
  if (scores.count < 4 * scores.heads) return std::nullopt;
  scores.noise = rounding * rounding * squares / static_cast<double>(scores.count);
  // nothing significant was added
  if (scores.energy <= 16 * scores.noise * static_cast<double>(scores.count)) return std::nullopt;
  return scores;
}

// What a model of the changes leaves unexplained, and the number of parameters fitted.
struct Left {
  double energy = 0;
  std::int64_t count = 0;
};

struct LinearFit {
  std::vector<double> slopes;
  Left left;
  bool is_signed = false;  // later keys gain: slope·(key − query) instead of −slope·distance
};

// −slope·|δ| per head; with a constant per query if that is allowed, and then for keys up to the query.
LinearFit linear_fit(const Scores& scores, bool is_up_to_query) {
  LinearFit fit;
  for (const auto& points : scores.points) {
    std::map<std::int64_t, std::array<double, 3>> rows;  // count, Σδ, Σ change
    for (const Point& point : points) {
      if (point.distance > 0) continue;
      std::array<double, 3>& row = rows[is_up_to_query ? point.row : 0];
      row[0] += 1;
      row[1] += static_cast<double>(point.distance);
      row[2] += point.change;
    }
    const auto centre = [&](const Point& point, std::size_t which) {
      const std::array<double, 3>& row = rows.at(is_up_to_query ? point.row : 0);
      return is_up_to_query ? row[which] / row[0] : 0.0;
    };
    double product = 0, square = 0;
    for (const Point& point : points) {
      if (point.distance > 0) continue;
      const double distance = static_cast<double>(point.distance) - centre(point, 1);
      product += distance * (point.change - centre(point, 2));
      square += distance * distance;
    }
    const double slope = square > 0 ? product / square : 0;
    fit.slopes.push_back(slope);
    for (const Point& point : points) {
      if (point.distance > 0) continue;
      const double distance = static_cast<double>(point.distance) - centre(point, 1);
      fit.left.energy += std::pow(point.change - centre(point, 2) - slope * distance, 2);
      ++fit.left.count;
    }
  }
  return fit;
}

// Later keys, if not masked: treated like earlier ones at the same distance (symmetric), or gaining (signed).
Left later_keys(const Scores& scores, const LinearFit& fit, double sign) {
  Left left;
  for (std::size_t head = 0; head < scores.points.size(); ++head) {
    for (const Point& point : scores.points[head]) {
      if (point.distance <= 0) continue;
      left.energy += std::pow(point.change - sign * fit.slopes[head] * static_cast<double>(point.distance), 2);
      ++left.count;
    }
  }
  return left;
}

bool is_noise(const Left& left, const Scores& scores) {
  return left.energy <= 4 * scores.noise * static_cast<double>(left.count);
}

// The slopes of a scheme, if the measured ones are proportional to them: returns the factor.
std::optional<double> factor_of(const Alibi& scheme, const std::vector<double>& slopes, double room) {
  const Bias form = prepare(scheme);
  const std::vector<double>& expected = std::get<Slopes>(form.source).slopes;
  const double factor = slopes.front() / expected.front();
  for (std::size_t head = 0; head < slopes.size(); ++head) {
    const double away = std::fabs(slopes[head] - factor * expected[head]);
    if (away > room + 5e-4 * std::fabs(factor * expected[head])) return std::nullopt;
  }
  return factor;
}

// Whether slopes of another max_bias, times a factor of their own, fit as well: so few or so coarse numbers cannot tell a
// factor from a base.
bool is_ambiguous(const Alibi& scheme, const std::vector<double>& slopes, double room) {
  return std::ranges::any_of(std::array{4.0, 8.0, 8 / std::numbers::ln2, 16.0}, [&](double max_bias) {
    return std::fabs(max_bias - scheme.max_bias) > 0.1 &&
           factor_of(Alibi{.heads = scheme.heads, .max_bias = max_bias}, slopes, room).has_value();
  });
}

std::optional<Diagnosis> as_alibi(const Scores& scores) {
  for (const bool is_up_to_query : {false, true}) {
    const LinearFit fit = linear_fit(scores, is_up_to_query);
    if (!is_noise(fit.left, scores) || fit.left.count < 4 * scores.heads) continue;
    // the uncertainty of one slope
    const double room =
        6 * std::sqrt(scores.noise * static_cast<double>(scores.heads) / static_cast<double>(fit.left.count));
    if (std::fabs(fit.slopes.front()) < 4 * room) return std::nullopt;
    const Left symmetric = later_keys(scores, fit, -1), gaining = later_keys(scores, fit, 1);
    const bool is_symmetric = is_noise(symmetric, scores), is_signed = is_noise(gaining, scores);
    Diagnosis result;
    Convention best{.is_up_to_query = is_up_to_query, .residual = std::sqrt(fit.left.energy / scores.energy)};
    std::vector<std::pair<Alibi, double>> found;
    const double steepest = std::fabs(fit.slopes.front());
    const double power = std::exp2(std::floor(std::log2(static_cast<double>(scores.heads))));
    const double measured = steepest < 1 ? std::round(-std::log2(steepest) * power * 4) / 4 : 0;
    for (const double max_bias : {8.0, measured}) {
      if (!(max_bias > 0 && max_bias < 1000)) continue;
      const Alibi scheme{.heads = scores.heads, .max_bias = max_bias};
      if (const auto factor = factor_of(scheme, fit.slopes, room)) found.emplace_back(scheme, *factor);
    }
    if (found.empty()) {
      result.verdict = Verdict::kNone;
      result.remarks.push_back(
          fmt::format("the bias falls linearly with distance, as ALiBi's does, but the slopes {:.4g} … {:.4g} of {} "
                      "heads are not its slopes",
                      fit.slopes.front(), fit.slopes.back(), scores.heads));
      return result;
    }
    Alibi scheme = found.front().first;
    best.magnitude = found.front().second;
    if (std::fabs(best.magnitude - 1) < 1e-3) best.magnitude = 1;
    if (best.magnitude > 0) scheme.scale = best.magnitude;
    best.scheme = scheme;
    // one head has one slope, so scale and max_bias cannot be separated; gains for later keys are not ALiBi
    const bool is_plain = best.magnitude == 1 || (scores.heads > 1 && !is_ambiguous(scheme, fit.slopes, room));
    const bool is_exact = symmetric.count == 0 || is_symmetric || is_up_to_query;
    result.verdict = is_plain && is_exact ? Verdict::kSure : Verdict::kLikely;
    if (best.magnitude < 0) result.remarks.emplace_back("the sign is flipped: scores grow with distance");
    if (best.magnitude != 1 && best.magnitude > 0) {
      result.remarks.push_back(fmt::format("every slope is multiplied by {:.6g}", best.magnitude));
    }
    if (is_up_to_query) {
      result.remarks.emplace_back(
          "plus a constant for each query, which the softmax removes: as BLOOM (slope times the key's position) and "
          "MPT have it");
    } else if (symmetric.count > 0 && !is_symmetric) {
      result.remarks.emplace_back(is_signed ? "keys after the query gain: right only where a mask removes them"
                                            : "keys after the query have another bias: right only where a mask "
                                              "removes them");
    }
    result.best = best;
    return result;
  }
  return std::nullopt;
}

// The mean change at each distance.
struct ByDistance {
  std::map<std::int64_t, std::vector<double>> sums;  // per head
  std::map<std::int64_t, double> counts;             // the same for each head
  Left left;
};
ByDistance by_distance(const Scores& scores) {
  ByDistance result;
  const std::size_t heads = scores.heads;
  for (std::size_t head = 0; head < heads; ++head) {
    for (const Point& point : scores.points[head]) {
      std::vector<double>& sums = result.sums[point.distance];
      sums.resize(heads);
      sums[head] += point.change;
      if (head == 0) ++result.counts[point.distance];
    }
  }
  for (std::size_t head = 0; head < heads; ++head) {
    for (const Point& point : scores.points[head]) {
      const double mean = result.sums[point.distance][head] / result.counts[point.distance];
      result.left.energy += std::pow(point.change - mean, 2);
      ++result.left.count;
    }
  }
  return result;
}

// The buckets of one configuration: what they leave beyond a value for every distance, and whether all of them occur.
struct Buckets {
  T5 scheme;
  std::int64_t shift = 0;                     // of queries
  std::map<std::int64_t, std::int64_t> rows;  // the row of each distance that occurs
  double unexplained = 0;
  bool is_too_fine = false;  // two neighbouring rows have the same numbers
};
Buckets buckets_for(const T5& scheme, std::int64_t shift, const ByDistance& means, const Scores& scores) {
  Buckets result;
  result.scheme = scheme;
  result.shift = shift;
  const DistanceMap map = buckets_of(scheme);
  std::map<std::int64_t, std::vector<double>> sums;
  std::map<std::int64_t, double> counts;
  const auto last = std::ssize(map.entries) - 1;
  for (const auto& [distance, list] : means.sums) {
    const std::int64_t row = map.entries[std::clamp<std::int64_t>(distance - shift - map.first, 0, last)];
    result.rows[distance] = row;
    sums[row].resize(list.size());
    for (std::size_t head = 0; head < list.size(); ++head) sums[row][head] += list[head];
    counts[row] += means.counts.at(distance);
  }
  // around the mean of each distance, and the means around those of their row
  result.unexplained = means.left.energy;
  for (const auto& [distance, list] : means.sums) {
    const std::int64_t row = result.rows[distance];
    const double count = means.counts.at(distance);
    for (std::size_t head = 0; head < list.size(); ++head) {
      result.unexplained += count * std::pow(list[head] / count - sums[row][head] / counts[row], 2);
    }
  }
  for (auto at = result.rows.begin(); std::next(at) != result.rows.end(); ++at) {
    const std::int64_t one = at->second, other = std::next(at)->second;
    if (one == other) continue;
    double apart = 0;
    for (std::size_t head = 0; head < scores.points.size(); ++head) {
      apart += std::pow(sums[one][head] / counts[one] - sums[other][head] / counts[other], 2);
    }
    const double room = scores.noise * (1 / counts[one] + 1 / counts[other]);
    if (apart <= 16 * room * static_cast<double>(scores.points.size())) result.is_too_fine = true;
  }
  return result;
}

std::int64_t rows_in(const Buckets& buckets) {
  std::map<std::int64_t, bool> seen;
  for (const auto& [distance, row] : buckets.rows) seen[row] = true;
  return std::ssize(seen);
}

// Whether the same distances share a row in both.
bool is_same_partition(const Buckets& one, const Buckets& other) {
  for (auto a = one.rows.begin(), b = other.rows.begin(); std::next(a) != one.rows.end(); ++a, ++b) {
    if ((a->second == std::next(a)->second) != (b->second == std::next(b)->second)) return false;
  }
  return rows_in(one) == rows_in(other);
}

// The configurations of models, and first the one that was meant.
std::vector<T5> likely_buckets(const Scores& scores, const ByDistance& means, const Scheme* expected) {
  std::vector<T5> list;
  const auto* const want = expected == nullptr ? nullptr : std::get_if<T5>(expected);
  if (want != nullptr && want->heads == scores.heads) list.push_back(*want);
  for (const std::int64_t buckets : {32, 64, 16, 128, 8, 320}) {
    for (const std::int64_t distance : {128, 256, 64, 512, 100, 800, 1024, 32, 20, 16}) {
      for (const bool is_bidirectional : {true, false}) {
        if (distance <= buckets / (is_bidirectional ? 4 : 2)) continue;
        // without later keys, the buckets for the other direction are never used
        if (is_bidirectional && means.sums.rbegin()->first <= 0) continue;
        const T5 one{scores.heads, buckets, distance, is_bidirectional};
        if (list.empty() || !(list.front() == one)) list.push_back(one);
      }
    }
  }
  return list;
}

std::optional<Diagnosis> as_table(const Scores& scores, const Scheme* expected) {
  const ByDistance means = by_distance(scores);
  if (!is_noise(means.left, scores) || means.sums.size() < 4) return std::nullopt;
  Left constant{scores.energy, scores.count};
  for (const auto& points : scores.points) {
    double sum = 0;
    for (const Point& point : points) sum += point.change;
    constant.energy -= sum * sum / std::max<double>(1, static_cast<double>(points.size()));
  }
  if (is_noise(constant, scores)) return std::nullopt;  // one number per head encodes no position
  // distances that occur once fit anything
  if (2 * std::ssize(means.sums) * scores.heads > means.left.count) return std::nullopt;
  Diagnosis result;
  std::vector<Buckets> fitting;
  for (const std::int64_t shift : {0, 1, -1}) {
    for (const T5& scheme : likely_buckets(scores, means, expected)) {
      Buckets one = buckets_for(scheme, shift, means, scores);
      if (is_noise({one.unexplained, means.left.count}, scores)) fitting.push_back(std::move(one));
    }
  }
  // fewest rows first: a fit that merges distances is significant
  std::stable_sort(fitting.begin(), fitting.end(),
                   [](const Buckets& one, const Buckets& other) { return rows_in(one) < rows_in(other); });
  const auto distances = std::ssize(means.sums);
  if (fitting.empty() || rows_in(fitting.front()) < 3 || distances - rows_in(fitting.front()) < 3) {
    result.verdict = Verdict::kNone;
    result.remarks.emplace_back(
        "the bias depends only on the distance of key and query, but is neither ALiBi nor merges distances as T5 "
        "does within this length: another table, or too few keys to see its buckets");
    return result;
  }
  const Buckets& best = fitting.front();
  result.best = Convention{
      .scheme = best.scheme, .first_position = best.shift, .residual = std::sqrt(best.unexplained / scores.energy)};
  const auto same = std::count_if(fitting.begin(), fitting.end(),
                                  [&](const Buckets& other) { return is_same_partition(best, other); });
  const bool has_rival = same > 1;
  if (has_rival) {
    result.remarks.emplace_back("other numbers of buckets or distances share the same values within this length");
  }
  for (const Buckets& other : fitting) {
    if (&other != &best && result.others.size() < 4) {
      result.others.push_back({.scheme = other.scheme, .residual = std::sqrt(other.unexplained / scores.energy)});
    }
  }
  if (best.is_too_fine) {
    result.remarks.emplace_back("neighbouring buckets have the same numbers: there may be fewer of them");
  }
  result.verdict = has_rival || best.is_too_fine ? Verdict::kLikely : Verdict::kSure;
  return result;
}

}  // namespace

std::optional<Diagnosis> explain_by_bias(ConstTensorView before, ConstTensorView after,
                                         const DiagnosisOptions& options) {
  const std::optional<Scores> scores = scores_of(before, after, options);
  if (!scores) return std::nullopt;
  if (std::optional<Diagnosis> alibi = as_alibi(*scores)) return alibi;
  return as_table(*scores, options.expected);
}

bool has_masks(ConstTensorView x) {
  bool found = false;
  for (std::int64_t i = 0; i < count_of(x.shape); ++i) {
    const double value = element(x, offset_of(index_of(i, x.shape), x.strides));
    if (is_mask(value, x.type)) {
      found = true;
    } else if (!std::isfinite(value)) {
      return false;
    }
  }
  return found;
}

}  // namespace posenc::diagnosis
