#include "cli/system/sha1.h"

#include <bit>
#include <string>

namespace posenc::cli {
namespace {

constexpr std::size_t kBlock = 64;

void take_block(std::array<std::uint32_t, 5>& state, const char* block) {
  std::array<std::uint32_t, 80> words{};
  for (std::size_t i = 0; i < 16; ++i) {
    for (std::size_t byte = 0; byte < 4; ++byte) {
      words[i] = (words[i] << 8U) | static_cast<unsigned char>(block[4 * i + byte]);
    }
  }
  for (std::size_t i = 16; i < 80; ++i) {
    words[i] = std::rotl(words[i - 3] ^ words[i - 8] ^ words[i - 14] ^ words[i - 16], 1);
  }
  auto [a, b, c, d, e] = state;
  for (std::size_t i = 0; i < 80; ++i) {
    std::uint32_t mixed = 0, constant = 0;
    if (i < 20) {
      mixed = (b & c) | (~b & d);
      constant = 0x5a827999U;
    } else if (i < 40) {
      mixed = b ^ c ^ d;
      constant = 0x6ed9eba1U;
    } else if (i < 60) {
      mixed = (b & c) | (b & d) | (c & d);
      constant = 0x8f1bbcdcU;
    } else {
      mixed = b ^ c ^ d;
      constant = 0xca62c1d6U;
    }
    const std::uint32_t next = std::rotl(a, 5) + mixed + e + constant + words[i];
    e = d;
    d = c;
    c = std::rotl(b, 30);
    b = a;
    a = next;
  }
  const std::array<std::uint32_t, 5> change = {a, b, c, d, e};
  for (std::size_t i = 0; i < state.size(); ++i) state[i] += change[i];
}

}  // namespace

std::array<std::uint8_t, 20> sha1(std::string_view bytes) {
  std::string padded(bytes);
  padded += '\x80';
  while (padded.size() % kBlock != kBlock - 8) padded += '\0';
  const std::uint64_t bits = 8 * static_cast<std::uint64_t>(bytes.size());
  for (unsigned shift = 64; shift > 0; shift -= 8) padded += static_cast<char>((bits >> (shift - 8)) & 0xffU);

  std::array<std::uint32_t, 5> state = {0x67452301U, 0xefcdab89U, 0x98badcfeU, 0x10325476U, 0xc3d2e1f0U};
  for (std::size_t at = 0; at < padded.size(); at += kBlock) take_block(state, padded.data() + at);
  std::array<std::uint8_t, 20> digest{};
  for (std::size_t i = 0; i < digest.size(); ++i) {
    digest[i] = static_cast<std::uint8_t>((state[i / 4] >> (24 - 8 * (i % 4))) & 0xffU);
  }
  return digest;
}

}  // namespace posenc::cli
