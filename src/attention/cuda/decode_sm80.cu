// Attention of few queries over many keys, as in decoding, limited by memory bandwidth. A block takes a share of the
// keys of one key head for all query heads that share it: they are the rows of one matrix product, padded to 8 or 16.
// A warp takes 16 keys at a time. The order of features in a sum is arbitrary, so 16 bytes that are adjacent in
// memory go to one lane, and q is loaded in the same order. A warp copies whole lines into its own ring in shared
// memory, some steps ahead, and waits for no other warp.
// POSENC_FEATURES is 64 or 128, POSENC_ROWS 8 or 16, POSENC_F16 1 for f16 and 0 for bf16.

#include "attention/cuda/sm80.cuh"

namespace posenc::attend::cuda {
namespace {

using kernels::cuda::Bytes16;
constexpr int kFeatures = POSENC_FEATURES, kGroups = POSENC_ROWS / 8;  // kGroups: rows per lane
constexpr int kStages = decode_stages(kFeatures), kLoads = kFeatures / 8;
constexpr int kChunks = kFeatures / 32, kWide = kFeatures / 64;

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
/// 16 bytes, or zeros.
__device__ __forceinline__ void copy_later(std::uint32_t to, const std::uint16_t* from, bool is_read) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(is_read ? 16 : 0)
               : "memory");
}
__device__ __forceinline__ Bytes16 take(std::uint32_t from) {
  Bytes16 x;
  asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];"
               : "=r"(x.x), "=r"(x.y), "=r"(x.z), "=r"(x.w)
               : "r"(from)
               : "memory");
  return x;
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

}  // namespace

extern "C" __global__ void __launch_bounds__(32 * kDecodeWarps, 2)
    decode_sm80(const __grid_constant__ DecodeParams p) {
  extern __shared__ std::uint8_t raw[] __attribute__((aligned(16)));
  const int lane = static_cast<int>(kernels::cuda::thread() % 32),
            warp = static_cast<int>(kernels::cuda::thread() / 32);
  const int g = lane / 4, t = lane % 4;
  // A warp's ring holds 512 bytes, 16 for each lane, for load n of stage s at ring + (s · loads + n) · 512. Lanes are
  // permuted within them, so that neither copying nor reading causes bank conflicts.
  const std::uint32_t ring = shared_address(raw) + static_cast<std::uint32_t>(warp * kStages * kLoads * 512);
  const auto k_even = static_cast<std::uint32_t>(lane * 16), k_odd = static_cast<std::uint32_t>((lane ^ 4) * 16),
             v_own = static_cast<std::uint32_t>((t * 8 + ((g + 2 * t) & 7)) * 16);
  const int split = static_cast<int>(kernels::cuda::block()) % p.splits,
            at = static_cast<int>(kernels::cuda::block()) / p.splits;
  const int batch = at / p.key_heads, key_head = at - batch * p.key_heads, per_key = p.heads / p.key_heads;
  const int rows = p.queries * per_key;
  const std::uint8_t* const mask =
      p.key_range.key_mask == nullptr ? nullptr : p.key_range.key_mask + std::int64_t{batch} * p.keys;

  check_length(p.key_range, batch, p.keys);
  // Row r is query r / per_key of the key head's query head r % per_key.
  int head[kGroups], query[kGroups];
  KeyRange seen[kGroups];
  QueryPlace place[kGroups];
  int lowest = p.keys, highest = 0;
#pragma unroll
  for (int r = 0; r < kGroups; ++r) {
    const int row = g + 8 * r;
    query[r] = row < rows ? row / per_key : p.queries;
    head[r] = key_head * per_key + (row < rows ? row % per_key : 0);
    seen[r] = key_range_of(p.key_range, batch, query[r], p.queries, p.keys);
    place[r] = place_of(p.bias, batch, query[r], p.queries, seen[r].diagonal);
  }
  // The keys that all rows attend to, and the lowest place of a query: steps within need no check of single keys.
  int inner_begin = 0, inner_end = p.keys;
  std::int64_t least_place = std::int64_t{1} << 60;
  for (int i = 0; i < p.queries; ++i) {
    const KeyRange one = key_range_of(p.key_range, batch, i, p.queries, p.keys);
    inner_begin = one.begin > inner_begin ? one.begin : inner_begin;
    inner_end = one.end < inner_end ? one.end : inner_end;
    const std::int64_t where = place_of(p.bias, batch, i, p.queries, one.diagonal).id;
    least_place = where < least_place ? where : least_place;
    if (one.begin >= one.end) continue;
    lowest = one.begin < lowest ? one.begin : lowest;
    highest = one.end > highest ? one.end : highest;
  }
  if (mask != nullptr) inner_end = 0;
  const int begin = split * p.keys_of_split > lowest / kDecodeKeys * kDecodeKeys ? split * p.keys_of_split
                                                                                 : lowest / kDecodeKeys * kDecodeKeys;
  const int end = (split + 1) * p.keys_of_split < highest ? (split + 1) * p.keys_of_split : highest;
  constexpr int kStep = kDecodeWarps * kDecodeKeys;
  const int start = begin + warp * kDecodeKeys;

  const auto is_there = [&](int key) { return key >= lowest && key < end && (mask == nullptr || mask[key] != 0); };
  // Whole lines: 8 lanes per key, 4 keys at once. A lane copies for the lane that needs the data in the product: part
  // j of key 4 m + row of k for lane 4 (key % 8) + j % 4 of load j / 4; of v for lane 4 j + key % 8 / 2.
  const int row = lane / 8, part = lane % 8, pair = row / 2;
  const std::int64_t k_lane = key_head * p.k.head + row * p.k.token + 8 * part,
                     v_lane = key_head * p.v.head + row * p.v.token + 8 * part;
  const auto k_to = static_cast<std::uint32_t>(part / 4 * 512 + ((row * 4 + part % 4) ^ (part & 4)) * 16);
  const std::uint32_t v_to[2] = {
      static_cast<std::uint32_t>(row % 2 * kWide * 512 + (pair * 8 + ((part + 2 * pair) & 7)) * 16),
      static_cast<std::uint32_t>(row % 2 * kWide * 512 + ((pair + 2) * 8 + ((part + 2 * pair + 4) & 7)) * 16)};
  // In a paged cache, 16 keys lie in one page. It is looked up one step before its keys are requested.
  const bool has_pages = p.k.pages != nullptr;
  const std::int32_t* const pages = has_pages ? p.k.pages + std::int64_t{batch} * p.k.page_row : nullptr;
  std::int32_t bad_page = kNoBadPage;
  const auto page_at = [&](int key0) {
    if (!has_pages || key0 >= end) return has_pages ? 0 : batch;
    const std::int32_t page = pages[key0 / p.k.page_tokens];
    const bool is_page = static_cast<std::uint32_t>(page) < static_cast<std::uint32_t>(p.k.page_count);
    bad_page = is_page ? bad_page : page;
    return is_page ? page : 0;
  };
  int page_ahead = page_at(start);
  // Requests the 16 keys from key0 on.
  const auto ask = [&](int key0, int stage) {
    const std::int64_t first = page_ahead;  // which matrix of k and v
    page_ahead = page_at(key0 + kStep);
    if (key0 < end) {
      const int token0 = has_pages ? key0 % p.k.page_tokens : key0;
      const auto* const k =
          static_cast<const std::uint16_t*>(p.k.data) + first * p.k.batch + token0 * p.k.token + k_lane;
      const auto* const v =
          static_cast<const std::uint16_t*>(p.v.data) + first * p.v.batch + token0 * p.v.token + v_lane;
      const std::uint32_t to = ring + static_cast<std::uint32_t>(stage * kLoads * 512);
      const bool is_whole = mask == nullptr && key0 >= lowest && key0 + kDecodeKeys <= end;
#pragma unroll
      for (int m = 0; m < 4; ++m) {
        const bool is_read = is_whole || is_there(key0 + 4 * m + row);
        const auto* const k_from = is_read ? k + m * 4 * p.k.token : static_cast<const std::uint16_t*>(p.k.data);
        const auto* const v_from = is_read ? v + m * 4 * p.v.token : static_cast<const std::uint16_t*>(p.v.data);
#pragma unroll
        for (int c = 0; c < kWide; ++c) {
          const int ahead = is_read ? 64 * c : 0;
          copy_later(to + static_cast<std::uint32_t>((m / 2 * kChunks + 2 * c) * 512 + m % 2 * 256) + k_to,
                     k_from + ahead, is_read);
          copy_later(to + static_cast<std::uint32_t>((2 * kChunks + m / 2 * 2 * kWide + c) * 512) + v_to[m % 2],
                     v_from + ahead, is_read);
        }
      }
    }
    asm volatile("cp.async.commit_group;" ::: "memory");  // one per step, even if empty
  };
#pragma unroll
  for (int stage = 0; stage < kStages - 1; ++stage) ask(start + stage * kStep, stage);

  // Lane t's features of chunk c are 32 c + 8 t … + 7: two in each of four registers, for two products.
  std::uint32_t q[kChunks][2][2 * kGroups];
#pragma unroll
  for (int c = 0; c < kChunks; ++c) {
#pragma unroll
    for (int r = 0; r < kGroups; ++r) {
      Bytes16 x{0, 0, 0, 0};
      if (query[r] < p.queries) {
        x = *reinterpret_cast<const Bytes16*>(static_cast<const std::uint16_t*>(p.q.data) + batch * p.q.batch +
                                              head[r] * p.q.head + query[r] * p.q.token + 32 * c + 8 * t);
      }
      q[c][0][r] = x.x, q[c][0][kGroups + r] = x.y, q[c][1][r] = x.z, q[c][1][kGroups + r] = x.w;
    }
  }

  const float scale2 = p.scale * kSm80Log2e;
  // The bias by key index: slopes as a product, the far end of a table as a constant.
  const bool has_bias = p.bias.kind != kSm80None, by_index = p.bias.by_index != 0;
  float slope2[kGroups], far[kGroups];
#pragma unroll
  for (int r = 0; r < kGroups; ++r) {
    slope2[r] = p.bias.kind == kSm80Slopes ? p.bias.slopes[head[r]] * kSm80Log2e : 0.0f;
    far[r] = p.bias.kind == kSm80Table ? p.bias.table[head[r] * p.bias.count] * kSm80Log2e : 0.0f;
  }
  float out[kFeatures / 8][2 * kGroups] = {}, most[kGroups], sum[kGroups];
#pragma unroll
  for (int r = 0; r < kGroups; ++r) most[r] = -__builtin_inff(), sum[r] = 0;

  int stage = 0, asked = kStages - 1;
#pragma unroll 1
  for (int key0 = start; key0 < end; key0 += kStep) {
    kernels::cuda::sync_warp();  // all have read what is overwritten now
    ask(key0 + (kStages - 1) * kStep, asked);
    if (++asked == kStages) asked = 0;
    asm volatile("cp.async.wait_group %0;" ::"n"(kStages - 1) : "memory");
    kernels::cuda::sync_warp();
    const std::uint32_t from = ring + static_cast<std::uint32_t>(stage * kLoads * 512);
    if (++stage == kStages) stage = 0;

    float s[2][2 * kGroups] = {};
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
    const bool is_whole = key0 >= inner_begin && key0 + kDecodeKeys <= (inner_end < end ? inner_end : end);
    if (is_whole && (!has_bias || by_index) &&
        (p.bias.kind != kSm80Table || key0 + kDecodeKeys - 1 - least_place <= p.bias.first)) {
#pragma unroll
      for (int r = 0; r < kGroups; ++r) {
        const auto apart = static_cast<float>(static_cast<int>(key0 + 2 * t - place[r].id));
#pragma unroll
        for (int n = 0; n < 2; ++n) {
#pragma unroll
          for (int e = 0; e < 2; ++e) {
            // far is 0 with slopes, slope2 is 0 with a table.
            const float bias =
                __builtin_fmaf(-slope2[r], __builtin_fabsf(apart + static_cast<float>(8 * n + e)), far[r]);
            s[n][2 * r + e] = __builtin_fmaf(s[n][2 * r + e], scale2, bias);
          }
        }
      }
    } else {
#pragma unroll
      for (int r = 0; r < kGroups; ++r) {
#pragma unroll
        for (int n = 0; n < 2; ++n) {
#pragma unroll
          for (int e = 0; e < 2; ++e) {
            const int key = key0 + 8 * n + 2 * t + e;
            const bool is_seen = key >= seen[r].begin && key < seen[r].end && is_there(key);
            const float bias = has_bias && is_seen
                                   ? bias_of(p.bias, head[r], key_place_of(p.bias, batch, key, p.keys) - place[r].id)
                                   : 0.0f;
            s[n][2 * r + e] = is_seen ? __builtin_fmaf(s[n][2 * r + e], scale2, bias) : -__builtin_inff();
          }
        }
      }
    }
    bool is_higher = false;
    float top[kGroups];
#pragma unroll
    for (int r = 0; r < kGroups; ++r) {
      top[r] = larger(larger(s[0][2 * r], s[0][2 * r + 1]), larger(s[1][2 * r], s[1][2 * r + 1]));
      is_higher = is_higher || top[r] > most[r];
      top[r] = larger(top[r], most[r]);
    }
    if (any_lane(is_higher)) {  // rare after the first steps
#pragma unroll
      for (int r = 0; r < kGroups; ++r) {
        top[r] = larger(top[r], from_neighbour(top[r], 1));
        top[r] = larger(top[r], from_neighbour(top[r], 2));
        const float alpha = top[r] == -__builtin_inff() ? 1.0f : power_of_two(most[r] - top[r]);
        most[r] = top[r];
        sum[r] *= alpha;
#pragma unroll
        for (int f = 0; f < kFeatures / 8; ++f) out[f][2 * r] *= alpha, out[f][2 * r + 1] *= alpha;
      }
    }
    std::uint32_t weights[2 * kGroups];
#pragma unroll
    for (int r = 0; r < kGroups; ++r) {
      const float shift = most[r] == -__builtin_inff() ? 0.0f : most[r];
#pragma unroll
      for (int n = 0; n < 2; ++n) {
        const float a = power_of_two(s[n][2 * r] - shift), b = power_of_two(s[n][2 * r + 1] - shift);
        sum[r] += a + b;
        weights[n * kGroups + r] = pack(a, b);
      }
    }
    // Column g of product 8 c + j is feature 64 c + 8 g + j.
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
        multiply_rows(out[8 * c + j], weights, low);
        multiply_rows(out[8 * c + j + 1], weights, high);
      }
    }
  }
  asm volatile("cp.async.wait_all;" ::: "memory");
  report_page(p.key_range, p.k, bad_page);

#pragma unroll
  for (int r = 0; r < kGroups; ++r) {
    sum[r] += from_neighbour(sum[r], 1);
    sum[r] += from_neighbour(sum[r], 2);
    if (query[r] >= p.queries) continue;
    const std::int64_t piece =
        ((std::int64_t{batch} * p.heads + head[r]) * p.queries + query[r]) * p.parts + split * kDecodeWarps + warp;
    if (t == 0) p.part_sums[2 * piece] = most[r], p.part_sums[2 * piece + 1] = sum[r];
    // Of product 8 c + j a lane holds columns 2 t and 2 t + 1: features 64 c + 16 t + j and + 8.
    float* const to = p.parts_out + piece * kFeatures;
#pragma unroll
    for (int c = 0; c < kWide; ++c) {
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
