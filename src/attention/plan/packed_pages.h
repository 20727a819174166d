#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "attention/plan/call.h"

namespace posenc::attend {

/// Neighbours with equal numbers of queries as a batch: a call of its own on parts of the tensors.
struct PackedPart {
  AttentionCall call;
  std::vector<std::int64_t> query_ids, key_ids;  // if the ids of several axes are not contiguous
  std::vector<std::int32_t> narrow_query_ids, narrow_key_ids;
};

/// Splits a call with packed queries over pages into calls, omitting sequences without queries. Their sums are those
/// of each sequence alone. Throws: Error that begins with the verb.
std::deque<PackedPart> packed_parts(const AttentionCall& call);

}  // namespace posenc::attend
