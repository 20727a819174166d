#include "models/rope_config.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "formats/excerpt.h"
#include "models/sizes.h"
#include "posenc/error.h"

namespace posenc::models {
namespace {

// The input of a reader of one rope_type.
struct Reading {
  const Config& entries;
  const RopeFacts& facts;
  const Rope& rope;
  Remarks& remarks;
  std::optional<std::int64_t> original;  // length the model was trained with before its context was extended
  bool is_nested;
  RopeReading& result;
};

double needed(const Reading& r, std::string_view key, std::string_view type) {
  if (const std::optional<double> value = positive(r.entries, key)) return *value;
  raise(fmt::format("{}{} is missing, which rope_type {} needs", r.entries.place, key, type));
}

std::int64_t original_length(const Reading& r, std::string_view type) {
  if (r.original) return *r.original;
  if (!r.facts.length) {
    raise(fmt::format("{}original_max_position_embeddings is missing, which rope_type {} needs", r.entries.place,
                      type));
  }
  note(r.remarks.assumed,
       fmt::format("original_max_position_embeddings = {} (max_position_embeddings; not given)", *r.facts.length));
  return *r.facts.length;
}

RopeScaling unscaled(Reading&, std::string_view) { return NoScaling{}; }

RopeScaling linear(Reading& r, std::string_view type) {
  const double factor = needed(r, "factor", type);
  if (r.original) {
    r.result.trained_length = r.original;
  } else if (r.facts.length && factor > 1) {
    r.result.trained_length = static_cast<std::int64_t>(static_cast<double>(*r.facts.length) / factor);
    note(r.remarks.assumed,
         fmt::format("trained length = {} (max_position_embeddings / factor; not given)", *r.result.trained_length));
  }
  return LinearScaling{.factor = factor};
}

RopeScaling ntk(Reading& r, std::string_view type) { return NtkScaling{.factor = needed(r, "factor", type)}; }

RopeScaling dynamic(Reading& r, std::string_view type) {
  if (const std::optional<double> alpha = positive(r.entries, "alpha")) return AlphaScaling{.alpha = *alpha};
  const double factor = needed(r, "factor", type);
  if (!r.facts.length) {
    raise(fmt::format("{}max_position_embeddings is missing, which rope_type {} needs", r.entries.place, type));
  }
  if (r.original && *r.original != *r.facts.length) {
    note(r.remarks.warnings, fmt::format("{}original_max_position_embeddings is ignored: rope_type dynamic takes "
                                         "max_position_embeddings for the trained length",
                                         r.entries.place));
  }
  return DynamicScaling{.factor = factor, .original_length = *r.facts.length};
}

RopeScaling yarn(Reading& r, std::string_view type) {
  YarnScaling scaling;
  scaling.original_length = original_length(r, type);
  const auto factor = positive(r.entries, "factor");
  if (!factor && !(is_given(r.entries, "original_max_position_embeddings") && r.facts.length))
    needed(r, "factor", type);
  scaling.factor =
      factor ? *factor : static_cast<double>(*r.facts.length) / static_cast<double>(scaling.original_length);
  scaling.beta_fast = positive(r.entries, "beta_fast").value_or(scaling.beta_fast);
  scaling.beta_slow = positive(r.entries, "beta_slow").value_or(scaling.beta_slow);
  // transformers looks for truncate beside the layer types, not within them
  scaling.truncate = r.is_nested || flag(r.entries, "truncate").value_or(true);
  scaling.attention_factor = positive(r.entries, "attention_factor");
  r.result.attn_factor = positive(r.entries, "attn_factor");
  if (is_given(r.entries, "original_max_position_embeddings") && r.facts.length) {
    r.result.yarn_ratio = static_cast<double>(*r.facts.length) / static_cast<double>(scaling.original_length);
  }
  scaling.mscale = finite(r.entries, "mscale");
  scaling.mscale_all_dim = finite(r.entries, "mscale_all_dim");
  r.result.trained_length = scaling.original_length;
  const auto stretched = static_cast<std::int64_t>(static_cast<double>(scaling.original_length) * scaling.factor);
  r.result.usable_length = std::max(r.facts.length.value_or(0), stretched);
  return scaling;
}

std::vector<double> factor_list(const Reading& r, std::string_view key) {
  const std::optional<std::vector<double>> list = numbers(r.entries, key);
  if (!list) raise(fmt::format("{}{} is missing, which rope_type longrope needs", r.entries.place, key));
  if (std::ssize(*list) != r.rope.dims / 2) {
    raise(fmt::format("{}{} must have {} numbers, one for each pair, but has {}", r.entries.place, key,
                      r.rope.dims / 2, list->size()));
  }
  for (const double value : *list) {
    if (!(value > 0)) refuse(r.entries, key, "a list of numbers above 0");
  }
  return *list;
}

RopeScaling longrope(Reading& r, std::string_view type) {
  LongropeScaling scaling;
  scaling.short_factors = factor_list(r, "short_factor");
  scaling.long_factors = factor_list(r, "long_factor");
  scaling.original_length = original_length(r, type);
  scaling.attention_factor = positive(r.entries, "attention_factor");
  if (!scaling.attention_factor) {
    // Phi-3.5-MoE; the two are equal in its files
    scaling.attention_factor = positive(r.entries, "short_mscale");
    if (scaling.attention_factor && positive(r.entries, "long_mscale") != scaling.attention_factor) {
      note(r.remarks.warnings,
           "long_mscale differs from short_mscale: beyond the trained length it is the magnitude");
    }
  }
  const std::optional<double> factor = positive(r.entries, "factor");
  if (!factor && !r.facts.length) raise("max_position_embeddings is missing, which rope_type longrope needs");
  scaling.factor =
      factor ? *factor : static_cast<double>(*r.facts.length) / static_cast<double>(scaling.original_length);
  r.result.trained_length = scaling.original_length;
  return scaling;
}

RopeScaling llama3(Reading& r, std::string_view type) {
  Llama3Scaling scaling{.factor = needed(r, "factor", type)};
  scaling.low_freq_factor = needed(r, "low_freq_factor", type);
  scaling.high_freq_factor = needed(r, "high_freq_factor", type);
  scaling.original_length = original_length(r, type);
  r.result.trained_length = scaling.original_length;
  return scaling;
}

RopeScaling proportional(Reading& r, std::string_view) {
  const bool has_own = find(r.entries, "partial_rotary_factor") != nullptr;
  return ProportionalScaling{
      .proportion = share(has_own ? r.entries : r.facts.config, "partial_rotary_factor").value_or(1.0),
      .factor = positive(r.entries, "factor").value_or(1.0)};
}

// The rope_types that configs have, and the keys that each reads in addition to the common ones.
struct RopeType {
  std::string_view name;
  RopeScaling (*read)(Reading&, std::string_view);
  std::string_view keys;
};
constexpr std::string_view kYarnKeys =
    " factor original_max_position_embeddings beta_fast beta_slow truncate attention_factor mscale mscale_all_dim ";
constexpr RopeType kRopeTypes[] = {
    {"default", unscaled, " "},
    {"mrope", unscaled, " "},
    {"linear", linear, " factor original_max_position_embeddings "},
    {"ntk", ntk, " factor "},
    {"dynamic", dynamic, " factor alpha original_max_position_embeddings "},
    {"xdrope", dynamic, " factor alpha original_max_position_embeddings xdrope_section "},
    {"yarn", yarn, kYarnKeys},
    {"deepseek_yarn", yarn, kYarnKeys},
    {"longrope", longrope,
     " factor original_max_position_embeddings short_factor long_factor attention_factor short_mscale long_mscale "},
    {"su", longrope,
     " factor original_max_position_embeddings short_factor long_factor attention_factor short_mscale long_mscale "},
    {"llama3", llama3, " factor low_freq_factor high_freq_factor original_max_position_embeddings "},
    {"proportional", proportional, " factor "},
};
constexpr std::string_view kKeysOfAll =
    " rope_type type rope_theta partial_rotary_factor mrope_section mrope_interleaved llama_4_scaling_beta "
    "max_position_embeddings ";
// Written by Hunyuan's converter and old converters for Qwen in addition to the keys that apply; they change nothing.
constexpr std::string_view kHarmless = " finetuned beta_fast beta_slow mscale mscale_all_dim factor ";

bool has_key(std::string_view keys, std::string_view key) {
  return keys.find(fmt::format(" {} ", key)) != std::string_view::npos;
}

// mrope means that positions have axes, not that frequencies are scaled.
std::string_view plain(std::string_view type) { return type == "mrope" ? "default" : type; }

const RopeType& type_of(const RopeDictionary& dictionary, const Family& family, Remarks& remarks) {
  if (!dictionary.entries) return kRopeTypes[0];
  const Config& entries = *dictionary.entries;
  const std::optional<std::string> name = text(entries, "rope_type"), old_name = text(entries, "type");
  if (name && old_name && plain(*name) != plain(*old_name)) {
    note(remarks.warnings, fmt::format("{}type is {} but rope_type is {}, which is the one that transformers reads",
                                       entries.place, quoted(*old_name), quoted(*name)));
  } else if (name && old_name) {
    note(remarks.warnings,
         fmt::format("{}type is the older name of rope_type; both are given, and agree", entries.place));
  }
  std::string wanted = name ? *name : old_name.value_or("default");
  if (family.rope.style == RopeStyle::kYarnIsLongrope && wanted == "yarn") wanted = "longrope";
  std::vector<std::string_view> names;
  for (const RopeType& type : kRopeTypes) {
    if (type.name == wanted) return type;
    names.push_back(type.name);
  }
  const std::string_view near = nearest_name(excerpt(wanted), names);
  raise(fmt::format(
      "{}{} {} is unknown ({})", entries.place, name ? "rope_type" : "type", quoted(wanted),
      near.empty() ? fmt::format("known are {}", fmt::join(names, ", ")) : fmt::format("did you mean '{}'?", near)));
}

void warn_of_keys(const Config& entries, const RopeType& type, Remarks& remarks) {
  for (const auto& [key, value] : *entries.object->as<Json::Object>()) {
    if (has_key(kKeysOfAll, key) || has_key(type.keys, key)) continue;
    if (type.read == dynamic && has_key(kHarmless, key)) continue;
    if (key == "attn_factor") {
      note(remarks.warnings,
           fmt::format(
               "{}attn_factor is ignored: transformers reads attention_factor{}; vLLM multiplies by attn_factor",
               entries.place, find(entries, "attention_factor") != nullptr ? ", which is given too" : ""));
      continue;
    }
    note(remarks.warnings,
         fmt::format("{}{} is ignored: rope_type {} does not read it", entries.place, excerpt(key), type.name));
  }
}

double base_of(const RopeDictionary& dictionary, const RopeFacts& facts, Remarks& remarks) {
  const Rotary& rotary = facts.family.rope;
  if (facts.is_base_fixed) return facts.base;
  const std::string_view old_key =
      first_of(facts.config, {rotary.base_key, rotary.style == RopeStyle::kOwnKeys ? "" : "rope_theta"});
  const bool is_old_given = !old_key.empty() && is_given(facts.config, old_key) && facts.base == 0;
  std::optional<double> base;
  if (dictionary.entries) base = positive(*dictionary.entries, "rope_theta");
  const bool is_new_form = dictionary.entries && is_given(facts.config, "rope_parameters") &&
                           dictionary.entries->place.find("rope_parameters") != std::string::npos;
  if (base) {
    if (is_old_given && !dictionary.is_nested && positive(facts.config, old_key) != base) {
      note(remarks.warnings,
           fmt::format("{} is {} at the old place but rope_theta is {} in rope_parameters, which counts", old_key,
                       *positive(facts.config, old_key), *base));
    }
    return *base;
  }
  if (facts.base > 0) return facts.base;
  const std::optional<double> old_base = old_key.empty() ? std::nullopt : positive(facts.config, old_key);
  if (is_old_given && is_new_form) {
    note(
        remarks.warnings,
        fmt::format("{} is at the old place, and rope_parameters has none: a reader of the new place alone takes its "
                    "default",
                    old_key));
  }
  if (old_base) return *old_base;
  note(remarks.assumed, "rope_theta = 10000 (the family's default; not given)");
  return 10000.0;
}

// The number of rotary dimensions per head; an odd one has a frequency more than pairs.
std::int64_t dims_of(const RopeDictionary& dictionary, const RopeFacts& facts, const RopeType& type,
                     Remarks& remarks) {
  const Rotary& rotary = facts.family.rope;
  if (!rotary.dims_key.empty() && (!rotary.reads_partial || is_given(facts.config, rotary.dims_key))) {
    if (const auto dims = integer(facts.config, rotary.dims_key)) {
      if (*dims % 2 != 0 || *dims > 65536) refuse(facts.config, rotary.dims_key, "even and at most 65536");
      return *dims;
    }
  }
  if (type.read == proportional) return facts.head;
  // transformers 5.17, standardize_rope_params: one at the top is the default of those in dictionaries. In 5.16.0.dev0
  // (d56c55bf) and before, it replaced them where frequencies are scaled.
  std::optional<double> partial;
  if (dictionary.entries) partial = share(*dictionary.entries, "partial_rotary_factor");
  if (!partial && !rotary.partial_key.empty()) partial = share(facts.config, rotary.partial_key);
  const bool is_top_read = !dictionary.is_top_ignored &&
                           !(rotary.style == RopeStyle::kOwnKeys && is_given(facts.config, "partial_rotary_factor"));
  if (is_top_read && !partial) partial = share(facts.config, "partial_rotary_factor");
  if (partial && *partial != 1 && type.read == unscaled && !rotary.reads_partial && rotary.partial_key.empty()) {
    note(remarks.warnings, "partial_rotary_factor is ignored: this family rotates whole heads");
    partial.reset();
  }
  const double part = partial.value_or(1.0);
  const auto dims = static_cast<std::int64_t>(static_cast<double>(facts.head) * part);
  if (dims < 1) {
    raise(fmt::format(
        "head dimension {} times {} gives {} rotary dimensions, which must be an even number of at least 2",
        facts.head, part, dims));
  }
  return dims;
}

// An odd number d of dimensions has (d + 1)/2 frequencies b^(-2i/d), and as many pairs are rotated: those of d + 1
// dimensions with the base b^((d + 1)/d). transformers 5.16 (d56c55bf), modeling_glm4_moe.py: the number of rotary
// dimensions is that of the cosines.
void make_even(Rope& rope) {
  if (rope.dims > 1) {
    rope.base = std::pow(rope.base, static_cast<double>(rope.dims + 1) / static_cast<double>(rope.dims));
  }
  ++rope.dims;
}

// Interleaved sections for the given number of pairs: later axes have every n-th pair up to n times their section,
// the first axis all others.
std::vector<std::int64_t> dealt(std::vector<std::int64_t> sections, std::int64_t pairs) {
  const std::int64_t axes = std::ssize(sections);
  std::int64_t others = 0;
  for (std::int64_t axis = 1; axis < axes; ++axis) {
    auto& section = sections[axis];
    section = std::min(section, (pairs - axis + axes - 1) / axes);
    others += section;
  }
  if (axes > 0) sections[0] = pairs - others;
  return sections;
}

// The sections in the family's code, for the given number of pairs; none if they do not fit.
std::vector<std::int64_t> default_sections(const Rotary& rotary, std::int64_t pairs) {
  std::vector<std::int64_t> list;
  if (rotary.sections == kGiven) return list;
  std::int64_t sum = 0;
  for (const char letter : rotary.sections) {
    if (list.empty() || letter == ',') list.push_back(0);
    if (letter != ',') list.back() = list.back() * 10 + (letter - '0');
  }
  for (const std::int64_t one : list) sum += one;
  if (sum == pairs) return list;
  if (rotary.section_order != SectionOrder::kInterleaved) return {};
  return dealt(std::move(list), pairs);
}

void read_sections(const RopeDictionary& dictionary, const Rotary& rotary, Rope& rope, Remarks& remarks) {
  rope.section_order = SectionOrder::kChunked;
  const std::int64_t pairs = rope.dims / 2;
  const std::string_view key =
      dictionary.entries ? first_of(*dictionary.entries, {"mrope_section", "xdrope_section"}) : "";
  if (!key.empty() && rotary.sections.empty()) {
    note(remarks.warnings,
         fmt::format("{}{} is ignored: positions of this family have one axis", dictionary.entries->place, key));
    return;
  }
  if (key.empty()) {
    rope.sections = default_sections(rotary, pairs);
    if (rope.sections.empty()) return;
    note(remarks.assumed,
         fmt::format("mrope_section = [{}] (the family's default; not given)", fmt::join(rope.sections, ", ")));
  } else {
    const std::vector<double> list = numbers(*dictionary.entries, key).value_or(std::vector<double>{});
    double sum = 0;
    for (const double value : list) {
      if (value < 0 || value != std::floor(value)) refuse(*dictionary.entries, key, "a list of whole numbers");
      sum += value;
    }
    if (sum != static_cast<double>(pairs) && rotary.section_order != SectionOrder::kInterleaved) {
      refuse(*dictionary.entries, key, fmt::format("a list that sums to {}, one for each pair,", pairs));
    }
    for (const double value : list) rope.sections.push_back(static_cast<std::int64_t>(value));
    if (sum != static_cast<double>(pairs)) {
      rope.sections = dealt(rope.sections, pairs);
      note(remarks.warnings, fmt::format("{}{} does not sum to {}, the pairs of a head: they are dealt as [{}]",
                                         dictionary.entries->place, key, pairs, fmt::join(rope.sections, ", ")));
    }
  }
  rope.section_order = rotary.section_order;
  if (dictionary.entries && flag(*dictionary.entries, "mrope_interleaved").value_or(false)) {
    rope.section_order = SectionOrder::kInterleaved;
  }
}

// A class that declares the key at the top gives it priority there (Phi-3); transformers misses it in other files.
std::optional<std::int64_t> original_of(const RopeDictionary& dictionary, const RopeFacts& facts, Remarks& remarks) {
  constexpr std::string_view kKey = "original_max_position_embeddings";
  const std::optional<std::int64_t> inner = dictionary.entries ? integer(*dictionary.entries, kKey) : std::nullopt;
  const std::optional<std::int64_t> top = integer(facts.config, kKey);
  if (top && inner && *top != *inner) {
    note(remarks.warnings, fmt::format("{} is {} at the top and {} in {}; the top counts", kKey, *top, *inner,
                                       dictionary.entries->place.substr(0, dictionary.entries->place.size() - 2)));
  }
  return top ? top : inner;
}

}  // namespace

RopeReading read_rope(const RopeDictionary& dictionary, const RopeFacts& facts, Remarks& remarks) {
  const RopeType& type = type_of(dictionary, facts.family, remarks);
  RopeReading result;
  Rope& rope = result.rope;
  rope.base = base_of(dictionary, facts, remarks);
  if (!(rope.base > 1 && rope.base <= 1e36)) {
    raise(fmt::format("rope_theta must be above 1 and at most 1e36 but is {}", rope.base));
  }
  rope.dims = dims_of(dictionary, facts, type, remarks);
  if (rope.dims % 2 != 0) {
    if (rope.dims >= facts.head) {
      result.problem = fmt::format("{} rotary dimensions of a head are odd: the last has no partner", rope.dims);
      return result;
    }
    if (rope.dims > 1) {  // one has the frequency 1 in either case
      note(remarks.assumed,
           fmt::format("{} rotary dimensions are odd: {} of each head rotate, by the frequencies of {}", rope.dims,
                       rope.dims + 1, rope.dims));
    }
    make_even(rope);
  }
  const Rotary& rotary = facts.family.rope;
  rope.layout = rotary.layout;
  if (rotary.reads_interleave && flag(facts.config, "rope_interleave") == false) rope.layout = PairLayout::kHalves;
  rope.first_dim = rotary.dims_key == kLatentDims ? -rope.dims : 0;
  read_sections(dictionary, rotary, rope, remarks);
  result.trained_length = result.usable_length = facts.length;
  if (!dictionary.entries) return result;

  Reading reading{*dictionary.entries,  facts, rope, remarks, original_of(dictionary, facts, remarks),
                  dictionary.is_nested, result};
  rope.scaling = type.read(reading, type.name);
  warn_of_keys(*dictionary.entries, type, remarks);
  if (dictionary.is_nested && find(*dictionary.entries, "truncate") != nullptr) {
    note(remarks.warnings, fmt::format("{}truncate: transformers looks for it one level up and misses it here",
                                       dictionary.entries->place));
  }
  // of the dictionaries of layer types, older versions change all if one of them is scaled
  const bool has_both = find(*dictionary.entries, "partial_rotary_factor") != nullptr &&
                        is_given(facts.config, "partial_rotary_factor") &&
                        !(dictionary.is_nested && dictionary.is_top_ignored);
  if (has_both) {
    const auto inner = share(*dictionary.entries, "partial_rotary_factor");
    const auto outer = share(facts.config, "partial_rotary_factor");
    if (*outer != *inner) {
      note(remarks.warnings,
           fmt::format("partial_rotary_factor is {} at the top and {} in {}, which counts{}", *outer, *inner,
                       dictionary.entries->place.substr(0, dictionary.entries->place.size() - 2),
                       type.read == unscaled && !dictionary.is_nested
                           ? ""
                           : "; older versions of transformers 5 take the one at the top"));
    }
  }
  return result;
}

}  // namespace posenc::models
