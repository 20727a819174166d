#pragma once

#include <cstdint>
#include <vector>

#include "posenc/forms.h"
#include "posenc/positions.h"

namespace posenc::properties {

/// The positions that are tested: all of a short sequence, both ends of a long one.
struct Sample {
  int axes = 1;
  std::size_t count = 0;
  std::vector<std::int64_t> ids;  // [axes, count]

  std::int64_t at(int axis, std::size_t i) const { return ids[axis * count + i]; }
  Positions positions() const { return {.first = 0, .ids = ids, .axes = axes}; }
  /// Position `to` − position `from`, per axis.
  std::vector<std::int64_t> offset(std::size_t from, std::size_t to) const;
};
/// About `most` positions below `length`, at most; with several axes, one or two grids of them.
Sample sample_of(std::int64_t length, int axes, std::int64_t most);
/// Exactly these positions, the same on every axis.
Sample sample_at(const std::vector<std::int64_t>& positions, int axes);

/// The rows of a form are the vectors that it adds, or, for a rotation, the cosines and then the sines of its pairs.
bool has_rows(const Form& form) noexcept;
std::size_t width_of(const Form& form) noexcept;
/// [count, width], in f32 or f64; [batch, count, width] for several sequences.
template <class T>
std::vector<T> rows_at(const Form& form, const Positions& positions, std::size_t count, std::size_t batch = 1);

/// The columns of sine and cosine of one wave. Columns of zeros, which replace missing waves, are left out.
struct WavePair {
  std::size_t sine = 0, cosine = 0;
};
/// Empty unless the rows consist of such pairs only.
std::vector<WavePair> wave_pairs_of(const Form& form);

/// The factor of the sines and cosines, with its sign.
double signed_amplitude(const Form& form, const std::vector<WavePair>& pairs);

/// A bound on the absolute value of every element of the rows, for any position. Straight lines are unbounded: for
/// them, the largest value below `length`.
double amplitude_of(const Form& form, std::int64_t length);

/// The fastest wave, in radians per position; 0 if there is none.
double fastest_wave(const Form& form) noexcept;
/// Whether cosines and sines are those of exact angles; true if there are none.
bool has_exact_angles(const Form& form) noexcept;

/// The larger of the two; unlike std::max, NaN if either is NaN.
double larger(double most, double value) noexcept;

/// Half a unit in the last place of a double near 1.
inline constexpr double kUnit = 0x1p-53;

}  // namespace posenc::properties
