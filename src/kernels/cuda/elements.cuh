#pragma once

// Elements, positions and waves, as in the host's kernels/element.h. The arithmetic is the library's own: numerics/
// is compiled for the device too, so there is one formula and the bytes are the same.

#include "kernels/cuda/device.cuh"
#include "kernels/cuda/fault.cuh"
#include "kernels/cuda/params.h"

#pragma clang force_cuda_host_device begin
#include "numerics/radians-inl.h"
#include "numerics/wave-inl.h"
#pragma clang force_cuda_host_device end

namespace posenc::kernels::cuda {

struct Quotient {
  std::uint32_t whole, rest;
};
__device__ __forceinline__ Quotient divide(std::uint32_t n, const Divisor& by) {
  const auto whole = static_cast<std::uint32_t>(std::uint64_t{n} * by.multiplier >> (31 + by.shift));
  return {whole, n - whole * by.divisor};
}

using numerics::narrow;
using numerics::widen;

// A GPU's conversions turn every NaN into the same one; a host's keep its sign and payload.
__device__ __forceinline__ double widened(float value) {
  if (value == value) return static_cast<double>(value);
  const auto bits = std::bit_cast<std::uint32_t>(value) | 0x00400000u;
  return std::bit_cast<double>(std::uint64_t{bits >> 31} << 63 | std::uint64_t{0x7FF} << 52 |
                               std::uint64_t{bits & 0x7FFFFFu} << 29);
}
__device__ __forceinline__ float narrowed(double value) {
  if (value == value) return static_cast<float>(value);
  const auto bits = std::bit_cast<std::uint64_t>(value);
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits >> 63 << 31 | 0x7FC00000u | (bits >> 29 & 0x3FFFFFu)));
}

__device__ __forceinline__ double load(const void* data, int type, std::int64_t at) {
  switch (type) {
    case kTypeF64:
      return static_cast<const double*>(data)[at];
    case kTypeF16:
      return widen(static_cast<const Half*>(data)[at]);
    case kTypeBF16:
      return widen(static_cast<const BFloat16*>(data)[at]);
    default:
      return widened(static_cast<const float*>(data)[at]);
  }
}
/// Rounded once.
__device__ __forceinline__ void store(void* data, int type, std::int64_t at, double value) {
  switch (type) {
    case kTypeF64:
      static_cast<double*>(data)[at] = value;
      return;
    case kTypeF16:
      static_cast<Half*>(data)[at] = narrow<Half>(value);
      return;
    case kTypeBF16:
      static_cast<BFloat16*>(data)[at] = narrow<BFloat16>(value);
      return;
    default:
      static_cast<float*>(data)[at] = narrowed(value);
  }
}

/// In the type of the arithmetic, and from it.
template <class W> __device__ __forceinline__ W load_as(const void* data, int type, std::int64_t at) {
  if constexpr (sizeof(W) == sizeof(float)) return narrowed(load(data, type, at));
  return static_cast<W>(load(data, type, at));
}
__device__ __forceinline__ void store_from(void* data, int type, std::int64_t at, double value) {
  store(data, type, at, value);
}
__device__ __forceinline__ void store_from(void* data, int type, std::int64_t at, float value) {
  store(data, type, at, widened(value));
}

/// The position of a token as given, and as used: 0 if it is out of range, which is reported. A caller with loads to
/// issue in between need not wait for the first.
__device__ __forceinline__ std::int64_t given_position(const PositionParams& p, std::int64_t b, std::int64_t t,
                                                       std::int64_t axis) {
  return p.ids == nullptr ? p.first + t : p.ids[axis * p.axis_stride + b * p.batch_stride + t];
}
__device__ __forceinline__ std::int64_t checked_position(const PositionParams& p, std::int64_t given,
                                                         std::int64_t axis, Fault* fault) {
  if (p.ids == nullptr || static_cast<std::uint64_t>(given) < static_cast<std::uint64_t>(p.limit)) return given;
  report(fault, Fault::kPosition, given, axis);
  return 0;
}
__device__ __forceinline__ std::int64_t position_at(const PositionParams& p, std::int64_t b, std::int64_t t,
                                                    std::int64_t axis, Fault* fault) {
  return checked_position(p, given_position(p, b, t, axis), axis, fault);
}

__device__ __forceinline__ float float32_radians(const WaveParams& p, std::int64_t i, std::int64_t position) {
  auto radians = static_cast<float>(position);
  if (p.chain > 0) {
    for (std::int64_t k = i / p.chain * p.chain; k < i; ++k) radians *= p.factors[k];
  }
  radians *= p.factors[i];
  if (p.blends == nullptr) return radians;
  const BlendParams blend = p.blends[i];
  float whole;
  asm("div.rn.f32 %0, %1, %2;" : "=f"(whole) : "f"(radians), "f"(blend.divisor));
  const float scaled = blend.scale * whole;
  return blend.kept == 0.0f ? scaled : scaled * (1.0f - blend.kept) + whole * blend.kept;
}

__device__ __forceinline__ numerics::Angle angle_of(const WaveParams& p, std::int64_t wave, std::int64_t position) {
  if (p.factors != nullptr) return numerics::radians_as_angle(float32_radians(p, wave, position));
  const FrequencyWords& f = p.frequencies[wave];
  return {{{f.words[0], f.words[1], f.words[2], f.words[3]}}, static_cast<std::uint64_t>(position)};
}

__device__ __forceinline__ std::int64_t axis_of(const WaveParams& p, std::int64_t wave) {
  return p.axes == nullptr ? 0 : p.axes[wave];
}

/// A value whose rounding might be undecided.
struct Spot {
  Fault* fault;
  std::int64_t position, column;
};

/// The last level of a rounding: rare, so it is kept out of line. Passes numbers, because structures would go through
/// memory.
template <class T> __device__ __noinline__ T wave_by_integers(std::uint64_t w0, std::uint64_t w1, std::uint64_t w2,
                                                              std::uint64_t w3, std::uint64_t count, unsigned quarter,
                                                              double scale, Fault* fault, std::int64_t position,
                                                              std::int64_t column) {
  T value{};
  if (!numerics::round_wave_by_integers(value, {{{w0, w1, w2, w3}}, count}, quarter, scale)) {
    report(fault, Fault::kUndecided, position, column);
  }
  return value;
}
template <class T> __device__ __forceinline__ T wave_by_integers(const numerics::Angle& angle, unsigned quarter,
                                                                 double scale, const Spot& spot) {
  const auto& w = angle.unit.words;
  return wave_by_integers<T>(w[0], w[1], w[2], w[3], angle.count, quarter, scale, spot.fault, spot.position,
                             spot.column);
}

/// scale · sin(2π(angle + quarter/4)), rounded once to T.
template <class T> __device__ __forceinline__ T wave_value(const numerics::Angle& angle,
                                                           const numerics::Reduced& reduced, unsigned quarter,
                                                           double scale, const Spot& spot) {
  T value{};
  if (numerics::round_surely(value, reduced, quarter, scale)) return value;
  return wave_by_integers<T>(angle, quarter, scale, spot);
}

/// Elements from the start of a tensor to the first token of sequence b.
__device__ __forceinline__ std::int64_t sequence_offset(const TokenParams& x, std::int64_t b) {
  if (x.lead_rank == 1) return b * x.lead_strides[0];
  std::int64_t offset = 0;
  for (int axis = x.lead_rank - 1; axis >= 0; --axis) {
    offset += b % x.lead_shape[axis] * x.lead_strides[axis];
    b /= x.lead_shape[axis];
  }
  return offset;
}

/// x + p as a host rounds it: a NaN stays the same one, quiet.
__device__ __forceinline__ float sum_of(float x, float p) {
  const float sum = x + p;
  if (sum == sum) return sum;
  const float source = x != x ? x : p;
  if (source == source) return std::bit_cast<float>(0x7FC00000u);  // ∞ − ∞
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(source) | 0x00400000u);
}
__device__ __forceinline__ double sum_of(double x, double p) {
  const double sum = x + p;
  if (sum == sum) return sum;
  const double source = x != x ? x : p;
  if (source == source) return std::bit_cast<double>(0x7FF8000000000000ull);
  return std::bit_cast<double>(std::bit_cast<std::uint64_t>(source) | 0x0008000000000000ull);
}

}  // namespace posenc::kernels::cuda
