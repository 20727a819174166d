// The library is loaded only when something is trained, because it starts threads as soon as it is loaded
// (docs/decisions/0008).

#include "lab/blas.h"

#include <dlfcn.h>

namespace posenc::lab {
namespace {

template <class F> F symbol(void* library, const char* name) { return reinterpret_cast<F>(dlsym(library, name)); }

}  // namespace

const Blas& blas() {
  static const Blas found = [] {
    Blas blas;
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

}  // namespace posenc::lab
