#pragma once

#include <cstdint>

namespace posenc::lab {

/// A row-major matrix: element (i, j) is data[i · stride + j], or data[j · stride + i] if `transposed`.
template <class T> struct Matrix {
  T* data = nullptr;
  std::int64_t stride = 0;
  bool transposed = false;
};

/// c = a·b, or c += a·b if `adds`: c is [rows, columns], a [rows, inner], b [inner, columns]. Computed by OpenBLAS on
/// the calling thread, or by plain loops if OpenBLAS is not installed.
void multiply(Matrix<float> c, Matrix<const float> a, Matrix<const float> b, std::int64_t rows, std::int64_t columns,
              std::int64_t inner, bool adds = false);
void multiply(Matrix<double> c, Matrix<const double> a, Matrix<const double> b, std::int64_t rows,
              std::int64_t columns, std::int64_t inner, bool adds = false);

/// "OpenBLAS 0.3.21" or "own loops". Results may differ between them in the last bits.
const char* products_by();

}  // namespace posenc::lab
