#pragma once

#include <cstdint>

namespace posenc::kernels::cpu {

// A processor prefetches by itself, but not far: reading and writing memory in order, one core of a Neoverse V1 moves
// 51 GB/s, and 66 if each cache line is prefetched some way ahead (8 to 128 KiB make no difference) into the L2
// cache. In the L1 cache it would be evicted before it is used.

/// Prefetches the cache line at `place` for writing. Any address is allowed: nothing is read.
/// Always inline: g++ concludes that such a function does nothing, and drops calls of it.
[[gnu::always_inline]] inline void fetch(const void* place) noexcept { __builtin_prefetch(place, 1, 2); }

/// How far ahead, in bytes, a loop that reads memory in order should prefetch.
inline constexpr std::int64_t kFetchAhead = 32768;

/// The same for memory that is only written: nearer, because the pages of a cache are short and lie in any order.
inline constexpr std::int64_t kFetchOutAhead = 4096;

/// How far ahead to read a tensor of the given number of bytes: 0 if it is probably in a cache already, where prefetching
/// would cost a twentieth.
inline std::int64_t ahead_for(std::int64_t bytes) noexcept {
  constexpr std::int64_t kStaysInCache = 4 << 20;
  return bytes > kStaysInCache ? kFetchAhead : 0;
}

/// fetch() for the given number of elements, the given number of bytes past `place`.
template <class T>
[[gnu::always_inline]] inline void fetch_ahead(const T* place, std::int64_t elements, std::int64_t ahead) noexcept {
  constexpr std::uintptr_t kLine = 64;
  const auto begin = reinterpret_cast<std::uintptr_t>(place) + static_cast<std::uintptr_t>(ahead);
  const auto bytes = static_cast<std::uintptr_t>(elements) * sizeof(T);
  for (std::uintptr_t i = 0; i < bytes; i += kLine) fetch(reinterpret_cast<const void*>(begin + i));
}

}  // namespace posenc::kernels::cpu
