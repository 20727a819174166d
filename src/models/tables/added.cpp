// Families that add a vector for each position to the tokens: a trained table or sinusoids. Read in transformers
// 5.16.0.dev0 (commit d56c55bf, August 2026).

#include <array>
#include <cmath>

#include "models/sizes.h"
#include "models/tables/rows.h"

namespace posenc::models {
namespace {

using enum Encoding;

constexpr std::string_view kShift =
    "positions count tokens and skip padding; padding has the position before the first";
constexpr std::string_view kZeroRow = "the row of padding is zero";
constexpr std::string_view kBoxes = "the boxes of words on the page are further tables, added too";

constexpr std::string_view kBoxScores =
    "trained numbers for the distance of tokens, or of their boxes on the page, are added to scores";

constexpr std::string_view kTrainedFactors =
    "queries are multiplied by 1.442695041 softplus(scaling) / sqrt(D), a trained factor for each feature";
constexpr std::string_view kProbSparse =
    "only some queries, chosen by a sample of keys, attend (attention_type prob)";
constexpr std::string_view kAutoCorrelation = "values at the lags of the highest autocorrelations are added up";

constexpr std::string_view kBlockSparse =
    "blocks of queries attend to the first and last blocks, their neighbours and some at random (block_sparse)";
constexpr std::string_view kGlobalTokens =
    "tokens with global attention attend to all tokens, and all attend to them, with projections of their own";
constexpr std::string_view kLongformer =
    "positions count tokens and skip padding; tokens with global attention attend to all tokens, and all attend to "
    "them, with projections of their own";

// scale_attn_weights: false is unscaled; scale_attn_by_inverse_layer_idx: layer i / (i + 1). transformers 5.16 (d56c55bf),
// modeling_gpt2.py: GPT2Attention.
void set_gpt2_scale(const GroupFacts& facts) {
  LayerGroup& group = facts.group;
  if (group.layers.empty()) return;
  const bool is_divided = flag(facts.config, "scale_attn_weights").value_or(true);
  if (!flag(facts.config, "scale_attn_by_inverse_layer_idx").value_or(false)) {
    group.is_unscaled = !is_divided;
    return;
  }
  const double of_head =
      is_divided ? 1.0 / std::sqrt(static_cast<double>(head_size(facts.config, facts.family))) : 1.0;
  group.scale = of_head / static_cast<double>(group.layers.front() + 1);
}

// The config's is_decoder is true for BLIP's encoders too: transformers 5.16 (d56c55bf), modeling_blip_text.py: BlipTextModel.
void leave_mask_open(const GroupFacts& facts) { facts.group.is_causal.reset(); }

constexpr auto kAddedEntries = std::to_array<Family>({
    // a table, decoders
    {.types = "openai-gpt semantic coarse_acoustics clvp_decoder", .encoding = kLearned, .mask = Mask::kCausal},
    {.types = "git",
     .encoding = kLearned,
     .mask = Mask::kCausal,
     .note = "tokens of images see each other in both directions: the caller's mask"},
    {.types = "gpt2 gpt-sw3 imagegpt decision_transformer",
     .encoding = kLearned,
     .mask = Mask::kCausal,
     .adjust = set_gpt2_scale},
    // scale_attn_by_inverse_layer_idx is GPT-2's alone: modeling_gpt_bigcode.py
    {.types = "gpt_bigcode", .when = "!scale_attn_weights=false", .encoding = kLearned, .mask = Mask::kCausal},
    {.types = "gpt_bigcode",
     .when = "scale_attn_weights=false",
     .encoding = kLearned,
     .mask = Mask::kCausal,
     .scale = kUnscaled},
    {.types = "gpt_neo",
     .encoding = kLearned,
     .mask = Mask::kCausal,
     .layers = {.rule = by_attention_types},
     .window = {.key = "window_size"},
     .scale = kUnscaled},
    {.types = "fine_acoustics", .encoding = kLearned},
    {.types = "opt", .encoding = kLearned, .mask = Mask::kCausal, .first = kOffset2, .note = kShift},
    {.types = "biogpt", .encoding = kLearned, .mask = Mask::kCausal, .first = kOffset2},
    {.types = "xlm-prophetnet prophetnet",
     .encoding = kLearned,
     .part = "encoder",
     .layers_key = "num_encoder_layers",
     .first = {.position = 1}},
    {.types = "xlm-prophetnet prophetnet",
     .encoding = kLearned,
     .part = "decoder",
     .layers_key = "num_decoder_layers",
     .other_attention = "scores of all streams have T5-like buckets, whose values are made from hidden states",
     .first = {.position = 1}},
    // a table, encoders
    {.types = "bert bert-generation megatron-bert visual_bert mobilebert ernie layoutlm roc_bert splinter tapas "
              "tvp align_text_model chinese_clip_text_model flava_text_model instructblip_qformer "
              "instructblipvideo_qformer vilt dpr ",
     .encoding = kLearned},
    {.types = "blip_text_model",
     .encoding = kLearned,
     .adjust = leave_mask_open,
     .note = "a call of forward says whether these layers are causal, with is_decoder"},
    // num_hidden_layers is a dictionary of its three stacks
    {.types = "lxmert",
     .encoding = kLearned,
     .layers_key = "l_layers",
     .note =
         "these are the layers of the text; r_layers of the objects and x_layers of both follow, and the boxes of "
         "objects are projected and added"},
    {.types = "big_bird", .when = "attention_type=original_full", .encoding = kLearned},
    {.types = "big_bird",
     .when = "!attention_type=original_full",
     .encoding = kLearned,
     .other_attention = kBlockSparse},
    {.types = "blip_2_qformer",
     .when = "use_qformer_text_input",
     .encoding = kLearned,
     .note = "of the text; queries have trained vectors of their own and no position"},
    {.types = "blip_2_qformer",
     .when = "!use_qformer_text_input",
     .encoding = kNone,
     .note = "queries are trained vectors, each with its own place"},
    {.types = "layoutlmv2 layoutxlm",
     .when = "!has_relative_attention_bias !has_spatial_attention_bias",
     .encoding = kLearned,
     .note = kBoxes},
    {.types = "layoutlmv2 layoutxlm",
     .when = "!has_relative_attention_bias has_spatial_attention_bias",
     .encoding = kLearned,
     .other_attention = kBoxScores,
     .note = kBoxes},
    {.types = "layoutlmv2 layoutxlm",
     .when = "has_relative_attention_bias",
     .encoding = kLearned,
     .other_attention = kBoxScores,
     .note = kBoxes},
    {.types = "albert electra convbert squeezebert", .encoding = kLearned, .width_key = "embedding_size"},
    {.types = "rembert", .encoding = kLearned, .width_key = "input_embedding_size"},
    {.types = "distilbert", .when = "!sinusoidal_pos_embds", .encoding = kLearned},
    {.types = "distilbert", .when = "sinusoidal_pos_embds", .encoding = kSinusoidal},
    {.types = "roberta xlm-roberta xlm-roberta-xl camembert data2vec-text ibert roberta-prelayernorm xmod luke mluke "
              "markuplm clap_text_model altclip_text_model bridgetower_text_model",
     .encoding = kLearned,
     .first = kRoberta,
     .note = kShift},
    {.types = "longformer",
     .encoding = kLearned,
     .layers = {.rule = by_window_list},
     .window = {.key = "attention_window", .is_width = true},
     .first = kRoberta,
     .note = kLongformer},
    {.types = "lilt",
     .encoding = kLearned,
     .other_attention = "scores of a second flow of layers, of the boxes of words on the page, are added to these",
     .first = kRoberta},
    {.types = "esm",
     .when = "!position_embedding_type=rotary",
     .encoding = kLearned,
     .first = kRoberta,
     .note = kShift},
    {.types = "=SaProtConfig"},
    {.types = "mra nystromformer yoso",
     .encoding = kLearned,
     .other_attention = "the softmax is approximated, by the family's own method",
     .first = kOffset2},
    {.types = "canine",
     .encoding = kLearned,
     .note = "positions are those of characters before they are downsampled; the table has num_hash_buckets rows"},
    {.types = "bros",
     .encoding = kLearned,
     .other_attention = "products of queries with sinusoids of the boxes' corners are added to scores"},
    {.types = "reformer",
     .when = "!axial_pos_embds",
     .encoding = kLearned,
     .mask = Mask::kCausal,
     .other_attention = "queries attend to the keys of their hash bucket or of their chunk and its neighbours"},
    {.types = "reformer",
     .when = "axial_pos_embds",
     .encoding = kNotComputed,
     .mask = Mask::kCausal,
     .name = "axial",
     .formula = "x + [A[p mod n1] | B[p div n1]]: two trained tables for the two coordinates of a position"},
    {.types = "perceiver",
     .encoding = kLearned,
     .width_key = "d_model",
     .note = "of the text model; images have Fourier features or a table of pixels, and latents have no order"},
    // encoders and decoders, a table each
    {.types = "bart mbart plbart mvp", .encoding = kLearned, .part = kEncoderDecoder, .first = kOffset2},
    {.types = "=PPFormulaNetTextConfig",
     .encoding = kLearned,
     .mask = Mask::kCausal,
     .layers_key = "decoder_layers",
     .first = kOffset2},
    {.types = "trocr",
     .when = "use_learned_position_embeddings",
     .encoding = kLearned,
     .mask = Mask::kCausal,
     .layers_key = "decoder_layers",
     .first = kOffset2},
    {.types = "trocr",
     .when = "!use_learned_position_embeddings",
     .encoding = kSinusoidal,
     .mask = Mask::kCausal,
     .layers_key = "decoder_layers",
     .waves = kInclusive,
     .first = kAfterPadding,
     .note = kZeroRow},
    {.types = "blenderbot blenderbot-small", .encoding = kLearned, .part = "encoder", .layers_key = "encoder_layers"},
    {.types = "bigbird_pegasus",
     .when = "attention_type=original_full",
     .encoding = kLearned,
     .part = "encoder",
     .layers_key = "encoder_layers"},
    {.types = "bigbird_pegasus",
     .when = "!attention_type=original_full",
     .encoding = kLearned,
     .part = "encoder",
     .layers_key = "encoder_layers",
     .other_attention = kBlockSparse},
    {.types = "blenderbot blenderbot-small bigbird_pegasus",
     .encoding = kLearned,
     .part = "decoder",
     .layers_key = "decoder_layers"},
    {.types = "led",
     .encoding = kLearned,
     .part = "encoder",
     .layers = {.rule = by_window_list},
     .layers_key = "encoder_layers",
     .window = {.key = "attention_window", .is_width = true},
     .length_key = "max_encoder_position_embeddings",
     .note = kGlobalTokens},
    {.types = "led",
     .encoding = kLearned,
     .part = "decoder",
     .layers_key = "decoder_layers",
     .length_key = "max_decoder_position_embeddings"},
    // sinusoids
    {.types = "marian pegasus", .encoding = kSinusoidal, .part = kEncoderDecoder, .waves = kSinCos},
    {.types = "pegasus_x",
     .encoding = kSinusoidal,
     .part = "encoder",
     .layers_key = "encoder_layers",
     .other_attention = "tokens attend to their own block and global tokens",
     .waves = kInclusive},
    {.types = "pegasus_x",
     .encoding = kSinusoidal,
     .part = "decoder",
     .layers_key = "decoder_layers",
     .waves = kInclusive},
    {.types = "ctrl", .encoding = kSinusoidal, .mask = Mask::kCausal, .waves = kSinCos},
    {.types = "xlm flaubert", .when = "sinusoidal_embeddings", .encoding = kSinusoidal, .mask = Mask::kByKey},
    {.types = "xlm flaubert", .when = "!sinusoidal_embeddings", .encoding = kLearned, .mask = Mask::kByKey},
    {.types = "m2m_100 nllb-moe",
     .encoding = kSinusoidal,
     .part = kEncoderDecoder,
     .waves = kFairseq,
     .first = kAfterPadding,
     .note = kZeroRow},
    {.types = "fsmt",
     .encoding = kSinusoidal,
     .part = kEncoderDecoder,
     .waves = kFairseq,
     .first = kAfterPadding,
     .note = kZeroRow},
    {.types = "speech_to_text",
     .encoding = kSinusoidal,
     .part = kEncoderDecoder,
     .length_key = "max_source_positions max_target_positions",
     .waves = kFairseq,
     .first = kAfterPadding,
     .note = kZeroRow},
    {.types = "xglm",
     .encoding = kSinusoidal,
     .mask = Mask::kCausal,
     .waves = kFairseq,
     .first = {.position = 2},
     .note = kZeroRow},
    {.types = "kosmos_2_text_model kosmos_2_5_text_model",
     .encoding = kSinusoidal,
     .mask = Mask::kCausal,
     .waves = kFairseq,
     .first = kAfterPadding,
     .note = kZeroRow},
    {.types = "musicgen_decoder musicgen_melody_decoder",
     .encoding = kSinusoidal,
     .mask = Mask::kCausal,
     .waves = {.layout = WaveLayout::kCosSin, .spacing = Spacing::kInclusive}},
    {.types = "time_series_transformer",
     .encoding = kSinusoidal,
     .part = kEncoderDecoder,
     .length_key = "context_length",
     .waves = kTrimmed},
    {.types = "informer",
     .when = "attention_type=full",
     .encoding = kSinusoidal,
     .part = kEncoderDecoder,
     .length_key = "context_length",
     .waves = kTrimmed},
    {.types = "informer",
     .when = "!attention_type=full",
     .encoding = kSinusoidal,
     .part = kEncoderDecoder,
     .other_attention = kProbSparse,
     .length_key = "context_length",
     .waves = kTrimmed},
    {.types = "autoformer",
     .encoding = kSinusoidal,
     .part = kEncoderDecoder,
     .other_attention = kAutoCorrelation,
     .length_key = "context_length",
     .waves = kTrimmed},
    {.types = "timesfm",
     .when = "use_positional_embedding",
     .encoding = kSinusoidal,
     .mask = Mask::kCausal,
     .scale = kUnscaled,
     .waves = kInclusive,
     .note = kTrainedFactors},
    {.types = "timesfm",
     .when = "!use_positional_embedding",
     .encoding = kNone,
     .mask = Mask::kCausal,
     .scale = kUnscaled,
     .note = kTrainedFactors},
    named("patchtst patchtsmixer", "patch-table",
          "x + table[patch]: one row for each patch of the series, trained or sinusoids (positional_encoding_type)"),
    {.types = "tipsv2_text_model", .encoding = kSinusoidal, .waves = kInclusive},
});
constexpr auto kAddedRows = table_of<count_of_rows(kAddedEntries)>(kAddedEntries, Mask::kBidirectional);

}  // namespace

std::span<const Family> added_families() noexcept { return kAddedRows; }

}  // namespace posenc::models
