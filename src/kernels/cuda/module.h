#pragma once

// Kernels as the library holds them, packed PTX text, and as the driver made them ready. One module holds one kernel and is
// loaded when it is first asked for: the driver compiles it then, and keeps what it made on disk.

#include <atomic>
#include <span>
#include <string>
#include <string_view>

#include "kernels/cuda/driver.h"

namespace posenc::kernels::cuda {

/// Made by cmake/cuda.cmake.
struct PtxModule {
  std::string_view name;  // "rotate_vectors_bf16_halves_waves"
  std::string_view kernel;
  std::string_view pack;  // all modules of that kernel, packed
  int number;             // which of them
};
std::span<const PtxModule> ptx_modules();
/// Its text, which ends with a zero. A pack is unpacked when the first of its modules is asked for.
const char* text_of(const PtxModule& module);

/// The context to work in: the thread's current one, else the first GPU's primary one, which then becomes current.
Context ensure_context();

/// A kernel that was found before, so that the next launch need not look for it.
struct KernelSlot {
  struct Found {
    Context context;
    Function function;
  };
  std::atomic<const Found*> first = nullptr;  // of the first context that asked; others look for it
};

/// A kernel, ready to launch in the current context. Throws: Error where there is none of that name, or the driver
/// does not take it.
Function kernel(std::string_view module);
Function kernel(std::string_view module, KernelSlot& slot);
/// What the driver's assembler says of a module: registers, spills, warnings.
std::string assembler_log(const PtxModule& module);

struct LaunchShape {
  std::int64_t blocks = 1;
  unsigned threads = 128, shared_bytes = 0;
  /// The kernel may begin while the one before it on the stream ends: it waits for that one itself (wait_for_grids).
  bool overlaps = false;
};
/// Whether the current GPU and its driver can do that: compute capability 9.0, and CUDA 12.3, since when it can be captured.
bool can_overlap();
void launch(Function function, const LaunchShape& shape, void* stream, void** parameters);
/// With one parameter, passed by value.
template <class Params>
void launch(std::string_view module, const LaunchShape& shape, void* stream, const Params& params) {
  void* parameters[] = {const_cast<Params*>(&params)};
  launch(kernel(module), shape, stream, parameters);
}
template <class Params>
void launch(std::string_view module, KernelSlot& slot, const LaunchShape& shape, void* stream, const Params& params) {
  void* parameters[] = {const_cast<Params*>(&params)};
  launch(kernel(module, slot), shape, stream, parameters);
}

}  // namespace posenc::kernels::cuda
