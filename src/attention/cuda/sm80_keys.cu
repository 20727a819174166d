// dk and dv for any GPU: a block takes 64 keys of one key head, 16 for each of four warps, and loops over the queries
// of all its heads that attend to them. Everything is transposed: keys are rows. Sums are in a fixed order, so
// results are bitwise reproducible.
// POSENC_FEATURES is 64, 128 or 256; POSENC_PART 0 for both, 1 for dv only, 2 for dk only (256 features leave
// registers for one of them); POSENC_F16 1 for f16 and 0 for bf16.

#include "attention/cuda/sm80.cuh"

namespace posenc::attend::cuda {

namespace {

constexpr int kFeatures = POSENC_FEATURES, kQueries = rows_of_other(kFeatures), kPitch = sm80_pitch(kFeatures);
constexpr bool kValues = POSENC_PART != 2, kKeys = POSENC_PART != 1;

// The queries that may attend to one of the keys key0 … key1 − 1.
struct Queries {
  int first, last;
};
__device__ __forceinline__ Queries queries_of_keys(const Sm80BackwardParams& p, int key0, int key1) {
  int first = 0, last = p.queries;
  if (p.key_range.key_ranges == nullptr) {
    if (p.key_range.is_causal != 0 && key0 - p.key_range.offset > first) first = key0 - p.key_range.offset;
    if (p.key_range.window > 0) {
      if (key0 - p.key_range.offset - p.key_range.window + 1 > first)
        first = key0 - p.key_range.offset - p.key_range.window + 1;
      if (key1 - 1 - p.key_range.offset + p.key_range.window < last)
        last = key1 - 1 - p.key_range.offset + p.key_range.window;
    }
  }
  return {first, last};
}

// What the block needs to know of each query of a tile, in shared memory.
struct QueryFacts {
  int *begins, *ends, *diagonals;
  float *lses, *deltas;
};
// Writes those of this thread's query, the `at`-th of the tile; returns 1 if it attends to one of the keys. `rows` is the
// first row of its head.
__device__ __forceinline__ int write_facts(const Sm80BackwardParams& p, const QueryFacts& to, unsigned at, int batch,
                                           std::int64_t rows, int query, int key0, int key1) {
  const KeyRange seen = key_range_of(p.key_range, batch, query, p.queries, p.keys);
  to.begins[at] = seen.begin, to.ends[at] = seen.end, to.diagonals[at] = seen.diagonal;
  to.lses[at] = query < p.queries ? p.neg_lse[rows + query] : 0.0f;
  to.deltas[at] = query < p.queries ? p.delta[rows + query] : 0.0f;
  return seen.begin < key1 && seen.end > key0 ? 1 : 0;
}

// dv += weights · g and dk += ds · q, as add_weighted, in turn.
using Packed = std::uint32_t[kQueries / 8][2];
__device__ __forceinline__ void add_gradients(float (&dv)[kValues ? kFeatures / 8 : 1][4],
                                              float (&dk)[kKeys ? kFeatures / 8 : 1][4], const Packed& weights,
                                              const Packed& ds, const Tile<kPitch>& g, const Tile<kPitch>& q,
                                              int lane) {
#pragma unroll
  for (int n = 0; n < kQueries / 16; ++n) {
    const std::uint32_t pa[4] = {weights[2 * n][0], weights[2 * n][1], weights[2 * n + 1][0], weights[2 * n + 1][1]};
    const std::uint32_t da[4] = {ds[2 * n][0], ds[2 * n][1], ds[2 * n + 1][0], ds[2 * n + 1][1]};
#pragma unroll
    for (int f = 0; f < kFeatures / 16; ++f) {
      std::uint32_t b[4];
      if constexpr (kValues) {
        g.right_of_rows(b, 16 * n, 16 * f, lane);
        multiply(dv[2 * f], pa, b);
        multiply(dv[2 * f + 1], pa, b + 2);
      }
      if constexpr (kKeys) {
        q.right_of_rows(b, 16 * n, 16 * f, lane);
        multiply(dk[2 * f], da, b);
        multiply(dk[2 * f + 1], da, b + 2);
      }
    }
  }
}

}  // namespace

extern "C" __global__ void __launch_bounds__(128) sm80_keys(const __grid_constant__ Sm80BackwardParams p) {
  using namespace kernels::cuda;
  extern __shared__ std::uint8_t raw[] __attribute__((aligned(16)));
  auto* const k_rows = reinterpret_cast<std::uint16_t*>(raw);
  std::uint16_t *const v_rows = k_rows + kSm80Rows * kPitch, *const q_rows = v_rows + kSm80Rows * kPitch,
                       *const g_rows = q_rows + kQueries * kPitch;
  auto* const begins = reinterpret_cast<int*>(g_rows + kQueries * kPitch);
  int *const ends = begins + kSm80Rows, *const diagonals = ends + kSm80Rows;
  auto *const lses = reinterpret_cast<float*>(diagonals + kSm80Rows), *const deltas = lses + kSm80Rows;
  const QueryFacts facts{begins, ends, diagonals, lses, deltas};
  const Tile<kPitch> k{shared_address(k_rows)}, v{shared_address(v_rows)}, q{shared_address(q_rows)},
      g{shared_address(g_rows)};

  const int key_block = static_cast<int>(block() % static_cast<unsigned>(p.key_blocks));
  const int at = static_cast<int>(block() / static_cast<unsigned>(p.key_blocks));
  const int batch = at / p.key_heads, key_head = at - batch * p.key_heads, per_key = p.heads / p.key_heads;
  const int lane = static_cast<int>(thread() % 32), warp = static_cast<int>(thread() / 32);
  const int key0 = key_block * kSm80Rows, key1 = key0 + kSm80Rows < p.keys ? key0 + kSm80Rows : p.keys;
  const std::uint8_t* const mask =
      p.key_range.key_mask == nullptr ? nullptr : p.key_range.key_mask + std::int64_t{batch} * p.keys;
  load_tile<kSm80Rows, kFeatures>(k_rows, p.k, batch, key_head, key0, 0, p.keys, mask);
  load_tile<kSm80Rows, kFeatures>(v_rows, p.v, batch, key_head, key0, 0, p.keys, mask);

  const auto [first, last] = queries_of_keys(p, key0, key1);
  const int my_key = key0 + warp * 16 + lane / 4;
  const bool is_there[2] = {my_key < p.keys && (mask == nullptr || mask[my_key] != 0),
                            my_key + 8 < p.keys && (mask == nullptr || mask[my_key + 8] != 0)};
  const std::int64_t place[2] = {key_place_of(p.bias, batch, my_key, p.keys),
                                 key_place_of(p.bias, batch, my_key + 8, p.keys)};
  const float scale2 = p.scale * kSm80Log2e;
  float dk[kKeys ? kFeatures / 8 : 1][4] = {}, dv[kValues ? kFeatures / 8 : 1][4] = {};

  for (int n_head = 0; n_head < per_key; ++n_head) {
    const int head = key_head * per_key + n_head;
    const std::int64_t rows = (std::int64_t{batch} * p.heads + head) * p.queries;
    for (int query0 = first; query0 < last; query0 += kQueries) {
      int is_seen_at_all = 0;
      if (thread() < kQueries) {
        const int query = query0 + static_cast<int>(thread());
        is_seen_at_all = write_facts(p, facts, thread(), batch, rows, query, key0, key1);
      }
      if (__nvvm_bar0_or(is_seen_at_all) == 0) continue;  // this also synchronizes the block
      load_tile<kQueries, kFeatures>(q_rows, p.q, batch, head, query0, 0, p.queries, nullptr);
      load_tile<kQueries, kFeatures>(g_rows, p.d_out, batch, head, query0, 0, p.queries, nullptr);
      sync_block();
      float s[kQueries / 8][4] = {}, dp[kQueries / 8][4] = {};
#pragma unroll
      for (int f = 0; f < kFeatures; f += 16) {
        std::uint32_t a[4];
        k.left(a, warp * 16, f, lane);
        multiply_columns(s, a, q, f, lane);
        if constexpr (kKeys) {
          v.left(a, warp * 16, f, lane);
          multiply_columns(dp, a, g, f, lane);
        }
      }
      std::uint32_t weights[kQueries / 8][2], ds[kQueries / 8][2];
#pragma unroll
      for (int n = 0; n < kQueries / 8; ++n) {
#pragma unroll
        for (int e = 0; e < 4; ++e) {
          const int column = 8 * n + 2 * (lane % 4) + e % 2, r = e / 2, key = my_key + 8 * r;
          const bool is_seen = is_there[r] && key >= begins[column] && key < ends[column];
          float bias = 0;
          if (p.bias.kind != kSm80None) {
            const QueryPlace query = place_of(p.bias, batch, query0 + column, p.queries, diagonals[column]);
            bias = bias_of(p.bias, head, place[r] - query.id);
          }
          const float weight = is_seen ? power_of_two(__builtin_fmaf(s[n][e], scale2, bias + lses[column])) : 0.0f;
          s[n][e] = weight;
          dp[n][e] = is_seen ? weight * (dp[n][e] - deltas[column]) : 0.0f;
        }
        weights[n][0] = pack(s[n][0], s[n][1]), weights[n][1] = pack(s[n][2], s[n][3]);
        ds[n][0] = pack(dp[n][0], dp[n][1]), ds[n][1] = pack(dp[n][2], dp[n][3]);
      }
      add_gradients(dv, dk, weights, ds, g, q, lane);
      sync_block();
    }
  }

  const auto write = [&](const Sm80Tensor& x, const auto& sums, float scale) {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const int key = my_key + 8 * r;
      if (key < p.keys) write_row(x, batch, key_head, key, sums, r, scale, lane);
    }
  };
  if constexpr (kValues) {
    if (p.dv.data != nullptr) write(p.dv, dv, 1.0f);
  }
  if constexpr (kKeys) {
    if (p.dk.data != nullptr) write(p.dk, dk, p.scale);
  }
}

}  // namespace posenc::attend::cuda
