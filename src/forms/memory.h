#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace posenc {

/// Memory of a call, taken from the front and returned from the end. What does not fit comes from the heap.
class Arena {
 public:
  Arena() = default;
  explicit Arena(std::span<std::byte> memory);

  /// Null if it does not fit.
  void* take(std::size_t bytes) noexcept;
  /// False if the block is not from this arena. All blocks behind it must have been returned before.
  bool give(void* place, std::size_t bytes) noexcept;
  std::span<std::byte> rest() const noexcept { return {next_, static_cast<std::size_t>(end_ - next_)}; }

 private:
  std::byte *begin_ = nullptr, *next_ = nullptr, *end_ = nullptr;
};

/// While it lives, this thread's calls allocate from `arena`; null: from the heap.
class UseArena {
 public:
  explicit UseArena(Arena* arena) noexcept;
  ~UseArena();
  UseArena(const UseArena&) = delete;
  UseArena& operator=(const UseArena&) = delete;

 private:
  Arena* before_;
};
/// The arena in use; null: none.
Arena* arena_in_use() noexcept;

/// While it lives, this thread's calls allocate from what is left of the arena in use, if there is one. All of it is free
/// again afterwards, in whatever order it was returned.
class UseRest {
 public:
  UseRest() : rest_(arena_in_use() != nullptr ? Arena(arena_in_use()->rest()) : Arena()) {}

 private:
  Arena rest_;
  UseArena use_{arena_in_use() != nullptr ? &rest_ : nullptr};
};

/// While it lives, counts the bytes that this thread allocates: the most that an arena must hold.
class CountMemory {
 public:
  CountMemory() noexcept;
  ~CountMemory();
  CountMemory(const CountMemory&) = delete;
  CountMemory& operator=(const CountMemory&) = delete;

  std::size_t shared = 0;  ///< for all threads of the call
  std::size_t piece = 0;   ///< for each thread, at most

 private:
  CountMemory* before_;
};
/// The one that is counting; null: none.
CountMemory* counter_in_use() noexcept;

/// Memory aligned to a cache line, so that a vector of 16, 32 or 64 bytes never spans two. It comes from the arena in
/// use; without one, each thread keeps a few freed blocks for the next request of the same size, because fresh memory
/// costs a program more than a call's writes to it.
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

}  // namespace posenc
