#pragma once

#include <algorithm>
#include <cstdint>

#include "attention/job.h"
#include "attention/plan/call.h"

namespace posenc::attend {

/// The queries and keys of one sequence, as ranges on the sequence axis.
struct Segment {
  std::int64_t first_query = 0, queries = 0, first_key = 0, keys = 0;
};

/// The only sequence in a row of the batch, if none are packed.
inline Segment segment_of(const AttentionCall& call, const AttentionJob& job, std::int64_t b) {
  const std::size_t at = b;
  const std::int64_t queries = call.query_lengths.empty() ? job.q.sequence : call.query_lengths[at];
  return {0, queries, 0, call.key_lengths.empty() ? job.k.sequence : call.key_lengths[at]};
}

/// Calls visit(segment) for the sequences in one row of the batch, whose lengths plan_sights checks.
template <class Visit>
void each_segment(const AttentionCall& call, const AttentionJob& job, std::int64_t b, const Visit& visit) {
  if (call.packed.empty()) {
    visit(segment_of(call, job, b));
    return;
  }
  Segment next;
  for (std::size_t i = 0; i < call.packed.size(); ++i) {
    next.queries = call.packed[i];
    next.keys = call.packed_keys[i];
    visit(next);
    next.first_query += next.queries;
    next.first_key += next.keys;
  }
}

/// The keys of a sequence that query i may attend to, without window, chunk and spans.
inline KeyRange causal_range_of(const AttentionCall& call, const Segment& segment, std::int64_t i) {
  KeyRange key_range;
  key_range.diagonal = segment.first_key + segment.keys - segment.queries + i;
  key_range.begin = segment.first_key;
  key_range.end = segment.first_key + segment.keys;
  if (call.causal) key_range.end = std::min(key_range.end, key_range.diagonal + 1);
  return key_range;
}

/// An empty range is at the first key of its sequence.
inline KeyRange or_empty(KeyRange key_range, const Segment& segment) {
  if (key_range.end <= key_range.begin) key_range.begin = key_range.end = segment.first_key;
  return key_range;
}

}  // namespace posenc::attend
