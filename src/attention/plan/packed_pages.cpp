// Continuous batching: queries of several sequences, one after another, over a paged cache. Each group of
// neighbours with equal numbers of queries is computed as one batch: all decoding sequences together, and each prompt
// by itself. A batch reads its part of every tensor in place.

#include "attention/plan/packed_pages.h"

#include <fmt/format.h>

#include <algorithm>

#include "attention/plan/arguments.h"
#include "posenc/error.h"

namespace posenc::attend {
namespace {

// [heads, tokens of all, features] as [sequences of the group, heads, queries of each, features].
template <class Void> BasicTensorView<Void> rows_as_batch(const BasicTensorView<Void>& x, const SequenceGroup& part) {
  BasicTensorView<Void> batch = slice(x, x.shape.rank - 2, part.first, part.count * part.queries);
  const std::int64_t token = x.strides.back(1);
  const bool has_heads = x.shape.rank > 2;
  batch.shape = {part.count, has_heads ? x.shape.back(2) : 1, part.queries, x.shape.back(0)};
  batch.strides = {part.queries * token, has_heads ? x.strides.back(2) : 0, token, x.strides.back(0)};
  return batch;
}

bool has_row_for_each_query(const ConstTensorView& mask) { return mask.shape.rank > 1 && mask.shape.back(1) != 1; }

// Ids [axes, sequences, tokens], of which some sequences are needed.
template <class Id> std::span<const Id> ids_part(std::span<const Id> ids, int axes, std::int64_t first,
                                                 std::int64_t count, kernels::AlignedVector<Id>& storage) {
  if (axes <= 1) return ids.subspan(first, static_cast<std::size_t>(count));
  const std::int64_t of_axis = std::ssize(ids) / axes;
  storage.reserve(axes * count);
  for (int axis = 0; axis < axes; ++axis) {
    const auto from = ids.begin() + axis * of_axis + first;
    storage.insert(storage.end(), from, from + count);
  }
  return storage;
}

std::int64_t count_of_ids(const std::optional<Positions>& positions) {
  return positions ? std::ssize(positions->ids) + std::ssize(positions->ids_i32) : 0;
}

// A plan's options are for its tokens; the call has the first of these.
void take_first_tokens(AttentionCall& call, std::int64_t tokens) {
  const auto cut = [&](auto& view, int axis_from_end) {
    const int axis = view.shape.rank - 1 - axis_from_end;
    if (view.data == nullptr || axis < 0 || view.strides.rank != view.shape.rank) return;  // others are found below
    if (view.shape[axis] > tokens) view = slice(view, axis, 0, tokens);
  };
  if (has_row_for_each_query(call.mask)) cut(call.mask, 1);
  cut(call.weights, 1);
  cut(call.position_queries, 1);
  cut(call.logsumexp, 0);
}

// Returns the tokens of each sequence that its pages have room for.
std::int64_t check_whole(const AttentionCall& call, const HeadTensor<const void>& q) {
  for (const ConstTensorView& x : {ConstTensorView(call.out), call.inputs.q, call.inputs.k, call.inputs.v}) {
    if (x.device != Device::kHost)
      raise(fmt::format("{}: packed queries over a paged cache must be on the host", call.verb));
  }
  if (!call.query_lengths.empty() || call.given.has(&AttentionOptions::packed_keys)) {
    raise(fmt::format("{}: packed queries over a paged cache cannot be combined with query_lengths or packed_keys",
                      call.verb));
  }
  const HeadTensor<const void> k = tensor_of(call.verb, "k", call.inputs.k, Types::kOfCache),
                               v = tensor_of(call.verb, "v", call.inputs.v, Types::kOfCache);
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
  if (call.out.shape.rank > 0) {  // a plan has none
    check_result(call.verb, "out", call.out, {call.inputs.q.type, q, v.features});
  }
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
  return keys;
}

// The arguments with one row per sequence.
void set_sequences(const SequenceGroup& part, std::int64_t sequences, AttentionCall& own) {
  const auto rows = [&](auto span) {
    const std::int64_t row = std::ssize(span) / sequences;
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

}  // namespace

PackedCall::PackedCall(const AttentionCall& call) : whole_(call) {
  const HeadTensor<const void> q = tensor_of(call.verb, "q", call.inputs.q);
  sequences_ = std::ssize(call.packed), tokens_ = q.sequence, heads_ = q.heads;
  if (call.planned_tokens > tokens_) take_first_tokens(whole_, tokens_);
  keys_ = check_whole(whole_, q);
  if (call.mask.data != nullptr) check_mask(call.verb, whole_.mask, {1, heads_, tokens_, keys_});
  const std::int64_t ids = count_of_ids(call.query_positions), tokens = std::max(call.planned_tokens, tokens_);
  if (!call.query_positions) return;
  if (ids == 0 && tokens > 0) {
    raise(fmt::format("{}: with packed queries over a paged cache, query_positions must be ids, one per token",
                      call.verb));
  }
  const int axes = call.query_positions->axes;
  if (axes < 1 || ids != axes * tokens) {
    raise(fmt::format("{}: {} position ids do not fit {} tokens and {} axes", call.verb, ids, tokens, axes));
  }
}

PackedPart::PackedPart(const PackedCall& packed, const SequenceGroup& group) : call(packed.whole_) {
  set_sequences(group, packed.sequences_, call);
  call.inputs.q = rows_as_batch(call.inputs.q, group);
  if (call.out.shape.rank > 0) call.out = rows_as_batch(call.out, group);
  const auto take_ids = [&](std::optional<Positions>& positions, std::int64_t first, std::int64_t count, auto& ids,
                            auto& narrow_ids) {
    if (!positions->ids.empty()) {
      positions->ids = ids_part(positions->ids, positions->axes, first, count, ids);
    } else {
      positions->ids_i32 = ids_part(positions->ids_i32, positions->axes, first, count, narrow_ids);
    }
  };
  if (call.query_positions) {
    take_ids(call.query_positions, group.first, group.count * group.queries, query_ids, narrow_query_ids);
  }
  const std::int64_t keys = packed.keys_;
  // one list for all sequences, or one for each
  if (call.key_positions && call.key_positions->axes > 0 &&
      count_of_ids(call.key_positions) == call.key_positions->axes * packed.sequences_ * keys) {
    take_ids(call.key_positions, group.sequence * keys, group.count * keys, key_ids, narrow_key_ids);
  }
  if (has_row_for_each_query(call.mask)) call.mask = rows_as_batch(call.mask, group);
  if (call.position_queries.data != nullptr) call.position_queries = rows_as_batch(call.position_queries, group);
  if (call.weights.data != nullptr) call.weights = rows_as_batch(call.weights, group);
  if (call.logsumexp.data == nullptr) return;
  TensorView one_feature = call.logsumexp;
  one_feature.shape.push_back(1);
  one_feature.strides.push_back(1);
  call.logsumexp = rows_as_batch(one_feature, group);
  call.logsumexp.shape.rank = call.logsumexp.strides.rank = 3;
}

}  // namespace posenc::attend
