// From a config to attention: tiny random layers of model families (layer_reference.h), by the formulas of transformers
// 5.16.

#include "posenc/layer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "models/layer_reference.h"
#include "posenc/error.h"

namespace posenc::layer_test {
namespace {

using layer_reference::config;
using layer_reference::expect_right;
using layer_reference::Family;
using layer_reference::kHeads;
using layer_reference::kTokens;
using layer_reference::plain;
using layer_reference::Reference;
using layer_reference::refusal_of;

std::vector<double> yarn(double base, int dims, double factor, double original, bool truncates) {
  const auto correction = [&](double turns) {
    return dims * std::log(original / (turns * 2 * std::numbers::pi)) / (2 * std::log(base));
  };
  double low = correction(32), high = correction(1);
  if (truncates) low = std::floor(low), high = std::ceil(high);
  low = std::max(low, 0.0), high = std::min(high, dims - 1.0);
  std::vector<double> all = plain(base, dims);
  for (int i = 0; i < dims / 2; ++i) {
    const double ramp = std::clamp((i - low) / (high - low), 0.0, 1.0);
    double& value = all[static_cast<std::size_t>(i)];
    value = value / factor * ramp + value * (1 - ramp);
  }
  return all;
}

TEST(Layer, Llama3) {
  Reference reference{.frequencies = plain(500000, 16)};
  for (double& w : reference.frequencies) {  // Llama3RotaryEmbedding: factor 8, 1, 4, trained with 16
    const double length = 2 * std::numbers::pi / w;
    if (length < 16.0 / 4) continue;
    const double smooth = length > 16.0 ? 0.0 : (16.0 / length - 1) / (4 - 1);
    w = (1 - smooth) * w / 8 + smooth * w;
  }
  expect_right({.config = config("llama", R"("num_hidden_layers":2,"rope_theta":500000.0,"rope_scaling":{
                   "rope_type":"llama3","factor":8.0,"low_freq_factor":1.0,"high_freq_factor":4.0,
                   "original_max_position_embeddings":16})"),
                .layer = 1,
                .reference = reference});
}

TEST(Layer, MistralHasAWindow) {
  expect_right({.config = config("mistral", R"("num_hidden_layers":2,"rope_theta":10000.0,"sliding_window":7)"),
                .reference = {.frequencies = plain(10000, 16), .window = 7}});
}

TEST(Layer, Gemma2CapsScores) {
  const std::string all = config("gemma2", R"("num_hidden_layers":2,"rope_theta":10000.0,"sliding_window":6,
      "attn_logit_softcapping":1.5,"query_pre_attn_scalar":24)");
  Reference reference{.frequencies = plain(10000, 16), .scale = 1 / std::sqrt(24.0), .softcap = 1.5, .window = 6};
  expect_right({.config = all, .layer = 0, .reference = reference});
  reference.window = 0;
  expect_right({.config = all, .layer = 1, .reference = reference});
}

TEST(Layer, Gemma3HasLocalAndGlobalLayers) {
  const std::string all = config("gemma3_text", R"("num_hidden_layers":6,"rope_theta":1000000.0,
      "rope_local_base_freq":10000.0,"rope_scaling":{"rope_type":"linear","factor":8.0},"sliding_window":6,
      "sliding_window_pattern":6,"query_pre_attn_scalar":24)");
  Reference reference{.frequencies = plain(10000, 16), .scale = 1 / std::sqrt(24.0), .window = 6};
  expect_right({.config = all, .layer = 4, .reference = reference});
  reference.window = 0;
  reference.frequencies = plain(1000000, 16);
  for (double& w : reference.frequencies) w /= 8;
  expect_right({.config = all, .layer = 5, .reference = reference});
}

TEST(Layer, GptOssHasSinks) {
  const std::string all = config("gpt_oss", R"("num_hidden_layers":2,"rope_theta":150000.0,"sliding_window":5,
      "layer_types":["sliding_attention","full_attention"],"rope_scaling":{"rope_type":"yarn","factor":32.0,
      "beta_fast":32.0,"beta_slow":1.0,"truncate":false,"original_max_position_embeddings":4096})");
  const std::vector<float> sinks = {0.5f, -1.0f, 2.0f, 0.0f};
  Reference reference{.frequencies = yarn(150000, 16, 32, 4096, false),
                      .magnitude = 0.1 * std::log(32.0) + 1,
                      .window = 5,
                      .sinks = {0.5, -1.0, 2.0, 0.0}};
  const LayerInputs inputs{.sinks = view(sinks.data(), {kHeads})};
  expect_right({.config = all, .layer = 0, .inputs = inputs, .reference = reference});
  reference.window = 0;
  expect_right({.config = all, .layer = 1, .inputs = inputs, .reference = reference});
}

TEST(Layer, Llama4HasChunksAndTemperature) {
  const std::string all = config("llama4_text", R"("num_hidden_layers":4,"rope_theta":500000.0,"rope_scaling":null,
      "attention_chunk_size":8,"floor_scale":4,"attn_scale":0.1,"attn_temperature_tuning":true)");
  expect_right(
      {.config = all,
       .layer = 2,
       .reference = {
           .frequencies = plain(500000, 16), .reads_interleaved = true, .writes_interleaved = true, .chunk = 8}});
  expect_right({.config = all, .layer = 3, .reference = {.factor = [](std::int64_t p) {
                                             return 1 +
                                                    0.1 * std::log1p(std::floor(static_cast<double>(p + 1) / 4.0));
                                           }}});
}

// T5's buckets, as its _relative_position_bucket.
std::int64_t t5_bucket(std::int64_t key_minus_query, bool is_bidirectional) {
  std::int64_t buckets = 32, first = 0, distance = -std::min<std::int64_t>(key_minus_query, 0);
  if (is_bidirectional) {
    buckets = 16;
    first = key_minus_query > 0 ? 16 : 0;
    distance = std::abs(key_minus_query);
  }
  const std::int64_t exact = buckets / 2;
  if (distance < exact) return first + distance;
  const double log = std::log(static_cast<double>(distance) / static_cast<double>(exact)) /
                     std::log(20.0 / static_cast<double>(exact));
  return first + std::min(exact + static_cast<std::int64_t>(log * static_cast<double>(buckets - exact)), buckets - 1);
}

TEST(Layer, T5HasTwoHalves) {
  const std::string all = R"({"model_type":"t5","num_heads":4,"d_model":64,"d_kv":16,"num_layers":2,
      "num_decoder_layers":3,"relative_attention_num_buckets":32,"relative_attention_max_distance":20})";
  std::vector<float> weights;
  for (int i = 0; i < 32 * 4; ++i) weights.push_back(static_cast<float>(std::sin(0.7 * i)));
  const LayerInputs encoder{.part = "encoder", .prepare = {.weights = view(weights.data(), {32, 4})}},
      decoder{.part = "decoder", .prepare = encoder.prepare};
  const auto bias = [&weights](bool is_bidirectional) {
    return [&weights, is_bidirectional](std::int64_t h, std::int64_t query, std::int64_t key) {
      return static_cast<double>(weights[static_cast<std::size_t>(4 * t5_bucket(key - query, is_bidirectional) + h)]);
    };
  };
  expect_right(
      {.config = all, .layer = 1, .inputs = encoder, .reference = {.scale = 1, .causal = false, .bias = bias(true)}});
  expect_right({.config = all, .layer = 2, .inputs = decoder, .reference = {.scale = 1, .bias = bias(false)}});
}

TEST(Layer, Qwen2VlHasThreeAxes) {
  Family family{.config = config("qwen2_vl", R"("num_hidden_layers":1,"rope_theta":1000000.0,
                    "rope_scaling":{"type":"mrope","mrope_section":[2,3,3]})"),
                .reference = {.frequencies = plain(1000000, 16), .axes = {0, 0, 1, 1, 1, 2, 2, 2}},
                .axes = 3};
  // text, an image of 3 x 4, text
  for (int axis = 0; axis < 3; ++axis) {
    for (std::int64_t t = 0; t < kTokens; ++t) {
      const bool is_image = t >= 5 && t < 17;
      const std::int64_t patch = t - 5;
      family.ids.push_back(t < 5       ? t
                           : !is_image ? t - 17 + 9
                           : axis == 0 ? 5
                           : axis == 1 ? 5 + patch / 4
                                       : 5 + patch % 4);
    }
  }
  family.reference.position = [ids = family.ids](std::int64_t t, int axis) {
    return static_cast<double>(ids[static_cast<std::size_t>(axis * kTokens + t)]);
  };
  expect_right(family);
}

// Families whose YaRN has mscale_all_dim: on the softmax in DeepSeek and its kin, not in Ministral 3. Applied once.
TEST(Layer, TheSoftmaxFactorIsAppliedOnce) {
  const auto mla = [](const std::string& type, const std::string& more) {
    return config(type, R"("num_hidden_layers":1,"rope_theta":10000.0,"qk_rope_head_dim":8,"qk_nope_head_dim":8,
        "v_head_dim":8,"kv_lora_rank":16,"rope_scaling":{"rope_type":"yarn","type":"yarn","factor":40.0,"mscale":1.0,
        "mscale_all_dim":1.0,"original_max_position_embeddings":4096)" +
                            more + "}");
  };
  const double gain = 0.1 * std::log(40.0) + 1;
  Reference deepseek{.frequencies = yarn(10000, 8, 40, 4096, true),
                     .first = 8,
                     .reads_interleaved = true,
                     .scale = gain * gain / std::sqrt(16.0)};
  for (const char* const type : {"deepseek_v3", "kimi_k2", "glm4_moe_lite", "youtu", "axk1", "axk2", "deepseek_v32",
                                 "glm_moe_dsa", "longcat_flash"}) {
    expect_right({.config = mla(type, ""), .reference = deepseek});
  }
  Reference mistral4 = deepseek;
  mistral4.factor = [](std::int64_t p) { return 1 + 0.1 * std::log1p(std::floor(static_cast<double>(p) / 4096.0)); };
  expect_right({.config = mla("mistral4", R"(,"llama_4_scaling_beta":0.1)"), .reference = mistral4});
  Reference interleaved = deepseek;
  interleaved.writes_interleaved = true;
  expect_right({.config = mla("deepseek_v2", ""), .reference = interleaved});
  Reference halves = deepseek;
  halves.reads_interleaved = false;
  expect_right({.config = mla("minicpm3", ""), .reference = halves});
  expect_right({.config = config("ministral3", R"("num_hidden_layers":1,"rope_parameters":{"rope_type":"yarn",
                    "rope_theta":10000.0,"factor":40.0,"mscale":1.0,"mscale_all_dim":1.0,"llama_4_scaling_beta":0.3,
                    "original_max_position_embeddings":8})"),
                .reference = {.frequencies = yarn(10000, 16, 40, 8, true), .factor = [](std::int64_t p) {
                                return 1 + 0.3 * std::log1p(std::floor(static_cast<double>(p) / 8.0));
                              }}});
}

TEST(Layer, ModernBertSeesHalfItsWindowOnEitherSide) {
  const std::string all = config("modernbert", R"("num_hidden_layers":3,"global_attn_every_n_layers":3,
      "local_attention":8,"global_rope_theta":160000.0,"local_rope_theta":10000.0)");
  expect_right(
      {.config = all, .layer = 1, .reference = {.frequencies = plain(10000, 16), .causal = false, .window = 5}});
  expect_right({.config = all, .layer = 0, .reference = {.frequencies = plain(160000, 16), .causal = false}});
}

TEST(Layer, AddedVectorsStayOutOfAttention) {
  const Model model = read_model(R"({"model_type":"roberta","hidden_size":8,"num_attention_heads":2,
      "num_hidden_layers":2,"max_position_embeddings":34,"pad_token_id":1})");
  const std::vector<float> table(34 * 8, 0.5f);
  const PreparedLayer made = layer(model, 1, {.prepare = {.weights = view(table.data(), {34, 8})}});
  EXPECT_TRUE(std::holds_alternative<Nothing>(made.attention.position));
  ASSERT_TRUE(made.addition.has_value());
  EXPECT_EQ(made.first_position, 2);
  EXPECT_FALSE(made.attention.causal);
  EXPECT_FALSE(layer(model, 1).addition.has_value());
  EXPECT_FALSE(layer(model, 1).notes.empty());
}

TEST(Layer, SaysWhatItCannotDo) {
  const std::string llama = config("llama", R"("num_hidden_layers":2)");
  EXPECT_EQ(refusal_of(llama, 2), "layer 2: the model has layers 0-1");
  EXPECT_EQ(refusal_of(llama, -1), "layer -1: the model has layers 0-1");
  EXPECT_EQ(refusal_of(llama, 0, {.part = "vision"}), "layer 0 of the vision: the model has no such part");
  EXPECT_EQ(refusal_of(llama, 0, {.causal = false}), "layer 0: its attention is causal");
  const std::vector<float> sinks = {1.0f};
  EXPECT_EQ(refusal_of(llama, 0, {.sinks = view(sinks.data(), {1})}),
            "layer 0: it has no sinks, but some were given");
  EXPECT_EQ(refusal_of(config("gpt_oss", R"("num_hidden_layers":2)"), 0),
            "layer 0: it has sinks, whose trained logits [heads] are missing");
  EXPECT_EQ(refusal_of(config("gpt_oss", R"("num_hidden_layers":2)"), 0, {.sinks = view(sinks.data(), {1})}),
            "layer 0: its sinks must be [4], one for each head, but are [1]");
  const std::vector<float> all_sinks(64);
  EXPECT_EQ(refusal_of(R"({"model_type":"gpt_oss"})", 0, {.sinks = view(all_sinks.data(), {3})}),
            "layer 0: its sinks must be [64], one for each head, but are [3]");
  EXPECT_EQ(refusal_of(R"({"model_type":"gpt_oss"})", 0, {.sinks = view(all_sinks.data(), {64})}), "accepted");
  EXPECT_EQ(
      refusal_of(R"({"model_type":"llama","hidden_size":64,"num_attention_heads":4,"num_key_value_heads":3})", 0),
      "layer 0: its 4 heads are not a multiple of its 3 key heads");
  EXPECT_EQ(
      refusal_of(R"({"model_type":"llama","hidden_size":64,"num_attention_heads":4,"num_key_value_heads":2})", 0),
      "accepted");
  const std::string t5 = R"({"model_type":"t5","num_heads":4,"d_model":64,"d_kv":16,"num_layers":2,
      "num_decoder_layers":3})";
  EXPECT_EQ(refusal_of(t5, 0), "layer 0: several parts have it: choose one of encoder, decoder");
  EXPECT_EQ(refusal_of(t5, 2, {.part = "encoder"}), "layer 2 of the encoder: the model has layers 0-1");
  EXPECT_EQ(refusal_of(t5, 0, {.part = "dec"}),
            "layer 0 of the dec: the model has no such part; choose from: encoder, decoder");
  EXPECT_TRUE(refusal_of(t5, 0, {.part = "decoder"}).find("t5: ") == 0);  // its table is missing
  EXPECT_EQ(refusal_of(config("qwen3_next", R"("num_hidden_layers":4)"), 0),
            "layer 0: it has no attention (linear_attention instead)");
}

// What the files say, also where it cannot be computed: a layer with sinks, before their logits are known.
TEST(Layer, GroupOf) {
  const Model gpt_oss = read_model(config("gpt_oss", R"("num_hidden_layers":2)"));
  EXPECT_TRUE(group_of(gpt_oss, 0).has_sinks);
  EXPECT_THROW(group_of(gpt_oss, 2), Error);
  EXPECT_THROW(group_of(gpt_oss, -1), Error);
  EXPECT_THROW(group_of(gpt_oss, 0, "vision"), Error);
  const Model t5 = read_model(R"({"model_type":"t5","num_heads":4,"d_model":64,"d_kv":16,"num_layers":2,
      "num_decoder_layers":3})");
  EXPECT_THROW(group_of(t5, 0), Error);
  EXPECT_EQ(group_of(t5, 2, "decoder").layer_type, "decoder");
  EXPECT_THROW(group_of(t5, 2, "encoder"), Error);
}

}  // namespace
}  // namespace posenc::layer_test
