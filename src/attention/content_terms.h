#pragma once

#include <variant>

#include "attention/job.h"

namespace posenc::attend {

// The two kinds of bias that read q and k: no function of one query and one key says what they add, so engines ask for
// them by name.

/// The job's vectors by distance, or nullptr.
inline const DistanceVectors* vectors_in(const AttentionJob& job) noexcept {
  return job.bias == nullptr ? nullptr : std::get_if<DistanceVectors>(&job.bias->source);
}

/// The job's contextual positions, or nullptr.
inline const CountedGates* counted_gates_in(const AttentionJob& job) noexcept {
  return job.bias == nullptr ? nullptr : std::get_if<CountedGates>(&job.bias->source);
}

}  // namespace posenc::attend
