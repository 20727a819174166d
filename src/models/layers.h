#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/config.h"

namespace posenc::models {

struct Family;

/// Remarks of a reader beside its result; merged without duplicates.
struct Remarks {
  std::vector<std::string> assumed = {}, warnings = {}, notes = {};
};

/// Notes that layers of this type have no positional encoding because of the family's code, not the file.
void note_none(Remarks& remarks, std::string_view layer_type);

/// One layer, as far as position is concerned.
struct Layer {
  std::string type = {};                    ///< "full_attention", …; "" if the model has only one kind
  bool rotates = true;                      ///< false: no position in this layer
  double base = 0;                          ///< if each layer has its own
  std::optional<std::int64_t> window = {};  ///< the same
};

/// The input of a rule: the layers, with their types if the file lists them.
struct LayerFacts {
  const Config& config;
  const Family& family;
  Remarks& remarks;
  std::vector<Layer>& layers;
  bool is_listed = false;
};

/// Fills in types that the file does not list, and determines which layers rotate.
using LayerRule = void (*)(LayerFacts&);

inline constexpr std::string_view kFull = "full_attention", kSliding = "sliding_attention",
                                  kLinear = "linear_attention";

void by_pattern(LayerFacts& facts);           ///< as the family's Pattern says
void sliding_if_given(LayerFacts& facts);     ///< all layers slide if sliding_window has a value: mistral
void sliding_after_some(LayerFacts& facts);   ///< from max_window_layers on, with use_sliding_window: qwen2
void sliding_before_some(LayerFacts& facts);  ///< every other layer before it: qwen2_moe
/// no_rope_layers: 1 rotates, 0 does not; else every n-th does not.
void sliding_by_no_rope_list(
    LayerFacts& facts);                          ///< with use_sliding_window, those that do not rotate slide: smollm3
void chunks_by_no_rope_list(LayerFacts& facts);  ///< those that rotate have chunks: llama4
void by_base_list(LayerFacts& facts);       ///< by_pattern, and layer_rope_theta lists bases; 0 or null: no position
void by_hybrid_pattern(LayerFacts& facts);  ///< by_pattern, and hybrid_layer_pattern is ignored: mimo_v2
void window_on_full(LayerFacts& facts);     ///< by_pattern, and full layers have a window if one is given: minimax
void by_attention_period(LayerFacts& facts);  ///< attn_layer_period and attn_layer_offset: jamba
void by_zambas_period(LayerFacts& facts);     ///< the third, and by attn_layer_period from the fourth on
void by_repeated_types(LayerFacts& facts);    ///< block_types repeated: recurrent_gemma
void by_letters(LayerFacts& facts);           ///< hybrid_override_pattern, M*-E: nemotron_h
void by_compress_ratios(LayerFacts& facts);   ///< deepseek_v4: 0 slides ("main"), others compress
void by_attention_types(LayerFacts& facts);   ///< attention_types, alternating global and local: gpt_neo
void by_window_list(LayerFacts& facts);       ///< all slide, and the family's window may be a list: longformer

/// How a family's layers differ from each other: every n-th is picked, or those that the file lists.
struct Pattern {
  std::string_view picked = kFull, others = kSliding;  ///< types of layers
  std::int64_t every = 0;                              ///< n; 0: all are alike
  std::string_view every_key = "";                     ///< a key that gives it
  std::int64_t shift = 1;    ///< layer i is picked if i + shift is a multiple of n: 1 counts from 1, 0 from 0
  bool is_from_end = false;  ///< counted from the last layer instead
  bool picks_first = false, picks_last = false;  ///< and the first, or the last, too
  std::string_view list_key = "";                ///< a list of the layers that are picked
  std::int64_t list_from = 0;                    ///< the number of the first layer in it
  bool lists_all = false;                        ///< without it, none is picked
  bool lists_others = false;                     ///< or of the others
  bool only_others_rotate = false;
  bool needs_window = false;  ///< if sliding_window is not given, all are alike
  LayerRule rule = by_pattern;
  bool operator==(const Pattern&) const = default;
};
inline constexpr Pattern kAllFull{.every = 1};
inline constexpr Pattern kSlidingIfGiven{.rule = sliding_if_given};

/// Determines each layer of a model: by layer_types or the family's own list, else by its rule.
/// Throws: Error for lists that do not fit the number of layers.
std::vector<Layer> layers_of(const Config& config, const Family& family, std::int64_t count, Remarks& remarks);

/// Whether a layer type is attention rather than a state space, a convolution or a linear recurrence. An unknown type
/// counts as attention.
bool is_attention(std::string_view layer_type);
/// Whether a type of layer is known.
bool is_known_type(std::string_view layer_type);
/// Whether it attends to a window of keys.
bool is_sliding(std::string_view layer_type);

}  // namespace posenc::models
