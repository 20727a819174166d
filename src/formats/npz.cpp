#include "posenc/npz.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "formats/byte_reader.h"
#include "formats/excerpt.h"
#include "formats/inflate.h"
#include "formats/npz_directory.h"

namespace posenc {
namespace {

constexpr std::size_t kPiece = 1 << 16;

}  // namespace

struct NpzStream::State {
  ByteSource file;
  NpzMember member;
  std::int64_t position = 0;    // in the .npy
  std::int64_t stored_end = 0;  // of the bytes taken from the archive
  std::uint32_t crc = 0;
  std::optional<RawInflater> inflater;
  std::array<std::byte, kPiece> buffer{};
  std::span<const std::byte> pending;  // in the buffer: read, but not yet inflated
  bool ended = false;

  [[noreturn]] void fail(std::string_view what) const {
    const std::int64_t at = member.offset + stored_end - static_cast<std::int64_t>(pending.size());
    raise_at(static_cast<std::uint64_t>(at), fmt::format("member {}: {}", quoted(member.name), what));
  }

  void take_stored(std::span<std::byte> out) {
    file.read(member.offset + stored_end, out);
    stored_end += static_cast<std::int64_t>(out.size());
  }

  void inflate_step(std::span<std::byte>& out) {
    if (pending.empty() && stored_end < member.stored_bytes) {
      const std::int64_t left = member.stored_bytes - stored_end;
      const auto piece = std::span(buffer).first(std::min<std::int64_t>(left, kPiece));
      take_stored(piece);
      pending = piece;
    }
    const RawInflater::Step step = inflater->step(pending, out);
    pending = pending.subspan(step.consumed);
    out = out.subspan(step.produced);
    ended = step.ended;
    if (step.damaged) fail("the deflated data is damaged");
    if (!ended && step.consumed == 0 && step.produced == 0) fail("the deflated data ends too early");
  }

  void inflate_into(std::span<std::byte> out) {
    while (!out.empty()) {
      if (ended) fail(fmt::format("the data inflates to fewer than the {} bytes that are declared", member.bytes));
      inflate_step(out);
    }
  }

  /// After the last byte, the deflated data must end, with nothing after it.
  void check_end() {
    while (inflater && !ended) {
      std::array<std::byte, 1> more{};
      std::span<std::byte> room(more);
      inflate_step(room);
      if (room.empty())
        fail(fmt::format("the data inflates to more than the {} bytes that are declared", member.bytes));
    }
    if (!pending.empty() || stored_end != member.stored_bytes) fail("bytes follow the end of the deflated data");
    if (crc != member.crc) fail(fmt::format("the data has CRC {:08x} but {:08x} is declared", crc, member.crc));
  }
};

NpzStream::NpzStream(ByteSource file, NpzMember member)
    : state_(new State{std::move(file), std::move(member), 0, 0, 0, {}, {}, {}, false}) {
  const NpzMember& m = state_->member;
  const std::int64_t size = state_->file.size;
  const bool is_within =
      m.offset >= 0 && m.stored_bytes >= 0 && m.offset <= size && m.stored_bytes <= size - m.offset;
  const bool can_be = m.deflated ? m.bytes / kMostInflation <= m.stored_bytes : m.bytes == m.stored_bytes;
  if (!is_within || !can_be || m.bytes < 0) {
    raise(fmt::format("npz: member {} does not lie within the {} bytes that were given", quoted(m.name), size));
  }
  if (m.deflated) state_->inflater.emplace();
}

NpzStream::NpzStream(NpzStream&&) noexcept = default;
NpzStream& NpzStream::operator=(NpzStream&&) noexcept = default;
NpzStream::~NpzStream() = default;

std::int64_t NpzStream::position() const { return state_->position; }

void NpzStream::read(std::span<std::byte> out) {
  State& state = *state_;
  if (out.empty()) return;
  const std::int64_t left = state.member.bytes - state.position;
  if (static_cast<std::int64_t>(out.size()) > left) {
    raise(fmt::format("npz: {} bytes of member {} were asked for but {} remain", out.size(),
                      quoted(state.member.name), left));
  }
  state.inflater ? state.inflate_into(out) : state.take_stored(out);
  state.crc = crc32_of(state.crc, out);
  state.position += static_cast<std::int64_t>(out.size());
  if (state.position == state.member.bytes) state.check_end();
}

void NpzStream::skip(std::int64_t count) {
  std::vector<std::byte> unused(std::clamp<std::int64_t>(count, 0, kPiece));
  for (; count > 0; count -= static_cast<std::int64_t>(unused.size())) {
    unused.resize(std::min<std::int64_t>(count, kPiece));
    read(unused);
  }
}

NpyArray read_npz(const ByteSource& file, const NpzMember& member, const NpyOptions& options) {
  NpzStream stream(file, member);
  std::vector<std::byte> bytes(member.bytes);
  stream.read(bytes);
  return read_npy(bytes, options);
}

}  // namespace posenc
