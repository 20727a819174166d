// Read in transformers 5.16 (d56c55bf): modeling_deepseek_v32.py:232 and modeling_axk2.py:266 (halves beside interleaved
// MLA), modeling_glm_moe_dsa.py:231 (interleaved), modeling_deepseek_v4.py:552 and modeling_minimax_m3_vl.py:565 (as their
// attention). vLLM a014e35f, deepseek_v2.py:1159: indexer_rope_interleave decides, halves without it.

#include "models/indexers.h"

#include <algorithm>
#include <utility>

#include "models/layers.h"
#include "models/model_groups.h"
#include "models/sizes.h"

namespace posenc::models {
namespace {

constexpr std::string_view kLayoutKey = "indexer_rope_interleave";

Rope indexer_rope(const Rope& attention, const Config& config, const Family& family) {
  Rope rope = attention;
  const auto size = integer(config, "index_head_dim");
  if (size && *size % 2 == 0) rope.dims = std::min(rope.dims, *size);
  // its scores have a scale of their own
  if (auto* const yarn = std::get_if<YarnScaling>(&*rope.scaling)) yarn->mscale_on_softmax = false;
  if (family.indexer == Indexer::kAsAttention) return rope;
  rope.first_dim = 0;
  bool is_interleaved = family.indexer == Indexer::kInterleavedFirst;
  if (is_given(config, kLayoutKey)) is_interleaved = flag(config, kLayoutKey).value_or(is_interleaved);
  if (!is_interleaved) rope.layout = PairLayout::kHalves;
  return rope;
}

}  // namespace

void add_indexer(const Config& config, const Family& family, Model& model) {
  if (family.indexer == Indexer::kNone) return;
  Remarks said_before;
  const std::vector<Layer> layers = layers_of(config, family, layer_count(config, family), said_before);
  ModelPart part{.name = "indexer", .model_type = model.model_type, .trained_length = model.trained_length};
  for (const LayerGroup& group : model.groups) {
    const auto* const attention = group.scheme ? std::get_if<Rope>(&*group.scheme) : nullptr;
    if (attention == nullptr) continue;
    LayerGroup made;
    for (const std::int64_t layer : group.layers) {
      const std::size_t at = layer;
      const bool is_indexed = family.indexed.empty() || (at < layers.size() && layers[at].type == family.indexed);
      if (is_indexed) made.layers.push_back(layer);
    }
    if (made.layers.empty() && !group.layers.empty()) continue;
    made.is_causal = group.is_causal;
    made.other_attention = "its scores choose the keys that queries attend to";
    set_scheme(made, indexer_rope(*attention, config, family));
    part.groups.push_back(std::move(made));
  }
  if (!part.groups.empty()) model.parts.push_back(std::move(part));
}

}  // namespace posenc::models
