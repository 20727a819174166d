#pragma once

// The parameters that the host passes to the attention kernels for any GPU of compute capability 8.0 or newer.

#include <cstdint>

#include "kernels/cuda/params.h"

namespace posenc::attend::cuda {

/// A tensor [batch, heads, tokens, features] of 16-bit numbers, or of float32 for attention_f32; strides in elements.
struct Sm80Tensor {
  void* data;
  std::int64_t batch, head, token, feature;
  std::int32_t features;
  std::int32_t is_whole;  // features contiguous, rows 16-byte aligned, a multiple of 8 features
  // A pool of pages: token t of sequence b is token t % page_tokens of page pages[b · page_row + t / page_tokens],
  // and `batch` is the stride between pages. Null: the tokens of a sequence follow each other.
  const std::int32_t* pages;
  std::int32_t page_row, page_tokens, page_count;
};

/// The keys that each query attends to, as in KeyRange.
struct KeyRangeParams {
  const std::int32_t* key_ranges;  // [batch or 1, queries, 3]: begin, end, diagonal; null: computed from what follows
  std::int64_t batch_stride;
  std::int32_t offset;              // keys − queries
  std::int32_t is_causal, window;   // window 0: none
  const std::uint8_t* key_mask;     // [batch, keys], 0: masked; null: all visible
  const std::int32_t* key_lengths;  // [batch], not checked by the host; null: all keys
  kernels::cuda::Fault* fault;
};

enum Sm80Bias : std::int32_t { kSm80None, kSm80Slopes, kSm80Table };
struct Sm80BiasParams {
  std::int32_t kind;
  const float* slopes;  // [heads]
  const float* table;   // [heads, count]: the bias at δ = first, first + 1 …; past an end, the last entry there
  const std::int32_t* rows;  // [count]: the row of the learned table for each
  std::int64_t first, count;
  std::int32_t by_index;  // δ = key − diagonal − shift; else the key's id − the query's id
  std::int64_t shift;
  kernels::cuda::PositionParams queries, keys;
};

/// What all of these kernels read. It fills whole words, so that all compilers put what a derived struct adds in the
/// same place.
struct Sm80Inputs {
  Sm80Tensor q, k, v;
  KeyRangeParams key_range;
  Sm80BiasParams bias;
  std::int32_t batch, heads, key_heads, queries, keys;
  float scale;
};

/// What attention writes.
struct Sm80Outputs : Sm80Inputs {
  Sm80Tensor out;
  float* logsumexp;  // null: not wanted
  std::int64_t lse_batch, lse_head, lse_token;
};

struct Sm80Params : Sm80Outputs {
  std::int32_t row_blocks;
};

/// Per row, before the gradients: delta = Σ d_out · out, and −logsumexp in powers of two: both [batch · heads,
/// queries].
struct Sm80RowsParams {
  Sm80Tensor out, d_out;
  const float* logsumexp;
  std::int64_t lse_batch, lse_head, lse_token;
  float *neg_lse, *delta;
  std::int32_t heads, queries;
  std::int64_t rows;
};

struct Sm80BackwardParams : Sm80Inputs {
  Sm80Tensor d_out, dq, dk, dv;  // null data: not wanted
  const float *neg_lse, *delta;
  double* sums;  // of the bias's parameters: slopes [heads], a table [heads, sum_rows]; null: not wanted
  std::int32_t sum_rows, row_blocks, key_blocks;
};

/// out[h, n] = table[entries[n], h].
struct SpreadTableParams {
  float* out;
  std::int32_t* rows;  // the entries as i32
  kernels::cuda::TableParams table;
  const std::int64_t* entries;
  std::int64_t count;
  std::int32_t heads;
};

/// gradient += sums; [n, heads] or [heads], from [heads, n].
struct AddSumsParams {
  const double* sums;
  void* gradient;
  std::int32_t type;
  std::int64_t row_stride, head_stride, rows;
  std::int32_t heads;
};

/// Few queries over many keys. Rows are queries × the heads of one key head, at most 16. Every warp of a block sums
/// its own share of the keys; `parts` are joined afterwards.
struct DecodeParams : Sm80Outputs {
  float* part_sums;  // [batch · heads, queries, parts, 2]: the maximum in powers of two, and the sum
  float* parts_out;  // [batch · heads, queries, parts, features]
  std::int32_t splits, keys_of_split, parts;
};
constexpr int kDecodeRows = 16, kDecodeKeys = 16, kDecodeWarps = 4;
/// Steps of 16 keys that a warp has in flight, and a block's memory for them: 96 KiB.
constexpr int decode_stages(int features) { return 3 * 128 / features; }
constexpr int decode_bytes(int features) {
  return kDecodeWarps * decode_stages(features) * kDecodeKeys * features * 4;
}

constexpr int kSm80Rows = 64;  // query rows, or keys, per block: 16 for each of four warps
constexpr int keys_of_tile(int features) { return features > 128 ? 32 : 64; }  // keys of a tile
constexpr int rows_of_other(int features) {
  return features > 128 ? 16 : 32;
}  // rows of the other side, for gradients
constexpr int sm80_pitch(int features) { return features + 8; }  // avoids bank conflicts
constexpr int sm80_forward_bytes(int features) {
  return (kSm80Rows + 2 * keys_of_tile(features)) * sm80_pitch(features) * 2 + 3 * kSm80Rows * 4 +
         keys_of_tile(features) * 4;
}

/// Queries and keys per tile in a block of attention_f32, and its shared memory: q, keys or values, and weights.
constexpr int wide_rows(int features) { return features > 128 ? 32 : 64; }
constexpr int wide_bytes(int features) {
  return (2 * wide_rows(features) * (features + 4) + wide_rows(features) * (wide_rows(features) + 4)) * 4;
}

constexpr int sm80_backward_bytes(int features) {
  return 2 * (kSm80Rows + rows_of_other(features)) * sm80_pitch(features) * 2 + 6 * kSm80Rows * 4;
}

}  // namespace posenc::attend::cuda
