#pragma once

// The building blocks of the attention kernels for any GPU: matrix products of a warp (mma.sync, compute capability
// 8.0), tiles in shared memory, the keys that a query attends to, and the bias of a pair. POSENC_F16 is 1 for f16 and
// 0 for bf16.

#include "attention/cuda/hopper.cuh"
#include "attention/cuda/sm80_params.h"
#include "kernels/cuda/fault.cuh"

namespace posenc::attend::cuda {

constexpr float kSm80Log2e = 1.4426950408889634f, kSm80Ln2 = 0.6931471805599453f;

/// c[16 × 8] += a[16 × 16] b[16 × 8]. A lane holds rows lane / 4 and + 8, columns 2 (lane % 4) and + 1 of c.
__device__ __forceinline__ void multiply(float* c, const std::uint32_t* a, const std::uint32_t* b) {
#if POSENC_F16
#define POSENC_MMA "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
#else
#define POSENC_MMA "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32"
#endif
  asm volatile(POSENC_MMA " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
               : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
/// Loads four 8 × 8 matrices; lane n gives the address of row n % 8 of matrix n / 8. kAcross: transposed.
template <bool kAcross> __device__ __forceinline__ void load_matrices(std::uint32_t (&r)[4], std::uint32_t address) {
  if constexpr (kAcross) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(address)
                 : "memory");
  } else {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(address)
                 : "memory");
  }
}

/// A tile of rows in shared memory; `base` is its address.
template <int kPitch> struct Tile {
  std::uint32_t base;
  __device__ __forceinline__ std::uint32_t at(int row, int column) const {
    return base + static_cast<std::uint32_t>((row * kPitch + column) * 2);
  }
  /// The left factor: rows row … row + 15, columns column … column + 15.
  __device__ __forceinline__ void left(std::uint32_t (&a)[4], int row, int column, int lane) const {
    load_matrices<false>(a, at(row + lane % 16, column + lane / 16 * 8));
  }
  /// The right factor, multiplied transposed: columns are summed over. Two products: rows row … + 7 and + 8 … + 15.
  __device__ __forceinline__ void right_of_columns(std::uint32_t (&b)[4], int row, int column, int lane) const {
    load_matrices<false>(b, at(row + lane % 8 + lane / 16 * 8, column + lane / 8 % 2 * 8));
  }
  /// The right factor as stored: rows are summed over. Two products: columns column … + 7 and + 8 … + 15.
  __device__ __forceinline__ void right_of_rows(std::uint32_t (&b)[4], int row, int column, int lane) const {
    load_matrices<true>(b, at(row + lane % 8 + lane / 8 % 2 * 8, column + lane / 16 * 8));
  }
};

/// s += the products of 16 columns of the left factor, `a`, with those from `column` on of a tile's rows.
template <int kFragments, int kPitch>
__device__ __forceinline__ void multiply_columns(float (&s)[kFragments][4], const std::uint32_t (&a)[4],
                                                 const Tile<kPitch>& right, int column, int lane) {
#pragma unroll
  for (int n = 0; n < kFragments / 2; ++n) {
    std::uint32_t b[4];
    right.right_of_columns(b, 16 * n, column, lane);
    multiply(s[2 * n], a, b);
    multiply(s[2 * n + 1], a, b + 2);
  }
}
/// sums += weights · the rows of a tile; a weight is two packed numbers.
template <int kFragments, int kWeights, int kPitch>
__device__ __forceinline__ void add_weighted(float (&sums)[kFragments][4],
                                             const std::uint32_t (&weights)[kWeights][2], const Tile<kPitch>& right,
                                             int lane) {
#pragma unroll
  for (int n = 0; n < kWeights / 2; ++n) {
    const std::uint32_t a[4] = {weights[2 * n][0], weights[2 * n][1], weights[2 * n + 1][0], weights[2 * n + 1][1]};
#pragma unroll
    for (int f = 0; f < kFragments / 2; ++f) {
      std::uint32_t b[4];
      right.right_of_rows(b, 16 * n, 16 * f, lane);
      multiply(sums[2 * f], a, b);
      multiply(sums[2 * f + 1], a, b + 2);
    }
  }
}
/// Writes row r of the two that a lane holds, times a factor; zeros if `is_empty`.
template <int kFragments> __device__ __forceinline__ void write_row(const Sm80Tensor& x, std::int64_t batch,
                                                                    std::int64_t head, int row,
                                                                    const float (&sums)[kFragments][4], int r,
                                                                    float factor, int lane, bool is_empty = false) {
  auto* const to = static_cast<std::uint16_t*>(x.data) + batch * x.batch + head * x.head + row * x.token;
#pragma unroll
  for (int f = 0; f < kFragments; ++f) {
    const int column = 8 * f + 2 * (lane % 4);
    const std::uint32_t two = is_empty ? 0u : pack(sums[f][2 * r] * factor, sums[f][2 * r + 1] * factor);
    if (column < x.features) to[column * x.feature] = static_cast<std::uint16_t>(two);
    if (column + 1 < x.features) to[(column + 1) * x.feature] = static_cast<std::uint16_t>(two >> 16);
  }
}

/// Elements from the start of a head to a token of sequence `batch`. A page out of range is replaced by page 0 and
/// stored in `bad_page`.
__device__ __forceinline__ std::int64_t token_offset(const Sm80Tensor& x, std::int64_t batch, int token,
                                                     std::int32_t& bad_page) {
  if (x.pages == nullptr) return batch * x.batch + token * x.token;
  const int at = token / x.page_tokens;
  std::int32_t page = x.pages[batch * x.page_row + at];
  if (static_cast<std::uint32_t>(page) >= static_cast<std::uint32_t>(x.page_count)) bad_page = page, page = 0;
  return page * x.batch + (token - at * x.page_tokens) * x.token;
}
/// Not a valid page number.
constexpr std::int32_t kNoBadPage = 0x7FFFFFFF;
__device__ __forceinline__ void report_page(const KeyRangeParams& p, const Sm80Tensor& x, std::int32_t bad_page) {
  if (bad_page != kNoBadPage) [[unlikely]]
    kernels::cuda::report(p.fault, kernels::cuda::Fault::kPage, bad_page, x.page_count);
}

/// Loads rows first … first + kRows − 1 of a head, with zeros before `begin`, from `end` on, where `mask` is 0, and
/// past the features. Called by all threads of the block.
template <int kRows, int kFeatures>
__device__ __forceinline__ void load_tile(std::uint16_t* to, const Sm80Tensor& x, std::int64_t batch,
                                          std::int64_t head, int first, int begin, int end, const std::uint8_t* mask,
                                          std::int32_t& bad_page) {
  constexpr int kPitch = sm80_pitch(kFeatures), kVectors = kFeatures / 8;
  const auto* const from = static_cast<const std::uint16_t*>(x.data) + head * x.head;
  for (int n = static_cast<int>(kernels::cuda::thread()); n < kRows * kVectors;
       n += static_cast<int>(kernels::cuda::threads())) {
    const int row = n / kVectors, column = n % kVectors * 8, token = first + row;
    kernels::cuda::Bytes16 eight{0, 0, 0, 0};
    if (token >= begin && token < end && (mask == nullptr || mask[token] != 0) && column < x.features) {
      const std::uint16_t* const at = from + token_offset(x, batch, token, bad_page) + column * x.feature;
      if (x.is_whole != 0) {
        eight = *reinterpret_cast<const kernels::cuda::Bytes16*>(at);
      } else {
        const auto two = [&](int f) {
          const std::uint32_t low = column + f < x.features ? at[f * x.feature] : 0,
                              high = column + f + 1 < x.features ? at[(f + 1) * x.feature] : 0;
          return low | high << 16;
        };
        eight = {two(0), two(2), two(4), two(6)};
      }
    }
    *reinterpret_cast<kernels::cuda::Bytes16*>(to + row * kPitch + column) = eight;
  }
}

/// For tensors without pages.
template <int kRows, int kFeatures> __device__ __forceinline__ void load_tile(std::uint16_t* to, const Sm80Tensor& x,
                                                                              std::int64_t batch, std::int64_t head,
                                                                              int first, int begin, int end,
                                                                              const std::uint8_t* mask) {
  std::int32_t unused = kNoBadPage;
  load_tile<kRows, kFeatures>(to, x, batch, head, first, begin, end, mask, unused);
}

struct KeyRange {
  int begin, end, diagonal;
};
__device__ __forceinline__ KeyRange key_range_of(const KeyRangeParams& p, std::int64_t batch, int query, int queries,
                                                 int keys) {
  if (query >= queries) return {0, 0, 0};
  if (p.key_ranges != nullptr) {
    const std::int32_t* const at = p.key_ranges + 3 * (batch * p.batch_stride + query);
    return {at[0], at[1], at[2]};
  }
  KeyRange seen{0, keys, query + p.offset};
  if (p.key_lengths != nullptr) {
    const std::int32_t length = p.key_lengths[batch];
    seen.end = static_cast<std::uint32_t>(length) <= static_cast<std::uint32_t>(keys) ? length : 0;
    seen.diagonal = query + seen.end - queries;
  }
  if (p.is_causal != 0 && seen.diagonal + 1 < seen.end) seen.end = seen.diagonal + 1;
  if (p.window > 0) {
    if (seen.diagonal - p.window + 1 > seen.begin) seen.begin = seen.diagonal - p.window + 1;
    if (seen.diagonal + p.window < seen.end) seen.end = seen.diagonal + p.window;
  }
  if (seen.end <= seen.begin) seen.begin = seen.end = 0;
  return seen;
}

/// Reports a length that is out of range, which key_range_of treats as 0.
__device__ __forceinline__ void check_length(const KeyRangeParams& p, std::int64_t batch, int keys) {
  if (p.key_lengths == nullptr || kernels::cuda::thread() != 0) return;
  const std::int32_t length = p.key_lengths[batch];
  if (static_cast<std::uint32_t>(length) > static_cast<std::uint32_t>(keys)) [[unlikely]]
    kernels::cuda::report(p.fault, kernels::cuda::Fault::kLength, length, keys);
}

/// δ of a query and a key, clamped to 32 bits, which is past the end of every table.
struct QueryPlace {
  std::int64_t id;  // the query's id, or diagonal + shift
};
__device__ __forceinline__ std::int64_t id_of(const kernels::cuda::PositionParams& p, std::int64_t batch,
                                              std::int64_t token) {
  return p.ids == nullptr ? p.first + token : p.ids[batch * p.batch_stride + token];
}
__device__ __forceinline__ QueryPlace place_of(const Sm80BiasParams& p, std::int64_t batch, int query, int queries,
                                               int diagonal) {
  if (p.kind == kSm80None || query >= queries) return {0};
  return {p.by_index != 0 ? diagonal + p.shift : id_of(p.queries, batch, query)};
}
__device__ __forceinline__ std::int64_t key_place_of(const Sm80BiasParams& p, std::int64_t batch, int key, int keys) {
  if (p.kind == kSm80None || key >= keys) return 0;
  return p.by_index != 0 ? key : id_of(p.keys, batch, key);
}
/// The entry of the table for a distance.
__device__ __forceinline__ std::int64_t entry_at(const Sm80BiasParams& p, std::int64_t delta) {
  const std::int64_t at = delta - p.first;
  return at < 0 ? 0 : at >= p.count ? p.count - 1 : at;
}
/// The bias added to the score, in powers of two.
__device__ __forceinline__ float bias_of(const Sm80BiasParams& p, int head, std::int64_t delta) {
  if (p.kind == kSm80None) return 0;
  if (p.kind == kSm80Slopes) return -p.slopes[head] * kSm80Log2e * static_cast<float>(delta < 0 ? -delta : delta);
  return p.table[head * p.count + entry_at(p, delta)] * kSm80Log2e;
}

/// A block of kSm80Rows queries of one head, 16 for each of four warps: which one it is, and the keys that its queries
/// attend to. In causal attention the longest blocks come first.
struct RowBlock {
  int bh, batch, head, key_head, row0;
  int lane, warp, my_row;    // a lane holds rows my_row and my_row + 8
  const std::uint8_t* mask;  // of the keys; null: none
  int lowest, highest;       // no query attends to a key outside
  KeyRange seen[2];
  QueryPlace place[2];
};
template <class Params> __device__ __forceinline__ RowBlock row_block_of(const Params& p) {
  using namespace kernels::cuda;
  RowBlock at{};
  at.bh = static_cast<int>(block() / static_cast<unsigned>(p.row_blocks));
  at.batch = at.bh / p.heads, at.head = at.bh - at.batch * p.heads;
  at.key_head = at.head / (p.heads / p.key_heads);
  at.row0 = (p.row_blocks - 1 - static_cast<int>(block() % static_cast<unsigned>(p.row_blocks))) * kSm80Rows;
  at.lane = static_cast<int>(thread() % 32), at.warp = static_cast<int>(thread() / 32);
  at.my_row = at.warp * 16 + at.lane / 4;
  at.mask = p.key_range.key_mask == nullptr ? nullptr : p.key_range.key_mask + std::int64_t{at.batch} * p.keys;
  return at;
}
/// Finds the visible keys, using `limits`, 2 · kSm80Rows numbers in shared memory. Called by all threads of the block;
/// it also synchronizes them, so tiles loaded before the call can be read after it.
template <class Params> __device__ __forceinline__ void find_keys(const Params& p, int* limits, RowBlock& at) {
  using namespace kernels::cuda;
  check_length(p.key_range, at.batch, p.keys);
  if (thread() < kSm80Rows) {
    const KeyRange seen =
        key_range_of(p.key_range, at.batch, at.row0 + static_cast<int>(thread()), p.queries, p.keys);
    limits[thread()] = seen.begin;
    limits[kSm80Rows + thread()] = seen.end;
  }
  sync_block();
  at.lowest = p.keys, at.highest = 0;
  for (int row = 0; row < kSm80Rows; ++row) {
    const int begin = limits[row], end = limits[kSm80Rows + row];
    if (begin >= end) continue;
    at.lowest = begin < at.lowest ? begin : at.lowest;
    at.highest = end > at.highest ? end : at.highest;
  }
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const int query = at.row0 + at.my_row + 8 * r;
    at.seen[r] = key_range_of(p.key_range, at.batch, query, p.queries, p.keys);
    at.place[r] = place_of(p.bias, at.batch, query, p.queries, at.seen[r].diagonal);
  }
}

}  // namespace posenc::attend::cuda
