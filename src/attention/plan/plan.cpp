// What follows from the options for every query: the keys it attends to, and the positions of tokens.

#include "attention/plan/plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "kernels/checks.h"
#include "posenc/error.h"
#include "posenc/frequency.h"
#include "terms/terms.h"

namespace posenc::attend {
namespace {

// The queries and keys of one sequence, as ranges on the sequence axis.
struct Segment {
  std::int64_t first_query = 0, queries = 0, first_key = 0, keys = 0;
};

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

template <class Visit>
void each_packed_segment(const AttentionCall& call, const AttentionJob& job, const Visit& visit) {
  const auto queries = call.packed, keys = call.packed_keys;
  if (queries.size() != keys.size()) {
    raise(fmt::format("{}: packed has {} sequences but packed_keys has {}", call.verb, queries.size(), keys.size()));
  }
  check_sum(call.verb, "the packed lengths of queries", queries, job.q.sequence);
  check_sum(call.verb, "the packed lengths of keys", keys, job.k.sequence);
  Segment next;
  for (std::size_t i = 0; i < queries.size(); ++i) {
    next.queries = queries[i];
    next.keys = keys[i];
    visit(next);
    next.first_query += next.queries;
    next.first_key += next.keys;
  }
}

// The only sequence in a row of the batch, if none are packed.
Segment segment_of(const AttentionCall& call, const AttentionJob& job, std::int64_t b) {
  const auto at = static_cast<std::size_t>(b);
  const std::int64_t queries = call.query_lengths.empty() ? job.q.sequence : call.query_lengths[at];
  return {0, queries, 0, call.key_lengths.empty() ? job.k.sequence : call.key_lengths[at]};
}

// Calls visit(segment) for the sequences in one row of the batch.
template <class Visit>
void each_segment(const AttentionCall& call, const AttentionJob& job, std::int64_t b, const Visit& visit) {
  if (!call.packed.empty()) {
    each_packed_segment(call, job, visit);
  } else {
    visit(segment_of(call, job, b));
  }
}

void check_ranges(const AttentionCall& call, const AttentionJob& job) {
  if (call.window < 0) raise(fmt::format("{}: window must be 0 or more but is {}", call.verb, call.window));
  if (call.chunk < 0) raise(fmt::format("{}: chunk must be 0 or more but is {}", call.verb, call.chunk));
  for (const auto& positions : {call.query_positions, call.key_positions}) {
    if (call.chunk == 0 || !positions || (positions->ids.empty() && positions->ids_i32.empty())) continue;
    raise(fmt::format("{}: chunk needs consecutive positions, not ids", call.verb));
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
  check_lengths(call.verb, "query_lengths", call.query_lengths, job.q.sequence);
  for (const std::int64_t length : call.key_lengths) {
    if (job.k.pages == nullptr || length <= job.k.sequence) continue;
    raise(fmt::format("{}: one of key_lengths is {} but block_table has {} pages of {} tokens for each sequence",
                      call.verb, length, job.k.page_row, job.k.page_tokens));
  }
  check_lengths(call.verb, "key_lengths", call.key_lengths, job.k.sequence);
}

KeyRange key_range_of(const AttentionCall& call, const Segment& segment, std::int64_t i) {
  KeyRange key_range;
  key_range.diagonal = segment.first_key + segment.keys - segment.queries + i;
  key_range.begin = segment.first_key;
  key_range.end = segment.first_key + segment.keys;
  if (call.causal) key_range.end = std::min(key_range.end, key_range.diagonal + 1);
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
  if (key_range.end <= key_range.begin) key_range.begin = key_range.end = segment.first_key;
  return key_range;
}

}  // namespace

RotationForms forms_of(const Rotation& rotation) {
  RotationForms forms{rotation, for_keys(rotation), rotation, {}};
  forms.key_pairs = forms.for_keys;
  for (Rotation* pairs : {&forms.query_pairs, &forms.key_pairs}) {
    pairs->layout = PairLayout::kHalves;
    pairs->blocks = 1;
    pairs->first_dim = 0;
  }
  return forms;
}

void plan_sights(const AttentionCall& call, bool on_device, AttentionJob& job) {
  check_ranges(call, job);
  job.key_mask = call.key_mask.empty() ? nullptr : call.key_mask.data();
  const bool is_shared = !call.has_lengths();
  // If all sequences are alike, GPU kernels compute the visible keys themselves.
  if (on_device && is_shared && call.packed.empty() && call.chunk == 0) return;
  const std::int64_t rows = is_shared ? 1 : job.q.batch;
  job.key_range_stride = is_shared ? 0 : job.q.sequence;
  job.key_ranges.resize(static_cast<std::size_t>(rows * job.q.sequence));
  for (std::int64_t b = 0; b < rows; ++b) {
    each_segment(call, job, b, [&](const Segment& segment) {
      for (std::int64_t i = 0; i < segment.queries; ++i) {
        job.key_ranges[static_cast<std::size_t>(b * job.q.sequence + segment.first_query + i)] =
            key_range_of(call, segment, i);
      }
    });
  }
}

void plan_pages(const AttentionCall& call, Plan& plan) {
  AttentionJob& job = plan.job;
  if (call.block_table.empty()) return;
  const std::int64_t size = job.k.page_tokens, row = job.k.page_row;
  const bool may_skip = call.window > 0 || call.chunk > 0;
  if (may_skip) plan.pages.assign(call.block_table.size(), 0);
  for (std::int64_t b = 0; b < job.k.batch; ++b) {
    const KeyRange seen = job.visible_keys(b);
    for (std::int64_t i = seen.begin / size; i * size < seen.end; ++i) {
      const std::int32_t page = job.k.pages[b * row + i];
      if (page < 0 || page >= job.k.page_count || page >= job.v.page_count) {
        raise(fmt::format("{}: block_table names page {} but there are {}", call.verb, page,
                          std::min(job.k.page_count, job.v.page_count)));
      }
      if (may_skip) plan.pages[static_cast<std::size_t>(b * row + i)] = page;
    }
  }
  if (may_skip) job.k.pages = job.v.pages = plan.pages.data();
}

void plan_places(const AttentionCall& call, int axes, bool bounds_keys, Plan& plan) {
  AttentionJob& job = plan.job;
  const std::int64_t queries = job.q.sequence, keys = job.k.sequence, batch = job.q.batch;
  TokenPlaces& places = job.places;
  // The default: the queries are at the end of the keys, or the keys at the end of the queries if there are more
  // queries.
  const bool is_plain = call.packed.empty() && !call.has_lengths();
  places.queries.first = std::max(keys - queries, std::int64_t{0});
  places.keys.first = std::max(queries - keys, std::int64_t{0});
  places.by_index = axes == 1;
  if (!is_plain) {
    const std::int64_t rows = job.key_range_stride == 0 ? 1 : batch;
    bool keys_from_0 = call.packed.empty() && !bounds_keys;
    for (std::int64_t b = 0; keys_from_0 && b < rows; ++b) {
      const Segment segment = segment_of(call, job, b);
      keys_from_0 = segment.keys == 0 || segment.keys >= segment.queries;
    }
    plan.query_ids.assign(static_cast<std::size_t>(rows * queries), 0);
    if (!keys_from_0) plan.key_ids.assign(static_cast<std::size_t>(rows * keys), 0);
    for (std::int64_t b = 0; b < rows; ++b) {
      each_segment(call, job, b, [&](const Segment& segment) {
        const std::int64_t ahead = segment.keys - segment.queries;
        for (std::int64_t i = 0; i < segment.queries; ++i) {
          plan.query_ids[static_cast<std::size_t>(b * queries + segment.first_query + i)] =
              i + std::max(ahead, std::int64_t{0});
        }
        for (std::int64_t j = 0; j < segment.keys && !keys_from_0; ++j) {
          plan.key_ids[static_cast<std::size_t>(b * keys + segment.first_key + j)] =
              j + std::max(-ahead, std::int64_t{0});
        }
      });
    }
    places.queries = {0, plan.query_ids.data(), rows > 1 ? queries : 0, rows * queries, 1, rows * queries};
    places.keys = {0, keys_from_0 ? nullptr : plan.key_ids.data(), rows > 1 ? keys : 0, rows * keys, 1, rows * keys};
  }
  kernels::RowLimit limit;  // a temperature is a logarithm of the position
  limit.is_signed =
      call.temperature == nullptr && ((call.bias != nullptr && terms::has_signed_positions(*call.bias)) ||
                                      (call.rotation != nullptr && !has_table(*call.rotation)));
  const auto take = [&](const std::optional<Positions>& given, TokenPositions& tokens, std::int64_t count,
                        std::string_view what, bool is_needed) {
    if (given.has_value()) {
      const bool is_text = axes > 1 && given->ids.empty() && given->ids_i32.empty() && call.rotation != nullptr;
      tokens = kernels::positions_of(call.verb, *given, is_text ? given->axes : axes, {batch, count}, limit);
      tokens.axes = axes;
    } else if (axes > 1 && batch * count > 0 && is_needed) {
      raise(fmt::format("{}: the form has {} position axes, so {} must be given", call.verb, axes, what));
    }
  };
  take(call.query_positions, places.queries, queries, "query_positions", true);
  take(call.key_positions, places.keys, keys, "key_positions", !call.keys_are_rotated);
  if (!call.query_positions.has_value() && !call.key_positions.has_value()) return;
  // Distances are those of tokens plus one constant if no sequence has its own length or positions.
  if (places.queries.has_ids() || places.keys.has_ids() || !call.packed.empty() || !call.device_key_lengths.empty() ||
      (call.has_lengths() && batch != 1)) {
    places.by_index = false;
    return;
  }
  const Segment only = call.has_lengths() ? segment_of(call, job, 0) : Segment{0, queries, 0, keys};
  places.shift = (places.queries.first - places.keys.first) - (only.keys - only.queries);
}

}  // namespace posenc::attend
