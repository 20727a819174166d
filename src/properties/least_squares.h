#pragma once

#include <cstddef>
#include <vector>

namespace posenc::properties {

/// The X that minimises |A·X − B| for each column of B.
struct LeastSquares {
  std::size_t rank = 0;          // number of linearly independent columns of A
  double residual = 0;           // root mean square of B − A·X
  std::vector<double> solution;  // X, [columns of B, columns of A]; 0 for columns beyond the rank
};

/// A is [columns, rows] and B is [targets, rows]: each column is contiguous. Householder QR with column pivoting: the
/// column with the largest remainder comes next, until the largest is below rows·2^-52 of the first.
/// Error: residual, at most rows · rank · 2^-52 · the largest column of B over √rows.
LeastSquares solve_least_squares(std::vector<double> a, std::vector<double> b, std::size_t rows);

}  // namespace posenc::properties
