#include "kernels/cuda/module.h"

#include "kernels/cuda/call.h"

#include <fmt/format.h>

#include <map>
#include <mutex>
#include <utility>

#include "posenc/error.h"

namespace posenc::kernels::cuda {
namespace {

struct Loaded {
  std::mutex lock;
  std::map<std::pair<Context, std::string_view>, Function> functions;
};
// Never destroyed, because the driver may be gone before static objects are.
Loaded& loaded() {
  static Loaded& all = *new Loaded;
  return all;
}

// 0 if the module was loaded; the assembler's messages are in `log`.
Result load(const PtxModule& module, bool verbose, Module& out, std::string& log) {
  std::string info(std::size_t{1} << 14, '\0'), error(std::size_t{1} << 14, '\0');
  const auto number = [](std::size_t value) { return reinterpret_cast<void*>(value); };
  int options[] = {kJitInfoLog, kJitInfoLogBytes, kJitErrorLog, kJitErrorLogBytes, kJitVerbose};
  void* values[] = {info.data(), number(info.size()), error.data(), number(error.size()),
                    number(verbose ? std::size_t{1} : std::size_t{0})};
  const Result result = driver().cuModuleLoadDataEx(&out, text_of(module), std::size(options), options, values);
  log = result == 0 ? info.c_str() : error.c_str();
  return result;
}

const PtxModule& module_named(std::string_view name) {
  for (const PtxModule& module : ptx_modules()) {
    if (module.name == name) return module;
  }
  raise(fmt::format("cuda: this build has no kernel {}", name));
}

}  // namespace

Context ensure_context() {
  const Driver& d = driver();
  Context current = nullptr;
  check(d.cuCtxGetCurrent(&current), "asking for the context");
  if (current != nullptr) return current;
  check(d.cuDevicePrimaryCtxRetain(&current, 0), "making a context");
  check(d.cuCtxSetCurrent(current), "setting the context");
  return current;
}

ListKernels::ListKernels() { current() = this; }
ListKernels::~ListKernels() { current() = nullptr; }
ListKernels*& ListKernels::current() {
  static thread_local ListKernels* list = nullptr;
  return list;
}
void ListKernels::note(std::string_view module) {
  if (current() != nullptr) current()->names_.emplace_back(module);
}

namespace {
Function found(std::string_view name) {
  const Context context = ensure_context();
  Loaded& all = loaded();
  const std::lock_guard<std::mutex> hold(all.lock);
  if (const auto at = all.functions.find({context, name}); at != all.functions.end()) return at->second;
  const PtxModule& wanted = module_named(name);
  Module module = nullptr;
  std::string log;
  if (const Result result = load(wanted, false, module, log)) {
    // If the assembler reports nothing, the reason is different, such as earlier work that failed.
    if (log.empty()) check(result, fmt::format("loading the kernel {}", name));
    raise(fmt::format("cuda: the driver rejected the kernel {}: {}", name, log));
  }
  Function function = nullptr;
  check(driver().cuModuleGetFunction(&function, module, std::string(wanted.kernel).c_str()), name);
  all.functions.emplace(std::pair(context, wanted.name), function);
  return function;
}
}  // namespace

Function kernel(std::string_view name) {
  ListKernels::note(name);
  return found(name);
}

Function kernel(std::string_view name, KernelSlot& slot) {
  ListKernels::note(name);
  const Context context = ensure_context();
  const KernelSlot::Found* first = slot.first.load(std::memory_order_acquire);
  if (first != nullptr && first->context == context) return first->function;
  const Function function = found(name);
  if (first == nullptr) {
    auto* const mine = new KernelSlot::Found{context, function};  // kept for the life of the process
    if (!slot.first.compare_exchange_strong(first, mine)) delete mine;
  }
  return function;
}

std::string assembler_log(const PtxModule& wanted) {
  ensure_context();
  Module module = nullptr;
  std::string log;
  const Result result = load(wanted, true, module, log);
  return result == 0 ? log : "refused: " + log;
}

bool can_overlap() {
  static std::atomic<std::uint64_t> asked = 0, can = 0;  // one bit per GPU
  DeviceNumber device = 0;
  check(driver().cuCtxGetDevice(&device), "asking for the GPU");
  const std::uint64_t bit = std::uint64_t{1} << (device & 63);
  if ((asked & bit) != 0) return (can & bit) != 0;
  int major = 0, version = 0;
  constexpr int kSinceVersion = 12030, kSinceCapability = 9;
  check(driver().cuDeviceGetAttribute(&major, kCapabilityMajor, device), "asking for the capability");
  check(driver().cuDriverGetVersion(&version), "asking for the version");
  if (major >= kSinceCapability && version >= kSinceVersion) can |= bit;
  asked |= bit;
  return (can & bit) != 0;
}

void launch(Function function, const LaunchShape& shape, void* stream, void** parameters) {
  if (shape.blocks > 0x7FFFFFFF) raise("cuda: the tensors are too large for one launch");
  if (is_measuring()) return;
  if (shape.overlaps) {
    LaunchAttribute overlap{kLaunchOverlap, 0, {1}};
    const LaunchConfig config{{static_cast<unsigned>(shape.blocks), 1, 1},
                              {shape.threads, 1, 1},
                              shape.shared_bytes,
                              static_cast<Stream>(stream),
                              &overlap,
                              1};
    check(driver().cuLaunchKernelEx(&config, function, parameters, nullptr), "launching a kernel");
    return;
  }
  check(driver().cuLaunchKernel(function, static_cast<unsigned>(shape.blocks), 1, 1, shape.threads, 1, 1,
                                shape.shared_bytes, static_cast<Stream>(stream), parameters, nullptr),
        "launching a kernel");
}

}  // namespace posenc::kernels::cuda
