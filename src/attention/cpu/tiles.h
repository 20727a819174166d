#pragma once

#include <cstdint>

#include "attention/cpu/score_bias.h"
#include "attention/job.h"

namespace posenc::attend::cpu {

/// Queries and keys that are worked on at once. A block of queries and its sums stay in the second cache, a tile of
/// keys and values mostly in the first. 192 is a multiple of every panel's width.
inline constexpr std::int64_t kQueryBlock = 192;
inline constexpr std::int64_t kKeyTile = 128;

/// Writes out (and logsumexp) for blocks `begin` to `end` of all, in the order of batch, head, queries. q, k and v
/// are f32, f16 or bf16.
void attend_blocks(const AttentionJob& job, const ScoreBias& bias, std::int64_t begin, std::int64_t end);

}  // namespace posenc::attend::cpu
