#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string_view>
#include <vector>

#include "models/layers.h"
#include "posenc/model.h"
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
  kPatches,  ///< a table by image patch: (image_size / patch_size)^2 rows and some more, `patches`
  kSinusoidal,
  kNone,
  kAlibi,
  kAlibiOfQuotient,  ///< divided by √D as the scores are, slopes rounded to bf16: Falcon
  kT5,
  kDeberta,
  kShaw,
  kPatchRope,       ///< rope over patches with coordinates from −1 to 1
  kShawValues,      ///< with vectors for values, and none beyond window_size: VITS
  kTransformerXl,   ///< `waves` has the order of sines and cosines
  kRelativeLogits,  ///< by the extent of each type of layer: Inkling
  kForgetGate,      ///< sums of gates: the Forgetting Transformer
  kDecomposed,  ///< vectors for rows and columns, of the whole grid, or of a window in the layers that the file lists
  kDecomposedWhole,  ///< the same; the file lists the layers of the whole grid: SAM
  kSwin,             ///< a table by offset in a window, one group per stage
  kLogCpb,           ///< the same by a network on the offset
  kWindowRope,       ///< rope over columns and rows, in window layers and whole-grid layers: SAM 3
  kImageRope,  ///< rope over rows and columns of patches, and time: equally many pairs each, or as the file gives them
  kVideoRope,   ///< the same; height and width have 2 ⌊D / 6⌋ features, time the rest: Wan
  kNotComputed  ///< `name` and `formula` say what it is
};

/// How rope_parameters, and the older rope_scaling and rope_theta, are read.
enum class RopeStyle : std::uint8_t {
  kOne,             ///< one dictionary; by layer type only if all its keys are layer types
  kOwnKeys,         ///< the same; at the top, only base_key and partial_key apply: gpt_neox
  kNewest,          ///< the same; rope_scaling is ignored: cohere2_moe
  kYarnIsLongrope,  ///< the same; rope_type yarn is an older name for longrope: phi3
  kSplit,           ///< sliding layers have their own base and no scaling: gemma3
  kSplitBoth,       ///< and scaling is for both: modernbert
  kLabelled,        ///< as kSplit, in dictionaries main and compress; YaRN is never late: deepseek_v4
  kTyped,           ///< one dictionary per layer type, the class's own if the file has none; older keys are ignored
  kListed,  ///< the same, or built from rope_theta and partial_rotary_factors by layer, rope_scaling for full ones
};

/// Which keys a query attends to, if the file does not say otherwise.
enum class Mask : std::uint8_t {
  kOfTable,  ///< an encoder's and a decoder's own, else what most rows of the table have
  kCausal,
  kBidirectional,
  kByKey  ///< causal if the key `causal` holds: xlm
};

/// What scores are multiplied by: 1/√D if nothing else is given.
struct ScoreScale {
  std::string_view key = "";       ///< the scale itself (Granite's attention_multiplier)
  std::string_view root_key = "";  ///< or 1/√ of this (Gemma's query_pre_attn_scalar)
  bool is_none = false;
  bool is_capped = false;  ///< by attn_logit_softcapping
};
inline constexpr ScoreScale kUnscaled{.is_none = true};
inline constexpr ScoreScale kByMultiplier{.key = "attention_multiplier"};
inline constexpr ScoreScale kByScalar{.root_key = "query_pre_attn_scalar"};
inline constexpr ScoreScale kByScalarCapped{.root_key = "query_pre_attn_scalar", .is_capped = true};

/// How far sliding layers see.
struct WindowKey {
  std::string_view key = "";  ///< in addition to sliding_window
  bool is_width = false;      ///< counts the keys on both sides of a query
};

/// How sinusoids are arranged: the fields of `sinusoidal`.
struct Sinusoids {
  WaveLayout layout = WaveLayout::kInterleaved;
  Spacing spacing = Spacing::kPaper;
  OddWidth odd = OddWidth::kRefuse;
  std::int64_t axes = 1;  ///< coordinates of a position
  bool turns = false;     ///< they range from 0 to 1
};
inline constexpr Sinusoids kSinCos{.layout = WaveLayout::kSinCos};
inline constexpr Sinusoids kTrimmed{.layout = WaveLayout::kSinCos, .odd = OddWidth::kTrim};
inline constexpr Sinusoids kInclusive{.layout = WaveLayout::kSinCos, .spacing = Spacing::kInclusive};
inline constexpr Sinusoids kFairseq{
    .layout = WaveLayout::kSinCos, .spacing = Spacing::kInclusive, .odd = OddWidth::kZero};
inline constexpr Sinusoids kGrid{.layout = WaveLayout::kSinCos, .axes = 2};
inline constexpr Sinusoids kDetrGrid{.axes = 2, .turns = true};

/// The position of the first token, and the row of a learned table that it has.
struct FirstPosition {
  std::int64_t position = 0;
  bool is_after_padding = false;  ///< it is pad_token_id + 1 if the file gives that
  bool is_in_table = false;       ///< and max_position_embeddings counts the rows before it
  std::int64_t offset = 0;  ///< unused rows at the start of the table, which max_position_embeddings does not count
};
inline constexpr FirstPosition kRoberta{.position = 2, .is_after_padding = true, .is_in_table = true};
inline constexpr FirstPosition kAfterPadding{.position = 2, .is_after_padding = true};
inline constexpr FirstPosition kOffset2{.offset = 2};

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

/// A trained table of patches.
struct PatchTable {
  std::int64_t extra = 1;  ///< rows of class and other tokens
  TableResize resize = {};
  std::string_view image_key = "image_size";  ///< the image size of the table
  std::string_view rows_key = "";             ///< its number of rows, if a key gives it
};

struct Family;
struct PartReading;

/// A group of one layer, or of all if they are alike (its `layers` are then empty), and what determines it.
struct GroupFacts {
  LayerGroup& group;
  const Layer& layer;
  const Config& config;
  const Family& family;
};

/// A rotation that was read, and what determines it.
struct RotationFacts {
  Rope& rope;
  const Config& config;
  const Family& family;
  PartReading& reading;
  Remarks& remarks;
};

/// How a family rotates.
struct Rotary {
  PairLayout layout = PairLayout::kHalves;
  bool reads_interleave = false;      ///< halves if rope_interleave is false
  bool reads_partial = false;         ///< partial_rotary_factor applies without any scaling too
  std::string_view partial_key = "";  ///< in addition to partial_rotary_factor
  std::string_view dims_key = "";     ///< rotary dimensions, as a number; those of kLatentDims come last in a head
  std::string_view sections = "";     ///< mrope_section: "" if it is not read, kGiven, or its default ("24,20,20")
  SectionOrder section_order = SectionOrder::kChunked;
  RopeStyle style = RopeStyle::kOne;
  std::string_view base_key = "rope_theta", local_base_key = "";
  double image_base = 0;  ///< over images, if no key gives it
  void (*adjust)(const RotationFacts&) = nullptr;
};
inline constexpr std::string_view kLatentDims = "qk_rope_head_dim", kGiven = "given";
/// MLA: one shared key head, its block at the end of a head.
inline constexpr Rotary kLatent{.layout = PairLayout::kInterleavedToHalves, .dims_key = kLatentDims};
inline constexpr Rotary kLatentByKey{
    .layout = PairLayout::kInterleavedToHalves, .reads_interleave = true, .dims_key = kLatentDims};
inline constexpr Rotary kInterleaved{.layout = PairLayout::kInterleaved};
inline constexpr Rotary kPartial{.reads_partial = true};
inline constexpr Rotary kOverPatches{.section_order = SectionOrder::kRestarting, .image_base = 10000};

/// How an indexer, which chooses the keys that queries attend to, rotates its own queries and keys.
enum class Indexer : std::uint8_t {
  kNone,
  kHalvesFirst,       ///< in halves, at the start of its heads, beside interleaved MLA: DeepSeek V3.2
  kInterleavedFirst,  ///< in the pairs of the attention, at the start of its heads: GLM-5
  kAsAttention,       ///< in the pairs and at the place of the attention: DeepSeek V4, MiniMax-M3
};

/// The facts of a family that its config does not state, or states under other names; read in its modeling code.
/// What one family alone does is a function beside its row: `adjust`, `rope.adjust` or `layers.rule`.
struct Family {
  std::string_view types;      ///< model_type, separated by spaces
  std::string_view when = "";  ///< only if all of these hold: "key", "key=value", "!key", separated by spaces
  Encoding encoding = Encoding::kRope;
  Mask mask = Mask::kOfTable;
  std::string_view part = "";  ///< "encoder", "decoder": one row each, or kEncoderDecoder
  // layers
  Pattern layers = {};
  std::string_view layers_key = "";  ///< in addition to num_hidden_layers and similar keys
  std::int64_t head_factor = 1;      ///< a head has this many times hidden_size / heads features
  // attention
  WindowKey window = {};
  ScoreScale scale = {};
  bool has_sinks = false;
  /// What attention does other than a softmax over the scores of all keys that a mask allows; layer() then rejects
  /// it.
  std::string_view other_attention = "";
  std::string_view token_mixer =
      "";  ///< used by all layers instead of attention ("convolutions"); layer() rejects them
  void (*adjust)(const GroupFacts&) = nullptr;  ///< called for each layer of attention
  Indexer indexer = Indexer::kNone;
  std::string_view indexed = "";  ///< the type of the layers that have one; "": all
  // position
  Rotary rope = {};
  std::string_view width_key = "";   ///< in addition to hidden_size and similar keys
  std::string_view length_key = "";  ///< in addition to max_position_embeddings and similar keys
  Sinusoids waves = {};
  FirstPosition first = {};
  PatchTable patches = {};
  std::string_view name = "", formula = "";  ///< of a scheme that is not computed
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
