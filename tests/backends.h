#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#if POSENC_CPU_BACKEND
#include "kernels/cpu/machine.h"
#endif
#include "posenc/backend.h"

namespace posenc::tests {

/// A backend, and for "cpu" one of the SIMD targets that this machine can run.
struct Engine {
  std::string backend, target;
};

inline std::vector<Engine> engines(bool with_cuda = true) {
  std::vector<Engine> all;
  for (const std::string_view name : backends()) {
    if (name != "cpu" && (with_cuda || name != "cuda")) all.push_back({std::string(name), ""});
  }
  for (const std::string& target : simd_targets()) all.push_back({"cpu", target});
  return all;
}

/// Whether the backend in use multiplies 16-bit numbers by a matrix unit of the processor.
inline bool has_matrix_unit() {
#if POSENC_CPU_BACKEND
  return backend() == "cpu" && kernels::cpu::machine_multiplies_bf16_matrices();
#else
  return false;
#endif
}

/// Runs the body on every backend and SIMD target: TEST bodies call for_each_engine([&] { … }).
template <class Body> void for_each_engine(const Body& body, bool with_cuda = true) {
  for (const Engine& engine : engines(with_cuda)) {
    SCOPED_TRACE(engine.backend + " " + engine.target);
    force_backend(engine.backend);
    force_simd_target(engine.target);
    body();
  }
  force_backend("");
  force_simd_target("");
}

/// Without cuda, whose attention has another error: tests/attention/cuda_*.
template <class Body> void for_each_host_engine(const Body& body) { for_each_engine(body, false); }

/// The same; for tensors of a 16-bit type T, the best SIMD target once more as on a machine without a matrix unit.
template <class T, class Body> void for_each_host_engine_of(const Body& body) {
  for_each_host_engine(body);
#if POSENC_CPU_BACKEND
  if (sizeof(T) != 2 || !kernels::cpu::machine_multiplies_bf16_matrices()) return;
  SCOPED_TRACE("cpu, without its matrix unit");
  kernels::cpu::allow_matrix_unit(false);
  body();
  kernels::cpu::allow_matrix_unit(true);
#endif
}

}  // namespace posenc::tests
