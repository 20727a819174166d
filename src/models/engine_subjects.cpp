// What engines do differently, and which models each subject concerns.

#include <array>
#include <bit>
#include <cstdint>

#include "models/engines.h"

namespace posenc::models {
namespace {

template <class S> const S* scaling_of(const RuleInput& c) {
  const auto* const rope = c.group.scheme ? std::get_if<Rope>(&*c.group.scheme) : nullptr;
  return rope == nullptr ? nullptr : std::get_if<S>(&*rope->scaling);
}

const Rope* rope_of(const RuleInput& c) { return c.group.scheme ? std::get_if<Rope>(&*c.group.scheme) : nullptr; }
const Alibi* alibi_of(const RuleInput& c) { return c.group.scheme ? std::get_if<Alibi>(&*c.group.scheme) : nullptr; }

template <class S> bool has_scaling(const RuleInput& c) { return scaling_of<S>(c) != nullptr; }
bool is_rope(const RuleInput& c) { return rope_of(c) != nullptr; }
// DeepSeek and related families have their own rule for both factors, on which engines agree
bool has_plain_yarn(const RuleInput& c) {
  const auto* const yarn = scaling_of<YarnScaling>(c);
  return yarn != nullptr && (!yarn->mscale_on_softmax || yarn->mscale_all_dim.value_or(0) == 0);
}
bool has_untruncated_yarn(const RuleInput& c) {
  const auto* const yarn = scaling_of<YarnScaling>(c);
  return yarn != nullptr && !yarn->truncate;
}
bool has_sections(const RuleInput& c) { return is_rope(c) && rope_of(c)->sections.size() >= 3; }
bool has_interleaved_sections(const RuleInput& c) {
  return has_sections(c) && rope_of(c)->section_order == SectionOrder::kInterleaved;
}
bool has_odd_heads(const RuleInput& c) {
  return alibi_of(c) != nullptr && !std::has_single_bit(static_cast<std::uint64_t>(alibi_of(c)->heads));
}
bool has_rounded_slopes(const RuleInput& c) { return alibi_of(c) != nullptr && alibi_of(c)->round_bf16; }
bool has_other_base(const RuleInput& c) { return is_rope(c) && c.model.other_base.has_value(); }
bool is_recurrent_gemma(const RuleInput& c) { return is_rope(c) && c.model.model_type == "recurrent_gemma"; }
bool has_other_dims(const RuleInput& c) {
  return is_rope(c) && (c.model.other_rotary_dim || c.model.hf_rotary_dim) && !is_recurrent_gemma(c);
}
bool has_lost_share(const RuleInput& c) { return is_recurrent_gemma(c) && c.model.hf_rotary_dim; }
bool is_read_otherwise(const RuleInput& c) {
  const auto& older = c.model.older_reading;
  return is_rope(c) && older && (older->base || older->drops_scaling);
}
bool is_new_family(const RuleInput& c) { return c.model.older_reading && !c.model.older_reading->is_known; }
bool has_temperature(const RuleInput& c) { return c.group.temperature.has_value(); }
bool is_bloom(const RuleInput& c) { return alibi_of(c) != nullptr && c.model.model_type == "bloom"; }

constexpr auto kSubjects = std::to_array<Subject>({
    {"longrope-switch", "LongRoPE: which list",
     "There is a list of divisors for short sequences and one for long ones, and engines choose between them at "
     "different moments.",
     has_scaling<LongropeScaling>},
    {"longrope-magnitude", "LongRoPE: magnitude",
     "Cosines and sines are multiplied by a number that follows from usable over trained length.",
     has_scaling<LongropeScaling>},
    {"dynamic-ntk", "Dynamic NTK: which length",
     "The base depends on the sequence length, but engines disagree about which length.",
     has_scaling<DynamicScaling>},
    {"yarn-magnitude", "YaRN: magnitude",
     "Cosines and sines are multiplied by a number that engines read from different keys.", has_plain_yarn},
    {"yarn-ramp", "YaRN: ends of the ramp",
     "This model does not round the ends of YaRN's ramp to whole pairs (truncate is false).", has_untruncated_yarn},
    {"mrope-advance", "M-RoPE: text after a video",
     "After a video of 16 frames of 4 x 4 tokens, text goes on at different positions.", has_sections},
    {"mrope-unclaimed", "M-RoPE: pairs that no section claims",
     "Interleaved sections leave some pairs unassigned, and engines assign them to different axes.",
     has_interleaved_sections},
    {"alibi-slopes", "ALiBi: slopes",
     "The number of heads is not a power of two; the paper gives a special rule for that case.", has_odd_heads},
    {"alibi-rounding", "ALiBi: rounded slopes", "This family rounds its slopes to bfloat16 before they are used.",
     has_rounded_slopes},
    {"alibi-position", "ALiBi: absolute or relative",
     "A bias by the key's position equals one by distance after the softmax, but not once it is rounded.", is_bloom},
    {"version-4", "Families of transformers 5", "This family came with transformers 5.", is_new_family, "hf4"},
    {"rope-parameters", "rope_parameters: who reads them",
     "The file has its base or its scaling in rope_parameters alone, as transformers 5 writes them; version 4 looks for "
     "rope_theta and rope_scaling.",
     is_read_otherwise, "hf4"},
    {"base-key", "Base: which key", "The config has the base in a key that engines do not all read.", has_other_base},
    {"rotary-dim", "Rotary dimensions: which key",
     "The config has the number of rotary dimensions in a key that engines do not all read.", has_other_dims},
    {"rotary-share", "Rotary dimensions: share of a head",
     "The weights were trained with part of each head rotated, which not every version rotates.", has_lost_share},
    {"temperature", "Query temperature",
     "Queries are multiplied by a factor that grows with the logarithm of their position.", has_temperature},
    {"angle-precision", "Angle precision",
     "The same angle is computed with different roundings, which grow with position.", is_rope},
});

}  // namespace

std::span<const Subject> subjects() noexcept { return kSubjects; }

}  // namespace posenc::models
