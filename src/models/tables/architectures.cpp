// How llama.cpp rotates the weights as GGUF files hold them. Read in llama.cpp b21e4de7 (August 2026):
// llama_model_rope_type in src/llama-model.cpp for the layout, load_arch_hparams in src/models/*.cpp for the rest.

#include "models/architectures.h"

#include <algorithm>
#include <array>

namespace posenc::models {
namespace {

constexpr auto kArchitectures = std::to_array<Architecture>({
    {.names =
         "llama deci internlm2 minicpm xverse command-r olmo arctic deepseek chatglm chameleon bailingmoe neo-bert "
         "arcee ernie4_5 ernie4_5-moe llama-embed maincoder eagle3 nanbeige pockettts "
         "deepseek2-ocr",
     .layout = PairLayout::kInterleaved},
    {.names = "llada", .layout = PairLayout::kInterleaved, .is_causal = false},
    {.names = "mistral3", .layout = PairLayout::kInterleaved, .has_trained_floor = true},
    {.names = "baichuan", .layout = PairLayout::kInterleaved, .alibi_blocks = 40},
    {.names = "granite granitemoe granitehybrid graniteswitch",
     .layout = PairLayout::kInterleaved,
     .has_rope_switch = true},
    {.names = "granite_swa",
     .layout = PairLayout::kInterleaved,
     .period = 4,
     .is_full_first = true,
     .has_rope_switch = true,
     .has_sinks = true},
    {.names = "llama4",
     .layout = PairLayout::kInterleaved,
     .period = 4,
     .unrotated = Unrotated::kEveryFourth,
     .has_chunks = true},
    {.names = "smollm3", .layout = PairLayout::kInterleaved, .unrotated = Unrotated::kEveryFourth},
    {.names = "cohere2 muse-glimmer",
     .layout = PairLayout::kInterleaved,
     .period = 4,
     .unrotated = Unrotated::kWithoutWindow},
    // cohere2moe.cpp:179: force_rope
    {.names = "cohere2moe",
     .layout = PairLayout::kInterleaved,
     .period = 4,
     .unrotated = Unrotated::kWithoutWindow,
     .rotates_lead = true},
    {.names = "deepseek2",
     .layout = PairLayout::kInterleaved,
     .at_end = true,
     .has_log_of_ten = true,
     .has_equal_mscales = true},
    {.names = "deepseek32 mistral4 glm-dsa bailingmoe3 dots3note",
     .layout = PairLayout::kInterleaved,
     .at_end = true,
     .has_log_of_ten = true},
    {.names = "deepseek4",
     .layout = PairLayout::kInterleaved,
     .at_end = true,
     .are_all_windows = true,
     .has_sinks = true,
     .note = "the output of attention is rotated back by the same rotation"},
    {.names = "plm", .layout = PairLayout::kInterleaved, .at_end = true},
    {.names =
         "falcon falcon-h1 dbrx stablelm bitnet qwen qwen2 qwen2moe qwen3 qwen3moe olmoe "
         "phi2 phi3 phimoe plamo plamo2 gemma starcoder2 openelm gptneox codeshell orion nemotron exaone "
         "bailingmoe2 dots1 hunyuan-moe hunyuan-dense jais2 hy_v3 lfm2 lfm2moe seed_oss grovemoe apertus minimax-m2 "
         "minimax-m3 cogvlm pangu-embedded talkie dflash"},
    {.names = "dream llada-moe rnd1", .is_causal = false},
    {.names = "nomic-bert nomic-bert-moe jina-bert-v3 eurobert", .is_causal = false},
    {.names = "grok", .output_scale = 0.08838834764831845, .softcap = 30},
    {.names = "gpt-oss", .period = 2, .has_sinks = true},
    {.names = "gemma2", .period = 2, .window = 4096, .wide_blocks = 46, .softcap = 50},
    {.names = "minicpm3", .at_end = true},
    {.names = "exaone4", .period = 4, .only_blocks = 64, .unrotated = Unrotated::kWithoutWindow},
    {.names = "exaone-moe", .period = 4, .unrotated = Unrotated::kWithoutWindow},
    {.names = "gemma3",
     .period = 6,
     .needs_window = true,
     .local_base = 10000,
     .is_local_unscaled = true,
     .wide_blocks = 62},
    {.names = "gemma-embedding", .period = 6, .local_base = 10000, .is_local_unscaled = true, .is_causal = false},
    {.names = "gemma3n", .period = 5, .local_base = 10000, .is_local_unscaled = true, .is_unscaled = true},
    {.names = "gemma4 gemma4-assistant",
     .period = 6,
     .local_base = 10000,
     .is_local_unscaled = true,
     .is_unscaled = true},
    {.names = "modern-bert",
     .period = 3,
     .is_full_first = true,
     .needs_window = true,
     .local_base = 10000,
     .is_local_unscaled = true,
     .is_causal = false},
    {.names = "mimo2", .period = 1, .local_base = 10000, .is_local_unscaled = true, .sinks_by_tensor = true},
    {.names = "step35", .period = 1, .local_base = 10000, .is_local_unscaled = true},
    {.names = "plamo3", .period = 8, .needs_window = true, .local_base = 10000, .is_local_unscaled = true},
    {.names = "olmo2", .period = 4, .needs_window = true, .is_local_unscaled = true},
    {.names = "laguna", .period = 4, .is_full_first = true, .needs_window = true, .is_local_unscaled = true},
    {.names = "mellum", .period = 4, .needs_window = true, .is_local_unscaled = true},
    {.names = "afmoe", .period = 4, .needs_window = true, .unrotated = Unrotated::kEveryFourth},
    {.names = "smallthinker",
     .period = 4,
     .is_full_first = true,
     .needs_window = true,
     .unrotated = Unrotated::kFullFrom0},
    {.names = "qwen3next", .interval = 4},
    {.names = "minimax-01", .interval = 8},
    {.names = "qwen2vl paddleocr"},
    {.names = "glm4", .layout = PairLayout::kInterleaved, .sections_are_halves = true},
    {.names = "glm4moe", .sections_are_halves = true},
    {.names = "hunyuan_vl", .sections_are_halves = true, .has_alpha = true},
    {.names = "qwen3vl qwen3vlmoe qwen3tts",
     .section_order = SectionOrder::kInterleaved,
     .note =
         "llama.cpp leaves pairs that no section claims unrotated for text, where transformers rotates them by time"},
    {.names = "qwen35 qwen35moe",
     .section_order = SectionOrder::kInterleaved,
     .interval = 4,
     .note =
         "llama.cpp leaves pairs that no section claims unrotated for text, where transformers rotates them by time"},
    {.names = "gpt2 starcoder", .encoding = Encoding::kLearned},
    {.names = "bert", .encoding = Encoding::kLearned, .is_causal = false},
    {.names = "bloom refact", .encoding = Encoding::kAlibi},
    // conversion/mpt.py writes a bias of 0 for models that have a table instead; mpt.cpp:80 adds it
    {.names = "mpt", .encoding = Encoding::kAlibi, .is_bias_optional = true, .has_table_instead = true},
    {.names = "jais", .encoding = Encoding::kAlibi, .is_bias_optional = true},
    {.names = "jina-bert-v2", .encoding = Encoding::kAlibi, .is_causal = false},
    {.names = "t5", .encoding = Encoding::kT5, .has_decoder = true, .is_causal = false},
    {.names = "t5encoder", .encoding = Encoding::kT5, .is_causal = false},
    {.names = "gptj",
     .encoding = Encoding::kNotComputed,
     .name = "rope",
     .note = "llama.cpp knows the name gptj but has no rotation for it"},
    {.names = "clip",
     .encoding = Encoding::kNotComputed,
     .is_causal = false,
     .name = "unknown",
     .note = "an image or audio projector: its own keys say which vision model it is"},
    {.names = "mamba mamba2 rwkv6 rwkv6qwen2 rwkv7 arwkv7",
     .encoding = Encoding::kNone,
     .token_mixer = "recurrences"},
    {.names = "wavtokenizer-dec", .encoding = Encoding::kNone, .token_mixer = "convolutions"},
    // attention if attention.head_count_kv is not 0
    {.names = "jamba nemotron_h nemotron_h_moe kimi-linear kimi-k3", .encoding = Encoding::kNone},
});

}  // namespace

const Architecture* architecture_named(std::string_view name) {
  for (const Architecture& architecture : kArchitectures) {
    if (has_word(architecture.names, name)) return &architecture;
  }
  return nullptr;
}

std::vector<std::string_view> known_architectures() {
  std::vector<std::string_view> names;
  for (const Architecture& architecture : kArchitectures) {
    std::string_view rest = architecture.names;
    while (!rest.empty()) {
      names.push_back(rest.substr(0, rest.find(' ')));
      rest.remove_prefix(std::min(rest.size(), names.back().size() + 1));
    }
  }
  return names;
}

}  // namespace posenc::models
