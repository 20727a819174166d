// rotate for heads that are whole 16-byte vectors: a warp owns a few heads of one token, in queries or in keys (2 KiB
// in a row if heads are contiguous). Each lane loads two vectors of a head, one from either half, in both layouts.
// All loads are in flight while the warp computes the cosines and sines, which pass through shared memory once. Small
// blocks without a block-wide barrier keep the memory busiest.
// POSENC_ELEMENT is the type, POSENC_INTERLEAVED the layout. POSENC_SOURCE 0 computes waves for exact angles and one
// axis, 1 reads a table, 2 computes any waves; 3 is 0 for few tokens, where only the time of a single warp counts; 4
// is 0 that also writes the cosines and sines of the first sequence, for attention that rotates q itself.
// POSENC_OVERLAPS 1 is for compute capability 9.0: the next kernel on the stream may start while this one ends, and
// this one (3) while the previous one ends.

#include "kernels/cuda/rotate_team.cuh"

namespace posenc::kernels::cuda {
namespace {

using T = POSENC_ELEMENT;
constexpr int kCount = Vector<T>::kCount;
constexpr int kHeads = 2;  // per lane
constexpr int kWarps = 2;  // per block
constexpr bool kOnce = POSENC_SOURCE == 1, kFew = POSENC_SOURCE == 3, kKeeps = POSENC_SOURCE == 4;

extern __shared__ Float4 scratch[];

// A token's cosines and sines as rotate_queries of attention_sm90 reads them: eight pairs 8 g … 8 g + 7 are four
// quads of numbers, two of cosines and two of sines. Quad n of group g is at quad (i · 4 + n) · 4 + lane, where g =
// lane · (pairs / 32) + i, and every other token has fours of quads exchanged, so that neither the lanes of one row
// nor those of two conflict in a bank.
[[maybe_unused]] __device__ __forceinline__ void keep_waves(Float4* to, const float* cosines, const float* sines,
                                                            std::uint32_t pairs, std::uint32_t token, unsigned lane) {
  for (std::uint32_t at = lane; at < pairs / 2; at += 32) {
    const std::uint32_t quad = at ^ (token & 1) * 4, row = quad / 4, n = row % 4;
    const std::uint32_t group = quad % 4 * (pairs / 32) + row / 4;
    to[at] = *reinterpret_cast<const Float4*>((n < 2 ? cosines : sines) + 8 * group + n % 2 * 4);
  }
}

// Cosines and sines of a token's pairs, by a table or by any waves; one position serves if all waves are on one axis.
[[maybe_unused]] __device__ __forceinline__ void make_any(const RotateParams& p, std::uint32_t b, std::uint32_t t,
                                                          std::int64_t position, float* cosines, std::uint32_t pairs,
                                                          unsigned lane) {
  float* const sines = cosines + pairs;
  for (std::uint32_t i = lane; i < pairs; i += 32) {
    CosSin<float> value;
    if constexpr (POSENC_SOURCE == 1) {
      value = cos_sin_by_table<float>(p, b, t, i);
    } else {
      const std::int64_t at =
          p.waves.axes == nullptr ? position : position_at(p.positions, b, t, p.waves.axes[i], p.fault);
      value = cos_sin_by_waves<float>(p, at, i);
    }
    cosines[i] = value.cosine, sines[i] = value.sine;
  }
}

// The cosines and sines of a token of the first sequence, for attention.
[[maybe_unused]] __device__ __forceinline__ void keep_token(const RotateParams& p, std::uint32_t token, unsigned warp,
                                                            unsigned lane) {
  if (token >= static_cast<std::uint32_t>(p.sequence)) return;
  const auto pairs = static_cast<std::uint32_t>(p.pairs);
  auto* const cosines = reinterpret_cast<float*>(scratch) + warp * 2 * pairs;
  make_exact(p, p.positions.first + token, cosines, cosines + pairs, lane);
  sync_warp();
  auto* const to = reinterpret_cast<Float4*>(p.made + std::int64_t{token} * 2 * pairs);
  keep_waves(to, cosines, cosines + pairs, pairs, token, lane);
}

}  // namespace

extern "C" __global__ void __launch_bounds__(32 * kWarps) rotate_vectors(const __grid_constant__ RotateParams p) {
  const unsigned lane = thread() % 32, warp = thread() / 32;
#if POSENC_OVERLAPS
  let_next_grid_begin();
  if constexpr (!kFew) wait_for_grids();
#endif
  const auto tokens = static_cast<std::uint32_t>(p.batch * p.sequence);
  std::uint32_t team = block() * kWarps + warp;
  const bool second = team >= tokens * p.parts[0].across.divisor;
  if (second) team -= tokens * p.parts[0].across.divisor;
  if constexpr (kKeeps) {
    if (second) return keep_token(p, team, warp, lane);  // there is one tensor: past it come its tokens again
  }
  const RotatePart& part = p.parts[second ? 1 : 0];
  const Quotient place = divide(team, part.across);
  const std::uint32_t token = place.whole;
#if POSENC_OVERLAPS
  if (kFew && (token >= tokens || (second && p.count < 2))) wait_for_grids();  // whoever is done has waited
#endif
  if (token >= tokens || (second && p.count < 2)) return;
  const Quotient of_batch = divide(token, p.by_sequence);
  const std::uint32_t b = of_batch.whole, t = of_batch.rest;

  // Requested first, because the sines wait for these.
  FewTops few;
  if constexpr (kFew) few = load_few(p, lane);
#if POSENC_OVERLAPS
  if constexpr (kFew) wait_for_grids();  // frequencies are not the result of a kernel
#endif
  std::int64_t position = 0;
  if constexpr (kFew) {
    position = given_position(p.positions, b, t, 0);
  } else if constexpr (POSENC_SOURCE != 1) {
    if (POSENC_SOURCE == 0 || kKeeps || p.waves.axes == nullptr)
      position = position_at(p.positions, b, t, 0, p.fault);
  }

  const std::uint32_t row = lane * p.lane_reciprocal >> 16,
                      unit = lane - row * p.lanes;  // lane / lanes, and the remainder
  const std::uint32_t first_head = place.rest * (kHeads * p.step) + row;
  const auto half = static_cast<std::uint32_t>(p.pairs);  // elements from the first vector to the second
  const std::uint32_t heads = row < p.step ? static_cast<std::uint32_t>(part.heads) : 0;
  const auto first = static_cast<std::uint32_t>(part.first) + unit * kCount;
  const auto offset = [&](const std::int32_t* strides) {
    return std::int64_t{b} * strides[0] + std::int64_t{t} * strides[2] + std::int64_t{first_head} * strides[1] +
           first;
  };
  const T* const x = static_cast<const T*>(part.x.data) + offset(part.x_strides);
  const std::int64_t x_step = std::int64_t{p.step} * part.x_strides[1];
  Bytes16 in_a[kHeads], in_b[kHeads];
#pragma unroll
  for (int n = 0; n < kHeads; ++n) {
    if (first_head + n * p.step >= heads) continue;
    const T* const from = x + n * x_step;
    in_a[n] = kOnce ? load16_once(from) : load16(from);
    in_b[n] = kOnce ? load16_once(from + half) : load16(from + half);
  }

  if constexpr (kFew) position = checked_position(p.positions, position, 0, p.fault);
  const auto pairs = static_cast<std::uint32_t>(p.pairs);
  auto* const cosines = reinterpret_cast<float*>(scratch) + warp * 2 * pairs;
  float* const sines = cosines + pairs;
  if constexpr (kFew) {
    make_few(p, few, position, cosines, sines, lane);
  } else if constexpr (POSENC_SOURCE == 0 || kKeeps) {
    make_exact(p, position, cosines, sines, lane);
  } else {
    make_any(p, b, t, position, cosines, pairs, lane);
  }
  sync_warp();

  // The lane's pairs: two runs of half a vector each.
  const std::uint32_t run0 = POSENC_INTERLEAVED ? unit * kCount / 2 : unit * kCount;
  const std::uint32_t run1 = POSENC_INTERLEAVED ? run0 + pairs / 2 : run0 + kCount / 2;
  float c[kCount], s[kCount];
  read_run<kCount>(cosines + run0, c), read_run<kCount>(cosines + run1, c + kCount / 2);
  read_run<kCount>(sines + run0, s), read_run<kCount>(sines + run1, s + kCount / 2);
  T* out = const_cast<T*>(x);
  std::int64_t out_step = x_step;
  if (p.in_place == 0) {
    out = static_cast<T*>(part.out.data) + offset(part.out_strides);
    out_step = std::int64_t{p.step} * part.out_strides[1];
  }
#pragma unroll
  for (int n = 0; n < kHeads; ++n) {
    if (first_head + n * p.step >= heads) continue;
    float values_a[kCount], values_b[kCount];
    Vector<T>::unpack(in_a[n], values_a);
    Vector<T>::unpack(in_b[n], values_b);
    rotate<kCount, POSENC_INTERLEAVED>(values_a, values_b, c, s);
    Bytes16 out_a = Vector<T>::pack(values_a), out_b = Vector<T>::pack(values_b);
    if (is_marked<T>(mark<T>(out_b, mark<T>(out_a, 0)))) [[unlikely]] {
      out_a = plain_nans<T>(out_a), out_b = plain_nans<T>(out_b);
    }
    T* const to = out + n * out_step;
    store16(to, out_a);
    store16(to + half, out_b);
  }
}

}  // namespace posenc::kernels::cuda
