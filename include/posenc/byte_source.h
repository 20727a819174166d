#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <span>
#include <utility>

namespace posenc {

/// Bytes in memory or in a file that are read piece by piece, so that a large file need not be loaded, and the library
/// never opens one itself.
struct ByteSource {
  /// Fills `out` with the bytes starting at `offset`. Readers never request bytes outside 0 … size.
  using Read = std::function<void(std::int64_t offset, std::span<std::byte> out)>;

  std::int64_t size = 0;
  Read read;

  ByteSource(std::int64_t bytes, Read how) : size(bytes), read(std::move(how)) {}
  /// The bytes must outlive the source.
  ByteSource(std::span<const std::byte> bytes)
      : size(static_cast<std::int64_t>(bytes.size())), read([bytes](std::int64_t offset, std::span<std::byte> out) {
          if (!out.empty()) std::memcpy(out.data(), bytes.data() + offset, out.size());
        }) {}
};

}  // namespace posenc
