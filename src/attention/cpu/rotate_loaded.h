#pragma once

#include <cstdint>

#include "attention/job.h"

namespace posenc::attend::cpu {

/// Rotates the rows of tokens `begin` to `end` of sequence b, [rows, stride] f32, in place.
void rotate_loaded_rows(const RowRotation& rotation, std::int64_t b, std::int64_t begin, std::int64_t end,
                        std::int64_t stride, float* rows);

/// Rotates those rows of head h of a 16-bit tensor into `out`, [rows, features], rounded to its type. Returns the
/// result as the only head of a tensor whose first token is `begin`.
HeadTensor<const void> rotate_and_round(const HeadTensor<const void>& x, const RowRotation& rotation, std::int64_t b,
                                        std::int64_t h, std::int64_t begin, std::int64_t end, std::uint16_t* out);

/// The temporary memory that either needs, in bytes, at most.
inline std::size_t rotation_scratch(const AttentionJob& job) {
  return static_cast<std::size_t>(2 * std::max(job.q_rotation.pairs, job.k_rotation.pairs)) * sizeof(float);
}

}  // namespace posenc::attend::cpu
