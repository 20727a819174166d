#pragma once

#include <vector>

#include "posenc/check.h"

namespace posenc::diagnosis {

/// What a perfect implementation makes of `before`, in double, dense in the order of the view; and for each element
/// what a tolerance is relative to.
struct Expected {
  std::vector<double> before, values, scale;
  std::vector<double> leeway;  // of each element: how far engines differ among themselves; empty: not at all
};

/// Positions of the tokens (or queries) and keys, [axes, count], made where they were not given.
struct CheckPositions {
  std::vector<std::int64_t> tokens, keys;
};
/// Throws: Error where they do not fit the shape.
CheckPositions check_positions(const Form& form, std::string_view scheme, const Extents& shape,
                               const CheckOptions& options);

/// Throws: Error where the form, shape and positions do not fit each other.
Expected expected_of(const Form& form, ConstTensorView before, const CheckPositions& positions, int axes);

/// A frequency may be 2 units in the last place of float32 off: engines take powers a little differently.
inline constexpr double kAngleLeeway = 2.4e-7;
/// Adds to `expected` what such an error is at each position.
void allow_float32_angles(const Rotation& form, const Extents& shape, const CheckPositions& positions,
                          Expected& expected);

/// Whether a score means "do not look here".
bool is_mask(double score, DataType type) noexcept;

}  // namespace posenc::diagnosis
