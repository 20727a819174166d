// Implements posenc/cuda.h: memory, streams and clocks.

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <thread>
#include <utility>

#include "kernels/cuda/module.h"
#include "posenc/backend.h"
#include "posenc/cuda.h"

namespace posenc::cuda {
namespace {

using namespace kernels::cuda;
using DriverStream = kernels::cuda::Stream;

const Driver& ready() {
  ensure_context();
  return driver();
}
DriverStream stream_of(const Run& run) { return static_cast<DriverStream>(run.stream); }
Address address_of(const void* pointer) { return reinterpret_cast<Address>(pointer); }

struct LimitParams {  // same as in write_limit.cu and read_limit.cu
  void* to;
  const void* from;
  std::int64_t cycles;
};

struct Clock {
  Event before = nullptr, after = nullptr;
  Clock() {
    check(ready().cuEventCreate(&before, 0), "making an event");
    check(driver().cuEventCreate(&after, 0), "making an event");
  }
};
Clock& clock_of_thread() {
  thread_local Clock clock;
  return clock;
}

}  // namespace

Facts facts() {
  const Driver& d = ready();
  DeviceNumber device = 0;
  check(d.cuCtxGetDevice(&device), "asking for the GPU");
  char name[256] = {};
  check(d.cuDeviceGetName(name, sizeof(name), device), "asking for the GPU's name");
  int major = 0, minor = 0;
  Facts found{name, 0, 0, 0};
  check(d.cuDeviceGetAttribute(&found.multiprocessors, kMultiprocessors, device), "asking for multiprocessors");
  check(d.cuDeviceGetAttribute(&major, kCapabilityMajor, device), "asking for the capability");
  check(d.cuDeviceGetAttribute(&minor, kCapabilityMinor, device), "asking for the capability");
  check(d.cuDriverGetVersion(&found.driver_version), "asking for the version");
  found.capability = 10 * major + minor;
  return found;
}

std::size_t free_bytes() {
  std::size_t free = 0, total = 0;
  check(ready().cuMemGetInfo_v2(&free, &total), "asking for free memory");
  return free;
}

Memory::Memory(std::size_t bytes) : size_(bytes) {
  if (bytes == 0) return;
  check(ready().cuMemAlloc_v2(&address_, bytes), fmt::format("allocating {} bytes", bytes));
}
Memory::Memory(Memory&& other) noexcept
    : address_(std::exchange(other.address_, 0)), size_(std::exchange(other.size_, 0)) {}
Memory::~Memory() {
  if (address_ != 0) find_driver()->cuMemFree_v2(address_);
}
void Memory::write(const void* from, std::size_t bytes, std::size_t offset) const {
  check(ready().cuMemcpyHtoD_v2(address_ + offset, from, bytes), "copying to the GPU");
}
void Memory::read(void* to, std::size_t bytes, std::size_t offset) const {
  check(ready().cuMemcpyDtoH_v2(to, address_ + offset, bytes), "copying from the GPU");
}

Stream::Stream() {
  DriverStream made = nullptr;
  check(ready().cuStreamCreate(&made, 1), "making a stream");  // 1: it does not wait for the default stream
  stream_ = made;
}
Stream::~Stream() { find_driver()->cuStreamDestroy_v2(static_cast<DriverStream>(stream_)); }

void copy(void* to, const void* from, std::size_t bytes, const Run& run) {
  check(ready().cuMemcpyDtoDAsync_v2(address_of(to), address_of(from), bytes, stream_of(run)), "copying on the GPU");
}
void fill(void* to, std::uint8_t byte, std::size_t bytes, const Run& run) {
  check(ready().cuMemsetD8Async(address_of(to), byte, bytes, stream_of(run)), "filling memory");
}
void write_all(void* to, std::size_t bytes, const Run& run) {
  constexpr std::size_t kOfBlock = std::size_t{16} * 1024;
  launch("write_limit", {static_cast<std::int64_t>(bytes / kOfBlock), 256, 0}, run.stream,
         LimitParams{to, nullptr, 0});
}

void read_all(const void* from, std::size_t bytes, const Run& run) {
  constexpr std::size_t kOfBlock = std::size_t{16} * 1024;
  launch("read_limit", {static_cast<std::int64_t>(bytes / kOfBlock), 256, 0}, run.stream,
         LimitParams{const_cast<void*>(from), from, 0});
}

double time_once(FunctionRef<void()> work, const Run& run, bool alone) {
  constexpr std::int64_t kCycles = 600'000;  // 0.3 ms: longer than a host takes to launch attention and its gradients
  const Clock& clock = clock_of_thread();
  if (alone) launch("spin", {1, 1, 0}, run.stream, kCycles);
  check(driver().cuEventRecord(clock.before, stream_of(run)), "recording an event");
  work();
  check(driver().cuEventRecord(clock.after, stream_of(run)), "recording an event");
  check(driver().cuEventSynchronize(clock.after), "waiting for an event");
  float milliseconds = 0;
  check(driver().cuEventElapsedTime(&milliseconds, clock.before, clock.after), "reading the clock");
  return static_cast<double>(milliseconds);
}

double time_in_graph(FunctionRef<void(const Run&)> work, int launches) {
  const Stream stream;
  const Driver& d = driver();
  Graph graph = nullptr;
  GraphExec ready_graph = nullptr;
  check(d.cuStreamBeginCapture_v2(stream_of(stream.run()), 1), "beginning a graph");
  for (int n = 0; n < launches; ++n) work(stream.run());
  check(d.cuStreamEndCapture(stream_of(stream.run()), &graph), "ending a graph");
  check(d.cuGraphInstantiateWithFlags(&ready_graph, graph, 0), "making a graph ready");
  const auto once = [&] { check(d.cuGraphLaunch(ready_graph, stream_of(stream.run())), "launching a graph"); };
  once();
  return time_once(once, stream.run()) / launches;
}

std::vector<KernelReport> assemble_all() {
  const std::span<const PtxModule> modules = ptx_modules();
  std::vector<KernelReport> all(modules.size());
  // Each takes a second, so several run at a time.
  std::atomic<std::size_t> next = 0;
  std::vector<std::jthread> threads;
  for (unsigned n = 0; n < std::clamp(std::thread::hardware_concurrency(), 1u, 16u); ++n) {
    threads.emplace_back([&] {
      for (std::size_t at = next++; at < modules.size(); at = next++) {
        all[at] = {std::string(modules[at].name), assembler_log(modules[at])};
      }
    });
  }
  threads.clear();  // waits for them
  return all;
}

}  // namespace posenc::cuda
