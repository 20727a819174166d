#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "posenc/attention.h"
#include "posenc/model.h"
#include "posenc/situation.h"

namespace posenc {

/// What a layer needs beyond its model's files; every field has a default.
struct LayerInputs {
  /// "encoder", "decoder", or another part's name ("vision"): needed where several parts have the layer.
  std::string_view part = "";
  Situation now = {};               ///< the length of the sequence, the numerics, and trained tables (T5, learned)
  ConstTensorView sinks = {};       ///< [heads]: the trained logits of a layer that has sinks (gpt-oss)
  std::optional<bool> causal = {};  ///< where the files do not say it
};

/// A layer of a model, ready for attention. It refers to the tables and sinks of its inputs.
struct PreparedLayer {
  /// Position, scale, mask, softcap, sinks and temperature. The position is Nothing where vectors are added instead.
  AttentionOptions attention = {};
  std::optional<Addition> addition = {};  ///< added to the embeddings, once, before the first layer
  std::int64_t first_position = 0;        ///< of the first token (RoBERTa and M2M100: 2)
  std::vector<std::string> notes = {};    ///< what else the family does with position, which is left to the caller
};

/// What attention does in these layers, whole.
///
///   const Model model = read_model(config);
///   const PreparedLayer layer3 = layer(model, 3);
///   attention(out, q, k, v, layer3.attention);
///
/// Throws: Error for a scheme or a kind of attention that is not computed, a layer that has no attention, sinks or
/// tables that are missing, and where the files do not say whether attention is causal; as prepare for the scheme.
PreparedLayer prepare(const LayerGroup& group, const LayerInputs& inputs = {});

/// Layer i of a model, counted from 0 in its part. Throws: Error as above, and for a layer that the model does not have
/// or that several of its parts have.
PreparedLayer layer(const Model& model, std::int64_t i, const LayerInputs& inputs = {});

}  // namespace posenc
