#pragma once

#include <cstdint>

#include "attention/plan/call.h"
#include "kernels/memory.h"
#include "posenc/function_ref.h"

namespace posenc::attend {

/// `count` sequences from `sequence` on, each with `queries` queries; `first` is the first query of them all.
struct SequenceGroup {
  std::int64_t sequence, count, first, queries;
};

/// A call with packed queries over pages. Neighbours with equal numbers of queries are computed as a batch, and their sums
/// are those of each sequence alone.
class PackedCall {
 public:
  /// Throws: Error that begins with the verb, for what is wrong with the lengths and shapes of the whole.
  explicit PackedCall(const AttentionCall& call);

  /// Visits every group, in order. Sequences without queries are in none.
  void each_group(FunctionRef<void(const SequenceGroup&)> visit) const;
  /// For a plan, which does not know the lengths: visits groups of which one takes the most memory, if it takes more for more
  /// sequences and for more queries. Some code is for few queries only, so all numbers up to 256 are among them. None has
  /// more queries than a sequence has room for keys.
  void each_largest_group(FunctionRef<void(const SequenceGroup&)> visit) const;

 private:
  friend struct PackedPart;
  AttentionCall whole_;
  std::int64_t sequences_, tokens_, keys_, heads_;  // keys: the capacity of a sequence
};

/// A group as a call of its own, on parts of the tensors.
struct PackedPart {
  AttentionCall call;
  // if the ids of several axes are not contiguous
  kernels::AlignedVector<std::int64_t> query_ids, key_ids;
  kernels::AlignedVector<std::int32_t> narrow_query_ids, narrow_key_ids;

  PackedPart(const PackedCall& packed, const SequenceGroup& group);
};

}  // namespace posenc::attend
