#include "lessons/story_rotations.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "posenc/apply.h"

namespace posenc::lessons {

StoryMatrix rotated_rows(MatrixLabels labels, const StoryMatrix& of, const std::string& angles, const Rotation& form,
                         std::span<const AxisPositions> positions) {
  std::vector<double> values;
  for (std::size_t i = 0; i < positions.size(); ++i) {
    const std::span<const double> row = row_of(of, 0);
    values.insert(values.end(), row.begin(), row.end());
  }
  std::vector<std::int64_t> ids;  // [axes, sequence]
  for (std::size_t axis = 0; axis < positions.front().size(); ++axis) {
    for (const AxisPositions& position : positions) ids.push_back(position[axis]);
  }
  StoryMatrix matrix = given(std::move(labels), std::move(values));
  rotate(view(matrix.values.data(), shape_of(matrix)),
         {.ids = ids, .axes = static_cast<int>(positions.front().size())}, form);
  matrix.recipe = RotatedCells{of.name, angles};
  return matrix;
}

double rotated_score(const StoryMatrix& q, const StoryMatrix& k, const Rotation& form, const AxisPositions& query,
                     const AxisPositions& key) {
  const StoryMatrix there = rotated_rows({"", "", {""}, q.columns}, q, "", form, {{query}});
  const StoryMatrix here = rotated_rows({"", "", {""}, k.columns}, k, "", form, {{key}});
  return dot(there.values, here.values);
}

CellTerms score_terms(const StoryMatrix& q, const StoryMatrix& k, std::span<const CellFactor> angles) {
  CellTerms cell{"Σ (q_i · k_i) cos φ_i + (q_i × k_i) sin φ_i"};
  for (std::size_t i = 0; i < angles.size(); ++i) {
    const double q0 = q.at(0, 2 * i), q1 = q.at(0, 2 * i + 1), k0 = k.at(0, 2 * i), k1 = k.at(0, 2 * i + 1);
    cell.terms.push_back({{fmt::format("q{0} · k{0}", i), q0 * k0 + q1 * k1},
                          {fmt::format("cos({})", angles[i].name), std::cos(angles[i].value)}});
    cell.terms.push_back({{fmt::format("q{0} × k{0}", i), q0 * k1 - q1 * k0},
                          {fmt::format("sin({})", angles[i].name), std::sin(angles[i].value)}});
  }
  return cell;
}

std::vector<CellFactor> angles_at(const Rotation& form, const AxisPositions& position) {
  std::vector<CellFactor> angles;
  for (std::size_t i = 0; i < form.frequencies.size(); ++i) {
    const std::int64_t number = position[axis_of(form, i)];
    angles.push_back(
        {fmt::format("ω{} · {}", i, number), static_cast<double>(number) * radians_of(form.frequencies[i])});
  }
  return angles;
}

double spread_of(std::span<const double> values) {
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  return *most - *least;
}

}  // namespace posenc::lessons
