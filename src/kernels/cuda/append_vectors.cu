// Writes queries, keys and values of new tokens, keys and values to their slots in a cache, for heads that are whole
// 16-byte vectors. As in rotate_vectors, a warp owns a few heads of one token of one tensor, and each lane two vectors
// of a head: those that rotate together, or two that are only copied. Loads do not wait for the slot, only stores do.
// POSENC_ELEMENT is the type. POSENC_SOURCE 0 computes waves for exact angles and one axis, 1 reads a table or computes
// any waves; 3 is 0 for few tokens, where only the time of a single warp counts. POSENC_NORM 0 has no norms, and fewer
// registers for it. POSENC_OVERLAPS as in rotate_vectors.

#include "kernels/cuda/norms.cuh"
#include "kernels/cuda/rotate_team.cuh"
#include "kernels/cuda/slots.cuh"

namespace posenc::kernels::cuda {
namespace {

using T = POSENC_ELEMENT;
constexpr int kCount = Vector<T>::kCount;
constexpr int kHeads = 2;  // per lane
constexpr int kWarps = 2;  // per block
constexpr bool kFew = POSENC_SOURCE == 3, kMayNormalise = POSENC_NORM != 0;

extern __shared__ Float4 scratch[];

// The first element of both vectors of a lane, counted from the start of a head.
struct Features {
  std::uint32_t a, b;
};
__device__ __forceinline__ Features features_of(const RotateParams& p, const RotatePart& part, std::uint32_t unit) {
  const auto first = static_cast<std::uint32_t>(part.first), pairs = static_cast<std::uint32_t>(p.pairs);
  if (unit < part.rotating_lanes) return {first + unit * kCount, first + unit * kCount + pairs};
  const std::uint32_t a = (unit - part.rotating_lanes) * 2 * kCount, b = a + kCount;
  const std::uint32_t skipped = part.rotates != 0 ? 2 * pairs : 0;
  return {a < first ? a : a + skipped, b < first ? b : b + skipped};
}

// The features of one head, in the two vectors of each of its lanes, which are a power of two.
[[maybe_unused]] __device__ __forceinline__ void normalise(const RotatePart& part, const Features& at, float* a,
                                                           float* b) {
  float sum = 0;
#pragma unroll
  for (int i = 0; i < kCount; ++i) sum = __builtin_fmaf(b[i], b[i], __builtin_fmaf(a[i], a[i], sum));
  for (std::uint32_t lanes = 1; lanes < part.lanes; lanes *= 2) sum += across_lanes(sum, static_cast<int>(lanes));
  const float mean = sum * (1.0f / static_cast<float>(2 * kCount)) * (1.0f / static_cast<float>(part.lanes));
  const float factor = inverse_root(mean + static_cast<float>(part.norm.epsilon));
  const auto offset = static_cast<float>(part.norm.offset);
  const auto scale = [&](float* values, std::uint32_t first) {
    float weights[kCount];
    Vector<T>::unpack(load16(static_cast<const T*>(part.norm.weight) + first), weights);
#pragma unroll
    for (int i = 0; i < kCount; ++i) values[i] = values[i] * factor * (weights[i] + offset);
  };
  scale(a, at.a);
  scale(b, at.b);
}

// From a table, or any waves.
[[maybe_unused]] __device__ __forceinline__ void make_others(const RotateParams& p, std::uint32_t b, std::uint32_t t,
                                                             std::int64_t position, float* cosines, float* sines,
                                                             unsigned lane) {
  for (std::uint32_t i = lane; i < static_cast<std::uint32_t>(p.pairs); i += 32) {
    CosSin<float> value;
    if (p.cosines.data != nullptr) {
      value = cos_sin_by_table<float>(p, b, t, i);
    } else {
      const std::int64_t own =
          p.waves.axes == nullptr ? position : position_at(p.positions, b, t, p.waves.axes[i], p.fault);
      value = cos_sin_by_waves<float>(p, own, i);
    }
    cosines[i] = value.cosine, sines[i] = value.sine;
  }
}

// A vector of the type, with the NaNs of a host.
__device__ __forceinline__ Bytes16 packed(const float* values) {
  const Bytes16 vector = Vector<T>::pack(values);
  if (is_marked<T>(mark<T>(vector, 0))) [[unlikely]]
    return plain_nans<T>(vector);
  return vector;
}

}  // namespace

extern "C" __global__ void __launch_bounds__(32 * kWarps) append_vectors(const __grid_constant__ RotateParams p) {
  const unsigned lane = thread() % 32, warp = thread() / 32;
#if POSENC_OVERLAPS
  let_next_grid_begin();
#endif
  const auto tokens = static_cast<std::uint32_t>(p.batch * p.sequence);
  std::uint32_t team = block() * kWarps + warp;
  int which = 0;
  for (; which + 1 < p.count; ++which) {
    const std::uint32_t teams = tokens * p.parts[which].across.divisor;
    if (team < teams) break;
    team -= teams;
  }
  const RotatePart& part = p.parts[which];
  const bool rotates = part.rotates != 0;
  const Quotient place = divide(team, part.across);
  const std::uint32_t token = place.whole;
  [[maybe_unused]] FewTops few = {};
  if constexpr (kFew) {
    if (rotates) few = load_few(p, lane);
  }
#if POSENC_OVERLAPS
  wait_for_grids();  // frequencies are not the result of a kernel; whoever is done has waited
#endif
  if (token >= tokens) return;
  const Quotient of_batch = divide(token, p.by_sequence);
  const std::uint32_t b = of_batch.whole, t = of_batch.rest;
  const bool has_one_position = POSENC_SOURCE != 1 || (p.cosines.data == nullptr && p.waves.axes == nullptr);
  std::int64_t position = rotates && has_one_position ? given_position(p.positions, b, t, 0) : 0;
  const bool has_slot = part.to_slots != 0 || part.from_slots != 0;
  const std::int64_t slot = has_slot ? given_slot(p.slots, token) : 0;
  if (part.from_slots != 0 && !is_written(p, token, slot)) return;

  const std::uint32_t row = lane * part.lane_reciprocal >> 16, unit = lane - row * part.lanes;
  const std::uint32_t first_head = place.rest * (kHeads * part.step) + row;
  const std::uint32_t heads = row < part.step ? static_cast<std::uint32_t>(part.heads) : 0;
  const Features at = features_of(p, part, unit);
  const auto offset = [&](const std::int32_t* strides, bool is_cache) {
    Quotient where = of_batch;  // sequence and token, or page and its token
    if (is_cache) where = divide(static_cast<std::uint32_t>(slot), part.by_page);
    return std::int64_t{where.whole} * strides[0] + std::int64_t{where.rest} * strides[2] +
           std::int64_t{first_head} * strides[1];
  };
  const T* const x = static_cast<const T*>(part.x.data) + offset(part.x_strides, part.from_slots != 0);
  const std::int64_t x_step = std::int64_t{part.step} * part.x_strides[1];
  Bytes16 in_a[kHeads] = {}, in_b[kHeads] = {};
#pragma unroll
  for (int n = 0; n < kHeads; ++n) {
    if (first_head + n * part.step >= heads) continue;
    in_a[n] = load16(x + n * x_step + at.a);
    in_b[n] = load16(x + n * x_step + at.b);
  }
  if (part.to_slots != 0 && part.from_slots == 0 && !is_written(p, token, slot)) return;
  T* const out = static_cast<T*>(part.out.data) + offset(part.out_strides, part.to_slots != 0) + at.a;
  const std::uint32_t apart = at.b - at.a;

  const auto pairs = static_cast<std::uint32_t>(p.pairs);
  auto* const cosines = reinterpret_cast<float*>(scratch) + warp * 2 * pairs;
  float* const sines = cosines + pairs;
  if (rotates) {
    if (has_one_position) position = checked_position(p.positions, position, 0, p.fault);
    if constexpr (kFew) {
      make_few(p, few, position, cosines, sines, lane);
    } else if constexpr (POSENC_SOURCE == 0) {
      make_exact(p, position, cosines, sines, lane);
    } else {
      make_others(p, b, t, position, cosines, sines, lane);
    }
    sync_warp();
  }

  // The lane's pairs: two runs of half a vector each.
  const bool lane_rotates = unit < part.rotating_lanes, interleaved = p.interleaved != 0;
  float c[kCount] = {}, s[kCount] = {};
  if (lane_rotates) {
    const std::uint32_t run0 = interleaved ? unit * kCount / 2 : unit * kCount;
    const std::uint32_t run1 = interleaved ? run0 + pairs / 2 : run0 + kCount / 2;
    read_run<kCount>(cosines + run0, c), read_run<kCount>(cosines + run1, c + kCount / 2);
    read_run<kCount>(sines + run0, s), read_run<kCount>(sines + run1, s + kCount / 2);
  }
  const std::int64_t out_step = std::int64_t{part.step} * part.out_strides[1];
  const bool is_normalised = kMayNormalise && part.norm.weight != nullptr;
#pragma unroll
  for (int n = 0; n < kHeads; ++n) {
    Bytes16 out_a = in_a[n], out_b = in_b[n];
    float values_a[kCount], values_b[kCount];
    Vector<T>::unpack(out_a, values_a);
    Vector<T>::unpack(out_b, values_b);
    if (is_normalised) normalise(part, features_of(p, part, unit), values_a, values_b);  // all lanes take part
    if (first_head + n * part.step >= heads) continue;
    if (lane_rotates && interleaved) rotate<kCount, true>(values_a, values_b, c, s);
    if (lane_rotates && !interleaved) rotate<kCount, false>(values_a, values_b, c, s);
    if (lane_rotates || is_normalised) out_a = packed(values_a), out_b = packed(values_b);
    store16(out + n * out_step, out_a);
    store16(out + n * out_step + apart, out_b);
  }
}

}  // namespace posenc::kernels::cuda
