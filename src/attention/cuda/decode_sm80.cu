// Attention of few queries over many keys, as in decoding, limited by memory bandwidth. A block takes a share of the
// keys of one key head for all query heads that share it: they are the rows of one matrix product, padded to 8 or 16.
// A warp takes 16 keys at a time. The order of features in a sum is arbitrary, so 16 bytes that are adjacent in
// memory go to one lane, and q is loaded in the same order.
// POSENC_FEATURES is 64 or 128, POSENC_ROWS 8 or 16, POSENC_F16 1 for f16 and 0 for bf16.

#include "attention/cuda/decode_ring.cuh"

namespace posenc::attend::cuda {
namespace {

constexpr int kGroups = POSENC_ROWS / 8;  // rows per lane
using Scores = float[2][2 * kGroups];

// Two 16-bit numbers packed into one word, one from each word, from the lower or upper halves.
__device__ __forceinline__ std::uint32_t both_low(std::uint32_t a, std::uint32_t b) {
  std::uint32_t word;
  asm("prmt.b32 %0, %1, %2, 0x5410;" : "=r"(word) : "r"(a), "r"(b));
  return word;
}
__device__ __forceinline__ std::uint32_t both_high(std::uint32_t a, std::uint32_t b) {
  std::uint32_t word;
  asm("prmt.b32 %0, %1, %2, 0x7632;" : "=r"(word) : "r"(a), "r"(b));
  return word;
}
__device__ __forceinline__ std::uint32_t word_of(const Bytes16& x, int n) {
  return n == 0 ? x.x : n == 1 ? x.y : n == 2 ? x.z : x.w;
}
// c += a b; with 8 rows, the lower half of a is zeros and that of c is not stored.
__device__ __forceinline__ void multiply_rows(float (&c)[2 * kGroups], const std::uint32_t (&a)[2 * kGroups],
                                              const std::uint32_t (&b)[2]) {
  if constexpr (kGroups == 2) {
    multiply(c, a, b);
  } else {
    float unused0, unused1;
    asm volatile(POSENC_MMA " {%0, %1, %2, %3}, {%4, %5, %6, %5}, {%7, %8}, {%0, %1, %9, %9};"
                 : "+f"(c[0]), "+f"(c[1]), "=f"(unused0), "=f"(unused1)
                 : "r"(a[0]), "r"(0u), "r"(a[1]), "r"(b[0]), "r"(b[1]), "f"(0.0f));
  }
}

// Row r of a lane is row g + 8 r of the product: query row / per_key of the key head's query head row % per_key.
struct Rows {
  int head[kGroups], query[kGroups];
  KeyRange seen[kGroups];
  QueryPlace place[kGroups];
  float slope2[kGroups], far[kGroups];  // the bias by key index: slopes as a product, the far end of a table
};
__device__ __forceinline__ void find_rows(Rows& rows, const DecodeParams& p, const Share& share, int g) {
  const int count = p.queries * share.per_key;
#pragma unroll
  for (int r = 0; r < kGroups; ++r) {
    const int row = g + 8 * r;
    rows.query[r] = row < count ? row / share.per_key : p.queries;
    rows.head[r] = share.key_head * share.per_key + (row < count ? row % share.per_key : 0);
    rows.seen[r] = key_range_of(p.key_range, share.batch, rows.query[r], p.queries, p.keys);
    rows.place[r] = place_of(p.bias, share.batch, rows.query[r], p.queries, rows.seen[r].diagonal);
  }
}
__device__ __forceinline__ void load_bias(Rows& rows, const DecodeParams& p) {
#pragma unroll
  for (int r = 0; r < kGroups; ++r) {
    rows.slope2[r] = p.bias.kind == kSm80Slopes ? p.bias.slopes[rows.head[r]] * kSm80Log2e : 0.0f;
    rows.far[r] = p.bias.kind == kSm80Table ? p.bias.table[rows.head[r] * p.bias.count] * kSm80Log2e : 0.0f;
  }
}

// Lane t's features of chunk c are 32 c + 8 t … + 7: two in each of four registers, for two products.
__device__ __forceinline__ void load_queries(std::uint32_t (&q)[kChunks][2][2 * kGroups], const DecodeParams& p,
                                             const Share& share, const Rows& rows, int t) {
#pragma unroll
  for (int c = 0; c < kChunks; ++c) {
#pragma unroll
    for (int r = 0; r < kGroups; ++r) {
      Bytes16 x{0, 0, 0, 0};
      if (rows.query[r] < p.queries) {
        x = *reinterpret_cast<const Bytes16*>(static_cast<const std::uint16_t*>(p.q.data) + share.batch * p.q.batch +
                                              rows.head[r] * p.q.head + rows.query[r] * p.q.token + 32 * c + 8 * t);
      }
      q[c][0][r] = x.x, q[c][0][kGroups + r] = x.y, q[c][1][r] = x.z, q[c][1][kGroups + r] = x.w;
    }
  }
}

__device__ __forceinline__ void multiply_keys(Scores& s, const std::uint32_t (&q)[kChunks][2][2 * kGroups],
                                              std::uint32_t from, int lane) {
  const auto k_even = static_cast<std::uint32_t>(lane * 16), k_odd = static_cast<std::uint32_t>((lane ^ 4) * 16);
#pragma unroll
  for (int n = 0; n < 2; ++n) {
#pragma unroll
    for (int c = 0; c < kChunks; ++c) {
      const Bytes16 k = take(from + (n * kChunks + c) * 512 + (c % 2 == 0 ? k_even : k_odd));
      const std::uint32_t low[2] = {k.x, k.y}, high[2] = {k.z, k.w};
      multiply_rows(s[n], q[c][0], low);
      multiply_rows(s[n], q[c][1], high);
    }
  }
}

// Whether all rows attend to the 16 keys, and the bias is a slope or the far end of the table.
__device__ __forceinline__ bool is_plain(const DecodeParams& p, const Reach& reach, int key0) {
  const bool is_whole =
      key0 >= reach.inner_begin && key0 + kDecodeKeys <= (reach.inner_end < reach.end ? reach.inner_end : reach.end);
  return is_whole && (p.bias.kind == kSm80None || p.bias.by_index != 0) &&
         (p.bias.kind != kSm80Table || key0 + kDecodeKeys - 1 - reach.least_place <= p.bias.first);
}
__device__ __forceinline__ void add_bias_by_index(Scores& s, const Rows& rows, float scale2, int first) {
#pragma unroll
  for (int r = 0; r < kGroups; ++r) {
    const auto apart = static_cast<float>(static_cast<int>(first - rows.place[r].id));
#pragma unroll
    for (int n = 0; n < 2; ++n) {
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        // far is 0 with slopes, slope2 is 0 with a table.
        const float bias =
            __builtin_fmaf(-rows.slope2[r], __builtin_fabsf(apart + static_cast<float>(8 * n + e)), rows.far[r]);
        s[n][2 * r + e] = __builtin_fmaf(s[n][2 * r + e], scale2, bias);
      }
    }
  }
}
__device__ __forceinline__ void add_bias_by_key(Scores& s, const DecodeParams& p, const Share& share,
                                                const Reach& reach, const Rows& rows, float scale2, int first) {
  const bool has_bias = p.bias.kind != kSm80None;
#pragma unroll
  for (int r = 0; r < kGroups; ++r) {
#pragma unroll
    for (int n = 0; n < 2; ++n) {
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        const int key = first + 8 * n + e;
        const bool is_seen = key >= rows.seen[r].begin && key < rows.seen[r].end && is_there(share, reach, key);
        const float bias =
            has_bias && is_seen
                ? bias_of(p.bias, rows.head[r], key_place_of(p.bias, share.batch, key, p.keys) - rows.place[r].id)
                : 0.0f;
        s[n][2 * r + e] = is_seen ? __builtin_fmaf(s[n][2 * r + e], scale2, bias) : -__builtin_inff();
      }
    }
  }
}

struct SoftmaxState {
  float out[kFeatures / 8][2 * kGroups], most[kGroups], sum[kGroups];
};
__device__ __forceinline__ void raise_maximum(SoftmaxState& state, const Scores& s) {
  bool is_higher = false;
  float top[kGroups];
#pragma unroll
  for (int r = 0; r < kGroups; ++r) {
    top[r] = larger(larger(s[0][2 * r], s[0][2 * r + 1]), larger(s[1][2 * r], s[1][2 * r + 1]));
    is_higher = is_higher || top[r] > state.most[r];
    top[r] = larger(top[r], state.most[r]);
  }
  if (!any_lane(is_higher)) return;  // most often, after the first steps
#pragma unroll
  for (int r = 0; r < kGroups; ++r) {
    top[r] = larger(top[r], from_neighbour(top[r], 1));
    top[r] = larger(top[r], from_neighbour(top[r], 2));
    const float alpha = top[r] == -__builtin_inff() ? 1.0f : power_of_two(state.most[r] - top[r]);
    state.most[r] = top[r];
    state.sum[r] *= alpha;
#pragma unroll
    for (int f = 0; f < kFeatures / 8; ++f) state.out[f][2 * r] *= alpha, state.out[f][2 * r + 1] *= alpha;
  }
}
__device__ __forceinline__ void weigh(std::uint32_t (&weights)[2 * kGroups], SoftmaxState& state, const Scores& s) {
#pragma unroll
  for (int r = 0; r < kGroups; ++r) {
    const float shift = state.most[r] == -__builtin_inff() ? 0.0f : state.most[r];
#pragma unroll
    for (int n = 0; n < 2; ++n) {
      const float a = power_of_two(s[n][2 * r] - shift), b = power_of_two(s[n][2 * r + 1] - shift);
      state.sum[r] += a + b;
      weights[n * kGroups + r] = pack(a, b);
    }
  }
}
// Column g of product 8 c + j is feature 64 c + 8 g + j.
__device__ __forceinline__ void add_values(SoftmaxState& state, const std::uint32_t (&weights)[2 * kGroups],
                                           std::uint32_t from, int g, int t) {
  const auto v_own = static_cast<std::uint32_t>((t * 8 + ((g + 2 * t) & 7)) * 16);
#pragma unroll
  for (int c = 0; c < kWide; ++c) {
    Bytes16 v[4];
#pragma unroll
    for (int n = 0; n < 4; ++n) v[n] = take(from + (2 * kChunks + n * kWide + c) * 512 + v_own);
#pragma unroll
    for (int j = 0; j < 8; j += 2) {
      const std::uint32_t a = word_of(v[0], j / 2), b = word_of(v[1], j / 2), d = word_of(v[2], j / 2),
                          e = word_of(v[3], j / 2);
      const std::uint32_t low[2] = {both_low(a, b), both_low(d, e)}, high[2] = {both_high(a, b), both_high(d, e)};
      multiply_rows(state.out[8 * c + j], weights, low);
      multiply_rows(state.out[8 * c + j + 1], weights, high);
    }
  }
}

// The part of each row that this warp has computed.
__device__ __forceinline__ void store(SoftmaxState& state, const DecodeParams& p, const Share& share,
                                      const Rows& rows, int warp, int t) {
#pragma unroll
  for (int r = 0; r < kGroups; ++r) {
    state.sum[r] += from_neighbour(state.sum[r], 1);
    state.sum[r] += from_neighbour(state.sum[r], 2);
    if (rows.query[r] >= p.queries) continue;
    const std::int64_t row = (std::int64_t{share.batch} * p.heads + rows.head[r]) * p.queries + rows.query[r];
    const std::int64_t piece = row * p.parts + share.split * kDecodeWarps + warp;
    if (t == 0) p.part_sums[2 * piece] = state.most[r], p.part_sums[2 * piece + 1] = state.sum[r];
    // Of product 8 c + j a lane holds columns 2 t and 2 t + 1: features 64 c + 16 t + j and + 8.
    float* const to = p.parts_out + piece * kFeatures;
#pragma unroll
    for (int c = 0; c < kWide; ++c) {
#pragma unroll
      for (int e = 0; e < 2; ++e) {
#pragma unroll
        for (int j = 0; j < 8; j += 4) {
          *reinterpret_cast<kernels::cuda::Float4*>(to + 64 * c + 16 * t + 8 * e + j) = {
              state.out[8 * c + j][2 * r + e], state.out[8 * c + j + 1][2 * r + e],
              state.out[8 * c + j + 2][2 * r + e], state.out[8 * c + j + 3][2 * r + e]};
        }
      }
    }
  }
}

}  // namespace

extern "C" __global__ void __launch_bounds__(32 * kDecodeWarps, 2)
    decode_sm80(const __grid_constant__ DecodeParams p) {
  extern __shared__ std::uint8_t raw[] __attribute__((aligned(16)));
  const int lane = static_cast<int>(kernels::cuda::thread() % 32),
            warp = static_cast<int>(kernels::cuda::thread() / 32);
  const int g = lane / 4, t = lane % 4;
  const Share share = share_of(p);
  check_length(p.key_range, share.batch, p.keys);
  Rows rows;
  find_rows(rows, p, share, g);
  const Reach reach = reach_of(p, share, warp);
  Ring ring =
      ring_of(p, share, reach, lane, shared_address(raw) + static_cast<std::uint32_t>(warp * kStages * kLoads * 512));
#pragma unroll
  for (int stage = 0; stage < kStages - 1; ++stage) ask(ring, p, share, reach, reach.start + stage * kStep, stage);

  std::uint32_t q[kChunks][2][2 * kGroups];
  load_queries(q, p, share, rows, t);
  load_bias(rows, p);
  const float scale2 = p.scale * kSm80Log2e;
  SoftmaxState state{};
#pragma unroll
  for (int r = 0; r < kGroups; ++r) state.most[r] = -__builtin_inff();

  int stage = 0, asked = kStages - 1;
#pragma unroll 1
  for (int key0 = reach.start; key0 < reach.end; key0 += kStep) {
    kernels::cuda::sync_warp();  // all have read what is overwritten now
    ask(ring, p, share, reach, key0 + (kStages - 1) * kStep, asked);
    if (++asked == kStages) asked = 0;
    asm volatile("cp.async.wait_group %0;" ::"n"(kStages - 1) : "memory");
    kernels::cuda::sync_warp();
    const std::uint32_t from = ring.base + static_cast<std::uint32_t>(stage * kLoads * 512);
    if (++stage == kStages) stage = 0;

    Scores s = {};
    multiply_keys(s, q, from, lane);
    if (is_plain(p, reach, key0)) {
      add_bias_by_index(s, rows, scale2, key0 + 2 * t);
    } else {
      add_bias_by_key(s, p, share, reach, rows, scale2, key0 + 2 * t);
    }
    raise_maximum(state, s);
    std::uint32_t weights[2 * kGroups];
    weigh(weights, state, s);
    add_values(state, weights, from, g, t);
  }
  asm volatile("cp.async.wait_all;" ::: "memory");
  report_page(p.key_range, p.k, ring.bad_page);
  store(state, p, share, rows, warp, t);
}

}  // namespace posenc::attend::cuda
