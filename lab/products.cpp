#include "lab/products.h"

#include <dlfcn.h>

#include <algorithm>
#include <string>
#include <vector>

namespace posenc::lab {
namespace {

// As declared in cblas.h. The library is loaded only when something is trained, because it starts threads as soon as
// it is loaded (docs/decisions/0008).
template <class T> using Gemm = void (*)(int order, int trans_a, int trans_b, int m, int n, int k, T alpha,
                                         const T* a, int lda, const T* b, int ldb, T beta, T* c, int ldc);
constexpr int kRowMajor = 101, kAsItIs = 111, kTransposed = 112;

struct OpenBlas {
  Gemm<float> sgemm = nullptr;
  Gemm<double> dgemm = nullptr;
  std::string name = "own loops";
};

template <class F> F symbol(void* library, const char* name) { return reinterpret_cast<F>(dlsym(library, name)); }

const OpenBlas& open_blas() {
  static const OpenBlas found = [] {
    OpenBlas blas;
    void* const library = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return blas;
    const auto set_threads = symbol<void (*)(int)>(library, "openblas_set_num_threads");
    const auto sgemm = symbol<Gemm<float>>(library, "cblas_sgemm");
    const auto dgemm = symbol<Gemm<double>>(library, "cblas_dgemm");
    if (set_threads == nullptr || sgemm == nullptr || dgemm == nullptr) return blas;
    // Each shard of a batch has its own thread. Products use one thread each, so that their sums do not depend on the
    // number of cores.
    set_threads(1);
    blas.sgemm = sgemm;
    blas.dgemm = dgemm;
    blas.name = "OpenBLAS";
    if (const auto config = symbol<char* (*)()>(library, "openblas_get_config")) {
      // "OpenBLAS 0.3.21 DYNAMIC_ARCH …"
      const std::string text = config();
      blas.name = text.substr(0, text.find(' ', text.find(' ') + 1));
    }
    return blas;
  }();
  return found;
}

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
  multiply_with(open_blas().sgemm, c, a, b, rows, columns, inner, adds);
}
void multiply(Matrix<double> c, Matrix<const double> a, Matrix<const double> b, std::int64_t rows,
              std::int64_t columns, std::int64_t inner, bool adds) {
  multiply_with(open_blas().dgemm, c, a, b, rows, columns, inner, adds);
}

const char* products_by() { return open_blas().name.c_str(); }

}  // namespace posenc::lab
