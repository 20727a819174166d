#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <span>
#include <utility>

namespace posenc {

/// Bytes that stand elsewhere, in memory or in a file, and are read piece by piece: a large file need not be in
/// memory, and the library opens none.
struct ByteSource {
  /// Fills `out` with the bytes from `offset` on. Readers ask for nothing outside 0 … size.
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
