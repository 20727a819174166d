#include <dlfcn.h>

#include <chrono>

#include "benchmarks/limits.h"

namespace posenc::limits {
namespace {

// As cblas.h declares it. The library is loaded only where a benchmark asks: it starts threads as soon as it is
// there, and nothing but this limit wants it.
using SgemmFunction = void (*)(int order, int trans_a, int trans_b, int m, int n, int k, float alpha, const float* a,
                               int lda, const float* b, int ldb, float beta, float* c, int ldc);
struct OpenBlas {
  SgemmFunction sgemm = nullptr;
  void (*set_threads)(int) = nullptr;
};
constexpr int kRowMajor = 101, kAsItIs = 111;

const OpenBlas& open_blas() {
  static const OpenBlas library = [] {
    OpenBlas found;
    void* const handle = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) return found;
    found.sgemm = reinterpret_cast<SgemmFunction>(dlsym(handle, "cblas_sgemm"));
    found.set_threads = reinterpret_cast<void (*)(int)>(dlsym(handle, "openblas_set_num_threads"));
    return found;
  }();
  return library;
}

}  // namespace

bool has_sgemm() { return open_blas().sgemm != nullptr && open_blas().set_threads != nullptr; }

Sgemm::Sgemm(std::int64_t n) : n_(n), matrices_(static_cast<std::size_t>(3 * n * n) * sizeof(float)) {
  auto* const values = matrices_.as<float>();
  for (std::int64_t i = 0; i < 2 * n * n; ++i) values[i] = static_cast<float>(i % 977) * 1e-3f;
}

double Sgemm::once(int threads) const {
  auto* const a = matrices_.as<float>();
  const float* const b = a + n_ * n_;
  float* const c = a + 2 * n_ * n_;
  const auto n = static_cast<int>(n_);
  open_blas().set_threads(threads);
  const auto begin = std::chrono::steady_clock::now();
  open_blas().sgemm(kRowMajor, kAsItIs, kAsItIs, n, n, n, 1.0f, a, n, b, n, 0.0f, c, n);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace posenc::limits
