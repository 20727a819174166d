#pragma once

#include "models/families.h"

namespace posenc::models {

/// Positions are multiplied by rope_position_scale, unless rope_scaling is given; within the trained length LongRoPE has the
/// magnitude 1.
void multiply_positions(const RotationFacts& facts);
/// Scores are multiplied by mup_attn_multiplier / D, and layers that are not dense see some blocks of keys.
void scale_by_head(const GroupFacts& facts);

}  // namespace posenc::models
