#include "models/sizes.h"

#include <fmt/format.h>

#include "posenc/error.h"

namespace posenc::models {
namespace {

std::optional<std::int64_t> count_by(const Config& config, std::initializer_list<std::string_view> keys) {
  const std::string_view key = first_of(config, keys);
  if (key.empty()) return std::nullopt;
  // stages of a vision model have a list
  if (find(config, key)->as<Json::Array>() != nullptr) return std::nullopt;
  return integer(config, key);
}

// One extent, or those of height and width.
std::optional<std::pair<double, double>> extents(const Config& config, std::string_view key) {
  const Json* const json = find(config, key);
  if (json == nullptr) return std::nullopt;
  if (json->as<Json::Array>() != nullptr) {
    const std::vector<double> list = *numbers(config, key);
    if (list.size() < 2 || !(list[0] > 0) || !(list[1] > 0)) return std::nullopt;
    return std::pair(list[0], list[1]);
  }
  if (json->as<Json::Object>() != nullptr) return std::nullopt;
  const double size = static_cast<double>(integer(config, key).value_or(1));
  return std::pair(size, size);
}

}  // namespace

std::optional<std::int64_t> hidden_size(const Config& config, const Family& family) {
  return count_by(config,
                  {family.width_key, "hidden_size", "d_model", "n_embd", "n_embed", "embed_dim", "dim", "emb_dim"});
}

std::optional<std::int64_t> heads_of(const Config& config, const Family& family) {
  if (family.part == "decoder") {
    if (const auto own = count_by(config, {"decoder_attention_heads", "decoder_num_attention_heads"})) return own;
  } else if (family.part == "speech encoder") {
    if (const auto own = count_by(config, {"speech_encoder_attention_heads"})) return own;
  }
  return count_by(config, {"num_attention_heads", "n_head", "n_heads", "num_heads", "encoder_attention_heads"});
}

HeadCounts head_counts_of(Config config) {
  config.assumed = nullptr;  // a number that is only compared is no assumption
  const auto count = [&](std::string_view key) {
    const Json* const json = find(config, key);
    const auto* const number = json == nullptr ? nullptr : json->as<std::int64_t>();
    return number == nullptr ? std::nullopt : std::optional(*number);
  };
  // a file that gives its heads alone may differ from its class in both
  const bool has_key_heads = is_given(config, "num_key_value_heads");
  return {count("num_attention_heads"), has_key_heads ? count("num_key_value_heads") : std::nullopt};
}

std::optional<std::int64_t> length_of(const Config& config, const Family& family) {
  return count_by(config, {family.length_key, "max_position_embeddings", "n_positions", "n_ctx", "max_seq_len",
                           "max_sequence_length", "seq_length", "model_max_length", "block_size"});
}

std::int64_t layer_count(const Config& config, const Family& family) {
  std::string_view key = family.layers_key;
  if (key.empty() || find(config, key) == nullptr) {
    key = first_of(config, {"num_hidden_layers", "n_layer", "n_layers", "num_layers", "encoder_layers", "depth"});
  }
  // a list of all layers gives their number
  for (const std::string_view list : {"layer_types", "layers_block_type", "hybrid_override_pattern"}) {
    const bool is_pattern = list == "hybrid_override_pattern";  // takes precedence over num_hidden_layers
    const bool is_counted =
        family.part.empty() && is_given(config, list) && (is_pattern || key.empty() || !is_given(config, key));
    const Json* const json = is_counted ? find(config, list) : nullptr;
    if (json == nullptr) continue;
    if (const auto* const array = json->as<Json::Array>()) return std::ssize(*array);
    if (const auto* const letters = json->as<std::string>()) return std::ssize(*letters);
  }
  if (key.empty() || find(config, key)->as<Json::Array>() != nullptr) return 0;
  const std::int64_t count = integer(config, key, 0).value_or(0);
  if (count > kMostLayers) refuse(config, key, fmt::format("at most {}", kMostLayers));
  return count;
}

std::int64_t head_size(const Config& config, const Family& family, std::string_view own_key) {
  const std::string_view key =
      first_of(config, {own_key, "head_dim", "attention_head_dim", "attention_head_size", "kv_channels"});
  if (!key.empty()) {
    const std::int64_t size = *integer(config, key);
    if (size > kMostFeatures) refuse(config, key, fmt::format("at most {}", kMostFeatures));
    return size;
  }
  const auto hidden = hidden_size(config, family), heads = heads_of(config, family);
  if (!hidden || !heads) raise("head_dim is missing, and so is hidden_size or num_attention_heads to derive it from");
  if (*hidden < *heads) {
    raise(
        fmt::format("head_dim is missing, and hidden_size {} is less than num_attention_heads {}", *hidden, *heads));
  }
  const std::int64_t size = family.head_factor * *hidden / *heads;
  if (size > kMostFeatures) {
    raise(fmt::format("hidden_size / num_attention_heads must be at most {} but is {}", kMostFeatures, size));
  }
  return size;
}

std::optional<PatchGrid> patch_grid_of(const Config& config, const Family& family) {
  const auto image = extents(config, family.patches.image_key);
  auto patch = extents(config, "patch_size");
  // frames, rows and columns of a tube of patches: VideoPrism
  const Json* const tube = patch ? nullptr : find(config, "tubelet_size");
  if (tube != nullptr && tube->as<Json::Array>() != nullptr) {
    const std::vector<double> sizes = *numbers(config, "tubelet_size");
    if (sizes.size() == 3 && sizes[1] > 0 && sizes[2] > 0) patch = std::pair(sizes[1], sizes[2]);
  }
  if (!image || !patch) return std::nullopt;
  const auto rows = static_cast<std::int64_t>(image->first / patch->first);
  const auto columns = static_cast<std::int64_t>(image->second / patch->second);
  if (rows < 1 || columns < 1 || rows > kMostFeatures || columns > kMostFeatures) return std::nullopt;
  return PatchGrid{rows, columns};
}

std::optional<std::int64_t> patches_of(const Config& config, const Family& family) {
  if (!family.patches.rows_key.empty()) return integer(config, family.patches.rows_key);
  const auto grid = patch_grid_of(config, family);
  return grid ? std::optional(grid->rows * grid->columns) : std::nullopt;
}

}  // namespace posenc::models
