#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "posenc/forms.h"
#include "posenc/positions.h"

namespace posenc::cli {

/// The positions given on the command line. Ranges are kept as ranges, however long.
struct PositionList {
  std::int64_t count = 0;
  int axes = 1;
  std::int64_t first = 0;  // if `ids` is empty: first, first + step, …
  std::int64_t step = 1;
  std::vector<std::int64_t> ids = {};  // [axes, count]
  std::int64_t denominator = 1;        // shared by all of them
};

/// 8 (one), 0:8 (from:to), 0:4096:64 (with a step), 0,1,5 (a list), @ids.npy (int64, [n] or [axes, n]).
/// Throws: Failure that names the flag for anything else, for empty and reversed ranges, and outside 0 … 2^53 − 1.
PositionList positions_from(std::string_view text, std::string_view flag = "--positions");

/// The same, but also negative numbers and fractions: -3:4, 1/2,-3/4, 0:1:1/8, 999.5. They share one denominator.
PositionList signed_positions_from(std::string_view text, std::string_view flag = "--positions");

/// Every point of a grid in row-major order: "14,14" is 196 positions of 2 axes.
PositionList positions_of_grid(std::string_view text);

/// Throws: Failure if the positions do not have the `axes` of a form; `scheme` names it.
void check_axes(std::string_view scheme, int axes, const PositionList& list);

/// Computes one row, at the largest position, so that an error there occurs now and not halfway.
/// Throws: Error as tabulate.
void try_largest(const Addition& form, const PositionList& list);

/// Position `index` on one axis; for a fraction, the numerator.
std::int64_t position_at(const PositionList& list, int axis, std::int64_t index);
/// "5", "-3/4".
std::string position_text(const PositionList& list, int axis, std::int64_t index);

/// The positions from `begin` on, for `count` tokens. `scratch` holds ids that had to be generated.
Positions slice(const PositionList& list, std::int64_t begin, std::int64_t count, std::vector<std::int64_t>& scratch);

}  // namespace posenc::cli
