#include "posenc/schemes/deberta.h"

#include <algorithm>

#include "numerics/real.h"
#include "schemes/check.h"
#include "schemes/log_buckets.h"

namespace posenc {
namespace {

// S: the number of rows per direction.
std::int64_t span_of(const Deberta& s) { return s.buckets > 0 ? s.buckets : s.max_distance; }

void check(const Deberta& s) {
  schemes::check_between(Deberta::name, "max_distance", s.max_distance, 1, schemes::kDistanceLimit);
  if (s.buckets == 0) return;
  if (s.buckets < 4 || s.buckets > 8192) {
    raise(fmt::format("deberta: buckets must be 0 or between 4 and 8192 but is {}", s.buckets));
  }
  const std::int64_t middle = s.buckets / 2;
  if (s.max_distance <= middle + 1) {
    raise(fmt::format("deberta: max_distance must be above {}, half of the buckets and one, but is {}", middle + 1,
                      s.max_distance));
  }
}

// The bucket of each distance from 0 to the first whose bucket is S or more.
std::vector<std::int64_t> buckets_by_distance(const Deberta& s) {
  std::vector<std::int64_t> buckets;
  const std::int64_t span = span_of(s), middle = s.buckets > 0 ? s.buckets / 2 : span;
  for (std::int64_t d = 0; d <= middle; ++d) buckets.push_back(d);
  for (std::int64_t step = 1; middle + step < span; ++step) {
    // the largest distance with this bucket
    const std::int64_t last = schemes::log_step(middle, s.max_distance - 1, step, middle - 1).floor;
    const std::size_t size = last + 1;
    if (size > buckets.size()) buckets.resize(size, middle + step);
  }
  if (buckets.back() < span) buckets.push_back(span);
  return buckets;
}

}  // namespace

TrainedTable Deberta::trained_table() const {
  constexpr std::int64_t kMost = std::int64_t{1} << 40;  // for fields that prepare() rejects: what fits
  const std::int64_t side = std::clamp(buckets > 0 ? buckets : max_distance, -kMost, kMost);
  return {.axes = {{"rows", 2 * side}, {"features"}},
          .has_key_weights = position_to_content,
          .is_optional = !content_to_position};
}

DistanceMap rows_of(const Deberta& s) {
  check(s);
  const std::vector<std::int64_t> buckets = buckets_by_distance(s);
  const std::int64_t span = span_of(s), last = static_cast<std::int64_t>(buckets.size()) - 1;
  DistanceMap map;
  map.first = -last;
  for (std::int64_t distance = -last; distance <= last; ++distance) {
    const std::int64_t bucket = buckets[std::abs(distance)];
    // m − n is −distance
    map.entries.push_back(std::clamp<std::int64_t>((distance > 0 ? -bucket : bucket) + span, 0, 2 * span - 1));
  }
  return map;
}

Bias prepare(const Deberta& s, const PrepareOptions& options) {
  const DistanceMap rows = rows_of(s);
  DistanceVectors source;
  std::int64_t heads = 0;
  int terms = 1;
  const auto add_term = [&](bool wanted, const schemes::VectorTable& kind, const ConstTensorView& table,
                            VectorsByDistance& vectors) {
    if (!wanted) return;
    const std::int64_t found = schemes::check_vectors(Deberta::name, kind, table, 2 * span_of(s));
    if (terms > 1 && found != heads) {
      raise(
          fmt::format("deberta: the two tables must have the same number of heads but have {} and {}", heads, found));
    }
    heads = found;
    vectors = {.axes = {rows}, .table = table, .values = {}};
    ++terms;
  };
  add_term(s.content_to_position, {"table for queries"}, options.weights, source.for_queries);
  add_term(s.position_to_content, {"table for keys", "key_weights"}, options.key_weights, source.for_keys);
  if (terms == 1) raise("deberta: at least one of content_to_position and position_to_content must be true");
  source.softmax_factor = numerics::Real(1 / sqrt(numerics::Real(terms))).convert_to<double>();
  return {heads, std::move(source)};
}

}  // namespace posenc
