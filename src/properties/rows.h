#pragma once

#include <cstdint>
#include <vector>

#include "posenc/forms.h"
#include "posenc/positions.h"

namespace posenc::properties {

/// Positions that are looked at: all of a short sequence, both ends of a long one.
struct Sample {
  int axes = 1;
  std::size_t count = 0;
  std::vector<std::int64_t> ids;  // [axes, count]

  std::int64_t at(int axis, std::size_t i) const { return ids[static_cast<std::size_t>(axis) * count + i]; }
  Positions positions() const { return {.first = 0, .ids = ids, .axes = axes}; }
  /// Position `to` less position `from`.
  std::vector<std::int64_t> offset(std::size_t from, std::size_t to) const;
};
/// At most about `most` of the positions below `length`; with several axes, a grid (or two) of them.
Sample sample_of(std::int64_t length, int axes, std::int64_t most);
/// These positions alone, on every axis alike.
Sample sample_at(const std::vector<std::int64_t>& positions, int axes);

/// The rows of a form are the vectors that it adds, or the cosines and then the sines of its pairs.
bool has_rows(const Form& form) noexcept;
std::size_t width_of(const Form& form) noexcept;
/// [count, width], in f32 or f64; [batch, count, width] where there are several sequences.
template <class T>
std::vector<T> rows_at(const Form& form, const Positions& positions, std::size_t count, std::size_t batch = 1);

/// Columns that are sine and cosine of one wave; zeros that stand in for a missing wave are left out.
struct WavePair {
  std::size_t sine = 0, cosine = 0;
};
/// Empty where the rows do not consist of such pairs, and of nothing else.
std::vector<WavePair> wave_pairs_of(const Form& form);

/// What multiplies the sines and cosines, with its sign.
double signed_amplitude(const Form& form, const std::vector<WavePair>& pairs);

/// What no value of the rows may exceed by the form's own making; for straight lines, which have no such thing, the
/// largest value below `length`.
double amplitude_of(const Form& form, std::int64_t length);

/// The fastest wave, in radians per position; 0 where there is none.
double fastest_wave(const Form& form) noexcept;
/// Cosines and sines come from the exact angle, or there are none.
bool has_exact_angles(const Form& form) noexcept;

/// The larger of the two; unlike std::max, a NaN wins and stays.
double larger(double most, double value) noexcept;

/// Half a unit in the last place of a double near 1.
inline constexpr double kUnit = 0x1p-53;

}  // namespace posenc::properties
