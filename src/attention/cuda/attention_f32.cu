// float32 attention for any GPU of compute capability 8.0 or newer, in float32 throughout: any key mask, any number
// of queries and keys, up to 256 features. A block of 256 threads takes kRows queries of one head and loops over the
// keys that they attend to: thread (y, x) of 16 × 16 has rows y, y + 16 … of the scores and of the output.
// POSENC_FEATURES is 64, 128 or 256; fewer are padded with zeros.

#define POSENC_F16 0  // required by sm80.cuh; nothing here is 16 bits wide
#include "attention/cuda/sm80.cuh"

namespace posenc::attend::cuda {
namespace {

using kernels::cuda::Float4;

constexpr int kFeatures = POSENC_FEATURES, kRows = wide_rows(kFeatures), kPitch = kFeatures + 4,
              kWeightPitch = kRows + 4;
constexpr int kOwn = kRows / 16, kGroups = kFeatures / 64;  // rows of a thread; fours of its columns of the output

// Loads rows first … first + kRows − 1 of a head, with zeros outside begin … end − 1, where `mask` is 0, and past the
// features.
__device__ __forceinline__ void load_rows(float* to, const Sm80Tensor& x, std::int64_t batch, std::int64_t head,
                                          int first, int begin, int end, const std::uint8_t* mask,
                                          std::int32_t& bad_page) {
  const auto* const from = static_cast<const float*>(x.data) + head * x.head;
  for (int n = static_cast<int>(kernels::cuda::thread()); n < kRows * kFeatures / 4; n += 256) {
    const int row = n / (kFeatures / 4), column = n % (kFeatures / 4) * 4, token = first + row;
    Float4 four{0, 0, 0, 0};
    if (token >= begin && token < end && (mask == nullptr || mask[token] != 0) && column < x.features) {
      const float* const at = from + token_offset(x, batch, token, bad_page) + column * x.feature;
      if (x.is_whole != 0) {
        four = *reinterpret_cast<const Float4*>(at);
      } else {
        four.x = at[0];
        if (column + 1 < x.features) four.y = at[x.feature];
        if (column + 2 < x.features) four.z = at[2 * x.feature];
        if (column + 3 < x.features) four.w = at[3 * x.feature];
      }
    }
    *reinterpret_cast<Float4*>(to + row * kPitch + column) = four;
  }
}

__device__ __forceinline__ float product_of(const Float4& a, const Float4& b, float sum) {
  sum = __builtin_fmaf(a.x, b.x, sum);
  sum = __builtin_fmaf(a.y, b.y, sum);
  sum = __builtin_fmaf(a.z, b.z, sum);
  return __builtin_fmaf(a.w, b.w, sum);
}
__device__ __forceinline__ float quotient(float a, float b) {
  float q;
  asm("div.rn.f32 %0, %1, %2;" : "=f"(q) : "f"(a), "f"(b));
  return q;
}
// Reduces over the 16 threads that share a row.
template <class Join> __device__ __forceinline__ float over_row(float value, const Join& join) {
#pragma unroll
  for (int lanes = 1; lanes < 16; lanes *= 2) value = join(value, from_neighbour(value, lanes));
  return value;
}

// s = q · kᵀ for the rows y, y + 16 … of q and x, x + 16 … of the keys.
__device__ __forceinline__ void multiply_rows(float (&s)[kOwn][kOwn], const float* q, const float* keys, int x,
                                              int y) {
#pragma unroll 4
  for (int f = 0; f < kFeatures; f += 4) {
    Float4 a[kOwn], b[kOwn];
#pragma unroll
    for (int n = 0; n < kOwn; ++n) {
      a[n] = *reinterpret_cast<const Float4*>(q + (y + 16 * n) * kPitch + f);
      b[n] = *reinterpret_cast<const Float4*>(keys + (x + 16 * n) * kPitch + f);
    }
#pragma unroll
    for (int r = 0; r < kOwn; ++r) {
#pragma unroll
      for (int n = 0; n < kOwn; ++n) s[r][n] = product_of(a[r], b[n], s[r][n]);
    }
  }
}

// out += weights · values.
__device__ __forceinline__ void add_values(float (&out)[kOwn][kGroups][4], const float* weights, const float* values,
                                           int x, int y) {
#pragma unroll 2
  for (int key = 0; key < kRows; key += 4) {
    Float4 w[kOwn];
#pragma unroll
    for (int r = 0; r < kOwn; ++r) {
      w[r] = *reinterpret_cast<const Float4*>(weights + (y + 16 * r) * kWeightPitch + key);
    }
#pragma unroll
    for (int n = 0; n < 4; ++n) {
#pragma unroll
      for (int g = 0; g < kGroups; ++g) {
        const Float4 v = *reinterpret_cast<const Float4*>(values + (key + n) * kPitch + 64 * g + 4 * x);
#pragma unroll
        for (int r = 0; r < kOwn; ++r) {
          const float weight = n == 0 ? w[r].x : n == 1 ? w[r].y : n == 2 ? w[r].z : w[r].w;
          out[r][g][0] = __builtin_fmaf(weight, v.x, out[r][g][0]);
          out[r][g][1] = __builtin_fmaf(weight, v.y, out[r][g][1]);
          out[r][g][2] = __builtin_fmaf(weight, v.z, out[r][g][2]);
          out[r][g][3] = __builtin_fmaf(weight, v.w, out[r][g][3]);
        }
      }
    }
  }
}

}  // namespace

extern "C" __global__ void __launch_bounds__(256) attention_f32(const __grid_constant__ Sm80Params p) {
  using namespace kernels::cuda;
  extern __shared__ float shared[] __attribute__((aligned(16)));
  float *const q = shared, *const kv = q + kRows * kPitch, *const weights = kv + kRows * kPitch;
  const int x = static_cast<int>(thread() % 16), y = static_cast<int>(thread() / 16);
  const int bh = static_cast<int>(block() / static_cast<unsigned>(p.row_blocks)), batch = bh / p.heads,
            head = bh - batch * p.heads, key_head = head / (p.heads / p.key_heads);
  // In causal attention the longest blocks come first.
  const int row0 = (p.row_blocks - 1 - static_cast<int>(block() % static_cast<unsigned>(p.row_blocks))) * kRows;
  const std::uint8_t* const mask =
      p.key_range.key_mask == nullptr ? nullptr : p.key_range.key_mask + std::int64_t{batch} * p.keys;
  check_length(p.key_range, batch, p.keys);
  std::int32_t bad_page = kNoBadPage;
  load_rows(q, p.q, batch, head, row0, 0, p.queries, nullptr, bad_page);

  int lowest = p.keys, highest = 0;
  for (int row = 0; row < kRows; ++row) {
    const KeyRange one = key_range_of(p.key_range, batch, row0 + row, p.queries, p.keys);
    if (one.begin >= one.end) continue;
    lowest = one.begin < lowest ? one.begin : lowest;
    highest = one.end > highest ? one.end : highest;
  }
  KeyRange seen[kOwn];
  QueryPlace place[kOwn];
  float out[kOwn][kGroups][4] = {}, most[kOwn], sum[kOwn];
#pragma unroll
  for (int r = 0; r < kOwn; ++r) {
    const int query = row0 + y + 16 * r;
    seen[r] = key_range_of(p.key_range, batch, query, p.queries, p.keys);
    place[r] = place_of(p.bias, batch, query, p.queries, seen[r].diagonal);
    most[r] = -__builtin_inff(), sum[r] = 0;
  }
  const float scale2 = p.scale * kSm80Log2e;

  for (int key0 = lowest; key0 < highest; key0 += kRows) {
    load_rows(kv, p.k, batch, key_head, key0, lowest, highest, mask, bad_page);
    sync_block();
    float s[kOwn][kOwn] = {};
    multiply_rows(s, q, kv, x, y);
#pragma unroll
    for (int r = 0; r < kOwn; ++r) {
      float top = most[r];
#pragma unroll
      for (int n = 0; n < kOwn; ++n) {
        const int key = key0 + x + 16 * n;
        const bool is_seen = key >= seen[r].begin && key < seen[r].end && (mask == nullptr || mask[key] != 0);
        const float bias = p.bias.kind == kSm80None || !is_seen
                               ? 0.0f
                               : bias_of(p.bias, head, key_place_of(p.bias, batch, key, p.keys) - place[r].id);
        s[r][n] = is_seen ? __builtin_fmaf(s[r][n], scale2, bias) : -__builtin_inff();
        top = larger(top, s[r][n]);
      }
      top = over_row(top, [](float a, float b) { return larger(a, b); });
      const float shift = top == -__builtin_inff() ? 0.0f : top, alpha = power_of_two(most[r] - shift);
      most[r] = top;
      float part = 0;
#pragma unroll
      for (int n = 0; n < kOwn; ++n) {
        s[r][n] = power_of_two(s[r][n] - shift);
        part += s[r][n];
        weights[(y + 16 * r) * kWeightPitch + x + 16 * n] = s[r][n];
      }
      sum[r] = __builtin_fmaf(sum[r], alpha, over_row(part, [](float a, float b) { return a + b; }));
#pragma unroll
      for (int g = 0; g < kGroups; ++g) {
#pragma unroll
        for (int e = 0; e < 4; ++e) out[r][g][e] *= alpha;
      }
    }
    sync_block();  // all have read the keys
    load_rows(kv, p.v, batch, key_head, key0, lowest, highest, mask, bad_page);
    sync_block();
    add_values(out, weights, kv, x, y);
    sync_block();
  }
  report_page(p.key_range, p.k, bad_page);

#pragma unroll
  for (int r = 0; r < kOwn; ++r) {
    const int query = row0 + y + 16 * r;
    if (query >= p.queries) continue;
    const bool is_empty = sum[r] == 0;  // a query with no visible key gives zeros
    auto* const to = static_cast<float*>(p.out.data) + batch * p.out.batch + head * p.out.head + query * p.out.token;
#pragma unroll
    for (int g = 0; g < kGroups; ++g) {
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const int column = 64 * g + 4 * x + e;
        if (column < p.out.features) to[column * p.out.feature] = is_empty ? 0.0f : quotient(out[r][g][e], sum[r]);
      }
    }
    if (p.logsumexp != nullptr && x == 0) {
      p.logsumexp[batch * p.lse_batch + head * p.lse_head + query * p.lse_token] =
          is_empty ? -__builtin_inff() : (most[r] + log_of_two(sum[r])) * kSm80Ln2;
    }
  }
}

}  // namespace posenc::attend::cuda
