#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "models/config.h"

namespace posenc::models {

struct Family;

/// Remarks of a reader beside its result; merged without duplicates.
struct Remarks {
  std::vector<std::string> assumed = {}, warnings = {}, notes = {};
};

/// Notes that layers of this type have no positional encoding because of the family's code, not the file.
void say_none(Remarks& remarks, std::string_view layer_type);

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
  bool are_listed = false;
};

/// How a family's layers differ from each other. A rule fills in types that the file does not list, and determines
/// which layers rotate. `every` and `every_key` of the family are its period.
using LayerRule = void (*)(LayerFacts&);

void all_alike(LayerFacts& facts);
void all_full(LayerFacts& facts);         ///< full_attention if nothing is listed
void all_hybrid(LayerFacts& facts);       ///< attention alongside a state space in every layer: falcon_h1, zaya
void all_linear(LayerFacts& facts);       ///< no attention unless the file lists some: granitemoehybrid
void by_no_rope_list(LayerFacts& facts);  ///< no_rope_layers: 1 rotates, 0 does not; else every n-th does not
void sliding_by_no_rope_list(
    LayerFacts& facts);  ///< and with use_sliding_window those that do not rotate slide: smollm3
void chunks_by_no_rope_list(LayerFacts& facts);  ///< the same; layers that rotate have chunks: llama4
void only_sliding_rotate(LayerFacts& facts);     ///< every n-th is full and does not rotate: cohere2, afmoe
void sliding_or_all_rotate(LayerFacts& facts);   ///< the same, but all rotate in a model without any window: exaone4
void nth_is_full(LayerFacts& facts);             ///< every n-th layer, counted from 1, is full, the others slide
void nth_and_last_are_full(LayerFacts& facts);   ///< the same, and the last one always: gemma4
void nth_is_full_from_0(LayerFacts& facts);      ///< counted from 0: modernbert, cwm
void nth_is_full_from_end(LayerFacts& facts);    ///< counted from the last, and full ones do not rotate: muse_glimmer
void first_and_nth_are_full(LayerFacts& facts);  ///< mimo_v2
void nth_is_attention(LayerFacts& facts);        ///< the others are linear: qwen3_next
void nth_is_linear(LayerFacts& facts);           ///< the others are attention, with a window if one is given: minimax
void sliding_after_some(LayerFacts& facts);      ///< from max_window_layers on, with use_sliding_window: qwen2
void sliding_before_some(LayerFacts& facts);     ///< every other layer before it: qwen2_moe
void sliding_if_given(LayerFacts& facts);        ///< all layers slide if sliding_window has a value: mistral
void by_base_list(LayerFacts& facts);            ///< a list with the base of each layer; 0 or null: no position
void by_cross_list(LayerFacts& facts);           ///< cross_attention_layers attend to an image without rope: mllama
void by_attention_list(LayerFacts& facts);    ///< the family's key lists the layers that are attention: lfm2, bamba
void by_zambas_period(LayerFacts& facts);     ///< the third, and by attn_layer_period from the fourth on
void by_attention_period(LayerFacts& facts);  ///< attn_layer_period and attn_layer_offset: jamba
void by_delta_list(LayerFacts& facts);    ///< linear_attn_config.kda_layers, counted from 1, are linear: kimi_linear
void by_sliding_list(LayerFacts& facts);  ///< the family's key lists the layers that slide: baichuan_m1
void by_repeated_types(LayerFacts& facts);       ///< block_types repeated: recurrent_gemma
void by_letters(LayerFacts& facts);              ///< hybrid_override_pattern, M*-E: nemotron_h
void by_compress_ratios(LayerFacts& facts);      ///< deepseek_v4: 0 slides ("main"), others compress
void by_attention_types(LayerFacts& facts);      ///< attention_types, alternating global and local: gpt_neo
void by_window_list(LayerFacts& facts);          ///< all slide, and the family's window_key may be a list: longformer
void by_local_ids(LayerFacts& facts);            ///< local_layer_ids slide: inkling
void only_attention_in_list(LayerFacts& facts);  ///< the file's list, if attention itself has no position: jamba

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
