#pragma once

// The first level of a rounding, in a form that suits a GPU: fused products, few conversions. What it cannot decide
// goes to the integers of numerics/, so the result is the same correctly rounded value.
//
// Error, in units of 2^-53. The remainder of the phase is converted (1), multiplied by 2π (whose error is 0.3) and
// summed (1): the relative error of the angle x is below 3. The polynomials are those of fdlibm's __kernel_sin and
// __kernel_cos, |x| ≤ π/4, with an error of at most 0.1; the sine's last sum adds 1 and the rest of it (below 0.11 x)
// less than 1: below 6, relative. The cosine: 0.56 · 3 from x, 0.5 for the last sum, 0.6 for the rest (below 0.31):
// below 4, absolute, and it is at least 0.7. The scale adds 1. So the error of a value is below 8 units of its last
// place; 16 are allowed.

#include "kernels/cuda/elements.cuh"

namespace posenc::kernels::cuda {

/// An angle reduced to the nearest quarter turn, with sine and cosine of the remainder.
struct QuickAngle {
  unsigned quarter;
  bool is_exact;  // the truncated part of the phase is too small to affect the sine
  double sine, cosine;
};

/// From the frequency's two upper words.
__device__ __forceinline__ QuickAngle quick_angle(std::uint64_t w3, std::uint64_t w2, std::uint64_t count) {
  // Positions below 2^32, that is, nearly all, need half the products.
  std::uint64_t low, high;
  if (count >> 32 == 0) [[likely]] {
    const auto n = static_cast<std::uint32_t>(count);
    const std::uint64_t bottom = std::uint64_t{static_cast<std::uint32_t>(w2)} * n;
    const std::uint64_t middle = (w2 >> 32) * std::uint64_t{n} + (bottom >> 32);
    low = middle << 32 | static_cast<std::uint32_t>(bottom);
    high = w3 * n + (middle >> 32);
  } else {
    const auto phase = static_cast<numerics::uint128>(w2) * count;
    low = static_cast<std::uint64_t>(phase);
    high = w3 * count + static_cast<std::uint64_t>(phase >> 64);
  }
  QuickAngle r;
  r.quarter = static_cast<unsigned>((high + (std::uint64_t{1} << 61)) >> 62);
  const auto rest = static_cast<std::int64_t>(high - (std::uint64_t{r.quarter} << 62));
  const auto magnitude = static_cast<std::uint64_t>(rest < 0 ? -rest : rest);
  r.is_exact = magnitude > (count >> 11) + 1;  // as in numerics::reduce
  constexpr double kTwoPi = numerics::kTwoPi;
  const double x =
      __builtin_fma(static_cast<double>(rest), kTwoPi * 0x1p-64, static_cast<double>(low) * (kTwoPi * 0x1p-128));
  const double z = x * x;
  double s = 1.58969099521155010221e-10, c = -1.13596475577881948265e-11;
  s = __builtin_fma(z, s, -2.50507602534068634195e-08);
  c = __builtin_fma(z, c, 2.08757232129817482790e-09);
  s = __builtin_fma(z, s, 2.75573137070700676789e-06);
  c = __builtin_fma(z, c, -2.75573143513906633035e-07);
  s = __builtin_fma(z, s, -1.98412698298579493134e-04);
  c = __builtin_fma(z, c, 2.48015872894767294178e-05);
  s = __builtin_fma(z, s, 8.33333333332248946124e-03);
  c = __builtin_fma(z, c, -1.38888888888741095749e-03);
  s = __builtin_fma(z, s, -1.66666666666666324348e-01);
  c = __builtin_fma(z, c, 4.16666666666666019037e-02);
  r.sine = __builtin_fma(x * z, s, x);
  r.cosine = 1.0 - __builtin_fma(-z * z, c, 0.5 * z);
  return r;
}

/// Whether 16 units in the last place of a double could change its rounding to a float, or the float is not normal.
__device__ __forceinline__ bool is_doubtful(double value) {
  const auto bits = std::bit_cast<std::uint64_t>(value);
  const std::uint32_t rest = static_cast<std::uint32_t>(bits) & 0x1FFFFFFFu;  // the bits that a float drops
  const std::uint32_t size = static_cast<std::uint32_t>(bits >> 32) & 0x7FFFFFFFu;
  return (rest - (0x10000000u - 16) <= 32u) | (size < (1023u - 120) << 20);
}

struct QuickValue {
  float value;
  bool is_sure;
};
/// scale · sin(angle + quarter/4).
__device__ __forceinline__ QuickValue quick_value(const QuickAngle& r, unsigned quarter, double scale) {
  const unsigned whole = r.quarter + quarter;
  const bool is_sine = (whole & 1) == 0;
  const double value = (is_sine ? r.sine : r.cosine) * scale;
  const auto rounded = std::bit_cast<std::uint32_t>(static_cast<float>(value)) ^ (whole << 30 & 0x80000000u);
  return {std::bit_cast<float>(rounded), (!is_doubtful(value) & (r.is_exact | !is_sine)) != 0};
}

/// kExact: the host knows that there are no float32 angles.
template <bool kExact = false>
__device__ __forceinline__ QuickAngle quick_angle(const WaveParams& p, std::int64_t wave, std::int64_t position) {
  if (!kExact && p.factors != nullptr) {
    const numerics::Angle angle = angle_of(p, wave, position);
    return quick_angle(angle.unit.words[3], angle.unit.words[2], angle.count);
  }
  const FrequencyTop f = p.tops[wave];
  return quick_angle(f.high, f.low, static_cast<std::uint64_t>(position));
}

/// Which value of a wave it is, in case it must be computed again.
struct WaveSpot {
  std::int64_t wave, position, column;
};
/// By integers, from the start: so rare that the fast path keeps nothing for it.
__device__ __noinline__ float value_slowly(const WaveParams* p, Fault* fault, std::int64_t wave,
                                           std::int64_t position, std::int64_t column, unsigned quarter) {
  float value = 0;
  if (!numerics::round_wave_by_integers(value, angle_of(*p, wave, position), quarter, p->scale)) {
    report(fault, Fault::kUndecided, position, column);
  }
  return value;
}
/// The same, with a certain rounding.
__device__ __forceinline__ float sure_value(const WaveParams& p, Fault* fault, const QuickAngle& quick,
                                            unsigned quarter, const WaveSpot& spot) {
  const QuickValue value = quick_value(quick, quarter, p.scale);
  if (value.is_sure) [[likely]]
    return value.value;
  return value_slowly(&p, fault, spot.wave, spot.position, spot.column, quarter);
}

}  // namespace posenc::kernels::cuda
