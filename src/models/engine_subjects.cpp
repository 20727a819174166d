// What engines do differently, and which models each subject concerns.

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

constexpr Subject kSubjects[] = {
#include "engine_subjects.inc"
};

}  // namespace

std::span<const Subject> subjects() noexcept { return kSubjects; }

}  // namespace posenc::models
