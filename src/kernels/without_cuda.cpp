// Implements posenc/cuda.h and backend.h in a build without kernels for NVIDIA's GPUs.

#if !POSENC_CUDA

#include "kernels/job.h"
#include "posenc/backend.h"
#include "posenc/cuda.h"
#include "posenc/error.h"

namespace posenc {

const kernels::Backend* kernels::cuda_backend() { return nullptr; }
void synchronize(const Run&) {}

namespace cuda {
namespace {
[[noreturn]] void refuse() { raise("cuda cannot run here: " + why_absent("cuda")); }
}  // namespace

Facts facts() { refuse(); }
std::size_t free_bytes() { refuse(); }
Memory::Memory(std::size_t) { refuse(); }
Memory::Memory(Memory&&) noexcept = default;
Memory::~Memory() = default;
void Memory::write(const void*, std::size_t, std::size_t) const {}
void Memory::read(void*, std::size_t, std::size_t) const {}
Stream::Stream() { refuse(); }
Stream::~Stream() = default;
void copy(void*, const void*, std::size_t, const Run&) { refuse(); }
void fill(void*, std::uint8_t, std::size_t, const Run&) { refuse(); }
void write_all(void*, std::size_t, const Run&) { refuse(); }
void read_all(const void*, std::size_t, const Run&) { refuse(); }
double time_once(FunctionRef<void()>, const Run&, bool) { refuse(); }
double time_in_graph(FunctionRef<void(const Run&)>, int) { refuse(); }
std::vector<KernelReport> assemble_all() { refuse(); }

}  // namespace cuda
}  // namespace posenc

#endif
