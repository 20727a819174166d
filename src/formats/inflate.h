#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace posenc {

/// Raw DEFLATE (RFC 1951), one step at a time. Only inflate.cpp uses zlib.
class RawInflater {
 public:
  /// Throws: Error if there is no memory for its window.
  RawInflater();
  ~RawInflater();

  struct Step {
    std::size_t consumed = 0;
    std::size_t produced = 0;
    bool ended = false;    ///< the last block is complete
    bool damaged = false;  ///< invalid code
  };
  /// Continues until there is no more input, no more room, or the data ends.
  Step step(std::span<const std::byte> in, std::span<std::byte> out);

 private:
  struct Stream;
  std::unique_ptr<Stream> stream_;
};

/// The CRC-32 of the previous bytes, extended by these; starts with 0.
std::uint32_t crc32_of(std::uint32_t before, std::span<const std::byte> bytes);

}  // namespace posenc
