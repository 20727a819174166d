#pragma once

#include <cstdint>

#include "attention/cpu/score_bias.h"
#include "attention/job.h"

namespace posenc::attend::cpu {

/// The rows of Q and of K, V in a tile of scores (FlashAttention's B_r and B_c). A query block and its output
/// accumulator stay in the L2 cache, a key block mostly in L1. 192 is a multiple of every panel's width.
inline constexpr std::int64_t kQueryBlock = 192;
inline constexpr std::int64_t kKeyBlock = 128;
/// More queries share a key block if preparing it takes long compared with its products: rotated keys, and those of a
/// matrix unit.
inline constexpr std::int64_t kLargeQueryBlock = 768, kMatrixQueryBlock = 384;

/// Writes out (and logsumexp), using the call's threads. q, k and v are f32, f16 or bf16.
void attend_by_blocks(const AttentionJob& job, const ScoreBias& bias);
/// Takes the memory that this takes, and does nothing else, while kernels::CountMemory is counting.
void count_blocks(const AttentionJob& job, const ScoreBias& bias);

}  // namespace posenc::attend::cpu
