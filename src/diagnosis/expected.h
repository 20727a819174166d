#pragma once

#include <vector>

#include "posenc/check.h"

namespace posenc::diagnosis {

/// What a perfect implementation computes from `before`, in double, dense in the order of the view; and for each
/// element the magnitude that a tolerance is relative to.
struct Expected {
  std::vector<double> before, values, scale;
  std::vector<double> leeway;  // per element: how much engines differ among themselves; empty: not at all
};

/// Positions of the tokens (or queries) and keys, [axes, count]; generated if not given.
struct CheckPositions {
  std::vector<std::int64_t> tokens, keys;
};
/// Throws: Error if they do not fit the shape.
CheckPositions check_positions(const Form& form, std::string_view scheme, const Extents& shape,
                               const CheckOptions& options);

/// Throws: Error if form, shape and positions do not fit each other.
Expected expected_of(const Form& form, ConstTensorView before, const CheckPositions& positions, int axes);

/// A frequency may differ by 2 units in the last place of float32: engines compute powers slightly differently.
inline constexpr double kAngleLeeway = 2.4e-7;
/// Adds to `expected` the effect of such an error at each position.
void allow_float32_angles(const Rotation& form, const Extents& shape, const CheckPositions& positions,
                          Expected& expected);

/// Whether a score means "masked".
bool is_mask(double score, DataType type) noexcept;

}  // namespace posenc::diagnosis
