// Sequences of text, images, videos and audio, by the rules of the families that have them. Read in transformers 5.16
// (d56c55bf564), get_rope_index of each modeling file. The rate of Qwen2.5-VL is that of its checkpoints
// (vision_config.tokens_per_second), 2, where its class has 4.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <charconv>
#include <cmath>
#include <string>

#include "formats/excerpt.h"
#include "posenc/error.h"
#include "posenc/mrope.h"

namespace posenc {
namespace {

constexpr auto kMropeFamilies = std::to_array<MropeFamily>({
    {.name = "qwen2-vl"},
    {.name = "qwen2.5-vl", .rate = 2, .has_whole_seconds = true},
    {.name = "qwen3-vl", .has_single_frames = true},
    {.name = "glm4v", .has_single_frames = true},
    {.name = "qwen2.5-omni", .rate = 25, .has_sound = true, .advance = MropeAdvance::kLargest},
});

struct SpecPiece {
  std::string_view whole, kind, extents, seconds, sound;
};

[[noreturn]] void refuse_piece(const SpecPiece& piece, std::string_view rule) {
  raise(fmt::format("mrope: '{}' {}", excerpt(piece.whole), rule));
}

// What follows `mark`, removed from the text.
std::string_view cut_from(std::string_view& text, char mark) {
  const std::size_t at = text.find(mark);
  if (at == std::string_view::npos) return {};
  const std::string_view rest = text.substr(at);
  text = text.substr(0, at);
  return rest;
}

template <class T> T number_in(const SpecPiece& piece, std::string_view text, std::string_view what) {
  T value{};
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end || !(value > 0) || !std::isfinite(static_cast<double>(value))) {
    refuse_piece(piece, fmt::format("has {}, where {} above 0 is expected",
                                    text.empty() ? "nothing" : fmt::format("'{}'", excerpt(text)), what));
  }
  return value;
}

std::vector<std::int64_t> extents_in(const SpecPiece& piece, std::size_t count, std::string_view form) {
  std::vector<std::int64_t> values;
  std::string_view rest = piece.extents;
  while (true) {
    const std::size_t at = rest.find('x');
    values.push_back(number_in<std::int64_t>(piece, rest.substr(0, at), "an integer"));
    if (at == std::string_view::npos) break;
    rest.remove_prefix(at + 1);
  }
  if (values.size() != count) refuse_piece(piece, fmt::format("must have the form {}", form));
  return values;
}

void set_time(MropePiece& made, const SpecPiece& piece, const MropeFamily& family) {
  if (piece.seconds.empty()) {
    if (family.rate > 0) refuse_piece(piece, fmt::format("needs @SECONDS of a frame: {} counts time", family.name));
    return;
  }
  const auto seconds = number_in<double>(piece, piece.seconds.substr(1), "a number of seconds");
  if (family.rate == 0) refuse_piece(piece, fmt::format("has seconds, but {} counts frames", family.name));
  if (seconds > 1e6) refuse_piece(piece, "has more than 1e6 seconds");
  if (family.has_whole_seconds) {
    made.time_step = family.rate * static_cast<std::int64_t>(seconds);
  } else {
    made.seconds = seconds;
  }
}

MropePiece piece_of(std::string_view text, const MropeFamily& family) {
  SpecPiece piece;
  piece.whole = text;
  const std::size_t colon = text.find(':');
  piece.kind = text.substr(0, colon);
  if (colon != std::string_view::npos) piece.extents = text.substr(colon + 1);
  if (piece.kind == "text" || piece.kind == "audio") {
    return {.text = number_in<std::int64_t>(piece, piece.extents, "an integer")};
  }
  if (piece.kind == "image") {
    const auto extents = extents_in(piece, 2, "image:ROWSxCOLUMNS");
    return {.frames = 1, .rows = extents[0], .columns = extents[1]};
  }
  if (piece.kind != "video") refuse_piece(piece, "must be text:N, image:RxC, video:TxRxC or audio:N");
  piece.sound = cut_from(piece.extents, '+');
  piece.seconds = cut_from(piece.extents, '@');
  const auto extents = extents_in(piece, 3, "video:FRAMESxROWSxCOLUMNS[@SECONDS][+SOUND]");
  MropePiece made{.frames = extents[0], .rows = extents[1], .columns = extents[2]};
  if (family.has_single_frames && made.frames != 1) {
    refuse_piece(piece, fmt::format("has several frames, but {} writes a timestamp before each: give text:N "
                                    "video:1xRxC for each",
                                    family.name));
  }
  set_time(made, piece, family);
  if (!piece.sound.empty()) {
    if (!family.has_sound) refuse_piece(piece, fmt::format("has sound, which {} does not mix in", family.name));
    made.sound = number_in<std::int64_t>(piece, piece.sound.substr(1), "an integer");
  }
  return made;
}

}  // namespace

std::span<const MropeFamily> mrope_families() noexcept { return kMropeFamilies; }

const MropeFamily& mrope_family(std::string_view name) {
  std::vector<std::string_view> names;
  for (const MropeFamily& family : kMropeFamilies) {
    if (family.name == name) return family;
    names.push_back(family.name);
  }
  raise(fmt::format("mrope: family '{}' is unknown (known are {})", excerpt(name), fmt::join(names, ", ")));
}

std::vector<MropePiece> mrope_pieces(std::string_view text, const MropeFamily& family) {
  std::vector<MropePiece> pieces;
  while (!text.empty()) {
    const std::size_t space = text.find(' ');
    const std::string_view one = text.substr(0, space);
    if (!one.empty()) pieces.push_back(piece_of(one, family));
    text.remove_prefix(space == std::string_view::npos ? text.size() : space + 1);
  }
  if (pieces.empty()) raise("mrope: the sequence is empty; give pieces, e.g. text:5 image:16x24");
  return pieces;
}

}  // namespace posenc
