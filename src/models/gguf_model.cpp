// GGUF metadata: keys of llama.cpp, which begin with the name of the architecture.

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
  std::optional<double> positive(std::string_view key) const {
    const GgufValue* const value = find(key);
    if (value == nullptr) return std::nullopt;
    const auto number = gguf_number(*value);
    if (!number || !std::isfinite(*number) || !(*number > 0)) {
      refuse(key, "a number above 0", number ? fmt::format("{}", *number) : "another value");
    }
    return number;
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

// The parameters of Llama 3 behind a list of divisors, where they are those of a published model.
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

RopeScaling yarn_of(const Metadata& from, double factor, std::int64_t original) {
  YarnScaling scaling{.factor = factor, .original_length = original};
  scaling.beta_fast = from.positive("rope.scaling.yarn_beta_fast").value_or(32.0);
  scaling.beta_slow = from.positive("rope.scaling.yarn_beta_slow").value_or(1.0);
  if (const auto extra = from.positive("rope.scaling.attn_factor"); extra && *extra != 1.0) {
    scaling.attention_factor = *extra * (factor > 1 ? 1 + 0.1 * std::log(factor) : 1);
  }
  if (const auto multiplier = from.positive("rope.scaling.yarn_log_multiplier")) {
    scaling.mscale = scaling.mscale_all_dim = *multiplier * 10;
  }
  return scaling;
}

void read_scaling(const Metadata& from, std::span<const std::byte> file, Rope& rope, Model& model) {
  const std::string type = from.text("rope.scaling.type");
  const double factor = from.positive("rope.scaling.factor").value_or(1.0);
  const std::int64_t original =
      from.integer("rope.scaling.original_context_length").value_or(model.usable_length.value_or(0));
  if (type == "yarn") {
    if (original < 1) raise(from.full("rope.scaling.original_context_length") + " is missing, which yarn needs");
    rope.scaling = yarn_of(from, factor, original);
    model.trained_length = original;
  } else if (type == "linear") {
    if (factor != 1.0) rope.scaling = LinearScaling{.factor = factor};
  } else if (!type.empty() && type != "none" && type != "longrope") {
    raise(fmt::format("{} {} is unknown (known are none, linear, yarn, longrope)", from.full("rope.scaling.type"),
                      quoted(type)));
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

void add_rope(const Metadata& from, const Architecture& facts, std::span<const std::byte> file, Model& model) {
  Rope rope = rope_of(from, facts, model);
  read_scaling(from, file, rope, model);
  Rope local{.dims = rope.dims, .base = rope.base, .layout = rope.layout};
  if (facts.local_base > 0) local.base = from.positive("rope.freq_base_swa").value_or(facts.local_base);

  Remarks remarks;
  const Json empty(Json::Object{});
  const Family rule{.types = "", .rule = facts.rule, .every = facts.every};
  // A window says that layers differ, which only the rule of exaone4 asks for.
  const Json window(Json::Object{{"sliding_window", 1}});
  const bool has_window = from.integer("attention.sliding_window").value_or(0) > 0;
  const std::int64_t count = from.integer("block_count").value_or(0);
  if (count > 4096) from.refuse("block_count", "at most 4096", std::to_string(count));
  std::vector<GroupedLayer> layers;
  for (const Layer& layer : layers_of({has_window ? &window : &empty}, rule, count, remarks)) {
    const bool is_local = facts.rule == LayerRule::kLocalGlobal && layer.type == "sliding_attention";
    const Scheme scheme = !layer.turns ? Scheme(None{}) : is_local ? Scheme(local) : Scheme(rope);
    layers.push_back({std::ssize(layers), layer.type, scheme});
  }
  if (layers.empty()) layers.push_back({-1, "", rope});
  for (const std::string& text : remarks.assumed) say(model.assumed, text);
  for (LayerGroup& group : grouped(layers)) {
    const auto* const one = std::get_if<Rope>(&*group.scheme);
    const bool is_yarn = one != nullptr && std::holds_alternative<YarnScaling>(one->scaling);
    if (is_yarn) group.softmax_factor = prepare(*one).softmax_factor;
    model.groups.push_back(std::move(group));
  }
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
  if (facts->encoding == Encoding::kRope) {
    add_rope(from, *facts, file, model);
    check_groups(model);
    return model;
  }
  LayerGroup group;
  for (std::int64_t i = 0; i < std::min<std::int64_t>(from.integer("block_count").value_or(0), 4096); ++i) {
    group.layers.push_back(i);
  }
  const std::int64_t heads = from.integer("attention.head_count").value_or(8);
  switch (facts->encoding) {
    case Encoding::kLearned:
      group.scheme = Learned{.rows = model.trained_length.value_or(512),
                             .width = from.integer("embedding_length").value_or(512)};
      group.scheme_name = Learned::name;
      break;
    case Encoding::kAlibi:
      name_scheme(group, {{"scheme", "alibi"},
                          {"heads", heads},
                          {"max_bias", from.positive("attention.max_alibi_bias").value_or(8.0)}});
      break;
    case Encoding::kT5:
      group.is_unscaled = true;
      name_scheme(group, {{"scheme", "t5"},
                          {"heads", heads},
                          {"buckets", from.integer("attention.relative_buckets_count").value_or(32)}});
      break;
    case Encoding::kNone:
      name_scheme(group, {{"scheme", "none"}});
      break;
    default:
      group.scheme_name = facts->name;
  }
  model.groups.push_back(std::move(group));
  return model;
}

}  // namespace posenc
