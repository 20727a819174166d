// Hugging Face's config.json: which parts a model has, and the defaults that its classes add. Facts of families are
// in tables/, defaults of their classes in content/models.

#include <fmt/format.h>

#include <algorithm>
#include <deque>

#include "formats/excerpt.h"
#include "models/class_names.h"
#include "models/classes.h"
#include "models/indexers.h"
#include "models/older_reading.h"
#include "models/own_model.h"
#include "models/params_json.h"
#include "models/part_groups.h"
#include "models/unread_keys.h"
#include "posenc/error.h"
#include "posenc/model.h"

namespace posenc {
namespace {

using namespace models;

/// A part of the model: an object of the file, or of the class's defaults if the file lacks it.
struct Part {
  std::vector<std::string> path = {};  // keys of the config; none for the outermost
  std::string type = {};
  Config config = {};
  bool is_unknown = false;  // read by assumed_families()
};

constexpr std::string_view kTextKeys =
    "text_config llm_config language_config language_model_config decoder generator";
constexpr int kMostNesting = 4;

// Whether a config of an unknown family has what rope needs, and nothing that contradicts it.
bool looks_like_rope(const Config& config) {
  const std::string_view rope =
      first_of(config, {"rope_theta", "rope_parameters", "rope_scaling", "rotary_emb_base", "rotary_pct",
                        "rotary_dim", "partial_rotary_factor", "qk_rope_head_dim", "rope_local_base_freq"});
  const bool has_head = !first_of(config, {"head_dim", "qk_rope_head_dim"}).empty();
  const bool has_heads =
      !first_of(config, {"num_attention_heads", "n_head", "n_heads", "num_heads"}).empty() &&
      !first_of(config, {"hidden_size", "d_model", "n_embd", "n_embed", "embed_dim", "dim", "emb_dim"}).empty();
  const std::string_view kind = first_of(config, {"position_embedding_type", "pos_emb", "position_embedding"});
  const auto* const name = kind.empty() ? nullptr : find(config, kind)->as<std::string>();
  const bool is_other = name != nullptr && !name->starts_with("ro");  // rope, rotary
  return !rope.empty() && (has_head || has_heads) && !is_other && !holds(config, "alibi");
}

class Parts {
 public:
  Parts(const Json& root, Remarks& remarks) : remarks_(remarks) { visit(root, {}, "", 0); }

  std::vector<Part> found = {};
  std::vector<std::string> unknown = {};  // parts of unknown families
  std::optional<std::int64_t> first_position = {};

 private:
  // The class's defaults, parsed; nullptr if none are known.
  const Json* defaults_of(std::string_view type) {
    const ConfigClass* const row = class_of(type);
    if (row == nullptr) return nullptr;
    return &parsed_.emplace_back(parse_json(row->defaults));
  }

  static std::string type_in(const Json* object) {
    const auto* const name = object == nullptr ? nullptr : object->find<std::string>("model_type");
    return name == nullptr ? "" : *name;
  }

  static bool is_part(std::string_view key, const Json& value) {
    if (value.as<Json::Object>() == nullptr) return false;
    return !type_in(&value).empty() || has_word(kTextKeys, key) || key == "vision_config" || key == "audio_config";
  }

  // The class of a part. A file may give the type of the whole model, or of one that has such a part (CLIP's
  // vision_config).
  std::string part_type(std::string_view key, const std::string& given, const std::string& usual,
                        const std::string& outer) {
    if (given.empty() || (given == outer && !usual.empty())) return usual;
    const ConfigClass* const row = class_of(given);
    const Json* const inner = row == nullptr || !families_of(given).empty() ? nullptr : defaults_of(given)->find(key);
    const std::string type = type_in(inner);
    return type.empty() ? given : type;
  }

  // A part, with the values that the outer class passes to the part's class if the file lacks them.
  const Json& merged(const std::string& key, const Json& given, const Json& own) {
    Json::Object object = *given.as<Json::Object>();
    for (const auto& [name, value] : *own.as<Json::Object>()) {
      if (given.find(name) != nullptr || name == "merged" || name == "own" || name == "model_type") continue;
      note(remarks_.assumed, fmt::format("{}: {} = {} (the family's default; not given)", excerpt(key), name,
                                         excerpt(dump_json(value))));
      object.emplace_back(name, value);
    }
    return parsed_.emplace_back(std::move(object));
  }

  // Whether a part of a known family writes the text; keys beside it repeat that part's (DeepSeek-OCR).
  static bool has_known_text(const Json& object) {
    for (const auto& [key, value] : *object.as<Json::Object>()) {
      if (has_word(kTextKeys, key) && !families_of(type_in(&value)).empty()) return true;
    }
    return false;
  }

  // A type that is missing or unknown: the class in `architectures` may be named after a known one.
  std::string type_by_class(const Json& object, const std::string& given) {
    if (!families_of(given).empty() || class_of(given) != nullptr) return given;
    const NamedClass named = class_in(object);
    // of a model made of parts, the class may be that of its text
    const bool has_sizes =
        !first_of(Config{.object = &object}, {"num_hidden_layers", "hidden_size", "n_layer", "d_model"}).empty();
    if (named.type.empty() || (!families_of(named.type).empty() && !has_sizes)) return given;
    note(remarks_.assumed, fmt::format("model_type = {} (from architectures, {}; {})", named.type, named.name,
                                       given.empty() ? "not given" : fmt::format("{} is unknown", quoted(given))));
    return named.type;
  }

  void visit(const Json& object, const std::vector<std::string>& path, const std::string& type, int depth) {
    const Config named{.object = &object};
    std::string own_type = !type.empty() ? type : text(named, "model_type").value_or("");
    if (own_type.empty() && depth == 0) own_type = text(named, "_class_name").value_or("");  // diffusers
    own_type = type_by_class(object, own_type);
    const Json* const defaults = defaults_of(own_type);
    if (const Json* const more = defaults == nullptr ? nullptr : defaults->find("note")) {
      note(remarks_.notes, *more->as<std::string>());
    }
    if (const Json* const first = defaults == nullptr || depth != 0 ? nullptr : defaults->find("first_position")) {
      first_position = *first->as<std::int64_t>();
    }
    Part part{path, own_type, {.object = &object, .defaults = defaults, .assumed = &remarks_.assumed}};
    if (!path.empty()) part.config.place = path.back() + ": ";
    const bool is_text = path.empty() || has_word(kTextKeys, path.back());
    part.is_unknown = families_of(own_type).empty() && class_of(own_type) == nullptr && !own_type.empty() &&
                      is_text && !has_known_text(object) && looks_like_rope(part.config);
    if (part.is_unknown || !families_of(own_type).empty()) {
      found.push_back(part);
    } else if (defaults == nullptr && !path.empty() && !own_type.empty()) {
      unknown.push_back(fmt::format("{} ({})", path.back(), excerpt(own_type)));
    }
    if (depth < kMostNesting) visit_parts(object, defaults, path, own_type, depth);
  }

  void visit_parts(const Json& object, const Json* defaults, const std::vector<std::string>& path,
                   const std::string& own_type, int depth) {
    const auto go = [&](const std::string& key, const Json& value, const std::string& type) {
      std::vector<std::string> inner = path;
      inner.push_back(key);
      visit(value, inner, type, depth + 1);
    };
    for (const auto& [key, value] : *object.as<Json::Object>()) {
      if (!is_part(key, value)) continue;
      const Json* const own = defaults == nullptr ? nullptr : defaults->find(key);
      const std::string usual = type_in(own);
      const bool is_own = own != nullptr && own->find("own") != nullptr;
      const std::string type = is_own ? usual : part_type(key, type_in(&value), usual, own_type);
      if (type.empty() && class_in(value).type.empty()) continue;
      go(excerpt(key), own != nullptr && own->find("merged") != nullptr ? merged(key, value, *own) : value, type);
    }
    if (defaults == nullptr) return;
    for (const auto& [key, value] : *defaults->as<Json::Object>()) {
      const Json* const given = object.find(key);
      const bool is_missing = given == nullptr || given->as<std::nullptr_t>() != nullptr;
      if (!is_missing || type_in(&value).empty()) continue;
      // older files have the text's keys at the top
      const bool is_text = has_word(kTextKeys, key) && families_of(own_type).empty();
      const bool has_width = object.find("hidden_size") != nullptr,
                 has_depth = object.find("num_hidden_layers") != nullptr;
      if (is_text && (has_width || has_depth) && defaults->find("flat") != nullptr) {
        go(key, object, type_in(&value));
        continue;
      }
      // a class that transformers does not have reads the top, as LlavaConfig(LlamaConfig) of LLaVA's own code does
      const NamedClass named = class_in(object);
      if (is_text && has_width && has_depth && !named.name.empty() && named.type.empty()) {
        note(remarks_.warnings,
             fmt::format("{} is missing, and its keys are read at the top, as {} does; transformers "
                         "takes its class's defaults instead",
                         key, named.name));
        note(remarks_.assumed, fmt::format("{} = {} (the family's default; not given)", key, type_in(&value)));
        go(key, object, type_in(&value));
        continue;
      }
      if (is_text && (has_width || has_depth)) {
        note(remarks_.warnings, fmt::format("hidden_size and its like at the top are ignored: transformers reads {} "
                                            "alone, which is missing",
                                            key));
      }
      note(remarks_.assumed, fmt::format("{} = {} (the family's default; not given)", key,
                                         type_in(&value).starts_with('=') ? "its class's" : type_in(&value)));
      go(key, value, type_in(&value));
    }
  }

  Remarks& remarks_;
  std::deque<Json> parsed_ = {};
};

// The part that writes text: the outermost, else by its name, else the first.
std::size_t main_part(const std::vector<Part>& parts) {
  const auto rank = [](const Part& part) {
    if (part.path.empty()) return 0;
    const std::string& last = part.path.back();
    const bool is_thinker = part.path.front() == "thinker_config" || part.path.size() == 1;
    if (last == "text_config") return is_thinker ? 1 : 5;
    if (has_word("llm_config language_config language_model_config", last)) return 2;
    if (last == "decoder" || last == "decoder_config" || last == "generator") return 3;
    return 4 + static_cast<int>(part.path.size());
  };
  std::size_t best = 0;
  for (std::size_t i = 1; i < parts.size(); ++i) {
    if (rank(parts[i]) < rank(parts[best])) best = i;
  }
  return best;
}

std::string name_of_part(const Part& part) {
  std::string name;
  for (const std::string& key : part.path) {
    const std::string_view word = std::string_view(key).substr(0, key.find("_config"));
    name += fmt::format("{}{}", name.empty() ? "" : " ", word);
  }
  return name.empty() ? part.type : name;
}

PartReading read_part(const Part& part, Remarks& remarks) {
  PartReading reading;
  if (part.is_unknown) {
    const std::string_view near = nearest_name(excerpt(part.type), known_model_types());
    note(
        remarks.assumed,
        fmt::format("{}model_type {} is unknown{}: read as most families with rope are (layout, layers and defaults)",
                    part.config.place, quoted(part.type), near.empty() ? "" : fmt::format(" (like '{}'?)", near)));
  } else if (!is_code_read(part.type)) {
    note(remarks.assumed, fmt::format("{}the code of {} was not read: this answer is from its paper and its config",
                                      part.config.place, excerpt(part.type)));
  }
  for (const Family* const family : part.is_unknown ? assumed_families() : families_of(part.type)) {
    if (!holds(part.config, family->when)) continue;
    if (!family->note.empty()) {
      note(remarks.notes,
           part.config.place.empty() ? std::string(family->note) : part.config.place + std::string(family->note));
    }
    add_groups(part.config, *family, reading, remarks);
  }
  for (LayerGroup& group : reading.groups) {
    if (group.trained_length == reading.trained_length) group.trained_length.reset();
  }
  check_groups(reading.groups, reading.trained_length);
  return reading;
}

// The weights beside a params.json have interleaved pairs, those of Hugging Face halves.
Model model_of_params(const Json& params) {
  Remarks remarks;
  Model model = read_model(dump_json(config_of_params(params, remarks)));
  for (LayerGroup& group : model.groups) {
    auto* const rope = group.scheme ? std::get_if<Rope>(&*group.scheme) : nullptr;
    if (rope != nullptr) rope->layout = PairLayout::kInterleaved;
  }
  for (std::string& one : remarks.assumed) note(model.assumed, std::move(one));
  note(model.notes,
       "this is a params.json: the weights beside it (consolidated.*) have interleaved pairs, which "
       "conversion to Hugging Face permutes into halves");
  return model;
}

[[noreturn]] void refuse_type(const std::string& type) {
  const std::string_view near = nearest_name(excerpt(type), known_model_types());
  raise(fmt::format(
      "model_type {} is unknown{}", quoted(type),
      near.empty() ? " (its layout and layers would be a guess)" : fmt::format(" (did you mean '{}'?)", near)));
}

}  // namespace

Model read_model(std::string_view config_json) {
  if (config_json.ends_with(".json") || config_json.ends_with(".gguf")) {  // JSON never ends like this
    raise(
        fmt::format("read_model takes the text of a config.json, not a path: {}", excerpt(std::string(config_json))));
  }
  const Json json = parse_json(config_json, kConfigJsonLimits);
  if (json.as<Json::Object>() == nullptr) raise("config.json must be an object but is " + excerpt(dump_json(json)));
  if (std::optional<Model> own = models::own_model(json)) return *std::move(own);
  if (is_params_json(json)) return model_of_params(json);
  Remarks remarks;
  Parts parts(json, remarks);
  auto outer_type = text(Config{.object = &json}, "model_type");
  if (!outer_type) outer_type = text(Config{.object = &json}, "_class_name");
  if (parts.found.empty()) {
    if (!outer_type) raise("model_type is missing, which says how pairs are laid out");
    if (class_of(*outer_type) != nullptr) {
      raise(fmt::format("model_type {} is made of parts, and the file has none of them", quoted(*outer_type)));
    }
    refuse_type(*outer_type);
  }
  const std::size_t chosen = main_part(parts.found);
  Part& text_part = parts.found[chosen];
  text_part.config.place.clear();

  Model model;
  model.model_type = outer_type ? *outer_type : text_part.type;
  std::vector<std::string> read;
  text_part.config.read = &read;
  PartReading reading = read_part(text_part, remarks);
  text_part.config.read = nullptr;
  warn_of_unread(text_part.config, read, remarks);
  model.groups = std::move(reading.groups);
  for (LayerGroup& group : model.groups) group.first_position = parts.first_position.value_or(group.first_position);
  model.trained_length = reading.trained_length;
  model.usable_length = reading.usable_length;
  model.attn_factor = reading.attn_factor;
  model.yarn_ratio = reading.yarn_ratio;
  model.other_base = reading.other_base;
  model.other_rotary_dim = reading.other_rotary_dim;
  model.hf_rotary_dim = reading.hf_rotary_dim;
  model.older_reading = older_reading_of(text_part.type, text_part.config);
  model.is_assumed = text_part.is_unknown || !is_code_read(text_part.type);
  for (std::size_t i = 0; i < parts.found.size(); ++i) {
    if (i == chosen) continue;
    const Part& part = parts.found[i];
    PartReading other = read_part(part, remarks);
    model.parts.push_back({name_of_part(part), part.type, std::move(other.groups), other.trained_length});
  }
  for (const Family* const family : families_of(text_part.type)) add_indexer(text_part.config, *family, model);
  if (text_part.type != model.model_type) {
    note(remarks.notes, fmt::format("the layers are those of the text, {}{}", excerpt(text_part.type),
                                    model.parts.empty() ? "" : "; other parts follow them"));
  }
  for (const std::string& name : parts.unknown) {
    note(remarks.notes, fmt::format("part {} is not shown: its family is not known", name));
  }
  model.assumed = std::move(remarks.assumed);
  model.warnings = std::move(remarks.warnings);
  model.notes = std::move(remarks.notes);
  if (model.groups.empty())
    raise(fmt::format("model_type {}: no row of this family holds for this config", quoted(text_part.type)));
  return model;
}

}  // namespace posenc
