// The keys that each query attends to. They are a range of tokens, unless a window or chunk is by position and the tokens
// are not in the order of their positions (PositionLimits).

#include <fmt/format.h>

#include <algorithm>

#include "attention/plan/by_position.h"
#include "attention/plan/segments.h"
#include "posenc/error.h"
#include "posenc/frequency.h"

namespace posenc::attend {
namespace {

void check_lengths(std::string_view verb, std::string_view what, std::span<const std::int64_t> lengths,
                   std::int64_t most) {
  for (const std::int64_t length : lengths) {
    if (length < 0 || length > most) {
      raise(fmt::format("{}: {} must be between 0 and {} but one is {}", verb, what, most, length));
    }
  }
}

void check_sum(std::string_view verb, std::string_view what, std::span<const std::int64_t> lengths,
               std::int64_t tokens) {
  check_lengths(verb, what, lengths, tokens);
  std::int64_t sum = 0;  // of at most 2^63 / tokens lengths: each has its own element in memory
  for (const std::int64_t length : lengths) sum += length;
  if (sum != tokens) raise(fmt::format("{}: {} sum to {} but there are {} tokens", verb, what, sum, tokens));
}

void check_packed(const AttentionCall& call, const AttentionJob& job) {
  const auto queries = call.packed, keys = call.packed_keys;
  if (queries.empty()) return;
  if (queries.size() != keys.size()) {
    raise(fmt::format("{}: packed has {} sequences but packed_keys has {}", call.verb, queries.size(), keys.size()));
  }
  check_sum(call.verb, "the packed lengths of queries", queries, job.q.sequence);
  check_sum(call.verb, "the packed lengths of keys", keys, job.k.sequence);
}

void check_ranges(const AttentionCall& call, const AttentionJob& job) {
  if (call.window < 0) raise(fmt::format("{}: window must be 0 or more but is {}", call.verb, call.window));
  if (call.chunk < 0) raise(fmt::format("{}: chunk must be 0 or more but is {}", call.verb, call.chunk));
  for (const auto& positions : {call.query_positions, call.key_positions}) {
    if (call.chunk == 0 || !has_ids(positions) || positions->axes == 1) continue;
    raise(fmt::format("{}: chunk needs positions of one axis, not ids of {}", call.verb, positions->axes));
  }
  if (!call.packed.empty() && call.has_lengths()) {
    raise(fmt::format("{}: packed sequences cannot be combined with query_lengths or key_lengths", call.verb));
  }
  if (call.packed.empty() && !call.packed_keys.empty()) {
    raise(fmt::format("{}: packed_keys needs packed", call.verb));
  }
  const auto check_size = [&](std::string_view what, std::size_t size, std::int64_t wanted) {
    if (size == 0 || static_cast<std::int64_t>(size) == wanted) return;
    raise(fmt::format("{}: {} has {} numbers but must have {}", call.verb, what, size, wanted));
  };
  check_size("query_lengths", call.query_lengths.size(), job.q.batch);
  check_size("key_lengths", call.key_lengths.size(), job.q.batch);
  check_size("key_mask", call.key_mask.size(), job.q.batch * job.k.sequence);
  check_size("spans", call.spans.size(), job.q.batch * job.k.sequence);
  check_lengths(call.verb, "query_lengths", call.query_lengths, job.q.sequence);
  for (const std::int64_t length : call.key_lengths) {
    if (job.k.pages == nullptr || length <= job.k.sequence) continue;
    raise(fmt::format("{}: one of key_lengths is {} but block_table has {} pages of {} tokens for each sequence",
                      call.verb, length, job.k.page_row, job.k.page_tokens));
  }
  check_lengths(call.verb, "key_lengths", call.key_lengths, job.k.sequence);
}

// Of consecutive tokens.
KeyRange key_range_of(const AttentionCall& call, const Segment& segment, std::int64_t i) {
  KeyRange key_range = causal_range_of(call, segment, i);
  if (call.window > 0) {
    // a window larger than the number of keys has no effect; clamped so that sums stay small
    const std::int64_t window = std::min(call.window, segment.keys + segment.queries);
    key_range.begin = std::max(key_range.begin, key_range.diagonal - window + 1);
    key_range.end = std::min(key_range.end, key_range.diagonal + window);
  }
  if (call.chunk > 0) {
    const std::int64_t ahead = segment.keys - segment.queries, chunk = std::min(call.chunk, kPositionLimit);
    const std::int64_t position = call.query_positions ? call.query_positions->first + segment.first_query + i
                                                       : std::max(ahead, std::int64_t{0}) + i;
    // of key 0 of the tensor
    const std::int64_t first =
        call.key_positions ? call.key_positions->first : std::max(-ahead, std::int64_t{0}) - segment.first_key;
    const std::int64_t start = position / chunk * chunk - first;
    key_range.begin = std::max(key_range.begin, start);
    key_range.end = std::min(key_range.end, start + chunk);
  }
  return or_empty(key_range, segment);
}

// Adds the span of each query's own token to the keys that it attends to.
void add_spans(const AttentionCall& call, std::int64_t b, bool is_ragged, AttentionJob& job) {
  const std::int64_t* const spans = call.spans.data() + b * job.k.sequence;
  each_segment(call, job, b, [&](const Segment& segment) {
    const std::int64_t last = segment.first_key + segment.keys;
    std::int64_t begin = 0, end = 0;  // of the span of the last query that had one
    for (std::int64_t i = 0; i < segment.queries; ++i) {
      KeyRange& key_range = job.key_ranges[b * job.key_range_stride + segment.first_query + i];
      const std::int64_t own = key_range.diagonal;
      if (own < segment.first_key || own >= last || spans[own] == 0) continue;
      if (own < begin || own >= end) {
        for (begin = own; begin > segment.first_key && spans[begin - 1] == spans[own];) --begin;
        for (end = own + 1; end < last && spans[end] == spans[own];) ++end;
      }
      const bool is_empty = key_range.begin >= key_range.end;
      if (is_ragged || (!is_empty && (end < key_range.begin || begin > key_range.end))) {
        raise(fmt::format("{}: spans need positions in the order of the tokens if there is a window or chunk",
                          call.verb));
      }
      key_range.begin = is_empty ? begin : std::min(key_range.begin, begin);
      key_range.end = is_empty ? end : std::max(key_range.end, end);
    }
  });
}

// Kernels go by token, and the host does not read ids in GPU memory.
void refuse_positions_on_device(const AttentionCall& call, const AttentionJob& job) {
  const auto is_on_device = [](const std::optional<Positions>& x) { return x && x->device != Device::kHost; };
  bool is_same = call.chunk == 0 && !is_on_device(call.query_positions) && !is_on_device(call.key_positions);
  if (is_same) {
    const SightPositions positions(call, job);
    Plan plan;
    plan.job.q = job.q;
    plan.job.k = job.k;
    plan.limit_queries.resize(job.q.batch * job.q.sequence);
    plan.limit_keys.resize(job.q.batch * job.k.sequence);
    plan.job.key_ranges.resize(plan.limit_queries.size());
    bool is_ragged = false;
    for (std::int64_t b = 0; b < job.q.batch; ++b) {
      plan_by_position(call, positions, b, plan, is_ragged);
      each_segment(call, job, b, [&](const Segment& segment) {
        for (std::int64_t i = 0; i < segment.queries; ++i) {
          const KeyRange by_token = key_range_of(call, segment, i);
          const KeyRange& by_position = plan.job.key_ranges[b * job.q.sequence + segment.first_query + i];
          if (by_token.begin != by_position.begin || by_token.end != by_position.end) is_ragged = true;
        }
      });
    }
    is_same = !is_ragged;
  }
  if (is_same) return;
  raise(fmt::format(
      "{}: on cuda there is no kernel for a window or chunk by position; omit query_positions if tokens are "
      "consecutive",
      call.verb));
}

}  // namespace

void plan_sights(const AttentionCall& call, bool on_device, Plan& plan) {
  AttentionJob& job = plan.job;
  check_ranges(call, job);
  check_packed(call, job);
  job.key_mask = call.key_mask.empty() ? nullptr : call.key_mask.data();
  const bool by_position = is_by_position(call, job);
  if (on_device && by_position) refuse_positions_on_device(call, job);
  std::optional<SightPositions> positions;
  if (by_position && !on_device) positions.emplace(call, job);
  const bool is_shared = !call.has_lengths() && call.spans.empty() && !(positions && positions->differ());
  // If all sequences are alike, GPU kernels compute the visible keys themselves.
  if (on_device && is_shared && call.packed.empty() && call.chunk == 0) return;
  const std::int64_t rows = is_shared ? 1 : job.q.batch;
  job.key_range_stride = is_shared ? 0 : job.q.sequence;
  job.key_ranges.resize(rows * job.q.sequence);
  bool is_ragged = false;
  if (positions) {
    plan.limit_queries.resize(job.key_ranges.size());
    plan.limit_keys.resize(rows * job.k.sequence);
    for (std::int64_t b = 0; b < rows; ++b) plan_by_position(call, *positions, b, plan, is_ragged);
    if (is_ragged) {
      job.limits = {plan.limit_queries.data(), plan.limit_keys.data(), job.key_range_stride,
                    is_shared ? 0 : job.k.sequence};
    }
  }
  for (std::int64_t b = 0; b < rows; ++b) {
    each_segment(call, job, b, [&](const Segment& segment) {
      for (std::int64_t i = 0; i < segment.queries && !positions; ++i) {
        job.key_ranges[b * job.q.sequence + segment.first_query + i] = key_range_of(call, segment, i);
      }
    });
    if (!call.spans.empty()) add_spans(call, b, is_ragged, job);
  }
}

}  // namespace posenc::attend
