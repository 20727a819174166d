#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "posenc/attention.h"
#include "posenc/scheme.h"

namespace posenc {

struct GgufHead;

/// Layers of a model that treat position in the same way: all fields below hold for every one of them.
struct LayerGroup {
  std::vector<std::int64_t> layers = {};  ///< in order; empty where the file does not say which
  std::string layer_type = {};       ///< "sliding_attention", "encoder" …; "" where the model has one kind alone
  std::string scheme_name = {};      ///< "rope", "alibi" …
  OptionalScheme scheme = {};        ///< empty where this build does not compute it: `formula` says what it is
  std::string formula = {};          ///< of a scheme that is not computed, and why; "" where `scheme` has a value
  bool is_unscaled = false;          ///< scores are not divided by √D (T5)
  std::int64_t first_position = 0;   ///< of the first token (RoBERTa and M2M100: 2)
  std::optional<double> scale = {};  ///< of scores, where it is not 1/√D (Gemma 2, Granite)
  std::optional<std::int64_t> window = {};  ///< a query sees keys less than this many tokens away; empty: all
  std::optional<std::int64_t> chunk = {};   ///< a query sees the keys of its own chunk of this length (Llama 4)
  std::optional<bool> is_causal = {};       ///< empty where the file does not say it
  double softcap = 0;                       ///< scores become softcap·tanh(score/softcap); 0: they stay
  bool has_sinks = false;                   ///< a trained logit per head joins each softmax (GPT-OSS)
  std::optional<Temperature> temperature = {};
  std::string other_attention = {};  ///< what attention does here that is not computed; "": nothing else
  std::string token_mixer = {};      ///< what these layers have instead of attention ("convolutions"); "": attention
  bool operator==(const LayerGroup&) const = default;
};

/// A part of a model beside the one that writes text: a vision or audio encoder, a codec, a draft model.
struct ModelPart {
  std::string name = {};  ///< the key of its config without "_config": "vision", "audio" …
  std::string model_type = {};
  std::vector<LayerGroup> groups = {};
  std::optional<std::int64_t> trained_length = {};
};

/// How a model encodes position, as its own files say.
struct Model {
  std::string model_type = {};
  std::vector<LayerGroup> groups = {};  ///< of the part that writes text, or of the only part
  std::vector<ModelPart> parts = {};    ///< all other parts, in the order of the config
  std::optional<std::int64_t> trained_length = {};
  std::optional<std::int64_t> usable_length = {};
  // what other engines read and transformers does not
  std::optional<double> attn_factor = {};             ///< a factor on YaRN's magnitude (vLLM)
  std::optional<double> other_base = {};              ///< attn_config.rope_theta (DBRX)
  std::optional<std::int64_t> other_rotary_dim = {};  ///< rotary_dim (MiniMax-M2)
  /// The code of this family was not read, or its model_type is unknown: all of the above is an assumption.
  bool is_assumed = false;
  std::vector<std::string> assumed = {};   ///< what the file does not say, and the value that was taken
  std::vector<std::string> warnings = {};  ///< keys that are ignored, renamed, or contradict each other
  std::vector<std::string> notes = {};     ///< what else the family does with position
};

/// Reads a Hugging Face config.json: the keys of transformers 4 (rope_theta, rope_scaling) and 5 (rope_parameters).
/// A key that the file omits has its class's default in transformers 5.16, and `assumed` says so. An unknown
/// model_type is read as most families with rope are, and marked `is_assumed`, where the file has the keys of rope
/// (rope_theta, num_attention_heads …); without them it is an error, as an unknown rope_type always is. Throws: Error
/// that names key, value and rule; as parse_json for text that is no JSON.
Model read_model(std::string_view config_json);

/// A model_type of config.json that is known.
struct ModelType {
  std::string_view name;
  std::string_view encodes_by;  ///< "rope", "learned", "alibi" …; "parts" of a model that has none of its own
};
/// All of them, each once, in alphabetical order.
std::vector<ModelType> model_types();

/// Reads the metadata of a .gguf file, and its rope_freqs tensor where it has one; `file` is what the head was read
/// from. The layout is that of the weights in this file: llama.cpp stores those of Llama interleaved.
/// Throws: Error that names key, value and rule.
Model read_model(const GgufHead& head, std::span<const std::byte> file);

/// A tensor of a model's weights that holds positions: a table, or frequencies that were saved.
struct PositionTable {
  std::string name = {};  ///< transformer.wpe.weight
  std::string file = {};  ///< model-00001-of-00002.safetensors, beside config.json
  std::vector<std::int64_t> shape = {};
};

/// The tensors that hold positions, by their names, in a model.safetensors.index.json; shapes stay empty.
/// Throws: Error for text that is no such index.
std::vector<PositionTable> position_tables(std::string_view index_json);
/// Whether a tensor of this name holds positions, as transformers names them.
bool is_position_table(std::string_view name);
/// Adds to the warnings where a table contradicts the config: a learned table with other rows or another width.
void check_tables(Model& model, std::span<const PositionTable> tables);

/// "0-31", "0-2,4-6", or "" for none.
std::string layer_ranges(std::span<const std::int64_t> layers);

}  // namespace posenc
