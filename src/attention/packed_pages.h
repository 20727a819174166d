#pragma once

#include <cstdint>
#include <deque>
#include <string_view>
#include <vector>

#include "posenc/attention.h"

namespace posenc::attend {

/// Whether queries of several sequences are packed and their keys are in pages.
bool has_packed_pages(const AttentionOptions& options) noexcept;

/// Neighbours with equal numbers of queries as a batch: a call of its own on parts of the tensors.
struct PackedPart {
  TensorView out;
  AttentionInputs inputs;
  AttentionOptions options;
  std::vector<std::int64_t> query_ids, key_ids;  // if the ids of several axes are not contiguous
  std::vector<std::int32_t> narrow_query_ids, narrow_key_ids;
};

/// Splits a call with packed queries over pages into calls, omitting sequences without queries. Their sums are those
/// of each sequence alone. Throws: Error that begins with the verb.
std::deque<PackedPart> packed_parts(std::string_view verb, const TensorView& out, const AttentionInputs& inputs,
                                    const AttentionOptions& options);

}  // namespace posenc::attend
