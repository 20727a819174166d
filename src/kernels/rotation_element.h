#pragma once

#include <cmath>
#include <limits>
#include <vector>

#include "kernels/element.h"

namespace posenc::kernels {

/// The factor to apply after cosines and sines are rounded: engines that compute float32 angles round first and then
/// apply the magnitude, in float32.
inline float late_magnitude(const Rotation& form) {
  return has_float32_angles(form) ? static_cast<float>(form.magnitude) : 1.0f;
}

/// The table's type, if it is narrower than the type of the arithmetic.
inline DataType table_type(const Rotation& form, DataType working) {
  const DataType type = form.precision.table.value_or(working);
  return size_of(type) < size_of(working) ? type : working;
}

/// The type of the arithmetic: f64, f32, or f32 with every result rounded to 16 bits.
inline DataType arithmetic_type(const Rotation& form, DataType tensor) {
  return form.precision.arithmetic.value_or(tensor == DataType::kF64 ? DataType::kF64 : DataType::kF32);
}

/// Rounded to a narrower type and back; a NaN becomes the canonical one.
template <class W> W rounded_to(DataType type, W value) noexcept {
  if (value != value) return std::numeric_limits<W>::quiet_NaN();
  return with_type(type, [&](auto kind) {
    return static_cast<W>(numerics::widen(numerics::narrow<decltype(kind)>(static_cast<double>(value))));
  });
}

/// The factor by which a pair has grown at a position.
inline double growth_at(const Growth& growth, std::size_t pair, std::int64_t position, bool keys) noexcept {
  const double exponent = growth.rates[pair] * static_cast<double>(position - growth.centre);
  return std::exp(keys ? -exponent : exponent);
}

/// Whether pairs are read and written in alternation, so that each cosine and sine is needed twice: c c, −s s. A row
/// is then rotated without separating its pairs.
inline bool wants_doubled(const PairPlacement& places) noexcept {
  return places.read.step == 2 && places.write.step == 2;
}
/// Computes that row, [2 · pairs cosines | 2 · pairs sines].
template <class W> void double_cos_sin(const W* cosines, const W* sines, std::int64_t pairs, W* row) noexcept {
  W* const signed_sines = row + 2 * pairs;
  for (std::int64_t i = 0; i < pairs; ++i) {
    row[2 * i] = row[2 * i + 1] = cosines[i];
    signed_sines[2 * i] = -sines[i];
    signed_sines[2 * i + 1] = sines[i];
  }
}

/// Cosines and sines of the pairs of one head, from those of the waves of a mixture, [cosines | sines]. `sums` has
/// room for both of the mixed pairs.
template <class W> void mix_waves(const Rotation& form, const Mixture& mixture, std::int64_t head,
                                  const double* waves, W* cosines, W* sines, std::vector<double>& sums) noexcept {
  const auto count = static_cast<std::int64_t>(form.frequencies.size()), mixed = mixture.mixed;
  const auto offset = [](const std::vector<double>& offsets, std::int64_t pair) {
    return offsets.empty() ? 0.0 : offsets[pair];
  };
  double* const cosine_sums = sums.data();
  double* const sine_sums = sums.data() + mixed;
  for (std::int64_t j = 0; j < mixed; ++j) {
    cosine_sums[j] = offset(mixture.cosine_offsets, j);
    sine_sums[j] = offset(mixture.sine_offsets, j);
  }
  for (std::int64_t i = 0; i < count; ++i) {
    const double cosine = waves[i], sine = waves[count + i];
    const double* const cosine_weights = mixture.cosines.data() + (head * count + i) * mixed;
    const double* const sine_weights = mixture.sines.data() + (head * count + i) * mixed;
    for (std::int64_t j = 0; j < mixed; ++j) cosine_sums[j] += cosine_weights[j] * cosine;
    for (std::int64_t j = 0; j < mixed; ++j) sine_sums[j] += sine_weights[j] * sine;
  }
  const double along = form.magnitude, across = form.sign * form.magnitude;
  for (std::int64_t j = 0; j < mixture.pairs; ++j) {
    cosines[j] = numerics::narrow<W>(along * (j < mixed ? cosine_sums[j] : offset(mixture.cosine_offsets, j)));
    sines[j] = numerics::narrow<W>(across * (j < mixed ? sine_sums[j] : offset(mixture.sine_offsets, j)));
  }
}

/// The row of an explicit table for a token.
template <class W> W table_entry(const ConstTensorView& table, const TokenPositions& positions, std::int64_t b,
                                 std::int64_t t, std::int64_t pair) noexcept {
  if (table.shape.rank == 2) return table_element<W>(table, positions.at(b, t), pair);
  ConstTensorView rows = table;  // [sequence, pairs] of this sequence
  rows.strides = {table.strides[1], table.strides[2]};
  const std::int64_t start = b * table.strides[0] * size_of(table.type);
  rows.data = static_cast<const char*>(table.data) + start;
  return table_element<W>(rows, t, pair);
}

}  // namespace posenc::kernels
