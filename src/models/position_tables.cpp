// Which tensors of a checkpoint hold positions, by the names that transformers gives them.

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "formats/excerpt.h"
#include "models/config.h"
#include "posenc/error.h"
#include "posenc/model.h"

namespace posenc {
namespace {

constexpr auto kTableEndings = std::to_array<std::string_view>({
    "wpe.weight",
    "position_embeddings.weight",
    "position_embedding.weight",
    "embed_positions.weight",
    "positions_embed.weight",
    "position_embeddings",
    "position_embedding",
    "pos_embed",
    "relative_attention_bias.weight",
    "relative_position_bias_table",
    "rel_embeddings.weight",
    "rel_pos_h",
    "rel_pos_w",
    "distance_embedding.weight",
    "rotary_emb.inv_freq",
    "rope_freqs.weight",
});

}  // namespace

bool is_position_table(std::string_view name) {
  return std::any_of(kTableEndings.begin(), kTableEndings.end(), [&](std::string_view ending) {
    return name == ending || (name.ends_with(ending) && name[name.size() - ending.size() - 1] == '.');
  });
}

std::vector<PositionTable> position_tables(std::string_view index_json) {
  const Json json = parse_json(index_json);
  const auto* const map = json.find<Json::Object>("weight_map");
  if (map == nullptr) raise("weight_map is missing: no index of tensors");
  std::vector<PositionTable> found;
  for (const auto& [name, file] : *map) {
    const auto* const where = file.as<std::string>();
    if (where == nullptr) raise(fmt::format("weight_map: {} must be the name of a file", quoted(name)));
    if (is_position_table(name)) found.push_back({name, *where});
  }
  return found;
}

void check_tables(Model& model, std::span<const PositionTable> tables) {
  // the embeddings' own table, as opposed to those of layers and parts
  for (const LayerGroup& group : model.groups) {
    const auto* const learned = group.scheme ? std::get_if<Learned>(&*group.scheme) : nullptr;
    if (learned == nullptr || !model.parts.empty()) continue;
    for (const PositionTable& table : tables) {
      const bool is_other = table.shape.size() != 2 || table.name.find("rel") != std::string::npos ||
                            (table.name.find("encoder.") != std::string::npos && group.layer_type == "decoder") ||
                            (table.name.find("decoder.") != std::string::npos && group.layer_type == "encoder");
      if (is_other || (table.shape[0] == learned->rows && table.shape[1] == learned->width)) continue;
      models::note(model.warnings, fmt::format("{} is {} x {} but the config says {} x {}", excerpt(table.name),
                                               table.shape[0], table.shape[1], learned->rows, learned->width));
    }
  }
}

}  // namespace posenc
