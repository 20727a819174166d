// What follows from the options for every query: the keys it attends to, and the positions of tokens.

#include "attention/plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "kernels/bias_checks.h"
#include "kernels/checks.h"
#include "posenc/error.h"
#include "posenc/frequency.h"

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

template <class Visit> void each_packed_segment(std::string_view verb, const AttentionOptions& options,
                                                const AttentionJob& job, const Visit& visit) {
  const auto queries = options.packed, keys = options.packed_keys.empty() ? options.packed : options.packed_keys;
  if (queries.size() != keys.size()) {
    raise(fmt::format("{}: packed has {} sequences but packed_keys has {}", verb, queries.size(), keys.size()));
  }
  check_sum(verb, "the packed lengths of queries", queries, job.q.sequence);
  check_sum(verb, "the packed lengths of keys", keys, job.k.sequence);
  Segment next;
  for (std::size_t i = 0; i < queries.size(); ++i) {
    next.queries = queries[i];
    next.keys = keys[i];
    visit(next);
    next.first_query += next.queries;
    next.first_key += next.keys;
  }
}

bool has_lengths(const AttentionOptions& options) {
  return !options.query_lengths.empty() || !options.key_lengths.empty();
}

// The only sequence in a row of the batch, if none are packed.
Segment segment_of(const AttentionOptions& options, const AttentionJob& job, std::int64_t b) {
  const auto at = static_cast<std::size_t>(b);
  const std::int64_t queries = options.query_lengths.empty() ? job.q.sequence : options.query_lengths[at];
  return {0, queries, 0, options.key_lengths.empty() ? job.k.sequence : options.key_lengths[at]};
}

// Calls visit(segment) for the sequences in one row of the batch.
template <class Visit> void each_segment(std::string_view verb, const AttentionOptions& options,
                                         const AttentionJob& job, std::int64_t b, const Visit& visit) {
  if (!options.packed.empty()) {
    each_packed_segment(verb, options, job, visit);
  } else {
    visit(segment_of(options, job, b));
  }
}

void check_options(std::string_view verb, const AttentionOptions& options, const AttentionJob& job) {
  if (options.window < 0) raise(fmt::format("{}: window must be 0 or more but is {}", verb, options.window));
  if (options.chunk < 0) raise(fmt::format("{}: chunk must be 0 or more but is {}", verb, options.chunk));
  for (const auto& positions : {options.query_positions, options.key_positions}) {
    if (options.chunk == 0 || !positions || (positions->ids.empty() && positions->ids_i32.empty())) continue;
    raise(fmt::format("{}: chunk needs consecutive positions, not ids", verb));
  }
  if (!options.packed.empty() && has_lengths(options)) {
    raise(fmt::format("{}: packed sequences cannot be combined with query_lengths or key_lengths", verb));
  }
  if (options.packed.empty() && !options.packed_keys.empty()) {
    raise(fmt::format("{}: packed_keys needs packed", verb));
  }
  const auto check_size = [&](std::string_view what, std::size_t size, std::int64_t wanted) {
    if (size == 0 || static_cast<std::int64_t>(size) == wanted) return;
    raise(fmt::format("{}: {} has {} numbers but must have {}", verb, what, size, wanted));
  };
  check_size("query_lengths", options.query_lengths.size(), job.q.batch);
  check_size("key_lengths", options.key_lengths.size(), job.q.batch);
  check_size("key_mask", options.key_mask.size(), job.q.batch * job.k.sequence);
  check_lengths(verb, "query_lengths", options.query_lengths, job.q.sequence);
  for (const std::int64_t length : options.key_lengths) {
    if (job.k.pages == nullptr || length <= job.k.sequence) continue;
    raise(fmt::format("{}: one of key_lengths is {} but block_table has {} pages of {} tokens for each sequence",
                      verb, length, job.k.page_row, job.k.page_tokens));
  }
  check_lengths(verb, "key_lengths", options.key_lengths, job.k.sequence);
}

Sight sight_of(const AttentionOptions& options, const Segment& segment, std::int64_t i) {
  Sight sight;
  sight.beside = segment.first_key + segment.keys - segment.queries + i;
  sight.begin = segment.first_key;
  sight.end = segment.first_key + segment.keys;
  if (options.causal) sight.end = std::min(sight.end, sight.beside + 1);
  if (options.window > 0) {
    // a window larger than the number of keys has no effect; clamped so that sums stay small
    const std::int64_t window = std::min(options.window, segment.keys + segment.queries);
    sight.begin = std::max(sight.begin, sight.beside - window + 1);
    sight.end = std::min(sight.end, sight.beside + window);
  }
  if (options.chunk > 0) {
    const std::int64_t ahead = segment.keys - segment.queries, chunk = std::min(options.chunk, kPositionLimit);
    const std::int64_t position = options.query_positions ? options.query_positions->first + segment.first_query + i
                                                          : std::max(ahead, std::int64_t{0}) + i;
    // of key 0 of the tensor
    const std::int64_t first =
        options.key_positions ? options.key_positions->first : std::max(-ahead, std::int64_t{0}) - segment.first_key;
    const std::int64_t start = position / chunk * chunk - first;
    sight.begin = std::max(sight.begin, start);
    sight.end = std::min(sight.end, start + chunk);
  }
  if (sight.end <= sight.begin) sight.begin = sight.end = segment.first_key;
  return sight;
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

void plan_sights(std::string_view verb, const AttentionOptions& options, bool on_device, AttentionJob& job) {
  check_options(verb, options, job);
  job.key_mask = options.key_mask.empty() ? nullptr : options.key_mask.data();
  const bool is_shared = !has_lengths(options);
  // If all sequences are alike, GPU kernels compute the visible keys themselves.
  if (on_device && is_shared && options.packed.empty() && options.chunk == 0) return;
  const std::int64_t rows = is_shared ? 1 : job.q.batch;
  job.sight_stride = is_shared ? 0 : job.q.sequence;
  job.sights.resize(static_cast<std::size_t>(rows * job.q.sequence));
  for (std::int64_t b = 0; b < rows; ++b) {
    each_segment(verb, options, job, b, [&](const Segment& segment) {
      for (std::int64_t i = 0; i < segment.queries; ++i) {
        job.sights[static_cast<std::size_t>(b * job.q.sequence + segment.first_query + i)] =
            sight_of(options, segment, i);
      }
    });
  }
}

void plan_pages(std::string_view verb, const AttentionOptions& options, Plan& plan) {
  AttentionJob& job = plan.job;
  if (options.block_table.empty()) return;
  const std::int64_t size = job.k.page_tokens, row = job.k.page_row;
  const bool may_skip = options.window > 0 || options.chunk > 0;
  if (may_skip) plan.pages.assign(options.block_table.size(), 0);
  for (std::int64_t b = 0; b < job.k.batch; ++b) {
    const Sight seen = job.seen_keys(b);
    for (std::int64_t i = seen.begin / size; i * size < seen.end; ++i) {
      const std::int32_t page = job.k.pages[b * row + i];
      if (page < 0 || page >= job.k.page_count || page >= job.v.page_count) {
        raise(fmt::format("{}: block_table names page {} but there are {}", verb, page,
                          std::min(job.k.page_count, job.v.page_count)));
      }
      if (may_skip) plan.pages[static_cast<std::size_t>(b * row + i)] = page;
    }
  }
  if (may_skip) job.k.pages = job.v.pages = plan.pages.data();
}

void plan_places(std::string_view verb, const AttentionOptions& options, int axes, bool bounds_keys, Plan& plan) {
  AttentionJob& job = plan.job;
  const std::int64_t queries = job.q.sequence, keys = job.k.sequence, batch = job.q.batch;
  TokenPlaces& places = job.places;
  // The default: the queries are at the end of the keys, or the keys at the end of the queries if there are more
  // queries.
  const bool is_plain = options.packed.empty() && !has_lengths(options);
  places.queries.first = std::max(keys - queries, std::int64_t{0});
  places.keys.first = std::max(queries - keys, std::int64_t{0});
  places.by_index = axes == 1;
  if (!is_plain) {
    const std::int64_t rows = job.sight_stride == 0 ? 1 : batch;
    bool keys_from_0 = options.packed.empty() && !bounds_keys;
    for (std::int64_t b = 0; keys_from_0 && b < rows; ++b) {
      const Segment segment = segment_of(options, job, b);
      keys_from_0 = segment.keys == 0 || segment.keys >= segment.queries;
    }
    plan.query_ids.assign(static_cast<std::size_t>(rows * queries), 0);
    if (!keys_from_0) plan.key_ids.assign(static_cast<std::size_t>(rows * keys), 0);
    for (std::int64_t b = 0; b < rows; ++b) {
      each_segment(verb, options, job, b, [&](const Segment& segment) {
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
  const auto* const bias = std::get_if<Bias>(&options.position);
  const auto* const rotation = std::get_if<Rotation>(&options.position);
  kernels::RowLimit limit;  // a temperature is a logarithm of the position
  limit.is_signed = !options.temperature && ((bias != nullptr && kernels::limit_of(*bias).is_signed) ||
                                             (rotation != nullptr && !has_table(*rotation)));
  const auto take = [&](const std::optional<Positions>& given, TokenPositions& tokens, std::int64_t count,
                        std::string_view what, bool is_needed) {
    if (given.has_value()) {
      const bool is_text = axes > 1 && given->ids.empty() && given->ids_i32.empty() &&
                           std::holds_alternative<Rotation>(options.position);
      tokens = kernels::positions_of(verb, *given, is_text ? given->axes : axes, {batch, count}, limit);
      tokens.axes = axes;
    } else if (axes > 1 && batch * count > 0 && is_needed) {
      raise(fmt::format("{}: the form has {} position axes, so {} must be given", verb, axes, what));
    }
  };
  take(options.query_positions, places.queries, queries, "query_positions", true);
  take(options.key_positions, places.keys, keys, "key_positions", !options.keys_are_rotated);
  if (!options.query_positions.has_value() && !options.key_positions.has_value()) return;
  // Distances are those of tokens plus one constant if no sequence has its own length or positions.
  if (places.queries.has_ids() || places.keys.has_ids() || !options.packed.empty() ||
      !options.device_key_lengths.empty() || (has_lengths(options) && batch != 1)) {
    places.by_index = false;
    return;
  }
  const Segment only = has_lengths(options) ? segment_of(options, job, 0) : Segment{0, queries, 0, keys};
  places.shift = (places.queries.first - places.keys.first) - (only.keys - only.queries);
}

}  // namespace posenc::attend
