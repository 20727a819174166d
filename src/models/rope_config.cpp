#include "models/rope_config.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "formats/excerpt.h"
#include "posenc/error.h"

namespace posenc::models {
namespace {

// What a reader of one rope_type works with.
struct Reading {
  const Config& entries;
  const RopeFacts& facts;
  const Rope& rope;
  Remarks& remarks;
  std::optional<std::int64_t> original;  // length the model was trained with before it was stretched
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
  say(r.remarks.assumed,
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
    say(r.remarks.assumed,
        fmt::format("trained length = {} (max_position_embeddings / factor; not given)", *r.result.trained_length));
  }
  return LinearScaling{.factor = factor};
}

RopeScaling ntk(Reading& r, std::string_view type) { return NtkScaling{.factor = needed(r, "factor", type)}; }

RopeScaling dynamic(Reading& r, std::string_view type) {
  if (const std::optional<double> alpha = positive(r.entries, "alpha")) return AlphaScaling{.alpha = *alpha};
  const double factor = needed(r, "factor", type);
  const std::int64_t original = original_length(r, type);
  r.result.trained_length = original;
  return DynamicScaling{.factor = factor, .original_length = original};
}

RopeScaling yarn(Reading& r, std::string_view type) {
  YarnScaling scaling{.factor = needed(r, "factor", type)};
  scaling.original_length = original_length(r, type);
  scaling.beta_fast = positive(r.entries, "beta_fast").value_or(scaling.beta_fast);
  scaling.beta_slow = positive(r.entries, "beta_slow").value_or(scaling.beta_slow);
  scaling.truncate = flag(r.entries, "truncate").value_or(true);
  scaling.attention_factor = positive(r.entries, "attention_factor");
  r.result.attn_factor = positive(r.entries, "attn_factor");
  scaling.mscale = finite(r.entries, "mscale");
  scaling.mscale_all_dim = finite(r.entries, "mscale_all_dim");
  if (r.facts.family.unit_magnitude && !scaling.attention_factor) scaling.attention_factor = 1.0;
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
  return ProportionalScaling{.proportion = share(r.entries, "partial_rotary_factor").value_or(1.0),
                             .factor = positive(r.entries, "factor").value_or(1.0)};
}

// The rope_types that configs have, and the keys that each reads beside those of all.
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
    {"longrope", longrope, " factor original_max_position_embeddings short_factor long_factor attention_factor "},
    {"su", longrope, " factor original_max_position_embeddings short_factor long_factor attention_factor "},
    {"llama3", llama3, " factor low_freq_factor high_freq_factor original_max_position_embeddings "},
    {"proportional", proportional, " factor "},
};
constexpr std::string_view kKeysOfAll =
    " rope_type type rope_theta partial_rotary_factor mrope_section mrope_interleaved llama_4_scaling_beta ";
// Written by Hunyuan's converter and by old ones of Qwen beside what counts; they change nothing.
constexpr std::string_view kHarmless = " finetuned beta_fast beta_slow mscale mscale_all_dim factor ";

bool has_key(std::string_view keys, std::string_view key) {
  return keys.find(fmt::format(" {} ", key)) != std::string_view::npos;
}

// mrope says that positions have axes, not that frequencies are scaled.
std::string_view plain(std::string_view type) { return type == "mrope" ? "default" : type; }

const RopeType& type_of(const RopeDictionary& dictionary, Remarks& remarks) {
  if (!dictionary.entries) return kRopeTypes[0];
  const Config& entries = *dictionary.entries;
  const std::optional<std::string> name = text(entries, "rope_type"), old_name = text(entries, "type");
  if (name && old_name && plain(*name) != plain(*old_name)) {
    raise(fmt::format("{}rope_type is {} but type is {}: which is meant?", entries.place, quoted(*name),
                      quoted(*old_name)));
  }
  if (name && old_name) {
    say(remarks.warnings,
        fmt::format("{}type is the older name of rope_type; both are given, and agree", entries.place));
  }
  const std::string wanted = name ? *name : old_name.value_or("default");
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
      say(remarks.warnings,
          fmt::format(
              "{}attn_factor is ignored: transformers reads attention_factor{}; vLLM multiplies by attn_factor",
              entries.place, find(entries, "attention_factor") != nullptr ? ", which is given too" : ""));
      continue;
    }
    say(remarks.warnings,
        fmt::format("{}{} is ignored: rope_type {} does not read it", entries.place, excerpt(key), type.name));
  }
}

double base_of(const RopeDictionary& dictionary, const RopeFacts& facts, Remarks& remarks) {
  const std::string_view old_key = facts.family.base_key;
  std::optional<double> base, old_base;
  if (dictionary.entries) base = positive(*dictionary.entries, "rope_theta");
  if (facts.family.rule != LayerRule::kBaseList) old_base = positive(facts.config, old_key);
  if (!old_base && old_key != "rope_theta") old_base = positive(facts.config, "rope_theta");
  const bool is_new_form =
      dictionary.entries && dictionary.entries->place.find("rope_parameters") != std::string::npos;
  if (base) {
    if (old_base && !dictionary.is_nested && *old_base != *base) {
      say(remarks.warnings,
          fmt::format("{} is {} at the old place but rope_theta is {} in rope_parameters, which counts", old_key,
                      *old_base, *base));
    }
    return *base;
  }
  if (facts.base > 0) return facts.base;  // of this layer or type alone
  if (old_base) {
    if (is_new_form) {
      say(remarks.warnings,
          fmt::format("{} stands at the old place, and rope_parameters has none: a reader of the new place alone "
                      "takes its default",
                      old_key));
    }
    return *old_base;
  }
  say(remarks.assumed, fmt::format("rope_theta = {} (the family's default; not given)", facts.family.base));
  return facts.family.base;
}

// How many features of a head turn.
std::int64_t dims_of(const RopeDictionary& dictionary, const RopeFacts& facts, bool is_proportional,
                     Remarks& remarks) {
  const Family& family = facts.family;
  if (!family.dims_key.empty()) {
    if (const auto dims = integer(facts.config, family.dims_key)) {
      if (*dims % 2 != 0 || *dims > 65536) refuse(facts.config, family.dims_key, "even and at most 65536");
      return *dims;
    }
    if (family.dims > 0) {
      say(remarks.assumed, fmt::format("{} = {} (the family's default; not given)", family.dims_key, family.dims));
      return family.dims;
    }
  }
  if (is_proportional) return facts.head;
  std::optional<double> partial;
  if (dictionary.entries) partial = share(*dictionary.entries, "partial_rotary_factor");
  if (!partial) partial = share(facts.config, "partial_rotary_factor");
  if (!partial && !family.partial_key.empty()) partial = share(facts.config, family.partial_key);
  if (!partial && family.partial != 1.0) {
    say(remarks.assumed, fmt::format("partial_rotary_factor = {} (the family's default; not given)", family.partial));
  }
  const double part = partial.value_or(family.partial);
  const auto dims = static_cast<std::int64_t>(static_cast<double>(facts.head) * part);
  if (dims < 2 || dims % 2 != 0) {
    raise(fmt::format("{} features of a head times {} are {} that turn, which must be even and at least 2",
                      facts.head, part, dims));
  }
  return dims;
}

void read_sections(const RopeDictionary& dictionary, const Family& family, Rope& rope) {
  rope.section_order = SectionOrder::kChunked;
  if (!dictionary.entries) return;
  const std::string_view key = first_of(*dictionary.entries, {"mrope_section", "xdrope_section"});
  if (key.empty()) return;
  const std::vector<double> list = numbers(*dictionary.entries, key).value_or(std::vector<double>{});
  double sum = 0;
  for (const double value : list) {
    if (value < 0 || value != std::floor(value)) refuse(*dictionary.entries, key, "a list of whole numbers");
    sum += value;
  }
  const std::int64_t pairs = rope.dims / 2;
  if (sum != static_cast<double>(pairs)) {
    refuse(*dictionary.entries, key, fmt::format("a list that sums to {}, one for each pair,", pairs));
  }
  for (const double value : list) rope.sections.push_back(static_cast<std::int64_t>(value));
  rope.section_order = family.section_order;
  if (flag(*dictionary.entries, "mrope_interleaved").value_or(false)) rope.section_order = SectionOrder::kInterleaved;
  // our axes are time, height, width
  if (family.sections_end_with_time)
    std::rotate(rope.sections.rbegin(), rope.sections.rbegin() + 1, rope.sections.rend());
}

std::optional<std::int64_t> original_of(const RopeDictionary& dictionary, const RopeFacts& facts, Remarks& remarks) {
  constexpr std::string_view kKey = "original_max_position_embeddings";
  const std::optional<std::int64_t> inner = dictionary.entries ? integer(*dictionary.entries, kKey) : std::nullopt;
  if (facts.original && inner && *facts.original != *inner) {
    say(remarks.warnings,
        fmt::format("{} is {} at the top and {} in {}; the top counts", kKey, *facts.original, *inner,
                    dictionary.entries->place.substr(0, dictionary.entries->place.size() - 2)));
  }
  return facts.original ? facts.original : inner;
}

}  // namespace

void say(std::vector<std::string>& list, std::string text) {
  if (std::find(list.begin(), list.end(), text) == list.end()) list.push_back(std::move(text));
}

RopeReading read_rope(const RopeDictionary& dictionary, const RopeFacts& facts, Remarks& remarks) {
  const RopeType& type = type_of(dictionary, remarks);
  RopeReading result;
  Rope& rope = result.rope;
  rope.base = base_of(dictionary, facts, remarks);
  if (!(rope.base > 1 && rope.base <= 1e36)) {
    raise(fmt::format("rope_theta must be above 1 and at most 1e36 but is {}", rope.base));
  }
  rope.dims = dims_of(dictionary, facts, type.read == proportional, remarks);
  rope.layout = facts.family.layout;
  rope.sign = facts.family.sign;
  rope.first_dim = facts.family.at_end ? -rope.dims : 0;
  read_sections(dictionary, facts.family, rope);
  result.trained_length = result.usable_length = facts.length;
  if (!dictionary.entries) return result;

  Reading reading{*dictionary.entries, facts, rope, remarks, original_of(dictionary, facts, remarks), result};
  rope.scaling = type.read(reading, type.name);
  warn_of_keys(*dictionary.entries, type, remarks);
  if (dictionary.is_nested && find(*dictionary.entries, "truncate") != nullptr) {
    say(remarks.warnings, fmt::format("{}truncate: transformers looks for it one level up and misses it here",
                                      dictionary.entries->place));
  }
  if (find(*dictionary.entries, "partial_rotary_factor") != nullptr) {
    const auto inner = share(*dictionary.entries, "partial_rotary_factor");
    const auto outer = share(facts.config, "partial_rotary_factor");
    if (outer && inner && *outer != *inner && !dictionary.is_nested) {
      say(remarks.warnings,
          fmt::format("partial_rotary_factor is {} at the top and {} in {}; the inner counts", *outer, *inner,
                      dictionary.entries->place.substr(0, dictionary.entries->place.size() - 2)));
    }
  }
  return result;
}

}  // namespace posenc::models
