#pragma once

#include <string>

namespace posenc::lab {

/// cblas_sgemm and cblas_dgemm, as declared in cblas.h.
template <class T> using Gemm = void (*)(int order, int trans_a, int trans_b, int m, int n, int k, T alpha,
                                         const T* a, int lda, const T* b, int ldb, T beta, T* c, int ldc);
constexpr int kRowMajor = 101, kAsItIs = 111, kTransposed = 112;

struct Blas {
  Gemm<float> sgemm = nullptr;
  Gemm<double> dgemm = nullptr;
  std::string name = "own loops";
};

/// OpenBLAS; without functions if it is not installed.
const Blas& blas();

}  // namespace posenc::lab
