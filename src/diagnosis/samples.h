#pragma once

#include <complex>
#include <cstdint>
#include <vector>

#include "posenc/diagnosis.h"

namespace posenc::diagnosis {

/// Root mean square, in units in the last place, of a rounding error that is uniform over one such unit.
inline constexpr double kRoundingShare = 0.29;

/// The relative error that a type alone causes in an element that is a power of two.
double rounding_of(DataType type);

/// One coordinate of the tokens' positions.
struct Axis {
  std::vector<std::int64_t> positions;  // of each token
  std::vector<std::size_t> order;       // the tokens by their position here
  std::vector<std::int64_t> sorted;     // their positions in that order
  // e^(−iωp) for frequencies spread over a turn and the tokens near the first, p counted from it: [frequencies, near]
  std::size_t near = 0;
  std::vector<std::complex<double>> waves;
};
/// Throws nothing; `positions` is not empty.
Axis axis_of(std::vector<std::int64_t> positions);

/// Where the two features of a pair are read and written.
struct Place {
  std::int64_t read_a = 0, read_b = 0, write_a = 0, write_b = 0;
};

/// The examined part of two tensors, in double: [heads, sequence, features], tokens in the order of their positions
/// on the first axis.
struct Samples {
  std::int64_t heads = 0, sequence = 0, features = 0;
  std::vector<double> before, after;
  std::vector<Axis> axes;                 // of the position; a single one, with 0, 1, 2 …, if unknown
  std::vector<std::int64_t> sequence_of;  // of each head: its sequence in the batch
  bool has_known_positions = false;
  const Rope* expected = nullptr;  // what was meant, if known
  bool is_one_type = false;        // unrotated features are then copied bit by bit
  double rounding = 0;             // relative error of one element due to the type alone
  double energy = 0;               // Σ after²
  double change = 0;               // Σ (after − before)²

  std::int64_t first_position() const { return axes.front().sorted.front(); }
  std::int64_t last_position() const { return axes.front().sorted.back(); }
  /// The span of the tokens, on the axis where it is largest.
  double span() const;
  std::size_t at(std::int64_t head, std::int64_t token, std::int64_t feature) const {
    return (head * sequence + token) * features + feature;
  }
  /// A pair of features before and after, as complex numbers.
  std::complex<double> read(std::int64_t head, std::int64_t token, const Place& place) const {
    return {before[at(head, token, place.read_a)], before[at(head, token, place.read_b)]};
  }
  std::complex<double> written(std::int64_t head, std::int64_t token, const Place& place) const {
    return {after[at(head, token, place.write_a)], after[at(head, token, place.write_b)]};
  }
};

/// Throws: Error for shapes, types and positions that do not fit.
void check_tensors(ConstTensorView before, ConstTensorView after, const DiagnosisOptions& options);
/// Throws: as check_tensors, and for numbers that are not finite.
Samples take_samples(ConstTensorView before, ConstTensorView after, const DiagnosisOptions& options);

/// Some heads and some tokens of samples, from the first of each up to the second. If positions are unknown, they are
/// counted from the first of these tokens.
struct Part {
  std::int64_t first_head = 0, end_head = 0, first_token = 0, end_token = 0;
};
Samples part_of(const Samples& samples, const Part& part);

/// What a pair reveals about its angle, for each token: with a and b the pair before and after as complex numbers, Σ
/// conj(a)·b, Σ|a|², Σ|b|² over the heads.
struct PairStatistics {
  std::vector<std::complex<double>> product;
  std::vector<double> before, after;
};
PairStatistics statistics_of(const Samples& samples, const Place& place);

/// The best b = c·e^((g + iω)p)·a, p counted from the first token.
struct PairFit {
  double frequency = 0;            // ω in radians, in (−π, π]
  double growth = 0;               // b = c·e^((g + iω)p)·a: 0 unless it halves the unexplained energy (xPos)
  std::complex<double> amplitude;  // c
  double unexplained = 0;          // energy
  double energy = 0;               // Σ|b|²
  std::size_t axis = 0;            // that drives it
  bool is_axis_sure = true;        // no other explains it as well
  bool rotates(double span) const { return std::abs(frequency) * span > 0.1 || std::abs(std::arg(amplitude)) > 0.1; }
};
/// On the axis that explains it best.
PairFit fit_pair(const PairStatistics& pair, const Samples& samples);

}  // namespace posenc::diagnosis
