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

/// Layers of a model that treat position in the same way: every field below applies to each of them.
struct LayerGroup {
  std::vector<std::int64_t> layers = {};  ///< in ascending order; empty if the file does not list them
  std::string layer_type = {};            ///< "sliding_attention", "encoder" …; "" if all layers are of one kind
  std::string scheme_name = {};           ///< "rope", "alibi" …
  Boxed<Scheme> scheme = {};              ///< empty if posenc does not compute it; `formula` then describes it
  std::string formula = {};         ///< of a scheme that posenc does not compute, and why; "" if `scheme` has a value
  bool is_unscaled = false;         ///< scores are not divided by √D (T5)
  std::int64_t first_position = 0;  ///< position of the first token (RoBERTa and M2M100: 2)
  std::optional<double> scale = {};         ///< scale of the scores, if it is not 1/√D (Gemma 2, Granite)
  std::optional<std::int64_t> window = {};  ///< a query attends to keys less than this many tokens away; empty: all
  std::optional<std::int64_t> chunk = {};   ///< a query attends to keys in its own chunk of this length (Llama 4)
  std::optional<bool> is_causal = {};       ///< empty if the file does not specify it
  double softcap = 0;                       ///< scores become softcap·tanh(score/softcap); 0: no cap
  bool has_sinks = false;                   ///< a trained logit per head takes part in each softmax (gpt-oss)
  std::optional<Temperature> temperature = {};
  std::string other_attention = {};  ///< what this attention does that posenc does not compute; "": nothing
  std::string token_mixer = {};      ///< what these layers have instead of attention ("convolutions"); "": attention
  std::optional<std::int64_t> heads = {},
                              key_heads = {};       ///< of queries, and of keys; empty if they are not one number
  std::optional<std::int64_t> trained_length = {};  ///< if it is not the model's (Whisper's encoder)
  bool operator==(const LayerGroup&) const = default;
};

/// A part of a model other than the one that generates text: a vision or audio encoder, a codec, a draft model.
struct ModelPart {
  std::string name = {};  ///< the key of its config without "_config": "vision", "audio" …
  std::string model_type = {};
  std::vector<LayerGroup> groups = {};
  std::optional<std::int64_t> trained_length = {};
};

/// What transformers 4 makes of a config with rope_parameters, the key of transformers 5 that it does not read.
struct OlderReading {
  bool is_known = true;             ///< the family is in transformers 4
  std::optional<double> base = {};  ///< its default instead of the file's
  bool drops_scaling = false;       ///< frequencies are not scaled
  bool is_by_type = false;          ///< the base of sliding layers has a key of its own, and stays
  bool operator==(const OlderReading&) const = default;
};

/// How a model encodes position, according to its own files.
struct Model {
  std::string model_type = {};
  std::vector<LayerGroup> groups = {};  ///< of the part that generates text, or of the only part
  std::vector<ModelPart> parts = {};    ///< all other parts, in the order of the config
  std::optional<std::int64_t> trained_length = {};
  std::optional<std::int64_t> usable_length = {};
  // keys that other engines read and transformers does not
  std::optional<double> attn_factor = {};             ///< a factor on YaRN's magnitude (vLLM)
  std::optional<double> yarn_ratio = {};              ///< max_position_embeddings over YaRN's original (exllamav3)
  std::optional<double> other_base = {};              ///< attn_config.rope_theta (DBRX)
  std::optional<std::int64_t> other_rotary_dim = {};  ///< rotary_dim (MiniMax-M3)
  /// What transformers 5 rotates of each head, where that is not what the model was trained with (MiniMax-M2,
  /// RecurrentGemma); the groups have the model's own.
  std::optional<std::int64_t> hf_rotary_dim = {};
  std::optional<OlderReading> older_reading = {};  ///< empty if it is the same
  /// The family's source code was not consulted, or its model_type is unknown: all of the above is an assumption.
  bool is_assumed = false;
  std::vector<std::string> assumed = {};   ///< what the file does not specify, and the value that is assumed
  std::vector<std::string> warnings = {};  ///< keys that are ignored, renamed, or contradict each other
  std::vector<std::string> notes = {};     ///< what else the family does with position
};

/// Reads a Hugging Face config.json: the keys of transformers 4 (rope_theta, rope_scaling) and 5 (rope_parameters).
/// A key that the file omits has its class's default in transformers 5.16 and is listed in `assumed`. An unknown
/// model_type with the keys of rope (rope_theta, num_attention_heads …) is read as most rope families are, and marked
/// `is_assumed`; without those keys it is rejected, as an unknown rope_type always is.
/// Throws: Error that names key, value and rule; as parse_json for text that is not JSON.
Model read_model(std::string_view config_json);

/// A known model_type of config.json.
struct ModelType {
  std::string_view name;
  std::string_view encodes_by;  ///< "rope", "learned", "alibi" …; "parts" for a model composed only of parts
};
/// All known model types, each once, in alphabetical order.
std::vector<ModelType> model_types();

/// Reads the metadata of a .gguf file, and its rope_freqs tensor if it has one; `file` is what the head was read
/// from. The pair layout is that of the weights in this file: llama.cpp stores Llama's interleaved.
/// Throws: Error that names key, value and rule.
Model read_model(const GgufHead& head, std::span<const std::byte> file);

/// A tensor among a model's weights that holds positions: a table, or saved frequencies.
struct PositionTable {
  std::string name = {};  ///< transformer.wpe.weight
  std::string file = {};  ///< model-00001-of-00002.safetensors, beside config.json
  std::vector<std::int64_t> shape = {};
};

/// The tensors that hold positions, recognised by name, in a model.safetensors.index.json; shapes stay empty.
/// Throws: Error for text that is not such an index.
std::vector<PositionTable> position_tables(std::string_view index_json);
/// Whether a tensor of this name holds positions, by the naming of transformers.
bool is_position_table(std::string_view name);
/// Adds a warning if a table contradicts the config: a learned table with a different number of rows or width.
void check_tables(Model& model, std::span<const PositionTable> tables);

/// "0-31", "0-2,4-6", or "" for none.
std::string layer_ranges(std::span<const std::int64_t> layers);

}  // namespace posenc
