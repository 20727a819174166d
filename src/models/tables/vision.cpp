// Parts and models that see images and video. Read in transformers 5.16.0.dev0 (commit d56c55bf, August 2026).

#include <array>

#include "models/tables/rows.h"

namespace posenc::models {
namespace {

using enum Encoding;

constexpr std::string_view kByRowAndColumn =
    "score + q.H[row_m - row_n] + q.W[column_m - column_n]: trained vectors for rows and columns apart";
constexpr std::string_view kDetr =
    "x + sinusoids of the row and the column, counted from 1 and scaled to 2 pi; object queries have a trained table";
constexpr std::string_view kFromOne =
    "row r of R and column c of C have the coordinates (r + 1)/(R + 1e-6) and (c + 1)/(C + 1e-6): ids 1000000(r + "
    "1) with "
    "the denominator 1000000R + 1; object queries have a trained table";
constexpr std::string_view kBeit = "score + table[offset in the image], with three rows more for the class token";
constexpr std::string_view kSingleStream = "num_single_layers further blocks, of one stream, rotate alike";
constexpr std::string_view kResized = "the table is resized to the image's own grid of patches";
constexpr std::string_view kNormalised =
    "pairs rotated by 2 pi c b^(-4j/D), c the patch's row or column centre mapped to [-1, 1], b = rope_theta (100)";

constexpr std::string_view kSam =
    "sam_vision_model sam_hq_vision_model =GotOcr2VisionConfig =PPChart2TableVisionConfig =PPFormulaNetVisionConfig "
    "=SLANeXtVisionConfig deepseek_ocr2_sam_vision_model";

constexpr auto kVisionEntries = std::to_array<Family>({
    // a trained table of patches
    patches("clip_vision_model clipseg_vision_model chinese_clip_vision_model altclip_vision_model "
            "bridgetower_vision_model blip_vision_model blip_2_vision_model instructblip_vision_model "
            "instructblipvideo_vision_model git_vision_model owlvit_vision_model owlv2_vision_model "
            "metaclip_2_vision_model kosmos_2_vision_model xclip_vision_model vit dinov2 vit_msn flava_image_model "
            "internvl_vision qianfan_ocr_vision",
            {.resize = kBicubic}),
    patches("dinov2_with_registers rf_detr_dinov2", {.resize = kAntialiased}),
    patches("tipsv2_vision_model", {.resize = kBilinearAntialiased}),
    patches("dpt", {.resize = kBilinear}),
    patches("vitpose_backbone", {}),
    patches("siglip_vision_model janus_vision_model ijepa groupvit_vision_model phi4_multimodal_vision",
            {.extra = 0, .resize = kBicubic}),
    patches("idefics2_vision idefics3_vision smolvlm_vision minicpmv4_6_vision eomt videomt aya_vision_tower",
            {.extra = 0}),
    patches("deit", {.extra = 2, .resize = kBicubic}),
    patches(
        "yolos", {.extra = 101},
        "rows for 100 detection tokens and the class token; with use_mid_position_embeddings each layer adds a table"),
    patches("idefics_vision", {}),
    patches("pixio", {.extra = 8}),
    {.types = "siglip2_vision_model",
     .encoding = kLearned,
     .length_key = "num_patches",
     .note = "the table is resized to the image's own grid of patches: scheme resized, filter bilinear, antialias"},
    patches("glm_image_vision", {.extra = 0}, kResized),
    patches("cosmos3_edge_vision", {.extra = 0, .rows_key = "num_patches"}, kResized),
    patches("=Ovis2VisionConfig", {.extra = 0}),
    patches("hunyuan_vl_vision", {}, kResized),
    patches("radio", {.extra = 0, .image_key = "max_img_size"},
            "the table is that of the largest image and cropped or resized to each"),
    named("mgp-str", "learned",
          "x + table[patch]: (image_size[0]/patch_size)(image_size[1]/patch_size) + 1 trained rows"),
    {.types = "vit_mae",
     .encoding = kSinusoidal,
     .waves = kGrid,
     .note = "a patch has its column as first coordinate and its row as second; the class token has zeros"},
    {.types = "aimv2_vision_model", .when = "!is_native", .encoding = kPatches, .patches = {.extra = 0}},
    {.types = "aimv2_vision_model",
     .when = "is_native",
     .encoding = kSinusoidal,
     .waves = kGrid,
     .note = "a patch has its column as first coordinate and its row as second"},
    {.types = "videomae",
     .encoding = kSinusoidal,
     .note = "one sinusoid for each tube of patches, counted over frames, rows and columns in one line"},
    named("vivit", "learned",
          "x + table[tube]: one trained row for each tube of patches and one for the class token"),
    patches("timesformer", {}, "frames have a trained table of num_frames rows of their own"),
    {.types = "videoprism_vision_model",
     .encoding = kPatches,
     .scale = {.is_capped = true},
     .patches = {.extra = 0},
     .note = "layers over time have a trained table of num_frames rows"},
    patches("mllama_vision_model", {}, "gated tables for the tile and its aspect ratio are added too"),
    named("hiera", "learned", "x + table[token]: one trained row for each unit of the finest stage"),
    named("pvt", "learned", "x + table[token]: one trained table for each stage"),
    {.types = "cvt",
     .encoding = kNone,
     .other_attention = "scores are divided by the square root of the stage's width, not of a head's size",
     .note = "convolutional projections of queries, keys and values see where tokens are"},
    {.types = "florence_vision",
     .encoding = kNone,
     .other_attention = "attention in windows alternates with attention between channels",
     .note = "depthwise convolutions see where tokens are; the projector adds trained rows and columns and sinusoids "
             "over time"},
    // text encoders of image models
    {.types = "clip_text_model clipseg_text_model owlvit_text_model owlv2_text_model groupvit_text_model "
              "xclip_text_model metaclip_2_text_model aimv2_text_model",
     .encoding = kLearned,
     .mask = Mask::kCausal},
    {.types = "sam3_lite_text_text_model", .encoding = kLearned},
    {.types = "siglip_text_model siglip2_text_model", .encoding = kLearned},
    {.types = "videoprism_text_model",
     .encoding = kSinusoidal,
     .mask = Mask::kCausal,
     .scale = {.is_capped = true},
     .waves = kSinCos},
    // windows
    {.types = "swin donut-swin maskformer-swin clap_audio_model", .encoding = kSwin},
    {.types = "swinv2 swin2sr",
     .encoding = kLogCpb,
     .scale = kUnscaled,
     .note = "queries and keys are of length 1, and a trained factor for each head multiplies queries"},
    {.types = "beit data2vec-vision",
     .when = "use_absolute_position_embeddings",
     .encoding = kPatches,
     .part = "embeddings"},
    {.types = "beit data2vec-vision",
     .when = "use_relative_position_bias",
     .encoding = kNotComputed,
     .part = "attention",
     .name = "beit",
     .formula = kBeit,
     .note = "each layer has a table of its own"},
    {.types = "beit data2vec-vision",
     .when = "use_shared_relative_position_bias",
     .encoding = kNotComputed,
     .part = "attention",
     .name = "beit",
     .formula = kBeit,
     .note = "all layers share one table"},
    {.types = "beit data2vec-vision",
     .when = "!use_absolute_position_embeddings !use_relative_position_bias !use_shared_relative_position_bias",
     .encoding = kNone},
    named("dinat nat", "neighbourhood-bias",
          "score + table[offset in the neighbourhood, h]: trained, (2 kernel_size - 1)^2 rows"),
    named("levit", "offset-bias", "score + table[|row difference|, |column difference|, h]: trained"),
    {.types = "vitdet",
     .when = "use_absolute_position_embeddings",
     .encoding = kPatches,
     .part = "embeddings",
     .patches = {.image_key = "pretrain_image_size"},
     .note = kResized},
    {.types = "vitdet seggpt",
     .when = "use_relative_position_embeddings",
     .encoding = kDecomposed,
     .part = "attention",
     .formula = kByRowAndColumn},
    {.types = "vitdet",
     .when = "!use_absolute_position_embeddings !use_relative_position_embeddings",
     .encoding = kNone},
    {.types = "seggpt",
     .encoding = kPatches,
     .part = "embeddings",
     .patches = {.image_key = "pretrain_image_size"},
     .note = kResized},
    {.types = kSam, .encoding = kPatches, .part = "embeddings", .patches = {.extra = 0}},
    {.types = kSam, .encoding = kDecomposedWhole, .part = "attention", .formula = kByRowAndColumn},
    {.types = "lw_detr_vit", .when = "!use_absolute_position_embeddings", .encoding = kNone},
    {.types = "lw_detr_vit",
     .when = "use_absolute_position_embeddings",
     .encoding = kPatches,
     .patches = {.image_key = "pretrain_image_size"},
     .note = "the table is resized to the image"},
    named("sam2_hiera_det_model", "learned",
          "x + a small trained grid resized to the image + a trained window repeated over it"),
    {.types = "pix2struct_vision_model",
     .encoding = kNotComputed,
     .scale = kUnscaled,
     .name = "learned",
     .formula = "x + R[row] + C[column]: two trained tables of seq_len rows"},
    named("kosmos_2_5_vision_model", "learned", "x + R[row] + C[column]: two trained tables of max_num_patches rows"),
    named("gemma4_unified_vision", "learned",
          "x + R[row] + C[column]: two trained tables of position_embedding_size rows"),
    // detection
    {.types = "detr conditional_detr table-transformer",
     .when = "position_embedding_type=sine",
     .encoding = kSinusoidal,
     .waves = kDetrGrid,
     .note = kFromOne},
    {.types = "sam3_vision_model",
     .encoding = kSinusoidal,
     .width_key = "fpn_hidden_size",
     .waves = kDetrGrid,
     .note = kFromOne},
    {.types = "deformable_detr",
     .when = "position_embedding_type=sine",
     .encoding = kSinusoidal,
     .waves = kDetrGrid,
     .note =
         "row r of R and column c of C have the coordinates (r + 1/2)/(R + 1e-6) and (c + 1/2)/(C + 1e-6); object "
         "queries have a trained table"},
    {.types = "detr conditional_detr table-transformer deformable_detr",
     .when = "position_embedding_type=learned",
     .encoding = kNotComputed,
     .name = "learned",
     .formula = "x + (C[column], R[row]): two trained tables of 50 rows"},
    named("maskformer mask2former oneformer dab-detr grounding-dino mm-grounding-dino omdet-turbo rt_detr rt_detr_v2 "
          "d_fine deimv2 lw_detr rf_detr pp_doclayout_v2 pp_doclayout_v3 sam3_detr_encoder sam3_detr_decoder "
          "sam3_geometry_encoder sam3_mask_decoder sam3_lite_text_detr_encoder sam3_lite_text_detr_decoder "
          "sam3_lite_text_geometry_encoder sam3_lite_text_mask_decoder sam2_vision_model edgetam_vision_model",
          "sinusoidal-grid", kDetr),
    named("=SamPromptEncoderConfig =SamHQPromptEncoderConfig =Sam2PromptEncoderConfig =Sam2VideoPromptEncoderConfig "
          "=EdgeTamPromptEncoderConfig =EdgeTamVideoPromptEncoderConfig =Sam3TrackerPromptEncoderConfig "
          "=Sam3TrackerVideoPromptEncoderConfig",
          "fourier", "sin and cos of 2 pi B c: B a random matrix, c the point's coordinates mapped to [-1, 1]"),
    without("=SamMaskDecoderConfig =SamHQMaskDecoderConfig =Sam2MaskDecoderConfig =Sam2VideoMaskDecoderConfig "
            "=EdgeTamMaskDecoderConfig =EdgeTamVideoMaskDecoderConfig =Sam3TrackerMaskDecoderConfig "
            "=Sam3TrackerVideoMaskDecoderConfig",
            "the mask decoder adds the prompt encoder's vectors to queries and keys again in every layer"),
    named("superglue", "mlp", "x + MLP(keypoint coordinates, score)"),
    {.types = "lightglue",
     .encoding = kNotComputed,
     .rope = kInterleaved,
     .name = "rope",
     .formula = "pairs rotated by W c: W trained, c the keypoint's coordinates"},
    named("efficientloftr", "rope",
          "interleaved pairs rotated by row and column in turn, base rope_theta, in self-attention alone"),
    // Axes of several sizes; read in diffusers 58eb52c0 (models/transformers), whose configs have _class_name
    {.types = "FluxTransformer2DModel ChromaTransformer2DModel",
     .encoding = kImageRope,
     .rope = {.layout = PairLayout::kInterleaved, .section_order = SectionOrder::kRestarting, .image_base = 10000},
     .note = kSingleStream},
    {.types = "Flux2Transformer2DModel",
     .encoding = kImageRope,
     .rope = {.layout = PairLayout::kInterleaved, .section_order = SectionOrder::kRestarting, .image_base = 2000},
     .note = kSingleStream},
    {.types = "QwenImageTransformer2DModel",
     .encoding = kImageRope,
     .rope = {.layout = PairLayout::kInterleaved, .section_order = SectionOrder::kRestarting, .image_base = 10000},
     .note = "rows and columns are counted from the middle of the image, so that half of them are negative"},
    {.types =
         "HunyuanVideoTransformer3DModel HunyuanVideo15Transformer3DModel HunyuanVideoFramepackTransformer3DModel",
     .encoding = kImageRope,
     .rope = {.layout = PairLayout::kInterleaved, .section_order = SectionOrder::kRestarting, .image_base = 256},
     .note = "the tokens of the image or video alone are rotated, not those of the text"},
    {.types = "WanTransformer3DModel",
     .encoding = kVideoRope,
     .rope = {.layout = PairLayout::kInterleaved, .section_order = SectionOrder::kRestarting, .image_base = 10000}},
    // rope over rows and columns
    // hidden_size is that of the text
    {.types = "qwen2_vl_vision", .encoding = kImageRope, .rope = kOverPatches, .width_key = "embed_dim"},
    {.types = "glm_ocr_vision ernie4_5_vl_moe_vision video_llama_3_vision",
     .encoding = kImageRope,
     .rope = kOverPatches},
    {.types = "qwen2_5_vl_vision qwen2_5_omni_vision_encoder exaone4_5_vision",
     .encoding = kImageRope,
     .rope = kOverPatches,
     .note = "patches see those of their window of window_size pixels, as packed sequences, but in the layers of "
             "fullatt_block_indexes"},
    {.types = "mlcd_vision_model",
     .encoding = kImageRope,
     .rope = kOverPatches,
     .note = "the class token is rotated by trained angles"},
    // and a trained table of patches
    {.types =
         "qwen3_vl_vision qwen3_vl_moe_vision qwen3_5_vision qwen3_5_moe_vision qwen3_omni_moe_vision_encoder "
         "glm4v_vision glm4v_moe_vision paddleocr_vl_vision cohere_compass_vision muse_glimmer_vision step3p5_vision",
     .encoding = kImageRope,
     .part = "attention",
     .rope = kOverPatches},
    {.types = "qwen3_vl_vision qwen3_vl_moe_vision qwen3_5_vision qwen3_5_moe_vision qwen3_omni_moe_vision_encoder "
              "cohere_compass_vision",
     .encoding = kPatches,
     .part = "embeddings",
     .patches = {.extra = 0, .resize = kBilinearCorners, .rows_key = "num_position_embeddings"},
     .note = kResized},
    {.types = "glm4v_vision glm4v_moe_vision paddleocr_vl_vision step3p5_vision",
     .encoding = kPatches,
     .part = "embeddings",
     .patches = {.extra = 0},
     .note = kResized},
    {.types = "muse_glimmer_vision",
     .encoding = kNotComputed,
     .part = "embeddings",
     .name = "learned",
     .formula = "x + table[patch]: pos_emb_height x pos_emb_width trained rows, resized to the image's grid",
     .note =
         "the column is the first axis of the rotation, the row the second, both counted from 1; in layers of type "
         "window_attention patches see those of their own window, as packed sequences"},
    {.types = "pixtral",
     .encoding = kImageRope,
     .rope = {.section_order = SectionOrder::kEvenOdd, .image_base = 10000}},
    {.types = "gemma4_vision",
     .encoding = kImageRope,
     .scale = kUnscaled,
     .rope = {.section_order = SectionOrder::kBlocks, .image_base = 100},
     .note = "trained rows and columns are added to the patches as well"},
    named("kimi_k25_vision", "rope",
          "halves; pair 2j rotated by the column and pair 2j + 1 by the row, both at base^(-4j/D)",
          "a trained grid, resized to the image, and rows for the frames of a video are added to the patches"),
    named("kimi_k3_vision", "rope",
          "2-D RoPE over patch rows and columns (assumed; the model's code was not consulted)"),
    named("minimax_m3_vl_vision", "rope",
          "halves rotated by time, row and column in three blocks of pairs; the rest of a head is not rotated"),
    {.types = "llama4_vision_model",
     .encoding = kNotComputed,
     .rope = kInterleaved,
     .name = "rope",
     .formula =
         "interleaved pairs rotated by column + 1, then by row + 1, frequencies base^(-2j/(D/2)); the class token "
         "is not rotated",
     .note = "a trained table of patches is added as well"},
    named("perception_encoder", "rope",
          "2-D RoPE over patch rows and columns (assumed; the model's code was not consulted)"),
    {.types = "dinov3_vit eomt_dinov3 sapiens2",
     .encoding = kPatchRope,
     .rope = {.image_base = 100},
     .name = "patch-rope",
     .formula = kNormalised,
     .note = "the class token and the registers are not rotated"},
    named("vjepa2", "rope",
          "three blocks of a head rotated by frame, row and column, base 10000; a pair's two features have different "
          "frequencies"),
    {.types = "sam3_vit_model",
     .encoding = kWindowRope,
     .rope = {.layout = PairLayout::kInterleaved, .section_order = SectionOrder::kRestarting, .image_base = 10000},
     .formula = "interleaved pairs rotated by column, then by row, base rope_theta, positions scaled to a window's",
     .note =
         "the column is the first axis of the rotation, the row the second; a trained table of patches is repeated "
         "over the image as well"},
    named(
        "sam2_video sam3_tracker_video edgetam_video", "rope",
        "interleaved pairs rotated by column, then by row, base rope_theta, positions scaled to the pretrained grid",
        "a trained table of patches is repeated over the image as well"),
    without("pp_ocrv5_mobile_rec pp_ocrv5_server_rec pp_ocrv6_small_rec",
            "attention over columns without position; convolutions see where they are"),
    {.types = "slanext",
     .encoding = kNone,
     .other_attention = "the head is a recurrence whose state attends to columns by a sum of projections"},
    without("idefics_perciever idefics2_perceiver", "latents attend to the image without position"),
});
constexpr auto kVisionRows = table_of<count_of_rows(kVisionEntries)>(kVisionEntries, Mask::kBidirectional);

}  // namespace

std::span<const Family> vision_families() noexcept { return kVisionRows; }

}  // namespace posenc::models
