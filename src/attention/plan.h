#pragma once

#include <string_view>

#include "attention/job.h"

namespace posenc::attend {

/// A job with the storage that it points into. Not to be copied: pointers would go astray.
struct Plan {
  AttentionJob job;
  const AttentionBackend* backend = nullptr;     // chosen once, for all that the call does
  std::vector<std::int64_t> query_ids, key_ids;  // positions, where they are not simply consecutive
  Rotation for_queries, for_keys;                // where the form is a rotation
  std::vector<float> q_cos_sin, k_cos_sin;       // its cosines and sines, where it is done as rows are loaded
  std::vector<std::byte> rotated_q, rotated_k;   // q and k after it, where it is done before
  std::vector<std::byte> scaled_q;               // q times its temperature, in the type of sums
  std::vector<double> query_factors;             // [batch, queries]: that temperature; empty: none
  std::vector<double> sinks;                     // [heads]

  Plan() = default;
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;
};

// Each of these throws an Error that begins with the verb.

/// What every query sees, from causality, window, chunk, lengths and packed sequences.
void plan_sights(std::string_view verb, const AttentionOptions& options, AttentionJob& job);

/// The positions of the tokens, for a form of so many axes.
/// `bounds_keys`: the form may not cover positions past the lengths, so no key there has any but 0.
void plan_places(std::string_view verb, const AttentionOptions& options, int axes, bool bounds_keys, Plan& plan);

}  // namespace posenc::attend
