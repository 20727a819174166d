#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace posenc {

/// A piece of a sequence for M-RoPE (Qwen2-VL and related models), whose positions have three axes: time, height, width.
///
///   {.text = 5}                                   5 tokens of text or audio: all axes agree
///   {.frames = 1, .rows = 16, .columns = 24}      an image; extents in patches, before merging
///   {.frames = 8, .rows = 16, .columns = 24, .time_step = 50}   a video
///   {.frames = 8, .rows = 16, .columns = 24, .seconds = 0.5}    a video for Qwen-Omni (TMRoPE)
struct MropePiece {
  std::int64_t text = 0;  ///< tokens; 0: a grid
  std::int64_t frames = 0, rows = 0, columns = 0;
  /// Positions between consecutive frames. Qwen2-VL: 1; Qwen2.5-VL: tokens_per_second · whole seconds per frame. Qwen3-VL
  /// writes a timestamp before each frame, so each frame is a piece of its own.
  std::int64_t time_step = 1;
  /// Seconds per frame, instead of time_step: frame t has time position ⌊t · seconds · rate⌋, multiplied in float32 as in
  /// Qwen-Omni. 0: time_step is used.
  double seconds = 0;
  /// Number of audio tokens of a video (Qwen2.5-Omni's use_audio_in_video): frames and audio alternate, in chunks of
  /// `chunk` positions, between two start tokens that share a position and two end tokens that share one. These four
  /// tokens are part of the piece.
  std::int64_t sound = 0;
};

/// Where text continues after a grid; engines differ.
enum class MropeAdvance : std::uint8_t {
  kGrid,     ///< past the larger of merged rows and columns (transformers 5.16)
  kLargest,  ///< past the largest position of any axis (vLLM)
};

struct MropeOptions {
  std::int64_t merge = 2;  ///< spatial_merge_size: merge × merge patches become one token
  std::int64_t first = 0;  ///< position of the first token
  MropeAdvance advance = MropeAdvance::kGrid;
  std::int64_t rate = 25;   ///< positions per second (position_id_per_seconds), for pieces with seconds
  std::int64_t chunk = 50;  ///< positions per chunk of frames or audio (rate · seconds_per_chunk)
};

struct MropePositions {
  std::vector<std::int64_t> ids = {};  ///< [3, tokens], ready for Positions{.ids = …, .axes = 3}
  std::int64_t tokens = 0;
  /// The position of the first generated token on all axes: one past the largest (see transformers'
  /// mrope_position_deltas). Use Positions{.first = next} from there on.
  std::int64_t next = 0;
};

/// The positions of a sequence of text, images, videos and audio, as computed by get_rope_index of transformers 5.16.
/// Throws: Error for a piece that is neither text nor a grid, extents not divisible by merge, and positions of 2^53 or
/// more.
MropePositions mrope_positions(std::span<const MropePiece> pieces, const MropeOptions& options = {});

/// How a family counts time, and where text continues after a grid.
struct MropeFamily {
  std::string_view name = "";      ///< "qwen2.5-vl"
  std::int64_t rate = 0;           ///< positions per second; 0: frames are counted, regardless of their time
  bool has_whole_seconds = false;  ///< seconds per frame are truncated to an integer first
  bool has_single_frames = false;  ///< a timestamp precedes each frame, so each piece has one frame
  bool has_sound = false;          ///< frames and audio of a video may alternate
  MropeAdvance advance = MropeAdvance::kGrid;
};
/// qwen2-vl, qwen2.5-vl, qwen3-vl, glm4v, qwen2.5-omni.
std::span<const MropeFamily> mrope_families() noexcept;
/// Throws: Error that lists the known families.
const MropeFamily& mrope_family(std::string_view name);

/// Parses a description of a sequence: pieces separated by spaces, extents in patches.
///
///   text:5 image:16x24 text:3 video:8x16x24@0.5 audio:50 video:8x16x24@1+100 text:2
///
/// @ gives the seconds per frame, + the audio tokens of the video. Throws: Error that names the piece and the rule.
std::vector<MropePiece> mrope_pieces(std::string_view text, const MropeFamily& family);

}  // namespace posenc
