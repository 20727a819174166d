#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "posenc/tensor.h"

namespace posenc {

/// The names of the backends that can run here, best first for tensors on the host: "cpu", "reference", "cuda"; in the
/// modules of the web page "wasm", "reference".
std::vector<std::string_view> backends();
/// The backend in use for tensors on the host: the one set by force_backend, otherwise by the environment variable
/// POSENC_BACKEND, otherwise the best. "cuda" copies tensors to the GPU and back, and waits. Tensors on a GPU always use
/// cuda.
std::string_view backend();
/// Uses this backend from now on; "" restores the default. Throws: Error for a name that is not listed.
void force_backend(std::string_view name);
/// Why a backend cannot run here, in one line; "" if it can. Throws: Error for an unknown name.
std::string why_absent(std::string_view name);

/// Waits for the work on a GPU's stream. Throws: Error for problems detected on the GPU since the last wait: an id out of
/// range, a value too close to a rounding boundary to decide with 128 bits, a failure of the GPU.
void synchronize(const Run& run = {});

/// The instruction sets that the cpu backend was compiled for and this machine can run, best first.
std::vector<std::string> simd_targets();
/// Uses this instruction set from now on; "" restores the default. Throws: Error for a name that is not listed.
void force_simd_target(std::string_view name);

/// How many threads the cpu backend uses: as set by set_threads, otherwise by the environment variable POSENC_THREADS,
/// otherwise one per core. Results never depend on it.
int threads();
/// 0 restores the default. Throws: Error for a negative number or more than 1024.
void set_threads(int count);

}  // namespace posenc
