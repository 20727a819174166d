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

inline std::vector<Engine> engines() {
  std::vector<Engine> all;
  for (const std::string_view name : backends()) {
    if (name != "cpu") all.push_back({std::string(name), ""});
  }
  for (const std::string& target : simd_targets()) all.push_back({"cpu", target});
  return all;
}

/// Runs the body on every backend and SIMD target: TEST bodies call for_each_engine([&] { … }).
template <class Body> void for_each_engine(const Body& body) {
  for (const Engine& engine : engines()) {
    SCOPED_TRACE(engine.backend + " " + engine.target);
    force_backend(engine.backend);
    force_simd_target(engine.target);
    body();
  }
  force_backend("");
  force_simd_target("");
}

}  // namespace posenc::tests
