// params.json, as Meta and Mistral publish it. Read in transformers 5.16 (d56c55bf): convert_llama_weights_to_hf.py,
// convert_mistral_weights_to_hf.py and convert_ministral3_weights_to_hf.py, which also permute queries and keys; Meta's
// scaling in llama-models (models/llama3/model.py: apply_scaling).

#include "models/params_json.h"

#include <fmt/format.h>

#include <utility>

#include "posenc/error.h"

namespace posenc::models {
namespace {

bool has_value(const Json& json, std::string_view key) {
  const Json* const found = json.find(key);
  return found != nullptr && found->as<std::nullptr_t>() == nullptr;
}

// A window, or one for each layer of a period, null where a layer has none: vLLM a014e35f, configs/mistral.py.
void add_windows(const Json& window, const Config& params, Json::Object& made) {
  const auto* const list = window.as<Json::Array>();
  if (list == nullptr || list->empty()) {
    made.emplace_back("sliding_window", window);
    return;
  }
  Json::Array types;
  const std::int64_t layers = integer(params, "n_layers").value_or(0);
  if (layers > 4096) refuse(params, "n_layers", "at most 4096");
  for (std::int64_t i = 0; i < layers; ++i) {
    const Json& one = (*list)[i % list->size()];
    types.emplace_back(one.as<std::nullptr_t>() != nullptr ? kFull : kSliding);
  }
  for (const Json& one : *list) {
    if (one.as<std::nullptr_t>() != nullptr) continue;
    made.emplace_back("sliding_window", one);
    break;
  }
  made.emplace_back("layer_types", std::move(types));
}

// Meta's files give no length; that of the release with this base and scaling, as convert_llama_weights_to_hf.py
// (lines 95 and 205 to 208) has it. Llama 1 and 2 differ in nothing else that is read here.
void add_length(const Config& params, Json::Object& made, Remarks& remarks) {
  const double base = positive(params, "rope_theta").value_or(10000.0);
  std::int64_t length = 0;
  std::string_view release;
  if (holds(params, "use_scaled_rope")) {
    length = 131072;
    release = "Llama 3.1";
  } else if (base == 500000.0) {
    length = 8192;
    release = "Llama 3";
  } else if (base > 10000.0) {
    length = 16384;
    release = "Code Llama";
  } else {
    return;
  }
  note(remarks.assumed, fmt::format("{} positions (as {} has them; not given)", length, release));
  made.emplace_back("max_position_embeddings", length);
}

Json yarn_of(const Config& params, const Config& yarn) {
  Json::Object scaling{{"rope_type", "yarn"}, {"mscale", 1.0}};
  scaling.emplace_back("mscale_all_dim", flag(yarn, "apply_scale").value_or(true) ? 0.0 : 1.0);
  const auto copy = [&](std::string_view from, const char* to) {
    if (const auto value = positive(yarn, from)) scaling.emplace_back(to, *value);
  };
  copy("factor", "factor");
  copy("original_max_position_embeddings", "original_max_position_embeddings");
  copy("beta", "beta_fast");
  copy("alpha", "beta_slow");
  if (const auto beta = finite(params, "llama_4_scaling.beta")) scaling.emplace_back("llama_4_scaling_beta", *beta);
  scaling.emplace_back("rope_theta", positive(params, "rope_theta").value_or(1e6));
  return scaling;
}

}  // namespace

bool is_params_json(const Json& json) {
  for (const std::string_view key : {"model_type", "architectures", "_class_name"}) {
    if (has_value(json, key)) return false;
  }
  return has_value(json, "dim") && has_value(json, "n_layers") && has_value(json, "n_heads");
}

Json config_of_params(const Json& params, Remarks& remarks) {
  const Config config{.object = &params};
  for (const std::string_view key : {"qk_rope_head_dim", "multimodal", "vision_encoder"}) {
    if (has_value(params, key)) raise(fmt::format("params.json with {} is not read; give its config.json", key));
  }
  const auto yarn = nested(config, "yarn");
  const bool is_metas = has_value(params, "multiple_of") || has_value(params, "use_scaled_rope");
  Json::Object made{{"model_type", is_metas ? "llama" : yarn ? "ministral3" : "mistral"}};
  const auto copy = [&](const char* from, const char* to) {
    if (has_value(params, from)) made.emplace_back(to, *params.find(from));
  };
  copy("dim", "hidden_size");
  copy("n_layers", "num_hidden_layers");
  copy("n_heads", "num_attention_heads");
  copy("head_dim", "head_dim");
  copy(has_value(params, "max_position_embeddings") ? "max_position_embeddings" : "max_seq_len",
       "max_position_embeddings");
  const bool has_length = has_value(params, "max_position_embeddings") || has_value(params, "max_seq_len");
  if (is_metas && !has_length) add_length(config, made, remarks);
  if (!is_metas && has_value(params, "sliding_window")) add_windows(*params.find("sliding_window"), config, made);
  if (!is_metas && !has_value(params, "sliding_window")) made.emplace_back("sliding_window", nullptr);
  if (yarn) {
    made.emplace_back("rope_parameters", yarn_of(config, *yarn));
    return made;
  }
  if (const auto base = positive(config, "rope_theta")) made.emplace_back("rope_theta", *base);
  if (holds(config, "use_scaled_rope")) {
    note(remarks.assumed,
         "llama3 scaling with factor 8 (use_scaled_rope; Llama 3.2's small models have 32 in "
         "transformers, which params.json does not state)");
    made.emplace_back("rope_scaling", Json::Object{{"rope_type", "llama3"},
                                                   {"factor", 8.0},
                                                   {"low_freq_factor", 1.0},
                                                   {"high_freq_factor", 4.0},
                                                   {"original_max_position_embeddings", 8192}});
  }
  return made;
}

}  // namespace posenc::models
