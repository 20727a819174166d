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
/// More queries share a key block where making it ready takes long beside its products: keys that are rotated, and those of a
/// matrix unit.
inline constexpr std::int64_t kLargeQueryBlock = 768, kMatrixQueryBlock = 384;

/// Writes out (and logsumexp) on the threads of the call. q, k and v are f32, f16 or bf16.
void attend_by_blocks(const AttentionJob& job, const ScoreBias& bias);

}  // namespace posenc::attend::cpu
