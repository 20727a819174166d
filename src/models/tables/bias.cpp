// Families that change scores by distance. Read in transformers 5.16.0.dev0 (commit d56c55bf, August 2026).

#include <array>

#include "models/sizes.h"
#include "models/tables/rows.h"

namespace posenc::models {
namespace {

using enum Encoding;

constexpr std::string_view kFirstLayer = "the bias is computed in the first layer and shared by all";
constexpr std::string_view kOwnTables = "each layer has a table of its own";
constexpr std::string_view kSpatial =
    "with has_spatial_attention_bias, buckets of the distance of boxes on the page, across and down, are added too";
constexpr std::string_view kXlScores =
    "((q + u).k + (q + v).(W R(m - n))) / sqrt(D), R the sinusoids of the distance";
constexpr std::string_view kXlSegments = "a third term, for segments, does not depend on position";

// vLLM a014e35f, jais.py
void scale_by_size(const GroupFacts& facts) {
  for (const std::string_view key : {"mup_scale_qk_dot_by_d", "scale_qk_dot_by_d"}) {
    if (holds(facts.config, key)) {
      facts.group.scale = 1.0 / static_cast<double>(head_size(facts.config, facts.family));
    }
  }
}

constexpr auto kBiasEntries = std::to_array<Family>({
    {.types = "bloom", .encoding = kAlibi, .mask = Mask::kCausal, .note = "positions count tokens and skip padding"},
    {.types = "mpt",
     .encoding = kAlibi,
     .mask = Mask::kCausal,
     .scale = {.key = "attn_config.softmax_scale"},
     .note = "transformers applies ALiBi with max_bias 8 whatever attn_config says; the original code reads "
             "alibi_bias_max, and without alibi adds a table of max_seq_len rows"},
    {.types = "falcon",
     .when = "alibi",
     .encoding = kAlibiOfQuotient,
     .mask = Mask::kCausal,
     .note = "scores and bias together are divided by sqrt(D), and slopes are rounded to bf16 first"},
    {.types = "baichuan", .when = "!hidden_size=4096", .encoding = kAlibi, .mask = Mask::kCausal},
    {.types = "refact", .encoding = kAlibi, .mask = Mask::kCausal},
    // vLLM a014e35f, jais.py
    {.types = "jais", .encoding = kAlibi, .mask = Mask::kCausal, .adjust = scale_by_size},
    {.types = "jina_bert_v2", .encoding = kAlibi, .note = "symmetric: distance counts in both directions"},
    {.types = "t5 mt5 switch_transformers pop2piano",
     .encoding = kT5,
     .part = "encoder",
     .layers_key = "num_layers",
     .scale = kUnscaled,
     .note = kFirstLayer},
    {.types = "t5 mt5 switch_transformers pop2piano longt5",
     .encoding = kT5,
     .part = "decoder",
     .layers_key = "num_decoder_layers",
     .scale = kUnscaled},
    {.types = "longt5",
     .when = "encoder_attention_type=local",
     .encoding = kT5,
     .part = "encoder",
     .layers_key = "num_layers",
     .scale = kUnscaled,
     .other_attention = "tokens attend to their own block of local_radius + 1 tokens and its neighbours"},
    {.types = "longt5",
     .when = "!encoder_attention_type=local",
     .encoding = kT5,
     .part = "encoder",
     .layers_key = "num_layers",
     .scale = kUnscaled,
     .other_attention =
         "tokens attend to their own block, its neighbours and sums of blocks, which have a second table of buckets"},
    {.types = "umt5 ErnieCode",
     .encoding = kT5,
     .part = kEncoderDecoder,
     .layers_key = "num_layers num_decoder_layers",
     .scale = kUnscaled,
     .note = kOwnTables},
    {.types = "udop",
     .encoding = kT5,
     .part = "encoder",
     .layers_key = "num_layers",
     .scale = kUnscaled,
     .other_attention = "scores also have buckets of the distance of boxes on the page, across and down",
     .note = "tables of the boxes' corners are added to the input"},
    {.types = "udop", .encoding = kT5, .part = "decoder", .layers_key = "num_decoder_layers", .scale = kUnscaled},
    {.types = "pix2struct_text_model",
     .encoding = kT5,
     .mask = Mask::kCausal,
     .layers_key = "num_layers",
     .scale = kUnscaled,
     .note = kFirstLayer},
    {.types = "mpnet", .encoding = kLearned, .part = "embeddings", .first = kRoberta},
    {.types = "mpnet", .encoding = kT5, .part = "attention", .note = kFirstLayer},
    {.types = "layoutlmv3", .encoding = kLearned, .part = "embeddings", .first = kRoberta},
    {.types = "ernie_layout", .encoding = kLearned, .part = "embeddings"},
    {.types = "layoutlmv3 ernie_layout",
     .when = "has_relative_attention_bias",
     .encoding = kNotComputed,
     .part = "attention",
     .name = "t5-boxes",
     .formula = "score + (table[bucket(n - m), h] + spatial biases) / sqrt(D), T5's buckets with rel_pos_bins and "
                "max_rel_pos",
     .note = kSpatial},
    {.types = "=PPDocLayoutV2ReadingOrderConfig", .encoding = kLearned, .first = kRoberta, .note = kSpatial},
    {.types = "deberta deberta-v2", .when = "relative_attention", .encoding = kDeberta, .part = "attention"},
    {.types = "deberta deberta-v2",
     .when = "!position_biased_input=false",
     .encoding = kLearned,
     .part = "embeddings",
     .width_key = "embedding_size"},
    {.types = "xlnet",
     .when = "!attn_type=uni",
     .encoding = kTransformerXl,
     .waves = kSinCos,
     .formula = kXlScores,
     .note = kXlSegments},
    {.types = "xlnet",
     .when = "attn_type=uni",
     .encoding = kTransformerXl,
     .mask = Mask::kCausal,
     .waves = kSinCos,
     .formula = kXlScores,
     .note = kXlSegments},
    {.types = "transfo-xl",
     .encoding = kTransformerXl,
     .mask = Mask::kCausal,
     .waves = kSinCos,
     .formula = kXlScores},
    named("funnel", "transformer-xl",
          "((q + u).k + (q + v).(W R(m - n))) / sqrt(D), R the sinusoids of the distance; blocks pool positions"),
    {.types = "cpmant",
     .encoding = kNotComputed,
     .mask = Mask::kCausal,
     .name = "segment-buckets",
     .formula =
         "score + table[bucket(n - m) or segment pair, h]: T5's buckets within a segment, one row for each pair of "
         "segments"},
});
constexpr auto kBiasRows = table_of<count_of_rows(kBiasEntries)>(kBiasEntries, Mask::kBidirectional);

}  // namespace

std::span<const Family> bias_families() noexcept { return kBiasRows; }

}  // namespace posenc::models
