#pragma once

// The parameters that the host passes to the attention kernels.

#include <cstdint>

#include "kernels/cuda/params.h"

namespace posenc::attend::cuda {

/// How the kernels apply the position; kRotation: no bias, and q is rotated as it is loaded (forward only).
enum BiasKind : int { kNoBias = 0, kSlopeBias = 1, kDistanceBias = 2, kRotation = 3 };

constexpr int kRowTile = 128;       // query rows per block, 64 for each computing warpgroup
constexpr int kKeyTile = 128;       // keys per tile
constexpr int kMostDistance = 256;  // from here on at the latest, a bias by distance is constant
constexpr int kTableSize = 640;     // distances −(kKeyTile − 1) … 511, then the bias far away
static_assert(kTableSize > kKeyTile - 1 + kMostDistance + kRowTile + kKeyTile - 1 && kTableSize % 4 == 0);

/// Causal attention with as many queries as keys.
struct ForwardParams {
  void* out;
  std::int64_t out_batch, out_head, out_token;  // strides, in elements
  float* logsumexp;                             // null: not wanted
  std::int64_t lse_batch, lse_head, lse_token;
  const float* bias;  // slopes [heads], or [heads, kTableSize] from expand_distances
  int* counter;       // two, both 0 before and after the launch
  std::int32_t heads, key_heads, batch_heads, sequence, row_blocks, group;
  std::int32_t tail;  // the distance from which the bias is constant
  float scale;
  // For kRotation: [row_blocks · kRowTile, features], from rotate_and_keep: the cosines and sines of every query.
  // Past the last query they may hold anything: those rows of q are zeros, and the result is not read.
  const float* cos_sin;
  std::int32_t is_interleaved;  // pairs are adjacent
};
/// Shared memory of a block: two q, two tiles each of k and v, and 6 KiB of tables and barriers (if q is rotated, 24
/// or 12 KiB of cosines and sines in place of tables, and 1 KiB); plus room for alignment.
constexpr int forward_shared_bytes(int kind, int features) {
  return 6 * kRowTile * features * 2 + (kind == kRotation ? 192 * features + 1024 : 6 * 1024) + 1024;
}

constexpr int kQueryTile = 64;  // queries per tile of the backward pass
constexpr int kBackwardStages = 2;
/// Shared memory of a block: k and v, two tiles each of q, d_out and dS, and 12 KiB of rows, tables and barriers;
/// plus room for alignment.
constexpr int backward_shared_bytes(int features) {
  return (2 * kKeyTile * 2 + 2 * kBackwardStages * kQueryTile * 2) * features +
         kBackwardStages * kKeyTile * kQueryTile * 2 + 12 * 1024 + 1024;
}

/// The gradients of ForwardParams' attention. Rows of a head are padded to a multiple of kQueryTile: "padded".
struct BackwardParams {
  const float* neg_lse;  // [batch · heads, padded], from backward_rows
  const float* delta;    // the same
  float* dq;             // [batch · heads, tiles, features / 64, 8, 128, 4], sums in register order
  const float* bias;     // as in ForwardParams
  float* d_distances;    // [heads, kMostDistance], zeros before; null: not wanted
  int* counter;
  void *dk, *dv;  // null: not wanted
  std::int64_t dk_batch, dk_head, dk_token, dv_batch, dv_head, dv_token;
  std::int32_t heads, key_heads, batch_keys, sequence, key_blocks, tiles, group;
  std::int32_t tail, tasks;  // where the bias becomes constant; diagonals to be summed, a multiple of 8
  std::int32_t near;         // tiles of a key block that need a mask or a bias
  float scale, scale2;       // scale2: in powers of two
};

/// Per row, before the backward pass: delta = Σ d_out · out, and the logsumexp as the kernel needs it; zeros for dq.
struct BackwardRowsParams {
  const void *out, *d_out;
  std::int64_t out_batch, out_head, out_token, d_out_batch, d_out_head, d_out_token;
  const float* logsumexp;
  std::int64_t lse_batch, lse_head, lse_token;
  const float* bias;
  float *neg_lse, *delta, *dq;  // dq null: none
  std::int32_t kind, heads, sequence, padded, features;
  std::int64_t rows;  // batch · heads · padded
};

/// dq from register order to rows.
struct BackwardQueriesParams {
  const float* sums;
  void* dq;
  std::int64_t dq_batch, dq_head, dq_token;
  float scale;
  std::int32_t heads, sequence, tiles, halves;
};

/// A table's gradient from the sums by distance.
struct TableGradientParams {
  const float* d_distances;  // [heads, kMostDistance]
  void* gradient;            // [rows, heads]; added to
  std::int32_t type;
  std::int64_t row_stride, head_stride, rows;
  const std::int64_t* entries;
  std::int32_t heads, tail;
  std::int32_t has_far;  // some query and key are at least tail apart
};

struct ExpandParams {
  float* out;  // [heads, kTableSize]
  kernels::cuda::TableParams table;
  const std::int64_t* entries;
  std::int64_t first, count;
  std::int32_t tail;
  double scale;
};

}  // namespace posenc::attend::cuda
