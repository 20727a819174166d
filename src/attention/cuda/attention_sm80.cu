// Attention for any GPU of compute capability 8.0 or newer: any key mask, any number of queries and keys, up to 256
// features. A block takes 64 queries of one head, 16 for each of four warps, and loops over the keys that they attend
// to.
// POSENC_FEATURES is 64, 128 or 256 (fewer are padded with zeros), POSENC_F16 1 for f16 and 0 for bf16.

#include "attention/cuda/sm80.cuh"

namespace posenc::attend::cuda {

extern "C" __global__ void __launch_bounds__(128) attention_sm80(const __grid_constant__ Sm80Params p) {
  using namespace kernels::cuda;
  constexpr int kFeatures = POSENC_FEATURES, kKeys = keys_of_tile(kFeatures), kPitch = sm80_pitch(kFeatures);
  extern __shared__ std::uint8_t raw[] __attribute__((aligned(16)));
  auto* const q_rows = reinterpret_cast<std::uint16_t*>(raw);
  std::uint16_t *const k_rows = q_rows + kSm80Rows * kPitch, *const v_rows = k_rows + kKeys * kPitch;
  auto* const limits = reinterpret_cast<int*>(v_rows + kKeys * kPitch);  // begin and end of every row
  const Tile<kPitch> q{shared_address(q_rows)}, k{shared_address(k_rows)}, v{shared_address(v_rows)};

  RowBlock at = row_block_of(p);
  load_tile<kSm80Rows, kFeatures>(q_rows, p.q, at.batch, at.head, at.row0, 0, p.queries, nullptr);
  find_keys(p, limits, at);
  const auto& [bh, batch, head, key_head, row0, lane, warp, my_row, mask, lowest, highest, seen, place] = at;
  const float scale2 = p.scale * kSm80Log2e;
  std::int32_t bad_page = kNoBadPage;
  float out[kFeatures / 8][4] = {}, most[2] = {-__builtin_inff(), -__builtin_inff()}, sum[2] = {0, 0};

  for (int key0 = lowest; key0 < highest; key0 += kKeys) {
    load_tile<kKeys, kFeatures>(k_rows, p.k, batch, key_head, key0, lowest, highest, mask, bad_page);
    load_tile<kKeys, kFeatures>(v_rows, p.v, batch, key_head, key0, lowest, highest, mask, bad_page);
    sync_block();
    float s[kKeys / 8][4] = {};
#pragma unroll
    for (int f = 0; f < kFeatures; f += 16) {
      std::uint32_t a[4];
      q.left(a, warp * 16, f, lane);
      multiply_columns(s, a, k, f, lane);
    }
    float top[2] = {most[0], most[1]};
#pragma unroll
    for (int n = 0; n < kKeys / 8; ++n) {
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const int key = key0 + 8 * n + 2 * (lane % 4) + e % 2, r = e / 2;
        const bool is_seen = key >= seen[r].begin && key < seen[r].end && (mask == nullptr || mask[key] != 0);
        const float bias = p.bias.kind == kSm80None
                               ? 0.0f
                               : bias_of(p.bias, head, key_place_of(p.bias, batch, key, p.keys) - place[r].id);
        s[n][e] = is_seen ? __builtin_fmaf(s[n][e], scale2, bias) : -__builtin_inff();
        top[r] = larger(top[r], s[n][e]);
      }
    }
    float shift[2];
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      top[r] = larger(top[r], from_neighbour(top[r], 1));
      top[r] = larger(top[r], from_neighbour(top[r], 2));
      shift[r] = top[r] == -__builtin_inff() ? 0.0f : top[r];
      const float alpha = power_of_two(most[r] - shift[r]);
      most[r] = top[r];
      sum[r] *= alpha;
#pragma unroll
      for (int f = 0; f < kFeatures / 8; ++f) out[f][2 * r] *= alpha, out[f][2 * r + 1] *= alpha;
    }
    std::uint32_t weights[kKeys / 8][2];
#pragma unroll
    for (int n = 0; n < kKeys / 8; ++n) {
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        s[n][e] = power_of_two(s[n][e] - shift[e / 2]);
        sum[e / 2] += s[n][e];
      }
      weights[n][0] = pack(s[n][0], s[n][1]);
      weights[n][1] = pack(s[n][2], s[n][3]);
    }
    add_weighted(out, weights, v, lane);
    sync_block();
  }
  report_page(p.key_range, p.k, bad_page);

#pragma unroll
  for (int r = 0; r < 2; ++r) {
    sum[r] += from_neighbour(sum[r], 1);
    sum[r] += from_neighbour(sum[r], 2);
    const int query = row0 + my_row + 8 * r;
    if (query >= p.queries) continue;
    const bool is_empty = sum[r] == 0;  // a query with no visible key gives zeros
    const float inverse = is_empty ? 0.0f : reciprocal(sum[r]);
    write_row(p.out, batch, head, query, out, r, inverse, lane, is_empty);
    if (p.logsumexp != nullptr && lane % 4 == 0) {
      p.logsumexp[batch * p.lse_batch + head * p.lse_head + query * p.lse_token] =
          is_empty ? -__builtin_inff() : (most[r] + log_of_two(sum[r])) * kSm80Ln2;
    }
  }
}

}  // namespace posenc::attend::cuda
