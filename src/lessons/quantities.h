#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "posenc/forms.h"
#include "posenc/scheme.h"

// The numbers that lessons show, all computed by the library: templates in content/ and exercises both use these.
namespace posenc::lessons {

/// sin and cos of an angle in radians, within 0.501 ulp of double. Range: as frequency_from_radians.
double sine_of(double angle);
double cosine_of(double angle);

/// The vector that a form adds at a position, in double.
std::vector<double> row_at(const Addition& form, std::int64_t position);
/// One value of the paper's table.
double sinusoid_at(const Sinusoidal& scheme, std::int64_t position, std::int64_t column);
/// PE(0) · PE(distance).
double dot_product_at(const Sinusoidal& scheme, std::int64_t distance);

/// Radians per position of a pair. Throws: Error if there is no such pair.
double frequency_at(const Rotation& form, std::int64_t pair);
double frequency_at(std::int64_t dims, std::int64_t pair, double base);

/// A pair of features after rotation; `dims` and `base` determine the frequency.
struct Pair {
  double a = 0, b = 0;
};
Pair turned(const Rope& scheme, std::int64_t pair, std::int64_t position, Pair value);

/// The bias for the score of one query and key.
double bias_at(const Bias& form, std::int64_t head, std::int64_t query, std::int64_t key);

/// The table entry for δ = key − query.
std::int64_t entry_at(const DistanceMap& map, std::int64_t distance);

/// softmax(scores)[which].
double softmax_weight(std::span<const double> scores, std::size_t which);

/// max |Att(PX) − P·Att(X)| for a sentence X of three tokens, P reversing it, and unscaled attention. 0: the scheme
/// cannot distinguish the sentence from its reverse.
double reversal_gap(const Scheme& scheme, bool causal);

/// The largest difference over a row between the exact table and the one computed from float32 angles.
double float32_error(const Scheme& scheme, std::int64_t position);

}  // namespace posenc::lessons
