#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "posenc/byte_source.h"
#include "posenc/npy.h"

namespace posenc {

/// A .npy file within a .npz file, which is a zip archive.
struct NpzMember {
  std::string name;                ///< without ".npy", as in NumPy
  std::int64_t header_offset = 0;  ///< of its own header in the archive
  std::int64_t offset = 0;         ///< of its first stored byte
  std::int64_t stored_bytes = 0;
  std::int64_t bytes = 0;  ///< of the .npy file
  bool deflated = false;   ///< false: stored uncompressed
  std::uint32_t crc = 0;
};

/// The members of an archive, in the order of its directory. The directory must agree with each member's own header, and
/// members must not overlap. Nothing is inflated.
/// Range: stored and deflated members, with or without ZIP64; directories up to 100,000,000 bytes.
/// Throws: Error "byte OFFSET: WHAT (hint)".
std::vector<NpzMember> read_npz_directory(const ByteSource& file);

/// Reads the bytes of one member sequentially, using little memory.
class NpzStream {
 public:
  /// Throws: Error if the member does not lie within the file.
  NpzStream(ByteSource file, NpzMember member);
  NpzStream(NpzStream&&) noexcept;
  NpzStream& operator=(NpzStream&&) noexcept;
  ~NpzStream();

  /// How many bytes have been read.
  std::int64_t position() const;
  /// Fills `out` with the next bytes; after the last of them, verifies the checksum.
  /// Throws: Error "byte OFFSET: WHAT" for damaged data, data that inflates to more or less than was declared, a
  /// wrong checksum, and a request for more bytes than there are.
  void read(std::span<std::byte> out);
  /// Throws: as read.
  void skip(std::int64_t count);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Reads a whole member.
/// Throws: as NpzStream::read, and as read_npy with offsets within the member.
NpyArray read_npz(const ByteSource& file, const NpzMember& member, const NpyOptions& options = {});

}  // namespace posenc
