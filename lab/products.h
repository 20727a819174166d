#pragma once

#include <cstdint>

namespace posenc::lab {

/// A matrix in memory, row by row: element (i, j) is data[i · stride + j], or with `transposed`, data[j · stride + i].
template <class T> struct Matrix {
  T* data = nullptr;
  std::int64_t stride = 0;
  bool transposed = false;
};

/// c = a·b (+ c where `adds`): c is [rows, columns], a [rows, inner], b [inner, columns].
/// By OpenBLAS on the calling thread, or where that is not installed, by loops of our own.
void multiply(Matrix<float> c, Matrix<const float> a, Matrix<const float> b, std::int64_t rows, std::int64_t columns,
              std::int64_t inner, bool adds = false);
void multiply(Matrix<double> c, Matrix<const double> a, Matrix<const double> b, std::int64_t rows,
              std::int64_t columns, std::int64_t inner, bool adds = false);

/// "OpenBLAS 0.3.21" or "own loops": results may differ between the two in the last bits.
const char* products_by();

}  // namespace posenc::lab
