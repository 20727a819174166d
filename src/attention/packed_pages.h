#pragma once

#include <cstdint>
#include <deque>
#include <string_view>
#include <vector>

#include "posenc/attention.h"

namespace posenc::attend {

/// Whether queries of several sequences follow each other, and their keys lie in pages.
bool has_packed_pages(const AttentionOptions& options) noexcept;

/// Neighbours with as many queries each, as a batch: a call of its own on parts of the tensors.
struct PackedPart {
  TensorView out;
  AttentionInputs inputs;
  AttentionOptions options;
  std::vector<std::int64_t> query_ids, key_ids;  // where those of several axes do not lie side by side
  std::vector<std::int32_t> narrow_query_ids, narrow_key_ids;
};

/// The calls that a call with packed queries over pages comes to, without sequences that have no query. Their sums are those
/// of each sequence alone. Throws: Error that begins with the verb.
std::deque<PackedPart> packed_parts(std::string_view verb, const TensorView& out, const AttentionInputs& inputs,
                                    const AttentionOptions& options);

}  // namespace posenc::attend
