// Files as they are published, whose answer is not what one engine's class or one key says.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "posenc/error.h"
#include "posenc/layer.h"
#include "posenc/model.h"

namespace posenc::published_files_test {
namespace {

// "rope 0-3" for each group
std::string groups_of(const std::vector<LayerGroup>& groups) {
  std::string text;
  for (const LayerGroup& group : groups) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", group.scheme_name, layer_ranges(group.layers));
  }
  return text;
}
std::string groups_of(const Model& model) { return groups_of(model.groups); }

const Rope& rope_of(const Model& model, std::size_t group = 0) {
  return std::get<Rope>(*model.groups.at(group).scheme);
}

bool says(const std::vector<std::string>& list, std::string_view part) {
  return std::any_of(list.begin(), list.end(),
                     [&](const std::string& one) { return one.find(part) != std::string::npos; });
}

std::string error_of(std::string_view config) {
  try {
    return fmt::format("accepted: {}", groups_of(read_model(config)));
  } catch (const Error& error) {
    return error.what();
  }
}

// deepseek-ai/deepseek-vl2-tiny: plain attention over whole heads. vLLM a014e35f, deepseek_v2.py:1260.
TEST(PublishedFiles, DeepseekWithoutMlaRotatesWholeHeads) {
  const auto config = [](int plain, int rotated) {
    return fmt::format(R"({{"model_type":"deepseek_vl_v2","language_config":{{"model_type":"deepseek_v2",
        "hidden_size":1280,"num_attention_heads":10,"num_hidden_layers":12,"max_position_embeddings":4096,
        "kv_lora_rank":null,"qk_nope_head_dim":{},"qk_rope_head_dim":{},"use_mla":false,"v_head_dim":0}}}})",
                       plain, rotated);
  };
  const Model tiny = read_model(config(0, 0));
  EXPECT_EQ(groups_of(tiny), "rope 0-11");
  EXPECT_EQ(rope_of(tiny).dims, 128);
  EXPECT_EQ(rope_of(tiny).layout, PairLayout::kHalves);
  EXPECT_EQ(tiny.trained_length, 4096);
  const Model latent = read_model(config(128, 64));
  EXPECT_EQ(rope_of(latent).dims, 64);
  EXPECT_EQ(rope_of(latent).layout, PairLayout::kInterleaved);
  EXPECT_EQ(groups_of(read_model(config(128, 0))), "none 0-11");
  // DeepSeek-OCR repeats the keys of its text at the top
  const Model repeated = read_model(R"({"model_type":"deepseek_vl_v2","hidden_size":1280,"num_attention_heads":10,
      "num_hidden_layers":12,"qk_nope_head_dim":0,"qk_rope_head_dim":0,"language_config":{"model_type":"deepseek_v2",
      "hidden_size":1280,"num_attention_heads":10,"num_hidden_layers":12,"qk_nope_head_dim":0,"qk_rope_head_dim":0}})");
  EXPECT_EQ(groups_of(repeated), "rope 0-11");
  EXPECT_FALSE(repeated.is_assumed);
}

// transformers 5.16 (d56c55bf), configuration_cohere2_moe.py:138, modeling_cohere2_moe.py:299
TEST(PublishedFiles, TheDensePrefixOfCohere2MoeRotates) {
  const auto config = [](std::string_view more) {
    return fmt::format(R"({{"model_type":"cohere2_moe","num_hidden_layers":8,"sliding_window":16{}}})", more);
  };
  EXPECT_EQ(groups_of(read_model(config(""))), "rope 0-2,4-6, none 3,7");
  // the prefix is full and rotates, and the pattern starts after it
  EXPECT_EQ(groups_of(read_model(config(R"(,"first_k_dense_replace":1)"))), "rope 0, rope 1-3,5-7, none 4");
  // a prefix with windows of its own rotates by them alone
  EXPECT_EQ(groups_of(read_model(config(R"(,"first_k_dense_replace":2,"prefix_dense_sliding_window_pattern":2)"))),
            "rope 0,2-4,6-7, none 1,5");
  const std::string listed = config(R"(,"layer_types":["full_attention","sliding_attention","sliding_attention",
      "sliding_attention","full_attention","sliding_attention","sliding_attention","sliding_attention"],
      "mlp_layer_types":["dense","sparse","sparse","sparse","sparse","sparse","sparse","sparse"])");
  EXPECT_EQ(groups_of(read_model(listed)), "rope 0, rope 1-3,5-7, none 4");
}

// nvidia/MiniMax-M3-NVFP4 calls its vision part clip_vision_model, which its class drops: configuration_minimax_m3_vl.py:205
TEST(PublishedFiles, MinimaxM3sVisionPartIsItsOwn) {
  const Model model = read_model(R"({"model_type":"minimax_m3_vl","text_config":{"num_hidden_layers":2,
      "partial_rotary_factor":0.5,"rotary_dim":64},"vision_config":{"model_type":"clip_vision_model",
      "hidden_size":1280,"image_size":2016,"patch_size":14,"position_embedding_type":"rope"}})");
  ASSERT_FALSE(model.parts.empty());
  EXPECT_EQ(model.parts[0].model_type, "minimax_m3_vl_vision");
  EXPECT_EQ(model.parts[0].groups[0].scheme_name, "rope");
  EXPECT_EQ(rope_of(model).dims, 64);
  const Model clip = read_model(R"({"model_type":"llava","text_config":{"model_type":"llama"},
      "vision_config":{"model_type":"clip_vision_model","image_size":336,"patch_size":14}})");
  EXPECT_EQ(clip.parts.at(0).groups[0].scheme_name, "learned");
}

// configuration_bamba.py: layers_block_type
TEST(PublishedFiles, BambaAttendsOnlyWhereItIsListed) {
  EXPECT_EQ(groups_of(read_model(R"({"model_type":"bamba","num_hidden_layers":4})")), "none 0-3");
  EXPECT_EQ(groups_of(read_model(R"({"model_type":"bamba","num_hidden_layers":4,"attn_layer_indices":[1]})")),
            "none 0,2-3, rope 1");
}

TEST(PublishedFiles, LengthsOfLayersWithoutPosition) {
  EXPECT_EQ(read_model(R"({"model_type":"nemotron_h","hybrid_override_pattern":"M*","max_position_embeddings":8192})")
                .trained_length,
            8192);
  EXPECT_EQ(read_model(R"({"model_type":"kimi_linear","num_hidden_layers":2,"max_position_embeddings":1048576,
      "linear_attn_config":{"kda_layers":[1]}})")
                .trained_length,
            1048576);
  EXPECT_EQ(read_model(R"({"model_type":"granitemoehybrid","position_embedding_type":"nope"})").trained_length, 2048);
}

// transformers 5.16.0.dev0 (d56c55bf), run: LagunaRotaryEmbedding has 8 frequencies for full layers and 16 for sliding ones. Saved and
// read again by it, the file's own share of sliding layers is lost.
TEST(PublishedFiles, TheShareOfALayerTypeCounts) {
  const Model model = read_model(R"({"model_type":"laguna","head_dim":32,"num_hidden_layers":2,"sliding_window":4,
      "partial_rotary_factor":0.5,"layer_types":["full_attention","sliding_attention"],"rope_parameters":{
      "full_attention":{"rope_type":"default","rope_theta":500000.0,"partial_rotary_factor":0.5},
      "sliding_attention":{"rope_type":"default","rope_theta":10000.0,"partial_rotary_factor":1.0}}})");
  EXPECT_EQ(std::get<Rope>(*group_of(model, 0).scheme).dims, 16);
  EXPECT_EQ(std::get<Rope>(*group_of(model, 1).scheme).dims, 32);
}

// ml-explore/mlx-lm, tests/test_models.py. vLLM (a014e35f, laguna.py: 386) and llama.cpp (b21e4de7, conversion/laguna.py: 108) read
// the share of each type. In transformers 5.16.0.dev0, yarn_scaling calls standardize_rope_params, which sets all of them to the
// one at the top (modeling_rope_utils.py: 318 and 808).
TEST(PublishedFiles, TheShareOfALayerTypeCountsBesideAScaledOne) {
  const Model model = read_model(R"({"model_type":"laguna","head_dim":32,"num_hidden_layers":2,"sliding_window":4,
      "partial_rotary_factor":0.5,"layer_types":["full_attention","sliding_attention"],"rope_parameters":{
      "full_attention":{"rope_type":"yarn","factor":8.0,"original_max_position_embeddings":4096,
      "rope_theta":500000.0,"partial_rotary_factor":0.5},
      "sliding_attention":{"rope_type":"default","rope_theta":10000.0,"partial_rotary_factor":1.0}}})");
  EXPECT_EQ(std::get<Rope>(*group_of(model, 0).scheme).dims, 16);
  EXPECT_EQ(std::get<Rope>(*group_of(model, 1).scheme).dims, 32);
  EXPECT_TRUE(says(model.warnings,
                   "partial_rotary_factor is 0.5 at the top and 1 in rope_parameters: sliding_attention, "
                   "which counts; older versions of transformers 5 take the one at the top"))
      << testing::PrintToString(model.warnings);
}

// liuhaotian/llava-v1.5-7b, and files of stepfun-ai/Step-3.7-Flash and MiniMaxAI/MiniMax-M3 that are flattened
TEST(PublishedFiles, KeysOfTheTextAtTheTop) {
  const Model llava =
      read_model(R"({"architectures":["LlavaLlamaForCausalLM"],"model_type":"llava","hidden_size":4096,
      "num_hidden_layers":32,"num_attention_heads":32,"max_position_embeddings":4096})");
  EXPECT_EQ(groups_of(llava), "rope 0-31");
  EXPECT_EQ(llava.trained_length, 4096);
  EXPECT_EQ(llava.warnings, (std::vector<std::string>{
                                "text_config is missing, and its keys are read at the top, as LlavaLlamaForCausalLM "
                                "does; transformers takes its class's defaults instead"}));
  EXPECT_TRUE(says(llava.assumed, "text_config = llama (the family's default; not given)"));
  ASSERT_EQ(llava.parts.size(), 1u);
  EXPECT_EQ(llava.parts[0].model_type, "clip_vision_model");
  const Model step = read_model(R"({"architectures":["Step3p7FlashForCausalLM"],"model_type":"step3p7",
      "hidden_size":4096,"num_hidden_layers":3,"num_attention_heads":64,"head_dim":128,"sliding_window":512,
      "max_position_embeddings":65536,"layer_types":["full_attention","sliding_attention","sliding_attention"]})");
  EXPECT_EQ(groups_of(step), "rope 0, rope 1-2");
  EXPECT_EQ(step.trained_length, 65536);
  const Model minimax = read_model(R"({"architectures":["MiniMaxM3ForCausalLM"],"model_type":"minimax_m3",
      "hidden_size":6144,"num_hidden_layers":4,"head_dim":128,"rotary_dim":64,"partial_rotary_factor":0.5,
      "rope_theta":5000000,"max_position_embeddings":1048576,
      "sparse_attention_config":{"sparse_attention_freq":[0,0,1,1]}})");
  EXPECT_EQ(groups_of(minimax), "rope 0-3");
  EXPECT_EQ(rope_of(minimax).dims, 64);
  EXPECT_EQ(minimax.trained_length, 1048576);
  EXPECT_TRUE(minimax.warnings.empty()) << minimax.warnings[0];
  // transformers' own class does not read them
  const Model qwen = read_model(R"({"architectures":["Qwen3_5MoeForCausalLM"],"model_type":"qwen3_5_moe",
      "hidden_size":64,"num_hidden_layers":4,"num_attention_heads":4})");
  EXPECT_EQ(rope_of(qwen, 1).dims, 64);
  EXPECT_TRUE(says(qwen.warnings, "at the top are ignored")) << testing::PrintToString(qwen.warnings);
}

// transformers 5.16, paligemma/modeling_paligemma.py: 237
TEST(PublishedFiles, PaligemmaCountsFromOne) {
  constexpr std::string_view text = R"("text_config":{"model_type":"gemma","num_hidden_layers":2}})";
  EXPECT_EQ(read_model(fmt::format(R"({{"model_type":"paligemma",{})", text)).groups[0].first_position, 1);
  EXPECT_EQ(
      read_model(R"({"model_type":"colpali","vlm_config":{"model_type":"paligemma"}})").groups[0].first_position, 1);
  EXPECT_EQ(read_model(fmt::format(R"({{"model_type":"gemma3",{})", text)).groups[0].first_position, 0);
}

// Whisper's encoder has a length of its own.
TEST(PublishedFiles, AnEncodersLengthIsItsOwn) {
  const Model whisper = read_model(R"({"model_type":"whisper","max_source_positions":1500})");
  EXPECT_EQ(whisper.groups.at(0).trained_length, 1500);
  EXPECT_FALSE(whisper.groups.at(1).trained_length);
  EXPECT_EQ(whisper.trained_length, 448);
  for (const LayerGroup& group : read_model(R"({"model_type":"bart"})").groups) EXPECT_FALSE(group.trained_length);
}

// As its class saves it: configuration_lxmert.py
TEST(PublishedFiles, LxmertCountsItsLayersInThreeStacks) {
  const Model model = read_model(R"({"model_type":"lxmert","l_layers":7,"x_layers":5,"r_layers":5,
      "num_hidden_layers":{"cross_encoder":5,"language":7,"vision":5}})");
  EXPECT_EQ(groups_of(model), "learned 0-6");
}

TEST(PublishedFiles, ArchitecturesAreReadWhereTheTypeIsUnknown) {
  const Model llama = read_model(R"({"architectures":["LlamaForCausalLM"],"hidden_size":64,"num_attention_heads":4,
      "num_hidden_layers":2})");
  EXPECT_EQ(groups_of(llama), "rope 0-1");
  EXPECT_EQ(llama.model_type, "llama");
  EXPECT_FALSE(llama.is_assumed);
  EXPECT_TRUE(says(llama.assumed, "model_type = llama (from architectures, LlamaForCausalLM; not given)"));
  // sgl-project/DeepSeek-V4-Flash-FP8
  const Model v4 = read_model(R"({"architectures":["DeepseekV4ForCausalLM"],"model_type":"deepseek_ref",
      "hidden_size":4096,"num_hidden_layers":3,"num_attention_heads":64,"head_dim":512,"qk_rope_head_dim":64,
      "max_position_embeddings":1048576,"sliding_window":128,"compress_rope_theta":160000,"compress_ratios":[0,4,128],
      "rope_scaling":{"type":"yarn","factor":16,"original_max_position_embeddings":65536,"beta_fast":32,"beta_slow":1}})");
  EXPECT_EQ(groups_of(v4), "rope 0, rope 1-2");
  EXPECT_EQ(rope_of(v4).layout, PairLayout::kInterleaved);
  EXPECT_EQ(rope_of(v4, 1).base, 160000);
  EXPECT_TRUE(says(v4.assumed, "\"deepseek_ref\" is unknown"));
  // baidu/ERNIE-4.5-VL: its keys are at the top, and it has three axes
  const Model ernie = read_model(R"({"architectures":["Ernie4_5_VLMoeForConditionalGeneration"],
      "model_type":"ernie4_5_moe_vl","hidden_size":2560,"num_attention_heads":20,"num_hidden_layers":2})");
  EXPECT_EQ(rope_of(ernie).layout, PairLayout::kInterleaved);
  EXPECT_EQ(rope_of(ernie).sections.size(), 3u);
  const Model gemma = read_model(R"({"architectures":["Gemma3ForCausalLM"],"num_hidden_layers":6,"hidden_size":64})");
  EXPECT_EQ(gemma.model_type, "gemma3_text");
  // a known type is not doubted, and a class of the text says nothing of a model made of parts
  EXPECT_EQ(read_model(R"({"architectures":["LlamaForCausalLM"],"model_type":"qwen3"})").model_type, "qwen3");
  EXPECT_EQ(error_of(R"({"architectures":["LlamaForCausalLM"]})"),
            "model_type is missing, which says how pairs are laid out");
  EXPECT_EQ(error_of(R"({"architectures":["NobodysForCausalLM"],"hidden_size":64})"),
            "model_type is missing, which says how pairs are laid out");
}

// nvidia/Llama-3_3-Nemotron-Super-49B-v1
TEST(PublishedFiles, LayersOfDecilmWithoutAttention) {
  const Model model = read_model(R"({"architectures":["DeciLMForCausalLM"],"model_type":"nemotron-nas",
      "hidden_size":64,"num_attention_heads":4,"num_hidden_layers":3,"max_position_embeddings":128,"block_configs":[
      {"attention":{"no_op":false,"replace_with_linear":false}},{"attention":{"no_op":true,"replace_with_linear":false}},
      {"attention":{"no_op":false,"replace_with_linear":true}}]})");
  EXPECT_EQ(groups_of(model), "rope 0, none 1-2");
  EXPECT_FALSE(model.groups[1].token_mixer.empty());
}

// Microsoft's own code: every second layer is dense, scores are divided by D, positions multiplied.
TEST(PublishedFiles, Phi3Small) {
  const auto read = [](const std::string& more) {
    return read_model(R"({"model_type":"phi3small","hidden_size":64,"num_attention_heads":4,"num_hidden_layers":4,
      "max_position_embeddings":128)" +
                      more + "}");
  };
  const Model plain = read("");
  EXPECT_EQ(groups_of(plain), "rope 0,2, rope 1,3");
  EXPECT_EQ(rope_of(plain), (Rope{.dims = 16, .base = 1e6}));
  EXPECT_FALSE(plain.groups[0].other_attention.empty());
  EXPECT_TRUE(plain.groups[1].other_attention.empty());
  EXPECT_EQ(plain.groups[1].scale, 1.0 / 16);
  EXPECT_EQ(read(R"(,"mup_attn_multiplier":4)").groups[1].scale, 4.0 / 16);
  EXPECT_FALSE(read(R"(,"mup_use_scaling":false)").groups[1].scale);
  // its own key, and no other, gives the base
  EXPECT_EQ(rope_of(read(R"(,"rope_embedding_base":5000,"rope_theta":7)")).base, 5000);
  const Model stretched = read(R"(,"rope_position_scale":0.25)");
  EXPECT_EQ(*rope_of(stretched).scaling, RopeScaling(LinearScaling{.factor = 4}));
  EXPECT_TRUE(says(stretched.warnings, "vLLM divides by it"));
  const std::string lists = R"("short_factor":[1,1,1,1,1,1,1,1],"long_factor":[1,2,3,4,5,6,7,8])";
  const std::string longrope =
      R"(,"rope_position_scale":0.25,"rope_scaling":{"type":"su","original_max_position_embeddings":32,)" + lists;
  EXPECT_EQ(prepare(rope_of(read(longrope + "}")), {.length = 16}).magnitude, 1);
  EXPECT_EQ(prepare(rope_of(read(longrope + R"(,"short_mscale":1.5,"long_mscale":1.5})")), {.length = 16}).magnitude,
            1.5);
}

// The indexer of sparse attention: halves beside interleaved MLA in DeepSeek V3.2, as the attention in GLM-5.
TEST(PublishedFiles, IndexersHaveARotationOfTheirOwn) {
  const auto indexer = [](std::string_view config) -> std::optional<Rope> {
    const Model model = read_model(config);
    for (const ModelPart& part : model.parts) {
      if (part.name == "indexer") return std::get<Rope>(*part.groups.at(0).scheme);
    }
    return std::nullopt;
  };
  const auto v32 = indexer(R"({"model_type":"deepseek_v32","num_hidden_layers":2,"rope_theta":10000})");
  ASSERT_TRUE(v32);
  EXPECT_EQ(v32->layout, PairLayout::kHalves);
  EXPECT_EQ(v32->dims, 64);
  EXPECT_EQ(v32->first_dim, 0);
  const auto glm = indexer(R"({"model_type":"glm_moe_dsa","num_hidden_layers":2})");
  ASSERT_TRUE(glm);
  EXPECT_EQ(glm->layout, PairLayout::kInterleavedToHalves);
  EXPECT_EQ(indexer(R"({"model_type":"glm_moe_dsa","num_hidden_layers":2,"indexer_rope_interleave":false})")->layout,
            PairLayout::kHalves);
  // only layers of one type have it
  const Model v4 = read_model(R"({"model_type":"deepseek_v4","num_hidden_layers":3,"compress_ratios":[0,4,128]})");
  ASSERT_EQ(v4.parts.size(), 1u);
  EXPECT_EQ(groups_of(v4.parts[0].groups), "rope 1");
  EXPECT_EQ(std::get<Rope>(*v4.parts[0].groups[0].scheme).layout, PairLayout::kInterleaved);
  EXPECT_EQ(std::get<Rope>(*v4.parts[0].groups[0].scheme).first_dim, -64);
  const Model m3 = read_model(R"({"model_type":"minimax_m3_vl_text","num_hidden_layers":4,"partial_rotary_factor":0.5,
      "sparse_attention_config":{"sparse_attention_freq":[0,0,1,1]}})");
  ASSERT_EQ(m3.parts.size(), 1u);
  EXPECT_EQ(groups_of(m3.parts[0].groups), "rope 2-3");
  // the softmax factor of DeepSeek's YaRN is that of its attention alone
  const Model yarn =
      read_model(R"({"model_type":"deepseek_v32","num_hidden_layers":1,"max_position_embeddings":163840,
      "rope_scaling":{"type":"yarn","factor":40,"original_max_position_embeddings":4096,"mscale":1,"mscale_all_dim":1}})");
  EXPECT_GT(prepare(rope_of(yarn)).softmax_factor, 1.5);
  EXPECT_EQ(prepare(std::get<Rope>(*yarn.parts.at(0).groups[0].scheme)).softmax_factor, 1);
  EXPECT_FALSE(indexer(R"({"model_type":"deepseek_v3","num_hidden_layers":2})"));
}

TEST(PublishedFiles, KeysThatAreNotReadAreNamedInOneLine) {
  const Model nemotron = read_model(R"({"model_type":"nemotron_h","hybrid_override_pattern":"M*","rope_theta":10000,
      "partial_rotary_factor":1.0,"max_position_embeddings":8192})");
  EXPECT_EQ(nemotron.warnings,
            (std::vector<std::string>{
                "not read, as this family's code does not ask for them: rope_theta, partial_rotary_factor"}));
  const Model llama = read_model(R"({"model_type":"llama","head_dim":8,"rope_theta":10000,"rope_scaling":null,
      "position_embedding_type":"absolute","rope_local_base_freq":5})");
  EXPECT_EQ(llama.warnings,
            (std::vector<std::string>{"not read, as this family's code does not ask for it: rope_local_base_freq"}));
  const Model qwen = read_model(R"({"model_type":"qwen2","head_dim":8,"num_hidden_layers":1,
      "dual_chunk_attention_config":{"chunk_size":262144,"local_size":8192}})");
  EXPECT_TRUE(says(qwen.warnings,
                   "dual_chunk_attention_config is not computed (chunks of 262144, of which 8192 are "
                   "local)"));
}

// params.json gives no length: it follows from what the releases have in common.
TEST(PublishedFiles, LengthsOfParamsJson) {
  const auto length = [](const std::string& more) {
    return read_model(R"({"dim":64,"multiple_of":256,"n_heads":4,"n_layers":1,"norm_eps":1e-05)" + more + "}")
        .usable_length;
  };
  EXPECT_EQ(length(R"(,"rope_theta":500000.0)"), 8192);                     // Llama 3
  EXPECT_EQ(length(R"(,"rope_theta":1000000)"), 16384);                     // Code Llama
  EXPECT_EQ(length(R"(,"rope_theta":500000.0,"max_seq_len":4096)"), 4096);  // says so itself
  EXPECT_EQ(length(R"(,"use_scaled_rope":true,"max_seq_len":32768)"), 32768);
}

// Meta's and Mistral's own files: their weights have interleaved pairs.
TEST(PublishedFiles, ParamsJson) {
  const Model llama =
      read_model(R"({"dim":4096,"ffn_dim_multiplier":1.3,"multiple_of":1024,"n_heads":32,"n_kv_heads":8,
      "n_layers":32,"norm_eps":1e-05,"rope_theta":500000.0,"use_scaled_rope":true,"vocab_size":128256})");
  EXPECT_EQ(
      rope_of(llama),
      (Rope{
          .dims = 128, .base = 500000.0, .layout = PairLayout::kInterleaved, .scaling = Llama3Scaling{.factor = 8}}));
  EXPECT_TRUE(says(llama.notes, "params.json"));
  EXPECT_TRUE(says(llama.assumed, "llama3 scaling with factor 8"));
  EXPECT_EQ(llama.trained_length, 8192);
  EXPECT_EQ(llama.usable_length, 131072);
  EXPECT_TRUE(says(llama.assumed, "131072 positions"));
  const Model mistral = read_model(R"({"dim":4096,"n_layers":4,"head_dim":128,"hidden_dim":14336,"n_heads":32,
      "n_kv_heads":8,"norm_eps":1e-05,"vocab_size":32000,"sliding_window":[null,1024]})");
  EXPECT_EQ(groups_of(mistral), "rope 0,2, rope 1,3");
  EXPECT_EQ(mistral.groups[1].window, 1024);
  EXPECT_EQ(rope_of(mistral).base, 10000);
  EXPECT_EQ(rope_of(mistral).layout, PairLayout::kInterleaved);
  const Model ministral = read_model(R"({"dim":64,"n_layers":1,"head_dim":16,"n_heads":4,"rope_theta":1000000.0,
      "max_position_embeddings":262144,"yarn":{"factor":16,"original_max_position_embeddings":16384,"apply_scale":false,
      "beta":32,"alpha":1},"llama_4_scaling":{"beta":0.1,"original_max_position_embeddings":16384}})");
  EXPECT_EQ(prepare(rope_of(ministral)).magnitude, 1);
  EXPECT_EQ(ministral.groups[0].temperature, (Temperature{.scale = 0.1, .length = 16384}));
  EXPECT_EQ(error_of(R"({"dim":64,"n_layers":1,"n_heads":4,"qk_rope_head_dim":64})"),
            "params.json with qk_rope_head_dim is not read; give its config.json");
}

}  // namespace
}  // namespace posenc::published_files_test
