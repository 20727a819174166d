#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace posenc::kernels {

/// Memory of a call, taken from the front and given back from the end. What does not fit comes from the heap.
class Arena {
 public:
  Arena() = default;
  explicit Arena(std::span<std::byte> memory);

  /// Null where it does not fit.
  void* take(std::size_t bytes) noexcept;
  /// False where it is not from here. What lies behind it must have been given back before.
  bool give(void* place, std::size_t bytes) noexcept;
  std::span<std::byte> rest() const noexcept { return {next_, static_cast<std::size_t>(end_ - next_)}; }

 private:
  std::byte *begin_ = nullptr, *next_ = nullptr, *end_ = nullptr;
};

/// While it lives, what this thread's calls need comes from `arena`; null: from the heap.
class UseArena {
 public:
  explicit UseArena(Arena* arena) noexcept;
  ~UseArena();
  UseArena(const UseArena&) = delete;
  UseArena& operator=(const UseArena&) = delete;

 private:
  Arena* before_;
};
/// The one in use; null: none.
Arena* arena_in_use() noexcept;

/// Counts, while it lives, the bytes that this thread takes: what an arena must have, at most.
class CountMemory {
 public:
  CountMemory() noexcept;
  ~CountMemory();
  CountMemory(const CountMemory&) = delete;
  CountMemory& operator=(const CountMemory&) = delete;

  std::size_t shared = 0;  ///< what the call takes for all its threads
  std::size_t piece = 0;   ///< and each thread at most

 private:
  CountMemory* before_;
};
/// The one that counts; null: none.
CountMemory* counter_in_use() noexcept;

/// Memory that begins with a cache line, so that a vector of 16, 32 or 64 bytes never lies in two. It comes from the
/// arena in use, or else what is given back is kept by the thread for the next that asks for as much, a few blocks of
/// it: memory that is new to a program costs more than what a call of ours writes to it.
void* take_lines(std::size_t bytes);
void give_lines(void* place, std::size_t bytes) noexcept;

/// For a call that only counts.
inline void take_and_give(std::size_t bytes) { give_lines(take_lines(bytes), bytes); }

template <class T> struct LineAllocator {
  using value_type = T;
  LineAllocator() = default;
  template <class U> LineAllocator(const LineAllocator<U>&) noexcept {}  // NOLINT(google-explicit-constructor)
  T* allocate(std::size_t n) { return static_cast<T*>(take_lines(n * sizeof(T))); }
  void deallocate(T* p, std::size_t n) noexcept { give_lines(p, n * sizeof(T)); }
  friend bool operator==(LineAllocator, LineAllocator) { return true; }
};
/// For what lives as long as a call, or less.
template <class T> using AlignedVector = std::vector<T, LineAllocator<T>>;

}  // namespace posenc::kernels
