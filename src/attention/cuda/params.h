#pragma once

// The parameters that the host passes to the attention kernels.

#include <cstdint>

#include "kernels/cuda/params.h"

namespace posenc::attend::cuda {

/// How the kernels apply the position; kRotation: no bias, and q is rotated as it is loaded (forward only).
enum BiasKind : int { kNoBias = 0, kSlopeBias = 1, kDistanceBias = 2, kRotation = 3 };

constexpr int kRowTile = 128;       // query rows per block, 64 for each computing warpgroup
constexpr int kKeyTile = 128;       // keys per tile
constexpr int kMostDistance = 256;  // from here on at the latest, a bias by distance is constant, on either side
constexpr int kTableSize = 1024;    // distances −kTableMiddle … kTableMiddle, then the bias far to the left
constexpr int kTableMiddle = kTableSize / 2 - 1;
// All pairs of a tile of 64 × 128 that has some pair closer than kMostDistance.
static_assert(kTableMiddle >= kMostDistance + 64 + kKeyTile - 2 && kTableSize % 4 == 0);

/// The keys that each query attends to, a band of the matrix of scores: key − query is from `least` to `most`. That is
/// causal attention and all keys, with and without a window, for any number of queries and keys. And the distance of
/// a pair, query + origin − key, positive to the left.
struct Band {
  std::int32_t queries, keys;
  std::int32_t least, most;
  std::int32_t origin;
  // From a distance of `tail` on, a bias by distance is constant; also from −right_tail down. For slopes, tail is 0
  // where the sign of the distance changes. If no query attends to a key at a distance below 0, right_tail is kNever,
  // and the tail of slopes −kNever.
  std::int32_t tail, right_tail;

  /// The band of one of several packed sequences: `this` is that of a sequence with as many queries as keys.
  constexpr Band of(std::int32_t its_queries, std::int32_t its_keys) const {
    const std::int32_t diagonal = its_keys - its_queries;
    return {its_queries, its_keys, least + diagonal, most + diagonal, origin + diagonal, tail, right_tail};
  }

  /// Whether the keys that are hidden to the right are those at distances below 0, as in causal attention: the kernels
  /// without "_both" in their names.
  constexpr bool is_one_sided() const { return most == origin; }
};
constexpr std::int32_t kNever = 1 << 29;  // beyond all indices and distances; sums of two fit in 32 bits
/// Of queries, of keys, and of the origin to either side: distances are then exact in float32.
constexpr std::int32_t kMostTokens = 0x7FFFFF;

/// A block of rows (for gradients, of keys) of one of several packed sequences.
struct PackedBlock {
  std::int32_t first_query, first_key;  // of the sequence, in the tensors
  std::int32_t queries, keys;           // of the sequence
  std::int32_t block;                   // within the sequence
  std::int32_t first_tile;              // of the sequence, for gradients: see BackwardParams
};

struct ForwardParams {
  void* out;
  std::int64_t out_batch, out_head, out_token;  // strides, in elements
  float* logsumexp;                             // null: not wanted
  std::int64_t lse_batch, lse_head, lse_token;
  const float* bias;  // slopes [heads], or [heads, kTableSize] from expand_distances
  int* counter;       // two, both 0 before and after the launch
  std::int32_t heads, key_heads, batch_heads, row_blocks, group;
  Band band;
  const PackedBlock* packed;  // [row_blocks], the longest first; null: one sequence per element of the batch
  float scale;
  // For kRotation: [row_blocks · kRowTile, features], from rotate_and_keep: the cosines and sines of every query.
  // Past the last query they may hold anything: those rows of q are zeros, and the result is not read.
  const float* cos_sin;
  std::int32_t is_interleaved;  // pairs are adjacent
};
/// Keys per tile of the forward pass, and row blocks of q in shared memory, by the features of q and k.
constexpr int key_tile_of(int features) { return features > 192 ? 64 : 128; }
constexpr int row_blocks_of(int features) { return features > 128 ? 1 : 2; }
/// Whether the product of q and k adds slopes, by more features.
constexpr bool adds_slopes_by_product(int features) { return features <= 128; }
/// Shared memory of a block: q, two tiles each of k and v, and 9 KiB of tables and barriers (if q is rotated, 24 or 12
/// KiB of cosines and sines in place of tables, and 1 KiB); plus room for alignment.
constexpr int forward_shared_bytes(int kind, int features, int values) {
  return 2 * (row_blocks_of(features) * kRowTile * features + 2 * key_tile_of(features) * (features + values)) +
         (kind == kRotation ? 192 * features + 1024 : 9 * 1024) +
         (kind == kSlopeBias && adds_slopes_by_product(features) ? key_tile_of(features) * 128 : 0) + 1024;
}

constexpr int kQueryTile = 64;  // queries per tile of the backward pass
constexpr int kBackwardStages = 2;
/// Sums along the diagonals of dS are kept for distances from −kBelow on: all pairs of a tile that has some pair right
/// of the diagonal and closer than kMostDistance, and 8 more, because the sums start at multiples of 8.
constexpr int kBelow = 456;
static_assert(kBelow >= kMostDistance + kKeyTile + kQueryTile - 2 + 8 && kBelow % 8 == 0);
constexpr int kDiagonalTasks = ((kBelow + kMostDistance) / 8 + 1) * 8;
/// Keys of a key block, by the features of q and k.
constexpr int key_block_of(int features) { return features > 128 ? 64 : 128; }
/// Shared memory of a block: k and v, two tiles each of q, d_out and dS, 6 KiB of rows, a table and barriers, and the
/// sums along diagonals; in blocks of 64 keys two tiles of weights, and 2 KiB of rows and barriers; plus room for
/// alignment. For 256 features that is all there is, 227 KiB.
constexpr int backward_shared_bytes(int kind, int features, int values) {
  const int keys = key_block_of(features), tiles = kBackwardStages * keys * kQueryTile * 2;
  return 2 * (keys + kBackwardStages * kQueryTile) * (features + values) +
         (keys == 64 ? 2 * tiles + 2 * 1024 : tiles + (kind == kDistanceBias ? 28 : 6) * 1024) + 1024;
}
static_assert(backward_shared_bytes(kDistanceBias, 256, 256) <= 227 * 1024);

/// A tile of queries of packed sequences: its first row in the tensors, and its rows.
struct PackedTile {
  std::int32_t first, count;
};

/// The gradients of ForwardParams' attention. Rows of a head are padded to a multiple of kQueryTile, "padded"; of packed
/// sequences, those of each sequence.
struct BackwardParams {
  const float* neg_lse;  // [batch · heads, padded], from backward_rows
  const float* delta;    // the same
  float* dq;             // [batch · heads, tiles, features / 64, 8, 128, 4], sums in register order
  const float* bias;     // as in ForwardParams
  float* d_distances;    // [heads, 2 · kMostDistance], see TableGradientParams; zeros before; null: not wanted
  int* counter;
  void *dk, *dv;  // null: not wanted
  std::int64_t dk_batch, dk_head, dk_token, dv_batch, dv_head, dv_token;
  std::int32_t heads, key_heads, batch_keys, key_blocks, tiles, group;
  Band band;
  const PackedBlock* packed;  // [key_blocks], the longest first; null: one sequence per element of the batch
  float scale, scale2;        // scale2: in powers of two
};

/// Per row, before the backward pass: delta = Σ d_out · out, and the logsumexp as the kernel needs it; zeros for dq.
struct BackwardRowsParams {
  const void *out, *d_out;
  std::int64_t out_batch, out_head, out_token, d_out_batch, d_out_head, d_out_token;
  const float* logsumexp;
  std::int64_t lse_batch, lse_head, lse_token;
  const float* bias;
  float *neg_lse, *delta, *dq;  // dq null: none
  const PackedTile* packed;     // [padded / kQueryTile]; null: rows 0 … sequence − 1
  std::int32_t kind, heads, sequence, padded, features, values;  // features of q, and of out
  std::int64_t rows;                                             // batch · heads · padded
};

/// dq from register order to rows.
struct BackwardQueriesParams {
  const float* sums;
  void* dq;
  std::int64_t dq_batch, dq_head, dq_token;
  const PackedTile* packed;  // [tiles]; null: rows 0 … sequence − 1
  float scale;
  std::int32_t heads, sequence, tiles, panels;  // panels of 64 features
};

/// A table's gradient from the sums by distance.
struct TableGradientParams {
  const float*
      d_distances;  // [heads, 2 · kMostDistance]: at kMostDistance + d, the sum over all pairs at distance d;
                    // at 0, over all from −right_tail down
  void* gradient;   // [rows, heads]; added to
  std::int32_t type;
  std::int64_t row_stride, head_stride, rows;
  const std::int64_t* entries;
  std::int64_t first, count;  // of the entries, as in DistanceMap
  std::int32_t heads, tail, right_tail;
  std::int32_t has_far;  // some query attends to a key at least tail to its left
};

struct ExpandParams {
  float* out;  // [heads, kTableSize]
  kernels::cuda::TableParams table;
  const std::int64_t* entries;
  std::int64_t first, count;  // of the entries, as in DistanceMap
  double scale;
  std::int32_t is_one_sided;  // distances below 0 are hidden
};

}  // namespace posenc::attend::cuda
