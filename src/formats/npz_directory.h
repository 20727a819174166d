#pragma once

#include <cstdint>

namespace posenc {

/// DEFLATE makes at most 258 bytes of two bits.
inline constexpr std::int64_t kMostInflation = 1032;

}  // namespace posenc
