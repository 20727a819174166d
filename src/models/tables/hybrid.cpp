// Families whose layers are not all attention, and those without any position of their own. Read in transformers
// 5.16.0.dev0 (commit d56c55bf, August 2026); kimi_linear and gla in vLLM a014e35f and flash-linear-attention.

#include <array>
#include <cmath>
#include <numbers>

#include "models/sizes.h"
#include "models/tables/rows.h"

namespace posenc::models {
namespace {

using enum Encoding;

constexpr std::string_view kConvolutional = "no position is encoded: convolutions see where they are";

// √(2/D): modeling_zamba.py, modeling_zamba2.py
void scale_of_half_a_head(const GroupFacts& facts) {
  facts.group.scale = std::numbers::sqrt2 / std::sqrt(static_cast<double>(head_size(facts.config, facts.family)));
}

// The weights were trained with half of each head rotated: transformers 4.50.0, modeling_recurrent_gemma.py:163. 5.0
// rotates whole heads (compute_default_rope_parameters, since pull request 39847 of October 2025).
void note_lost_share(const RotationFacts& facts) {
  const std::int64_t head = head_size(facts.config, facts.family);
  if (facts.rope.dims != head) facts.reading.hf_rotary_dim = head;
}

// q and k have norm 1 per feature, and queries of layers without a window have a temperature: modeling_inkling.py
void set_inklings_scale(const GroupFacts& facts) {
  const bool slides = is_sliding(facts.layer.type);
  facts.group.scale = 1.0 / static_cast<double>(head_size(facts.config, facts.family, slides ? "swa_head_dim" : ""));
  const auto floor = integer(facts.config, "log_scaling_n_floor");
  if (slides || floor.value_or(0) <= 0) return;
  facts.group.temperature = Temperature{.scale = finite(facts.config, "log_scaling_alpha").value_or(0.1),
                                        .length = *floor,
                                        .shift = 1,
                                        .rule = TemperatureRule::kLog};
}

constexpr auto kHybridEntries = std::to_array<Family>({
    {.types = "bamba",
     .layers = {.others = kLinear, .list_key = "attn_layer_indices", .lists_all = true},
     .rope = kPartial},
    {.types = "lfm2 lfm2_moe", .layers = {.others = kLinear, .list_key = "full_attn_idxs"}},
    {.types = "minimax", .layers = {.picked = kLinear, .others = kFull, .every = 2, .rule = window_on_full}},
    {.types = "olmo_hybrid", .layers = {.others = kLinear, .every = 4}},
    {.types = "qwen3_next",
     .layers = {.others = kLinear, .every = 4, .every_key = "full_attention_interval"},
     .rope = kPartial},
    {.types = "qwen3_5_text qwen3_5_moe_text",
     .layers = {.others = kLinear, .every = 4, .every_key = "full_attention_interval"},
     .rope = {.reads_partial = true, .sections = "11,11,10", .section_order = SectionOrder::kInterleaved}},
    {.types = "recurrent_gemma",
     .layers = {.rule = by_repeated_types},
     .window = {.key = "attention_window_size"},
     .rope = {.reads_partial = true, .adjust = note_lost_share},
     .note = "transformers 5 ignores partial_rotary_factor and rotates whole heads: a regression; the weights were "
             "trained with half of each, as transformers 4 rotates them"},
    {.types = "granitemoehybrid",
     .when = "position_embedding_type=rope",
     .layers = {.picked = kLinear, .every = 1},
     .scale = kByMultiplier},
    {.types = "granitemoehybrid",
     .when = "!position_embedding_type=rope",
     .encoding = kNone,
     .layers = {.picked = kLinear, .every = 1},
     .scale = kByMultiplier},
    {.types = "zamba2", .when = "use_mem_rope", .head_factor = 2, .adjust = scale_of_half_a_head},
    {.types = "zamba2", .when = "!use_mem_rope", .encoding = kNone, .head_factor = 2, .adjust = scale_of_half_a_head},
    {.types = "zamba",
     .encoding = kNone,
     .layers = {.rule = by_zambas_period},
     .head_factor = 2,
     .adjust = scale_of_half_a_head},
    {.types = "jamba", .encoding = kNone, .layers = {.rule = by_attention_period}},
    {.types = "nemotron_h", .encoding = kNone, .layers = {.rule = by_letters}},
    {.types = "mamba mamba2 falcon_mamba rwkv xlstm gla", .encoding = kNone, .token_mixer = "recurrences"},
    {.types = "kimi_linear",
     .encoding = kNone,
     .layers = {.picked = kLinear, .others = kFull, .list_key = "linear_attn_config.kda_layers", .list_from = 1},
     .note = "attention layers are MLA without rope (mla_use_nope); the others are a gated delta rule"},
    {.types = "inkling_text",
     .encoding = kRelativeLogits,
     .layers = {.picked = "hybrid",
                .others = "hybrid_sliding",
                .every = 6,
                .list_key = "local_layer_ids",
                .lists_others = true},
     .adjust = set_inklings_scale,
     .formula = "score + r(q) at distance m - n: a trained projection of the hidden state, one logit per distance",
     .note = "layers also have short convolutions"},
    // flash-linear-attention (fla/layers/forgetting_attn.py at 20ceee52) has no rope; the authors' own
    // (forgetting-transformer at 883f260c, modeling_forgetting_transformer.py) has it where use_rope is set
    {.types = "forgetting_transformer", .encoding = kForgetGate},
    {.types = "forgetting_transformer-project_fox", .when = "!use_rope", .encoding = kForgetGate},
    {.types = "forgetting_transformer-project_fox",
     .when = "use_rope",
     .encoding = kNotComputed,
     .name = "rope with forget-gate",
     .formula = "score + log f summed over the tokens from n+1 to m, after rope"},
    {.types = "fnet", .encoding = kLearned, .mask = Mask::kBidirectional, .token_mixer = "a Fourier transform"},
    // no attention at all, or none that encodes position
    {.types =
         "bit convnext convnextv2 resnet regnet efficientnet mobilenet_v1 mobilenet_v2 mobilenet_v3 hgnet_v2 "
         "textnet rt_detr_resnet dinov3_convnext superpoint univnet sapiens2_head focalnet van repvit levit_conv "
         "pp_lcnet pp_lcnet_v3 pp_lcnet_v4 pp_ocrv5_mobile_det pp_ocrv5_server_det pp_ocrv6_medium_det "
         "pp_ocrv6_small_det pp_ocrv6_tiny_rec slanet uvdoc uvdoc_backbone align_vision_model encodec dac snac "
         "hifigan fastspeech2_conformer_hifigan speecht5_hifigan qwen2_5_omni_bigvgan glm_image_vqmodel "
         "vibevoice_acoustic_tokenizer vibevoice_acoustic_tokenizer_encoder vibevoice_acoustic_tokenizer_decoder "
         "vibevoice_semantic_tokenizer higgs_audio_v2_tokenizer xcodec prompt_encoder",
     .encoding = kNone,
     .mask = Mask::kBidirectional,
     .token_mixer = "convolutions",
     .note = kConvolutional},
    {.types = "poolformer",
     .encoding = kNone,
     .mask = Mask::kBidirectional,
     .token_mixer = "pooling of neighbours",
     .note = kConvolutional},
    {.types = "mobilevit", .encoding = kNone, .mask = Mask::kBidirectional, .note = kConvolutional},
    {.types = "pvt_v2",
     .encoding = kNone,
     .mask = Mask::kBidirectional,
     .note = "no position is encoded: convolutions see where they are; keys and values are those of a coarser grid "
             "(sr_ratios, or 7 by 7 with linear_attention)"},
    {.types = "mobilevitv2 swiftformer",
     .encoding = kNone,
     .mask = Mask::kBidirectional,
     .other_attention = "all tokens share one sum, weighted by a score for each token instead of each pair",
     .note = kConvolutional},
    {.types = "chameleon_vqgan janus_vqgan emu3_vqgan",
     .encoding = kNone,
     .mask = Mask::kBidirectional,
     .note = "no position is encoded: convolutions see where they are, and blocks of attention are between them"},
    {.types = "flava_multimodal_model",
     .encoding = kNone,
     .mask = Mask::kBidirectional,
     .note = "its layers see the positions that the text and image encoders added"},
    {.types = "inkling_vision",
     .encoding = kNone,
     .mask = Mask::kBidirectional,
     .token_mixer = "linear layers that merge patches"},
    {.types = "segformer glpn",
     .encoding = kNone,
     .mask = Mask::kBidirectional,
     .note =
         "no position is encoded: a depthwise convolution in each feed-forward block notices where tokens are; keys "
         "and values are those of a coarser grid (sr_ratios)"},
    {.types = "timm_backbone gemma3n_vision",
     .encoding = kNone,
     .mask = Mask::kBidirectional,
     .other_attention = "the timm library holds the model, and the config does not say what its layers do"},
    {.types = "timm_wrapper",
     .encoding = kNotComputed,
     .mask = Mask::kBidirectional,
     .name = "unknown",
     .formula = "the timm library holds the model, and the config does not say how it encodes position"},
});
constexpr auto kHybridRows = table_of<count_of_rows(kHybridEntries)>(kHybridEntries, Mask::kCausal);

}  // namespace

std::span<const Family> hybrid_families() noexcept { return kHybridRows; }

}  // namespace posenc::models
