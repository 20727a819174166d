// Determines the rope parameters of each layer of a Hugging Face config.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "formats/excerpt.h"
#include "models/part_groups.h"
#include "models/rope_config.h"
#include "models/sizes.h"
#include "posenc/error.h"

namespace posenc::models {
namespace {

// Whether each member is itself a dictionary, one per layer type.
bool is_by_type(const std::optional<Config>& entries) {
  if (!entries) return false;
  const auto& members = *entries->object->as<Json::Object>();
  return !members.empty() && std::all_of(members.begin(), members.end(), [](const auto& member) {
    return member.second.template as<Json::Object>() != nullptr ||
           member.second.template as<std::nullptr_t>() != nullptr;
  });
}

constexpr std::string_view kGlobalHeadKey = "global_head_dim";

class RopeLayers {
 public:
  RopeLayers(const Config& config, const Family& family, PartReading& reading, Remarks& remarks)
      : config_(config), family_(family), reading_(reading), remarks_(remarks) {
    read_entries();
  }

  void add_groups() {
    const std::vector<Layer> layers = layers_of(config_, family_, layer_count(config_, family_), remarks_);
    if (rotary_.style == RopeStyle::kListed) read_lists(layers);
    std::vector<LayerGroup> found;
    for (std::size_t i = 0; i < layers.size(); ++i)
      found.push_back(group_of(layers[i], static_cast<std::int64_t>(i)));
    if (const std::vector<std::string> types = unmatched_types(layers); !types.empty()) {
      found.clear();
      for (const std::string& type : types) found.push_back(group_of(Layer{.type = type}, -1));
    }
    if (found.empty()) found.push_back(group_of(Layer{}, -1));
    for (LayerGroup& group : grouped(std::move(found))) {
      if (!family_.part.empty()) group.layer_type = family_.part;
      reading_.groups.push_back(std::move(group));
    }
    keep_length(config_, family_, reading_);
  }

 private:
  void read_entries() {
    const auto now = nested(config_, "rope_parameters");
    const bool is_now_given = is_given(config_, "rope_parameters");
    const auto before = is_given(config_, "rope_scaling") ? nested(config_, "rope_scaling") : std::nullopt;
    const bool has_older = before && !before->object->as<Json::Object>()->empty();
    if (has_older && rotary_.style == RopeStyle::kNewest) {
      note(remarks_.warnings, "rope_scaling is ignored: transformers reads rope_parameters alone for this family");
    }
    const bool has_before = has_older && rotary_.style != RopeStyle::kNewest;
    // transformers copies the older key over the newer one
    const bool is_listed = rotary_.style == RopeStyle::kListed;
    if (has_before && is_now_given && !is_listed && *before->object != *now->object) {
      note(remarks_.warnings,
           "rope_scaling and rope_parameters differ: rope_scaling counts, as transformers reads it");
    }
    if (is_listed) {
      entries_ = now;
    } else if (rotary_.style == RopeStyle::kTyped) {
      entries_ = now;
      if (has_before && !is_now_given) {
        note(remarks_.warnings, "rope_scaling is ignored: transformers reads rope_parameters alone for this family");
      }
    } else if (is_split()) {
      if (is_now_given) entries_ = now;
      if (has_before) scaling_ = before;
      // transformers merges it into dictionaries that already have a rope_type
      const bool is_typeless =
          has_before && find(*before, "rope_type") == nullptr && find(*before, "type") != nullptr;
      if (is_typeless && !is_labelled()) {
        note(remarks_.warnings, "rope_scaling is ignored: transformers reads rope_type, not type, for this family");
        scaling_.reset();
      }
      if (is_now_given && is_flat() && !is_labelled()) {
        note(remarks_.warnings,
             "rope_parameters are ignored but for those within a type of layers, as full_attention");
      }
    } else {
      entries_ = has_before ? before : now;
    }
    is_default_ = entries_ && !is_now_given && !has_before;
    if (is_default_ && rotary_.style != RopeStyle::kTyped && !is_listed) {
      note(remarks_.assumed, fmt::format("rope_parameters = {} (the family's default; not given)",
                                         excerpt(dump_json(*entries_->object))));
    }
  }

  // The value for a layer: a list has one per layer, and may have more for layers that predict further tokens.
  const Json* of_layer(std::string_view key, std::size_t layer) const {
    const Json* const json = is_given(config_, key) ? find(config_, key) : nullptr;
    const auto* const list = json == nullptr ? nullptr : json->as<Json::Array>();
    if (list != nullptr && list->size() <= layer) {
      refuse(config_, key, fmt::format("a number, or a list of at least {}", layer + 1));
    }
    return list == nullptr ? json : &(*list)[layer];
  }

  // Step3p7TextConfig: rope_parameters apply if they have every layer type; otherwise the first layer of a type
  // determines its values.
  void read_lists(const std::vector<Layer>& layers) {
    const auto has_type = [&](const Layer& layer) {
      const Json* const one = entries_->object->find(layer.type);
      return one != nullptr && one->as<Json::Object>() != nullptr;
    };
    if (is_given(config_, "rope_parameters") && std::all_of(layers.begin(), layers.end(), has_type)) return;
    const auto scaling = is_given(config_, "rope_scaling") ? nested(config_, "rope_scaling") : std::nullopt;
    Json::Object made;
    for (std::size_t i = 0; i < layers.size(); ++i) {
      const auto is_same = [&](const auto& member) { return member.first == layers[i].type; };
      if (std::any_of(made.begin(), made.end(), is_same)) continue;
      Json::Object one;
      if (scaling && layers[i].type == "full_attention") one = *scaling->object->as<Json::Object>();
      const auto set = [&](const char* key, const Json& value) {
        if (std::none_of(one.begin(), one.end(), [&](const auto& member) { return member.first == key; })) {
          one.emplace_back(key, value);
        }
      };
      const Json *const base = of_layer("rope_theta", i), *const share = of_layer("partial_rotary_factors", i);
      if (base == nullptr) note(remarks_.assumed, "rope_theta = 10000 (the family's default; not given)");
      set("rope_type", Json("default"));
      set("rope_theta", base == nullptr ? Json(10000.0) : *base);
      if (share != nullptr) set("partial_rotary_factor", *share);
      made.emplace_back(layers[i].type, std::move(one));
    }
    made_ = Json(std::move(made));
    entries_ = Config{.object = &made_, .place = config_.place};
    is_default_ = false;
  }

  // The types in rope_parameters, if no layer is known to have any of them.
  std::vector<std::string> unmatched_types(const std::vector<Layer>& layers) const {
    std::vector<std::string> types;
    if (is_split() || is_typed() || !is_by_type(entries_)) return types;
    for (const auto& [type, value] : *entries_->object->as<Json::Object>()) {
      types.push_back(excerpt(type));
      for (const Layer& layer : layers) {
        if (layer.type == type) return {};
      }
    }
    return types;
  }

  LayerGroup group_of(const Layer& layer, std::int64_t number) {
    LayerGroup group = group_of_layer(layer, number, config_, family_);
    problem_.clear();
    set_scheme(group, scheme_of(layer));
    if (!problem_.empty()) {
      group.scheme_name = Rope::name;
      group.scheme.reset();
      group.formula = problem_;
      adjust(group, layer, config_, family_);
      return group;
    }
    if (auto* const rope = std::get_if<Rope>(&*group.scheme)) place_mscale(*rope);
    // Ministral 3, Mistral 4
    if (const auto beta = entries_ ? finite(*entries_, "llama_4_scaling_beta") : std::nullopt; beta && *beta != 0) {
      const auto original = integer(*entries_, "original_max_position_embeddings");
      if (original) group.temperature = Temperature{.scale = *beta, .length = *original};
    }
    adjust(group, layer, config_, family_);
    return group;
  }

  // The dictionary of a layer; nothing if it has no position.
  std::optional<RopeDictionary> dictionary_of(const Layer& layer, RopeFacts& facts) {
    const bool is_local = is_sliding(layer.type);
    std::string key = layer.type;
    if (is_labelled()) key = is_local ? "main" : "compress";
    const bool has_own = entries_ && entries_->object->find(key) != nullptr;
    if (is_typed()) {
      if (has_own) {
        if (find(*entries_, key) == nullptr) return std::nullopt;
        note_typed(key);
        return RopeDictionary{nested(*entries_, key), true, !is_any_scaled()};
      }
      if (is_flat()) return RopeDictionary{entries_, false};
      return std::nullopt;  // rope_parameters list the types that rotate
    }
    if (is_split()) {
      if (has_own && find(*entries_, key) != nullptr) {
        facts.base = is_local ? local_base() : 0;
        return RopeDictionary{nested(*entries_, key), true};
      }
      const bool is_scaled = !is_local || rotary_.style == RopeStyle::kSplitBoth;
      facts.base = is_local ? local_base() : global_base();
      facts.is_base_fixed = is_labelled();
      const bool is_compressed =
          is_labelled() && entries_ && !scaling_;  // DeepSeek-V4: a flat one is for these layers
      if (is_compressed && is_scaled) return RopeDictionary{entries_, false};
      return scaling_ && is_scaled ? RopeDictionary{scaling_, false} : RopeDictionary{};
    }
    if (!is_by_type(entries_)) return RopeDictionary{entries_, false};
    if (has_own && find(*entries_, key) == nullptr) return std::nullopt;
    return RopeDictionary{nested(*entries_, key), true};
  }

  bool is_split() const {
    return rotary_.style == RopeStyle::kSplit || rotary_.style == RopeStyle::kSplitBoth || is_labelled();
  }
  bool is_labelled() const { return rotary_.style == RopeStyle::kLabelled; }
  bool is_typed() const { return rotary_.style == RopeStyle::kTyped || rotary_.style == RopeStyle::kListed; }

  // Whether the file itself states which layers rotate.
  bool is_listed() const { return is_given(config_, "no_rope_layers") || is_given(config_, "layer_rope_theta"); }

  // transformers applies partial_rotary_factor to the types only if one of them is scaled
  bool is_any_scaled() const {
    for (const auto& [type, value] : *entries_->object->as<Json::Object>()) {
      const Json* const name = value.find("rope_type");
      if (name != nullptr && *name != Json("default")) return true;
    }
    return false;
  }

  bool is_flat() const { return entries_ && first_of(*entries_, {"rope_type", "type", "rope_theta"}) != ""; }

  void note_typed(const std::string& key) {
    if (!is_default_) return;
    note(remarks_.assumed, fmt::format("rope_parameters: {} = {} (the family's default; not given)", key,
                                       excerpt(dump_json(*entries_->object->find(key)))));
  }

  Scheme scheme_of(const Layer& layer) {
    if (!layer.rotates) {
      if (!is_listed()) note_none(remarks_, layer.type);
      return None{};
    }
    if (!rotary_.dims_key.empty() && holds(config_, fmt::format("{}=0", rotary_.dims_key))) return None{};
    const bool has_own_head = config_.defaults != nullptr && config_.defaults->find(kGlobalHeadKey) != nullptr;
    RopeFacts facts{.config = config_, .family = family_, .base = layer.base, .is_base_fixed = layer.base > 0};
    facts.length = length_of(config_, family_);
    const std::optional<RopeDictionary> dictionary = dictionary_of(layer, facts);
    if (!dictionary) return None{};
    const bool needs_head = rotary_.dims_key.empty() || find(config_, rotary_.dims_key) == nullptr;
    facts.head = !needs_head                               ? 0
                 : has_own_head && !is_sliding(layer.type) ? global_head()
                                                           : head_size(config_, family_);
    if (facts.head % 2 != 0 && first_of(config_, {"head_dim"}) == "head_dim") refuse(config_, "head_dim", "even");
    RopeReading read = read_rope(*dictionary, facts, remarks_);
    problem_ = read.problem;
    if (!problem_.empty()) return None{};
    // layers that were not extended determine the usable length for both
    const auto keep = [](std::optional<std::int64_t>& kept, std::optional<std::int64_t> other, bool longer) {
      if (other && (!kept || (longer ? *other > *kept : *other < *kept))) kept = other;
    };
    keep(reading_.trained_length, read.trained_length, false);
    keep(reading_.usable_length, read.usable_length, true);
    if (read.attn_factor) reading_.attn_factor = read.attn_factor;
    if (read.yarn_ratio) reading_.yarn_ratio = read.yarn_ratio;
    if (rotary_.adjust != nullptr) rotary_.adjust({read.rope, config_, family_, reading_, remarks_});
    return read.rope;
  }

  // head_dim of full layers: a separate key, or per_layer_config as transformers 5.16 saves it.
  std::int64_t global_head() {
    if (is_given(config_, kGlobalHeadKey)) return head_size(config_, family_, kGlobalHeadKey);
    if (const auto layers = nested(config_, "per_layer_config")) {
      for (const auto& [layer, values] : *layers->object->as<Json::Object>()) {
        const Config one{.object = &values, .place = fmt::format("{}{}: ", layers->place, excerpt(layer))};
        if (values.as<Json::Object>() == nullptr) continue;
        if (const auto size = integer(one, "head_dim")) return *size;
      }
    }
    return *integer(config_, kGlobalHeadKey);
  }

  // The base of sliding layers: their own key, else the class's.
  double local_base() {
    const std::string_view key = is_labelled() ? "rope_theta" : rotary_.local_base_key;
    if (is_given(config_, key)) return *positive(config_, key);
    return default_base(is_labelled() ? "main" : "sliding_attention");
  }
  double global_base() {
    const std::string_view key = is_labelled() ? "compress_rope_theta" : rotary_.base_key;
    if (is_given(config_, key)) return *positive(config_, key);
    return default_base(is_labelled() ? "compress" : "full_attention");
  }
  double default_base(std::string_view type) {
    const Json* const all = config_.defaults == nullptr ? nullptr : config_.defaults->find("rope_parameters");
    const Json* const one = all == nullptr ? nullptr : all->find(type);
    const auto* const whole = one == nullptr ? nullptr : one->find<std::int64_t>("rope_theta");
    const double base = whole == nullptr ? 10000.0 : static_cast<double>(*whole);
    note(remarks_.assumed, fmt::format("rope_theta of {} = {} (the family's default; not given)", type, base));
    return base;
  }

  // Whether mscale_all_dim affects the softmax depends on the family, not the file.
  void place_mscale(Rope& rope) {
    auto* const yarn = std::get_if<YarnScaling>(&*rope.scaling);
    if (yarn == nullptr || yarn->mscale_all_dim.value_or(0) == 0) return;
    if (rotary_.dims_key == kLatentDims && !is_labelled()) return;  // as DeepSeek does
    yarn->mscale_on_softmax = false;
    note(remarks_.warnings,
         "mscale_all_dim changes the magnitude alone: this family does not multiply its softmax scale by it, as "
         "DeepSeek does");
  }

  Json made_;
  const Config& config_;
  const Family& family_;
  const Rotary& rotary_ = family_.rope;
  PartReading& reading_;
  Remarks& remarks_;
  std::optional<Config> entries_ = {};  // rope_parameters, or rope_scaling in its place
  std::optional<Config> scaling_ = {};  // rope_scaling beside rope_parameters by type
  bool is_default_ = false;
  std::string problem_ = {};  // of the current layer
};

}  // namespace

void add_rope_groups(const Config& config, const Family& family, PartReading& reading, Remarks& remarks) {
  RopeLayers(config, family, reading, remarks).add_groups();
}

}  // namespace posenc::models
