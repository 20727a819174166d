#pragma once

// Cosine and sine of one pair at one token.

#include "kernels/cuda/quick_waves.cuh"

namespace posenc::kernels::cuda {

template <class W> struct CosSin { W cosine, sine; };

/// Rounded to a type that is no wider, and back; a NaN becomes the canonical one.
template <class W> __device__ __forceinline__ W rounded_to(int type, W value) {
  if (value != value) return sizeof(W) == sizeof(float) ? W(std::bit_cast<float>(0x7FC00000u)) : W(__builtin_nan(""));
  switch (type) {
    case kTypeF16:
      return static_cast<W>(widen(narrow<Half>(static_cast<double>(value))));
    case kTypeBF16:
      return static_cast<W>(widen(narrow<BFloat16>(static_cast<double>(value))));
    case kTypeF32:
      return static_cast<W>(static_cast<float>(value));
    default:
      return value;
  }
}

/// e^x within about one unit in the last place, for |x| ≤ 700.
__device__ __noinline__ double exponential(double x) {
  const double k = __builtin_rint(x * 0x1.71547652b82fep+0);
  const double r = __builtin_fma(k, -0x1.abc9e3b39803fp-56, __builtin_fma(k, -0x1.62e42fefa39efp-1, x));
  double sum = 1.0;
#pragma unroll
  for (int n = 14; n >= 1; --n) sum = __builtin_fma(sum * (1.0 / n), r, 1.0);
  return numerics::times_power(sum, static_cast<int>(k));
}

template <class W> __device__ __forceinline__ CosSin<W> cos_sin_by_waves(const RotateParams& p, std::int64_t position,
                                                                         std::int64_t pair) {
  const unsigned quarter = p.sign < 0 ? 2 : 0;  // −sin x = sin(x + half a turn)
  CosSin<W> value;
  if constexpr (sizeof(W) == sizeof(float)) {
    const QuickAngle quick = quick_angle(p.waves, pair, position);
    const WaveSpot spot{pair, position, pair};
    value = {sure_value(p.waves, p.fault, quick, 1, spot), sure_value(p.waves, p.fault, quick, quarter, spot)};
  } else {
    const numerics::Angle angle = angle_of(p.waves, pair, position);
    const Spot spot{p.fault, position, pair};
    value = {wave_by_integers<W>(angle, 1, p.waves.scale, spot),
             wave_by_integers<W>(angle, quarter, p.waves.scale, spot)};
  }
  value.cosine *= static_cast<W>(p.late_magnitude);
  value.sine *= static_cast<W>(p.late_magnitude);
  return value;
}

/// Computes both again; rare, so it is kept out of line.
__device__ __forceinline__ CosSin<float> cos_sin_slowly(const RotateParams& p, std::int64_t position,
                                                        std::int64_t pair) {
  return {value_slowly(&p.waves, p.fault, pair, position, pair, 1),
          value_slowly(&p.waves, p.fault, pair, position, pair, p.sign < 0 ? 2 : 0)};
}

template <class W> __device__ __forceinline__ CosSin<W> cos_sin_by_table(const RotateParams& p, std::int64_t b,
                                                                         std::int64_t t, std::int64_t pair) {
  const std::int64_t row = p.by_token != 0 ? t : position_at(p.positions, b, t, 0, p.fault);
  const auto entry = [&](const TableParams& table) {
    const double value =
        load(table.data, table.type, b * table.batch_stride + row * table.row_stride + pair * table.column_stride);
    if constexpr (sizeof(W) == sizeof(float)) return narrowed(value);
    return static_cast<W>(value);
  };
  const CosSin<W> value{entry(p.cosines), entry(p.sines)};
  return {value.cosine, p.sign < 0 ? -value.sine : value.sine};
}

template <class W> __device__ CosSin<W> cos_sin_by_growth(const RotateParams& p, std::int64_t b, std::int64_t t,
                                                          std::int64_t pair, bool keys) {
  const std::int64_t position = position_at(p.positions, b, t, axis_of(p.waves, pair), p.fault);
  const double exponent = p.rates[pair] * static_cast<double>(position - p.centre);
  const double length = p.magnitude * exponential(keys ? -exponent : exponent);
  const numerics::SineCosine unit = numerics::sine_cosine(numerics::reduce(angle_of(p.waves, pair, position)));
  return {static_cast<W>(length * unit.cosine), static_cast<W>(length * p.sign * unit.sine)};
}

}  // namespace posenc::kernels::cuda
