// dq for any GPU, and the sums for the bias's parameters: a block takes 64 queries of one head, 16 for each of four
// warps, and loops over the keys that they attend to. dq is bitwise reproducible; the parameters' sums are added in
// double in order of arrival.
// POSENC_FEATURES is 64, 128 or 256; POSENC_F16 1 for f16 and 0 for bf16.

#include "attention/cuda/sm80.cuh"

namespace posenc::attend::cuda {
namespace {

__device__ __forceinline__ void add_double(double* to, double value) {
  asm volatile("red.global.add.f64 [%0], %1;" ::"l"(to), "d"(value) : "memory");
}

}  // namespace

extern "C" __global__ void __launch_bounds__(128) sm80_queries(const __grid_constant__ Sm80BackwardParams p) {
  using namespace kernels::cuda;
  constexpr int kFeatures = POSENC_FEATURES, kKeys = rows_of_other(kFeatures), kPitch = sm80_pitch(kFeatures);
  extern __shared__ std::uint8_t raw[] __attribute__((aligned(16)));
  auto* const q_rows = reinterpret_cast<std::uint16_t*>(raw);
  std::uint16_t *const g_rows = q_rows + kSm80Rows * kPitch, *const k_rows = g_rows + kSm80Rows * kPitch,
                       *const v_rows = k_rows + kKeys * kPitch;
  auto* const limits = reinterpret_cast<int*>(v_rows + kKeys * kPitch);
  const Tile<kPitch> q{shared_address(q_rows)}, g{shared_address(g_rows)}, k{shared_address(k_rows)},
      v{shared_address(v_rows)};

  RowBlock at = row_block_of(p);
  load_tile<kSm80Rows, kFeatures>(q_rows, p.q, at.batch, at.head, at.row0, 0, p.queries, nullptr);
  load_tile<kSm80Rows, kFeatures>(g_rows, p.d_out, at.batch, at.head, at.row0, 0, p.queries, nullptr);
  find_keys(p, limits, at);
  const auto& [bh, batch, head, key_head, row0, lane, warp, my_row, mask, lowest, highest, seen, place] = at;
  float lse[2], delta[2];
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const int query = row0 + my_row + 8 * r;
    const std::int64_t row = std::int64_t{bh} * p.queries + query;
    lse[r] = query < p.queries ? p.neg_lse[row] : 0.0f;
    delta[r] = query < p.queries ? p.delta[row] : 0.0f;
  }
  const float scale2 = p.scale * kSm80Log2e;
  float dq[kFeatures / 8][4] = {};
  double of_slope = 0;

  for (int key0 = lowest; key0 < highest; key0 += kKeys) {
    load_tile<kKeys, kFeatures>(k_rows, p.k, batch, key_head, key0, lowest, highest, mask);
    load_tile<kKeys, kFeatures>(v_rows, p.v, batch, key_head, key0, lowest, highest, mask);
    sync_block();
    float s[kKeys / 8][4] = {}, dp[kKeys / 8][4] = {};
#pragma unroll
    for (int f = 0; f < kFeatures; f += 16) {
      std::uint32_t a[4];
      q.left(a, warp * 16, f, lane);
      multiply_columns(s, a, k, f, lane);
      g.left(a, warp * 16, f, lane);
      multiply_columns(dp, a, v, f, lane);
    }
    float far = 0;  // of this lane, if all its pairs read one entry
    std::int64_t far_entry = -1;
    std::uint32_t ds[kKeys / 8][2];
#pragma unroll
    for (int n = 0; n < kKeys / 8; ++n) {
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const int key = key0 + 8 * n + 2 * (lane % 4) + e % 2, r = e / 2;
        const bool is_seen = key >= seen[r].begin && key < seen[r].end && (mask == nullptr || mask[key] != 0);
        std::int64_t apart = 0;
        float bias = 0;
        if (p.bias.kind != kSm80None) {
          apart = key_place_of(p.bias, batch, key, p.keys) - place[r].id;
          bias = bias_of(p.bias, head, apart);
        }
        const float weight = is_seen ? power_of_two(__builtin_fmaf(s[n][e], scale2, bias + lse[r])) : 0.0f;
        dp[n][e] = is_seen ? weight * (dp[n][e] - delta[r]) : 0.0f;
        if (p.sums != nullptr && is_seen) {
          if (p.bias.kind == kSm80Slopes) {
            of_slope -= static_cast<double>(dp[n][e]) * static_cast<double>(apart < 0 ? -apart : apart);
          } else {
            // Neighbours that read the same entry are summed before the atomic addition.
            const std::int64_t entry = entry_at(p.bias, apart);
            if (entry != far_entry && far_entry >= 0) {
              add_double(p.sums + std::int64_t{head} * p.sum_rows + p.bias.rows[far_entry], static_cast<double>(far));
              far = 0;
            }
            far_entry = entry;
            far += dp[n][e];
          }
        }
      }
      ds[n][0] = pack(dp[n][0], dp[n][1]), ds[n][1] = pack(dp[n][2], dp[n][3]);
    }
    if (p.sums != nullptr && p.bias.kind == kSm80Table) {
      // All lanes read the same distant entry: one sum for the warp.
      const int mine = static_cast<int>(far_entry), all = from_lane(mine, 0);
      if (!any_lane(mine != all) && all >= 0) {
#pragma unroll
        for (int n = 16; n > 0; n /= 2) far += from_neighbour(far, n);
        if (lane == 0)
          add_double(p.sums + std::int64_t{head} * p.sum_rows + p.bias.rows[all], static_cast<double>(far));
      } else if (far_entry >= 0) {
        add_double(p.sums + std::int64_t{head} * p.sum_rows + p.bias.rows[far_entry], static_cast<double>(far));
      }
    }
    add_weighted(dq, ds, k, lane);
    sync_block();
  }

  if (p.sums != nullptr && p.bias.kind == kSm80Slopes && of_slope != 0) add_double(p.sums + head, of_slope);
  if (p.dq.data == nullptr) return;
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const int query = row0 + my_row + 8 * r;
    if (query < p.queries) write_row(p.dq, batch, head, query, dq, r, p.scale, lane);
  }
}

}  // namespace posenc::attend::cuda
