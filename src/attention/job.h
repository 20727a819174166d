#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string_view>
#include <vector>

#include "kernels/checks.h"
#include "kernels/element.h"
#include "kernels/job.h"
#include "kernels/memory.h"
#include "posenc/attention.h"
#include "terms/tokens.h"

namespace posenc::attend {

using kernels::AlignedVector;
using terms::KeyRange;
using terms::TokenPlaces;

/// How rows are rotated as they are loaded, if the form is a rotation.
struct RowRotation {
  const float* cos_sin = nullptr;  // [batch or 1, tokens]: cosines, then sines, as rotate_rows takes them; null: none
  std::int64_t batch_stride = 0;   // 0: the same for every sequence
  std::int64_t token_stride = 0;
  std::int64_t pairs = 0, first = 0;
  const Rotation* form = nullptr;
  bool is_rounded = false;  // rotated rows are rounded to the tensor's type
};

/// The caller's mask, broadcast along an axis by a stride of 0.
struct ScoreMask {
  const void* data = nullptr;  // null: none
  DataType type = DataType::kBool;
  std::int64_t batch_stride = 0, head_stride = 0, query_stride = 0, key_stride = 0;

  /// What is added to a score; −inf: the key is masked.
  double at(std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j) const noexcept {
    const std::int64_t offset = b * batch_stride + h * head_stride + i * query_stride + j * key_stride;
    if (type == DataType::kBool) {
      const bool is_seen = static_cast<const std::uint8_t*>(data)[offset] != 0;
      return is_seen ? 0.0 : -std::numeric_limits<double>::infinity();
    }
    return kernels::with_type(
        type, [&](auto kind) { return numerics::widen(static_cast<const decltype(kind)*>(data)[offset]); });
  }
};

/// The positions of the keys that a query attends to, `least` to `most`.
struct PositionRange {
  std::int64_t least = std::numeric_limits<std::int64_t>::min(), most = std::numeric_limits<std::int64_t>::max();
  bool has(std::int64_t position) const noexcept { return least <= position && position <= most; }
};
/// A window or chunks by position, for queries that do not attend to all keys of their range: the tokens of a draft tree
/// are not in the order of their positions.
struct PositionLimits {
  const PositionRange* queries = nullptr;  // [batch or 1, queries]; null: every range is attended to as a whole
  const std::int64_t* keys = nullptr;      // [batch or 1, keys]: their positions
  std::int64_t query_stride = 0, key_stride = 0;

  bool are_set() const noexcept { return queries != nullptr; }
  bool hide(std::int64_t b, std::int64_t i, std::int64_t j) const noexcept {
    return !queries[b * query_stride + i].has(keys[b * key_stride + j]);
  }
};

/// The checked arguments, and what follows from them for every query.
struct AttentionJob {
  HeadTensor<void> out;
  HeadTensor<const void> q, k, v;
  std::int64_t group = 1;        // query heads per key head
  double scale = 1.0;            // includes the form's factor
  kernels::Scales value_scales;  // of 8-bit values; those of keys are in the scale, or in q
  const Bias* bias = nullptr;
  // For vectors: the factor of their products, and what is multiplied with them in place of q; null data: q.
  double vector_scale = 1.0;
  HeadTensor<const void> position_queries;
  const double* gate_sums = nullptr;  // [batch, heads, keys]: g_0 + … + g_t of each token; null: the bias has none
  RowRotation q_rotation, k_rotation;
  TokenPlaces places;
  AlignedVector<KeyRange> key_ranges;  // [batch or 1, queries]
  std::int64_t key_range_stride = 0;   // 0: the same for every sequence of the batch
  PositionLimits limits;
  const std::int64_t* key_mask = nullptr;  // [batch, keys]; 0: masked
  ScoreMask mask;
  double softcap = 0;             // 0: none
  const double* sinks = nullptr;  // [heads]; null: none
  HeadTensor<void> weights;       // features are keys; null data: not requested
  HeadTensor<void> logsumexp;     // features are 1

  const KeyRange& key_range(std::int64_t b, std::int64_t i) const noexcept {
    return key_ranges[b * key_range_stride + i];
  }
  bool is_hidden(std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j) const noexcept {
    if (key_mask != nullptr && key_mask[b * k.sequence + j] == 0) return true;
    return masks_scores() && mask_at(b, h, i, j) == -std::numeric_limits<double>::infinity();
  }
  /// Whether keys within the range of a query may be masked.
  bool has_masks() const noexcept { return key_mask != nullptr || masks_scores(); }
  /// Whether which keys are masked differs from query to query, beyond their ranges.
  bool masks_scores() const noexcept { return mask.data != nullptr || limits.are_set(); }
  /// What the masks of scores add to one; −inf: the key is masked.
  double mask_at(std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j) const noexcept {
    if (limits.are_set() && limits.hide(b, i, j)) return -std::numeric_limits<double>::infinity();
    return mask.data != nullptr ? mask.at(b, h, i, j) : 0.0;
  }
  /// The range of keys of a sequence that its queries attend to; all others are never read.
  KeyRange visible_keys(std::int64_t b) const noexcept {
    KeyRange all{k.sequence, 0, 0};
    for (std::int64_t i = 0; i < q.sequence; ++i) {
      const KeyRange& one = key_range(b, i);
      if (one.begin >= one.end) continue;
      all.begin = std::min(all.begin, one.begin);
      all.end = std::max(all.end, one.end);
    }
    return all;
  }
  /// What the bias knows about the tokens.
  terms::Tokens tokens() const noexcept {
    return {places, key_ranges.data(), key_range_stride, gate_sums, q.heads, k.sequence, std::ssize(key_ranges)};
  }
};

/// The backward job: also where gradients go.
struct BackwardJob {
  AttentionJob forward;  // out and logsumexp are those of the forward pass, computed before
  HeadTensor<const void> d_out;
  HeadTensor<void> dq, dk, dv;  // null data: not requested
  // Sums for the position's parameters; empty: not requested.
  std::vector<double> parameters;  // [heads, parameters of a head]
  std::int64_t head_parameters = 0;
  std::vector<double> query_vectors, key_vectors, value_vectors;  // [heads, rows, features]
  std::int64_t query_rows = 0, key_rows = 0, value_rows = 0;
  std::vector<double> query_offsets;    // [heads, features of the vectors]
  HeadTensor<void> d_position_queries;  // null data: not requested
  std::vector<double> d_gate_sums;      // [batch, heads, keys]; empty: not requested
  // [key heads]: the reference, which uses weights of its own, found that the caller's logsumexp is of other keys as
  // well; empty: there is none of the caller's.
  std::vector<std::uint8_t> has_other_keys;

  /// The part of one head of one sequence, [keys]; null: not requested.
  double* gate_gradient(std::int64_t b, std::int64_t h) noexcept {
    if (d_gate_sums.empty()) return nullptr;
    return d_gate_sums.data() + (b * forward.q.heads + h) * forward.k.sequence;
  }
};

/// A backend. Arguments are checked before the call; the reference defines the results.
struct AttentionBackend {
  std::string_view name;
  const kernels::Backend* kernels;  // rotates if it is not done on load
  bool rotates_on_load;             // f32, f16 and bf16, unless weights are requested
  void (*forward)(const AttentionJob&);
  void (*backward)(BackwardJob&);
  /// Takes the memory that forward takes, and does nothing else, while kernels::CountMemory is counting. Null: it has
  /// none that a workspace could hold.
  void (*count)(const AttentionJob&);
};
extern const AttentionBackend kReferenceAttention;
extern const AttentionBackend kCpuAttention;

}  // namespace posenc::attend
