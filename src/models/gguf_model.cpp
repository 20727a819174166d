// GGUF metadata: the keys of llama.cpp, which begin with the name of the architecture.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "formats/excerpt.h"
#include "models/architectures.h"
#include "models/gguf_metadata.h"
#include "models/model_groups.h"
#include "posenc/error.h"
#include "posenc/gguf.h"
#include "posenc/model.h"

namespace posenc {
namespace {

using namespace models;

std::string architecture_of(const GgufHead& head) {
  const GgufValue* const value = head.find("general.architecture");
  const auto* const name = value == nullptr ? nullptr : value->as<std::string_view>();
  if (name == nullptr) raise("general.architecture is missing, which says how pairs are laid out");
  return std::string(*name);
}

// Whether each layer has a window: a list, or a period.
std::vector<bool> windows_of(const GgufMetadata& from, const Architecture& facts, std::size_t count, Model& model) {
  std::vector<bool> found(count, facts.are_all_windows);
  if (facts.are_all_windows) return found;
  const auto window = from.integer("attention.sliding_window");
  constexpr std::string_view kPattern = "attention.sliding_window_pattern";
  if (const auto list = from.list(kPattern)) {
    for (std::size_t i = 0; i < count && i < list->size(); ++i) found[i] = (*list)[i] != 0;
    return found;
  }
  const bool is_off = facts.period == 0 || (facts.needs_window && window.value_or(0) == 0) ||
                      (facts.only_blocks > 0 && facts.only_blocks != std::ssize(found)) || window == 0;
  if (is_off) return found;
  const auto given = from.integer(kPattern);
  const std::int64_t period = given.value_or(facts.period);
  if (!given && facts.period > 1) {
    note(model.assumed, fmt::format("{} = {} (llama.cpp's own; not given)", from.full(kPattern), facts.period));
  }
  for (std::size_t i = 0; i < count; ++i) {
    const std::int64_t place = period == 0 ? 0 : static_cast<std::int64_t>(i) % period;
    found[i] = period == 0 || (facts.is_full_first ? place != 0 : place != period - 1);
  }
  return found;
}

// Whether each layer is attention: a list of key heads with 0 for layers that are not, or a period.
std::vector<bool> attention_of(const GgufMetadata& from, const Architecture& facts, std::size_t count, Model& model) {
  std::vector<bool> found(count, true);
  if (const auto heads = from.list("attention.head_count_kv")) {
    for (std::size_t i = 0; i < count && i < heads->size(); ++i) found[i] = (*heads)[i] != 0;
  }
  if (facts.interval == 0) return found;
  if (const auto list = from.list("attention.recurrent_layers")) {
    for (std::size_t i = 0; i < count && i < list->size(); ++i) found[i] = (*list)[i] == 0;
    return found;
  }
  const auto given = from.integer("full_attention_interval");
  const std::int64_t interval = std::max<std::int64_t>(given.value_or(facts.interval), 1);
  if (!given) {
    note(model.assumed,
         fmt::format("{} = {} (llama.cpp's own; not given)", from.full("full_attention_interval"), facts.interval));
  }
  // blocks at the end that predict further tokens are attention
  const auto end = static_cast<std::int64_t>(count) - from.integer("nextn_predict_layers").value_or(0);
  for (std::int64_t i = 0; i < end; ++i) found[i] = (i + 1) % interval == 0;
  return found;
}

bool is_rotated(const GgufMetadata& from, const Architecture& facts, std::size_t layer, bool has_window,
                bool any_window, Model& model) {
  if (facts.has_rope_switch && from.is_false("rope.scaling.finetuned")) return false;
  if (const auto list = from.list("attention.rope_pattern"); list && layer < list->size()) return (*list)[layer] != 0;
  if (facts.rotates_lead &&
      static_cast<std::int64_t>(layer) < from.integer("leading_dense_block_count").value_or(0)) {
    return true;
  }
  switch (facts.unrotated) {
    case Unrotated::kNone:
      return true;
    case Unrotated::kWithoutWindow:
      return has_window || !any_window;
    case Unrotated::kEveryFourth: {
      if (!facts.has_chunks || from.integer("attention.sliding_window") != 0) return (layer + 1) % 4 != 0;
      // llama4.cpp:11 and 145: n_no_rope_layer_step is the number of layers
      const bool is_last = static_cast<std::int64_t>(layer) + 1 == from.integer("block_count");
      if (is_last) {
        note(
            model.warnings,
            "llama.cpp does not rotate the last layer, though its code means to rotate all of a model without windows");
      }
      return !is_last;
    }
    case Unrotated::kFullFrom0:
      return !any_window || layer % 4 != 0;
  }
  return true;
}

// What attention does besides rotating: load_arch_hparams in src/models/*.cpp, is_masked_swa in llama-hparams.h.
void set_gguf_attention_options(LayerGroup& group, const GgufMetadata& from, const Architecture& facts,
                                bool has_window) {
  const bool is_causal = facts.is_causal && !from.is_false("attention.causal");
  group.is_causal = is_causal;
  const std::string sinks = fmt::format("blk.{}.attn_sinks.weight", group.layers.front());
  group.has_sinks = facts.has_sinks || (facts.sinks_by_tensor && from.head.find_tensor(sinks) != nullptr);
  const auto window = from.integer("attention.sliding_window");
  if (has_window && facts.has_chunks) {
    group.chunk = 8192;
  } else if (has_window) {
    group.window = window ? window : facts.window > 0 ? std::optional(facts.window) : std::nullopt;
    if (!group.window) group.other_attention = "it slides over a window that the file does not give";
    // half of it on either side
    if (group.window && !is_causal) *group.window = *group.window / 2 + 1;
  }
  group.softcap = from.positive_or_0("attn_logit_softcapping").value_or(facts.softcap);
  group.is_unscaled = facts.is_unscaled;
  // deepseek2.cpp: keys may be stored as latent vectors; the scale remains that of the head
  if (const auto head = from.integer("attention.key_length_mla"); head && *head > 0) {
    group.scale = 1.0 / std::sqrt(static_cast<double>(*head));
  }
  const auto heads = from.integer("attention.head_count"), width = from.integer("embedding_length");
  group.heads = heads;
  group.key_heads = from.integer("attention.head_count_kv");
  if (facts.wide_blocks > 0 && from.integer("block_count") == facts.wide_blocks && heads.value_or(0) > 0 && width) {
    const std::int64_t features = *width / *heads;
    group.scale = 1.0 / std::sqrt(static_cast<double>(features));
  }
  if (facts.output_scale > 0) group.scale = from.positive("attention.output_scale").value_or(facts.output_scale);
  if (const auto scale = from.positive_or_0("attention.scale"); scale && *scale > 0) group.scale = *scale;
  if (const auto heat = from.positive_or_0("attention.temperature_scale"); heat && *heat > 0) {
    const std::string_view key =
        facts.has_trained_floor ? "rope.scaling.original_context_length" : "attention.temperature_length";
    const auto length = from.integer(key);
    if (!length || *length < 1) raise(from.full(key) + " is missing, the length of attention.temperature_scale");
    group.temperature = Temperature{.scale = *heat, .length = *length};
  }
}

void add_rope(const GgufMetadata& from, const Architecture& facts, std::span<const std::byte> file, Model& model) {
  Rope rope = gguf_rope(from, facts, model);
  Rope local = rope;
  read_gguf_scaling(from, facts, file, rope, model);
  if (!facts.is_local_unscaled) local.scaling = rope.scaling;
  local.base = from.positive("rope.freq_base_swa").value_or(facts.local_base > 0 ? facts.local_base : rope.base);
  if (const auto dims = from.integer("rope.dimension_count_swa"); dims && *dims >= 2 && *dims % 2 == 0) {
    local.dims = *dims;
  }
  const std::int64_t blocks = from.integer("block_count").value_or(0);
  if (blocks > 4096) from.refuse("block_count", "at most 4096", std::to_string(blocks));
  const std::size_t count = blocks;
  const std::vector<bool> windows = windows_of(from, facts, count, model);
  const std::vector<bool> attention = attention_of(from, facts, count, model);
  const bool any_window = std::find(windows.begin(), windows.end(), true) != windows.end();
  const auto ratios = from.list("attention.compress_ratios");  // deepseek4

  std::vector<LayerGroup> layers;
  for (std::size_t i = 0; i < std::max<std::size_t>(count, 1); ++i) {
    const bool has_window = i < count && windows[i], is_attention = i >= count || attention[i];
    LayerGroup group;
    group.layers = {count == 0 ? -1 : static_cast<std::int64_t>(i)};
    if (count > 0 && !is_attention) {
      group.layer_type = group.token_mixer = "linear_attention";
      set_scheme(group, None{});
      layers.push_back(std::move(group));
      continue;
    }
    group.layer_type = has_window ? "sliding_attention" : "full_attention";
    set_gguf_attention_options(group, from, facts, has_window);
    Rope one = has_window ? local : rope;
    if (ratios && i < ratios->size()) {
      if ((*ratios)[i] == 0) one.scaling = NoScaling{};
      if ((*ratios)[i] != 0) group.other_attention = kCompressed;
      if ((*ratios)[i] != 0) one.base = from.positive("attention.compress_rope_freq_base").value_or(one.base);
      if (auto* const yarn = std::get_if<YarnScaling>(&*one.scaling)) yarn->attention_factor = 1.0;
    }
    if (is_rotated(from, facts, i, has_window, any_window, model)) {
      set_scheme(group, one);
    } else {
      set_scheme(group, None{});
      // without windows there is no floor of the scale either: llama4.cpp:8
      if (facts.has_chunks && any_window) group.temperature = Temperature{.scale = 0.1, .length = 8192, .shift = 1};
    }
    layers.push_back(std::move(group));
  }
  for (LayerGroup& group : grouped(std::move(layers))) model.groups.push_back(std::move(group));
}

// Layers without position: all alike, or attention between layers of other kinds.
void add_without_position(const GgufMetadata& from, const Architecture& facts, const LayerGroup& all, Model& model) {
  LayerGroup group = all;
  set_scheme(group, None{});
  group.token_mixer = facts.token_mixer;
  if (!group.token_mixer.empty()) group.is_causal.reset();
  if (!group.token_mixer.empty() || all.layers.empty()) {
    model.groups.push_back(std::move(group));
    return;
  }
  const std::vector<bool> attention = attention_of(from, facts, all.layers.size(), model);
  std::vector<LayerGroup> layers;
  for (const std::int64_t i : all.layers) {
    LayerGroup one = group;
    one.layers = {i};
    one.layer_type = attention[i] ? "full_attention" : "linear_attention";
    if (!attention[i]) {
      one.token_mixer = one.layer_type;
      one.is_causal.reset();
    }
    layers.push_back(std::move(one));
  }
  for (LayerGroup& one : grouped(std::move(layers))) model.groups.push_back(std::move(one));
}

}  // namespace

Model read_model(const GgufHead& head, std::span<const std::byte> file) {
  const GgufMetadata from{head, architecture_of(head)};
  Model model;
  model.model_type = from.architecture;
  const Architecture* const facts = architecture_named(from.architecture);
  if (facts == nullptr) {
    const std::string_view near = nearest_name(excerpt(from.architecture), known_architectures());
    raise(fmt::format("general.architecture {} is unknown{}", quoted(from.architecture),
                      near.empty() ? " (its layout would be a guess)" : fmt::format(" (did you mean '{}'?)", near)));
  }
  model.trained_length = model.usable_length = from.integer("context_length");
  if (!facts->note.empty()) model.notes.emplace_back(facts->note);
  const std::int64_t blocks = from.integer("block_count").value_or(0);
  const bool is_alibi =
      facts->encoding == Encoding::kAlibi || (facts->alibi_blocks > 0 && blocks == facts->alibi_blocks);
  if (facts->encoding == Encoding::kRope && !is_alibi) {
    add_rope(from, *facts, file, model);
    check_groups(model.groups, model.trained_length);
    return model;
  }
  LayerGroup group;
  group.is_causal = facts->is_causal && !from.is_false("attention.causal");
  for (std::int64_t i = 0; i < std::min<std::int64_t>(blocks, 4096); ++i) group.layers.push_back(i);
  const auto needed = [&](std::string_view key) {
    const auto value = from.integer(key);
    if (!value || *value < 1) raise(from.full(key) + " is missing");
    return *value;
  };
  const double max_bias =
      from.positive_or_0("attention.max_alibi_bias").value_or(facts->is_bias_optional ? 0.0 : 8.0);
  bool has_table = head.find_tensor("position_embd.weight") != nullptr;
  const bool has_sizes =
      from.integer("context_length").value_or(0) > 0 && from.integer("embedding_length").value_or(0) > 0;
  if (facts->has_table_instead && max_bias == 0 && head.tensors.empty() && has_sizes) {
    has_table = true;
    note(model.assumed,
         "position_embd.weight, a row for each position (the file lists no tensors; models of this "
         "family without ALiBi have it)");
  }
  if (is_alibi && max_bias > 0) {
    set_scheme(group, Alibi{.heads = needed("attention.head_count"), .max_bias = max_bias});
  } else if (is_alibi && !has_table) {
    set_scheme(group, None{});
  } else if (is_alibi || facts->encoding == Encoding::kLearned) {
    set_scheme(group, Learned{.rows = needed("context_length"), .width = needed("embedding_length")});
  } else if (facts->encoding == Encoding::kT5) {
    group.is_unscaled = true;
    constexpr std::string_view kBuckets = "attention.relative_buckets_count";
    T5 scheme{.heads = needed("attention.head_count"), .buckets = 32};
    if (from.find(kBuckets) != nullptr) scheme.buckets = needed(kBuckets);
    if (from.find(kBuckets) == nullptr) {
      note(model.assumed, fmt::format("{} = 32 (as T5 has; not given, and llama.cpp needs it)", from.full(kBuckets)));
    }
    set_scheme(group, scheme);
    if (facts->has_decoder) {
      group.layer_type = "encoder";
      model.groups.push_back(group);
      group.layer_type = "decoder";
      group.is_causal = true;
      group.layers.clear();
      const std::int64_t count = from.integer("decoder_block_count").value_or(blocks);
      for (std::int64_t i = 0; i < std::min<std::int64_t>(count, 4096); ++i) group.layers.push_back(i);
      scheme.bidirectional = false;
      set_scheme(group, scheme);
    }
  } else if (facts->encoding == Encoding::kNone) {
    add_without_position(from, *facts, group, model);
    return model;
  } else {
    group.scheme_name = facts->name;
    group.formula = facts->note;
  }
  model.groups.push_back(std::move(group));
  return model;
}

}  // namespace posenc
