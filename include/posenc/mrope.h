#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace posenc {

/// A piece of a sequence for M-RoPE (Qwen2-VL and its kin), whose positions have three axes: time, height, width.
///
///   {.text = 5}                                   5 tokens of text, or of audio: all axes agree
///   {.frames = 1, .rows = 16, .columns = 24}      an image; extents in patches, before they are merged
///   {.frames = 8, .rows = 16, .columns = 24, .time_step = 50}   a video
struct MropePiece {
  std::int64_t text = 0;  ///< tokens; 0: a grid
  std::int64_t frames = 0, rows = 0, columns = 0;
  /// Positions from frame to frame. Qwen2-VL: 1; Qwen2.5-VL: tokens_per_second · whole seconds of a frame. Qwen3-VL
  /// writes a timestamp before each frame, so that each is a piece of its own with one frame.
  std::int64_t time_step = 1;
};

/// Where text goes on after a grid; engines differ.
enum class MropeAdvance : std::uint8_t {
  kGrid,     ///< past the larger of merged rows and columns (transformers 5.16)
  kLargest,  ///< past the largest position of any axis (vLLM)
};

struct MropeOptions {
  std::int64_t merge = 2;  ///< spatial_merge_size: patches a side that become one token
  std::int64_t first = 0;  ///< position of the first token
  MropeAdvance advance = MropeAdvance::kGrid;
};

struct MropePositions {
  std::vector<std::int64_t> ids = {};  ///< [3, tokens], ready for Positions{.ids = …, .axes = 3}
  std::int64_t tokens = 0;
  /// Of the first token that the model writes, on all axes: one past the largest (transformers' mrope_position_deltas).
  /// Positions{.first = next} from there on.
  std::int64_t next = 0;
};

/// The positions of a sequence of text, images and videos, as get_rope_index of transformers 5.16 makes them.
/// Throws: Error for a piece that is neither text nor a grid, extents that merge does not divide, and positions from
/// 2^53 on.
MropePositions mrope_positions(std::span<const MropePiece> pieces, const MropeOptions& options = {});

}  // namespace posenc
