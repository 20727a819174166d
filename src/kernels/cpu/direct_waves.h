#pragma once

#include <cstdint>

#include "kernels/memory.h"

namespace posenc::kernels::cpu {

/// Angles of many waves at one position, reduced to the nearest quarter turn, as numerics::reduce does for one.
struct ReducedAngles {
  AlignedVector<std::int64_t> quarter;  // how many quarter turns were subtracted
  AlignedVector<std::int64_t> rest;     // the remainder, in turns · 2^64; at most 1/8 turn
  AlignedVector<std::uint64_t> below;   // the next 64 bits of it
  AlignedVector<std::int64_t> radians;  // |rest| · 2π / 8, so in units of 2^-61 radians

  AlignedVector<double> x, tail;       // computed from these: the angle in radians, and what does not fit into x
  AlignedVector<double> sine, cosine;  // of x + tail, or of the whole angle

  /// Room for `count` waves and for vectors that extend past the last.
  void resize(std::size_t count);
};

/// Sine and cosine of the whole angles, into `angles`. Error: at most 2^-52, absolute, as for numerics::sine_cosine.
void waves_in_double(ReducedAngles& angles, std::int64_t count) noexcept;

/// scale · sine and cosine of the whole angles, rounded to float32, correctly if the relative error of `rest` is at
/// most 2^-50; scale is not 0. Lists the waves whose rounding is in doubt and returns their number; `doubtful` has
/// room for all, and the arrays have room for ReducedAngles::resize(count).
std::int64_t direct_waves(ReducedAngles& angles, std::int64_t count, double scale, float* sines, float* cosines,
                          std::int32_t* doubtful) noexcept;

/// What resize adds to the count: the longest vector of doubles.
inline constexpr std::size_t kDirectPadding = 32;

}  // namespace posenc::kernels::cpu
