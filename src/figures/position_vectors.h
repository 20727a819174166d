#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "figures/axes.h"
#include "figures/kinds.h"

namespace posenc::figures {

/// The most numbers that a figure computes.
constexpr std::int64_t kMostCells = std::int64_t{1} << 26;

/// The vector of each position. For a rotation, a vector of ones rotated to that position.
struct Vectors {
  std::int64_t width = 0;
  std::vector<double> values = {};
  bool is_random = false;  // a trained table was not given
  const double* row(std::int64_t index) const { return values.data() + index * width; }
};

/// Of the positions in `range`, or of `ids` within it if there are some.
/// Throws: Error for a scheme without position vectors, and for more numbers than a figure shows.
Vectors vectors_of(const PlottedScheme& scheme, const Request& request, const Range& range,
                   const std::vector<std::int64_t>& ids = {});

double dot(const double* one, const double* other, std::int64_t width);

/// Appended to the note of a figure: whether the table is random.
std::string random_note(const Vectors& vectors);

}  // namespace posenc::figures
