#include "lab/products.h"

#include <algorithm>
#include <vector>

#include "lab/blas.h"

namespace posenc::lab {
namespace {

template <class T> T element(const Matrix<const T>& m, std::int64_t i, std::int64_t j) {
  return m.transposed ? m.data[j * m.stride + i] : m.data[i * m.stride + j];
}

// One row of c at a time, so that the innermost loop runs along rows of b.
template <class T> void multiply_here(Matrix<T> c, Matrix<const T> a, Matrix<const T> b, std::int64_t rows,
                                      std::int64_t columns, std::int64_t inner, bool adds) {
  std::vector<T> straight;
  if (b.transposed) {
    straight.resize(inner * columns);
    for (std::int64_t i = 0; i < inner; ++i) {
      for (std::int64_t j = 0; j < columns; ++j) straight[i * columns + j] = element(b, i, j);
    }
    b = {straight.data(), columns, false};
  }
  for (std::int64_t i = 0; i < rows; ++i) {
    T* const row = c.data + i * c.stride;
    if (!adds) std::fill(row, row + columns, T{0});
    for (std::int64_t k = 0; k < inner; ++k) {
      const T factor = element(a, i, k);
      const T* const from = b.data + k * b.stride;
      for (std::int64_t j = 0; j < columns; ++j) row[j] += factor * from[j];
    }
  }
}

template <class T> void multiply_with(Gemm<T> gemm, Matrix<T> c, Matrix<const T> a, Matrix<const T> b,
                                      std::int64_t rows, std::int64_t columns, std::int64_t inner, bool adds) {
  if (gemm == nullptr) {
    multiply_here(c, a, b, rows, columns, inner, adds);
    return;
  }
  gemm(kRowMajor, a.transposed ? kTransposed : kAsItIs, b.transposed ? kTransposed : kAsItIs, static_cast<int>(rows),
       static_cast<int>(columns), static_cast<int>(inner), T{1}, a.data, static_cast<int>(a.stride), b.data,
       static_cast<int>(b.stride), adds ? T{1} : T{0}, c.data, static_cast<int>(c.stride));
}

}  // namespace

void multiply(Matrix<float> c, Matrix<const float> a, Matrix<const float> b, std::int64_t rows, std::int64_t columns,
              std::int64_t inner, bool adds) {
  multiply_with(blas().sgemm, c, a, b, rows, columns, inner, adds);
}
void multiply(Matrix<double> c, Matrix<const double> a, Matrix<const double> b, std::int64_t rows,
              std::int64_t columns, std::int64_t inner, bool adds) {
  multiply_with(blas().dgemm, c, a, b, rows, columns, inner, adds);
}

const char* products_by() { return blas().name.c_str(); }

}  // namespace posenc::lab
