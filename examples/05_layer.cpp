// 05: everything that a layer of a model needs for attention, from its config.json: position, scale, window, softcap.
#include <posenc/posenc.h>

#include <cstdio>

int main() {
  using namespace posenc;
  const Model model = read_model(R"({
    "model_type": "gemma2", "hidden_size": 2304, "num_hidden_layers": 26, "num_attention_heads": 8,
    "num_key_value_heads": 4, "head_dim": 256, "query_pre_attn_scalar": 256, "sliding_window": 4096,
    "attn_logit_softcapping": 50.0, "rope_theta": 10000.0, "max_position_embeddings": 8192})");
  for (const std::int64_t i : {0, 1}) {
    const AttentionOptions options = layer(model, i).attention;
    std::printf("layer %d: %s, window %lld, softcap %g, scale %g\n", static_cast<int>(i),
                options.causal ? "causal" : "bidirectional", static_cast<long long>(options.window), options.softcap,
                options.scale.value_or(0));
  }
  try {
    layer(model, 26);
  } catch (const Error& error) {
    std::printf("%s\n", error.what());
  }
}
