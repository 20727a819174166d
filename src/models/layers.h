#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "models/config.h"

namespace posenc::models {

struct Family;

/// What a reading says beside its result; merged without repeats.
struct Remarks {
  std::vector<std::string> assumed = {}, warnings = {}, notes = {};
};

/// Notes that layers of this type have no positional encoding because the family's code has none, not the file.
void say_none(Remarks& remarks, std::string_view layer_type);

/// One layer, as far as position goes.
struct Layer {
  std::string type = {};                    ///< "full_attention", …; "" where the model has one kind alone
  bool rotates = true;                      ///< false: no position here
  double base = 0;                          ///< where each layer has its own
  std::optional<std::int64_t> window = {};  ///< the same
};

/// What a rule works on: the layers, with their types where the file lists them.
struct LayerFacts {
  const Config& config;
  const Family& family;
  Remarks& remarks;
  std::vector<Layer>& layers;
  bool are_listed = false;
};

/// How a family's layers differ from each other. A rule fills types where the file does not list them, and says which
/// layers rotate. `every` and `every_key` of the family are its period.
using LayerRule = void (*)(LayerFacts&);

void all_alike(LayerFacts& facts);
void all_full(LayerFacts& facts);         ///< full_attention where nothing is listed
void all_hybrid(LayerFacts& facts);       ///< attention beside a state space in every layer: falcon_h1, zaya
void all_linear(LayerFacts& facts);       ///< no attention unless the file lists some: granitemoehybrid
void by_no_rope_list(LayerFacts& facts);  ///< no_rope_layers: 1 rotates, 0 does not; else every n-th does not
void sliding_by_no_rope_list(
    LayerFacts& facts);  ///< and where use_sliding_window those that do not rotate slide: smollm3
void chunks_by_no_rope_list(LayerFacts& facts);  ///< the same; layers that rotate see their own chunk alone: llama4
void only_sliding_rotate(LayerFacts& facts);     ///< every n-th is full and does not rotate: cohere2, afmoe
void sliding_or_all_rotate(LayerFacts& facts);   ///< the same, but all rotate in a model without any window: exaone4
void nth_is_full(LayerFacts& facts);             ///< every n-th layer, counted from 1, is full, the others slide
void nth_and_last_are_full(LayerFacts& facts);   ///< the same, and the last one always: gemma4
void nth_is_full_from_0(LayerFacts& facts);      ///< counted from 0: modernbert, cwm
void nth_is_full_from_end(LayerFacts& facts);    ///< counted from the last, and full ones do not rotate: muse_glimmer
void first_and_nth_are_full(LayerFacts& facts);  ///< mimo_v2
void nth_is_attention(LayerFacts& facts);        ///< the others are linear: qwen3_next
void nth_is_linear(LayerFacts& facts);           ///< the others are attention, with a window if one is given: minimax
void sliding_after_some(LayerFacts& facts);      ///< from max_window_layers on, where use_sliding_window: qwen2
void sliding_before_some(LayerFacts& facts);     ///< every other one up to there: qwen2_moe
void sliding_if_given(LayerFacts& facts);        ///< all layers slide where sliding_window has a value: mistral
void by_base_list(LayerFacts& facts);            ///< a list with the base of each layer; 0 or null: no position
void by_cross_list(LayerFacts& facts);           ///< cross_attention_layers attend to an image without rope: mllama
void by_attention_list(LayerFacts& facts);    ///< the family's key lists the layers that are attention: lfm2, bamba
void by_zambas_period(LayerFacts& facts);     ///< the third, and by attn_layer_period from the fourth on
void by_attention_period(LayerFacts& facts);  ///< attn_layer_period and attn_layer_offset: jamba
void by_delta_list(LayerFacts& facts);    ///< linear_attn_config.kda_layers, counted from 1, are linear: kimi_linear
void by_sliding_list(LayerFacts& facts);  ///< the family's key lists the layers that slide: baichuan_m1
void by_repeated_types(LayerFacts& facts);       ///< block_types over and over: recurrent_gemma
void by_letters(LayerFacts& facts);              ///< hybrid_override_pattern, M*-E: nemotron_h
void by_compress_ratios(LayerFacts& facts);      ///< deepseek_v4: 0 slides ("main"), others compress
void by_attention_types(LayerFacts& facts);      ///< attention_types, global and local in turn: gpt_neo
void by_window_list(LayerFacts& facts);          ///< all slide, and the family's window_key may be a list: longformer
void by_local_ids(LayerFacts& facts);            ///< local_layer_ids slide: inkling
void only_attention_in_list(LayerFacts& facts);  ///< the file's list, where attention itself has no position: jamba

/// What every layer of a model is: by layer_types or the family's own list, else by its rule.
/// Throws: Error for lists that do not fit the number of layers.
std::vector<Layer> layers_of(const Config& config, const Family& family, std::int64_t count, Remarks& remarks);

/// Whether a type of layer is attention, and not a state space, a convolution or a linear recurrence. A type that is not
/// known counts as attention.
bool is_attention(std::string_view layer_type);
/// Whether a type of layer is known.
bool is_known_type(std::string_view layer_type);
/// Whether it sees a window of keys.
bool is_sliding(std::string_view layer_type);

}  // namespace posenc::models
