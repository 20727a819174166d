#pragma once

#include <cstdint>

#include "attention/cpu/score_bias.h"
#include "attention/job.h"

namespace posenc::attend::cpu {

/// Rows of Q and of K, V that a tile of scores is made of (FlashAttention's B_r and B_c). A query block and its
/// output accumulator stay in the second cache, a key block mostly in the first. 192 is a multiple of every panel's
/// width.
inline constexpr std::int64_t kQueryBlock = 192;
inline constexpr std::int64_t kKeyBlock = 128;

/// Writes out (and logsumexp) for blocks `begin` to `end` of all, in the order of batch, head, queries. q, k and v
/// are f32, f16 or bf16.
void attend_blocks(const AttentionJob& job, const ScoreBias& bias, std::int64_t begin, std::int64_t end);

}  // namespace posenc::attend::cpu
