#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "posenc/schemes/rope.h"
#include "posenc/schemes/sinusoidal.h"

namespace posenc::models {

/// What a family does with position.
enum class Encoding : std::uint8_t { kRope, kLearned, kSinusoidal, kNone, kAlibi, kT5, kOther };

/// How a family's layers differ from each other where the config does not list them.
enum class LayerRule : std::uint8_t {
  kAlike,
  kNoRopeList,      ///< no_rope_layers: 1 turns, 0 does not; else every n-th does not turn
  kSlidingTurns,    ///< only layers with a sliding window turn; every n-th has none
  kSlidingOrAll,    ///< the same, but all turn in a model without any window
  kLocalGlobal,     ///< every n-th layer, counted from 1, is global; local ones have a base of their own
  kGlobalFirst,     ///< the same, counted from 0
  kAttentionEvery,  ///< every n-th layer is attention, the others know no position
  kBaseList,        ///< a list with the base of each layer; 0 or null: no position
};

/// The facts of a family that its config does not say, or says under names of its own.
struct Family {
  std::string_view types;      ///< model_type, several divided by spaces
  std::string_view when = "";  ///< only where this holds: "key", "key=value", "!key"
  Encoding encoding = Encoding::kRope;
  // rope
  PairLayout layout = PairLayout::kHalves;
  double base = 10000.0;              ///< where the config has none
  double partial = 1.0;               ///< share of a head that turns, where the config has none
  std::string_view partial_key = "";  ///< beside partial_rotary_factor
  std::string_view dims_key = "";     ///< features that turn, as a number
  std::int64_t dims = 0;              ///< where dims_key is missing
  bool at_end = false;                ///< the block that turns stands at the end of a head
  bool mscale_on_softmax = false;     ///< YaRN's mscale_all_dim also multiplies the softmax scale
  bool unit_magnitude = false;        ///< YaRN without its magnitude
  std::int64_t sign = 1;
  SectionOrder section_order = SectionOrder::kChunked;
  bool sections_end_with_time = false;  ///< mrope_section is height, width, time
  std::string_view base_key = "rope_theta";
  std::string_view global_head_key = "";  ///< size of a head in global layers
  // layers
  LayerRule rule = LayerRule::kAlike;
  std::int64_t every = 0;
  std::string_view every_key = "";
  std::string_view local_base_key = "";
  double local_base = 0;  ///< 0: the same
  // added vectors
  std::string_view part = "";  ///< "encoder", "decoder": a row for each
  Spacing spacing = Spacing::kPaper;
  WaveLayout waves = WaveLayout::kInterleaved;
  std::int64_t offset = 0;           ///< unused rows in front of a learned table
  bool offset_in_table = false;      ///< max_position_embeddings counts them (RoBERTa)
  std::int64_t first_position = 0;   ///< of the first token
  bool is_unscaled = false;          ///< scores are not divided by √D
  std::string_view length_key = "";  ///< beside max_position_embeddings and its like
  std::string_view name = "";        ///< of a scheme that is none of the above
  std::string_view note = "";
};

/// The rows of a model_type; empty where it is unknown.
std::vector<const Family*> families_of(std::string_view model_type);
/// All of them, for suggestions.
std::vector<std::string_view> known_model_types();

/// What llama.cpp does with the weights of an architecture.
struct Architecture {
  std::string_view names;  ///< general.architecture, several divided by spaces
  Encoding encoding = Encoding::kRope;
  PairLayout layout = PairLayout::kHalves;
  SectionOrder section_order = SectionOrder::kChunked;
  bool at_end = false;
  LayerRule rule = LayerRule::kAlike;
  std::int64_t every = 0;
  double local_base = 0;
  std::string_view name = "";
  std::string_view note = "";
};
/// nullptr where it is unknown.
const Architecture* architecture_named(std::string_view name);
std::vector<std::string_view> known_architectures();

}  // namespace posenc::models
