#pragma once

#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <string_view>

#include "posenc/error.h"

namespace posenc::schemes {

/// The largest width a scheme makes; wider is a mistake, and its frequencies would fill the memory.
inline constexpr std::int64_t kWidthLimit = std::int64_t{1} << 20;

inline void check_between(std::string_view scheme, std::string_view field, std::int64_t value, std::int64_t low,
                          std::int64_t high) {
  if (value >= low && value <= high) return;
  raise(fmt::format("{}: {} must be between {} and {} but is {}", scheme, field, low, high, value));
}

inline void check_finite(std::string_view scheme, std::string_view field, double value) {
  if (!std::isfinite(value)) raise(fmt::format("{}: {} must be a finite number but is {}", scheme, field, value));
}

}  // namespace posenc::schemes
