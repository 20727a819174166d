// Positions of text and grids on three axes. Read in transformers 5.16 (d56c55bf564): modeling_qwen2_vl.py,
// modeling_qwen2_5_vl.py and modeling_qwen3_vl.py, get_rope_index and get_vision_position_ids. kLargest was read in its
// rules of engines (models/engines.cpp, mrope-advance).

#include "posenc/mrope.h"

#include <fmt/format.h>

#include <algorithm>

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
  if (!is_grid) return;
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

}  // namespace

MropePositions mrope_positions(std::span<const MropePiece> pieces, const MropeOptions& options) {
  if (options.merge < 1) raise(fmt::format("mrope: merge must be 1 or more but is {}", options.merge));
  if (options.first < 0 || options.first >= kPositionLimit) {
    raise(fmt::format("mrope: first must be between 0 and 2^53 - 1 but is {}", options.first));
  }
  MropePositions made;
  for (const MropePiece& piece : pieces) {
    check_piece(piece, options);
    const std::int64_t merged = options.merge * options.merge;
    made.tokens += piece.text > 0 ? piece.text : piece.frames * (piece.rows * piece.columns / merged);
    if (made.tokens > kMostMropeTokens) raise("mrope: there are more than 2^32 tokens");
  }
  made.ids.resize(static_cast<std::size_t>(3 * made.tokens));
  std::int64_t position = options.first, at = 0, largest = options.first - 1;
  const auto put = [&](std::int64_t time, std::int64_t height, std::int64_t width) {
    const std::int64_t ids[] = {time, height, width};
    for (std::int64_t axis = 0; axis < 3; ++axis) {
      made.ids[static_cast<std::size_t>(axis * made.tokens + at)] = ids[axis];
      largest = std::max(largest, ids[axis]);
    }
    ++at;
  };
  for (const MropePiece& piece : pieces) {
    if (piece.text > 0) {
      for (std::int64_t i = 0; i < piece.text; ++i) put(position + i, position + i, position + i);
      position += piece.text;
      continue;
    }
    const std::int64_t rows = piece.rows / options.merge, columns = piece.columns / options.merge;
    for (std::int64_t t = 0; t < piece.frames; ++t) {
      for (std::int64_t h = 0; h < rows; ++h) {
        for (std::int64_t w = 0; w < columns; ++w) put(position + t * piece.time_step, position + h, position + w);
      }
    }
    position = options.advance == MropeAdvance::kGrid ? position + std::max(rows, columns) : largest + 1;
  }
  made.next = std::max(largest + 1, options.first);
  if (made.next > kPositionLimit) raise(fmt::format("mrope: position {} is outside 0 to 2^53 - 1", made.next - 1));
  return made;
}

}  // namespace posenc
