// The gradients of attention_sm90. With P the weights and dP = d_out · vᵀ,
//   dv = Pᵀ · d_out,  dS = P ∘ (dP − delta),  dq = scale · dS · k,  dk = scale · dSᵀ · q,
// and for a bias by distance, the sum of dS over all pairs at each distance.
//
// One block per multiprocessor takes key blocks of 128 keys of one key head; the first are the longest if attention is
// causal. One thread copies tiles of 64 queries of q and d_out; two warpgroups own 64 keys each and keep their dk and dv in
// registers while looping over all query heads of the key head. Everything is transposed (keys are rows), so that Pᵀ
// and dSᵀ go from registers straight into the next product; only dq needs dS from shared memory. dq is summed in
// float32 in global memory, stored in register order. Blocks add to it in order of arrival, so its last bits vary.
// POSENC_BIAS is a BiasKind, POSENC_BOTH 1 if a bias may be needed at distances below 0, else 0, POSENC_FEATURES 64 or
// 128, POSENC_F16 1 for f16 and 0 for bf16, POSENC_PACKED 1 for packed sequences, else 0.

#include "attention/cuda/diagonal_sums.cuh"
#include "attention/cuda/key_blocks.cuh"

namespace posenc::attend::cuda {
namespace {

// One warpgroup: 64 keys of each key block.
struct Consumer {
  Shared& sm;
  const std::uint32_t base;
  const BackwardParams& p;
  const int wg, warp, lane;
  const float scale2;

  Ring<1> kv, tables;
  Ring<kBackwardStages> t;  // q, d_out and dS

  // A thread holds keys r and r + 8 of its warp's 16. Element 4 n + e of a tile is query 8 n + 2 (lane % 4) + e % 2
  // of key r + 8 (e / 2).
  float dk[kFeatures / 2], dv[kFeatures / 2];
  float s[32], dp[32];  // scores, then weights; d_out · v
  int key;              // this thread's first
  int query_head;       // batch · heads + head
  float slope2 = 0;     // in powers of two

  __device__ __forceinline__ const Band& band() const { return kPacked ? sm.work[0].band : p.band; }
  // The lanes have synchronized in the wait for products, so the others have finished reading.
  __device__ __forceinline__ void release(std::uint32_t barrier) {
    if (lane == 0) barrier_arrive(barrier);
  }
  // The initial value of the scores of a tile that is not plain, in units of q·k: the bias by distance, or what is to be
  // added to slopes right of the diagonal, and the mask.
  __device__ __forceinline__ void init_scores(int query0) {
    const TileKind kind = kind_of<kKind, kBoth, kQueryTile, 64>(band(), query0, key & ~63);
    const int query = query0 + 2 * (lane & 3), distance = query + band().origin - key;
    if (kKind == kDistanceBias && kind.side == Side::kNear) {
      const float* at = &sm.table[0][kTableMiddle + distance];
#pragma unroll
      for (int i = 0; i < 32; ++i) s[i] = at[8 * (i / 4) + i % 2 - 8 * (i / 2 % 2)];
    } else if (kKind == kSlopeBias && kind.side != Side::kLeft) {
      const float twice = 2 * slope2 * reciprocal(scale2), first = float(distance);
#pragma unroll
      for (int i = 0; i < 32; ++i) s[i] = twice * smaller(first + float(8 * (i / 4) + i % 2 - 8 * (i / 2 % 2)), 0.0f);
    } else {
      const float same = kKind == kDistanceBias && kind.side == Side::kRight ? sm.table[0][0] : 0.0f;
#pragma unroll
      for (int i = 0; i < 32; ++i) s[i] = same;
    }
    if (kind.is_masked) {
      const Columns seen[2] = {visible_queries(band(), key, query), visible_queries(band(), key + 8, query)};
#pragma unroll
      for (int i = 0; i < 32; ++i) {
        const int column = 8 * (i / 4) + i % 2, r = i / 2 % 2;
        if (column < seen[r].first || column > seen[r].last) s[i] = -__builtin_inff();
      }
    }
    pin(s);
  }
  // sum (+)= A Bᵀ over the features; A from 64 rows of a tile of 128, B a tile of 64.
  template <bool kKeep>
  __device__ __forceinline__ void issue_long(float (&sum)[32], std::uint32_t a_tile, std::uint32_t b_tile) {
    std::uint32_t a = descriptor(a_tile + wg * 64 * 128, 16), b = descriptor(b_tile, 16);
    hide(a), hide(b);
#pragma unroll
    for (int kk = 0; kk < kFeatures / 16; ++kk) {
      const std::uint32_t ak = a + (kk / 4) * (kKeyTile * 128 / 16) + (kk % 4) * 2,
                          bk = b + (kk / 4) * (kQueryTile * 128 / 16) + (kk % 4) * 2;
      if (kk == 0 && !kKeep) {
        multiply_shared_first<0>(sum, ak, bk);
      } else {
        multiply_shared<0>(sum, ak, bk);
      }
    }
    products_commit();
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
    constexpr int kSteps = kSplitsFeatures ? kKeyTile / 16 : 4;
    std::uint32_t a = descriptor(POSENC_AT(ds, t.slot) + (kSplitsFeatures ? 0 : wg * 64 * 128), 16),
                  b = descriptor(POSENC_AT(k, 0) + wg * (kSplitsFeatures ? kKeyTile : 64) * 128, 16);
    hide(a), hide(b);
#pragma unroll
    for (int kk = 0; kk < kSteps; ++kk) {
      if (kk == 0) {
        multiply_shared_first<1>(dq, a, b);
      } else {
        multiply_shared<1>(dq, a + kk * (16 * 128 / 16), b + kk * (16 * 128 / 16));
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
  // Computes weights from the scores of tile i.
  __device__ __forceinline__ void exponentials(int i) {
    const int ahead = key - band().origin - i * kQueryTile;
    const float left[2] = {kKind == kSlopeBias ? slope2 * float(ahead) : 0.0f,
                           kKind == kSlopeBias ? slope2 * float(ahead + 8) : 0.0f};
#pragma unroll
    for (int n = 0; n < 8; ++n) {
      const kernels::cuda::Float2 l = load_pair(POSENC_AT(lse, t.slot) + 32 * n + 8 * (lane & 3));
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const float c = e % 2 ? l.y : l.x;
        s[4 * n + e] = power_of_two(__builtin_fmaf(s[4 * n + e], scale2, kKind == kSlopeBias ? c + left[e / 2] : c));
      }
    }
  }
  // Computes dS, and both factors in 16 bits; also writes dS to shared memory, for dq.
  __device__ __forceinline__ void convert(std::uint32_t (&pb)[16], std::uint32_t (&db)[16]) {
#pragma unroll
    for (int n = 0; n < 8; ++n) {
      const kernels::cuda::Float2 d = load_pair(POSENC_AT(delta, t.slot) + 32 * n + 8 * (lane & 3));
#pragma unroll
      for (int e = 0; e < 4; ++e) dp[4 * n + e] = s[4 * n + e] * (dp[4 * n + e] - (e % 2 ? d.y : d.x));
    }
#pragma unroll
    for (int n = 0; n < 16; ++n) {
      pb[n] = pack(s[2 * n], s[2 * n + 1]);
      db[n] = pack(dp[2 * n], dp[2 * n + 1]);
    }
    const int row = (lane & 7) + (lane & 8), chunk = lane >> 4;  // the row and matrix that this lane addresses
    const std::uint32_t at = POSENC_AT(ds, t.slot) + (wg * 64 + warp * 16 + row) * 128;
#pragma unroll
    for (int kk = 0; kk < 4; ++kk) store_matrices(at + (((2 * kk + chunk) ^ (row & 7)) << 4), db + 4 * kk);
    show_to_products();
  }
  // One tile of 64 queries; `last`: v is no longer needed.
  template <bool kPlain> __device__ __forceinline__ void step(int i, bool last) {
    hide(i);
    barrier_wait(POSENC_AT(q_full, t.slot), t.phase);
    if constexpr (!kPlain) init_scores(i * kQueryTile);
    products_fence();
    issue_long<!kPlain>(s, POSENC_AT(k, 0), POSENC_AT(q, t.slot));
    barrier_wait(POSENC_AT(g_full, t.slot), t.phase);
    products_fence();
    issue_long<false>(dp, POSENC_AT(v, 0), POSENC_AT(g, t.slot));
    products_wait<1>();
    pin(s);
    exponentials(i);
    products_wait<0>();
    pin(dp);
    if (last) release(POSENC_AT(v_empty, 0));
    std::uint32_t pb[16], db[16];
    convert(pb, db);
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

  __device__ __forceinline__ void write(std::uint16_t* head, std::int64_t token_stride,
                                        const float (&x)[kFeatures / 2], float scale, int keys) {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const int row = key + 8 * r;
      if (row >= keys) continue;
      std::uint16_t* const to = head + row * token_stride + 2 * (lane & 3);
#pragma unroll
      for (int n = 0; n < kFeatures / 8; ++n)
        *reinterpret_cast<std::uint32_t*>(to + 8 * n) = pack(x[4 * n + 2 * r] * scale, x[4 * n + 2 * r + 1] * scale);
    }
  }

  __device__ __forceinline__ void run() {
    const int heads_per_key = p.heads / p.key_heads;
    for (;; kv.next()) {
      barrier_wait(POSENC_AT(k_full, 0), kv.phase);
      const int item = sm.item[0];
      if (item < 0) break;
      const Work w = kPacked ? sm.work[0] : decode(item, p);
      const int key0 = w.block * kKeyTile + wg * 64;
      key = key0 + warp * 16 + (lane >> 2);
      const TileRange plain = plain_query_tiles<kQueryTile, 64>(band(), key0);
#pragma unroll
      for (int i = 0; i < kFeatures / 2; ++i) dk[i] = dv[i] = 0;
      barrier_wait(POSENC_AT(v_full, 0), kv.phase);
#pragma unroll 1
      for (int n = 0; n < heads_per_key; ++n) {
        const int head = w.key_head * heads_per_key + n;
        query_head = w.batch * p.heads + head;
        if constexpr (kKind == kSlopeBias) slope2 = p.bias[head] * kLog2e;
        if constexpr (kKind == kDistanceBias) barrier_wait(POSENC_AT(t_full, 0), tables.phase);
#pragma unroll 1
        for (int i = w.tiles.first; i <= w.tiles.last; ++i) {
          if (i >= plain.first && i <= plain.last) {
            step<true>(i, i == w.tiles.last && n + 1 == heads_per_key);
          } else {
            step<false>(i, i == w.tiles.last && n + 1 == heads_per_key);
          }
        }
        if constexpr (kKind == kDistanceBias) {
          release(POSENC_AT(t_empty, 0));
          tables.next();
        }
      }
      const int keys = band().keys;
      const std::int64_t batch = w.batch, head = w.key_head, first = kPacked ? sm.work[0].first_key : 0;
      release(POSENC_AT(k_empty, 0));  // the next key block may replace `work` from here on
      if (p.dv != nullptr) {
        write(static_cast<std::uint16_t*>(p.dv) + batch * p.dv_batch + head * p.dv_head + first * p.dv_token,
              p.dv_token, dv, 1.0f, keys);
      }
      if (p.dk != nullptr) {
        write(static_cast<std::uint16_t*>(p.dk) + batch * p.dk_batch + head * p.dk_head + first * p.dk_token,
              p.dk_token, dk, p.scale, keys);
      }
    }
  }
};

}  // namespace

extern "C" __global__ void __launch_bounds__(384, 1)
    attention_backward_sm90(const __grid_constant__ TensorMap q_map, const __grid_constant__ TensorMap k_map,
                            const __grid_constant__ TensorMap v_map, const __grid_constant__ TensorMap g_map,
                            const __grid_constant__ BackwardParams p) {
  extern __shared__ std::uint8_t raw[];
  const std::uint32_t base = (shared_address(raw) + 1023) & ~1023u;
  auto& sm = *reinterpret_cast<Shared*>(raw + (base - shared_address(raw)));
  if (kernels::cuda::thread() == 0) {
    constexpr int kWarps = 8;
    barrier_init(POSENC_AT(k_full, 0), 1), barrier_init(POSENC_AT(k_empty, 0), kWarps);
    barrier_init(POSENC_AT(v_full, 0), 1), barrier_init(POSENC_AT(v_empty, 0), kWarps);
    barrier_init(POSENC_AT(t_full, 0), 1), barrier_init(POSENC_AT(t_empty, 0), kWarps);
    for (int i = 0; i < kBackwardStages; ++i) {
      barrier_init(POSENC_AT(q_full, i), 1), barrier_init(POSENC_AT(q_empty, i), kWarps);
      barrier_init(POSENC_AT(g_full, i), 1), barrier_init(POSENC_AT(g_empty, i), kWarps);
    }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  kernels::cuda::sync_block();
  const int role = from_lane(static_cast<int>(kernels::cuda::thread() / 128), 0);
  if (role == 0) {  // 128 · 40 + 256 · 232 registers: the whole register file
    asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
    if (kernels::cuda::thread() == 0) produce(sm, base, p, q_map, k_map, v_map, g_map);
    if constexpr (kKind == kDistanceBias) {
      if (kernels::cuda::thread() >= 32) sum_diagonals(sm, base, p);
    }
  } else {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
    const int warp = from_lane(static_cast<int>(kernels::cuda::thread() / 32 & 3), 0);
    Consumer c{sm, base, p, role - 1, warp, static_cast<int>(kernels::cuda::thread() & 31), p.scale2};
    c.run();
  }
}

}  // namespace posenc::attend::cuda
