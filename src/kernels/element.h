#pragma once

#include <variant>

#include "kernels/job.h"
#include "numerics/elements.h"
#include "numerics/narrow.h"
#include "numerics/radians.h"
#include "numerics/wave.h"

namespace posenc::kernels {

using numerics::table_element;
using numerics::with_cache_type;
using numerics::with_type;

/// Sums of T are computed in this type.
template <class T> using Working = std::conditional_t<std::is_same_v<T, double>, double, float>;

/// float32 radians of wave i at a position, each operation rounded as engines do.
inline float float32_radians(const Float32Angles& angles, std::size_t i, std::int64_t position) noexcept {
  auto radians = static_cast<float>(position);
  if (angles.chain > 0) {
    const std::size_t chain = angles.chain;
    for (std::size_t k = i / chain * chain; k < i; ++k) radians *= angles.factors[k];
  }
  radians *= angles.factors[i];
  if (i >= angles.blends.size()) return radians;
  const Float32Angles::Blend& blend = angles.blends[i];
  const float whole = radians / blend.divisor, scaled = blend.scale * whole;
  return blend.kept == 0.0f ? scaled : scaled * (1.0f - blend.kept) + whole * blend.kept;
}

/// The angle of one wave at one token.
inline numerics::Angle angle_of(const Waves& waves, std::size_t wave, const TokenPositions& positions, std::int64_t b,
                                std::int64_t t) noexcept {
  if (!waves.further.empty()) {  // the exact sum, modulo one turn
    numerics::Angle sum{numerics::phase_at(waves.waves[wave].frequency, positions.at(b, t)), 1};
    const std::size_t others = waves.axes - 1;
    for (std::size_t axis = 0; axis < others; ++axis) {
      const Frequency& frequency = waves.further[wave * others + axis];
      sum.unit =
          numerics::sum_of(sum.unit, numerics::phase_at(frequency, positions.at(b, t, static_cast<int>(axis) + 1)));
    }
    return sum;
  }
  const std::int64_t position = positions.at(b, t, waves.waves[wave].axis);
  if (waves.float32_angles.factors.empty()) return numerics::angle_at(waves.waves[wave].frequency, position);
  return numerics::angle_from_radians(float32_radians(waves.float32_angles, wave, position));
}

inline double line_element(const Lines& lines, std::size_t column, std::int64_t position) noexcept {
  return lines.start[column] + static_cast<double>(position) * lines.step[column];
}

}  // namespace posenc::kernels
