#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "posenc/tensor.h"

namespace posenc {

/// The names of the backends that can run here, best first for tensors on the host: "cpu", "reference", "cuda".
std::vector<std::string_view> backends();
/// The one in use for tensors on the host: forced by force_backend, else by the environment's POSENC_BACKEND, else
/// the best. "cuda" copies them to the GPU and back, and waits. Tensors on a GPU go to cuda always.
std::string_view backend();
/// Uses this backend from now on; "" takes that back. Throws: Error for a name that is not listed.
void force_backend(std::string_view name);
/// Why a backend cannot run here, in one line; "" where it can. Throws: Error for a name that is of no backend.
std::string why_absent(std::string_view name);

/// Waits for the work on a GPU's stream. Throws: Error for what only the work itself could find out since the last
/// wait: an id out of range, a rounding that 128 bits cannot decide, a failure of the GPU's.
void synchronize(const Run& run = {});

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
