#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace posenc {

/// DEFLATE without a frame (RFC 1951), a step at a time. All that is known of zlib is in inflate.cpp.
class RawInflater {
 public:
  /// Throws: Error where there is no memory for its window.
  RawInflater();
  ~RawInflater();

  struct Step {
    std::size_t consumed = 0;
    std::size_t produced = 0;
    bool ended = false;    ///< the last block is complete
    bool damaged = false;  ///< no such code
  };
  /// Goes on until there is no more input, no more room, or an end.
  Step step(std::span<const std::byte> in, std::span<std::byte> out);

 private:
  struct Stream;
  std::unique_ptr<Stream> stream_;
};

/// The CRC-32 of what came before, extended by these bytes; begins with 0.
std::uint32_t crc32_of(std::uint32_t before, std::span<const std::byte> bytes);

}  // namespace posenc
