// Windows and chunks by position. The keys that a query attends to are still a range of tokens where their positions do not
// decrease; a draft tree's do.

#include "attention/plan/by_position.h"

#include <algorithm>

#include "kernels/checks.h"
#include "posenc/frequency.h"

namespace posenc::attend {
namespace {

TokenPositions given_positions(const AttentionCall& call, const std::optional<Positions>& positions,
                               std::int64_t batch, std::int64_t tokens) {
  if (!positions) return {};
  return kernels::positions_of(call.verb, *positions, positions->axes, {batch, tokens}, {.is_signed = true});
}

PositionRange position_range_of(const AttentionCall& call, std::int64_t position) {
  PositionRange range;
  if (call.window > 0) {
    const std::int64_t window = std::min(call.window, 4 * kPositionLimit);
    range = {position - window + 1, position + window - 1};
  }
  if (call.chunk > 0) {
    const std::int64_t chunk = std::min(call.chunk, kPositionLimit);
    const std::int64_t start = (position - (position % chunk + chunk) % chunk);  // rounded down, below 0 as well
    range = {std::max(range.least, start), std::min(range.most, start + chunk - 1)};
  }
  return range;
}

// From the first to the last key of a range whose position is within limits. The positions of keys up to `sorted` do not
// decrease. `is_ragged` is set if there are others between them.
KeyRange narrowed(KeyRange key_range, const PositionRange& limits, const std::int64_t* positions, std::int64_t sorted,
                  bool& is_ragged) {
  const std::int64_t middle = std::clamp(sorted, key_range.begin, std::max(key_range.begin, key_range.end));
  const std::int64_t *const from = positions + key_range.begin, *const to = positions + middle;
  std::int64_t begin = std::lower_bound(from, to, limits.least) - positions;
  std::int64_t end = std::upper_bound(from, to, limits.most) - positions;
  std::int64_t count = std::max<std::int64_t>(end - begin, 0);
  if (count == 0) begin = end = key_range.end;
  for (std::int64_t j = middle; j < key_range.end; ++j) {
    if (!limits.has(positions[j])) continue;
    begin = std::min(begin, j);
    end = j + 1;
    ++count;
  }
  if (count > 0 && count < end - begin) is_ragged = true;
  key_range.begin = begin;
  key_range.end = count == 0 ? begin : end;
  return key_range;
}

}  // namespace

bool is_by_position(const AttentionCall& call, const AttentionJob& job) {
  if (call.window == 0 && call.chunk == 0) return false;
  for (const auto& positions : {call.query_positions, call.key_positions}) {
    if (has_ids(positions) && positions->axes > 1) return false;
  }
  // a single query is near the tokens before it, whatever its position
  if (call.chunk == 0 && !call.key_positions && job.q.sequence == 1 && call.packed.empty()) return false;
  const bool has_both = call.window > 0 && call.query_positions && call.key_positions;
  return has_ids(call.query_positions) || has_ids(call.key_positions) || has_both;
}

SightPositions::SightPositions(const AttentionCall& call, const AttentionJob& job)
    : call_(call),
      queries_(given_positions(call, call.query_positions, job.q.batch, job.q.sequence)),
      keys_(given_positions(call, call.key_positions, job.q.batch, job.k.sequence)) {}

std::int64_t SightPositions::query(std::int64_t b, const Segment& segment, std::int64_t i) const {
  if (call_.query_positions) return queries_.at(b, segment.first_query + i);
  if (segment.keys == 0) return 0;
  const std::int64_t diagonal = segment.keys - segment.queries + i;
  const std::int64_t near = std::clamp<std::int64_t>(diagonal, 0, segment.keys - 1);
  return keys_.at(b, segment.first_key + near) + diagonal - near;
}

void SightPositions::keys(std::int64_t b, const Segment& segment, std::int64_t* to) const {
  const std::int64_t ahead = segment.keys - segment.queries;
  std::int64_t least = segment.queries > 0 ? query(b, segment, 0) : 0;
  for (std::int64_t i = 1; i < segment.queries && !call_.key_positions; ++i) {
    least = std::min(least, query(b, segment, i));
  }
  for (std::int64_t j = 0; j < segment.keys; ++j) {
    if (call_.key_positions) {
      to[j] = keys_.at(b, segment.first_key + j);
    } else {
      to[j] = j < ahead ? least - (ahead - j) : query(b, segment, j - ahead);
    }
  }
}

void plan_by_position(const AttentionCall& call, const SightPositions& positions, std::int64_t b, Plan& plan,
                      bool& is_ragged) {
  AttentionJob& job = plan.job;
  PositionRange* const limits = plan.limit_queries.data() + b * job.q.sequence;
  std::int64_t* const keys = plan.limit_keys.data() + b * job.k.sequence;
  each_segment(call, job, b, [&](const Segment& segment) {
    positions.keys(b, segment, keys + segment.first_key);
    const std::int64_t* const first = keys + segment.first_key;
    const std::int64_t sorted = std::is_sorted_until(first, first + segment.keys) - keys;
    for (std::int64_t i = 0; i < segment.queries; ++i) {
      const std::int64_t query = segment.first_query + i;
      limits[query] = position_range_of(call, positions.query(b, segment, i));
      const KeyRange causal = or_empty(causal_range_of(call, segment, i), segment);
      job.key_ranges[b * job.q.sequence + query] =
          or_empty(narrowed(causal, limits[query], keys, sorted, is_ragged), segment);
    }
  });
}

}  // namespace posenc::attend
