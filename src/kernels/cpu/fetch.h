#pragma once

#include <cstdint>

namespace posenc::kernels::cpu {

// A processor fetches ahead of a loop by itself, but not far: reading and writing memory in order, one core of a
// Neoverse V1 moves 51 GB/s, and 66 if each cache line is asked for some way ahead (8 to 128 KiB, all alike), for the
// second cache: asked for the first, it would be gone again before it is wanted.

/// Asks for the cache line at `place`, as one to be changed. Any address will do: nothing is read.
/// Always inline: g++ finds that a function like this does nothing, and leaves calls of it out.
[[gnu::always_inline]] inline void fetch(const void* place) noexcept { __builtin_prefetch(place, 1, 2); }

/// How far ahead a loop does well to ask that goes through memory in order, in bytes.
inline constexpr std::int64_t kFetchAhead = 32768;

/// The same for a tensor of so many bytes: not at all where it is likely to be in a cache already. Asking costs a
/// twentieth there.
inline std::int64_t ahead_for(std::int64_t bytes) noexcept {
  constexpr std::int64_t kStaysInCache = 4 << 20;
  return bytes > kStaysInCache ? kFetchAhead : 0;
}

/// fetch() for so many elements, so many bytes ahead of `place`.
template <class T>
[[gnu::always_inline]] inline void fetch_ahead(const T* place, std::int64_t elements, std::int64_t ahead) noexcept {
  constexpr std::uintptr_t kLine = 64;
  const auto begin = reinterpret_cast<std::uintptr_t>(place) + static_cast<std::uintptr_t>(ahead);
  const auto bytes = static_cast<std::uintptr_t>(elements) * sizeof(T);
  for (std::uintptr_t i = 0; i < bytes; i += kLine) fetch(reinterpret_cast<const void*>(begin + i));
}

}  // namespace posenc::kernels::cpu
