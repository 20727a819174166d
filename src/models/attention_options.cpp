// The options of layers beside their scheme.

#include <fmt/format.h>

#include <cmath>

#include "formats/excerpt.h"
#include "models/part_groups.h"
#include "models/sizes.h"

namespace posenc::models {
namespace {

bool is_causal(const Config& config, const Family& family) {
  const Json* const both = find(config, "use_bidirectional_attention");
  const bool is_on = both != nullptr && ((both->as<bool>() != nullptr && *both->as<bool>()) ||
                                         (both->as<std::string>() != nullptr && *both->as<std::string>() == "all"));
  if (is_on) return false;
  if (family.part == "encoder") return family.mask == Mask::kCausal;  // is_decoder belongs to the decoder
  if (holds(config, "is_decoder")) return true;
  if (family.mask == Mask::kByKey && holds(config, "causal")) return true;
  // transformers 5.16, masking_utils.py: create_causal_mask
  if (flag(config, "is_causal") == false) return false;
  return family.mask == Mask::kCausal;
}

}  // namespace

void set_attention_options(LayerGroup& group, const Layer& layer, const Config& config, const Family& family) {
  group.token_mixer = is_attention(layer.type) ? family.token_mixer : std::string_view(layer.type);
  if (!group.token_mixer.empty()) return;
  group.is_causal = layer.type != "cross_attention" && is_causal(config, family);
  group.other_attention = family.other_attention;
  if (!is_known_type(layer.type)) {
    group.other_attention = fmt::format("its type, {}, is not known", excerpt(layer.type));
  }
  group.is_unscaled = family.scale.is_none;
  group.has_sinks = family.has_sinks;
  const HeadCounts counts = head_counts_of(config);
  group.heads = counts.heads;
  group.key_heads = counts.key_heads;
  if (is_sliding(layer.type) || layer.window) {
    const std::string_view key = first_of(config, {family.window.key, "sliding_window", "sliding_window_size"});
    if (layer.window) {
      group.window = layer.window;
    } else if (!key.empty()) {
      group.window = integer(config, key);
    }
    // transformers 5.16 rejects it too: masking_utils.py
    if (!group.window) group.other_attention = "it slides over a window that the file does not give";
    // transformers 5.16: modernbert's and gemma3's configurations halve it, masking_utils.py compares distances:
    // below the window where attention is causal, up to it where it is not (gemma3's own mask: below)
    const bool is_switched =
        family.mask == Mask::kCausal && group.is_causal == false && flag(config, "is_causal") != false;
    if (group.window && (family.window.is_width || is_switched)) *group.window /= 2;
    if (group.window && group.is_causal == false) *group.window += 1;
  }
  if (layer.type == "chunked_attention") {
    group.chunk = integer(config, "attention_chunk_size");
    if (!group.chunk) group.other_attention = "it attends in chunks of a length that the file does not give";
  }
  if (!family.scale.key.empty()) group.scale = positive(config, family.scale.key);
  if (!family.scale.root_key.empty()) {
    if (const auto value = positive(config, family.scale.root_key)) group.scale = 1.0 / std::sqrt(*value);
  }
  // MLA: an engine may keep keys as the latent vectors that they are made of, and its queries then have as many features as
  // these; the scale stays that of the head. transformers 5.16 (d56c55bf), qk_head_dim ** -0.5 in modeling_{deepseek_v2,
  // deepseek_v3, deepseek_v32, minicpm3, longcat_flash, glm4_moe_lite, glm_moe_dsa, mistral4, youtu, axk1, axk2}.py; vLLM
  // a014e35f: deepseek_v2.py (kimi_k2), openpangu.py, kimi_k3/amd/linear.py (kimi_linear).
  if (!group.scale) {
    const auto plain = integer(config, "qk_nope_head_dim", 0), rotated = integer(config, "qk_rope_head_dim", 0);
    if (plain && rotated && *plain + *rotated > 0)
      group.scale = 1.0 / std::sqrt(static_cast<double>(*plain) + static_cast<double>(*rotated));
  }
  if (family.scale.is_capped) group.softcap = positive(config, "attn_logit_softcapping").value_or(0.0);
}

void adjust(LayerGroup& group, const Layer& layer, const Config& config, const Family& family) {
  if (family.adjust != nullptr && group.token_mixer.empty()) family.adjust({group, layer, config, family});
}

}  // namespace posenc::models
