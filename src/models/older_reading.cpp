// transformers 4 reads rope_theta and rope_scaling. Version 5 writes both as rope_parameters, which version 4 keeps and does not
// read: its classes then take their own defaults. Read in transformers 4.57.6 (753d6110, January 2026),
// models/*/configuration_*.py and modeling_rope_utils.py; the lists were extracted from there.

#include "models/older_reading.h"

#include <array>

#include "models/families.h"

namespace posenc::models {
namespace {

struct OlderBase {
  double base;
  std::string_view types;
};
// Defaults of rope_theta other than 10000.
constexpr auto kOlderBases = std::to_array<OlderBase>({
    {25000, "fuyu persimmon"},
    {100000, "falcon_h1 helium kyutai_speech_to_text"},
    {150000, "gpt_oss"},
    {160000, "modernbert modernbert-decoder"},
    {500000,
     "bitnet blt_global_transformer blt_local_decoder blt_local_encoder csm csm_depth_decoder_model ernie4_5 "
     "ernie4_5_moe evolla flex_olmo llama4_text mllama_text_model"},
    {1000000,
     "emu3_text_model gemma3_text gemma3n_text lfm2 minimax mixtral phimoe qwen2_5_omni_talker qwen2_5_omni_text "
     "qwen2_5_vl_text qwen2_vl_text qwen3_omni_moe_text"},
    {2000000, "smollm3"},
    {5000000, "qwen3_vl_moe_text qwen3_vl_text"},
    {10000000, "longcat_flash"},
    {12000000, "apertus"},
});

// Families that rotate and came with version 5.
constexpr std::string_view kNewTypes =
    "afmoe axk1 axk2 cohere2_moe cohere_compass_text cosmos3_edge_text cwm deepseek_ocr2_encoder deepseek_ocr2_text "
    "deepseek_v32 deepseek_v4 diffusion_gemma_text ernie4_5_vl_moe_text esmc eurobert exaone_moe gemma4_text "
    "gemma4_unified_text glm4_moe_lite glm_image_text glm_moe_dsa glm_ocr_text granite4_vision_text granite_swa "
    "granitemoe_swa higgs_audio_v2 hrm_text hunyuan_vl_text hy_v3 hyperclovax jais2 jina_embeddings_v3 laguna "
    "lasr_encoder lfm2_moe mellum mimo_v2_flash minicpm3 minimax_m2 minimax_m3_vl_text ministral3 mistral4 "
    "muse_glimmer_assistant muse_glimmer_text nanochat nomic_bert olmo_hybrid openai_privacy_filter paddleocr_vl_text "
    "pe_audio_encoder pe_audio_video_encoder pe_video_encoder qwen3_5_moe_text qwen3_5_text solar_open step3p5 "
    "t5gemma2_decoder t5gemma2_text timesfm2_5 voxtral_realtime_text xcodec2 youtu zaya";

double older_base(std::string_view type) {
  for (const OlderBase& one : kOlderBases) {
    if (has_word(one.types, type)) return one.base;
  }
  return 10000;
}

// The dictionary of all layers, or of those that are not sliding.
std::optional<Config> full_entries(const Config& config, bool& is_by_type) {
  const auto entries = nested(config, "rope_parameters");
  if (!entries) return std::nullopt;
  const Json* const full = entries->object->find(kFull);
  is_by_type = full != nullptr && full->as<Json::Object>() != nullptr;
  return is_by_type ? nested(*entries, kFull) : entries;
}

}  // namespace

std::optional<OlderReading> older_reading_of(std::string_view model_type, const Config& config) {
  if (has_word(kNewTypes, model_type)) return OlderReading{.is_known = false};
  OlderReading reading;
  if (!is_given(config, "rope_parameters")) return std::nullopt;
  const auto entries = full_entries(config, reading.is_by_type);
  if (!entries) return std::nullopt;
  const std::string_view own =
      first_of(Config{.object = config.object}, {"rope_theta", "rotary_emb_base", "global_rope_theta"});
  const auto base = positive(*entries, "rope_theta");
  if (own.empty() && base && *base != older_base(model_type)) reading.base = older_base(model_type);
  const auto type = text(*entries, "rope_type");
  reading.drops_scaling = type && *type != "default" && *type != "mrope" && !is_given(config, "rope_scaling");
  if (!reading.base && !reading.drops_scaling) return std::nullopt;
  return reading;
}

}  // namespace posenc::models
