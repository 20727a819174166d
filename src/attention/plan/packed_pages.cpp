// Continuous batching: queries of several sequences, one after another, over a paged cache. Each group of
// neighbours with equal numbers of queries is computed as one batch: all decoding sequences together, and each prompt
// by itself. A batch reads its part of every tensor in place.

#include "attention/plan/packed_pages.h"

#include <fmt/format.h>

#include "attention/plan/arguments.h"
#include "posenc/error.h"

namespace posenc::attend {
namespace {

// `count` sequences from `sequence` on, each with `queries` queries; `first` is the first query of them all.
struct SequenceGroup {
  std::int64_t sequence, count, first, queries;
};

struct PackedCall {
  const AttentionCall& whole;
  std::int64_t sequences, tokens, keys, heads;  // keys: the capacity of a sequence

  std::vector<SequenceGroup> groups() const {
    std::vector<SequenceGroup> found;
    std::int64_t first = 0;
    for (std::int64_t s = 0; s < sequences; ++s) {
      const std::int64_t queries = whole.packed[s];
      if (queries > 0 && !found.empty() && found.back().queries == queries &&
          found.back().sequence + found.back().count == s) {
        ++found.back().count;
      } else if (queries > 0) {
        found.push_back({s, 1, first, queries});
      }
      first += queries;
    }
    return found;
  }
};

// [heads, tokens of all, features] as [sequences of the group, heads, queries of each, features].
template <class Void> BasicTensorView<Void> rows_as_batch(const BasicTensorView<Void>& x, const SequenceGroup& part) {
  BasicTensorView<Void> batch = slice(x, x.shape.rank - 2, part.first, part.count * part.queries);
  const std::int64_t token = x.strides.back(1);
  const bool has_heads = x.shape.rank > 2;
  batch.shape = {part.count, has_heads ? x.shape.back(2) : 1, part.queries, x.shape.back(0)};
  batch.strides = {part.queries * token, has_heads ? x.strides.back(2) : 0, token, x.strides.back(0)};
  return batch;
}

ConstTensorView mask_part(const PackedCall& call, const SequenceGroup& part) {
  const ConstTensorView& mask = call.whole.mask;
  if (mask.data == nullptr) return mask;
  check_mask(call.whole.verb, mask, {1, call.heads, call.tokens, call.keys});
  return mask.shape.rank < 2 || mask.shape.back(1) == 1 ? mask : rows_as_batch(mask, part);
}

// Ids [axes, sequences, tokens], of which some sequences are needed.
template <class Id> std::span<const Id> ids_part(std::span<const Id> ids, int axes, std::int64_t first,
                                                 std::int64_t count, std::vector<Id>& storage) {
  if (axes <= 1) return ids.subspan(first, static_cast<std::size_t>(count));
  const std::int64_t of_axis = std::ssize(ids) / axes;
  for (int axis = 0; axis < axes; ++axis) {
    const auto from = ids.begin() + axis * of_axis + first;
    storage.insert(storage.end(), from, from + count);
  }
  return storage;
}

void set_query_positions(const PackedCall& call, const SequenceGroup& part, PackedPart& made) {
  if (!call.whole.query_positions) return;
  Positions& positions = *made.call.query_positions;
  const std::int64_t ids = std::ssize(positions.ids) + std::ssize(positions.ids_i32);
  if (ids == 0) {
    raise(fmt::format("{}: with packed queries over a paged cache, query_positions must be ids, one per token",
                      call.whole.verb));
  }
  if (positions.axes < 1 || ids != positions.axes * call.tokens) {
    raise(fmt::format("{}: {} position ids do not fit {} tokens and {} axes", call.whole.verb, ids, call.tokens,
                      positions.axes));
  }
  const std::int64_t count = part.count * part.queries;
  if (!positions.ids.empty()) {
    positions.ids = ids_part(positions.ids, positions.axes, part.first, count, made.query_ids);
  } else {
    positions.ids_i32 = ids_part(positions.ids_i32, positions.axes, part.first, count, made.narrow_query_ids);
  }
}

void set_key_positions(const PackedCall& call, const SequenceGroup& part, PackedPart& made) {
  if (!call.whole.key_positions) return;
  Positions& positions = *made.call.key_positions;
  const std::int64_t ids = std::ssize(positions.ids) + std::ssize(positions.ids_i32);
  if (positions.axes < 1 || ids != positions.axes * call.sequences * call.keys) return;  // one list for all, or none
  const std::int64_t first = part.sequence * call.keys, count = part.count * call.keys;
  if (!positions.ids.empty()) {
    positions.ids = ids_part(positions.ids, positions.axes, first, count, made.key_ids);
  } else {
    positions.ids_i32 = ids_part(positions.ids_i32, positions.axes, first, count, made.narrow_key_ids);
  }
}

// The arguments with one row per sequence.
void set_sequences(const PackedCall& call, const SequenceGroup& part, AttentionCall& own) {
  const auto rows = [&](auto span) {
    const std::int64_t row = std::ssize(span) / call.sequences;
    return span.subspan(part.sequence * row, static_cast<std::size_t>(part.count * row));
  };
  own.packed = own.packed_keys = {};
  own.key_lengths = rows(own.key_lengths);
  own.block_table = rows(own.block_table);
  own.key_mask = rows(own.key_mask);
  own.spans = rows(own.spans);
  if (own.log_gates.data != nullptr && own.log_gates.shape.rank == 3) {
    own.log_gates = slice(own.log_gates, 0, part.sequence, part.count);
  }
}

PackedCall checked_call(const AttentionCall& call) {
  for (const ConstTensorView& x : {ConstTensorView(call.out), call.inputs.q, call.inputs.k, call.inputs.v}) {
    if (x.device != Device::kHost)
      raise(fmt::format("{}: packed queries over a paged cache must be on the host", call.verb));
  }
  if (!call.query_lengths.empty() || call.given.has(&AttentionOptions::packed_keys)) {
    raise(fmt::format("{}: packed queries over a paged cache cannot be combined with query_lengths or packed_keys",
                      call.verb));
  }
  const HeadTensor<const void> q = tensor_of(call.verb, "q", call.inputs.q),
                               k = tensor_of(call.verb, "k", call.inputs.k),
                               v = tensor_of(call.verb, "v", call.inputs.v);
  if (q.batch != 1) raise(fmt::format("{}: packed queries must have a batch of 1 but q has {}", call.verb, q.batch));
  const auto check_size = [&](std::string_view what, std::int64_t size, std::int64_t wanted) {
    if (size != wanted) raise(fmt::format("{}: {} has {} numbers but must have {}", call.verb, what, size, wanted));
  };
  const std::int64_t sequences = std::ssize(call.packed);
  check_size("key_lengths", std::ssize(call.key_lengths), sequences);
  const std::int64_t pages = pages_of_sequence(call.verb, std::ssize(call.block_table), sequences);
  std::int64_t sum = 0;
  for (const std::int64_t queries : call.packed) {
    if (queries < 0 || queries > q.sequence - sum) {
      raise(fmt::format("{}: the packed lengths must sum to the {} tokens of q, but one is {} after {} tokens",
                        call.verb, q.sequence, queries, sum));
    }
    sum += queries;
  }
  if (sum != q.sequence) {
    raise(fmt::format("{}: the packed lengths of queries sum to {} but there are {} tokens", call.verb, sum,
                      q.sequence));
  }
  const std::int64_t keys = pages * k.sequence;
  if (!call.key_mask.empty()) check_size("key_mask", std::ssize(call.key_mask), sequences * keys);
  if (!call.spans.empty()) check_size("spans", std::ssize(call.spans), sequences * keys);
  check_result(call.verb, "out", call.out, {call.inputs.q.type, q, v.features});
  if (call.weights.data != nullptr) check_result(call.verb, "weights", call.weights, {call.inputs.q.type, q, keys});
  if (const ConstTensorView& own = call.position_queries; own.data != nullptr) {
    check_result(call.verb, "position_queries", own,
                 {call.inputs.q.type, q, tensor_of(call.verb, "position_queries", own).features});
  }
  if (call.log_gates.data != nullptr && call.log_gates.shape.rank == 3 && call.log_gates.shape[0] != sequences) {
    raise(fmt::format("{}: log_gates has {} sequences but key_lengths has {}", call.verb, call.log_gates.shape[0],
                      sequences));
  }
  AttentionJob whole;
  whole.q = q;
  whole.v.type = call.inputs.v.type;
  if (call.logsumexp.data != nullptr) logsumexp_of(call.verb, call.logsumexp, whole);
  return {call, sequences, q.sequence, keys, q.heads};
}

}  // namespace

std::deque<PackedPart> packed_parts(const AttentionCall& whole) {
  const PackedCall call = checked_call(whole);
  std::deque<PackedPart> parts;
  for (const SequenceGroup& part : call.groups()) {
    PackedPart& made = parts.emplace_back();
    AttentionCall& own = made.call;
    own = whole;
    own.out = rows_as_batch(whole.out, part);
    own.inputs.q = rows_as_batch(whole.inputs.q, part);
    set_sequences(call, part, own);
    set_query_positions(call, part, made);
    set_key_positions(call, part, made);
    own.mask = mask_part(call, part);
    if (own.position_queries.data != nullptr) own.position_queries = rows_as_batch(whole.position_queries, part);
    if (own.weights.data != nullptr) own.weights = rows_as_batch(whole.weights, part);
    if (own.logsumexp.data != nullptr) {
      TensorView one_feature = whole.logsumexp;
      one_feature.shape.push_back(1);
      one_feature.strides.push_back(1);
      own.logsumexp = rows_as_batch(one_feature, part);
      own.logsumexp.shape.rank = own.logsumexp.strides.rank = 3;
    }
  }
  return parts;
}

}  // namespace posenc::attend
