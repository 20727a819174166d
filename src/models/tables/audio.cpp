// Parts and models that hear and speak. Read in transformers 5.16.0.dev0 (commit d56c55bf, August 2026).

#include <algorithm>
#include <array>

#include "models/sizes.h"
#include "models/tables/rows.h"

namespace posenc::models {
namespace {

using enum Encoding;

constexpr std::string_view kConvolution =
    "x + GELU(convolution over num_conv_pos_embeddings frames, in groups): position is what the kernel takes from "
    "neighbours";
constexpr std::string_view kXl = "((q + u).k + (q + v).(W R(m - n))) / sqrt(D), R the sinusoids of the distance";
constexpr std::string_view kGated =
    "score + gate(x) table[bucket(n - m), h]: T5's buckets, multiplied by a gate made from each query's hidden state";

// Half of projection_dim / heads, at least 32: modeling_clvp.py
void halve_projection(const RotationFacts& facts) {
  const auto whole = integer(facts.config, "projection_dim"), heads = heads_of(facts.config, facts.family);
  const std::int64_t head = head_size(facts.config, facts.family);
  facts.rope.dims = whole && heads ? std::max<std::int64_t>(*whole / (2 * *heads), 32) : head;
  if (facts.rope.dims % 2 != 0 || facts.rope.dims > head) {
    refuse(facts.config, "projection_dim", "such that half of it over the heads is even and within a head");
  }
}

constexpr auto kAudioEntries = std::to_array<Family>({
    {.types = "whisper",
     .encoding = kSinusoidal,
     .part = "encoder",
     .layers_key = "encoder_layers",
     .length_key = "max_source_positions",
     .waves = kInclusive},
    {.types = "whisper",
     .encoding = kLearned,
     .part = "decoder",
     .layers_key = "decoder_layers",
     .length_key = "max_target_positions"},
    {.types = "qwen2_audio_encoder audioflamingo3_encoder voxtral_encoder",
     .encoding = kSinusoidal,
     .length_key = "max_source_positions",
     .waves = kInclusive},
    {.types = "qwen2_5_omni_audio_encoder",
     .encoding = kSinusoidal,
     .length_key = "max_source_positions",
     .waves = kInclusive,
     .note =
         "each chunk of 2 n_window frames is a sequence of its own: positions restart in it, and its tokens see it "
         "alone, as packed sequences"},
    {.types = "qwen3_omni_moe_audio_encoder qwen3_asr_encoder",
     .encoding = kSinusoidal,
     .length_key = "max_source_positions",
     .waves = kInclusive,
     .note =
         "positions restart in each chunk of 2 n_window frames; tokens attend to their window of n_window_infer frames "
         "alone, as packed sequences"},
    named("wav2vec2 hubert unispeech unispeech-sat sew data2vec-audio", "convolution", kConvolution),
    {.types = "wavlm",
     .encoding = kNotComputed,
     .part = "embeddings",
     .name = "convolution",
     .formula = kConvolution},
    {.types = "wavlm",
     .encoding = kNotComputed,
     .part = "attention",
     .name = "gated-t5",
     .formula = kGated,
     .note = "the table is computed in the first layer and shared by all, the gate in each"},
    {.types = "sew-d",
     .encoding = kNotComputed,
     .part = "embeddings",
     .name = "convolution",
     .formula = kConvolution},
    {.types = "sew-d", .when = "relative_attention", .encoding = kDeberta, .part = "attention"},
    {.types = "wav2vec2-conformer",
     .when = "position_embeddings_type=rotary",
     .rope = {.base_key = "rotary_embedding_base"}},
    {.types = "wav2vec2-conformer",
     .when = "position_embeddings_type=relative",
     .encoding = kTransformerXl,
     .formula = kXl},
    {.types = "wav2vec2-conformer", .when = "!position_embeddings_type", .encoding = kNone},
    {.types = "wav2vec2-bert", .when = "position_embeddings_type=relative_key", .encoding = kShaw},
    {.types = "wav2vec2-bert",
     .when = "position_embeddings_type=rotary",
     .rope = {.base_key = "rotary_embedding_base"}},
    {.types = "wav2vec2-bert",
     .when = "position_embeddings_type=relative",
     .encoding = kTransformerXl,
     .formula = kXl},
    {.types = "wav2vec2-bert", .when = "!position_embeddings_type", .encoding = kNone},
    {.types = "seamless_m4t",
     .encoding = kTransformerXl,
     .part = "speech encoder",
     .layers_key = "speech_encoder_layers",
     .formula = kXl},
    {.types = "seamless_m4t_v2", .encoding = kShaw, .part = "speech encoder", .layers_key = "speech_encoder_layers"},
    {.types = "seamless_m4t seamless_m4t_v2",
     .encoding = kSinusoidal,
     .part = kEncoderDecoder,
     .waves = kFairseq,
     .first = {.position = 1, .is_after_padding = true}},
    {.types = "speecht5",
     .encoding = kNotComputed,
     .part = "encoder",
     .layers_key = "encoder_layers",
     .name = "shaw",
     .formula =
         "score + q.table[clip(m - n)] in the encoder; inputs also have scaled sinusoids (text) or a convolution "
         "and sinusoids (speech)"},
    {.types = "speecht5",
     .encoding = kSinusoidal,
     .part = "decoder",
     .layers_key = "decoder_layers",
     .note = "sinusoids are multiplied by a trained number where text or spectrograms are read"},
    {.types = "fastspeech2_conformer", .encoding = kTransformerXl, .layers_key = "encoder_layers", .formula = kXl},
    {.types = "parakeet_encoder", .encoding = kTransformerXl, .formula = kXl},
    {.types = "nemotron_asr_streaming_encoder",
     .encoding = kTransformerXl,
     .formula = kXl,
     .note = "frames see their own chunk and some chunks before it: the caller's mask"},
    {.types = "granite_speech_encoder granite_speech_plus_encoder",
     .encoding = kNotComputed,
     .layers_key = "num_layers",
     .name = "shaw",
     .formula = "score + q.table[clip(m - n, -max_pos_emb, max_pos_emb)] within blocks of context_size frames"},
    named(
        "gemma3n_audio gemma4_audio", "transformer-xl",
        "(q.k + q.(W R(m - n))), R the sinusoids of the distance, within chunks of frames; scores are capped by tanh"),
    {.types = "gemma4_unified_audio", .encoding = kNone, .token_mixer = "a projection of each frame"},
    {.types = "inkling_audio", .encoding = kNone, .token_mixer = "embeddings of audio tokens"},
    named("phi4_multimodal_audio", "t5",
          "score + table[clip(n - m), h]: a trained row for each distance up to bias_max_distance"),
    {.types = "vits",
     .encoding = kShawValues,
     .formula =
         "score + q.K[n - m] and values + V[n - m] for |n - m| <= window_size: trained vectors, shared by heads"},
    {.types = "clvp_encoder", .when = "!use_rotary_embedding", .encoding = kNone},
    {.types = "clvp_encoder",
     .when = "use_rotary_embedding",
     .rope = {.adjust = halve_projection},
     .note = "values are rotated as well"},
    {.types = "glmasr_encoder", .rope = kPartial},
    {.types = "moonshine",
     .part = kEncoderDecoder,
     .layers_key = "encoder_num_hidden_layers decoder_num_hidden_layers",
     .rope = {.layout = PairLayout::kInterleaved, .reads_partial = true}},
    {.types = "moonshine_streaming",
     .mask = Mask::kCausal,
     .rope = {.layout = PairLayout::kInterleaved, .reads_partial = true}},
    {.types = "moonshine_streaming_encoder",
     .encoding = kNone,
     .other_attention = "windows have one size before a query and another after it (sliding_windows)",
     .note = "windows alone tell the encoder where it is"},
    {.types = "mimi", .mask = Mask::kCausal, .layers = kSlidingIfGiven},
    {.types = "moshi_depth",
     .encoding = kNone,
     .mask = Mask::kCausal,
     .note = "one layer's weights for each codebook tell the position"},
    {.types = "voxtral_realtime_encoder", .mask = Mask::kCausal, .layers = kSlidingIfGiven},
    named("qwen2_5_omni_dit", "rope", "interleaved pairs of the first head alone rotated by position, base 10000"),
    {.types = "=Qwen3OmniMoeCode2WavConfig", .mask = Mask::kCausal, .layers = kSlidingIfGiven},
    {.types = "cohere_asr", .encoding = kLearned, .mask = Mask::kCausal},
    named("audio-spectrogram-transformer", "learned",
          "x + table[patch of the spectrogram]: trained, two rows more for the class and distillation tokens"),
});
constexpr auto kAudioRows = table_of<count_of_rows(kAudioEntries)>(kAudioEntries, Mask::kBidirectional);

}  // namespace

std::span<const Family> audio_families() noexcept { return kAudioRows; }

}  // namespace posenc::models
