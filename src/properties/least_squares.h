#pragma once

#include <cstddef>
#include <vector>

namespace posenc::properties {

/// The X that brings A·X nearest to B, column by column; all matrices by columns.
struct LeastSquares {
  std::size_t rank = 0;          // columns of A that say something of their own
  double residual = 0;           // root mean square of B − A·X
  std::vector<double> solution;  // X, [columns of B, columns of A]; columns past the rank have 0
};

/// A is [columns, rows], B is [targets, rows]: each column stands in one piece. Householder's method with pivots: the
/// column that has most left comes next, and what is left is noise once it is below rows·2^-52 of the first.
/// Error: residual, at most rows · rank · 2^-52 · the largest column of B over √rows.
LeastSquares solve_least_squares(std::vector<double> a, std::vector<double> b, std::size_t rows);

}  // namespace posenc::properties
