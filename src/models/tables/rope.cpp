// Families that rotate queries and keys, one row for each way of doing so. Read in transformers 5.16.0.dev0
// (commit d56c55bf, August 2026), each family's modeling_*.py. Those that are not there:
//   vLLM a014e35f (August 2026): bailing_moe, bailing_moe_v2, chatglm, decilm, deepseek, exaone, internlm2, internlm3,
//     kimi_k2, longcat_flash_ngram, mimo, mimo_v2, minicpm, orion, stablelm_epoch, telechat2, telechat3,
//     xlm-roberta-flash;
//   llama.cpp b21e4de7 (August 2026; its converter undoes the order of halves): baichuan, llada, nanbeige, xverse;
//   mlx-lm 0.32.0 (d78bf58e, August 2026): Klear, afm7, baichuan_m1, qwen;
//   the code beside their weights: phi3small, internlm, InternLMXComposer (modeling_InternLM.py: rotate_half, base 10000).

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "models/model_groups.h"
#include "models/sizes.h"
#include "models/tables/phi3_small.h"
#include "models/tables/rows.h"

namespace posenc::models {
namespace {

using enum Encoding;

constexpr std::string_view kBetaTemperature =
    "with llama_4_scaling_beta, queries are multiplied by 1 + beta * ln(1 + floor(p / original length))";

constexpr std::string_view kIndexed =
    "a query attends to the index_topk keys that an indexer chooses: the caller's mask, if there are more";

constexpr std::string_view kNormedAfter =
    "queries and keys are normalised after they are rotated: rotate them first, and give attention no position";

// transformers 5.16 (d56c55bf), modeling_nanochat.py
void rotate_back(const RotationFacts& facts) { facts.rope.sign = -1; }

// Their sections are height, width, time; our axes are time, height, width.
void put_time_first(const RotationFacts& facts) {
  std::vector<std::int64_t>& sections = facts.rope.sections;
  if (!sections.empty()) std::rotate(sections.rbegin(), sections.rbegin() + 1, sections.rend());
}

// The base of the older key, or the default, is multiplied by rope_ratio.
void multiply_base(const RotationFacts& facts) {
  const auto entries =
      nested(facts.config, is_given(facts.config, "rope_scaling") ? "rope_scaling" : "rope_parameters");
  if (entries && find(*entries, "rope_theta") != nullptr) return;
  facts.rope.base *= positive(facts.config, "rope_ratio").value_or(1.0);
}

// A dense prefix has a pattern of its own, and rotates: transformers 5.16 (d56c55bf), configuration_cohere2_moe.py:136,
// modeling_cohere2_moe.py:299 and 319. llama.cpp b21e4de7, cohere2moe.cpp:179.
void by_dense_prefix(LayerFacts& facts) {
  const std::int64_t dense = integer(facts.config, "first_k_dense_replace", 0).value_or(0);
  const std::int64_t own = integer(facts.config, "prefix_dense_sliding_window_pattern").value_or(1);
  const std::int64_t every = facts.is_listed ? 1 : integer(facts.config, "sliding_window_pattern").value_or(4);
  const bool has_window = find(facts.config, "sliding_window") != nullptr;
  const auto kinds = texts(facts.config, "mlp_layer_types");
  for (std::int64_t i = 0; i < std::ssize(facts.layers); ++i) {
    Layer& layer = facts.layers[i];
    const bool is_full = i < dense ? (i + 1) % own == 0 : (i - dense + 1) % every == 0;
    if (!facts.is_listed) layer.type = is_full ? kFull : kSliding;
    const bool is_dense = kinds && i < std::ssize(*kinds) ? (*kinds)[i] == "dense" : i < dense;
    layer.rotates = (layer.type == kSliding && has_window) || (is_dense && own == 1);
  }
}

// transformers 5.16 (d56c55bf), configuration_minimax_m3_vl.py:143
void by_sparse_list(LayerFacts& facts) {
  const auto list = numbers(facts.config, "sparse_attention_config.sparse_attention_freq");
  for (std::size_t i = 0; !facts.is_listed && list && i < std::min(list->size(), facts.layers.size()); ++i) {
    facts.layers[i].type = (*list)[i] != 0 ? "minimax_m3_sparse" : kFull;
  }
}

// Layers whose attention was taken out: vLLM a014e35f, nemotron_nas.py:133.
void by_block_configs(LayerFacts& facts) {
  const Json* const json = find(facts.config, "block_configs");
  const auto* const blocks = json == nullptr ? nullptr : json->as<Json::Array>();
  for (std::size_t i = 0; blocks != nullptr && i < std::min(blocks->size(), facts.layers.size()); ++i) {
    const Config block{.object = &(*blocks)[i]};
    const bool has_none = holds(block, "attention.no_op") || holds(block, "attention.replace_with_linear");
    facts.layers[i].type = has_none ? "mlp" : kFull;
    facts.layers[i].rotates = !has_none;
  }
}

// YaRN without its magnitude: modeling_deepseek_v4.py
void without_magnitude(const RotationFacts& facts) {
  auto* const yarn = std::get_if<YarnScaling>(&*facts.rope.scaling);
  if (yarn != nullptr && !yarn->attention_factor) yarn->attention_factor = 1.0;
}

// Keys that vLLM and llama.cpp read, which would then rotate differently.
void note_other_base(const RotationFacts& facts) {
  constexpr std::string_view kKey = "attn_config.rope_theta";
  if (!is_given(facts.config, kKey) || positive(facts.config, kKey) == facts.rope.base) return;
  facts.reading.other_base = positive(facts.config, kKey);
  note(facts.remarks.warnings, fmt::format("{} is {} but transformers reads rope_theta; vLLM and llama.cpp read it",
                                           kKey, *facts.reading.other_base));
}

void note_other_dims(const RotationFacts& facts) {
  constexpr std::string_view kKey = "rotary_dim";
  if (!is_given(facts.config, kKey) || integer(facts.config, kKey) == facts.rope.dims) return;
  facts.reading.other_rotary_dim = integer(facts.config, kKey);
  note(facts.remarks.warnings,
       fmt::format("{} is {} but transformers reads partial_rotary_factor; vLLM and llama.cpp read it", kKey,
                   *facts.reading.other_rotary_dim));
}

// MiniMax-M2 was trained with rotary_dim. transformers read it until pull request 43407 (6c6aeb2d, 23 January 2026,
// before 5.0), which removed convert_rope_params_to_dict from configuration_minimax_m2.py; vLLM a014e35f,
// minimax_m2.py:198, SGLang cce0a124, minimax_m2.py:776 and llama.cpp b21e4de7, conversion/minimax.py:132 read it.
void keep_rotary_dim(const RotationFacts& facts) {
  constexpr std::string_view kKey = "rotary_dim", kShare = "partial_rotary_factor";
  const auto entries =
      nested(facts.config, is_given(facts.config, "rope_scaling") ? "rope_scaling" : "rope_parameters");
  if (is_given(facts.config, kShare) || (entries && find(*entries, kShare) != nullptr)) return note_other_dims(facts);
  if (!is_given(facts.config, kKey) || integer(facts.config, kKey) == facts.rope.dims) return;
  const std::int64_t own = *integer(facts.config, kKey), head = facts.rope.dims;
  if (own % 2 != 0 || own > head) refuse(facts.config, kKey, fmt::format("even and at most {}", head));
  facts.reading.hf_rotary_dim = head;
  facts.rope.dims = own;
  note(facts.remarks.warnings,
       fmt::format(
           "{} is {}, as the model was trained and as vLLM, SGLang and llama.cpp read it; transformers 5 ignores "
           "it and rotates {} of each head: a regression",
           kKey, own, head));
}

void scale_by_key_multiplier(const GroupFacts& facts) {
  const auto factor = positive(facts.config, "key_multiplier");
  if (factor) facts.group.scale = *factor / std::sqrt(static_cast<double>(head_size(facts.config, facts.family)));
}

// Layers that do not rotate: modeling_llama4.py
void set_temperature(const GroupFacts& facts) {
  if (facts.layer.rotates || find(facts.config, "floor_scale") == nullptr) return;
  if (!holds(facts.config, "!attn_temperature_tuning=false")) return;
  facts.group.temperature = Temperature{.scale = positive(facts.config, "attn_scale").value_or(0.1),
                                        .length = integer(facts.config, "floor_scale").value_or(8192),
                                        .shift = 1};
}

void compress_unless_sliding(const GroupFacts& facts) {
  if (facts.group.other_attention.empty() && !is_sliding(facts.layer.type)) facts.group.other_attention = kCompressed;
}

// If a window is even, one more key after the query than before: modeling_t5gemma2.py
void refuse_even_windows(const GroupFacts& facts) {
  const auto width = is_sliding(facts.layer.type) ? integer(facts.config, "sliding_window") : std::nullopt;
  if (!width || *width % 2 != 0) return;
  facts.group.other_attention =
      fmt::format("a query attends to {} keys before it and {} after it", (*width - 1) / 2, *width / 2);
}

// Layers without a window have none: modeling_mimo_v2_flash.py
void keep_sinks_of_windows(const GroupFacts& facts) { facts.group.has_sinks = is_sliding(facts.layer.type); }

constexpr auto kRopeEntries = std::to_array<Family>({
    // halves, whole heads
    {.types =
         "llama apertus arcee aria_text bitnet chameleon csm csm_depth_decoder_model deepseek_ocr2_text "
         "emu3_text_model evolla gemma gemma_text higgs_audio_v2 hy_v3 jais2 nanbeige olmo olmo2 olmoe "
         "flex_olmo seed_oss mimo internlm3 minicpm xverse orion telechat2 telechat3 Klear exaone InternLMXComposer "
         "deepseek"},
    {.types = "jetmoe",
     .note = "keys and values are repeated as a whole for a token's experts, so query head h has key head h mod "
             "num_key_value_heads: repeat them before attention"},
    // llama.cpp, llada.cpp: causal_attn
    {.types = "llada", .mask = Mask::kBidirectional},
    {.types = "hrm_text",
     .note = "tokens whose token_type_ids are 1 see each other in both directions: the caller's mask"},
    {.types = "dia_decoder", .scale = kUnscaled},
    {.types = "falcon_h1", .adjust = scale_by_key_multiplier},
    {.types = "diffllama", .other_attention = "the weights are the difference of two softmaxes"},
    {.types = "doge",
     .other_attention =
         "trained gates of the values are added to scores, and keys past keep_window_size are dropped by them"},
    {.types = "internlm", .note = "with rotary.type dynamic, the base grows past max_position_embeddings"},
    // vLLM, nemotron_nas.py
    {.types = "decilm",
     .when = "!position_embedding_type=mistral_yarn !position_embedding_type=rope_llama4",
     .layers = {.rule = by_block_configs}},
    {.types = "decilm",
     .when = "position_embedding_type=mistral_yarn",
     .layers = {.rule = by_block_configs},
     .rope = kInterleaved},
    {.types = "decilm",
     .when = "position_embedding_type=rope_llama4",
     .layers = {.rule = by_block_configs},
     .rope = kInterleaved},
    {.types = "baichuan_m1", .layers = {.picked = kSliding, .others = kFull, .list_key = "sliding_window_layers"}},
    {.types = "granite granitemoe granitemoeshared granite4_vision_text hyperclovax", .scale = kByMultiplier},
    {.types = "mistral mixtral starcoder2 phimoe ministral voxtral_realtime_text", .layers = kSlidingIfGiven},
    // their mask is only causal; the cache that their config creates drops what is past the window
    {.types = "moshi kyutai_speech_to_text", .layers = kSlidingIfGiven},
    {.types = "ministral3", .layers = kSlidingIfGiven, .note = kBetaTemperature},
    {.types = "qwen2 qwen3 qwen3_omni_moe_talker_code_predictor dots1", .layers = {.rule = sliding_after_some}},
    {.types = "deepseek_ocr2_encoder",
     .layers = {.rule = sliding_after_some},
     .note = "patches of the image, which come first, see each other in both directions: the caller's mask"},
    {.types = "qwen3_moe qwen3_omni_moe_talker_text", .layers = kSlidingIfGiven},
    {.types = "qwen2_moe", .layers = {.rule = sliding_before_some}},
    {.types = "gpt_oss", .layers = {.every = 2}, .has_sinks = true},
    {.types = "gemma2 vaultgemma", .layers = {.every = 2}, .scale = kByScalarCapped},
    {.types = "cwm", .layers = {.every = 4, .shift = 0}},
    {.types = "nanochat", .rope = {.adjust = rotate_back}, .note = kNormedAfter},
    {.types = "hunyuan_v1_dense hunyuan_v1_moe", .note = kNormedAfter},
    {.types = "qwen",
     .rope = {.base_key = "rotary_emb_base"},
     .note = "with use_logn_attn, queries past seq_length are multiplied by log(p) / log(seq_length); with "
             "use_dynamic_ntk the base grows with the length"},
    {.types = "baichuan", .when = "hidden_size=4096"},
    {.types = "falcon", .when = "!alibi"},
    {.types = "idefics", .note = "cross-attention layers to images are between these and have no position"},
    {.types = "longcat_flash_ngram longcat_flash", .layers_key = "num_hidden_layers", .rope = kLatent},
    // part of the head, at its start
    {.types = "gpt_neox gpt_neox_japanese",
     .rope = {.reads_partial = true,
              .partial_key = "rotary_pct",
              .style = RopeStyle::kOwnKeys,
              .base_key = "rotary_emb_base"}},
    {.types = "stablelm stablelm_epoch", .rope = {.reads_partial = true, .partial_key = "rope_pct"}},
    {.types = "phi persimmon nemotron glm4_moe solar_open", .rope = kPartial},
    {.types = "phi3 phi4_multimodal",
     .layers = kSlidingIfGiven,
     .rope = {.reads_partial = true, .style = RopeStyle::kYarnIsLongrope}},
    {.types = "phi3small",
     .layers = {.others = "blocksparse_attention", .every = 2, .every_key = "dense_attention_every_n_layers"},
     .adjust = scale_by_head,
     .rope = {.style = RopeStyle::kOwnKeys, .base_key = "rope_embedding_base", .adjust = multiply_positions}},
    {.types = "dbrx", .rope = {.adjust = note_other_base}},
    {.types = "minimax_m2", .rope = {.reads_partial = true, .adjust = keep_rotary_dim}},
    {.types = "minimax_m3_vl_text",
     .layers = {.rule = by_sparse_list},
     .indexer = Indexer::kAsAttention,
     .indexed = "minimax_m3_sparse",
     .rope = {.reads_partial = true, .adjust = note_other_dims},
     .note = "in minimax_m3_sparse layers, a query attends to the index_topk_blocks blocks of keys that an indexer "
             "chooses: the caller's mask"},
    {.types = "bailing_moe bailing_moe_v2", .rope = kPartial},
    // interleaved
    {.types = "afm7",
     .rope = kInterleaved,
     .note = "queries and keys are normalised after they are rotated; the last num_kv_reuse_layers share their keys"},
    {.types = "gptj codegen", .rope = {.layout = PairLayout::kInterleaved, .dims_key = "rotary_dim"}},
    {.types = "roformer",
     .mask = Mask::kBidirectional,
     .rope = kInterleaved,
     .note = "with rotary_value, values are rotated as well"},
    {.types =
         "cohere helium ernie4_5 ernie4_5_moe blt_local_encoder blt_local_decoder blt_global_transformer blt_patcher",
     .rope = kInterleaved},
    {.types = "cohere2_moe",
     .layers = {.rule = by_dense_prefix},
     .rope = {.layout = PairLayout::kInterleaved, .style = RopeStyle::kNewest}},
    {.types = "cohere2",
     .layers = {.every = 4, .every_key = "sliding_window_pattern", .only_others_rotate = true},
     .rope = kInterleaved},
    {.types = "glm glm4", .rope = {.layout = PairLayout::kInterleaved, .reads_partial = true}},
    {.types = "chatglm",
     .rope = {.layout = PairLayout::kInterleaved, .reads_partial = true, .adjust = multiply_base}},
    {.types = "internlm2"},
    {.types = "llama4_text",
     .layers = {.every = 4, .every_key = "no_rope_layer_interval", .rule = chunks_by_no_rope_list},
     .adjust = set_temperature,
     .rope = kInterleaved},
    {.types = "openai_privacy_filter",
     .mask = Mask::kBidirectional,
     .layers = kSlidingIfGiven,
     .has_sinks = true,
     .rope = kInterleaved,
     .note = "queries and keys are each scaled by D^(-1/4)"},
    // MLA: one shared key head, its block at the end of a head
    {.types = "deepseek_v2",
     .when = "!qk_rope_head_dim=0",
     .rope = {.layout = PairLayout::kInterleaved, .dims_key = kLatentDims}},
    // no MLA (DeepSeek-VL2-tiny, DeepSeek-OCR): plain attention, vLLM a014e35f, deepseek_v2.py:144 and 1260; transformers
    // has no code for it
    {.types = "deepseek_v2", .when = "qk_rope_head_dim=0 qk_nope_head_dim=0"},
    {.types = "deepseek_v2", .when = "qk_rope_head_dim=0 !qk_nope_head_dim=0", .encoding = kNone},
    {.types = "deepseek_v3 kimi_k2 glm4_moe_lite youtu axk1", .rope = kLatentByKey},
    {.types = "axk2", .indexer = Indexer::kHalvesFirst, .rope = kLatentByKey, .note = kIndexed},
    {.types = "deepseek_v32", .indexer = Indexer::kHalvesFirst, .rope = kLatent, .note = kIndexed},
    {.types = "glm_moe_dsa", .indexer = Indexer::kInterleavedFirst, .rope = kLatent, .note = kIndexed},
    {.types = "mistral4", .layers = kSlidingIfGiven, .rope = kLatentByKey, .note = kBetaTemperature},
    {.types = "deepseek_v4",
     .layers = {.rule = by_compress_ratios},
     .has_sinks = true,
     .adjust = compress_unless_sliding,
     .indexer = Indexer::kAsAttention,
     .indexed = "compressed_sparse_attention",
     .rope = {.layout = PairLayout::kInterleaved,
              .reads_partial = true,
              .dims_key = kLatentDims,
              .style = RopeStyle::kLabelled,
              .adjust = without_magnitude},
     .note = "the output of attention is rotated back by the same rotation"},
    {.types = "minicpm3", .rope = {.dims_key = kLatentDims}},
    // layers that differ
    {.types = "smollm3",
     .layers = {.every = 4, .every_key = "no_rope_layer_interval", .rule = sliding_by_no_rope_list}},
    {.types = "exaone4 exaone_moe",
     .layers = {.every = 4, .every_key = "sliding_window_pattern", .only_others_rotate = true, .needs_window = true}},
    {.types = "afmoe", .layers = {.every = 4, .every_key = "global_attn_every_n_layers", .only_others_rotate = true}},
    // attn_logit_softcapping is kept and not applied: modeling_gemma3.py, modeling_t5gemma2.py
    {.types = "gemma3_text",
     .layers = {.every = 6, .every_key = "sliding_window_pattern"},
     .scale = kByScalar,
     .rope = {.style = RopeStyle::kSplit, .local_base_key = "rope_local_base_freq"}},
    {.types = "t5gemma2_text",
     .mask = Mask::kBidirectional,
     .layers = {.every = 6, .every_key = "sliding_window_pattern"},
     .window = {.is_width = true},
     .scale = kByScalar,
     .adjust = refuse_even_windows,
     .rope = {.style = RopeStyle::kSplit, .local_base_key = "rope_local_base_freq"}},
    {.types = "t5gemma2_decoder",
     .layers = {.every = 6, .every_key = "sliding_window_pattern"},
     .scale = kByScalar,
     .other_attention = "the encoder's keys, not rotated, join those of the decoder in one softmax",
     .rope = {.style = RopeStyle::kSplit, .local_base_key = "rope_local_base_freq"}},
    {.types = "gemma3n_text",
     .layers = {.every = 5},
     .scale = kUnscaled,
     .rope = {.style = RopeStyle::kSplit, .local_base_key = "rope_local_base_freq"}},
    // the decoder's config has is_decoder
    {.types = "t5_gemma_module", .mask = Mask::kBidirectional, .layers = {.every = 2}, .scale = kByScalarCapped},
    {.types = "diffusion_gemma_text",
     .layers = {.every = 6, .picks_last = true},
     .scale = kUnscaled,
     .rope = {.reads_partial = true, .style = RopeStyle::kTyped},
     .note = "this is the encoder of the prompt; tokens of the decoder's canvas see each other in both directions"},
    {.types = "gemma4_text gemma4_unified_text",
     .layers = {.every = 6, .picks_last = true},
     .scale = kUnscaled,
     .rope = {.style = RopeStyle::kTyped}},
    {.types = "olmo3", .layers = {.every = 4}, .rope = {.style = RopeStyle::kSplit}},
    {.types = "modernbert",
     .mask = Mask::kBidirectional,
     .layers = {.every = 3, .every_key = "global_attn_every_n_layers", .shift = 0},
     .window = {.key = "local_attention", .is_width = true},
     .rope = {.style = RopeStyle::kSplitBoth, .base_key = "global_rope_theta", .local_base_key = "local_rope_theta"}},
    {.types = "modernbert-decoder",
     .layers = {.every = 3, .every_key = "global_attn_every_n_layers", .shift = 0},
     .window = {.key = "local_attention", .is_width = true},
     .rope = {.style = RopeStyle::kSplitBoth, .base_key = "global_rope_theta", .local_base_key = "local_rope_theta"}},
    {.types = "laguna mellum", .layers = kAllFull, .rope = {.reads_partial = true, .style = RopeStyle::kTyped}},
    {.types = "mimo_v2_flash mimo_v2",
     .layers = {.every = 6, .picks_first = true, .rule = by_hybrid_pattern},
     .has_sinks = true,
     .adjust = keep_sinks_of_windows,
     .rope = {.reads_partial = true, .style = RopeStyle::kTyped}},
    {.types = "zaya",
     .layers = {.picked = "hybrid", .every = 1},
     .rope = {.reads_partial = true, .style = RopeStyle::kTyped}},
    {.types = "step3p5",
     .layers = kAllFull,
     .scale = kByScalar,
     .rope = {.reads_partial = true, .style = RopeStyle::kListed}},
    {.types = "cohere_compass_text", .layers = kAllFull, .rope = {.style = RopeStyle::kTyped}},
    {.types = "granite_swa granitemoe_swa",
     .layers = {.every = 4, .shift = 0, .rule = by_base_list},
     .scale = kByMultiplier,
     .has_sinks = true},
    {.types = "muse_glimmer_text",
     .layers = {.every = 4, .is_from_end = true, .only_others_rotate = true, .rule = by_base_list}},
    {.types = "muse_glimmer_assistant", .mask = Mask::kBidirectional, .layers = kSlidingIfGiven},
    {.types = "mllama_text_model",
     .layers = {.picked = "cross_attention",
                .others = kFull,
                .list_key = "cross_attention_layers",
                .only_others_rotate = true}},
    // several axes
    {.types = "qwen2_vl_text qwen2_5_vl_text qwen2_5_omni_text qwen2_5_omni_talker",
     .layers = {.rule = sliding_after_some},
     .rope = {.sections = kGiven}},
    {.types = "paddleocr_vl_text", .rope = {.sections = kGiven}},
    {.types = "hunyuan_vl_text", .rope = {.sections = kGiven}, .note = kNormedAfter},
    {.types = "qwen3_vl_text qwen3_vl_moe_text qwen3_omni_moe_text cosmos3_edge_text",
     .rope = {.sections = "24,20,20", .section_order = SectionOrder::kInterleaved}},
    {.types = "glm4v_text glm_ocr_text",
     .rope = {.layout = PairLayout::kInterleaved, .reads_partial = true, .sections = "8,12,12"}},
    {.types = "glm4v_moe_text glm_image_text", .rope = {.reads_partial = true, .sections = "8,12,12"}},
    {.types = "ernie4_5_vl_text ernie4_5_vl_moe_text",
     .rope = {.layout = PairLayout::kInterleaved,
              .sections = "22,22,20",
              .section_order = SectionOrder::kAlternating,
              .adjust = put_time_first}},
    // encoders
    {.types = "nomic_bert",
     .mask = Mask::kBidirectional,
     .rope = {.partial_key = "rotary_emb_fraction", .base_key = "rotary_emb_base"}},
    {.types = "jina_embeddings_v3 xlm-roberta-flash",
     .mask = Mask::kBidirectional,
     .rope = {.base_key = "rotary_emb_base"}},
    {.types = "eurobert esmc lasr_encoder xcodec2", .mask = Mask::kBidirectional},
    {.types = "dia_encoder", .mask = Mask::kBidirectional, .scale = kUnscaled},
    {.types = "esm", .when = "position_embedding_type=rotary", .mask = Mask::kBidirectional},
    {.types = "timesfm2_5",
     .scale = kUnscaled,
     .note = "queries and keys are normalised after they are rotated, then queries are multiplied by 1.442695041 "
             "softplus(scaling) / sqrt(D), trained: rotate first, and give attention no position"},
    {.types = "pe_audio_encoder pe_video_encoder pe_audio_video_encoder",
     .mask = Mask::kBidirectional,
     .rope = kInterleaved},
});
constexpr auto kRopeRows = table_of<count_of_rows(kRopeEntries)>(kRopeEntries, Mask::kCausal);

// An unknown model_type: what most families do. Everything that the file states is taken as given.
constexpr auto kUnknownEntries = std::to_array<Family>({
    {.types = "",
     .when = "qk_rope_head_dim",
     .layers = kSlidingIfGiven,
     .rope = {.layout = PairLayout::kInterleavedToHalves,
              .reads_interleave = true,
              .dims_key = kLatentDims,
              .sections = kGiven}},
    {.types = "",
     .when = "!qk_rope_head_dim",
     .layers = kSlidingIfGiven,
     .rope = {.reads_partial = true,
              .partial_key = "rotary_pct",
              .dims_key = "rotary_dim",
              .sections = kGiven,
              .base_key = "rotary_emb_base"}},
});
constexpr auto kUnknownRows = table_of<count_of_rows(kUnknownEntries)>(kUnknownEntries, Mask::kCausal);

}  // namespace

std::span<const Family> unknown_families() noexcept { return kUnknownRows; }

std::span<const Family> rope_families() noexcept { return kRopeRows; }

}  // namespace posenc::models
