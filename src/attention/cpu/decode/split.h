#pragma once

#include <cstdint>
#include <limits>

#include "attention/job.h"

namespace posenc::attend::cpu {

/// A split of keys has its own online softmax. With few rows, all keys of several splits (a run) are read before
/// their values, so that memory is read in one direction for longer: each change costs about 2 µs on a Neoverse V1,
/// and alternating 2048 16-bit keys with their values takes a fifth more time than 16,384. With many rows, steps of
/// keys and of values alternate, so that they stay in the L1 cache for all rows.
inline constexpr std::int64_t kSplit = 2048, kFewRows = 4, kMostSplits = 16;  // kMostSplits: of a run

/// The state of the online softmax for one row of scores and one split of keys.
struct SoftmaxState {
  float row_max = -std::numeric_limits<float>::infinity(), row_sum = 0;
};

/// Some splits of keys of some heads of one sequence, from head g on.
struct SplitRun {
  std::int64_t b, g, begin, end;
  SoftmaxState* states;                                    // [heads, splits, rows]
  float* sums;                                             // [heads, splits, rows, value features]
  std::int64_t heads = 1, head_states = 0, head_sums = 0;  // the strides from head to head
  std::int64_t splits() const { return (end - begin + kSplit - 1) / kSplit; }
  SplitRun of_head(std::int64_t head) const {
    return {b, g + head, begin, end, states + head * head_states, sums + head * head_sums};
  }
};

/// Whether the heads of a token, or of a page of tokens, lie side by side, so that memory is read in its own order if heads
/// take turns at each step of keys: one stream instead of one for each head, each of which touches every page of memory.
/// With many rows, the sums of all heads would not stay in a cache.
inline bool has_heads_inside(const AttentionJob& job, std::int64_t rows) {
  constexpr std::int64_t kMostRows = 32;
  return job.k.heads > 1 && rows <= kMostRows && (job.k.pages != nullptr || job.k.head_stride < job.k.token_stride);
}

/// Keys of one split; where their scores are kept, and where their softmax and sums go.
struct KeyBlock {
  std::int64_t begin, end, stride;
  float* scores;         // [rows, stride]
  float* rescale;        // [rows]: for the sums so far; 1 once they have been rescaled
  SoftmaxState* states;  // [rows]
  float* sums;           // [rows, value features]
};
/// Keys `begin` to `end` of a block.
struct Step {
  const KeyBlock& block;
  std::int64_t begin, end;
  std::int64_t count() const { return end - begin; }
  float* scores(std::int64_t r) const { return block.scores + r * block.stride + (begin - block.begin); }
};

}  // namespace posenc::attend::cpu
