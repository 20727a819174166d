// GGUF metadata: the keys of llama.cpp, which begin with the name of the architecture.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "formats/excerpt.h"
#include "models/architectures.h"
#include "models/model_groups.h"
#include "posenc/error.h"
#include "posenc/gguf.h"
#include "posenc/model.h"

namespace posenc {
namespace {

using namespace models;

/// The metadata of one architecture.
struct Metadata {
  const GgufHead& head;
  std::string architecture;

  std::string full(std::string_view key) const { return fmt::format("{}.{}", architecture, key); }
  const GgufValue* find(std::string_view key) const { return head.find(full(key)); }
  [[noreturn]] void refuse(std::string_view key, std::string_view rule, const std::string& value) const {
    raise(fmt::format("{} must be {} but is {}", full(key), rule, value));
  }

  std::optional<std::int64_t> integer(std::string_view key) const {
    const GgufValue* const value = find(key);
    if (value == nullptr || value->as<GgufArray>() != nullptr) return std::nullopt;
    const auto whole = gguf_integer(*value);
    if (!whole || *whole < 0 || *whole > kPositionLimit) {
      refuse(key, "an integer from 0 to 2^53", whole ? std::to_string(*whole) : "another value");
    }
    return whole;
  }
  // llama.cpp treats a factor of 0 as none
  std::optional<double> positive_or_0(std::string_view key) const {
    const GgufValue* const value = find(key);
    return value != nullptr && gguf_number(*value) == 0.0 ? std::optional(0.0) : positive(key);
  }
  std::optional<double> positive(std::string_view key) const {
    const GgufValue* const value = find(key);
    if (value == nullptr) return std::nullopt;
    const auto number = gguf_number(*value);
    if (!number || !std::isfinite(*number) || !(*number > 0)) {
      refuse(key, "a number above 0", number ? fmt::format("{}", *number) : "another value");
    }
    return number;
  }
  // Nothing if the key is missing or not a list.
  std::optional<std::vector<double>> list(std::string_view key) const {
    const GgufValue* const value = find(key);
    const auto* const array = value == nullptr ? nullptr : value->as<GgufArray>();
    if (array == nullptr) return std::nullopt;
    std::vector<double> numbers;
    for (const GgufValue& one : gguf_elements(*array)) {
      const auto* const flag = one.as<bool>();
      const auto number = flag != nullptr ? std::optional(*flag ? 1.0 : 0.0) : gguf_number(one);
      if (!number) refuse(key, "a list of numbers", "another value");
      numbers.push_back(*number);
    }
    return numbers;
  }
  bool is_false(std::string_view key) const {
    const GgufValue* const value = find(key);
    const auto* const flag = value == nullptr ? nullptr : value->as<bool>();
    return flag != nullptr && !*flag;
  }
  std::string text(std::string_view key) const {
    const GgufValue* const value = find(key);
    if (value == nullptr) return "";
    const auto* const words = value->as<std::string_view>();
    if (words == nullptr) refuse(key, "a text", "another value");
    return std::string(*words);
  }
};

std::string architecture_of(const GgufHead& head) {
  const GgufValue* const value = head.find("general.architecture");
  const auto* const name = value == nullptr ? nullptr : value->as<std::string_view>();
  if (name == nullptr) raise("general.architecture is missing, which says how pairs are laid out");
  return std::string(*name);
}

std::vector<double> elements_of(const ConstTensorView& view) {
  std::vector<double> values;
  const std::int64_t count = count_of(view.shape);
  for (std::int64_t i = 0; i < count && view.type == DataType::kF32; ++i) {
    values.push_back(static_cast<double>(static_cast<const float*>(view.data)[i]));
  }
  return values;
}

std::vector<double> divisors(const Metadata& from, std::span<const std::byte> file, std::string_view name,
                             std::int64_t pairs) {
  const GgufTensor* const tensor = from.head.find_tensor(name);
  if (tensor == nullptr) return {};
  std::vector<double> values = elements_of(gguf_view(file, *tensor));
  if (std::ssize(values) != pairs) {
    raise(fmt::format("tensor {} must have {} f32 numbers, one for each pair, but has {} of {}", name, pairs,
                      count_of(tensor->shape), tensor->dtype));
  }
  for (const double value : values) {
    if (!(value > 0) || !std::isfinite(value)) raise(fmt::format("tensor {} must hold numbers above 0", name));
  }
  return values;
}

// The Llama 3 parameters behind a list of divisors, if they are those of a published model.
std::optional<Llama3Scaling> as_llama3(const Rope& rope, const std::vector<double>& list) {
  for (const double factor : {8.0, 32.0, 16.0}) {
    const Llama3Scaling scaling{.factor = factor};
    Rope candidate = rope;
    candidate.scaling = scaling;
    const Rotation plain = prepare(rope), stretched = prepare(candidate);
    bool fits = true;
    for (std::size_t i = 0; i < list.size() && fits; ++i) {
      const double ratio = radians_of(plain.frequencies[i]) / radians_of(stretched.frequencies[i]);
      fits = std::fabs(list[i] / ratio - 1) < 1e-4;
    }
    if (fits) return scaling;
  }
  return std::nullopt;
}

RopeScaling yarn_of(const Metadata& from, const Architecture& facts, double factor, std::int64_t original) {
  YarnScaling scaling{.factor = factor, .original_length = original};
  scaling.beta_fast = from.positive("rope.scaling.yarn_beta_fast").value_or(32.0);
  scaling.beta_slow = from.positive("rope.scaling.yarn_beta_slow").value_or(1.0);
  const auto at = [&](double mscale) { return factor > 1 ? 1 + 0.1 * mscale * std::log(factor) : 1.0; };
  // llama.cpp uses 1 for mscale, or the same as for mscale_all_dim
  if (auto multiplier = from.positive("rope.scaling.yarn_log_multiplier")) {
    if (facts.has_log_of_ten) *multiplier *= 10;
    scaling.mscale_all_dim = *multiplier;
    scaling.mscale_on_softmax = facts.has_log_of_ten;
    scaling.mscale = facts.has_equal_mscales ? *multiplier : 1.0;
  }
  if (const auto extra = from.positive("rope.scaling.attn_factor"); extra && *extra != 1.0) {
    const double own = scaling.mscale_all_dim ? at(*scaling.mscale) / at(*scaling.mscale_all_dim) : at(1);
    scaling.attention_factor = *extra * own;
  }
  return scaling;
}

void read_scaling(const Metadata& from, const Architecture& facts, std::span<const std::byte> file, Rope& rope,
                  Model& model) {
  // without a type, a factor is linear, and so is the older key
  std::string type = from.text("rope.scaling.type");
  if (type.empty()) type = "linear";
  auto given = from.positive_or_0("rope.scaling.factor");
  if (!given) given = from.positive_or_0("rope.scale_linear");
  const double factor = given.value_or(0) > 0 ? *given : 1.0;
  const std::int64_t original =
      from.integer("rope.scaling.original_context_length").value_or(model.usable_length.value_or(0));
  if (type == "yarn") {
    if (original < 1) raise(from.full("rope.scaling.original_context_length") + " is missing, which yarn needs");
    rope.scaling = yarn_of(from, facts, factor, original);
    model.trained_length = original;
  } else if (type == "linear") {
    if (factor != 1.0) rope.scaling = LinearScaling{.factor = factor};
  } else if (type != "none" && type != "longrope") {
    raise(fmt::format("{} {} is unknown (known are none, linear, yarn, longrope)", from.full("rope.scaling.type"),
                      quoted(type)));
  }
  if (const auto alpha = from.positive("rope.scaling.alpha"); alpha && facts.has_alpha) {
    rope.scaling = AlphaScaling{.alpha = *alpha};
  }
  const auto long_list = divisors(from, file, "rope_factors_long.weight", rope.dims / 2);
  const auto short_list = divisors(from, file, "rope_factors_short.weight", rope.dims / 2);
  if (!long_list.empty() && !short_list.empty()) {
    LongropeScaling scaling{.original_length = std::max<std::int64_t>(original, 1),
                            .short_factors = short_list,
                            .long_factors = long_list};
    scaling.factor =
        static_cast<double>(model.usable_length.value_or(original)) / static_cast<double>(scaling.original_length);
    scaling.attention_factor = from.positive("rope.scaling.attn_factor");
    rope.scaling = scaling;
    model.trained_length = original;
  }
  const auto list = divisors(from, file, "rope_freqs.weight", rope.dims / 2);
  if (list.empty()) return;
  if (const auto found = as_llama3(rope, list)) {
    rope.scaling = *found;
    model.trained_length = found->original_length;
    model.notes.emplace_back("rope_freqs.weight holds the divisors of llama3 scaling");
    return;
  }
  rope.scaling = LongropeScaling{.original_length = std::max<std::int64_t>(model.usable_length.value_or(1), 1),
                                 .short_factors = list,
                                 .long_factors = list,
                                 .attention_factor = 1.0};
  model.notes.emplace_back("rope_freqs.weight holds divisors that no known parameters make; shown as a list");
}

Rope rope_of(const Metadata& from, const Architecture& facts, Model& model) {
  Rope rope{.layout = facts.layout};
  const auto base = from.positive("rope.freq_base");
  rope.base = base.value_or(10000.0);
  if (!base) say(model.assumed, fmt::format("{} = 10000 (not given)", from.full("rope.freq_base")));
  if (rope.base <= 1) from.refuse("rope.freq_base", "above 1", fmt::format("{}", rope.base));
  auto dims = from.integer("rope.dimension_count");
  if (!dims) dims = from.integer("attention.key_length");
  if (!dims) {
    const auto width = from.integer("embedding_length"), heads = from.integer("attention.head_count");
    if (!width || !heads || *heads == 0 || *width % *heads != 0) {
      raise(from.full("rope.dimension_count") + " is missing");
    }
    dims = *width / *heads;
    say(model.assumed,
        fmt::format("{} = {} (embedding_length / head_count; not given)", from.full("rope.dimension_count"), *dims));
  }
  if (*dims < 2 || *dims % 2 != 0 || *dims > 65536) {
    from.refuse("rope.dimension_count", "even and from 2 to 65536", std::to_string(*dims));
  }
  rope.dims = *dims;
  if (facts.at_end) rope.first_dim = -rope.dims;
  if (const GgufValue* const value = from.find("rope.dimension_sections")) {
    if (facts.sections_are_halves) rope.layout = PairLayout::kHalves;
    const auto* const array = value->as<GgufArray>();
    std::int64_t sum = 0;
    for (const GgufValue& one : array == nullptr ? std::vector<GgufValue>{} : gguf_elements(*array)) {
      rope.sections.push_back(gguf_integer(one).value_or(-1));
      sum += rope.sections.back();
    }
    while (rope.sections.size() > 1 && rope.sections.back() == 0) rope.sections.pop_back();
    if (sum != rope.dims / 2) {
      from.refuse("rope.dimension_sections", fmt::format("a list that sums to {}", rope.dims / 2),
                  std::to_string(sum));
    }
    rope.section_order = facts.section_order;
  }
  return rope;
}

// Whether each layer has a window: a list, or a period.
std::vector<bool> windows_of(const Metadata& from, const Architecture& facts, std::size_t count, Model& model) {
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
    say(model.assumed, fmt::format("{} = {} (llama.cpp's own; not given)", from.full(kPattern), facts.period));
  }
  for (std::size_t i = 0; i < count; ++i) {
    const std::int64_t place = period == 0 ? 0 : static_cast<std::int64_t>(i) % period;
    found[i] = period == 0 || (facts.is_full_first ? place != 0 : place != period - 1);
  }
  return found;
}

// Whether each layer is attention: a list of key heads with 0 for layers that are not, or a period.
std::vector<bool> attention_of(const Metadata& from, const Architecture& facts, std::size_t count, Model& model) {
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
    say(model.assumed,
        fmt::format("{} = {} (llama.cpp's own; not given)", from.full("full_attention_interval"), facts.interval));
  }
  // blocks at the end that predict further tokens are attention
  const auto end = static_cast<std::int64_t>(count) - from.integer("nextn_predict_layers").value_or(0);
  for (std::int64_t i = 0; i < end; ++i) found[static_cast<std::size_t>(i)] = (i + 1) % interval == 0;
  return found;
}

bool is_rotated(const Metadata& from, const Architecture& facts, std::size_t layer, bool has_window,
                bool any_window) {
  if (facts.has_rope_switch && from.is_false("rope.scaling.finetuned")) return false;
  if (const auto list = from.list("attention.rope_pattern"); list && layer < list->size()) return (*list)[layer] != 0;
  const bool is_off = from.integer("attention.sliding_window") == 0;  // llama4: all rotate
  switch (facts.unrotated) {
    case Unrotated::kNone:
      return true;
    case Unrotated::kWithoutWindow:
      return has_window || !any_window;
    case Unrotated::kEveryFourth:
      return is_off || (layer + 1) % 4 != 0;
    case Unrotated::kFullFrom0:
      return !any_window || layer % 4 != 0;
  }
  return true;
}

// What attention does besides rotating: load_arch_hparams in src/models/*.cpp, is_masked_swa in llama-hparams.h.
void dress_gguf_layer(LayerGroup& group, const Metadata& from, const Architecture& facts, bool has_window) {
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

void add_rope(const Metadata& from, const Architecture& facts, std::span<const std::byte> file, Model& model) {
  Rope rope = rope_of(from, facts, model);
  Rope local = rope;
  read_scaling(from, facts, file, rope, model);
  if (!facts.is_local_unscaled) local.scaling = rope.scaling;
  local.base = from.positive("rope.freq_base_swa").value_or(facts.local_base > 0 ? facts.local_base : rope.base);
  if (const auto dims = from.integer("rope.dimension_count_swa"); dims && *dims >= 2 && *dims % 2 == 0) {
    local.dims = *dims;
  }
  const std::int64_t blocks = from.integer("block_count").value_or(0);
  if (blocks > 4096) from.refuse("block_count", "at most 4096", std::to_string(blocks));
  const auto count = static_cast<std::size_t>(blocks);
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
    dress_gguf_layer(group, from, facts, has_window);
    Rope one = has_window ? local : rope;
    if (ratios && i < ratios->size()) {
      if ((*ratios)[i] == 0) one.scaling = NoScaling{};
      if ((*ratios)[i] != 0) group.other_attention = kCompressed;
      if ((*ratios)[i] != 0) one.base = from.positive("attention.compress_rope_freq_base").value_or(one.base);
      if (auto* const yarn = std::get_if<YarnScaling>(&*one.scaling)) yarn->attention_factor = 1.0;
    }
    if (is_rotated(from, facts, i, has_window, any_window)) {
      set_scheme(group, one);
    } else {
      set_scheme(group, None{});
      if (facts.has_chunks) group.temperature = Temperature{.scale = 0.1, .length = 8192, .shift = 1};
    }
    layers.push_back(std::move(group));
  }
  for (LayerGroup& group : grouped(std::move(layers))) model.groups.push_back(std::move(group));
}

// Layers without position: all alike, or attention between layers of other kinds.
void add_without_position(const Metadata& from, const Architecture& facts, const LayerGroup& all, Model& model) {
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
    one.layer_type = attention[static_cast<std::size_t>(i)] ? "full_attention" : "linear_attention";
    if (!attention[static_cast<std::size_t>(i)]) {
      one.token_mixer = one.layer_type;
      one.is_causal.reset();
    }
    layers.push_back(std::move(one));
  }
  for (LayerGroup& one : grouped(std::move(layers))) model.groups.push_back(std::move(one));
}

}  // namespace

Model read_model(const GgufHead& head, std::span<const std::byte> file) {
  const Metadata from{head, architecture_of(head)};
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
  const bool has_table = head.find_tensor("position_embd.weight") != nullptr;
  if (is_alibi && max_bias > 0) {
    set_scheme(group, Alibi{.heads = needed("attention.head_count"), .max_bias = max_bias});
  } else if (is_alibi && !has_table) {
    set_scheme(group, None{});
  } else if (is_alibi || facts->encoding == Encoding::kLearned) {
    set_scheme(group, Learned{.rows = needed("context_length"), .width = needed("embedding_length")});
  } else if (facts->encoding == Encoding::kT5) {
    group.is_unscaled = true;
    T5 scheme{.heads = needed("attention.head_count"), .buckets = needed("attention.relative_buckets_count")};
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
