// Replaces operator new with one that counts and then calls the original (the standard library's, or that of a test):
// `./run bench decode` uses it to show that a decoding step allocates nothing.

#include "benchmarks/allocations.h"

#if defined(POSENC_SANITIZED)

namespace posenc::bench {
std::optional<std::int64_t> allocations() noexcept { return {}; }
}  // namespace posenc::bench

#else

#include <dlfcn.h>

#include <atomic>
#include <cstdlib>
#include <new>

namespace {

std::atomic<std::int64_t> allocation_count = 0;

template <class Function> Function* next_named(const char* name) noexcept {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

void* checked(void* memory) {
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

void* operator new(std::size_t size) {
  static auto* const next = next_named<void*(std::size_t)>("_Znwm");
  allocation_count.fetch_add(1, std::memory_order_relaxed);
  return next != nullptr ? next(size) : checked(std::malloc(size == 0 ? 1 : size));
}
void* operator new(std::size_t size, std::align_val_t alignment) {
  static auto* const next = next_named<void*(std::size_t, std::align_val_t)>("_ZnwmSt11align_val_t");
  allocation_count.fetch_add(1, std::memory_order_relaxed);
  if (next != nullptr) return next(size, alignment);
  const auto step = static_cast<std::size_t>(alignment);
  return checked(std::aligned_alloc(step, (size / step + 1) * step));
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }

namespace posenc::bench {

std::optional<std::int64_t> allocations() noexcept { return allocation_count.load(std::memory_order_relaxed); }

}  // namespace posenc::bench

#endif
