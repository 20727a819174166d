#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace posenc::limits {

// The loops behind limits.h, with the widest vectors of the machine. `memory` begins at a multiple of 64 bytes; what is
// left of it after whole steps of kLoopStep is not touched.
inline constexpr std::size_t kLoopStep = 512;

void store_plain(std::span<std::byte> memory);
void store_streaming(std::span<std::byte> memory);
void change_plain(std::span<std::byte> memory);
void change_prefetched(std::span<std::byte> memory);
void change_streaming(std::span<std::byte> memory);
void read_plain(std::span<std::byte> memory);
void read_prefetched(std::span<std::byte> memory);
void read_prefetched_far(std::span<std::byte> memory);

/// So many rounds of independent multiply-adds in registers; returns how many operations that was, two for each lane.
double multiply_add(std::int64_t rounds);

}  // namespace posenc::limits
