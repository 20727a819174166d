#pragma once

#include <cstdint>

namespace posenc {

/// DEFLATE produces at most 258 bytes from two bits.
inline constexpr std::int64_t kMostInflation = 1032;

}  // namespace posenc
