#pragma once

#include <cstdint>

namespace posenc {

/// f16 and bf16, stored as their 16 bits. half.h converts them to and from numbers.
struct Half {
  std::uint16_t bits = 0;
  bool operator==(const Half&) const = default;
};
struct BFloat16 {
  std::uint16_t bits = 0;
  bool operator==(const BFloat16&) const = default;
};

}  // namespace posenc
