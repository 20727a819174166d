#pragma once

// How attention_sm90 rotates its queries.

#include "attention/cuda/row_blocks.cuh"

namespace posenc::attend::cuda {
namespace {

// Rotates eight pairs: adjacent in a and b, or with one number of each in a and the other in b. Rounds as rotate
// does.
template <bool kInterleaved> __device__ __forceinline__ void rotate_pairs(std::uint32_t (&a)[4],
                                                                          std::uint32_t (&b)[4], const float (&c)[8],
                                                                          const float (&s)[8]) {
  float x[8], y[8];
#pragma unroll
  for (int n = 0; n < 8; ++n) {
    const std::uint32_t word = kInterleaved ? (n < 4 ? a[n % 4] : b[n % 4]) : a[n / 2];
    const float one = unpack(word, !kInterleaved && n % 2 == 1),
                other = kInterleaved ? unpack(word, true) : unpack(b[n / 2], n % 2 == 1);
    const float oc = one * c[n], ts = other * s[n], tc = other * c[n], os = one * s[n];
    x[n] = oc - ts;
    y[n] = tc + os;
  }
#pragma unroll
  for (int n = 0; n < 4; ++n) {
    a[n] = kInterleaved ? pack(x[n], y[n]) : pack(x[2 * n], x[2 * n + 1]);
    b[n] = kInterleaved ? pack(x[n + 4], y[n + 4]) : pack(y[2 * n], y[2 * n + 1]);
  }
}

// One of three warps: eight rows of q at a time, every third eight of a tile, a quarter of a row per lane. `waves`
// are their cosines and sines, in the order of keep_waves (rotate_vectors.cu).
template <bool kInterleaved>
__device__ __forceinline__ void rotate_rows(std::uint32_t tile, std::uint32_t waves, int lane) {
  const int row = lane / 4, part = lane % 4;
  tile += static_cast<std::uint32_t>(row * 128);
  waves += static_cast<std::uint32_t>(row * kFeatures * 4);
#pragma unroll
  for (int i = 0; i < kFeatures / 64; ++i) {
    const int group = part * (kFeatures / 64) + i;
    // The two 16-byte chunks of a pair, before the swizzle: adjacent, or half a head apart.
    const int chunk = kInterleaved ? 2 * group % 8 : group, panel = kInterleaved ? group / 4 : 0;
    const std::uint32_t one = tile + static_cast<std::uint32_t>(panel * (kRowTile * 128) + ((chunk ^ row) << 4)),
                        other = kInterleaved       ? one ^ 16
                                : kFeatures == 128 ? one + kRowTile * 128
                                                   : one ^ 64;
    std::uint32_t a[4], b[4];
    float c[8], s[8];
    load_four(one, a), load_four(other, b);
    const auto quad = [&](int n) {
      return waves + static_cast<std::uint32_t>((((i * 4 + n) * 4 + part) ^ (row & 1) * 4) * 16);
    };
    load_four(quad(0), c), load_four(quad(1), c + 4), load_four(quad(2), s), load_four(quad(3), s + 4);
    rotate_pairs<kInterleaved>(a, b, c, s);
    store_four(one, a), store_four(other, b);
  }
}

// Rotates every row block of q in place, one row block ahead of the warpgroups that compute. Cosines and sines are
// requested two steps before they are needed.
[[maybe_unused]] __device__ __forceinline__ void rotate_queries(Shared& sm, std::uint32_t base,
                                                                const ForwardParams& p) {
  constexpr std::uint32_t kBytes = kRotatedRows * kFeatures * 4;
  const int lane = static_cast<int>(kernels::cuda::thread() % 32),
            me = from_lane(static_cast<int>(kernels::cuda::thread() / 32), 0) - 1;
  Ring<2> asked, waves;
  for (Ring<kRowBlocks> q;; q.next()) {
    barrier_wait(POSENC_AT(q_full, q.slot), q.phase);
    const int item = sm.item[q.slot];
    if (item >= 0) {
      const float* const from = p.cos_sin + std::int64_t{decode(item, p).block} * (kRowTile * kFeatures);
      const auto ask = [&](int row) {
        if (row >= kRowTile) return;
        if (lane == 0) {
          const std::uint32_t barrier = POSENC_AT(waves_full, 2 * me + asked.slot);
          barrier_expect(barrier, kBytes);
          copy_bytes(POSENC_AT(table, 2 * me + asked.slot), from + row * kFeatures, kBytes, barrier);
        }
        asked.next();
      };
      constexpr int kStep = kRotators * kRotatedRows;
      ask(me * kRotatedRows), ask(me * kRotatedRows + kStep);
#pragma unroll 1
      for (int row = me * kRotatedRows; row < kRowTile; row += kStep, waves.next()) {
        barrier_wait(POSENC_AT(waves_full, 2 * me + waves.slot), waves.phase);
        const std::uint32_t tile = POSENC_AT(q, q.slot) + static_cast<std::uint32_t>(row * 128),
                            here = POSENC_AT(table, 2 * me + waves.slot);
        if (p.is_interleaved != 0) {
          rotate_rows<true>(tile, here, lane);
        } else {
          rotate_rows<false>(tile, here, lane);
        }
        kernels::cuda::sync_warp();  // all have read what is overwritten now
        ask(row + 2 * kStep);
      }
      show_to_products();
    }
    barrier_arrive(POSENC_AT(q_ready, q.slot));
    if (item < 0) return;
  }
}

}  // namespace
}  // namespace posenc::attend::cuda
