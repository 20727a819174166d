#pragma once

#include <cstdint>

#include "attention/job.h"

namespace posenc::attend::cpu {

/// Rotates rows of tokens `begin` to `end` of sequence b, [rows, stride] f32, in place.
void rotate_loaded_rows(const RowRotation& rotation, std::int64_t b, std::int64_t begin, std::int64_t end,
                        std::int64_t stride, float* rows);

/// The bytes that it takes for a moment, at most.
inline std::size_t rotation_scratch(const AttentionJob& job) {
  return static_cast<std::size_t>(2 * std::max(job.q_rotation.pairs, job.k_rotation.pairs)) * sizeof(float);
}

}  // namespace posenc::attend::cpu
