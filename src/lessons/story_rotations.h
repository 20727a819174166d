#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "lessons/story_matrices.h"

namespace posenc::lessons {

// What the worked examples of rotations share. Vectors are rotated by the library; the formulas beside them are what a
// reader would do on paper.

/// One position: a number for each axis that the rotation has.
using AxisPositions = std::vector<std::int64_t>;

/// The only row of `of`, rotated to each position. `angles` names the matrix of the angles, which has a row for each.
StoryMatrix rotated_rows(MatrixLabels labels, const StoryMatrix& of, const std::string& angles, const Rotation& form,
                         std::span<const AxisPositions> positions);

/// The score of the first rows of `q` and `k`, rotated by the library to these positions.
double rotated_score(const StoryMatrix& q, const StoryMatrix& k, const Rotation& form, const AxisPositions& query,
                     const AxisPositions& key);

/// Σ (q_i · k_i) cos φ_i + (q_i × k_i) sin φ_i, for the first rows of `q` and `k` and an angle for each pair.
CellTerms score_terms(const StoryMatrix& q, const StoryMatrix& k, std::span<const CellFactor> angles);

/// The angle of each pair at a position: the number on its axis times its frequency.
std::vector<CellFactor> angles_at(const Rotation& form, const AxisPositions& position);

/// Largest minus smallest.
double spread_of(std::span<const double> values);

}  // namespace posenc::lessons
