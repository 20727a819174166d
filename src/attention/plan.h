#pragma once

#include <string_view>

#include "attention/job.h"

namespace posenc::attend {

/// A job with the storage that it points into. Not to be copied: pointers would go astray.
struct Plan {
  AttentionJob job;
  std::vector<std::int64_t> query_ids, key_ids;  // positions, where they are not simply consecutive
  Rotation for_queries, for_keys;                // where the form is a rotation
  std::vector<float> q_cos_sin, k_cos_sin;       // its cosines and sines, where it is done as rows are loaded
  std::vector<std::byte> rotated_q, rotated_k;   // q and k after it, where it is done before

  Plan() = default;
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;
};

// Each of these throws an Error that begins with the verb.

/// What every query sees, from causality, window, lengths and packed sequences.
void plan_sights(std::string_view verb, const AttentionOptions& options, AttentionJob& job);

/// Where tokens stand for a position of so many axes.
void plan_places(std::string_view verb, const AttentionOptions& options, int axes, Plan& plan);

}  // namespace posenc::attend
