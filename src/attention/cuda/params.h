#pragma once

// What the host hands to the kernels of attention.

#include <cstdint>

#include "kernels/cuda/params.h"

namespace posenc::attend::cuda {

enum BiasKind : int { kNoBias = 0, kSlopeBias = 1, kDistanceBias = 2 };

constexpr int kRowTile = 128;       // query rows of a block, 64 for each warpgroup that computes
constexpr int kKeyTile = 128;       // keys of a tile
constexpr int kMostDistance = 256;  // from here on, at the latest, a bias by distance is constant
constexpr int kTableSize = 640;     // distances −(kKeyTile − 1) … 511, then the bias far away
static_assert(kTableSize > kKeyTile - 1 + kMostDistance + kRowTile + kKeyTile - 1 && kTableSize % 4 == 0);

/// Causal attention with as many queries as keys.
struct ForwardParams {
  void* out;
  std::int64_t out_batch, out_head, out_token;  // strides, in elements
  float* logsumexp;                             // null: not wanted
  std::int64_t lse_batch, lse_head, lse_token;
  const float* bias;  // slopes [heads], or [heads, kTableSize] from expand_distances
  int* counter;       // two, 0 before the launch and after it
  std::int32_t heads, key_heads, batch_heads, sequence, row_blocks, group;
  std::int32_t tail;  // the distance from which on the bias is constant
  float scale;
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
