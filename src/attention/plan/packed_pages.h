#pragma once

#include <algorithm>
#include <cstdint>

#include "attention/plan/call.h"
#include "kernels/memory.h"

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
  template <class Visit> void each_group(const Visit& visit) const;
  /// For a plan, which does not know the lengths: visits groups of which one takes the most memory, if it takes more for more
  /// sequences and for more queries. Some code is for few queries only, so all numbers up to 256 are among them. None has
  /// more queries than a sequence has room for keys.
  template <class Visit> void each_largest_group(const Visit& visit) const;

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

template <class Visit> void PackedCall::each_group(const Visit& visit) const {
  SequenceGroup group{0, 0, 0, 0};
  for (std::int64_t s = 0; s < sequences_; ++s) {
    const std::int64_t queries = whole_.packed[s], first = group.first + group.count * group.queries;
    if (queries > 0 && group.queries == queries) {
      ++group.count;
      continue;
    }
    if (group.count > 0) visit(group);
    group = {s, queries > 0 ? 1 : 0, first, queries};
  }
  if (group.count > 0) visit(group);
}

template <class Visit> void PackedCall::each_largest_group(const Visit& visit) const {
  constexpr std::int64_t kFew = 256;
  const std::int64_t most = std::min(tokens_, std::max<std::int64_t>(keys_, 1));
  for (std::int64_t queries = 1; queries <= std::min(most, kFew); ++queries) {
    visit(SequenceGroup{0, std::min(sequences_, tokens_ / queries), 0, queries});
  }
  for (std::int64_t count = 1; most > kFew && count <= sequences_ && tokens_ / count > kFew; ++count) {
    visit(SequenceGroup{0, count, 0, std::min(tokens_ / count, most)});
  }
}

}  // namespace posenc::attend
