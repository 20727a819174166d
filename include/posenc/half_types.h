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
/// Eight bits for the elements of a cache, which a scale multiplies: sign, 4 bits of exponent, 3 of fraction (OCP's e4m3,
/// torch.float8_e4m3fn). The largest number is 448; there is a NaN and no infinity.
struct E4M3 {
  std::uint8_t bits = 0;
  bool operator==(const E4M3&) const = default;
};
/// 32 elements of a cache of q8_0, in the 34 bytes of ggml's block_q8_0: element i is values[i] · scale.
struct Q8Block {
  static constexpr std::int64_t kElements = 32;
  Half scale;
  std::int8_t values[kElements] = {};
  bool operator==(const Q8Block&) const = default;
};
static_assert(sizeof(Q8Block) == 34 && alignof(Q8Block) == 2);

}  // namespace posenc
