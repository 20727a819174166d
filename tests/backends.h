#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

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

}  // namespace posenc::tests
