// Hugging Face's config.json. Family facts stand in families.cpp, the parameters of rotary position in
// rope_config.cpp; here they become layer groups.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "formats/excerpt.h"
#include "models/layers.h"
#include "models/model_groups.h"
#include "posenc/error.h"
#include "posenc/model.h"

namespace posenc {
namespace {

using namespace models;

std::optional<std::int64_t> count_by(const Config& config, std::initializer_list<std::string_view> keys) {
  const std::string_view key = first_of(config, keys);
  return key.empty() ? std::nullopt : integer(config, key);
}

std::optional<std::int64_t> hidden_size(const Config& config) {
  return count_by(config, {"hidden_size", "d_model", "n_embd", "n_embed", "dim", "emb_dim"});
}
std::optional<std::int64_t> heads_of(const Config& config) {
  return count_by(config, {"num_attention_heads", "n_head", "n_heads", "num_heads", "encoder_attention_heads"});
}
std::optional<std::int64_t> length_of(const Config& config, const Family& family) {
  return count_by(config, {family.length_key, "max_position_embeddings", "n_positions", "n_ctx", "max_seq_len",
                           "max_sequence_length", "seq_length", "model_max_length"});
}
// Numbers that no model has are a slip, and would be paid for in time and memory.
constexpr std::int64_t kMostLayers = 4096, kMostFeatures = 65536;

std::int64_t layer_count(const Config& config, std::string_view part) {
  const std::string_view key =
      part == "decoder" ? first_of(config, {"decoder_layers"})
      : part == "encoder"
          ? first_of(config, {"encoder_layers"})
          : first_of(config, {"num_hidden_layers", "n_layer", "n_layers", "num_layers", "encoder_layers"});
  if (key.empty()) return 0;
  const std::int64_t count = integer(config, key).value_or(0);
  if (count > kMostLayers) refuse(config, key, fmt::format("at most {}", kMostLayers));
  return count;
}

std::int64_t head_size(const Config& config, std::string_view own_key) {
  const std::string_view key = first_of(config, {own_key, "head_dim", "attention_head_dim", "kv_channels"});
  if (!key.empty()) {
    const std::int64_t size = *integer(config, key);
    if (size % 2 != 0) refuse(config, key, "even");
    if (size > kMostFeatures) refuse(config, key, fmt::format("at most {}", kMostFeatures));
    return size;
  }
  const auto hidden = hidden_size(config), heads = heads_of(config);
  if (!hidden || !heads) raise("head_dim is missing, and so is hidden_size or num_attention_heads to derive it from");
  if (*hidden % *heads != 0) {
    raise(fmt::format("head_dim is missing, and hidden_size {} is not a multiple of num_attention_heads {}", *hidden,
                      *heads));
  }
  if (*hidden / *heads > kMostFeatures) {
    raise(fmt::format("hidden_size / num_attention_heads must be at most {} but is {}", kMostFeatures,
                      *hidden / *heads));
  }
  return *hidden / *heads;
}

// The part of a model that writes text, where it has parts.
Config text_part(const Config& root) {
  Config config = root;
  for (const std::string_view key : {"thinker_config", "text_config", "llm_config", "language_config"}) {
    if (const auto inner = nested(config, key)) config = *inner;
  }
  config.place.clear();
  return config;
}

// rope_parameters, or what it was called before.
std::optional<Config> rope_entries(const Config& config, Remarks& remarks) {
  const auto now = nested(config, "rope_parameters");
  const auto before = nested(config, "rope_scaling");
  if (now && before) say(remarks.warnings, "rope_scaling is ignored: rope_parameters, its newer name, is given too");
  return now ? now : before;
}

// Whether each member is a dictionary of its own, one for each type of layers.
bool is_by_type(const std::optional<Config>& entries) {
  if (!entries) return false;
  const auto& members = *entries->object->as<Json::Object>();
  return !members.empty() && std::all_of(members.begin(), members.end(), [](const auto& member) {
    return member.second.template as<Json::Object>() != nullptr ||
           member.second.template as<std::nullptr_t>() != nullptr;
  });
}

class RopeLayers {
 public:
  RopeLayers(const Config& config, const Family& family, Model& model, Remarks& remarks)
      : config_(config), family_(family), model_(model), remarks_(remarks), entries_(rope_entries(config, remarks)) {}

  void add_groups() {
    const std::vector<Layer> layers = layers_of(config_, family_, layer_count(config_, family_.part), remarks_);
    std::vector<GroupedLayer> found;
    for (std::size_t i = 0; i < layers.size(); ++i) {
      found.push_back({static_cast<std::int64_t>(i), layers[i].type, scheme_of(layers[i])});
    }
    if (layers.empty()) found.push_back({-1, "", scheme_of(Layer{})});
    if (const std::vector<std::string> types = unmatched_types(layers); !types.empty()) {
      found.clear();
      for (const std::string& type : types) found.push_back({-1, type, scheme_of(Layer{.type = type})});
    }
    for (LayerGroup& group : grouped(found)) {
      group.softmax_factor = softmax_factor(*group.scheme);
      model_.groups.push_back(std::move(group));
    }
  }

 private:
  // The types of rope_parameters, where no layer is said to have any of them.
  std::vector<std::string> unmatched_types(const std::vector<Layer>& layers) const {
    std::vector<std::string> types;
    if (!is_by_type(entries_)) return types;
    for (const auto& [type, value] : *entries_->object->as<Json::Object>()) {
      types.push_back(excerpt(type));
      for (const Layer& layer : layers) {
        if (layer.type == type) return {};
      }
    }
    return types;
  }

  Scheme scheme_of(const Layer& layer) {
    if (!layer.turns) return None{};
    const bool is_local = layer.type == "sliding_attention";
    const bool has_own_head = !is_local && !family_.global_head_key.empty();
    RopeFacts facts{config_,
                    family_,
                    0,
                    layer.base,
                    length_of(config_, family_),
                    integer(config_, "original_max_position_embeddings")};
    facts.head = family_.dims_key.empty() || family_.dims == 0
                     ? head_size(config_, has_own_head ? family_.global_head_key : "")
                     : 0;
    RopeDictionary dictionary{entries_, false};
    if (is_by_type(entries_)) {
      if (entries_->object->find(layer.type) != nullptr && find(*entries_, layer.type) == nullptr) return None{};
      dictionary = {nested(*entries_, layer.type), true};
    } else if (is_local && family_.rule != LayerRule::kAlike && is_split()) {
      // before transformers 5, scaling was for global layers alone
      dictionary.entries.reset();
      facts.base = local_base();
    }
    const RopeReading reading = read_rope(dictionary, facts, remarks_);
    // layers that were not stretched say the usable length for both
    const auto keep = [](std::optional<std::int64_t>& kept, std::optional<std::int64_t> other, bool longer) {
      if (other && (!kept || (longer ? *other > *kept : *other < *kept))) kept = other;
    };
    keep(model_.trained_length, reading.trained_length, false);
    keep(model_.usable_length, reading.usable_length, true);
    if (reading.attn_factor) model_.attn_factor = reading.attn_factor;
    return reading.rope;
  }

  bool is_split() const { return family_.rule == LayerRule::kLocalGlobal || family_.rule == LayerRule::kGlobalFirst; }

  double local_base() {
    if (!family_.local_base_key.empty()) {
      if (const auto base = positive(config_, family_.local_base_key)) return *base;
    }
    if (family_.local_base > 0) {
      say(remarks_.assumed,
          fmt::format("base of sliding layers = {} (the family's default; not given)", family_.local_base));
    }
    return family_.local_base;
  }

  double softmax_factor(const Scheme& scheme) {
    const auto* const rope = std::get_if<Rope>(&scheme);
    const auto* const yarn = rope == nullptr ? nullptr : std::get_if<YarnScaling>(&rope->scaling);
    if (yarn == nullptr || yarn->mscale_all_dim.value_or(0) == 0) return 1.0;
    if (!family_.mscale_on_softmax) {
      say(remarks_.warnings,
          "mscale_all_dim changes the magnitude alone: this family does not multiply its softmax "
          "scale by it, as DeepSeek does");
      return 1.0;
    }
    return prepare(*rope).softmax_factor;
  }

  const Config& config_;
  const Family& family_;
  Model& model_;
  Remarks& remarks_;
  std::optional<Config> entries_;
};

LayerGroup group_of_all(const Config& config, const Family& family) {
  LayerGroup group;
  group.layer_type = family.part;
  group.first_position = family.first_position;
  group.is_unscaled = family.is_unscaled;
  for (std::int64_t i = 0; i < layer_count(config, family.part); ++i) group.layers.push_back(i);
  return group;
}

void add_vectors(const Config& config, const Family& family, Model& model) {
  LayerGroup group = group_of_all(config, family);
  const auto width = hidden_size(config);
  if (!width) raise("hidden_size is missing");
  if (*width > kMostFeatures) raise(fmt::format("hidden_size must be at most {} but is {}", kMostFeatures, *width));
  const auto length = length_of(config, family);
  if (family.encoding == Encoding::kSinusoidal) {
    group.scheme = Sinusoidal{.width = *width, .spacing = family.spacing, .layout = family.waves};
  } else {
    if (!length) raise("max_position_embeddings is missing");
    group.scheme = Learned{.rows = *length + family.offset, .width = *width, .offset = family.offset};
  }
  if (family.offset_in_table) {
    if (const auto padding = integer(config, "pad_token_id", 0)) group.first_position = *padding + 1;
  }
  group.scheme_name = name_of(*group.scheme);
  if (length && family.part != "encoder") {
    model.trained_length = model.usable_length =
        family.offset_in_table ? std::max<std::int64_t>(*length - group.first_position, 0) : *length;
  }
  model.groups.push_back(std::move(group));
}

void add_bias(const Config& config, const Family& family, Model& model) {
  Json::Object fields;
  if (family.encoding == Encoding::kAlibi) {
    fields = {{"scheme", "alibi"}, {"heads", heads_of(config).value_or(8)}};
    const auto most = positive(config, "attn_config.alibi_bias_max");
    if (most) fields.emplace_back("max_bias", *most);
    if (holds(config, "alibi") && family.types == "falcon") {
      fields.emplace_back("scale", 1.0 / std::sqrt(static_cast<double>(head_size(config, ""))));
      fields.emplace_back("round_bf16", true);
    }
  } else if (family.encoding == Encoding::kT5) {
    fields = {{"scheme", "t5"},
              {"heads", heads_of(config).value_or(8)},
              {"buckets", integer(config, "relative_attention_num_buckets").value_or(32)},
              {"max_distance", integer(config, "relative_attention_max_distance").value_or(128)}};
  } else {
    fields = {{"scheme", family.name}};
  }
  LayerGroup group = group_of_all(config, family);
  name_scheme(group, fields);
  model.groups.push_back(std::move(group));
  const auto length = length_of(config, family);
  if (length) model.trained_length = model.usable_length = length;
}

[[noreturn]] void refuse_type(const std::string& type) {
  const std::string_view near = nearest_name(excerpt(type), known_model_types());
  raise(fmt::format(
      "model_type {} is unknown{}", quoted(type),
      near.empty() ? " (its layout and layers would be a guess)" : fmt::format(" (did you mean '{}'?)", near)));
}

}  // namespace

Model read_model(std::string_view config_json) {
  const Json json = parse_json(config_json, kConfigJsonLimits);
  if (json.as<Json::Object>() == nullptr) raise("config.json must be an object but is " + excerpt(dump_json(json)));
  const Config root{&json};
  const Config config = text_part(root);
  const auto outer_type = text(root, "model_type"), inner_type = text(config, "model_type");
  if (!outer_type && !inner_type) raise("model_type is missing, which says how pairs are laid out");

  Model model;
  model.model_type = outer_type ? *outer_type : *inner_type;
  const std::string type = inner_type ? *inner_type : *outer_type;
  const std::vector<const Family*> rows = families_of(type);
  if (rows.empty()) refuse_type(type);
  if (type != model.model_type) {
    model.notes.push_back(fmt::format("the part that writes text, {}; other parts are not shown", excerpt(type)));
  }
  Remarks remarks;
  for (const Family* const family : rows) {
    if (!holds(config, family->when)) continue;
    if (!family->note.empty()) say(model.notes, std::string(family->note));
    switch (family->encoding) {
      case Encoding::kRope:
        RopeLayers(config, *family, model, remarks).add_groups();
        break;
      case Encoding::kLearned:
      case Encoding::kSinusoidal:
        add_vectors(config, *family, model);
        break;
      case Encoding::kNone: {
        LayerGroup group = group_of_all(config, *family);
        group.scheme_name = None::name;
        group.scheme = None{};
        model.groups.push_back(std::move(group));
        break;
      }
      default:
        add_bias(config, *family, model);
    }
  }
  model.assumed = std::move(remarks.assumed);
  model.warnings = std::move(remarks.warnings);
  check_groups(model);
  return model;
}

}  // namespace posenc
