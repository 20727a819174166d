#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace posenc {

/// The names of the backends in this build, best first: "cpu", "reference".
std::vector<std::string_view> backends();
/// The one in use: forced by force_backend, else by the environment's POSENC_BACKEND, else the best.
std::string_view backend();
/// Uses this backend from now on; "" takes that back. Throws: Error for a name that is not listed.
void force_backend(std::string_view name);

/// The instruction sets that the cpu backend was compiled for and this machine can run, best first.
std::vector<std::string> simd_targets();
/// Uses this one from now on; "" takes that back. Throws: Error for a name that is not listed.
void force_simd_target(std::string_view name);

/// How many threads the cpu backend uses: set_threads, else the environment's POSENC_THREADS, else all cores.
/// Results never depend on it.
int threads();
/// 0 takes it back. Throws: Error for a negative number or more than 1024.
void set_threads(int count);

}  // namespace posenc
