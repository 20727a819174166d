#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace posenc {

/// A piece of a sequence for M-RoPE (Qwen2-VL and its kin), whose positions have three axes: time, height, width.
///
///   {.text = 5}                                   5 tokens of text, or of audio: all axes agree
///   {.frames = 1, .rows = 16, .columns = 24}      an image; extents in patches, before they are merged
///   {.frames = 8, .rows = 16, .columns = 24, .time_step = 50}   a video
///   {.frames = 8, .rows = 16, .columns = 24, .seconds = 0.5}    a video of Qwen-Omni (TMRoPE)
struct MropePiece {
  std::int64_t text = 0;  ///< tokens; 0: a grid
  std::int64_t frames = 0, rows = 0, columns = 0;
  /// Positions from frame to frame. Qwen2-VL: 1; Qwen2.5-VL: tokens_per_second · whole seconds of a frame. Qwen3-VL
  /// writes a timestamp before each frame, so that each is a piece of its own with one frame.
  std::int64_t time_step = 1;
  /// Seconds of a frame, instead of time_step: frame t is at ⌊t · seconds · rate⌋, multiplied in float32 as Qwen-Omni
  /// does. 0: time_step counts.
  double seconds = 0;
  /// Tokens of the sound of a video (Qwen2.5-Omni's use_audio_in_video): frames and sound take turns, `chunk` positions
  /// each, between two start tokens that share a position and two end tokens that share one. These four are part of the
  /// piece.
  std::int64_t sound = 0;
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
  std::int64_t rate = 25;   ///< positions a second (position_id_per_seconds), where a piece has seconds
  std::int64_t chunk = 50;  ///< positions of a turn of frames or sound (rate · seconds_per_chunk)
};

struct MropePositions {
  std::vector<std::int64_t> ids = {};  ///< [3, tokens], ready for Positions{.ids = …, .axes = 3}
  std::int64_t tokens = 0;
  /// Of the first token that the model writes, on all axes: one past the largest (transformers' mrope_position_deltas).
  /// Positions{.first = next} from there on.
  std::int64_t next = 0;
};

/// The positions of a sequence of text, images, videos and audio, as get_rope_index of transformers 5.16 makes them.
/// Throws: Error for a piece that is neither text nor a grid, extents that merge does not divide, and positions from
/// 2^53 on.
MropePositions mrope_positions(std::span<const MropePiece> pieces, const MropeOptions& options = {});

/// How a family counts time, and where text goes on after a grid.
struct MropeFamily {
  std::string_view name = "";      ///< "qwen2.5-vl"
  std::int64_t rate = 0;           ///< positions a second; 0: frames are counted, whatever their time
  bool has_whole_seconds = false;  ///< seconds of a frame are truncated first
  bool has_single_frames = false;  ///< text with the time stands before each frame, so that a video is one frame
  bool has_sound = false;          ///< frames and sound of a video may take turns
  MropeAdvance advance = MropeAdvance::kGrid;
};
/// qwen2-vl, qwen2.5-vl, qwen3-vl, glm4v, qwen2.5-omni.
std::span<const MropeFamily> mrope_families() noexcept;
/// Throws: Error that names the known ones.
const MropeFamily& mrope_family(std::string_view name);

/// A sequence from text: pieces divided by spaces, extents in patches.
///
///   text:5 image:16x24 text:3 video:8x16x24@0.5 audio:50 video:8x16x24@1+100 text:2
///
/// @ gives the seconds of a frame, + the tokens of the video's sound. Throws: Error that names the piece and the rule.
std::vector<MropePiece> mrope_pieces(std::string_view text, const MropeFamily& family);

}  // namespace posenc
