#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "posenc/forms.h"
#include "posenc/scheme.h"

// The numbers that lessons speak of, each asked of the library: templates in content/ and exercises both use these.
namespace posenc::lessons {

/// sin and cos of an angle in radians, correct to the last place of double. Range: as frequency_from_radians.
double sine_of(double angle);
double cosine_of(double angle);

/// The vector that a form adds at a position, in double.
std::vector<double> row_at(const Addition& form, std::int64_t position);
/// The paper's table: one value.
double sinusoid_at(const Sinusoidal& scheme, std::int64_t position, std::int64_t column);
/// PE(0) · PE(distance).
double dot_product_at(const Sinusoidal& scheme, std::int64_t distance);

/// Radians per position of a pair. Throws: Error for a pair that is not there.
double frequency_at(const Rotation& form, std::int64_t pair);
double frequency_at(std::int64_t dims, std::int64_t pair, double base);

/// A pair of features after its turn; `dims` and `base` give the frequency.
struct Pair {
  double a = 0, b = 0;
};
Pair turned(const Rope& scheme, std::int64_t pair, std::int64_t position, Pair value);

/// What a bias adds to the score of one query and key.
double bias_at(const Bias& form, std::int64_t head, std::int64_t query, std::int64_t key);

/// The entry of a distance δ = key − query.
std::int64_t entry_at(const DistanceMap& map, std::int64_t distance);

/// softmax(scores)[which].
double softmax_weight(std::span<const double> scores, std::size_t which);

/// How far attention without scale is from doing to a reversed sentence what reversing does to its output:
/// max |Att(PX) − P·Att(X)| for three tokens of ours. 0: the scheme cannot tell the sentence from its mirror image.
double reversal_gap(const Scheme& scheme, bool causal);

/// The largest difference, over a row, between the exact table and the one whose angles are float32.
double float32_error(const Scheme& scheme, std::int64_t position);

}  // namespace posenc::lessons
