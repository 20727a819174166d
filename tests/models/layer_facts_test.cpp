// What families do in attention beside position, where they differ from most: other scales, other windows, and
// attention that is not computed. By the code of transformers 5.16 (d56c55bf).

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "models/layer_reference.h"
#include "posenc/error.h"
#include "posenc/layer.h"

namespace posenc::layer_facts_test {
namespace {

using layer_reference::config;
using layer_reference::expect_right;
using layer_reference::plain;
using layer_reference::Reference;
using layer_reference::refusal_of;

// modeling_gpt2.py, GPT2Attention: 1/√D unless scale_attn_weights is false, divided by the layer's number from 1 on.
TEST(LayerFacts, Gpt2MayDivideByTheLayer) {
  const auto gpt2 = [](const std::string& more) {
    return R"({"model_type":"gpt2","n_embd":64,"n_head":4,"n_layer":3,"n_positions":64)" + more + "}";
  };
  expect_right({.config = gpt2(""), .layer = 2});
  expect_right({.config = gpt2(R"(,"scale_attn_weights":false)"), .layer = 2, .reference = {.scale = 1}});
  const std::string divided = gpt2(R"(,"scale_attn_by_inverse_layer_idx":true)");
  expect_right({.config = divided, .layer = 0, .reference = {.scale = 1.0 / 4}});
  expect_right({.config = divided, .layer = 2, .reference = {.scale = 1.0 / 12}});
  EXPECT_EQ(read_model(divided).groups.size(), 3u);  // layers that differ never share a group
  expect_right({.config = gpt2(R"(,"scale_attn_by_inverse_layer_idx":true,"scale_attn_weights":false)"),
                .layer = 1,
                .reference = {.scale = 1.0 / 2}});
}

// modeling_gpt_neo.py, GPTNeoSelfAttention: no scale, and local layers see window_size keys.
TEST(LayerFacts, GptNeoIsUnscaledAndHasLocalLayers) {
  const std::string neo = R"({"model_type":"gpt_neo","hidden_size":64,"num_heads":4,"num_layers":4,"window_size":7,
      "max_position_embeddings":64,"attention_types":[[["global","local"],1],[["local","global"],1]]})";
  expect_right({.config = neo, .layer = 0, .reference = {.scale = 1}});
  expect_right({.config = neo, .layer = 1, .reference = {.scale = 1, .window = 7}});
  expect_right({.config = neo, .layer = 2, .reference = {.scale = 1, .window = 7}});
  expect_right({.config = neo, .layer = 3, .reference = {.scale = 1}});
  EXPECT_EQ(read_model(R"({"model_type":"gpt_neo"})").groups.size(), 2u);
}

// modeling_longformer.py, LongformerSelfAttention: attention_window / 2 keys on either side, for each layer its own.
TEST(LayerFacts, LongformerSeesHalfItsWindowOnEitherSide) {
  const auto longformer = [](const std::string& window) {
    return R"({"model_type":"longformer","hidden_size":64,"num_attention_heads":4,"num_hidden_layers":2,
        "max_position_embeddings":66,"attention_window":)" +
           window + "}";
  };
  expect_right({.config = longformer("8"), .layer = 1, .reference = {.causal = false, .window = 5}});
  expect_right({.config = longformer("[8,4]"), .layer = 0, .reference = {.causal = false, .window = 5}});
  expect_right({.config = longformer("[8,4]"), .layer = 1, .reference = {.causal = false, .window = 3}});
  const PreparedLayer made = layer(read_model(longformer("8")), 0);
  EXPECT_TRUE(std::any_of(made.notes.begin(), made.notes.end(), [](const std::string& note) {
    return note.find("global attention") != std::string::npos;
  }));
}

TEST(LayerFacts, ScalesOfTheirOwn) {
  const double root = std::sqrt(16.0);
  Reference reference{.frequencies = plain(10000, 16)};
  const auto expect_scale = [&](const std::string& json, double scale) {
    reference.scale = scale;
    expect_right({.config = json, .reference = reference});
  };
  expect_scale(config("granite", R"("num_hidden_layers":1,"rope_theta":10000.0,"attention_multiplier":0.3)"), 0.3);
  expect_scale(config("falcon_h1", R"("num_hidden_layers":1,"rope_theta":10000.0,"key_multiplier":0.5)"), 0.5 / root);
  expect_scale(config("dia_decoder", R"("num_hidden_layers":1,"rope_parameters":{"rope_type":"default",
      "rope_theta":10000.0})"),
               1);
  expect_scale(config("zamba2", R"("num_hidden_layers":1,"rope_theta":10000.0,"use_mem_rope":true,
      "layers_block_type":["hybrid"],"attention_head_dim":16)"),
               std::sqrt(2.0) / root);
  expect_right({.config = config("zamba", R"("num_hidden_layers":3,"attention_head_dim":16)"),
                .layer = 2,
                .reference = {.scale = std::sqrt(2.0) / root}});
}

// modeling_deberta_v2.py, DisentangledSelfAttention: three terms share a scale of 1/√(3 D).
TEST(LayerFacts, DebertasTermsShareAScale) {
  constexpr std::int64_t kSpan = 6, kFeatures = 16;
  std::vector<float> for_queries, for_keys;
  for (int i = 0; i < 2 * kSpan * kFeatures; ++i) {
    for_queries.push_back(static_cast<float>(std::sin(0.7 * i)));
    for_keys.push_back(static_cast<float>(std::cos(0.3 * i)));
  }
  Reference reference{.scale = 1 / std::sqrt(3 * 16.0), .causal = false};
  reference.content = [&](const std::vector<double>& q, const std::vector<double>& k, std::int64_t query,
                          std::int64_t key) {
    const std::int64_t row = std::clamp<std::int64_t>(query - key + kSpan, 0, 2 * kSpan - 1);
    double sum = 0;
    for (std::size_t f = 0; f < 16; ++f) {
      const auto at = static_cast<std::size_t>(row) * 16 + f;
      sum += q[f] * static_cast<double>(for_queries[at]) + k[f] * static_cast<double>(for_keys[at]);
    }
    return sum;
  };
  expect_right({.config = config("deberta-v2", R"("num_hidden_layers":1,"relative_attention":true,
                    "max_relative_positions":6,"pos_att_type":["c2p","p2c"])"),
                .inputs = {.part = "attention",
                           .prepare = {.weights = view(for_queries.data(), {2 * kSpan, kFeatures}),
                                       .key_weights = view(for_keys.data(), {2 * kSpan, kFeatures})}},
                .reference = reference});
}

// Attention that is another function is an error, never silence.
TEST(LayerFacts, OtherAttentionIsRefused) {
  EXPECT_EQ(refusal_of(config("diffllama", R"("num_hidden_layers":1)"), 0),
            "layer 0: its attention is not computed: the weights are the difference of two softmaxes");
  for (const char* const json :
       {R"({"model_type":"doge"})", R"({"model_type":"big_bird"})", R"({"model_type":"yoso"})",
        R"({"model_type":"nystromformer"})", R"({"model_type":"reformer","axial_pos_embds":false})"}) {
    EXPECT_NE(refusal_of(json, 0).find("its attention is not computed: "), std::string::npos) << json;
  }
  EXPECT_EQ(refusal_of(R"({"model_type":"big_bird","attention_type":"original_full"})", 0), "accepted");
  for (const char* const json :
       {R"({"model_type":"longt5"})", R"({"model_type":"bigbird_pegasus"})", R"({"model_type":"pegasus_x"})"}) {
    EXPECT_NE(refusal_of(json, 0, {.part = "encoder"}).find("its attention is not computed: "), std::string::npos)
        << json;
  }
  EXPECT_EQ(refusal_of(R"({"model_type":"pegasus_x"})", 0, {.part = "decoder"}), "accepted");
  // of DeepSeek-V4's layers, those of a window are attention
  const std::string v4 = config("deepseek_v4", R"("num_hidden_layers":2,"compress_ratios":[0,4],"sliding_window":8)");
  const std::vector<float> sinks(4);
  const LayerInputs with_sinks{.sinks = view(sinks.data(), {4})};
  EXPECT_EQ(refusal_of(v4, 0, with_sinks), "accepted");
  EXPECT_EQ(
      refusal_of(v4, 1, with_sinks),
      "layer 1: its attention is not computed: compressed keys and values of earlier tokens join those of the window");
}

// What is left to the caller is in the notes.
TEST(LayerFacts, NotesSayWhatTheCallerDoes) {
  const auto has_note = [](const std::string& json, const char* words) {
    const PreparedLayer made = layer(read_model(json), 0);
    return std::any_of(made.notes.begin(), made.notes.end(),
                       [&](const std::string& note) { return note.find(words) != std::string::npos; });
  };
  EXPECT_TRUE(has_note(R"({"model_type":"qwen2_5_vl_vision"})", "window of window_size pixels"));
  EXPECT_FALSE(has_note(R"({"model_type":"glm_ocr_vision"})", "window of window_size pixels"));
  for (const char* const type : {"deepseek_v32", "glm_moe_dsa", "axk2"}) {
    EXPECT_TRUE(has_note(config(type, R"("num_hidden_layers":1,"qk_rope_head_dim":8)"), "an indexer chooses"))
        << type;
  }
  EXPECT_FALSE(
      has_note(config("deepseek_v3", R"("num_hidden_layers":1,"qk_rope_head_dim":8)"), "an indexer chooses"));
}

TEST(LayerFacts, CrossAttentionIsNotCausal) {
  const Model model =
      read_model(config("mllama_text_model", R"("num_hidden_layers":2,"cross_attention_layers":[1])"));
  EXPECT_TRUE(layer(model, 0).attention.causal);
  EXPECT_FALSE(layer(model, 1).attention.causal);
}

TEST(LayerFacts, ListsThatDoNotFitAreRefused) {
  const auto refusal = [](const std::string& json) -> std::string {
    try {
      read_model(json);
      return "accepted";
    } catch (const Error& error) {
      return error.what();
    }
  };
  const auto neo = [](const std::string& types) {
    return R"({"model_type":"gpt_neo","num_layers":2,"attention_types":)" + types + "}";
  };
  EXPECT_EQ(refusal(neo(R"([[["global"],2]])")), "accepted");
  EXPECT_EQ(refusal(neo(R"([[["global"],9007199254740992]])")),
            "attention_types must have 2 entries, one for each layer, but has 3");
  EXPECT_EQ(refusal(neo(R"([[["some"],2]])")),
            "attention_types must be of the types global and local but is [[[\"some\"],2]]");
  EXPECT_EQ(refusal(neo("[[[],9007199254740992]]")),
            "attention_types must be a list of [types, count] but is [[[],9007199254740992]]");
  EXPECT_EQ(refusal(neo("7")), "attention_types must be a list of [types, count] but is 7");
  EXPECT_EQ(refusal(R"({"model_type":"longformer","num_hidden_layers":2,"attention_window":[8]})"),
            "attention_window must have 2 entries, one for each layer, but has 1");
  EXPECT_EQ(refusal(R"({"model_type":"longformer","num_hidden_layers":1,"attention_window":[2.5]})"),
            "attention_window must be an integer above 0, or a list of them but is [2.5]");
}

// MLA: keys and values made of one latent vector c for each token, k = [W c | rotated part] and v = c; or, as engines keep
// them, c itself in the cache, and queries [Wᵀ q | rotated part]. Both are the same attention, with the scale of the head.
TEST(LayerFacts, LatentKeysHaveTheScaleOfTheHead) {
  constexpr std::int64_t kHeads = 2, kPlain = 8, kRotated = 8, kLatent = 12, kTokens = 6, kHead = kPlain + kRotated;
  const Model model = read_model(R"({"model_type":"deepseek_v3","hidden_size":32,"num_hidden_layers":1,
      "num_attention_heads":2,"qk_nope_head_dim":8,"qk_rope_head_dim":8,"v_head_dim":12,"kv_lora_rank":12,
      "rope_theta":10000,"max_position_embeddings":4096,"rope_scaling":{"type":"yarn","factor":4,"mscale":1.0,
      "mscale_all_dim":1.0,"original_max_position_embeddings":1024}})");
  const AttentionOptions options = layer(model, 0).attention;
  int drawn = 0;
  const auto some = [&](std::int64_t count) {
    std::vector<double> x;
    for (std::int64_t i = 0; i < count; ++i, ++drawn) x.push_back(std::sin(0.7 * drawn * drawn + 1));
    return x;
  };
  const auto w = some(kHeads * kPlain * kLatent), c = some(kTokens * kLatent), rotated = some(kTokens * kRotated),
             q = some(kHeads * kTokens * kHead);
  std::vector<double> k(kHeads * kTokens * kHead), latent_q(kHeads * kTokens * (kLatent + kRotated)),
      latent_k(kTokens * (kLatent + kRotated));
  const auto w_at = [&](std::int64_t h, std::int64_t p, std::int64_t l) {
    return w[static_cast<std::size_t>((h * kPlain + p) * kLatent + l)];
  };
  for (std::int64_t t = 0; t < kTokens; ++t) {
    for (std::int64_t i = 0; i < kLatent + kRotated; ++i) {
      latent_k[static_cast<std::size_t>(t * (kLatent + kRotated) + i)] =
          i < kLatent ? c[static_cast<std::size_t>(t * kLatent + i)]
                      : rotated[static_cast<std::size_t>(t * kRotated + i - kLatent)];
    }
    for (std::int64_t h = 0; h < kHeads; ++h) {
      double* const key = k.data() + (h * kTokens + t) * kHead;
      const double* const query = q.data() + (h * kTokens + t) * kHead;
      double* const latent = latent_q.data() + (h * kTokens + t) * (kLatent + kRotated);
      for (std::int64_t p = 0; p < kPlain; ++p) {
        for (std::int64_t l = 0; l < kLatent; ++l) {
          key[p] += w_at(h, p, l) * c[static_cast<std::size_t>(t * kLatent + l)];
          latent[l] += w_at(h, p, l) * query[p];
        }
      }
      for (std::int64_t i = 0; i < kRotated; ++i) {
        key[kPlain + i] = rotated[static_cast<std::size_t>(t * kRotated + i)];
        latent[kLatent + i] = query[kPlain + i];
      }
    }
  }
  std::vector<double> v, out(kHeads * kTokens * kLatent), latent_out = out;
  for (std::int64_t h = 0; h < kHeads; ++h) v.insert(v.end(), c.begin(), c.end());
  const Extents result = {1, kHeads, kTokens, kLatent}, wide = {1, kHeads, kTokens, kLatent + kRotated};
  attention(view(out.data(), result), view(q.data(), {1, kHeads, kTokens, kHead}),
            view(k.data(), {1, kHeads, kTokens, kHead}), view(v.data(), result), options);
  const TensorView cache = view(latent_k.data(), {1, 1, kTokens, kLatent + kRotated});
  attention(view(latent_out.data(), result), view(latent_q.data(), wide), cache, slice(cache, 3, 0, kLatent),
            options);
  for (std::size_t i = 0; i < out.size(); ++i) EXPECT_NEAR(latent_out[i], out[i], 1e-12);
}

}  // namespace
}  // namespace posenc::layer_facts_test
