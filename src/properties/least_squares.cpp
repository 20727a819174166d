#include "properties/least_squares.h"

#include <cmath>
#include <utility>

namespace posenc::properties {
namespace {

double squares_of(const double* x, std::size_t begin, std::size_t end) {
  double sum = 0;
  for (std::size_t i = begin; i < end; ++i) sum += x[i] * x[i];
  return sum;
}

// x −= 2 v (v·x) / (v·v), over the rows from `begin` on.
void reflect(double* x, const std::vector<double>& v, double v_squares, std::size_t begin) {
  double product = 0;
  for (std::size_t i = begin; i < v.size(); ++i) product += v[i] * x[i];
  const double factor = 2 * product / v_squares;
  for (std::size_t i = begin; i < v.size(); ++i) x[i] -= factor * v[i];
}

}  // namespace

LeastSquares solve_least_squares(std::vector<double> a, std::vector<double> b, std::size_t rows) {
  const std::size_t columns = a.size() / rows, targets = b.size() / rows;
  std::vector<std::size_t> order(columns);
  for (std::size_t j = 0; j < columns; ++j) order[j] = j;
  const auto column = [&](std::size_t j) { return &a[order[j] * rows]; };

  LeastSquares result;
  std::vector<double> v(rows);
  double first = 0;
  for (std::size_t step = 0; step < columns && step < rows; ++step) {
    std::size_t best = step;
    double most = -1;
    for (std::size_t j = step; j < columns; ++j) {
      const double squares = squares_of(column(j), step, rows);
      if (squares > most) most = squares, best = j;
    }
    if (step == 0) first = most;
    const double noise = static_cast<double>(rows) * 0x1p-52;
    if (!(most > first * noise * noise) || most == 0) break;
    std::swap(order[step], order[best]);
    double* const pivot = column(step);
    const double length = std::sqrt(most), sign = pivot[step] < 0 ? -1 : 1;
    for (std::size_t i = step; i < rows; ++i) v[i] = pivot[i];
    v[step] += sign * length;
    const double v_squares = squares_of(v.data(), step, rows);
    for (std::size_t j = step; j < columns; ++j) reflect(column(j), v, v_squares, step);
    for (std::size_t j = 0; j < targets; ++j) reflect(&b[j * rows], v, v_squares, step);
    ++result.rank;
  }

  result.solution.assign(targets * columns, 0.0);
  double left = 0;
  for (std::size_t t = 0; t < targets; ++t) {
    const double* const target = &b[t * rows];
    left += squares_of(target, result.rank, rows);
    double* const x = &result.solution[t * columns];
    for (std::size_t i = result.rank; i-- > 0;) {
      double sum = target[i];
      for (std::size_t j = i + 1; j < result.rank; ++j) sum -= column(j)[i] * x[order[j]];
      x[order[i]] = sum / column(i)[i];
    }
  }
  result.residual = std::sqrt(left / static_cast<double>(rows * targets));
  return result;
}

}  // namespace posenc::properties
