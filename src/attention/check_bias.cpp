#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "attention/bias_element.h"
#include "attention/plan.h"
#include "kernels/checks.h"
#include "posenc/error.h"

namespace posenc::attend {
namespace {

// The least and the largest δ on one axis.
struct Distances {
  std::int64_t least = 0, most = 0;
};
struct Extremes {
  std::int64_t least = std::numeric_limits<std::int64_t>::max(), most = std::numeric_limits<std::int64_t>::min();
};
Extremes extremes_of(const TokenPositions& positions, std::int64_t batch, std::int64_t tokens, int axis) {
  if (positions.ids == nullptr) return {positions.first, positions.first + tokens - 1};
  Extremes found;
  for (std::int64_t b = 0; b < (positions.batch_stride == 0 ? 1 : batch); ++b) {
    for (std::int64_t t = 0; t < tokens; ++t) {
      found.least = std::min(found.least, positions.at(b, t, axis));
      found.most = std::max(found.most, positions.at(b, t, axis));
    }
  }
  return found;
}
Distances distances_of(const AttentionJob& job, int axis) {
  const Extremes q = extremes_of(job.places.queries, job.q.batch, job.q.sequence, axis);
  const Extremes k = extremes_of(job.places.keys, job.q.batch, job.k.sequence, axis);
  return {k.least - q.most, k.most - q.least};
}

bool is_empty(const AttentionJob& job) { return job.q.batch * job.q.sequence * job.k.sequence == 0; }

// Returns the largest entry.
std::int64_t check_map(std::string_view verb, const DistanceMap& map, const AttentionJob& job, int axis) {
  if (map.entries.empty()) raise(fmt::format("{}: the bias has no distances on axis {}", verb, axis));
  std::int64_t largest = 0;
  for (const std::int64_t entry : map.entries) {
    if (entry < 0) raise(fmt::format("{}: the bias has an entry of {}", verb, entry));
    largest = std::max(largest, entry);
  }
  if (map.open || is_empty(job)) return largest;
  const Distances found = distances_of(job, axis);
  const std::int64_t last = map.first + static_cast<std::int64_t>(map.entries.size()) - 1;
  if (found.least < map.first || found.most > last) {
    raise(fmt::format("{}: the bias knows distances {} to {} on axis {}, but there are {} to {}", verb, map.first,
                      last, axis, found.least, found.most));
  }
  return largest;
}

void check_table(std::string_view verb, const DistanceTable& source, std::int64_t heads, const AttentionJob& job) {
  if (source.axes.empty()) raise(fmt::format("{}: the bias has no axes", verb));
  const ConstTensorView table = table_of(source, heads);
  kernels::check_tensor(verb, "the bias's table", table, 2, 2, "2 axes, rows and heads");
  if (table.shape[1] != heads) {
    raise(fmt::format("{}: the bias's table has {} heads but the bias {}", verb, table.shape[1], heads));
  }
  std::int64_t largest = 0;
  for (std::size_t axis = 0; axis < source.axes.size(); ++axis) {
    largest += check_map(verb, source.axes[axis], job, static_cast<int>(axis));
  }
  if (largest >= table.shape[0]) {
    raise(fmt::format("{}: the bias names row {} of a table of {}", verb, largest, table.shape[0]));
  }
}

void check_vectors(std::string_view verb, std::string_view what, const VectorsByDistance& vectors,
                   const AttentionJob& job) {
  if (vectors.table.data == nullptr) return;
  const ConstTensorView& table = vectors.table;
  kernels::check_tensor(verb, what, table, 2, 3, "2 axes, rows and features, or 3, heads first");
  if (table.shape.back(0) != job.q.features) {
    raise(fmt::format("{}: {} have {} features but q {}", verb, what, table.shape.back(0), job.q.features));
  }
  if (table.shape.rank == 3 && table.shape[0] != job.q.heads) {
    raise(fmt::format("{}: {} have {} heads but q {}", verb, what, table.shape[0], job.q.heads));
  }
  const std::int64_t largest = check_map(verb, vectors.rows, job, 0);
  if (largest >= table.shape.back(1)) {
    raise(fmt::format("{}: {}: row {} of {} is named", verb, what, largest, table.shape.back(1)));
  }
}

void check_ratios(std::string_view verb, const DistanceRatios& source, std::int64_t heads, const AttentionJob& job) {
  const std::size_t width = source.hidden_weights.size(), count = static_cast<std::size_t>(heads);
  if (source.hidden_biases.size() != width || source.output_weights.size() != width * count ||
      source.output_biases.size() != count) {
    raise(
        fmt::format("{}: the bias's map has {} units, but its other parts do not fit {} heads", verb, width, heads));
  }
  if (is_empty(job)) return;
  const Extremes q = extremes_of(job.places.queries, job.q.batch, job.q.sequence, 0);
  const Distances found = distances_of(job, 0);
  const std::int64_t largest = std::max({q.most, -found.least, found.most});
  if (largest >= static_cast<std::int64_t>(source.logs.size())) {
    raise(fmt::format("{}: position or distance {} is past the bias's {}", verb, largest, source.logs.size()));
  }
}

}  // namespace

void check_bias(std::string_view verb, const Bias& bias, const AttentionJob& job) {
  const auto* const vectors = std::get_if<DistanceVectors>(&bias.source);
  const std::int64_t heads = bias.heads == 0 && vectors != nullptr ? job.q.heads : bias.heads;
  if (heads != job.q.heads && !is_empty(job)) {
    raise(fmt::format("{}: the bias has {} heads but q {}", verb, bias.heads, job.q.heads));
  }
  if (const auto* slopes = std::get_if<Slopes>(&bias.source)) {
    if (static_cast<std::int64_t>(slopes->slopes.size()) != heads) {
      raise(fmt::format("{}: the bias has {} slopes for {} heads", verb, slopes->slopes.size(), heads));
    }
  } else if (const auto* table = std::get_if<DistanceTable>(&bias.source)) {
    check_table(verb, *table, heads, job);
  } else if (const auto* ratios = std::get_if<DistanceRatios>(&bias.source)) {
    check_ratios(verb, *ratios, heads, job);
  } else {
    check_vectors(verb, "the bias's vectors for queries", vectors->for_queries, job);
    check_vectors(verb, "the bias's vectors for keys", vectors->for_keys, job);
  }
}

}  // namespace posenc::attend
