#pragma once

#include "attention/cpu/score_bias.h"
#include "attention/job.h"

namespace posenc::attend::cpu {

/// Up to this many rows of scores per key head (queries times the heads that share it), keys and values are read once
/// for all of them, in place: a decoding step runs at the speed at which the cache can be read.
inline constexpr std::int64_t kFewDecodeRows = 32;
/// The same limit for few queries of many heads; more queries fill the panels of tiles.h.
inline constexpr std::int64_t kMostDecodeRows = 128, kMostDecodeQueries = 16;

bool is_decoding(const AttentionJob& job, const ScoreBias& bias);

/// Writes out (and logsumexp). Keys are split at fixed places, so results do not depend on the number of threads.
void decode(const AttentionJob& job, const ScoreBias& bias);
/// Takes the memory that `decode` takes at most, and does nothing else, while kernels::CountMemory is counting.
void count_decode(const AttentionJob& job, const ScoreBias& bias);

}  // namespace posenc::attend::cpu
