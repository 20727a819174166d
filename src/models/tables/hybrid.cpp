// Families whose layers are not all attention, and those without any position of their own. Read in transformers
// 5.16.0.dev0 (commit d56c55bf, August 2026); kimi_linear and gla in vLLM a014e35f and flash-linear-attention.

#include <array>
#include <numbers>

#include "models/families.h"

namespace posenc::models {
namespace {

constexpr std::string_view kConvolutional = "no position is encoded: convolutions see where they are";

constexpr auto kHybridRows = std::to_array<Family>({
    {.types = "bamba", .reads_partial = true, .rule = by_attention_list, .every_key = "attn_layer_indices"},
    {.types = "lfm2 lfm2_moe", .rule = by_attention_list, .every_key = "full_attn_idxs"},
    {.types = "minimax", .rule = nth_is_linear, .every = 2},
    {.types = "olmo_hybrid", .rule = nth_is_attention, .every = 4},
    {.types = "qwen3_next",
     .reads_partial = true,
     .rule = nth_is_attention,
     .every = 4,
     .every_key = "full_attention_interval"},
    {.types = "qwen3_5_text qwen3_5_moe_text",
     .reads_partial = true,
     .reads_sections = true,
     .section_order = SectionOrder::kInterleaved,
     .sections = "11,11,10",
     .rule = nth_is_attention,
     .every = 4,
     .every_key = "full_attention_interval"},
    {.types = "recurrent_gemma", .rule = by_repeated_types, .window_key = "attention_window_size"},
    {.types = "granitemoehybrid",
     .when = "position_embedding_type=rope",
     .rule = all_linear,
     .scale_key = "attention_multiplier"},
    {.types = "granitemoehybrid",
     .when = "!position_embedding_type=rope",
     .encoding = Encoding::kNone,
     .rule = all_linear,
     .scale_key = "attention_multiplier"},
    {.types = "zamba2", .when = "use_mem_rope", .head_factor = 2, .scale_factor = std::numbers::sqrt2},
    {.types = "zamba2",
     .when = "!use_mem_rope",
     .encoding = Encoding::kNone,
     .head_factor = 2,
     .scale_factor = std::numbers::sqrt2},
    {.types = "zamba",
     .encoding = Encoding::kNone,
     .head_factor = 2,
     .rule = by_zambas_period,
     .scale_factor = std::numbers::sqrt2},
    {.types = "jamba", .encoding = Encoding::kNone, .rule = by_attention_period},
    {.types = "nemotron_h", .encoding = Encoding::kNone, .rule = by_letters},
    {.types = "mamba mamba2 falcon_mamba rwkv xlstm gla", .encoding = Encoding::kNone, .token_mixer = "recurrences"},
    {.types = "kimi_linear",
     .encoding = Encoding::kNone,
     .rule = by_delta_list,
     .note = "attention layers are MLA without rope (mla_use_nope); the others are a gated delta rule"},
    {.types = "inkling_text",
     .encoding = Encoding::kRelativeLogits,
     .rule = by_local_ids,
     .every = 6,
     .formula = "score + r(q) at distance m - n: a trained projection of the hidden state, one logit per distance",
     .note = "layers also have short convolutions"},
    // flash-linear-attention (fla/layers/forgetting_attn.py at 20ceee52) has no rope; the authors' own
    // (forgetting-transformer at 883f260c, modeling_forgetting_transformer.py) has it where use_rope is set
    {.types = "forgetting_transformer", .encoding = Encoding::kForgetGate},
    {.types = "forgetting_transformer-project_fox", .when = "!use_rope", .encoding = Encoding::kForgetGate},
    {.types = "forgetting_transformer-project_fox",
     .when = "use_rope",
     .encoding = Encoding::kNotComputed,
     .name = "rope with forget-gate",
     .formula = "score + log f summed over the tokens from n+1 to m, after rope"},
    {.types = "fnet", .encoding = Encoding::kLearned, .is_causal = false, .token_mixer = "a Fourier transform"},
    // no attention at all, or none that encodes position
    {.types =
         "bit convnext convnextv2 resnet regnet efficientnet mobilenet_v1 mobilenet_v2 mobilenet_v3 hgnet_v2 textnet "
         "rt_detr_resnet dinov3_convnext superpoint univnet sapiens2_head focalnet van repvit levit_conv "
         "pp_lcnet pp_lcnet_v3 pp_lcnet_v4 pp_ocrv5_mobile_det pp_ocrv5_server_det pp_ocrv6_medium_det "
         "pp_ocrv6_small_det pp_ocrv6_tiny_rec slanet uvdoc uvdoc_backbone align_vision_model encodec dac snac hifigan "
         "fastspeech2_conformer_hifigan speecht5_hifigan qwen2_5_omni_bigvgan glm_image_vqmodel "
         "vibevoice_acoustic_tokenizer vibevoice_acoustic_tokenizer_encoder vibevoice_acoustic_tokenizer_decoder "
         "vibevoice_semantic_tokenizer higgs_audio_v2_tokenizer xcodec prompt_encoder",
     .encoding = Encoding::kNone,
     .is_causal = false,
     .token_mixer = "convolutions",
     .note = kConvolutional},
    {.types = "poolformer",
     .encoding = Encoding::kNone,
     .is_causal = false,
     .token_mixer = "pooling of neighbours",
     .note = kConvolutional},
    {.types = "mobilevit", .encoding = Encoding::kNone, .is_causal = false, .note = kConvolutional},
    {.types = "pvt_v2",
     .encoding = Encoding::kNone,
     .is_causal = false,
     .note = "no position is encoded: convolutions see where they are; keys and values are those of a coarser grid "
             "(sr_ratios, or 7 by 7 with linear_attention)"},
    {.types = "mobilevitv2 swiftformer",
     .encoding = Encoding::kNone,
     .is_causal = false,
     .other_attention = "all tokens share one sum, weighted by a score for each token instead of each pair",
     .note = kConvolutional},
    {.types = "chameleon_vqgan janus_vqgan emu3_vqgan",
     .encoding = Encoding::kNone,
     .is_causal = false,
     .note = "no position is encoded: convolutions see where they are, and blocks of attention are between them"},
    {.types = "flava_multimodal_model",
     .encoding = Encoding::kNone,
     .is_causal = false,
     .note = "its layers see the positions that the text and image encoders added"},
    {.types = "inkling_vision",
     .encoding = Encoding::kNone,
     .is_causal = false,
     .token_mixer = "linear layers that merge patches"},
    {.types = "segformer glpn",
     .encoding = Encoding::kNone,
     .is_causal = false,
     .note =
         "no position is encoded: a depthwise convolution in each feed-forward block sees where tokens are; keys and "
         "values are those of a coarser grid (sr_ratios)"},
    {.types = "timm_backbone gemma3n_vision",
     .encoding = Encoding::kNone,
     .is_causal = false,
     .other_attention = "the timm library holds the model, and the config does not say what its layers do"},
    {.types = "timm_wrapper",
     .encoding = Encoding::kNotComputed,
     .is_causal = false,
     .name = "unknown",
     .formula = "the timm library holds the model, and the config does not say how it encodes position"},
});

}  // namespace

std::span<const Family> hybrid_families() noexcept { return kHybridRows; }

}  // namespace posenc::models
