#include "models/families.h"

#include <array>

namespace posenc::models {
namespace {

constexpr auto kHalves = PairLayout::kHalves;
constexpr auto kInterleaved = PairLayout::kInterleaved;
constexpr auto kToHalves = PairLayout::kInterleavedToHalves;
constexpr std::string_view kTemperature =
    "queries of layers without rope are multiplied by 1 + attn_scale * ln(1 + floor((p + 1) / floor_scale)), "
    "unless attn_temperature_tuning is off";
constexpr std::string_view kBetaTemperature =
    "with llama_4_scaling_beta, queries are multiplied by 1 + beta * ln(1 + floor(p / original length))";
constexpr std::string_view kShift =
    "positions count tokens and skip padding; padding has the position before the first";

// One row for each way in which families treat position. Rows of one model_type follow each other: all whose `when`
// holds are parts of the model.
constexpr auto kFamilies = std::to_array<Family>({
    // rotary, halves
    {.types =
         "llama mistral mixtral gemma gemma2 gemma_text olmo olmoe granite granitemoe granitemoeshared starcoder2 "
         "internlm internlm2 internlm3 arcee seed_oss bitnet dbrx jetmoe diffllama minicpm dots1 xverse"},
    {.types = "phi3 phimoe phi4_multimodal"},
    {.types = "qwen2 qwen2_moe qwen3 qwen3_moe cwm lfm2 lfm2_moe", .base = 1e6},
    {.types = "mllama_text_model olmo2 flex_olmo", .base = 5e5},
    {.types = "gpt_oss", .base = 150000},
    {.types = "minimax_m2", .base = 5e6, .dims_key = "rotary_dim"},
    {.types = "apertus", .base = 1.2e7},
    {.types = "hy_v3", .base = 11158840},
    {.types = "fuyu", .base = 25000},
    {.types = "nanochat", .sign = -1},
    {.types = "hunyuan_v1_dense hunyuan_v1_moe"},
    {.types = "hunyuan_vl hunyuan_vl_text"},
    {.types = "falcon_h1 bamba", .partial = 0.5},
    {.types = "falcon", .when = "!alibi"},
    {.types = "falcon",
     .when = "alibi",
     .encoding = Encoding::kAlibi,
     .note = "scores and bias together are divided by sqrt(D), and slopes are rounded to bf16 first"},
    // rotary in part, at the front of a head
    {.types = "gpt_neox gpt_neox_japanese",
     .partial = 0.25,
     .partial_key = "rotary_pct",
     .base_key = "rotary_emb_base"},
    {.types = "stablelm stablelm_epoch", .partial = 0.25, .partial_key = "rope_pct"},
    {.types = "phi persimmon nemotron", .partial = 0.5},
    {.types = "glm4_moe glm4v_moe_text", .partial = 0.5},
    {.types = "mimo_v2 mimo_v2_flash",
     .partial = 0.334,
     .rule = LayerRule::kLocalGlobal,
     .every = 6,
     .every_key = "sliding_window_pattern",
     .local_base_key = "swa_rope_theta"},
    {.types = "qwen3_next",
     .base = 1e7,
     .partial = 0.25,
     .rule = LayerRule::kAttentionEvery,
     .every = 4,
     .every_key = "full_attention_interval"},
    {.types = "musicflamingo", .partial = 0.2},
    // interleaved
    {.types = "gptj codegen", .layout = kInterleaved, .dims_key = "rotary_dim", .dims = 64},
    {.types = "roformer", .layout = kInterleaved, .note = "with rotary_value, values are turned as well"},
    {.types = "cohere", .layout = kInterleaved, .base = 5e5},
    {.types = "cohere2",
     .layout = kInterleaved,
     .base = 5e5,
     .rule = LayerRule::kSlidingTurns,
     .every = 4,
     .every_key = "sliding_window_pattern"},
    {.types = "glm glm4", .layout = kInterleaved, .partial = 0.5},
    {.types = "glm4v_text glm4v glm_ocr_text glm_ocr", .layout = kInterleaved, .partial = 0.5},
    {.types = "chatglm", .layout = kInterleaved, .partial = 0.5, .note = "rope_ratio multiplies the base of 10000"},
    {.types = "ernie4_5 ernie4_5_moe", .layout = kInterleaved, .base = 5e5},
    {.types = "ernie4_5_vl ernie4_5_vl_moe ernie4_5_vl_text ernie4_5_vl_moe_text",
     .layout = kInterleaved,
     .base = 5e5,
     .section_order = SectionOrder::kAlternating,
     .sections_end_with_time = true},
    {.types = "helium", .layout = kInterleaved, .base = 1e5},
    {.types = "moonshine", .layout = kInterleaved, .partial = 0.9},
    {.types = "moonshine_streaming", .layout = kInterleaved, .partial = 0.8},
    {.types = "blt", .layout = kInterleaved, .base = 5e5},
    {.types = "llama4_text llama4",
     .layout = kInterleaved,
     .base = 5e5,
     .rule = LayerRule::kNoRopeList,
     .every = 4,
     .every_key = "no_rope_layer_interval",
     .note = kTemperature},
    // MLA: one shared key head, its block at the end of a head
    {.types = "deepseek_v2",
     .layout = kInterleaved,
     .dims_key = "qk_rope_head_dim",
     .dims = 64,
     .at_end = true,
     .mscale_on_softmax = true},
    {.types = "deepseek_v3 deepseek_v32 kimi_k2 glm4_moe_lite youtu axk1",
     .layout = kToHalves,
     .dims_key = "qk_rope_head_dim",
     .dims = 64,
     .at_end = true,
     .mscale_on_softmax = true},
    {.types = "longcat_flash",
     .layout = kToHalves,
     .base = 1e7,
     .dims_key = "qk_rope_head_dim",
     .dims = 64,
     .at_end = true,
     .mscale_on_softmax = true},
    {.types = "mistral4",
     .layout = kToHalves,
     .dims_key = "qk_rope_head_dim",
     .dims = 64,
     .at_end = true,
     .mscale_on_softmax = true,
     .note = kBetaTemperature},
    {.types = "deepseek_v4",
     .layout = kInterleaved,
     .dims_key = "qk_rope_head_dim",
     .dims = 64,
     .at_end = true,
     .unit_magnitude = true,
     .note = "the output of attention is turned back by the same rotation"},
    {.types = "minicpm3", .dims_key = "qk_rope_head_dim", .dims = 32, .at_end = true},
    {.types = "ministral3", .base = 1e6, .note = kBetaTemperature},
    // layers that differ
    {.types = "smollm3",
     .base = 2e6,
     .rule = LayerRule::kNoRopeList,
     .every = 4,
     .every_key = "no_rope_layer_interval"},
    {.types = "exaone4",
     .base = 1e6,
     .rule = LayerRule::kSlidingOrAll,
     .every = 4,
     .every_key = "sliding_window_pattern"},
    {.types = "gemma3 gemma3_text gemma3n gemma3n_text t5gemma2_text",
     .base = 1e6,
     .rule = LayerRule::kLocalGlobal,
     .every = 6,
     .every_key = "sliding_window_pattern",
     .local_base_key = "rope_local_base_freq",
     .local_base = 10000},
    {.types = "gemma4 gemma4_text",
     .base = 1e6,
     .global_head_key = "global_head_dim",
     .rule = LayerRule::kLocalGlobal,
     .every = 6,
     .every_key = "sliding_window_pattern",
     .local_base = 10000},
    {.types = "olmo3", .base = 5e5, .rule = LayerRule::kLocalGlobal, .every = 4},
    {.types = "modernbert modernbert-decoder",
     .base = 160000,
     .base_key = "global_rope_theta",
     .rule = LayerRule::kGlobalFirst,
     .every = 3,
     .every_key = "global_attn_every_n_layers",
     .local_base_key = "local_rope_theta",
     .local_base = 10000},
    {.types = "laguna mellum step3p7 cohere_compass zaya", .rule = LayerRule::kLocalGlobal},
    {.types = "granite_swa muse_glimmer", .base_key = "layer_rope_theta", .rule = LayerRule::kBaseList},
    // several axes
    {.types = "qwen2_vl qwen2_vl_text qwen2_5_vl qwen2_5_vl_text qwen2_5_omni_text", .base = 1e6},
    {.types = "qwen3_vl qwen3_vl_text qwen3_vl_moe qwen3_vl_moe_text",
     .base = 5e6,
     .section_order = SectionOrder::kInterleaved},
    {.types = "qwen3_5 qwen3_5_text qwen3_5_moe qwen3_5_moe_text",
     .base = 1e7,
     .partial = 0.25,
     .section_order = SectionOrder::kInterleaved,
     .rule = LayerRule::kAttentionEvery,
     .every = 4,
     .every_key = "full_attention_interval"},
    // encoders
    {.types = "nomic_bert", .base = 1000, .partial_key = "rotary_emb_fraction", .base_key = "rotary_emb_base"},
    {.types = "jina_embeddings_v3 xlm-roberta-flash", .base = 20000, .base_key = "rotary_emb_base"},
    {.types = "eurobert", .base = 250000},
    {.types = "esm", .when = "position_embedding_type=rotary"},
    {.types = "esm",
     .when = "!position_embedding_type=rotary",
     .encoding = Encoding::kLearned,
     .offset_in_table = true,
     .first_position = 2,
     .note = kShift},
    // learned tables
    {.types = "gpt2 gpt_bigcode gpt_neo imagegpt", .encoding = Encoding::kLearned},
    {.types = "bert electra albert mobilebert megatron-bert visual_bert", .encoding = Encoding::kLearned},
    {.types = "distilbert", .when = "!sinusoidal_pos_embds", .encoding = Encoding::kLearned},
    {.types = "distilbert", .when = "sinusoidal_pos_embds", .encoding = Encoding::kSinusoidal},
    {.types = "roberta xlm-roberta xlm-roberta-xl camembert longformer layoutlmv3 mpnet data2vec-text ibert",
     .encoding = Encoding::kLearned,
     .offset_in_table = true,
     .first_position = 2,
     .note = kShift},
    {.types = "opt", .encoding = Encoding::kLearned, .offset = 2, .note = kShift},
    {.types = "bart mbart plbart biogpt", .encoding = Encoding::kLearned, .offset = 2},
    {.types = "whisper",
     .encoding = Encoding::kSinusoidal,
     .part = "encoder",
     .spacing = Spacing::kInclusive,
     .waves = WaveLayout::kSinCos,
     .length_key = "max_source_positions"},
    {.types = "whisper", .encoding = Encoding::kLearned, .part = "decoder", .length_key = "max_target_positions"},
    // sinusoids
    {.types = "marian pegasus", .encoding = Encoding::kSinusoidal, .waves = WaveLayout::kSinCos},
    {.types = "ctrl", .encoding = Encoding::kSinusoidal, .waves = WaveLayout::kSinCos},
    {.types = "xlm", .when = "sinusoidal_embeddings", .encoding = Encoding::kSinusoidal},
    {.types = "xlm", .when = "!sinusoidal_embeddings", .encoding = Encoding::kLearned},
    {.types = "m2m_100 nllb-moe speech_to_text fsmt xglm",
     .encoding = Encoding::kSinusoidal,
     .spacing = Spacing::kInclusive,
     .waves = WaveLayout::kSinCos,
     .first_position = 2,
     .note = "the row of padding is zero"},
    {.types = "musicgen_decoder",
     .encoding = Encoding::kSinusoidal,
     .spacing = Spacing::kInclusive,
     .waves = WaveLayout::kCosSin},
    // biases
    {.types = "bloom", .encoding = Encoding::kAlibi, .note = "positions count tokens and skip padding"},
    {.types = "mpt", .when = "attn_config.alibi", .encoding = Encoding::kAlibi},
    {.types = "mpt", .when = "!attn_config.alibi", .encoding = Encoding::kLearned},
    {.types = "refact jais", .encoding = Encoding::kAlibi},
    {.types = "jina_bert_v2", .encoding = Encoding::kAlibi, .note = "symmetric: distance counts in both directions"},
    {.types = "t5 mt5 longt5",
     .encoding = Encoding::kT5,
     .is_unscaled = true,
     .note = "made in the first layer, shared by all; scores are not scaled by 1/sqrt(D)"},
    {.types = "umt5",
     .encoding = Encoding::kT5,
     .is_unscaled = true,
     .note = "each layer has a table of its own; scores are not scaled by 1/sqrt(D)"},
    {.types = "deberta deberta-v2", .encoding = Encoding::kOther, .name = "deberta"},
    {.types = "xlnet transfo-xl", .encoding = Encoding::kOther, .name = "transformer-xl"},
    {.types = "wav2vec2-bert", .encoding = Encoding::kOther, .name = "shaw"},
    {.types = "swin swinv2", .encoding = Encoding::kOther, .name = "swin"},
    {.types = "mamba mamba2 rwkv falcon_mamba", .encoding = Encoding::kNone},
});

// How llama.cpp turns the weights as GGUF files hold them.
constexpr auto kArchitectures = std::to_array<Architecture>({
    {.names = "llama deci baichuan starcoder internlm2 minicpm xverse command-r olmo arctic deepseek chatglm granite "
              "granitemoe granitehybrid chameleon bailingmoe neo-bert arcee ernie4_5 ernie4_5-moe mistral3 glm4 plm "
              "llama-embed maincoder",
     .layout = kInterleaved},
    {.names = "llama4 smollm3", .layout = kInterleaved, .rule = LayerRule::kNoRopeList, .every = 4},
    {.names = "cohere2", .layout = kInterleaved, .rule = LayerRule::kSlidingTurns, .every = 4},
    {.names = "deepseek2 deepseek32 mistral4 glm-dsa", .layout = kInterleaved, .at_end = true},
    {.names =
         "falcon falcon-h1 grok dbrx modern-bert nomic-bert nomic-bert-moe jina-bert-v3 eurobert stablelm bitnet "
         "qwen qwen2 dream qwen2moe qwen3 qwen3moe qwen3next olmo2 olmoe phi2 phi3 phimoe plamo plamo2 gemma "
         "gemma2 starcoder2 openelm gptneox codeshell orion nemotron exaone minicpm3 bailingmoe2 dots1 hunyuan-moe "
         "hunyuan-dense gpt-oss lfm2 lfm2moe smallthinker seed_oss grovemoe apertus minimax-m2 glm4moe mimo2",
     .layout = kHalves},
    {.names = "exaone4", .layout = kHalves, .rule = LayerRule::kSlidingOrAll, .every = 4},
    {.names = "gemma3 gemma3n", .layout = kHalves, .rule = LayerRule::kLocalGlobal, .every = 6, .local_base = 10000},
    {.names = "qwen2vl paddleocr", .layout = kHalves, .section_order = SectionOrder::kChunked},
    {.names = "qwen3vl qwen3vlmoe qwen35 qwen35moe",
     .layout = kHalves,
     .section_order = SectionOrder::kInterleaved,
     .note =
         "llama.cpp leaves pairs that no section claims unturned for text, where transformers turns them by time"},
    {.names = "gpt2 bert", .encoding = Encoding::kLearned},
    {.names = "mpt bloom refact jais jina-bert-v2", .encoding = Encoding::kAlibi},
    {.names = "t5 t5encoder", .encoding = Encoding::kT5},
    {.names = "gptj",
     .encoding = Encoding::kOther,
     .name = "rope",
     .note = "llama.cpp knows the name gptj but has no rotation for it"},
    {.names = "mamba mamba2 rwkv6 rwkv7", .encoding = Encoding::kNone},
});

std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(' '));
    if (!word.empty()) words.push_back(word);
    text.remove_prefix(word.size() + (word.size() < text.size() ? 1 : 0));
  }
  return words;
}

bool has_word(std::string_view text, std::string_view wanted) {
  for (const std::string_view word : words_of(text)) {
    if (word == wanted) return true;
  }
  return false;
}

}  // namespace

std::vector<const Family*> families_of(std::string_view model_type) {
  std::vector<const Family*> rows;
  for (const Family& family : kFamilies) {
    if (has_word(family.types, model_type)) rows.push_back(&family);
  }
  return rows;
}

std::vector<std::string_view> known_model_types() {
  std::vector<std::string_view> names;
  for (const Family& family : kFamilies) {
    for (const std::string_view name : words_of(family.types)) names.push_back(name);
  }
  return names;
}

const Architecture* architecture_named(std::string_view name) {
  for (const Architecture& architecture : kArchitectures) {
    if (has_word(architecture.names, name)) return &architecture;
  }
  return nullptr;
}

std::vector<std::string_view> known_architectures() {
  std::vector<std::string_view> names;
  for (const Architecture& architecture : kArchitectures) {
    for (const std::string_view name : words_of(architecture.names)) names.push_back(name);
  }
  return names;
}

}  // namespace posenc::models
