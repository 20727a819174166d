#pragma once

#include <cstdint>

namespace posenc {

/// f16 and bf16, as their 16 bits. half.h converts them.
struct Half {
  std::uint16_t bits = 0;
  bool operator==(const Half&) const = default;
};
struct BFloat16 {
  std::uint16_t bits = 0;
  bool operator==(const BFloat16&) const = default;
};

}  // namespace posenc
