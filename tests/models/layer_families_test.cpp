// More of what families do in attention where they differ from most. By the code of transformers 5.16 (d56c55bf),
// unless stated otherwise.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "models/layer_reference.h"
#include "posenc/layer.h"
#include "posenc/schemes/log_cpb.h"

namespace posenc::layer_families_test {
namespace {

using layer_reference::config;
using layer_reference::expect_right;
using layer_reference::Family;
using layer_reference::kTokens;
using layer_reference::plain;
using layer_reference::Reference;
using layer_reference::refusal_of;

bool has_note(const std::string& json, const char* words, const LayerInputs& inputs = {}) {
  const PreparedLayer made = layer(read_model(json), 0, inputs);
  return std::any_of(made.notes.begin(), made.notes.end(),
                     [&](const std::string& note) { return note.find(words) != std::string::npos; });
}

// modeling_minimax.py, MiniMaxModel: with sliding_window, the layers named full_attention see a window.
TEST(LayerFamilies, MiniMaxMayHaveAWindow) {
  const auto minimax = [](const std::string& more) {
    return config("minimax", R"("num_hidden_layers":4,"rope_theta":10000.0)" + more);
  };
  const Reference full{.frequencies = plain(10000, 16)};
  Reference window = full;
  window.window = 7;
  const std::string slides = minimax(R"(,"sliding_window":7)");
  expect_right({.config = slides, .layer = 2, .reference = window});
  EXPECT_EQ(refusal_of(slides, 1), "layer 1: it has no attention (linear_attention instead)");
  const std::string types = R"(,"layer_types":["linear_attention","full_attention","linear_attention",)"
                            R"("full_attention"])";
  expect_right({.config = minimax(R"(,"sliding_window":7)" + types), .layer = 3, .reference = window});
  expect_right({.config = minimax(""), .layer = 2, .reference = full});
  expect_right({.config = minimax(R"(,"sliding_window":null)"), .layer = 2, .reference = full});
}

// configuration_smollm3.py: with use_sliding_window, layers without rope slide.
TEST(LayerFamilies, SmolLm3SlidesWhereItDoesNotRotate) {
  const auto smollm = [](const std::string& more) {
    return config("smollm3", R"("num_hidden_layers":4,"rope_theta":10000.0,"no_rope_layers":[1,1,1,0])" + more);
  };
  const std::string slides = smollm(R"(,"use_sliding_window":true,"sliding_window":7)");
  expect_right({.config = slides, .layer = 0, .reference = {.frequencies = plain(10000, 16)}});
  expect_right({.config = slides, .layer = 3, .reference = {.window = 7}});
  expect_right({.config = smollm(R"(,"sliding_window":7)"), .layer = 3});
}

// modeling_granitemoehybrid.py, GraniteMoeHybridAttention: attention_multiplier, with rope or without.
TEST(LayerFamilies, GraniteHybridIsScaledWithoutRopeToo) {
  const auto granite = [](const std::string& more) {
    return config("granitemoehybrid", R"("num_hidden_layers":2,"layer_types":["mamba","attention"],
        "rope_theta":10000.0,"attention_multiplier":0.3)" +
                                          more);
  };
  expect_right({.config = granite(""), .layer = 1, .reference = {.scale = 0.3}});
  expect_right({.config = granite(R"(,"position_embedding_type":"rope")"),
                .layer = 1,
                .reference = {.frequencies = plain(10000, 16), .scale = 0.3}});
}

// modeling_mimo_v2_flash.py, MiMoV2FlashAttention: layers that slide have sinks, the others have none.
TEST(LayerFamilies, MiMoHasSinksWhereItSlides) {
  const std::string mimo = config("mimo_v2_flash", R"("num_hidden_layers":2,"sliding_window":7,
      "layer_types":["full_attention","sliding_attention"],"rope_parameters":{
      "full_attention":{"rope_type":"default","rope_theta":10000.0,"partial_rotary_factor":0.5},
      "sliding_attention":{"rope_type":"default","rope_theta":500.0,"partial_rotary_factor":0.5}})");
  expect_right({.config = mimo, .layer = 0, .reference = {.frequencies = plain(10000, 8)}});
  const std::vector<float> sinks = {0.5f, -1.0f, 2.0f, 0.0f};
  const LayerInputs with_sinks{.sinks = view(sinks.data(), {4})};
  expect_right({.config = mimo,
                .layer = 1,
                .inputs = with_sinks,
                .reference = {.frequencies = plain(500, 8), .window = 7, .sinks = {0.5, -1.0, 2.0, 0.0}}});
  EXPECT_EQ(refusal_of(mimo, 0, with_sinks), "layer 0: it has no sinks, but some were given");
}

// modeling_t5gemma.py: the encoder sees both directions, in its windows up to the window's distance.
TEST(LayerFamilies, T5GemmasEncoderSeesBothDirections) {
  const std::string half = R"({"hidden_size":64,"head_dim":16,"num_attention_heads":4,"num_key_value_heads":2,
      "num_hidden_layers":2,"max_position_embeddings":64,"rope_theta":10000.0,"sliding_window":7,
      "query_pre_attn_scalar":9,"attn_logit_softcapping":2.0)";
  const std::string t5gemma = R"({"model_type":"t5gemma","encoder":)" + half +
                              R"(,"model_type":"t5_gemma_module"},"decoder":)" + half +
                              R"(,"model_type":"t5_gemma_module","is_decoder":true}})";
  Reference reference{.frequencies = plain(10000, 16), .scale = 1.0 / 3, .softcap = 2, .causal = false, .window = 8};
  expect_right({.config = t5gemma, .layer = 0, .inputs = {.part = "encoder"}, .reference = reference});
  reference.window = 0;
  expect_right({.config = t5gemma, .layer = 1, .inputs = {.part = "encoder"}, .reference = reference});
  reference.causal = true;
  expect_right({.config = t5gemma, .layer = 1, .reference = reference});
  reference.window = 7;
  expect_right({.config = t5gemma, .layer = 0, .reference = reference});
}

// modeling_t5gemma2.py: windows of the encoder by sliding_window_mask_function, one softmax over both in the decoder.
TEST(LayerFamilies, T5Gemma2) {
  const auto encoder = [](const std::string& window) {
    return config("t5gemma2_text", R"("num_hidden_layers":2,"layer_types":["sliding_attention","full_attention"],
        "query_pre_attn_scalar":16,"rope_parameters":{"sliding_attention":{"rope_type":"default","rope_theta":500.0},
        "full_attention":{"rope_type":"default","rope_theta":10000.0}},"sliding_window":)" +
                                       window);
  };
  expect_right({.config = encoder("7"),
                .layer = 0,
                .reference = {.frequencies = plain(500, 16), .causal = false, .window = 4}});
  expect_right({.config = encoder("8"), .layer = 1, .reference = {.frequencies = plain(10000, 16), .causal = false}});
  EXPECT_EQ(refusal_of(encoder("8"), 0),
            "layer 0: its attention is not computed: a query attends to 3 keys before it and 4 after it");
  EXPECT_EQ(
      refusal_of(R"({"model_type":"t5gemma2_decoder"})", 0),
      "layer 0: its attention is not computed: the encoder's keys, not rotated, join those of the decoder in one "
      "softmax");
}

// modeling_timesfm2_5.py, TimesFm2_5Attention: a trained factor for each feature of queries, and no other scale.
TEST(LayerFamilies, TimesFmScalesByTrainedFactors) {
  const std::string times = config("timesfm2_5", R"("num_hidden_layers":1,"rope_theta":10000.0)");
  expect_right({.config = times, .reference = {.frequencies = plain(10000, 16), .scale = 1}});
  EXPECT_TRUE(has_note(times, "softplus(scaling)"));
  expect_right({.config = config("timesfm", R"("num_hidden_layers":1)"), .reference = {.scale = 1}});
}

// modeling_xlm.py: config.causal. llama.cpp b21e4de7, llada.cpp: causal_attn = false. modeling_sam3_lite_text.py.
TEST(LayerFamilies, WhoIsCausal) {
  const auto is_causal = [](const std::string& json) { return layer(read_model(json), 0).attention.causal; };
  for (const char* const type : {"xlm", "flaubert"}) {
    const std::string start = R"({"model_type":")" + std::string(type);
    EXPECT_TRUE(is_causal(start + R"(","causal":true})")) << type;
    EXPECT_FALSE(is_causal(start + R"("})")) << type;
  }
  EXPECT_FALSE(is_causal(config("llada", R"("num_hidden_layers":1,"rope_theta":10000.0)")));
  EXPECT_FALSE(is_causal(R"({"model_type":"sam3_lite_text_text_model"})"));
  EXPECT_TRUE(is_causal(R"({"model_type":"clip_text_model"})"));
}

TEST(LayerFamilies, BlipIsCausalWhereItIsCalledSo) {
  const Model model = read_model(R"({"model_type":"blip_text_model","num_hidden_layers":1,"is_decoder":true})");
  EXPECT_THROW(layer(model, 0), Error);
  EXPECT_TRUE(layer(model, 0, {.causal = true}).attention.causal);
  EXPECT_FALSE(layer(model, 0, {.causal = false}).attention.causal);
}

// vLLM a014e35f, jais.py: with mup_scale_qk_dot_by_d (scale_qk_dot_by_d in older files) scores are divided by D.
TEST(LayerFamilies, JaisMayDivideByTheSizeOfAHead) {
  const auto jais = [](const std::string& more) {
    return R"({"model_type":"jais","n_embd":64,"n_head":4,"n_layer":1,"n_positions":64)" + more + "}";
  };
  Reference reference{.bias = [](std::int64_t h, std::int64_t query, std::int64_t key) {
    return std::exp2(-2.0 * static_cast<double>(h + 1)) * static_cast<double>(key - query);
  }};
  expect_right({.config = jais(R"(,"mup_scale_qk_dot_by_d":false)"), .reference = reference});
  reference.scale = 1.0 / 16;
  expect_right({.config = jais(R"(,"mup_scale_qk_dot_by_d":true)"), .reference = reference});
  expect_right({.config = jais(R"(,"scale_qk_dot_by_d":true)"), .reference = reference});
}

// modeling_mpt.py, MptAttention: attn_config.softmax_scale, and ALiBi.
TEST(LayerFamilies, MptMayHaveAScaleOfItsOwn) {
  const auto mpt = [](const std::string& more) {
    return R"({"model_type":"mpt","d_model":64,"n_heads":4,"n_layers":1,"max_seq_len":64,"attn_config":{)" + more +
           "}}";
  };
  Reference reference{.bias = [](std::int64_t h, std::int64_t query, std::int64_t key) {
    return std::exp2(-2.0 * static_cast<double>(h + 1)) * static_cast<double>(key - query);
  }};
  expect_right({.config = mpt(R"("softmax_scale":null)"), .reference = reference});
  reference.scale = 0.4;
  expect_right({.config = mpt(R"("softmax_scale":0.4)"), .reference = reference});
}

// modeling_step3p7.py, Step3p7Attention: query_pre_attn_scalar, and windows by layer_types.
TEST(LayerFamilies, Step37) {
  const std::string text = config("step3p5", R"("num_hidden_layers":2,"sliding_window":7,"query_pre_attn_scalar":9,
      "layer_types":["full_attention","sliding_attention"],"rope_parameters":{
      "full_attention":{"rope_type":"default","rope_theta":10000.0,"partial_rotary_factor":0.5},
      "sliding_attention":{"rope_type":"default","rope_theta":500.0}})");
  const std::string both = R"({"model_type":"step3p7","text_config":)" + text + "}";
  for (const std::string& json : {text, both}) {
    expect_right({.config = json, .layer = 0, .reference = {.frequencies = plain(10000, 8), .scale = 1.0 / 3}});
    expect_right(
        {.config = json, .layer = 1, .reference = {.frequencies = plain(500, 16), .scale = 1.0 / 3, .window = 7}});
  }
}

// modeling_videoprism.py: eager_attention_forward with attn_logit_softcapping; the text's mask is causal.
TEST(LayerFamilies, VideoPrismCapsScores) {
  const char* const more = R"("num_hidden_layers":1,"image_size":36,"tubelet_size":[1,9,18],
      "attn_logit_softcapping":2.0)";
  expect_right({.config = config("videoprism_vision_model", more), .reference = {.softcap = 2, .causal = false}});
  expect_right({.config = config("videoprism_text_model", more), .reference = {.softcap = 2}});
}

// modeling_swinv2.py, Swinv2SelfAttention. Queries come with length 1 and times the head's trained factor, keys with
// length 1: no scale is left for attention. The network of the bias is trained, so layer() asks for it.
TEST(LayerFamilies, SwinV2IsUnscaledWithABiasOfANetwork) {
  const std::string swin = R"({"model_type":"swinv2","embed_dim":64,"depths":[1],"num_heads":[4],"window_size":5,
      "pretrained_window_sizes":[9]})";
  EXPECT_EQ(refusal_of(swin, 0),
            "log-cpb: the trained network is missing (hidden_weights, hidden_biases, output_weights)");
  Model model = read_model(swin);
  LogCpb scheme = std::get<LogCpb>(*model.groups.at(0).scheme);
  scheme.hidden_weights = {0.5, -0.75, -0.25, 1.0, 0.125, 0.5};
  scheme.hidden_biases = {0.25, -0.5, 0.75};
  for (int i = 0; i < 12; ++i) scheme.output_weights.push_back((5 * i % 7 - 3) / 4.0);
  model.groups.at(0).scheme = Scheme(scheme);

  Family family{.config = swin, .reference = {.scale = 1, .causal = false}, .axes = 2};
  for (std::int64_t t = 0; t < kTokens; ++t) family.ids.push_back(t / 5);
  for (std::int64_t t = 0; t < kTokens; ++t) family.ids.push_back(t % 5);
  family.reference.bias = [&](std::int64_t h, std::int64_t query, std::int64_t key) {
    const auto coordinate = [](std::int64_t offset) {
      const double far = 8 * static_cast<double>(offset) / (9 - 1);  // it was trained with windows of 9
      return std::copysign(std::log2(std::abs(far) + 1) / std::log2(8.0), far);
    };
    const double row = coordinate(query / 5 - key / 5), column = coordinate(query % 5 - key % 5);
    double sum = 0;
    for (std::size_t i = 0; i < 3; ++i) {
      const double unit =
          scheme.hidden_weights[2 * i] * row + scheme.hidden_weights[2 * i + 1] * column + scheme.hidden_biases[i];
      sum += scheme.output_weights[3 * static_cast<std::size_t>(h) + i] * std::max(unit, 0.0);
    }
    return 16 / (1 + std::exp(-sum));
  };
  expect_right(family, layer(model, 0));
}

// Attention that is another function, beside those of layer_facts_test.cpp.
TEST(LayerFamilies, OtherAttentionIsRefused) {
  for (const char* const json :
       {R"({"model_type":"cvt"})", R"({"model_type":"layoutlmv2"})", R"({"model_type":"layoutxlm"})",
        R"({"model_type":"bros"})", R"({"model_type":"lilt"})", R"({"model_type":"moonshine_streaming_encoder"})"}) {
    EXPECT_NE(refusal_of(json, 0).find("its attention is not computed: "), std::string::npos) << json;
  }
  EXPECT_EQ(refusal_of(R"({"model_type":"layoutlmv2","has_relative_attention_bias":false,
                "has_spatial_attention_bias":false})",
                       0),
            "accepted");
  for (const char* const part : {"encoder", "decoder"}) {
    for (const char* const json : {R"({"model_type":"autoformer"})", R"({"model_type":"informer"})"}) {
      EXPECT_NE(refusal_of(json, 0, {.part = part}).find("its attention is not computed: "), std::string::npos)
          << json;
    }
    for (const char* const json :
         {R"({"model_type":"informer","attention_type":"full"})", R"({"model_type":"time_series_transformer"})"}) {
      EXPECT_EQ(refusal_of(json, 0, {.part = part}), "accepted") << json;
    }
  }
}

TEST(LayerFamilies, NotesSayWhatTheCallerDoes) {
  const std::string one = R"("num_hidden_layers":1,"rope_theta":10000.0)";
  EXPECT_TRUE(has_note(config("minimax_m3_vl_text", one), "that an indexer chooses"));
  EXPECT_FALSE(has_note(config("minimax_m2", one), "an indexer chooses"));
  for (const char* const type : {"hunyuan_v1_dense", "hunyuan_v1_moe", "hunyuan_vl_text", "nanochat", "timesfm2_5"}) {
    EXPECT_TRUE(has_note(config(type, one), "normalised after they are rotated")) << type;
  }
  EXPECT_FALSE(has_note(config("qwen3", one), "normalised after they are rotated"));
  EXPECT_TRUE(has_note(config("hrm_text", one), "token_type_ids"));
}

}  // namespace
}  // namespace posenc::layer_families_test
