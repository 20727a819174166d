#pragma once

// What both kinds of Consumer of attention_backward_sm90 do with a tile of scores between its products.

#include "attention/cuda/key_blocks.cuh"
#include "attention/cuda/products.cuh"

namespace posenc::attend::cuda {
namespace {

// One warpgroup's part of a tile: 64 keys and kOwnQueries queries.
struct Weights {
  Shared& sm;
  const std::uint32_t base;
  const BackwardParams& p;
  const int wg, warp, lane;
  const float scale2;

  Ring<1> kv, tables;
  Ring<kBackwardStages> t;  // q, d_out, P and dS

  // A thread holds keys r and r + 8 of its warp's 16. Element 4 n + e of a tile is query 8 n + 2 (lane % 4) + e % 2
  // of key r + 8 (e / 2).
  float s[kOwnQueries / 2], dp[kOwnQueries / 2];  // scores, then weights; d_out · v, then dS
  int key;                                        // this thread's first
  int query_head;                                 // batch · heads + head
  float slope2 = 0;                               // in powers of two

  __device__ __forceinline__ const Band& band() const { return kPacked ? sm.work[0].band : p.band; }
  // This warpgroup's first query and first key of a tile.
  __device__ __forceinline__ int own_query() const { return kSplitsKeys ? 0 : wg * kOwnQueries; }
  __device__ __forceinline__ int own_key() const { return kSplitsKeys ? wg * 64 : 0; }
  // The lanes have synchronized in the wait for products, so the others have finished reading.
  __device__ __forceinline__ void release(std::uint32_t barrier) {
    if (lane == 0) barrier_arrive(barrier);
  }
  __device__ __forceinline__ const float* table_at(int distance) const {
    if constexpr (kCopiesTable) {
      return &sm.table[0][kTableMiddle + distance];
    } else {
      return p.bias + query_head % p.heads * kTableSize + kTableMiddle + distance;
    }
  }
  // The initial value of the scores of a tile that is not plain, in units of q·k: the bias by distance, or what is to be
  // added to slopes right of the diagonal, and the mask.
  __device__ __forceinline__ void init_scores(int query0) {
    const TileKind kind = kind_of<kKind, kBoth, kQueryTile, 64>(band(), query0, key & ~63);
    const int query = query0 + own_query() + 2 * (lane & 3), distance = query + band().origin - key;
    if (kKind == kDistanceBias && kind.side == Side::kNear) {
      const float* at = table_at(distance);
#pragma unroll
      for (int i = 0; i < kOwnQueries / 2; ++i) s[i] = at[8 * (i / 4) + i % 2 - 8 * (i / 2 % 2)];
    } else if (kKind == kSlopeBias && kind.side != Side::kLeft) {
      const float twice = 2 * slope2 * reciprocal(scale2), first = float(distance);
#pragma unroll
      for (int i = 0; i < kOwnQueries / 2; ++i)
        s[i] = twice * smaller(first + float(8 * (i / 4) + i % 2 - 8 * (i / 2 % 2)), 0.0f);
    } else {
      const float same = kKind == kDistanceBias && kind.side == Side::kRight ? *table_at(-kTableMiddle) : 0.0f;
#pragma unroll
      for (int i = 0; i < kOwnQueries / 2; ++i) s[i] = same;
    }
    if (kind.is_masked) {
      const Columns seen[2] = {visible_queries(band(), key, query), visible_queries(band(), key + 8, query)};
#pragma unroll
      for (int i = 0; i < kOwnQueries / 2; ++i) {
        const int column = 8 * (i / 4) + i % 2, r = i / 2 % 2;
        if (column < seen[r].first || column > seen[r].last) s[i] = -__builtin_inff();
      }
    }
    pin(s);
  }
  // sum (+)= A Bᵀ over kCount features; A from this warpgroup's keys of a tile, B from its queries of another.
  template <bool kKeep, int kCount> __device__ __forceinline__ void issue_scores(float (&sum)[kOwnQueries / 2],
                                                                                 std::uint32_t a_tile,
                                                                                 std::uint32_t b_tile) {
    std::uint32_t a = descriptor(a_tile + own_key() * 128, 16), b = descriptor(b_tile + own_query() * 128, 16);
    hide(a), hide(b);
#pragma unroll
    for (int kk = 0; kk < kCount / 16; ++kk) {
      const std::uint32_t ak = a + (kk / 4) * (kKeys * 128 / 16) + (kk % 4) * 2,
                          bk = b + (kk / 4) * (kQueryTile * 128 / 16) + (kk % 4) * 2;
      if (kk == 0 && !kKeep) {
        multiply_first<0, 0>(sum, ak, bk);
      } else {
        multiply<0, 0>(sum, ak, bk);
      }
    }
    products_commit();
  }
  // Computes weights from the scores of tile i.
  __device__ __forceinline__ void exponentials(int i) {
    const int ahead = key - band().origin - i * kQueryTile;
    const float left[2] = {kKind == kSlopeBias ? slope2 * float(ahead) : 0.0f,
                           kKind == kSlopeBias ? slope2 * float(ahead + 8) : 0.0f};
#pragma unroll
    for (int n = 0; n < kOwnQueries / 8; ++n) {
      const kernels::cuda::Float2 l = load_pair(POSENC_AT(lse, t.slot) + 4 * own_query() + 32 * n + 8 * (lane & 3));
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const float c = e % 2 ? l.y : l.x;
        s[4 * n + e] = power_of_two(__builtin_fmaf(s[4 * n + e], scale2, kKind == kSlopeBias ? c + left[e / 2] : c));
      }
    }
  }
  // The weights of tile i in s, and d_out · v in dp; `last`: v is no longer needed.
  template <bool kPlain> __device__ __forceinline__ void weigh(int& i, bool last) {
    hide(i);
    barrier_wait(POSENC_AT(q_full, t.slot), t.phase);
    if constexpr (!kPlain) init_scores(i * kQueryTile);
    products_fence();
    issue_scores<!kPlain, kFeatures>(s, POSENC_AT(k, 0), POSENC_AT(q, t.slot));
    barrier_wait(POSENC_AT(g_full, t.slot), t.phase);
    products_fence();
    issue_scores<false, kValues>(dp, POSENC_AT(v, 0), POSENC_AT(g, t.slot));
    products_wait<1>();
    pin(s);
    exponentials(i);
    products_wait<0>();
    pin(dp);
    if (last) release(POSENC_AT(v_empty, 0));
  }
  // Computes dS, and both factors in 16 bits.
  __device__ __forceinline__ void convert(std::uint32_t (&pb)[kOwnQueries / 4],
                                          std::uint32_t (&db)[kOwnQueries / 4]) {
#pragma unroll
    for (int n = 0; n < kOwnQueries / 8; ++n) {
      const kernels::cuda::Float2 d = load_pair(POSENC_AT(delta, t.slot) + 4 * own_query() + 32 * n + 8 * (lane & 3));
#pragma unroll
      for (int e = 0; e < 4; ++e) dp[4 * n + e] = s[4 * n + e] * (dp[4 * n + e] - (e % 2 ? d.y : d.x));
    }
#pragma unroll
    for (int n = 0; n < kOwnQueries / 4; ++n) {
      pb[n] = pack(s[2 * n], s[2 * n + 1]);
      db[n] = pack(dp[2 * n], dp[2 * n + 1]);
    }
  }
  // Writes one of them to a tile of rows of 64 queries.
  __device__ __forceinline__ void share(std::uint32_t tile, const std::uint32_t (&x)[kOwnQueries / 4]) {
    const int row = (lane & 7) + (lane & 8), chunk = lane >> 4;  // the row and matrix that this lane addresses
    const std::uint32_t at = tile + (own_key() + warp * 16 + row) * 128;
#pragma unroll
    for (int kk = 0; kk < kOwnQueries / 16; ++kk)
      store_matrices(at + (((own_query() / 8 + 2 * kk + chunk) ^ (row & 7)) << 4), x + 4 * kk);
  }
  // Writes kCount features of this thread's keys, from `head` on.
  template <int kCount> __device__ __forceinline__ void write(std::uint16_t* head, std::int64_t token_stride,
                                                              const float (&x)[kCount / 2], float scale, int keys) {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const int row = key + 8 * r;
      if (row >= keys) continue;
      std::uint16_t* const to = head + row * token_stride + 2 * (lane & 3);
#pragma unroll
      for (int n = 0; n < kCount / 8; ++n)
        *reinterpret_cast<std::uint32_t*>(to + 8 * n) = pack(x[4 * n + 2 * r] * scale, x[4 * n + 2 * r + 1] * scale);
    }
  }
};

}  // namespace
}  // namespace posenc::attend::cuda
