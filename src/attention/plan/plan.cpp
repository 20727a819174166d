// What follows from the options for every token: its page, and its position.

#include "attention/plan/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "attention/plan/segments.h"
#include "kernels/checks.h"
#include "posenc/error.h"
#include "posenc/frequency.h"
#include "terms/terms.h"

namespace posenc::attend {

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
        // wider tables of C and Python have this number for all that do not fit
        const bool is_cut = page == std::numeric_limits<std::int32_t>::max();
        raise(fmt::format("{}: block_table names page {}{} but there are {}", call.verb, page,
                          is_cut ? " or more" : "", std::min(job.k.page_count, job.v.page_count)));
      }
      if (may_skip) plan.pages[b * row + i] = page;
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
    plan.query_ids.assign(rows * queries, 0);
    if (!keys_from_0) plan.key_ids.assign(rows * keys, 0);
    for (std::int64_t b = 0; b < rows; ++b) {
      each_segment(call, job, b, [&](const Segment& segment) {
        const std::int64_t ahead = segment.keys - segment.queries;
        for (std::int64_t i = 0; i < segment.queries; ++i) {
          plan.query_ids[b * queries + segment.first_query + i] = i + std::max(ahead, std::int64_t{0});
        }
        for (std::int64_t j = 0; j < segment.keys && !keys_from_0; ++j) {
          plan.key_ids[b * keys + segment.first_key + j] = j + std::max(-ahead, std::int64_t{0});
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
