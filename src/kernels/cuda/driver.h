#pragma once

// NVIDIA's driver without NVIDIA's headers or import library: libcuda.so.1 is opened on first use, so that one
// program runs with and without a GPU. Names and numbers are those of the driver's C interface, which is stable; only
// what is used is declared.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace posenc::kernels::cuda {

using Result = int;  // 0: success
using DeviceNumber = int;
using Address = std::uint64_t;  // of device memory
using Context = struct ContextTag*;
using Module = struct ModuleTag*;
using Function = struct FunctionTag*;
using Stream = struct StreamTag*;
using Event = struct EventTag*;
using Graph = struct GraphTag*;
using GraphExec = struct GraphExecTag*;
using MemoryPool = struct MemoryPoolTag*;
struct alignas(64) TensorMap {
  std::uint64_t opaque[16];
};
/// CUlaunchAttribute and CUlaunchConfig.
struct LaunchAttribute {
  int id;
  std::uint32_t unused;
  std::uint64_t value[8];
};
struct LaunchConfig {
  unsigned blocks[3], threads[3], shared_bytes;
  Stream stream;
  LaunchAttribute* attributes;
  unsigned attribute_count;
};

/// CUresult, CUdevice_attribute, CUfunction_attribute, CUjit_option, flags.
enum DriverNumber : int {
  kOutOfMemory = 2,
  kMultiprocessors = 16,
  kCapabilityMajor = 75,
  kCapabilityMinor = 76,
  kFunctionDynamicShared = 8,
  kJitInfoLog = 3,
  kJitInfoLogBytes = 4,
  kJitErrorLog = 5,
  kJitErrorLogBytes = 6,
  kJitVerbose = 12,
  kHostPortable = 1,
  kHostMapped = 2,
  kMapBf16 = 9,
  kMapF16 = 6,
  kMapSwizzle128 = 3,
  kMapPromote256 = 3,
  kPoolReleaseThreshold = 4,
  kLaunchOverlap = 6,  // programmatic stream serialization
};

/// Every function that is used, with its parameters. All return a Result.
#define POSENC_DRIVER_FUNCTIONS(X)                                                                              \
  X(cuInit, (unsigned))                                                                                         \
  X(cuDriverGetVersion, (int*))                                                                                 \
  X(cuGetErrorString, (Result, const char**))                                                                   \
  X(cuDeviceGetCount, (int*))                                                                                   \
  X(cuDeviceGet, (DeviceNumber*, int))                                                                          \
  X(cuDeviceGetName, (char*, int, DeviceNumber))                                                                \
  X(cuDeviceGetAttribute, (int*, int, DeviceNumber))                                                            \
  X(cuDevicePrimaryCtxRetain, (Context*, DeviceNumber))                                                         \
  X(cuCtxGetCurrent, (Context*))                                                                                \
  X(cuCtxSetCurrent, (Context))                                                                                 \
  X(cuCtxGetDevice, (DeviceNumber*))                                                                            \
  X(cuCtxSynchronize, ())                                                                                       \
  X(cuStreamSynchronize, (Stream))                                                                              \
  X(cuStreamCreate, (Stream*, unsigned))                                                                        \
  X(cuStreamDestroy_v2, (Stream))                                                                               \
  X(cuModuleLoadDataEx, (Module*, const void*, unsigned, int*, void**))                                         \
  X(cuModuleGetFunction, (Function*, Module, const char*))                                                      \
  X(cuFuncSetAttribute, (Function, int, int))                                                                   \
  X(cuFuncGetAttribute, (int*, int, Function))                                                                  \
  X(cuLaunchKernel,                                                                                             \
    (Function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, Stream, void**, void**))   \
  X(cuLaunchKernelEx, (const LaunchConfig*, Function, void**, void**))                                          \
  X(cuTensorMapEncodeTiled, (TensorMap*, int, std::uint32_t, void*, const std::uint64_t*, const std::uint64_t*, \
                             const std::uint32_t*, const std::uint32_t*, int, int, int, int))                   \
  X(cuMemGetInfo_v2, (std::size_t*, std::size_t*))                                                              \
  X(cuMemAlloc_v2, (Address*, std::size_t))                                                                     \
  X(cuMemFree_v2, (Address))                                                                                    \
  X(cuMemAllocAsync, (Address*, std::size_t, Stream))                                                           \
  X(cuMemFreeAsync, (Address, Stream))                                                                          \
  X(cuDeviceGetDefaultMemPool, (MemoryPool*, DeviceNumber))                                                     \
  X(cuMemPoolGetAttribute, (MemoryPool, int, void*))                                                            \
  X(cuMemPoolSetAttribute, (MemoryPool, int, void*))                                                            \
  X(cuMemHostAlloc, (void**, std::size_t, unsigned))                                                            \
  X(cuMemcpyHtoD_v2, (Address, const void*, std::size_t))                                                       \
  X(cuMemcpyDtoH_v2, (void*, Address, std::size_t))                                                             \
  X(cuMemcpyHtoDAsync_v2, (Address, const void*, std::size_t, Stream))                                          \
  X(cuMemcpyDtoDAsync_v2, (Address, Address, std::size_t, Stream))                                              \
  X(cuMemsetD8Async, (Address, unsigned char, std::size_t, Stream))                                             \
  X(cuEventCreate, (Event*, unsigned))                                                                          \
  X(cuEventRecord, (Event, Stream))                                                                             \
  X(cuEventSynchronize, (Event))                                                                                \
  X(cuEventElapsedTime, (float*, Event, Event))                                                                 \
  X(cuStreamBeginCapture_v2, (Stream, int))                                                                     \
  X(cuStreamEndCapture, (Stream, Graph*))                                                                       \
  X(cuGraphInstantiateWithFlags, (GraphExec*, Graph, unsigned long long))                                       \
  X(cuGraphLaunch, (GraphExec, Stream))

struct Driver {
// NOLINTNEXTLINE(bugprone-macro-parentheses): a name and a list of parameters are not expressions
#define POSENC_DRIVER_POINTER(name, parameters) Result(*name) parameters = nullptr;
  POSENC_DRIVER_FUNCTIONS(POSENC_DRIVER_POINTER)
#undef POSENC_DRIVER_POINTER
};

/// The driver, or null if this machine has no usable one.
const Driver* find_driver();
/// Why it is null, in one line; "" if it is not.
std::string why_absent();
/// Throws: Error if it is null.
const Driver& driver();

/// Throws: Error with what failed and the driver's reason.
void check(Result result, std::string_view what);

}  // namespace posenc::kernels::cuda
