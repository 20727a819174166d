#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string_view>
#include <vector>

#include "models/layers.h"
#include "posenc/schemes/resized.h"
#include "posenc/schemes/rope.h"
#include "posenc/schemes/sinusoidal.h"

namespace posenc::models {

/// What DeepSeek-V4's layers without a sliding window do.
inline constexpr std::string_view kCompressed =
    "compressed keys and values of earlier tokens join those of the window";

/// What a family does with position.
enum class Encoding : std::uint8_t {
  kRope,
  kLearned,  ///< a table by position
  kPatches,  ///< a table by image patch: (image_size / patch_size)^2 rows plus `extra_rows`
  kSinusoidal,
  kNone,
  kAlibi,
  kT5,
  kDeberta,
  kShaw,
  kPatchRope,       ///< rope over patches with coordinates from −1 to 1
  kShawValues,      ///< with vectors for values, and none beyond window_size: VITS
  kTransformerXl,   ///< `waves` is the order of sines and cosines
  kRelativeLogits,  ///< by the extent of each type of layer: Inkling
  kForgetGate,      ///< sums of gates: the Forgetting Transformer
  kDecomposed,      ///< vectors for rows and columns, of a window or of the whole grid
  kSwin,            ///< a table by offset in a window, one group per stage
  kLogCpb,          ///< the same by a network on the offset
  kWindowRope,      ///< rope over columns and rows, in window layers and whole-grid layers: SAM 3
  kImageRope,   ///< rope over rows and columns of patches, and time: equally many pairs each, or as given by axes_key
  kNotComputed  ///< `name` and `formula` say what it is
};

/// How rope_parameters are read if layers differ.
enum class RopeStyle : std::uint8_t {
  kOne,        ///< one dictionary; by layer type only if all its keys are layer types
  kSplit,      ///< sliding layers have their own base and no scaling: gemma3
  kSplitBoth,  ///< and scaling is for both: modernbert
  kTyped,      ///< one dictionary per layer type, the class's own if the file has none; older keys are ignored
  kListed,     ///< the same, or built from rope_theta and partial_rotary_factors by layer, rope_scaling for full ones
};

/// How a trained table of patches is resized for images of another size: the fields of `resized`.
struct TableResize {
  bool is_known = false;
  ResizeFilter filter = ResizeFilter::kBicubic;
  bool corners = false, antialias = false;
};
inline constexpr TableResize kBicubic{.is_known = true};
inline constexpr TableResize kAntialiased{.is_known = true, .antialias = true};
inline constexpr TableResize kBilinear{.is_known = true, .filter = ResizeFilter::kBilinear};
inline constexpr TableResize kBilinearCorners{.is_known = true, .filter = ResizeFilter::kBilinear, .corners = true};
inline constexpr TableResize kBilinearAntialiased{
    .is_known = true, .filter = ResizeFilter::kBilinear, .antialias = true};

/// The facts of a family that its config does not state, or states under other names; read in its modeling code.
struct Family {
  std::string_view types;      ///< model_type, separated by spaces
  std::string_view when = "";  ///< only if all of these hold: "key", "key=value", "!key", separated by spaces
  Encoding encoding = Encoding::kRope;
  bool is_causal = true;
  std::string_view causal_key = "";  ///< causal if this holds, or is_decoder
  // rope
  PairLayout layout = PairLayout::kHalves;
  std::string_view halves_unless = "";  ///< halves if this flag is false: rope_interleave
  bool reads_partial = false;           ///< partial_rotary_factor applies without any scaling too
  std::string_view partial_key = "";    ///< in addition to partial_rotary_factor
  std::string_view dims_key = "";       ///< rotary dimensions, as a number
  std::string_view half_dims_key = "";  ///< half of this / heads, at least 32: CLVP
  bool at_end = false;                  ///< they come last in a head
  bool mscale_on_softmax = false;       ///< YaRN's mscale_all_dim also multiplies the softmax scale
  bool unit_magnitude = false;          ///< YaRN without its magnitude
  bool yarn_is_longrope = false;        ///< rope_type yarn is an older name for longrope: phi3
  std::int64_t sign = 1;
  bool reads_sections = false;  ///< mrope_section applies
  SectionOrder section_order = SectionOrder::kChunked;
  std::string_view sections = "";       ///< if rope_parameters have none: "24,20,20"
  bool sections_end_with_time = false;  ///< mrope_section is height, width, time
  RopeStyle style = RopeStyle::kOne;
  bool ignores_rope_scaling = false;  ///< the older key, which the class does not read
  std::string_view base_key = "rope_theta";
  bool ignores_rope_theta = false;  ///< at the top, only base_key applies
  std::string_view local_base_key = "";
  std::string_view local_label = "", global_label = "";       ///< keys of rope_parameters that are not layer types
  std::string_view global_head_key = "";                      ///< head_dim of full layers
  std::string_view other_base_key = "", other_dims_key = "";  ///< read by other engines, not by transformers
  std::string_view ratio_key = "";                            ///< a factor of the base
  std::int64_t head_factor = 1;    ///< a head has this many times hidden_size / heads features
  double image_base = 0;           ///< of kImageRope, if no key gives it
  std::string_view axes_key = "";  ///< of kImageRope: features per axis
  bool has_thirds = false;         ///< of kImageRope: height and width have 2 ⌊D / 6⌋ features, time the rest
  // layers
  LayerRule rule = all_alike;
  std::int64_t every = 0;
  std::string_view every_key = "";
  std::string_view layers_key = "";  ///< in addition to num_hidden_layers and similar keys
  std::string_view window_key = "";  ///< in addition to sliding_window
  bool window_is_width = false;      ///< counts the keys on both sides of a query
  bool window_is_parted = false;     ///< the same; if even, one more key after the query than before: T5Gemma 2
  bool has_sinks = false;
  bool sinks_if_sliding = false;            ///< layers without a window have none
  bool is_unscaled = false;                 ///< scores are not divided by √D
  std::string_view inverse_size_keys = "";  ///< the scale is 1/D if one of these holds (Jais)
  double scale_factor = 1;                  ///< multiplies 1/√D
  std::string_view scale_factor_key = "";   ///< the same by a key (Falcon-H1's key_multiplier)
  bool has_gpt2_scale =
      false;  ///< scale_attn_weights: false is unscaled; scale_attn_by_inverse_layer_idx: layer i / (i + 1)
  std::string_view scale_key = "";       ///< the scale itself (Granite's attention_multiplier)
  std::string_view scale_root_key = "";  ///< the scale is 1/√ of this (Gemma's query_pre_attn_scalar)
  std::string_view softcap_key = "";
  /// What attention does other than a softmax over the scores of all keys that a mask allows; layer() then rejects
  /// it.
  std::string_view other_attention = "";
  std::string_view plain_type = "";  ///< the layer type to which other_attention does not apply
  std::string_view token_mixer =
      "";  ///< used by all layers instead of attention: "convolutions"; layer() rejects them
  // added vectors
  std::string_view part = "";  ///< "encoder", "decoder": one row each
  std::string_view width_key = "";
  Spacing spacing = Spacing::kPaper;
  WaveLayout waves = WaveLayout::kInterleaved;
  OddWidth odd = OddWidth::kRefuse;
  std::int64_t wave_axes = 1;                 ///< of sinusoids: coordinates of a position
  bool in_turns = false;                      ///< they range from 0 to 1
  std::int64_t offset = 0;                    ///< unused rows at the start of a learned table
  bool offset_in_table = false;               ///< max_position_embeddings counts them (RoBERTa)
  std::int64_t first_position = 0;            ///< of the first token
  bool first_after_padding = false;           ///< it is pad_token_id + 1 if the file gives that
  std::string_view length_key = "";           ///< in addition to max_position_embeddings and similar keys
  std::int64_t length = 0;                    ///< if it is in the code and not in a key
  std::int64_t extra_rows = 1;                ///< of kPatches: class and other tokens
  std::string_view image_key = "image_size";  ///< of kPatches: the image size of the table
  std::string_view rows_key = "";             ///< of kPatches: its number of rows, if a key gives it
  TableResize resize = {};                    ///< of kPatches
  // biases
  bool is_bidirectional = true;   ///< T5's buckets
  std::string_view name = "";     ///< of a scheme that is not computed
  std::string_view formula = "";  ///< of it
  std::string_view note = "";
};

std::span<const Family> rope_families() noexcept;
std::span<const Family> hybrid_families() noexcept;
std::span<const Family> added_families() noexcept;
std::span<const Family> bias_families() noexcept;
std::span<const Family> vision_families() noexcept;
std::span<const Family> audio_families() noexcept;
std::span<const Family> unknown_families() noexcept;

/// "rope", "learned" …: the scheme of an encoding.
std::string_view name_of(Encoding encoding) noexcept;

/// The rows of a model_type; empty if it is unknown. Rows whose `when` holds are parts of the model.
std::vector<const Family*> families_of(std::string_view model_type);
/// What is assumed for an unknown model_type whose config has the usual keys of rope.
std::vector<const Family*> assumed_families();
/// Whether the code of a family was read, so that its row is a fact and not an assumption.
bool is_code_read(std::string_view model_type);
/// All of them, for suggestions.
std::vector<std::string_view> known_model_types();
/// Whether one of the space-separated words is `wanted`.
bool has_word(std::string_view words, std::string_view wanted);

}  // namespace posenc::models
