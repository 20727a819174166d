#include "kernels/cuda/driver.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include "posenc/error.h"

namespace posenc::kernels::cuda {
namespace {

struct Found {
  Driver driver;
  std::string absence;  // empty: the driver is present
};

std::string reason_of(const Driver& driver, Result result) {
  const char* text = nullptr;
  if (driver.cuGetErrorString == nullptr || driver.cuGetErrorString(result, &text) != 0 || text == nullptr) {
    return fmt::format("the driver's error {}", result);
  }
  return text;
}

// The kernels are compiled to PTX 8.1, and use parameters larger than 4 KiB; both need CUDA 12.1.
constexpr int kLeastVersion = 12010;
constexpr int kLeastCapability = 8;

Found find() {
  Found found;
  Driver& d = found.driver;
  void* const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    found.absence = "there is no NVIDIA driver on this machine (libcuda.so.1)";
    return found;
  }
  const char* missing = nullptr;
// NOLINTBEGIN(bugprone-macro-parentheses): a list of parameters is not an expression
#define POSENC_DRIVER_LOOKUP(name, parameters)                            \
  d.name = reinterpret_cast<Result(*) parameters>(dlsym(library, #name)); \
  if (d.name == nullptr) missing = #name;
  // NOLINTEND(bugprone-macro-parentheses)
  POSENC_DRIVER_FUNCTIONS(POSENC_DRIVER_LOOKUP)
#undef POSENC_DRIVER_LOOKUP
  if (missing != nullptr) {
    found.absence = fmt::format("the NVIDIA driver is too old: it has no {}", missing);
    return found;
  }
  int count = 0, version = 0, major = 0;
  if (const Result result = d.cuInit(0)) {
    found.absence = fmt::format("the NVIDIA driver does not start: {}", reason_of(d, result));
  } else if (d.cuDriverGetVersion(&version) != 0 || version < kLeastVersion) {
    found.absence = fmt::format("the NVIDIA driver is too old: it knows CUDA {}.{}, and 12.1 is needed",
                                version / 1000, version % 1000 / 10);
  } else if (d.cuDeviceGetCount(&count) != 0 || count == 0) {
    found.absence = "the NVIDIA driver finds no GPU";
  } else if (d.cuDeviceGetAttribute(&major, kCapabilityMajor, 0) != 0 || major < kLeastCapability) {
    found.absence = fmt::format("the GPU is too old: its compute capability is {}.x, and 8.0 is needed", major);
  }
  return found;
}

const Found& found() {
  static const Found once = find();
  return once;
}

}  // namespace

const Driver* find_driver() { return found().absence.empty() ? &found().driver : nullptr; }

std::string why_absent() { return found().absence; }

const Driver& driver() {
  if (!found().absence.empty()) raise(fmt::format("cuda cannot run here: {}", found().absence));
  return found().driver;
}

void check(Result result, std::string_view what) {
  if (result != 0) raise(fmt::format("cuda: {}: {}", what, reason_of(found().driver, result)));
}

}  // namespace posenc::kernels::cuda
