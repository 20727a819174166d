#pragma once

// What this program holds by `new`, in bytes, and the most it has held: for one source of a test program, since it defines
// the operators. Blocks are the C library's and are counted by what it gave: libraries may free what this program
// allocated, or the other way round, with operators of their own. Not with sanitizers, which have theirs.
// A source that counts allocations as well defines POSENC_ON_ALLOCATION first.

#include <malloc.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>

#ifndef POSENC_ON_ALLOCATION
#define POSENC_ON_ALLOCATION()
#endif

namespace posenc::tests {

inline std::atomic<std::int64_t> held = 0, most_held = 0;

inline void* take(std::size_t size, std::size_t alignment = alignof(std::max_align_t)) {
  POSENC_ON_ALLOCATION();
  void* const block = std::aligned_alloc(alignment, (size / alignment + 1) * alignment);
  if (block == nullptr) throw std::bad_alloc();
  const std::int64_t now = held += static_cast<std::int64_t>(malloc_usable_size(block));
  std::int64_t most = most_held;
  while (now > most && !most_held.compare_exchange_weak(most, now)) {}
  return block;
}
inline void give_back(void* memory) noexcept {
  if (memory == nullptr) return;
  held -= static_cast<std::int64_t>(malloc_usable_size(memory));
  std::free(memory);
}

}  // namespace posenc::tests

void* operator new(std::size_t size) { return posenc::tests::take(size); }
void* operator new[](std::size_t size) { return posenc::tests::take(size); }
void* operator new(std::size_t size, std::align_val_t alignment) {
  return posenc::tests::take(size, static_cast<std::size_t>(alignment));
}
void operator delete(void* memory, std::align_val_t) noexcept { posenc::tests::give_back(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { posenc::tests::give_back(memory); }
void operator delete(void* memory) noexcept { posenc::tests::give_back(memory); }
void operator delete[](void* memory) noexcept { posenc::tests::give_back(memory); }
void operator delete(void* memory, std::size_t) noexcept { posenc::tests::give_back(memory); }
void operator delete[](void* memory, std::size_t) noexcept { posenc::tests::give_back(memory); }
