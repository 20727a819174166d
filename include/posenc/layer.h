#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "posenc/attention.h"
#include "posenc/model.h"
#include "posenc/prepare_options.h"

namespace posenc {

/// What a layer needs in addition to the model's files; every field has a default.
struct LayerInputs {
  /// "encoder", "decoder", or the name of another part ("vision"): required if several parts have a layer of this index.
  std::string_view part = "";
  PrepareOptions prepare = {};      ///< the length of the sequence, the numerics, and trained tables (T5, learned)
  ConstTensorView sinks = {};       ///< [heads]: the trained logits of a layer that has sinks (gpt-oss)
  std::optional<bool> causal = {};  ///< required if the files do not specify it
};

/// A layer of a model, ready for attention. It refers to the tables and sinks of its inputs, which must outlive it.
struct PreparedLayer {
  /// Position, scale, mask, softcap, sinks and temperature. The position is Nothing if the model adds position vectors to
  /// the embeddings instead (see `addition`).
  AttentionOptions attention = {};
  std::optional<Addition> addition = {};  ///< to be added to the embeddings once, before the first layer
  std::int64_t first_position = 0;        ///< position of the first token (RoBERTa and M2M100: 2)
  std::vector<std::string> notes = {};    ///< what else the family does with position, left to the caller
};

/// Everything that attention needs to compute these layers.
///
///   const Model model = read_model(config);
///   const PreparedLayer layer3 = layer(model, 3);
///   attention(out, q, k, v, layer3.attention);
///
/// Throws: Error for a scheme or a kind of attention that posenc does not compute, a layer that has no attention, missing sinks
/// or tables, and if the files do not specify whether attention is causal; also as prepare for the scheme.
PreparedLayer prepare(const LayerGroup& group, const LayerInputs& inputs = {});

/// What the files say about layer i of a model, counted from 0 within its part; the model must outlive the result.
/// Throws: Error for a layer that the model does not have, or that several parts have if `part` is empty.
const LayerGroup& group_of(const Model& model, std::int64_t i, std::string_view part = "");

/// Layer i of a model, counted from 0 within its part.
/// Throws: as prepare and group_of.
PreparedLayer layer(const Model& model, std::int64_t i, const LayerInputs& inputs = {});

}  // namespace posenc
