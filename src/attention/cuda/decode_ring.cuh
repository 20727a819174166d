#pragma once

// How a warp of decode_sm80 reads keys and values: whole lines into its own ring in shared memory, some steps ahead, in
// the order in which the matrix products want them. It waits for no other warp.

#include "attention/cuda/sm80.cuh"

namespace posenc::attend::cuda {

using kernels::cuda::Bytes16;
constexpr int kFeatures = POSENC_FEATURES;
constexpr int kStages = decode_stages(kFeatures), kLoads = kFeatures / 8;
constexpr int kChunks = kFeatures / 32, kWide = kFeatures / 64;
constexpr int kStep = kDecodeWarps * kDecodeKeys;

/// The share of a block: the keys of one key head in one split.
struct Share {
  int split, batch, key_head, per_key;
  const std::uint8_t* mask;
};
__device__ __forceinline__ Share share_of(const DecodeParams& p) {
  const int split = static_cast<int>(kernels::cuda::block()) % p.splits,
            at = static_cast<int>(kernels::cuda::block()) / p.splits;
  const int batch = at / p.key_heads;
  return {split, batch, at - batch * p.key_heads, p.heads / p.key_heads,
          p.key_range.key_mask == nullptr ? nullptr : p.key_range.key_mask + std::int64_t{batch} * p.keys};
}

/// Keys lowest to end are attended to by some query of the block; those from inner_begin to inner_end by all of them, and
/// no query is placed before least_place: steps within need no check of single keys. A warp begins at start.
struct Reach {
  int lowest, end, start, inner_begin, inner_end;
  std::int64_t least_place;
};
__device__ __forceinline__ Reach reach_of(const DecodeParams& p, const Share& share, int warp) {
  int lowest = p.keys, highest = 0, inner_begin = 0, inner_end = p.keys;
  std::int64_t least_place = std::int64_t{1} << 60;
  for (int i = 0; i < p.queries; ++i) {
    const KeyRange one = key_range_of(p.key_range, share.batch, i, p.queries, p.keys);
    inner_begin = one.begin > inner_begin ? one.begin : inner_begin;
    inner_end = one.end < inner_end ? one.end : inner_end;
    const std::int64_t where = place_of(p.bias, share.batch, i, p.queries, one.diagonal).id;
    least_place = where < least_place ? where : least_place;
    if (one.begin >= one.end) continue;
    lowest = one.begin < lowest ? one.begin : lowest;
    highest = one.end > highest ? one.end : highest;
  }
  if (share.mask != nullptr) inner_end = 0;
  const int first = share.split * p.keys_of_split, last = (share.split + 1) * p.keys_of_split;
  const int begin = first > lowest / kDecodeKeys * kDecodeKeys ? first : lowest / kDecodeKeys * kDecodeKeys;
  return {lowest, last < highest ? last : highest, begin + warp * kDecodeKeys, inner_begin, inner_end, least_place};
}
__device__ __forceinline__ bool is_there(const Share& share, const Reach& reach, int key) {
  return key >= reach.lowest && key < reach.end && (share.mask == nullptr || share.mask[key] != 0);
}

/// 16 bytes, or zeros.
__device__ __forceinline__ void copy_later(std::uint32_t to, const std::uint16_t* from, bool is_read) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(is_read ? 16 : 0)
               : "memory");
}

/// 512 bytes, 16 for each lane, for load n of stage s at base + (s · loads + n) · 512. Lanes are permuted within them, so
/// that neither copying nor reading causes bank conflicts. Whole lines: 8 lanes per key, 4 keys at once. A lane copies
/// for the lane that needs the data in the product: part j of key 4 m + row of k for lane 4 (key % 8) + j % 4 of load
/// j / 4; of v for lane 4 j + key % 8 / 2.
struct Ring {
  std::uint32_t base;
  int row;                      // of the four keys, the one that this lane copies
  std::int64_t k_lane, v_lane;  // where its part lies in k and v
  std::uint32_t k_to, v_to[2];
  const std::int32_t* pages;
  int page_ahead;
  std::int32_t bad_page;
};

// In a paged cache, 16 keys lie in one page. It is looked up one step before its keys are requested.
__device__ __forceinline__ int page_at(Ring& ring, const DecodeParams& p, const Share& share, const Reach& reach,
                                       int key0) {
  if (ring.pages == nullptr || key0 >= reach.end) return ring.pages != nullptr ? 0 : share.batch;
  const std::int32_t page = ring.pages[key0 / p.k.page_tokens];
  const bool is_page = static_cast<std::uint32_t>(page) < static_cast<std::uint32_t>(p.k.page_count);
  ring.bad_page = is_page ? ring.bad_page : page;
  return is_page ? page : 0;
}

__device__ __forceinline__ Ring ring_of(const DecodeParams& p, const Share& share, const Reach& reach, int lane,
                                        std::uint32_t base) {
  const int row = lane / 8, part = lane % 8, pair = row / 2;
  Ring ring{.base = base,
            .row = row,
            .k_lane = share.key_head * p.k.head + row * p.k.token + 8 * part,
            .v_lane = share.key_head * p.v.head + row * p.v.token + 8 * part,
            .k_to = static_cast<std::uint32_t>(part / 4 * 512 + ((row * 4 + part % 4) ^ (part & 4)) * 16),
            .v_to = {static_cast<std::uint32_t>(row % 2 * kWide * 512 + (pair * 8 + ((part + 2 * pair) & 7)) * 16),
                     static_cast<std::uint32_t>(row % 2 * kWide * 512 +
                                                ((pair + 2) * 8 + ((part + 2 * pair + 4) & 7)) * 16)},
            .pages = p.k.pages != nullptr ? p.k.pages + std::int64_t{share.batch} * p.k.page_row : nullptr,
            .page_ahead = 0,
            .bad_page = kNoBadPage};
  ring.page_ahead = page_at(ring, p, share, reach, reach.start);
  return ring;
}

/// Requests the 16 keys from key0 on.
__device__ __forceinline__ void ask(Ring& ring, const DecodeParams& p, const Share& share, const Reach& reach,
                                    int key0, int stage) {
  const std::int64_t first = ring.page_ahead;  // which matrix of k and v
  ring.page_ahead = page_at(ring, p, share, reach, key0 + kStep);
  if (key0 < reach.end) {
    const int token0 = ring.pages != nullptr ? key0 % p.k.page_tokens : key0;
    const auto* const k =
        static_cast<const std::uint16_t*>(p.k.data) + first * p.k.batch + token0 * p.k.token + ring.k_lane;
    const auto* const v =
        static_cast<const std::uint16_t*>(p.v.data) + first * p.v.batch + token0 * p.v.token + ring.v_lane;
    const std::uint32_t to = ring.base + static_cast<std::uint32_t>(stage * kLoads * 512);
    const bool is_whole = share.mask == nullptr && key0 >= reach.lowest && key0 + kDecodeKeys <= reach.end;
#pragma unroll
    for (int m = 0; m < 4; ++m) {
      const bool is_read = is_whole || is_there(share, reach, key0 + 4 * m + ring.row);
      const auto* const k_from = is_read ? k + m * 4 * p.k.token : static_cast<const std::uint16_t*>(p.k.data);
      const auto* const v_from = is_read ? v + m * 4 * p.v.token : static_cast<const std::uint16_t*>(p.v.data);
#pragma unroll
      for (int c = 0; c < kWide; ++c) {
        const int ahead = is_read ? 64 * c : 0;
        copy_later(to + static_cast<std::uint32_t>((m / 2 * kChunks + 2 * c) * 512 + m % 2 * 256) + ring.k_to,
                   k_from + ahead, is_read);
        copy_later(to + static_cast<std::uint32_t>((2 * kChunks + m / 2 * 2 * kWide + c) * 512) + ring.v_to[m % 2],
                   v_from + ahead, is_read);
      }
    }
  }
  asm volatile("cp.async.commit_group;" ::: "memory");  // one per step, even if empty
}

__device__ __forceinline__ Bytes16 take(std::uint32_t from) {
  Bytes16 x;
  asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];"
               : "=r"(x.x), "=r"(x.y), "=r"(x.z), "=r"(x.w)
               : "r"(from)
               : "memory");
  return x;
}

}  // namespace posenc::attend::cuda
