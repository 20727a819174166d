#include "posenc/schemes/t5.h"

#include "schemes/check.h"
#include "schemes/log_buckets.h"

namespace posenc {
namespace {

std::int64_t buckets_of_one_direction(const T5& s) { return s.bidirectional ? s.buckets / 2 : s.buckets; }

void check(const T5& s) {
  schemes::check_between(T5::name, "heads", s.heads, 1, schemes::kHeadLimit);
  schemes::check_between(T5::name, "buckets", s.buckets, s.bidirectional ? 4 : 2, 8192);
  if (s.bidirectional && s.buckets % 2 != 0) {
    raise(fmt::format("t5: buckets must be even if it is bidirectional but is {}", s.buckets));
  }
  const std::int64_t exact = buckets_of_one_direction(s) / 2;
  if (s.max_distance <= exact) {
    raise(fmt::format("t5: max_distance must be above {}, the distances with a bucket of their own, but is {}", exact,
                      s.max_distance));
  }
  schemes::check_between(T5::name, "max_distance", s.max_distance, 1, schemes::kDistanceLimit);
}

}  // namespace

TrainedTable T5::trained_table() const { return {{{"buckets", buckets}, {"heads", heads}}}; }

DistanceMap buckets_of(const T5& s) {
  check(s);
  const std::int64_t count = buckets_of_one_direction(s), exact = count / 2;
  std::vector<std::int64_t> by_size;  // the bucket of |δ| = 0, 1 … up to the first in the last bucket
  for (std::int64_t bucket = 0; bucket < count - 1; ++bucket) {
    // where the next bucket begins
    std::int64_t end = bucket + 1;
    if (bucket >= exact) {
      const schemes::LogStep step = schemes::log_step(exact, s.max_distance, bucket + 1 - exact, count - exact);
      end = step.exact ? step.floor : step.floor + 1;
    }
    // with many buckets and few distances, some buckets are empty
    if (end > static_cast<std::int64_t>(by_size.size())) by_size.resize(end, bucket);
  }
  by_size.push_back(count - 1);

  DistanceMap map;
  const auto last = static_cast<std::int64_t>(by_size.size()) - 1;
  map.first = -last;
  const std::int64_t ahead = s.bidirectional ? last : 0;
  for (std::int64_t distance = -last; distance <= ahead; ++distance) {
    const std::int64_t bucket = by_size[std::abs(distance)];
    map.entries.push_back(distance > 0 ? count + bucket : bucket);
  }
  return map;
}

Bias prepare(const T5& s, const PrepareOptions& options) {
  DistanceTable source;
  source.axes.push_back(buckets_of(s));
  source.weights = schemes::table_of_shape(T5::name, options.weights, shape_of(s.trained_table()));
  return {s.heads, std::move(source)};
}

}  // namespace posenc
