// The gradients of attention_sm90. With P the weights and dP = d_out · vᵀ,
//   dv = Pᵀ · d_out,  dS = P ∘ (dP − delta),  dq = scale · dS · k,  dk = scale · dSᵀ · q,
// and for a bias by distance, the sum of dS over all pairs at each distance.
//
// One block per multiprocessor takes key blocks of 128 keys (with more than 128 features: of 64) of one key head; the first
// are the longest if attention is causal. One thread copies tiles of 64 queries of q and d_out; two warpgroups keep dk and dv
// in registers while looping over all query heads of the key head. Everything is transposed (keys are rows), so that Pᵀ
// and dSᵀ go from registers straight into the next product; only dq needs dS from shared memory, and what the warpgroups
// own of dk and dv decides what else they exchange: keys_by_rows.cuh, keys_by_features.cuh. dq is summed in
// float32 in global memory, stored in register order. Blocks add to it in order of arrival, so its last bits vary.
// POSENC_BIAS is a BiasKind, POSENC_BOTH 1 if a bias may be needed at distances below 0, else 0, POSENC_FEATURES and
// POSENC_VALUES the features of q and k, and of v: 64, 128 or 256, or 192 and 128; POSENC_F16 1 for f16 and 0 for bf16,
// POSENC_PACKED 1 for packed sequences, else 0.

#include "attention/cuda/diagonal_sums.cuh"
#if POSENC_FEATURES > 128
#include "attention/cuda/keys_by_features.cuh"
#else
#include "attention/cuda/keys_by_rows.cuh"
#endif

namespace posenc::attend::cuda {
namespace {

// One warpgroup and the key blocks that it works on.
struct KeyBlocks : Consumer {
  __device__ __forceinline__ void run() {
    const int heads_per_key = p.heads / p.key_heads;
    for (;; kv.next()) {
      barrier_wait(POSENC_AT(k_full, 0), kv.phase);
      const int item = sm.item[0];
      if (item < 0) break;
      const Work w = kPacked ? sm.work[0] : decode(item, p);
      const int key0 = w.block * kKeys + own_key();
      key = key0 + warp * 16 + (lane >> 2);
      const TileRange plain = plain_query_tiles<kQueryTile, 64>(band(), key0);
      clear();
      barrier_wait(POSENC_AT(v_full, 0), kv.phase);
#pragma unroll 1
      for (int n = 0; n < heads_per_key; ++n) {
        const int head = w.key_head * heads_per_key + n;
        query_head = w.batch * p.heads + head;
        if constexpr (kKind == kSlopeBias) slope2 = p.bias[head] * kLog2e;
        if constexpr (kCopiesTable) barrier_wait(POSENC_AT(t_full, 0), tables.phase);
#pragma unroll 1
        for (int i = w.tiles.first; i <= w.tiles.last; ++i) {
          if (i >= plain.first && i <= plain.last) {
            step<true>(i, i == w.tiles.last && n + 1 == heads_per_key);
          } else {
            step<false>(i, i == w.tiles.last && n + 1 == heads_per_key);
          }
        }
        if constexpr (kCopiesTable) {
          release(POSENC_AT(t_empty, 0));
          tables.next();
        }
      }
      const int keys = band().keys;
      const std::int64_t batch = w.batch, head = w.key_head, first = kPacked ? sm.work[0].first_key : 0;
      release(POSENC_AT(k_empty, 0));  // the next key block may replace `work` from here on
      if (p.dv != nullptr) {
        write_values(static_cast<std::uint16_t*>(p.dv) + batch * p.dv_batch + head * p.dv_head + first * p.dv_token,
                     p.dv_token, keys);
      }
      if (p.dk != nullptr) {
        write_keys(static_cast<std::uint16_t*>(p.dk) + batch * p.dk_batch + head * p.dk_head + first * p.dk_token,
                   p.dk_token, keys);
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
    KeyBlocks c{{{sm, base, p, role - 1, warp, static_cast<int>(kernels::cuda::thread() & 31), p.scale2}}};
    c.run();
  }
}

}  // namespace posenc::attend::cuda
