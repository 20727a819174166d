#pragma once

#include <cstddef>
#include <vector>

namespace posenc::kernels::cpu {

/// Memory that begins with a cache line, so that a vector of 16, 32 or 64 bytes never lies in two. What is given back
/// is kept by the thread for the next that asks for as much, a few blocks of it: memory that is new to a program
/// costs more than what a call of ours writes to it.
void* take_lines(std::size_t bytes);
void give_lines(void* place, std::size_t bytes) noexcept;

template <class T> struct LineAllocator {
  using value_type = T;
  LineAllocator() = default;
  template <class U> LineAllocator(const LineAllocator<U>&) noexcept {}  // NOLINT(google-explicit-constructor)
  T* allocate(std::size_t n) { return static_cast<T*>(take_lines(n * sizeof(T))); }
  void deallocate(T* p, std::size_t n) noexcept { give_lines(p, n * sizeof(T)); }
  friend bool operator==(LineAllocator, LineAllocator) { return true; }
};
template <class T> using AlignedVector = std::vector<T, LineAllocator<T>>;

}  // namespace posenc::kernels::cpu
