// Attention of few queries over many keys, as in decoding: memory's speed is its limit. A block takes a share of the keys of
// one key head for all query heads that share it: they are the rows of one matrix product, padded to 16. A warp takes 16 keys
// at a time straight from memory into the registers of the product, 16 bytes for each load, for the order of features in a sum
// is free: what lies side by side in memory is given to one lane, and q is loaded in the same order.
// POSENC_FEATURES is 64 or 128, POSENC_F16 1 for f16 and 0 for bf16.

#include "attention/cuda/any.cuh"

namespace posenc::attend::cuda {
namespace {

using kernels::cuda::Bytes16;
constexpr int kFeatures = POSENC_FEATURES;

// Two 16-bit numbers side by side, one from each word, from the lower or upper halves.
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
__device__ __forceinline__ Bytes16 load_once(const std::uint16_t* at) {
  Bytes16 x;
  asm volatile("ld.global.nc.L1::no_allocate.L2::256B.v4.b32 {%0, %1, %2, %3}, [%4];"
               : "=r"(x.x), "=r"(x.y), "=r"(x.z), "=r"(x.w)
               : "l"(at));
  return x;
}
__device__ __forceinline__ std::uint32_t word_of(const Bytes16& x, int n) {
  return n == 0 ? x.x : n == 1 ? x.y : n == 2 ? x.z : x.w;
}

}  // namespace

extern "C" __global__ void __launch_bounds__(128) decode_any(const __grid_constant__ DecodeParams p) {
  const int lane = static_cast<int>(kernels::cuda::thread() % 32),
            warp = static_cast<int>(kernels::cuda::thread() / 32);
  const int g = lane / 4, t = lane % 4;
  const int split = static_cast<int>(kernels::cuda::block()) % p.splits,
            at = static_cast<int>(kernels::cuda::block()) / p.splits;
  const int batch = at / p.key_heads, key_head = at - batch * p.key_heads, per_key = p.heads / p.key_heads;
  const int rows = p.queries * per_key;
  const std::uint8_t* const mask =
      p.sight.key_mask == nullptr ? nullptr : p.sight.key_mask + std::int64_t{batch} * p.keys;

  // Row r is query r / per_key of the key head's query head r % per_key.
  int head[2], query[2];
  Seen seen[2];
  QueryPlace place[2];
  int lowest = p.keys, highest = 0;
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const int row = g + 8 * r;
    query[r] = row < rows ? row / per_key : p.queries;
    head[r] = key_head * per_key + (row < rows ? row % per_key : 0);
    seen[r] = seen_by(p.sight, batch, query[r], p.queries, p.keys);
    place[r] = place_of(p.bias, batch, query[r], p.queries, seen[r].beside);
  }
  for (int i = 0; i < p.queries; ++i) {
    const Seen one = seen_by(p.sight, batch, i, p.queries, p.keys);
    if (one.begin >= one.end) continue;
    lowest = one.begin < lowest ? one.begin : lowest;
    highest = one.end > highest ? one.end : highest;
  }
  // Lane t's features of chunk c are 32 c + 8 t … + 7: two in each of four registers, for two products.
  std::uint32_t q[kFeatures / 32][2][4];
#pragma unroll
  for (int c = 0; c < kFeatures / 32; ++c) {
    Bytes16 x[2] = {};
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      if (query[r] >= p.queries) continue;
      x[r] = *reinterpret_cast<const Bytes16*>(static_cast<const std::uint16_t*>(p.q.data) + batch * p.q.batch +
                                               head[r] * p.q.head + query[r] * p.q.token + 32 * c + 8 * t);
    }
    q[c][0][0] = x[0].x, q[c][0][1] = x[1].x, q[c][0][2] = x[0].y, q[c][0][3] = x[1].y;
    q[c][1][0] = x[0].z, q[c][1][1] = x[1].z, q[c][1][2] = x[0].w, q[c][1][3] = x[1].w;
  }

  const float scale2 = p.scale * kAnyLog2e;
  float out[kFeatures / 8][4] = {}, most[2] = {-__builtin_inff(), -__builtin_inff()}, sum[2] = {0, 0};
  const int begin = split * p.keys_of_split > lowest / kDecodeKeys * kDecodeKeys ? split * p.keys_of_split
                                                                                 : lowest / kDecodeKeys * kDecodeKeys;
  const int end = (split + 1) * p.keys_of_split < highest ? (split + 1) * p.keys_of_split : highest;

#pragma unroll 1
  for (int key0 = begin + warp * kDecodeKeys; key0 < end; key0 += kDecodeWarps * kDecodeKeys) {
    std::int64_t first = batch, token0 = key0;  // which matrix of k and v, and where in it
    if (p.block_table != nullptr) {
      const int page = key0 / p.page_size;
      first = p.block_table[std::int64_t{batch} * p.table_width + page];
      token0 = key0 - page * p.page_size;
    }
    const auto is_there = [&](int n) {
      const int key = key0 + n;
      return key >= lowest && key < end && (mask == nullptr || mask[key] != 0);
    };
    const std::uint16_t *const k_page = static_cast<const std::uint16_t*>(p.k.data) + first * p.k.batch +
                                        key_head * p.k.head,
                               *const v_page = static_cast<const std::uint16_t*>(p.v.data) + first * p.v.batch +
                                               key_head * p.v.head;
    Bytes16 k[2][kFeatures / 32], v[4][kFeatures / 64];
#pragma unroll
    for (int n = 0; n < 2; ++n) {
      const bool is_read = is_there(8 * n + g);
#pragma unroll
      for (int c = 0; c < kFeatures / 32; ++c) {
        k[n][c] =
            is_read ? load_once(k_page + (token0 + 8 * n + g) * p.k.token + 32 * c + 8 * t) : Bytes16{0, 0, 0, 0};
      }
    }
#pragma unroll
    for (int n = 0; n < 4; ++n) {
      const int key = 2 * t + n % 2 + n / 2 * 8;
      const bool is_read = is_there(key);
#pragma unroll
      for (int c = 0; c < kFeatures / 64; ++c) {
        v[n][c] = is_read ? load_once(v_page + (token0 + key) * p.v.token + 64 * c + 8 * g) : Bytes16{0, 0, 0, 0};
      }
    }
    float s[2][4] = {};
#pragma unroll
    for (int n = 0; n < 2; ++n) {
#pragma unroll
      for (int c = 0; c < kFeatures / 32; ++c) {
        const std::uint32_t low[2] = {k[n][c].x, k[n][c].y}, high[2] = {k[n][c].z, k[n][c].w};
        multiply(s[n], q[c][0], low);
        multiply(s[n], q[c][1], high);
      }
    }
    float top[2] = {most[0], most[1]}, shift[2];
#pragma unroll
    for (int n = 0; n < 2; ++n) {
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const int key = key0 + 8 * n + 2 * t + e % 2, r = e / 2;
        const bool is_seen =
            key >= seen[r].begin && key < seen[r].end && key < end && (mask == nullptr || mask[key] != 0);
        const float bias = p.bias.kind == kAnyNone || !is_seen
                               ? 0.0f
                               : bias_of(p.bias, head[r], key_place_of(p.bias, batch, key, p.keys) - place[r].id);
        s[n][e] = is_seen ? __builtin_fmaf(s[n][e], scale2, bias) : -__builtin_inff();
        top[r] = larger(top[r], s[n][e]);
      }
    }
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
#pragma unroll
    for (int n = 0; n < 2; ++n) {
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        s[n][e] = power_of_two(s[n][e] - shift[e / 2]);
        sum[e / 2] += s[n][e];
      }
    }
    const std::uint32_t weights[4] = {pack(s[0][0], s[0][1]), pack(s[0][2], s[0][3]), pack(s[1][0], s[1][1]),
                                      pack(s[1][2], s[1][3])};
    // Column g of product 8 c + j is feature 64 c + 8 g + j.
#pragma unroll
    for (int c = 0; c < kFeatures / 64; ++c) {
#pragma unroll
      for (int j = 0; j < 8; j += 2) {
        const std::uint32_t a = word_of(v[0][c], j / 2), b = word_of(v[1][c], j / 2), d = word_of(v[2][c], j / 2),
                            e = word_of(v[3][c], j / 2);
        const std::uint32_t low[2] = {both_low(a, b), both_low(d, e)}, high[2] = {both_high(a, b), both_high(d, e)};
        multiply(out[8 * c + j], weights, low);
        multiply(out[8 * c + j + 1], weights, high);
      }
    }
  }

#pragma unroll
  for (int r = 0; r < 2; ++r) {
    sum[r] += from_neighbour(sum[r], 1);
    sum[r] += from_neighbour(sum[r], 2);
    if (query[r] >= p.queries) continue;
    const std::int64_t part =
        ((std::int64_t{batch} * p.heads + head[r]) * p.queries + query[r]) * p.parts + split * kDecodeWarps + warp;
    if (t == 0) p.part_sums[2 * part] = most[r], p.part_sums[2 * part + 1] = sum[r];
    // Of product 8 c + j a lane holds columns 2 t and 2 t + 1: features 64 c + 16 t + j and + 8.
    float* const to = p.parts_out + part * kFeatures;
#pragma unroll
    for (int c = 0; c < kFeatures / 64; ++c) {
#pragma unroll
      for (int e = 0; e < 2; ++e) {
#pragma unroll
        for (int j = 0; j < 8; j += 4) {
          *reinterpret_cast<kernels::cuda::Float4*>(to + 64 * c + 16 * t + 8 * e + j) = {
              out[8 * c + j][2 * r + e], out[8 * c + j + 1][2 * r + e], out[8 * c + j + 2][2 * r + e],
              out[8 * c + j + 3][2 * r + e]};
        }
      }
    }
  }
}

}  // namespace posenc::attend::cuda
