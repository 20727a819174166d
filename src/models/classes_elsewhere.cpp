#include <array>

#include "models/classes.h"

// Families whose code is published with their weights. If a row has no value for a key, the class's default was not
// read; see classes.h.

namespace posenc::models {
namespace {

// clang-format off
constexpr auto kClassesElsewhere = std::to_array<ConfigClass>({
    {"FluxTransformer2DModel", R"({"num_layers":19,"attention_head_dim":128,"num_attention_heads":24,"axes_dims_rope":[16,56,56]})"},
    {"ChromaTransformer2DModel", R"({"num_layers":19,"attention_head_dim":128,"num_attention_heads":24,"axes_dims_rope":[16,56,56]})"},
    {"Flux2Transformer2DModel", R"({"num_layers":8,"attention_head_dim":128,"num_attention_heads":48,"axes_dims_rope":[32,32,32,32],"rope_theta":2000})"},
    {"QwenImageTransformer2DModel", R"({"num_layers":60,"attention_head_dim":128,"num_attention_heads":24,"axes_dims_rope":[16,56,56]})"},
    {"HunyuanVideoTransformer3DModel", R"({"num_layers":20,"attention_head_dim":128,"num_attention_heads":24,"rope_axes_dim":[16,56,56],"rope_theta":256})"},
    {"HunyuanVideo15Transformer3DModel", R"({"num_layers":54,"attention_head_dim":128,"num_attention_heads":16,"rope_axes_dim":[16,56,56],"rope_theta":256})"},
    {"HunyuanVideoFramepackTransformer3DModel", R"({"num_layers":20,"attention_head_dim":128,"num_attention_heads":24,"rope_axes_dim":[16,56,56],"rope_theta":256})"},
    {"WanTransformer3DModel", R"({"num_layers":40,"attention_head_dim":128,"num_attention_heads":40})"},
    {"afm7", R"({"rope_theta":50000,"names":{"hidden_size":"hidden_dim","num_attention_heads":"num_heads","num_hidden_layers":"num_layers"}})"},
    {"chatglm", R"({"partial_rotary_factor":0.5,"names":{"num_hidden_layers":"num_layers","max_position_embeddings":"seq_length","head_dim":"kv_channels"}})"},
    {"bailing_moe", R"({"rope_theta":600000})"},
    {"bailing_moe_v2", R"({"rope_theta":600000,"partial_rotary_factor":0.5})"},
    {"baichuan", R"({"names":{"max_position_embeddings":"model_max_length"}})"},
    {"exaone", R"({"names":{"num_hidden_layers":"num_layers"}})"},
    {"internlm2", R"({"rope_theta":10000})"},
    {"jina_bert_v2", R"({})"},
    {"kimi_k2", R"({"qk_rope_head_dim":64})"},
    {"mimo_v2", R"({"partial_rotary_factor":0.334,"rope_parameters":{"full_attention":{"rope_type":"default","rope_theta":5000000,"partial_rotary_factor":0.334},"sliding_attention":{"rope_type":"default","rope_theta":10000,"partial_rotary_factor":0.334}}})"},
    {"minimax_m3", R"({"text_config":{"model_type":"minimax_m3_vl_text"}})"},
    {"qwen", R"({"names":{"max_position_embeddings":"seq_length","head_dim":"kv_channels"}})"},
    {"stablelm_epoch", R"({"rope_pct":0.25})"},
    {"xlm-roberta-flash", R"({"rotary_emb_base":20000})"},
    {"longcat_flash_ngram", R"({"rope_theta":10000000,"qk_rope_head_dim":64})"},
    {"ErnieCode", R"({"d_model":512,"num_layers":6,"num_decoder_layers":6,"num_heads":8,"relative_attention_num_buckets":32,"relative_attention_max_distance":128})"},
    {"ernie_layout", R"({"hidden_size":768,"num_hidden_layers":12,"num_attention_heads":12,"max_position_embeddings":514})"},
});
// clang-format on

}  // namespace

std::span<const ConfigClass> classes_elsewhere() noexcept { return kClassesElsewhere; }

}  // namespace posenc::models
