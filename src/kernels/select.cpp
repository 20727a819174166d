// Selects the backend and the number of threads.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <atomic>
#include <charconv>
#include <cstdlib>
#include <string>

#include "kernels/job.h"
#include "posenc/backend.h"
#include "posenc/error.h"
#if POSENC_CPU_BACKEND
#include "kernels/cpu/parallel.h"
#endif
#if POSENC_CUDA
#include "kernels/cuda/driver.h"
#endif

namespace posenc {
namespace kernels {
namespace {

// For tensors on the host, best first. Cuda comes last: it is a detour for them, and only some machines have it.
constexpr std::array kBackends = {
#if POSENC_CPU_BACKEND
    &kCpuBackend,
#elif POSENC_WASM_BACKEND
    &kWasmBackend,
#endif
    &kReferenceBackend,
};
std::atomic<const Backend*> forced_backend = nullptr;
std::atomic<int> chosen_threads = 0;

thread_local int call_threads = 0;
thread_local Pool call_pool = {};

constexpr std::string_view kCuda = "cuda";

const Backend& backend_named(std::string_view name, std::string_view origin) {
  for (const Backend* backend : kBackends) {
    if (backend->name == name) return *backend;
  }
  if (name == kCuda) {
    if (const Backend* cuda = cuda_backend()) return *cuda;
    raise(fmt::format("{}: cuda cannot run here: {}", origin, why_absent(kCuda)));
  }
  raise(fmt::format("{}: unknown backend '{}' (choose from: {})", origin, name, fmt::join(backends(), ", ")));
}

std::string_view environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

const Backend& selected_backend() {
  if (const Backend* forced = forced_backend) return *forced;
  const std::string_view wanted = environment("POSENC_BACKEND");
  return wanted.empty() ? *kBackends.front() : backend_named(wanted, "POSENC_BACKEND");
}

const Backend& backend_for(std::string_view verb, Device device) {
  if (device == Device::kHost) return selected_backend();
  return backend_named(kCuda, verb);
}

}  // namespace kernels

std::vector<std::string_view> backends() {
  std::vector<std::string_view> names;
  for (const kernels::Backend* backend : kernels::kBackends) names.push_back(backend->name);
  if (kernels::cuda_backend() != nullptr) names.push_back(kernels::kCuda);
  return names;
}

std::string why_absent(std::string_view name) {
  if (name == kernels::kCuda) {
#if POSENC_CUDA
    return kernels::cuda::why_absent();
#else
    return "this build has no kernels for it: they need clang-22 when posenc is built (POSENC_CUDA)";
#endif
  }
#if !POSENC_CPU_BACKEND
  if (name == "cpu") return "this build has no kernels for it (POSENC_CPU_BACKEND)";
#endif
  kernels::backend_named(name, "why_absent");
  return {};
}

std::string_view backend() { return kernels::selected_backend().name; }

void force_backend(std::string_view name) {
  kernels::forced_backend = name.empty() ? nullptr : &kernels::backend_named(name, "force_backend");
}

namespace kernels {

CallThreads::CallThreads(std::string_view verb, const Run& run) : before_(call_threads), pool_before_(call_pool) {
  if (run.threads < 0 || run.threads > kMostThreads) {
    raise(fmt::format("{}: threads must be between 0 and {} but is {}", verb, kMostThreads, run.threads));
  }
  if (run.threads > 0) call_threads = run.threads;
  if (run.pool.run != nullptr) call_pool = run.pool;
}
CallThreads::~CallThreads() {
  call_threads = before_;
  call_pool = pool_before_;
}
const Pool& pool_of_call() noexcept { return call_pool; }

}  // namespace kernels

int threads() {
  if (kernels::call_threads > 0) return kernels::call_threads;
  if (const int chosen = kernels::chosen_threads) return chosen;
  const std::string_view wanted = kernels::environment("POSENC_THREADS");
  if (!wanted.empty()) {
    int count = 0;
    const auto [end, error] = std::from_chars(wanted.data(), wanted.data() + wanted.size(), count);
    if (error != std::errc() || end != wanted.data() + wanted.size() || count < 1 || count > kernels::kMostThreads) {
      raise(fmt::format("POSENC_THREADS must be a number from 1 to {} but is '{}'", kernels::kMostThreads, wanted));
    }
    return count;
  }
#if POSENC_CPU_BACKEND
  return kernels::cpu::all_cores();
#else
  return 1;
#endif
}

void set_threads(int count) {
  if (count < 0 || count > kernels::kMostThreads) {
    raise(fmt::format("set_threads: count must be between 0 and {} but is {}", kernels::kMostThreads, count));
  }
  kernels::chosen_threads = count;
}

#if !POSENC_CPU_BACKEND
std::vector<std::string> simd_targets() { return {}; }
void force_simd_target(std::string_view name) {
  if (!name.empty()) raise(fmt::format("force_simd_target: '{}' is not in this build", name));
}
#endif

}  // namespace posenc
