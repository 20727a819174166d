#include "formats/inflate.h"

#include <zlib.h>

#include <algorithm>
#include <limits>

#include "posenc/error.h"

namespace posenc {
namespace {

// zlib counts in 32 bits.
uInt length_of(std::size_t size) {
  return static_cast<uInt>(std::min<std::size_t>(size, std::numeric_limits<uInt>::max()));
}

// zlib takes a pointer to non-const, but does not write there.
Bytef* input_of(std::span<const std::byte> bytes) {
  return const_cast<Bytef*>(reinterpret_cast<const Bytef*>(bytes.data()));
}

}  // namespace

struct RawInflater::Stream {
  z_stream z{};
};

RawInflater::RawInflater() : stream_(std::make_unique<Stream>()) {
  constexpr int kNoFrame = -MAX_WBITS;
  if (inflateInit2(&stream_->z, kNoFrame) != Z_OK) raise("npz: no memory to inflate");
}

RawInflater::~RawInflater() { inflateEnd(&stream_->z); }

RawInflater::Step RawInflater::step(std::span<const std::byte> in, std::span<std::byte> out) {
  z_stream& z = stream_->z;
  z.next_in = input_of(in);
  z.avail_in = length_of(in.size());
  z.next_out = reinterpret_cast<Bytef*>(out.data());
  z.avail_out = length_of(out.size());
  const uInt in_before = z.avail_in;
  const uInt out_before = z.avail_out;
  const int status = inflate(&z, Z_NO_FLUSH);
  // Z_BUF_ERROR only means that no progress is possible for now.
  const bool good = status == Z_OK || status == Z_BUF_ERROR || status == Z_STREAM_END;
  return {in_before - z.avail_in, out_before - z.avail_out, status == Z_STREAM_END, !good};
}

std::uint32_t crc32_of(std::uint32_t before, std::span<const std::byte> bytes) {
  return static_cast<std::uint32_t>(crc32_z(before, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

}  // namespace posenc
