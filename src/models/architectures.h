#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "models/families.h"

namespace posenc::models {

/// Which layers of an architecture do not rotate.
enum class Unrotated : std::uint8_t {
  kNone,
  kWithoutWindow,  ///< those without a window
  kEveryFourth,    ///< every fourth, counted from 1
  kFullFrom0,      ///< those without a window, in models with windows; else every fourth, counted from 0
};

/// How llama.cpp treats the weights of an architecture, as stored in GGUF files.
struct Architecture {
  std::string_view names;  ///< general.architecture, separated by spaces
  Encoding encoding = Encoding::kRope;
  PairLayout layout = PairLayout::kHalves;
  SectionOrder section_order = SectionOrder::kChunked;
  bool sections_are_halves = false;  ///< with rope.dimension_sections pairs are halves, whatever `layout` is
  bool at_end = false;
  // windows
  std::int64_t period = 0;         ///< one layer in this many is full; 0: no layer has a window
  bool are_all_windows = false;    ///< all layers have a window
  bool is_full_first = false;      ///< the first of each period, not the last
  bool needs_window = false;       ///< only if attention.sliding_window is given
  std::int64_t only_blocks = 0;    ///< only in models with this many layers
  double local_base = 0;           ///< of layers with a window; 0: the same as the others
  bool is_local_unscaled = false;  ///< their frequencies are not scaled
  Unrotated unrotated = Unrotated::kNone;
  bool rotates_lead = false;       ///< the first leading_dense_block_count layers rotate in any case
  std::int64_t interval = 0;       ///< one layer in this many is attention, the others are recurrent
  std::int64_t alibi_blocks = 0;   ///< models with this many layers use ALiBi instead
  bool is_bias_optional = false;   ///< no ALiBi without attention.max_alibi_bias: a table, if the file has one
  bool has_table_instead = false;  ///< and a file that lists no tensors is taken to have one
  bool has_log_of_ten =
      false;  ///< yarn_log_multiplier is a tenth of mscale_all_dim, and multiplies the softmax scale
  bool has_equal_mscales = false;  ///< and YaRN's mscale is mscale_all_dim
  bool has_alpha = false;          ///< rope.scaling.alpha applies
  bool has_decoder = false;        ///< decoder_block_count more layers
  bool has_rope_switch = false;    ///< rope.scaling.finetuned false: no position
  bool is_causal = true;
  std::string_view token_mixer = "";  ///< used by all layers instead of attention
  bool has_sinks = false;
  bool sinks_by_tensor = false;  ///< layers have sinks if the file has their attn_sinks
  // what else attention does that no key states
  std::int64_t window = 0;       ///< of layers with one
  bool has_chunks = false;       ///< they attend to their chunk of 8192, and unrotated queries have a temperature
  bool is_unscaled = false;      ///< scores are not divided by √D
  double output_scale = 0;       ///< the scale, if attention.output_scale is not given
  std::int64_t wide_blocks = 0;  ///< in models with this many layers the scale is 1/√(embedding / heads)
  double softcap = 0;
  bool has_trained_floor = false;  ///< a temperature's length is the trained one
  std::string_view name = "";
  std::string_view note = "";
};
/// nullptr if it is unknown.
const Architecture* architecture_named(std::string_view name);
std::vector<std::string_view> known_architectures();

}  // namespace posenc::models
