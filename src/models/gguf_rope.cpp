// RoPE and its scalings from GGUF metadata: the keys of llama.cpp, which begin with the name of the architecture.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "formats/excerpt.h"
#include "models/gguf_metadata.h"
#include "models/model_groups.h"

namespace posenc::models {
namespace {

std::vector<double> elements_of(const ConstTensorView& view) {
  std::vector<double> values;
  const std::int64_t count = count_of(view.shape);
  for (std::int64_t i = 0; i < count && view.type == DataType::kF32; ++i) {
    values.push_back(static_cast<double>(static_cast<const float*>(view.data)[i]));
  }
  return values;
}

std::vector<double> divisors(const GgufMetadata& from, std::span<const std::byte> file, std::string_view name,
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

RopeScaling yarn_of(const GgufMetadata& from, const Architecture& facts, double factor, std::int64_t original) {
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

}  // namespace

void read_gguf_scaling(const GgufMetadata& from, const Architecture& facts, std::span<const std::byte> file,
                       Rope& rope, Model& model) {
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

Rope gguf_rope(const GgufMetadata& from, const Architecture& facts, Model& model) {
  Rope rope{.layout = facts.layout};
  const auto base = from.positive("rope.freq_base");
  rope.base = base.value_or(10000.0);
  if (!base) note(model.assumed, fmt::format("{} = 10000 (not given)", from.full("rope.freq_base")));
  if (rope.base <= 1) from.refuse("rope.freq_base", "above 1", fmt::format("{}", rope.base));
  auto dims = from.integer("rope.dimension_count");
  if (!dims) dims = from.integer("attention.key_length");
  if (!dims) {
    const auto width = from.integer("embedding_length"), heads = from.integer("attention.head_count");
    if (!width || !heads || *heads == 0 || *width % *heads != 0) {
      raise(from.full("rope.dimension_count") + " is missing");
    }
    dims = *width / *heads;
    note(model.assumed,
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

}  // namespace posenc::models
