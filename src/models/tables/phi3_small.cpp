// Phi-3-small, as Microsoft's code beside its weights has it: positional_embedding.py (halves; positions are multiplied by
// rope_position_scale, unless rope_scaling is given), modeling_phi3_small.py (scale, layers). mlx-lm 2090daae,
// models/phi3small.py multiplies as well; vLLM 00db0119, model_executor/models/phi3_small.py divides.

#include "models/tables/phi3_small.h"

#include <fmt/format.h>

#include "models/model_groups.h"
#include "models/sizes.h"

namespace posenc::models {

void multiply_positions(const RotationFacts& facts) {
  auto* const longrope = std::get_if<LongropeScaling>(&*facts.rope.scaling);
  if (longrope != nullptr && !longrope->attention_factor) {
    longrope->attention_factor = 1.0;
    note(
        facts.remarks.warnings,
        "beyond the trained length the magnitude is sqrt(1 + ln(ratio of lengths) / ln(trained length)), within it 1");
  }
  const double scale = positive(facts.config, "rope_position_scale").value_or(1.0);
  if (scale == 1 || !std::holds_alternative<NoScaling>(*facts.rope.scaling)) return;
  facts.rope.scaling = LinearScaling{.factor = 1 / scale};
  note(facts.remarks.warnings,
       fmt::format("rope_position_scale is {}: positions are multiplied by it; vLLM divides by it", scale));
}

void scale_by_head(const GroupFacts& facts) {
  if (holds(facts.config, "!mup_use_scaling=false")) {
    const auto size = static_cast<double>(head_size(facts.config, facts.family));
    facts.group.scale = positive(facts.config, "mup_attn_multiplier").value_or(1.0) / size;
  }
  if (facts.layer.type != kFull) {
    facts.group.other_attention =
        "queries attend to the blocks of keys next to them, and of those before to every few, by head";
  }
}

}  // namespace posenc::models
