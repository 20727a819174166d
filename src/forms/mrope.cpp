// Positions of text and grids on three axes. Read in transformers 5.16 (d56c55bf564): modeling_qwen2_vl.py,
// modeling_qwen2_5_vl.py, modeling_qwen3_vl.py and modeling_glm4v.py, get_rope_index and get_vision_position_ids; for
// seconds and sound modeling_qwen2_5_omni.py, get_rope_index and get_chunked_index. kLargest was read in its rules of
// engines (models/engines.cpp, mrope-advance).

#include "posenc/mrope.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "posenc/error.h"
#include "posenc/frequency.h"

namespace posenc {
namespace {

constexpr std::int64_t kMostExtent = std::int64_t{1} << 20, kMostMropeTokens = std::int64_t{1} << 32;

void check_piece(const MropePiece& piece, const MropeOptions& options) {
  const bool is_grid = piece.frames > 0 && piece.rows > 0 && piece.columns > 0;
  const bool is_text = piece.text > 0 && piece.frames == 0 && piece.rows == 0 && piece.columns == 0;
  if (is_text == is_grid || (is_grid && piece.text != 0)) {
    raise(fmt::format("mrope: a piece must be text or a grid but has {} tokens of text and extents {}, {}, {}",
                      piece.text, piece.frames, piece.rows, piece.columns));
  }
  if (piece.text > kMostMropeTokens) {
    raise(fmt::format("mrope: text must have at most 2^32 tokens but has {}", piece.text));
  }
  if (!is_grid && (piece.seconds != 0 || piece.sound != 0)) {
    raise("mrope: seconds and sound belong to a grid, not to text");
  }
  if (!is_grid) return;
  if (!(piece.seconds >= 0 && piece.seconds <= 1e6)) {
    raise(fmt::format("mrope: seconds must be between 0 and 1e6 but is {}", piece.seconds));
  }
  if (piece.sound < 0 || piece.sound > kMostExtent) {
    raise(fmt::format("mrope: sound must be between 0 and 2^20 tokens but is {}", piece.sound));
  }
  for (const std::int64_t extent : {piece.frames, piece.rows, piece.columns}) {
    if (extent > kMostExtent) raise(fmt::format("mrope: an extent must be at most 2^20 but is {}", extent));
  }
  for (const std::int64_t extent : {piece.rows, piece.columns}) {
    if (extent % options.merge == 0) continue;
    raise(
        fmt::format("mrope: rows and columns must be multiples of merge, {}, but one is {}", options.merge, extent));
  }
  if (piece.time_step < 0 || piece.time_step > kMostExtent) {
    raise(fmt::format("mrope: time_step must be between 0 and 2^20 but is {}", piece.time_step));
  }
}

constexpr std::int64_t kMarksOfSound = 4;  // two start and two end tokens

std::int64_t tokens_of(const MropePiece& piece, const MropeOptions& options) {
  if (piece.text > 0) return piece.text;
  const std::int64_t patches = piece.frames * (piece.rows * piece.columns / (options.merge * options.merge));
  return patches + (piece.sound > 0 ? piece.sound + kMarksOfSound : 0);
}

std::int64_t time_of(const MropePiece& piece, std::int64_t frame, const MropeOptions& options) {
  if (piece.seconds == 0) return frame * piece.time_step;
  const float seconds = static_cast<float>(frame) * static_cast<float>(piece.seconds);
  return static_cast<std::int64_t>(seconds * static_cast<float>(options.rate));
}

using MropeId = std::array<std::int64_t, 3>;

std::vector<MropeId> grid_ids(const MropePiece& piece, std::int64_t start, const MropeOptions& options) {
  std::vector<MropeId> ids;
  for (std::int64_t t = 0; t < piece.frames; ++t) {
    const std::int64_t time = start + time_of(piece, t, options);
    for (std::int64_t h = 0; h < piece.rows / options.merge; ++h) {
      for (std::int64_t w = 0; w < piece.columns / options.merge; ++w) ids.push_back({time, start + h, start + w});
    }
  }
  return ids;
}

// Where each turn ends. A token ends at most one turn, so a frame that passes several of them produces turns of one
// token.
std::vector<std::size_t> turns_of(const std::vector<MropeId>& ids, std::int64_t start, std::int64_t chunk) {
  std::vector<std::size_t> ends;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (ids[i][0] - start >= static_cast<std::int64_t>(ends.size() + 1) * chunk) ends.push_back(i);
  }
  ends.push_back(ids.size());
  return ends;
}

// Frames and sound in alternating turns; `put` takes each token. Returns the largest position of the last turn.
template <class Put> std::int64_t put_with_sound(const MropePiece& piece, std::int64_t start,
                                                 const MropeOptions& options, const Put& put) {
  const std::vector<MropeId> frames = grid_ids(piece, start, options);
  std::vector<MropeId> sound;
  for (std::int64_t i = 0; i < piece.sound; ++i) sound.push_back({start + i, start + i, start + i});
  const auto frame_turns = turns_of(frames, start, options.chunk),
             sound_turns = turns_of(sound, start, options.chunk);
  std::int64_t last = start;
  const auto put_turn = [&](const std::vector<MropeId>& ids, const std::vector<std::size_t>& ends, std::size_t turn) {
    if (turn >= ends.size()) return;
    last = 0;
    for (std::size_t i = turn == 0 ? 0 : ends[turn - 1]; i < ends[turn]; ++i) {
      put(ids[i]);
      last = std::max({last, ids[i][0], ids[i][1], ids[i][2]});
    }
  };
  for (std::size_t turn = 0; turn < std::max(frame_turns.size(), sound_turns.size()); ++turn) {
    put_turn(frames, frame_turns, turn);
    put_turn(sound, sound_turns, turn);
  }
  return last;
}

}  // namespace

MropePositions mrope_positions(std::span<const MropePiece> pieces, const MropeOptions& options) {
  if (options.merge < 1) raise(fmt::format("mrope: merge must be 1 or more but is {}", options.merge));
  if (options.first < 0 || options.first >= kPositionLimit) {
    raise(fmt::format("mrope: first must be between 0 and 2^53 - 1 but is {}", options.first));
  }
  if (options.rate < 1 || options.rate > kMostExtent || options.chunk < 1 || options.chunk > kMostExtent) {
    raise(fmt::format("mrope: rate and chunk must be between 1 and 2^20 but are {} and {}", options.rate,
                      options.chunk));
  }
  MropePositions made;
  for (const MropePiece& piece : pieces) {
    check_piece(piece, options);
    made.tokens += tokens_of(piece, options);
    if (made.tokens > kMostMropeTokens) raise("mrope: there are more than 2^32 tokens");
  }
  made.ids.resize(3 * made.tokens);
  std::int64_t position = options.first, at = 0, largest = options.first - 1;
  const auto put = [&](const MropeId& id) {
    for (std::int64_t axis = 0; axis < 3; ++axis) {
      const std::int64_t value = id[axis];
      made.ids[axis * made.tokens + at] = value;
      largest = std::max(largest, value);
    }
    ++at;
  };
  const auto put_text = [&](std::int64_t where) { put({where, where, where}); };
  for (const MropePiece& piece : pieces) {
    if (piece.text > 0) {
      for (std::int64_t i = 0; i < piece.text; ++i) put_text(position + i);
      position += piece.text;
    } else if (piece.sound > 0) {
      for (int i = 0; i < 2; ++i) put_text(position);
      position = put_with_sound(piece, position + 1, options, put) + 1;
      for (int i = 0; i < 2; ++i) put_text(position);
      ++position;
    } else {
      for (const MropeId& id : grid_ids(piece, position, options)) put(id);
      const std::int64_t side = std::max(piece.rows, piece.columns) / options.merge;
      position = options.advance == MropeAdvance::kGrid ? position + side : largest + 1;
    }
  }
  made.next = std::max(largest + 1, options.first);
  if (made.next > kPositionLimit) raise(fmt::format("mrope: position {} is outside 0 to 2^53 - 1", made.next - 1));
  return made;
}

}  // namespace posenc
