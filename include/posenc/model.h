#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "posenc/gguf.h"
#include "posenc/scheme.h"

namespace posenc {

/// Layers of a model that know position in the same way.
struct LayerGroup {
  std::vector<std::int64_t> layers = {};  ///< in order; empty where the file does not say which
  std::string layer_type = {};        ///< "sliding_attention", "encoder" …; "" where the model has one kind alone
  std::string scheme_name = {};       ///< "rope", "alibi" …
  std::optional<Scheme> scheme = {};  ///< empty where this build has no scheme of that name
  double softmax_factor = 1.0;        ///< on all scores of these layers, beside 1/√D
  bool is_unscaled = false;           ///< scores are not divided by √D (T5)
  std::int64_t first_position = 0;    ///< of the first token (RoBERTa and M2M100: 2)
};

/// What a model's own files say of position.
struct Model {
  std::string model_type = {};
  std::vector<LayerGroup> groups = {};
  std::optional<std::int64_t> trained_length = {};
  std::optional<std::int64_t> usable_length = {};
  std::optional<double> attn_factor =
      {};  ///< a factor on YaRN's magnitude, which vLLM reads and transformers does not
  std::vector<std::string> assumed = {};   ///< what the file does not say, and the value that was taken
  std::vector<std::string> warnings = {};  ///< keys that are ignored, renamed, or contradict each other
  std::vector<std::string> notes = {};     ///< what else the family does with position
};

/// Reads a Hugging Face config.json: the keys of transformers 4 (rope_theta, rope_scaling) and 5 (rope_parameters).
/// Of a model with several parts, the one that writes text. An unknown model_type or rope_type is an error, never a
/// guess. Throws: Error that names key, value and rule; as parse_json for text that is no JSON.
Model read_model(std::string_view config_json);

/// Reads the metadata of a .gguf file, and its rope_freqs tensor where it has one; `file` is what the head was read
/// from. The layout is that of the weights in this file: llama.cpp stores those of Llama interleaved.
/// Throws: Error that names key, value and rule.
Model read_model(const GgufHead& head, std::span<const std::byte> file);

/// "0-31", "0-2,4-6", or "" for none.
std::string layer_ranges(std::span<const std::int64_t> layers);

}  // namespace posenc
