#pragma once

#include <optional>
#include <string_view>

#include "attention/job.h"
#include "attention/plan/call.h"

namespace posenc::attend {

/// A rotation as attention uses it, made once for a plan: as given, and as a rotation of the pairs (1, 0).
struct RotationForms {
  Rotation for_queries, for_keys;
  Rotation query_pairs, key_pairs;  // from feature 0 on, in halves
};
RotationForms forms_of(const Rotation& rotation);

/// A job with the storage that it points into. Not copyable, because the pointers would dangle. During a call with a
/// workspace, the storage is in the workspace.
struct Plan {
  AttentionJob job;
  const AttentionBackend* backend = nullptr;  // chosen once for the whole call
  const RotationForms* forms = nullptr;       // if the form is a rotation; null until plan_position: own_forms
  std::optional<RotationForms> own_forms;
  AlignedVector<std::int64_t> query_ids, key_ids;    // positions, unless simply consecutive
  AlignedVector<float> q_cos_sin, k_cos_sin;         // its cosines and sines, if rows are rotated on load
  AlignedVector<std::byte> rotated_q, rotated_k;     // q and k after it, if rotated beforehand
  AlignedVector<std::byte> scaled_q;                 // q times its factors, in the type of sums
  AlignedVector<std::byte> scaled_position_queries;  // the same for what replaces q with vectors by distance
  kernels::Scales key_scales;                        // of an 8-bit cache, if they differ from head to head
  // [batch, 1 or heads, queries]: the temperature, times those scales; empty: none
  AlignedVector<double> query_factors;
  AlignedVector<double> gate_sums;             // [batch, heads, keys]
  AlignedVector<double> sinks;                 // [heads]
  AlignedVector<PositionRange> limit_queries;  // of a window or chunk by position
  AlignedVector<std::int64_t> limit_keys;      // the positions of keys, for these
  AlignedVector<std::int32_t> pages;           // the block table, if it may name pages that are never read

  Plan() = default;
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;
};

// Each of these throws an Error that begins with the verb.

/// The keys that each query attends to, from causality, window, chunk, spans, lengths and packed sequences.
/// `on_device`: only what GPU kernels cannot compute themselves.
void plan_sights(const AttentionCall& call, bool on_device, Plan& plan);

/// Checks that every page holding a key that some query attends to exists. Other entries of the table may hold
/// anything.
void plan_pages(const AttentionCall& call, Plan& plan);

/// The positions of the tokens, for a form with the given number of axes.
/// `bounds_keys`: the form may not cover positions past the lengths, so keys there get position 0.
void plan_places(const AttentionCall& call, int axes, bool bounds_keys, Plan& plan);

}  // namespace posenc::attend
