#pragma once

// Key blocks of 128 keys, for up to 128 features: each of the two warpgroups owns 64 keys.

#include "attention/cuda/key_weights.cuh"

namespace posenc::attend::cuda {
namespace {

// dq: each warpgroup computes half of the features, or sums half of the keys
constexpr bool kSplitsFeatures = kFeatures == 128;

struct Consumer : Weights {
  float dk[kFeatures / 2], dv[kFeatures / 2];

  __device__ __forceinline__ void clear() {
#pragma unroll
    for (int i = 0; i < kFeatures / 2; ++i) dk[i] = dv[i] = 0;
  }
  // sum += A B; A in registers (64 keys × 64 queries), B a tile of 64 queries.
  __device__ __forceinline__ void issue_wide(float (&sum)[kFeatures / 2], const std::uint32_t (&a)[16],
                                             std::uint32_t b_tile) {
    std::uint32_t b = descriptor(b_tile, kQueryTile * 128);
    hide(b);
#pragma unroll
    for (int kk = 0; kk < kQueryTile / 16; ++kk) multiply_registers(sum, a + 4 * kk, b + kk * (16 * 128 / 16));
    products_commit();
  }
  // dq = dS k: half of the features over all 128 keys, or all features over this warpgroup's 64 keys.
  __device__ __forceinline__ void issue_dq(float (&dq)[32]) {
    constexpr int kSteps = kSplitsFeatures ? kKeys / 16 : 4;
    std::uint32_t a = descriptor(POSENC_AT(ds, t.slot) + (kSplitsFeatures ? 0 : wg * 64 * 128), 16),
                  b = descriptor(POSENC_AT(k, 0) + wg * (kSplitsFeatures ? kKeys : 64) * 128, 16);
    hide(a), hide(b);
#pragma unroll
    for (int kk = 0; kk < kSteps; ++kk) {
      if (kk == 0) {
        multiply_first<1, 1>(dq, a, b);
      } else {
        multiply<1, 1>(dq, a + kk * (16 * 128 / 16), b + kk * (16 * 128 / 16));
      }
    }
    products_commit();
  }
  __device__ __forceinline__ void add_dq(const float (&dq)[32], int i) {
    float* const to =
        p.dq +
        ((std::int64_t{query_head} * p.tiles + (kPacked ? sm.work[0].first_tile : 0) + i) * (kFeatures / 64) +
         (kSplitsFeatures ? wg : 0)) *
            (64 * 64) +
        (warp * 32 + lane) * 4;
#pragma unroll
    for (int c = 0; c < 8; ++c) add_four(to + c * 512, dq[4 * c], dq[4 * c + 1], dq[4 * c + 2], dq[4 * c + 3]);
  }
  // One tile of 64 queries; `last`: v is no longer needed.
  template <bool kPlain> __device__ __forceinline__ void step(int i, bool last) {
    weigh<kPlain>(i, last);
    std::uint32_t pb[16], db[16];
    convert(pb, db);
    share(POSENC_AT(ds, t.slot), db);
    show_to_products();
    pin(dv);
    products_fence();
    issue_wide(dv, pb, POSENC_AT(g, t.slot));
    meet(1, kExchange);
    float dq[32];
    products_fence();
    issue_dq(dq);
    issue_wide(dk, db, POSENC_AT(q, t.slot));
    products_wait<2>();
    pin(dv);
    release(POSENC_AT(g_empty, t.slot));
    products_wait<1>();
    pin(dq);
    add_dq(dq, i);
    products_wait<0>();
    pin(dk);
    release(POSENC_AT(q_empty, t.slot));
    t.next();
  }

  __device__ __forceinline__ void write_keys(std::uint16_t* to, std::int64_t token_stride, int keys) {
    write<kFeatures>(to, token_stride, dk, p.scale, keys);
  }
  __device__ __forceinline__ void write_values(std::uint16_t* to, std::int64_t token_stride, int keys) {
    write<kFeatures>(to, token_stride, dv, 1.0f, keys);
  }
};

}  // namespace
}  // namespace posenc::attend::cuda
