#pragma once

#include <array>
#include <cstdint>

namespace posenc {

/// How fast an angle grows: turns per position, as a binary fraction of one turn.
///
///   value = words[3]·2^-64 + words[2]·2^-128 + words[1]·2^-192 + words[0]·2^-256    in [0, 1)
///
/// Positions are integers, so whole turns per position never matter, and position × frequency modulo one turn is a
/// wrapping integer multiplication: exact at any position.
/// Error: at most 2^-257 turns per position, so at most 2^-204 turns at position 2^53.
struct Frequency {
  std::array<std::uint64_t, 4> words{};  // least significant first
  bool operator==(const Frequency&) const = default;
};

/// The absolute value of a position is below this.
inline constexpr std::int64_t kPositionLimit = std::int64_t{1} << 53;

/// The frequency of `radians` per position: what a config calls theta, inv_freq or 1/timescale.
/// Range: |radians| from 2^-136 to 2^100, or 0; the double is taken as its exact value.
/// Throws: Error outside the range and for NaN.
Frequency frequency_from_radians(double radians);

/// The frequency of `turns` per position, exact. Range and Throws: as above.
Frequency frequency_from_turns(double turns);

/// one − other modulo one turn, exact.
Frequency difference_of(const Frequency& one, const Frequency& other) noexcept;

/// Radians per position in (−π, π], as the nearest double. Whole turns are dropped.
double radians_of(const Frequency& frequency) noexcept;

}  // namespace posenc
