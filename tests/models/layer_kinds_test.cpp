// Which layers are attention, and what each requires: families without attention, other kinds of layers between
// attention, and incomplete files. By the code of transformers 5.16 (d56c55bf) and vLLM a014e35f.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "models/layer_reference.h"
#include "posenc/layer.h"

namespace posenc::layer_kinds_test {
namespace {

using layer_reference::config;
using layer_reference::expect_right;
using layer_reference::plain;
using layer_reference::Reference;
using layer_reference::refusal_of;

bool has_note(const Model& model, const char* words) {
  return std::any_of(model.notes.begin(), model.notes.end(),
                     [&](const std::string& note) { return note.find(words) != std::string::npos; });
}

TEST(LayerKinds, FamiliesWithoutAttentionAreRefused) {
  for (const char* const type : {"resnet", "convnext", "regnet", "mobilenet_v2", "efficientnet", "dac", "encodec"}) {
    EXPECT_EQ(refusal_of(fmt::format(R"({{"model_type":"{}"}})", type), 0),
              "layer 0: it has no attention (convolutions instead)")
        << type;
  }
  for (const char* const type : {"mamba", "mamba2", "falcon_mamba", "rwkv", "xlstm"}) {
    EXPECT_EQ(refusal_of(fmt::format(R"({{"model_type":"{}"}})", type), 0),
              "layer 0: it has no attention (recurrences instead)")
        << type;
  }
  EXPECT_EQ(refusal_of(R"({"model_type":"fnet"})", 0), "layer 0: it has no attention (a Fourier transform instead)");
  // and whatever the caller says of the mask
  EXPECT_EQ(refusal_of(R"({"model_type":"resnet"})", 0, {.causal = true}),
            "layer 0: it has no attention (convolutions instead)");
  EXPECT_EQ(refusal_of(R"({"model_type":"mobilevit","num_attention_heads":4,"num_hidden_layers":2})", 0), "accepted");
  // one score for each token: no attention that is computed here
  EXPECT_NE(refusal_of(R"({"model_type":"mobilevitv2"})", 0).find("its attention is not computed"),
            std::string::npos);
}

TEST(LayerKinds, LayersOfOtherKindsNeverShareAGroup) {
  // modeling_nemotron_h.py: M is a state space, - a feed-forward layer, * attention
  const std::string nemotron = config("nemotron_h", R"("num_hidden_layers":4,"hybrid_override_pattern":"M-*M")");
  EXPECT_EQ(read_model(nemotron).groups.size(), 3u);
  EXPECT_EQ(refusal_of(nemotron, 0, {.causal = true}), "layer 0: it has no attention (linear_attention instead)");
  EXPECT_EQ(refusal_of(nemotron, 1, {.causal = true}), "layer 1: it has no attention (mlp instead)");
  EXPECT_EQ(refusal_of(nemotron, 2), "accepted");
  // all of one kind: the group has no name, and is not attention for it
  const std::string granite = config("granitemoehybrid", R"("num_hidden_layers":2,"layer_types":["mamba","mamba"])");
  EXPECT_EQ(refusal_of(granite, 1, {.causal = true}), "layer 1: it has no attention (linear_attention instead)");
}

// vLLM, transformers_utils/configs/kimi_linear.py: layers counted from 1; models/kimi_k3: the scale of MLA's head.
TEST(LayerKinds, KimiLinearIsAttentionInSomeLayers) {
  const std::string kimi = config("kimi_linear", R"("num_hidden_layers":3,"qk_nope_head_dim":12,"qk_rope_head_dim":4,
      "linear_attn_config":{"kda_layers":[1,3],"full_attn_layers":[2]})");
  EXPECT_EQ(refusal_of(kimi, 0), "layer 0: it has no attention (linear_attention instead)");
  EXPECT_EQ(refusal_of(kimi, 2), "layer 2: it has no attention (linear_attention instead)");
  const AttentionOptions options = layer(read_model(kimi), 1).attention;
  EXPECT_TRUE(options.causal);
  EXPECT_DOUBLE_EQ(options.scale.value_or(0), 0.25);
}

// masking_utils.py, create_sliding_window_causal_mask and create_chunked_causal_mask: an error there too.
TEST(LayerKinds, AWindowThatIsNotGivenIsRefused) {
  const std::string types = R"("num_hidden_layers":2,"layer_types":["sliding_attention","full_attention"])";
  EXPECT_EQ(refusal_of(config("llama", types), 0),
            "layer 0: its attention is not computed: it slides over a window that the file does not give");
  EXPECT_EQ(refusal_of(config("llama", types), 1), "accepted");
  EXPECT_EQ(refusal_of(config("llama", types + R"(,"sliding_window":7)"), 0), "accepted");
  EXPECT_EQ(refusal_of(config("llama", R"("num_hidden_layers":1,"layer_types":["chunked_attention"])"), 0),
            "layer 0: its attention is not computed: it attends in chunks of a length that the file does not give");
}

TEST(LayerKinds, ATypeOfLayersThatIsNotKnownIsRefused) {
  const std::string types = config("llama", R"("num_hidden_layers":2,"layer_types":["full_attention","warp_field"])");
  EXPECT_EQ(refusal_of(types, 0), "accepted");
  EXPECT_EQ(refusal_of(types, 1), "layer 1: its attention is not computed: its type, warp_field, is not known");
}

// masking_utils.py, create_causal_mask: is_causal false is the mask of an encoder, with a window on both sides.
TEST(LayerKinds, ADecoderMayBeReadAsAnEncoder) {
  const auto qwen = [](const std::string& more) {
    return config("qwen2", R"("num_hidden_layers":1,"rope_theta":10000.0)" + more);
  };
  Reference reference{.frequencies = plain(10000, 16)};
  expect_right({.config = qwen(R"(,"is_causal":true)"), .reference = reference});
  reference.causal = false;
  expect_right({.config = qwen(R"(,"is_causal":false)"), .reference = reference});
  reference.window = 8;
  expect_right({.config = qwen(R"(,"is_causal":false,"use_sliding_window":true,"sliding_window":7,
                    "max_window_layers":0)"),
                .reference = reference});
  // is_decoder of a whole model is not its encoder's
  const std::string bart = R"({"model_type":"bart","is_decoder":true})";
  EXPECT_FALSE(layer(read_model(bart), 0, {.part = "encoder"}).attention.causal);
  EXPECT_TRUE(layer(read_model(bart), 0, {.part = "decoder"}).attention.causal);
}

// modeling_gpt_bigcode.py, GPTBigCodeAttention: it has scale_attn_weights, and not scale_attn_by_inverse_layer_idx.
TEST(LayerKinds, GptBigCodeIsNotDividedByTheLayer) {
  const auto bigcode = [](const std::string& more) {
    return R"({"model_type":"gpt_bigcode","n_embd":64,"n_head":4,"n_layer":2,"n_positions":64)" + more + "}";
  };
  expect_right({.config = bigcode(R"(,"scale_attn_by_inverse_layer_idx":true)"), .layer = 1});
  expect_right({.config = bigcode(R"(,"scale_attn_weights":false)"), .layer = 1, .reference = {.scale = 1}});
}

// modeling_gemma3.py, Gemma3Attention: attn_logit_softcapping does not reach attention, as it does in modeling_gemma2.py.
TEST(LayerKinds, Gemma3DoesNotCapScores) {
  const auto softcap = [](const char* type) {
    return layer(read_model(config(type, R"("num_hidden_layers":2,"attn_logit_softcapping":5.0,"sliding_window":7)")),
                 0)
        .attention.softcap;
  };
  EXPECT_EQ(softcap("gemma2"), 5.0);
  EXPECT_EQ(softcap("gemma3_text"), 0.0);
  EXPECT_EQ(softcap("t5gemma2_text"), 0.0);
}

TEST(LayerKinds, NotesOfWhatTheMaskOwes) {
  EXPECT_TRUE(has_note(read_model(R"({"model_type":"qwen2_5_omni_audio_encoder"})"), "2 n_window frames"));
  EXPECT_TRUE(has_note(read_model(R"({"model_type":"qwen3_omni_moe_audio_encoder"})"), "n_window_infer"));
  EXPECT_FALSE(has_note(read_model(R"({"model_type":"qwen2_audio_encoder"})"), "n_window"));
  EXPECT_TRUE(has_note(read_model(R"({"model_type":"gemma3"})"), "tokens of an image see each other"));
  EXPECT_FALSE(has_note(read_model(R"({"model_type":"gemma3_text"})"), "tokens of an image see each other"));
}

}  // namespace
}  // namespace posenc::layer_kinds_test
