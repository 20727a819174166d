#pragma once

#include <optional>
#include <string_view>

#include "attention/job.h"

namespace posenc::attend {

/// A rotation as attention uses it, made once for a plan: as it is, and as what becomes of pairs (1, 0).
struct RotationForms {
  Rotation for_queries, for_keys;
  Rotation query_pairs, key_pairs;  // from feature 0 on, in halves
};
RotationForms forms_of(const Rotation& rotation);

/// A job with the storage that it points into. Not to be copied: pointers would go astray. While a call has a workspace,
/// the storage is there.
struct Plan {
  AttentionJob job;
  const AttentionBackend* backend = nullptr;  // chosen once, for all that the call does
  const RotationForms* forms = nullptr;       // where the form is a rotation; null until plan_position: own_forms
  std::optional<RotationForms> own_forms;
  AlignedVector<std::int64_t> query_ids, key_ids;    // positions, where they are not simply consecutive
  AlignedVector<float> q_cos_sin, k_cos_sin;         // its cosines and sines, where it is done as rows are loaded
  AlignedVector<std::byte> rotated_q, rotated_k;     // q and k after it, where it is done before
  AlignedVector<std::byte> scaled_q;                 // q times its temperature, in the type of sums
  AlignedVector<std::byte> scaled_position_queries;  // the same of what vectors by distance meet in its place
  AlignedVector<double> query_factors;               // [batch, 1 or heads, queries]: that temperature; empty: none
  AlignedVector<double> gate_sums;                   // [batch, heads, keys]
  AlignedVector<double> sinks;                       // [heads]
  AlignedVector<std::int32_t> pages;                 // the block table, where it may name pages that nobody reads

  Plan() = default;
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;
};

// Each of these throws an Error that begins with the verb.

/// What every query sees, from causality, window, chunk, lengths and packed sequences.
/// `on_device`: only what kernels on a GPU cannot find out by themselves.
void plan_sights(std::string_view verb, const AttentionOptions& options, bool on_device, AttentionJob& job);

/// Every page of a cache that holds a key which some query sees is there. Other entries of the table may hold anything.
void plan_pages(std::string_view verb, const AttentionOptions& options, Plan& plan);

/// The positions of the tokens, for a form of so many axes.
/// `bounds_keys`: the form may not cover positions past the lengths, so no key there has any but 0.
void plan_places(std::string_view verb, const AttentionOptions& options, int axes, bool bounds_keys, Plan& plan);

}  // namespace posenc::attend
